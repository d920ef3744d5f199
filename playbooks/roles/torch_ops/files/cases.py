"""Select the operators and their shapes: check the shapes' file and make cases from it. Needs no torch."""

import fnmatch
import json
import sys

import basic  # noqa: F401  fills the table
import fused  # noqa: F401
import longtail  # noqa: F401
from operators import FAMILIES, TABLE

WORDS = ("tokens", "batch")
LARGEST = 1 << 31
MOST_SHAPES = 1000
KEYS = ("model", "operators")


class Wrong(Exception):
    """Report an error in the shapes file, with its place and reason."""


def check(shapes):
    """Return ``shapes`` as parsed from YAML or JSON. Raise Wrong if they are not valid shapes."""
    if not isinstance(shapes, dict) or not shapes:
        raise Wrong("it is not a mapping of families (%s) to shapes" % ", ".join(FAMILIES))
    for family, named in shapes.items():
        if family not in FAMILIES:
            raise Wrong("there is no family %r; there are %s" % (family, ", ".join(FAMILIES)))
        if not isinstance(named, dict) or not named or len(named) > MOST_SHAPES:
            raise Wrong("%s: it contains no shapes, or more than %d" % (family, MOST_SHAPES))
        for name, row in named.items():
            _check_row(family, name, row)
    return shapes


def _check_row(family, name, row):
    place = "%s.%s" % (family, name)
    plain = isinstance(name, str) and 0 < len(name) <= 60 and name.replace("-", "").replace(".", "").isalnum()
    if not plain or not name.isascii():
        raise Wrong("%s: a name is of letters, digits, dots and hyphens, 60 at most" % place)
    if not isinstance(row, dict):
        raise Wrong("%s: it is not a mapping of dimensions" % place)
    dims = FAMILIES[family]
    for key in dims:
        if key not in row:
            raise Wrong("%s: %s is not given; %s has %s" % (place, key, family, ", ".join(dims)))
        value = row[key]
        if value not in WORDS and (isinstance(value, bool) or not isinstance(value, int) or not 0 < value < LARGEST):
            raise Wrong("%s.%s: %r is not a whole number above 0, nor tokens or batch" % (place, key, value))
    for key in row:
        if key not in (*dims, *KEYS):
            raise Wrong("%s: it has %r, which is unknown to %s" % (place, key, family))
    if not isinstance(row.get("model", ""), str) or len(row.get("model", "")) > 100:
        raise Wrong("%s.model: it is not a short text" % place)
    operators = row.get("operators", [])
    if not isinstance(operators, list):
        raise Wrong("%s.operators: it is not a list" % place)
    known = [o.name for o in TABLE.values() if o.family == family]
    for operator in operators:
        if operator not in known:
            raise Wrong("%s.operators: %r is not one of %s's: %s" % (place, operator, family, ", ".join(known)))


def cases(shapes, grade, patterns, chosen, tokens, batch):
    """Yield (operator, name of its shape, dimensions, model) for each case of the class ``grade``.

    ``patterns`` and ``chosen``: shell-style patterns of operators and of shapes.
    """
    values = {"tokens": tokens, "batch": batch}
    for operator in TABLE.values():
        if operator.grade != grade or not _matches(operator.name, patterns):
            continue
        for name, row in shapes.get(operator.family, {}).items():
            if _matches(name, chosen) and operator.name in row.get("operators", [operator.name]):
                dims = {k: values.get(row[k], row[k]) for k in FAMILIES[operator.family]}
                yield operator, name, dims, row.get("model", "")


def _matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def main():
    """Print the shapes of a YAML file as JSON, on the controller: cases.py FILE."""
    import yaml

    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            shapes = yaml.safe_load(file.read(1 << 20))
        print(json.dumps(check(shapes)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        sys.exit("%s: it is not readable YAML (%s)" % (sys.argv[1], " ".join(str(error).split())[:200]))
    except Wrong as wrong:
        sys.exit("%s: %s" % (sys.argv[1], wrong))


if __name__ == "__main__":
    main()
