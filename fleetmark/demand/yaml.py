"""The planner's input from YAML, with the line of every key."""

from __future__ import annotations

import hashlib
from pathlib import Path as File
from typing import Any

import yaml

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand.places import Input, Path, Where, dotted

MOST_NODES = 200_000  # nested aliases can expand without bound


def read(file: File) -> Input:
    """The document in ``file``; a repeated key is a fault. Raises FleetmarkError for a file that is not YAML."""
    try:
        raw = file.read_bytes()
        text = raw.decode()
    except OSError as error:
        raise FleetmarkError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise FleetmarkError(f"{file}: not UTF-8 text: byte {error.start + 1} is invalid") from error
    loader = yaml.SafeLoader(text)
    try:
        walk = _Walk(loader, file.name)
        root = loader.get_single_node()
        doc = walk.value(root, ()) if root is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise FleetmarkError(f"{file.name}{line}: not YAML: {problem}") from error
    except RecursionError as error:
        raise FleetmarkError(f"{file.name}: nested too deeply for an input of the planner") from error
    finally:
        loader.dispose()
    if not isinstance(doc, dict):
        raise FleetmarkError(f"{file.name}: keys and values are expected; `fleetmark plan init` writes an example")
    source = Input(doc, walk.places, {file.name: hashlib.sha256(raw).hexdigest()}, folder=file.parent)
    for path, sentence in walk.faults:
        source.fault(path, sentence)
    return source


class _Walk:
    """Turns nodes into values and records the place of each."""

    def __init__(self, loader: yaml.SafeLoader, name: str) -> None:
        self.loader, self.name = loader, name
        self.places: dict[Path, Where] = {}
        self.faults: list[tuple[Path, str]] = []
        self.nodes = 0
        self.open: set[int] = set()

    def value(self, node: yaml.Node, path: Path, line: int | None = None) -> Any:
        """The value of ``node``; ``line`` is that of its key."""
        line = node.start_mark.line + 1 if line is None else line
        self.nodes += 1
        if self.nodes > MOST_NODES or id(node) in self.open:
            raise FleetmarkError(f"{self.name} line {line}: {dotted(path)}: too many aliases")
        self.places[path] = Where(self.name, line)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        self.open.add(id(node))
        if isinstance(node, yaml.MappingNode):
            result: Any = self.mapping(node, path)
        else:
            assert isinstance(node, yaml.SequenceNode)
            result = [self.value(item, (*path, n)) for n, item in enumerate(node.value)]
        self.open.discard(id(node))
        return result

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        direct = {id(k) for k, _ in node.value}
        self.loader.flatten_mapping(node)
        result: dict[str, Any] = {}
        written: set[str] = set()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self.key(key_node)
            inner = (*path, key)
            if key in written and id(key_node) in direct:
                self.faults.append((inner, f"is there twice, at line {self.places[inner].line} and line {line}"))
            if id(key_node) in direct:
                written.add(key)
            result[key] = self.value(value_node, inner, line)
        return result

    def key(self, node: yaml.Node) -> str:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            raise FleetmarkError(f"{self.name} line {line}: a key is one word")
        value = self.scalar(node)
        if isinstance(value, bool) or value is None:
            raise FleetmarkError(f"{self.name} line {line}: {node.value!r} is {value} in YAML: put the key in quotes")
        return str(node.value)

    def scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            return self.loader.construct_object(node)
        except ValueError as error:  # 2027-13-45 has the form of a date
            raise FleetmarkError(f"{self.name} line {node.start_mark.line + 1}: {node.value!r}: {error}") from error
