"""Read YAML files. Every YAML file is read here, so the limits below apply to all of them.

Size, nesting, number of values and length of numbers are checked before any object is built from the text: libyaml
before 0.2.6 overflows the stack on deep nesting, and a few lines of aliases can expand to billions of values.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError

LARGEST_BYTES = 4 << 20  # maximum file size
MOST_NODES = 400_000  # keys and values per file; an alias counts as all the values it expands to
MOST_LEVELS = 100  # maximum nesting depth of lists and mappings
LONGEST_NUMBER = 100  # in characters
LONGEST_KEY = 18  # maximum characters of an integer key; above 2**61, an attacker can choose integers with equal hashes
_EXPLAINED_BYTES = 64 << 10  # below this size, the slow parser reports errors: its messages are clearer
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "str", "timestamp", "seq", "map", "merge", "value")
)
_INTEGER = "tag:yaml.org,2002:int"
_NUMBERS = (_INTEGER, "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")


class _Fault(yaml.constructor.ConstructorError):
    """Report an error at the position of a node or event."""

    def __init__(self, sentence: str, mark: Any) -> None:
        super().__init__(None, None, sentence, mark)


def _too_deep(mark: Any) -> _Fault:
    return _Fault(f"more than {MOST_LEVELS} levels of lists and mappings; flatten it", mark)


class _Bounded(Composer):
    """Build nodes from events. Raise _Fault if a limit is exceeded."""

    def __init__(self) -> None:
        Composer.__init__(self)
        self._nodes = self._level = 0
        self._sizes: dict[str, int] = {}  # number of nodes by anchor, for complete anchors

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[attr-defined]
        before, self._nodes = self._nodes, self._nodes + 1
        if isinstance(event, yaml.AliasEvent) and event.anchor in self.anchors:
            if event.anchor not in self._sizes:
                raise _Fault(f"the alias *{event.anchor} refers to itself", event.start_mark)
            self._nodes += self._sizes[event.anchor]
        if self._nodes > MOST_NODES:
            values = "values after alias expansion (too many aliases)" if self._sizes else "values"
            raise _Fault(f"more than {MOST_NODES:,} {values}; split the file", event.start_mark)
        if self._level >= MOST_LEVELS and isinstance(event, yaml.CollectionStartEvent):
            raise _too_deep(event.start_mark)
        self._level += 1
        node: Any = super().compose_node(parent, index)
        self._level -= 1
        if node.tag not in _TAGS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!", 1)
            raise _Fault(f"the tag {tag[:80]} is not supported; remove it", event.start_mark)
        is_key = index is None and isinstance(parent, yaml.MappingNode)
        if is_key and node.tag == _INTEGER and len(node.value) > LONGEST_KEY:
            raise _Fault(f"an integer of {len(node.value)} characters as a key; put it in quotes", event.start_mark)
        if event.anchor is not None and not isinstance(event, yaml.AliasEvent):
            self._sizes[event.anchor] = self._nodes - before
        return node

    def compose_scalar_node(self, anchor: Any) -> Any:
        node = super().compose_scalar_node(anchor)
        if len(node.value) > LONGEST_NUMBER and node.tag in _NUMBERS:
            raise _Fault(f"a number of {len(node.value):,} characters; write at most {LONGEST_NUMBER}", node.start_mark)
        return node


class _Safe(yaml.constructor.SafeConstructor):
    """Build values from nodes.

    Raise _Fault for a repeated key, where PyYAML would keep the last one, and for a value that does not fit its tag.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise _Fault(f"{key.value} is repeated", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            text = f"{node.value[:80]!r}" if isinstance(node, yaml.ScalarNode) else "the value"
            kind = node.tag.rpartition(":")[2]
            raise _Fault(
                f"{text} is not a valid {kind}: {error}; correct it, or put it in quotes", node.start_mark
            ) from error


class _Loader(_Bounded, _Safe, yaml.SafeLoader):
    """Load in pure Python, which gives clearer error messages."""

    def __init__(self, text: str) -> None:
        yaml.SafeLoader.__init__(self, text)
        _Bounded.__init__(self)


if hasattr(yaml, "CSafeLoader"):
    from yaml.constructor import SafeConstructor
    from yaml.cyaml import CParser  # type: ignore[attr-defined]
    from yaml.resolver import Resolver

    class _FastLoader(_Bounded, _Safe, CParser, Resolver):
        """Load with libyaml if PyYAML was built with it; all manifests load several times as fast."""

        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            _Bounded.__init__(self)
            SafeConstructor.__init__(self)
            Resolver.__init__(self)

else:
    _FastLoader = _Loader  # type: ignore[misc, assignment]


class Tree:
    """Parse a YAML text into nodes and values. Methods raise yaml.YAMLError; ``fault`` converts it to a message."""

    def __init__(self, text: str) -> None:
        """Parse ``text``. Raise yaml.YAMLError if it is invalid YAML or exceeds a limit."""
        self._loader, self.root = _composed(text)

    def value(self, node: yaml.Node) -> Any:
        """Return the value of a node."""
        return self._loader.construct_object(node)

    def flatten(self, node: yaml.MappingNode) -> None:
        """Replace the merge keys (``<<``) of ``node`` with the entries that they merge."""
        self._loader.flatten_mapping(node)

    def document(self) -> Any:
        """Return the value of the text; None if it is empty."""
        return None if self.root is None else self._loader.construct_document(self.root)


def _composed(text: str) -> tuple[Any, yaml.Node | None]:
    try:
        loader: Any = _FastLoader(text)
        return loader, loader.get_single_node()
    except _Fault:
        raise
    except yaml.YAMLError as error:
        if "nesting depth" in str(error):  # the limit of libyaml 0.2.6 and later, which reads ahead of the composer
            raise _too_deep(getattr(error, "problem_mark", None)) from error
        if len(text) <= _EXPLAINED_BYTES:
            with contextlib.suppress(ValueError, OverflowError):  # for example \UFFFFFFFF
                _Loader(text).get_single_node()
        raise


def nodes(path: Path) -> yaml.Node | None:
    """Return the root node of a YAML file, or None if it is empty. Raise FleetmarkError if it is invalid."""
    text = read_text(path, path)
    try:
        return Tree(text).root
    except (yaml.YAMLError, RecursionError) as error:
        raise fault(path, error) from error


def fault(name: object, error: Exception) -> FleetmarkError:
    """Return the message for a YAMLError or RecursionError in the text that ``name`` identifies."""
    if isinstance(error, RecursionError):
        return FleetmarkError(f"{name}: merge keys are nested too deeply; write out the merged entries")
    mark = getattr(error, "problem_mark", None)
    line = f" line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) or str(error)
    return FleetmarkError(f"{name}{line}: not YAML: {' '.join(problem.split())}")


def read_text(path: Path, name: object) -> str:
    """Return the text of the YAML file ``path``, called ``name`` in messages. Raise FleetmarkError on failure."""
    try:
        return read_bytes(path, LARGEST_BYTES, "split the file").decode()
    except OSError as error:
        raise FleetmarkError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FleetmarkError(f"{name}: not UTF-8 text: byte {error.start + 1} is invalid") from error


def names_yaml(text: str) -> bool:
    """Return whether an option that takes words or a file names a file. Only the user may choose the file."""
    return text.endswith((".yml", ".yaml"))


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file. Raise FleetmarkError with the file name and the problem if it is invalid."""
    text = read_text(path, path)
    try:
        raw = Tree(text).document()
    except (yaml.YAMLError, RecursionError) as error:
        raise fault(path, error) from error
    if not isinstance(raw, dict):
        raise FleetmarkError(f"{path}: expected keys and values, got {type(raw).__name__}")
    return raw
