"""Read the planner's input from YAML, and record the line of every key."""

from __future__ import annotations

import hashlib
from pathlib import Path as File
from typing import Any

import yaml

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import Tree, fault, read_text
from fleetmark.demand.places import Input, Path, Where


def read(file: File) -> Input:
    """Return the document in ``file``. Raise FleetmarkError if it is not YAML; a repeated key is an error."""
    text = read_text(file, file)
    try:
        walk = _Walk(Tree(text), file.name)
        doc = walk.value(walk.tree.root, ()) if walk.tree.root is not None else None
    except (yaml.YAMLError, RecursionError) as error:
        raise fault(file.name, error) from error
    if not isinstance(doc, dict):
        raise FleetmarkError(f"{file.name}: keys and values are expected; `fleetmark plan init` writes an example")
    digest = hashlib.sha256(text.encode()).hexdigest()
    source = Input(doc=doc, places=walk.places, files={file.name: digest}, folder=file.parent)
    for path, sentence in walk.faults:
        source.fault(path, sentence)
    return source


class _Walk:
    """Convert nodes to values, and record the position of each value."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree, self.name = tree, name
        self.places: dict[Path, Where] = {}
        self.faults: list[tuple[Path, str]] = []

    def value(self, node: yaml.Node, path: Path, line: int | None = None) -> Any:
        """Return the value of ``node``. ``line`` is the line of its key."""
        line = node.start_mark.line + 1 if line is None else line
        self.places[path] = Where(self.name, line)
        if isinstance(node, yaml.ScalarNode):
            return self.tree.value(node)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        assert isinstance(node, yaml.SequenceNode)
        return [self.value(item, (*path, n)) for n, item in enumerate(node.value)]

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        direct = {id(k) for k, _ in node.value}
        self.tree.flatten(node)
        result: dict[str, Any] = {}
        written: set[str] = set()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self.key(key_node)
            inner = (*path, key)
            if key in written and id(key_node) in direct:
                self.faults.append((inner, f"is repeated, at line {self.places[inner].line} and line {line}"))
            if id(key_node) in direct:
                written.add(key)
            result[key] = self.value(value_node, inner, line)
        return result

    def key(self, node: yaml.Node) -> str:
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            raise FleetmarkError(f"{self.name} line {line}: a key is one word")
        value = self.tree.value(node)
        if isinstance(value, bool) or value is None:
            raise FleetmarkError(f"{self.name} line {line}: {node.value!r} is {value} in YAML: put the key in quotes")
        return str(node.value)
