"""Test that names are nouns: no preposition, question word or all-purpose word, and no class name twice in a package.

Dataclasses with many fields take keywords only.
"""

from __future__ import annotations

import ast
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
WORDS = """
found made told said there whole
own most less same beside asked
of at about by to on with_ from_ in_
what where when which who whose how why
"""
VAGUE = frozenset(WORDS.split())  # all-purpose words, adjectives without their noun, prepositions, question words
EXCEPTED_NAMES = {
    ("fleetmark/api/documents.py", "what"),  # a key of the printed document
    ("fleetmark/api/documents.py", "whole"),  # a key of the printed document
    ("fleetmark/api/record.py", "by"),  # figures(by="host"), as in pandas, and --by
    ("fleetmark/cli/reports.py", "by"),  # --by
    ("fleetmark/cli/tune.py", "on"),  # --on
    ("fleetmark/cli/tune.py", "to"),  # --to
    ("parsers/facts/_document.py", "which"),  # the command of this name
    ("parsers/torch_ops.py", "why"),  # a key that the tool prints
    ("planner/capacity/analysis/results.py", "beside"),  # a key of the printed document
    ("playbooks/roles/llm_serve/files/figures.py", "asked"),  # a change to a role deploys it again
    ("playbooks/roles/llm_serve/files/quality.py", "same"),  # a change to a role deploys it again
    ("playbooks/roles/stress/files/watch.py", "beside"),  # a change to a role deploys it again
    ("playbooks/roles/torch_ops/files/torch_ops.py", "asked"),  # a change to a role deploys it again
    ("workloads/manifest.py", "when"),  # Ansible's word for a condition
    ("workloads/suite.py", "where"),  # SQL's word for a condition
}
MAX_POSITIONAL = 5  # fields of a dataclass that may be given without their names
POSITIONAL = {
    "fleetmark/base/measurement.py Measurement",  # the interface of users' parsers
    "playbooks/roles/mlperf_inference/files/networks.py Network",  # runs on hosts' Python, older than KW_ONLY
}


def files() -> list[Path]:
    """The Python files that git tracks; skips where this is not a git checkout."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "*.py"], cwd=HOUSE, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs a git checkout: {error}")
    return [path for name in listing.stdout.split("\0") if name and (path := HOUSE / name).exists()]


def defined(text: str) -> Iterator[tuple[int, str]]:
    """The line and name of every identifier that ``text`` binds: functions, classes, arguments, variables, attributes,
    import aliases."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((node.lineno, alias.asname) for alias in names if alias.asname)


def vague_names(name: str, text: str) -> list[str]:
    """Return the place and name of every vague identifier in a file."""
    return [
        f"{name}:{line} {word}" for line, word in defined(text) if word in VAGUE and (name, word) not in EXCEPTED_NAMES
    ]


def test_every_name_says_what_it_holds() -> None:
    texts = {str(path.relative_to(HOUSE)): path.read_text("utf-8") for path in files()}
    assert len(texts) > 400
    assert [word for name, text in texts.items() for word in vague_names(name, text)] == []
    bound = {(name, word) for name, text in texts.items() for _, word in defined(text)}
    assert sorted(EXCEPTED_NAMES - bound) == [], "these exceptions are not needed any more"


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield every class of the product and the benchmarks with its file."""
    for path in files():
        name = str(path.relative_to(HOUSE))
        if not name.startswith("tests/"):
            yield from (
                (name, node) for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)
            )


def test_no_package_has_two_classes_of_one_name() -> None:
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, node in classes():
        places[name.rpartition("/")[0], node.name].add(name)
    assert len(places) > 400
    assert {key for key, found_in in places.items() if len(found_in) > 1} == set()


def is_positional(node: ast.ClassDef) -> bool:
    """Return whether a class is a dataclass with many fields that need no names: those before its ``_: KW_ONLY``."""
    annotated = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    positional = takewhile(lambda part: ast.unparse(part.annotation) != "KW_ONLY", annotated)
    fields = [part for part in positional if "ClassVar" not in ast.unparse(part)]
    decorators = [ast.unparse(part) for part in node.decorator_list]
    is_open = any(text.startswith("dataclass") and "kw_only=True" not in text for text in decorators)
    return is_open and len(fields) > MAX_POSITIONAL


def test_fields_of_large_dataclasses_are_given_by_name() -> None:
    positional = {f"{name} {node.name}" for name, node in classes() if is_positional(node)}
    assert sorted(positional ^ POSITIONAL) == []


def test_a_large_dataclass_is_seen() -> None:
    fields = "".join(f"    f{n}: int\n" for n in range(MAX_POSITIONAL + 1))
    for decorator, expected in (
        ("@dataclass", True),
        ("@dataclass(frozen=True)", True),
        ("@dataclass(kw_only=True, frozen=True)", False),
        ("@final", False),
    ):
        (node,) = ast.parse(f"{decorator}\nclass A:\n    limit: ClassVar[int] = 1\n{fields}").body
        assert isinstance(node, ast.ClassDef)
        assert is_positional(node) is expected
        mark = ast.parse("_: KW_ONLY").body[0]
        assert not is_positional(ast.ClassDef(**vars(node) | {"body": [*node.body[:-1], mark, node.body[-1]]}))
        node.body.pop()
        assert not is_positional(node)


@pytest.mark.parametrize(
    "text",
    [
        "made = 1",
        "made: int = 1",
        "def made(): ...",
        "async def made(): ...",
        "class A:\n    made: int",
        "def f(made): ...",
        "def f(*, made=1): ...",
        "def f(**made): ...",
        "lambda made: 1",
        "[1 for made in ()]",
        "with open('a') as made: ...",
        "if (made := 1): ...",
        "a.made = 1",
        "for a, (made, b) in (): ...",
        "try: ...\nexcept OSError as made: ...",
        "import a as made",
        "match 1:\n    case made: ...",
    ],
)
def test_a_name_is_seen_wherever_it_is_bound(text: str) -> None:
    assert "made" in {name for _, name in defined(text)}


def test_uses_of_others_names_are_no_fault() -> None:
    assert [*defined("from hypothesis import given\nx = a.made(told=1)\nprint(there)")] == [(2, "x")]
