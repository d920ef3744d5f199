"""Find the lines of keys and values in a YAML file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from fleetmark.base.yaml import nodes


class Places:
    """The nodes of a YAML file with their line numbers. The file must be valid YAML."""

    def __init__(self, path: Path) -> None:
        self._root = nodes(path)

    def line(self, place: Sequence[int | str]) -> int:
        """Return the line of the key or item at ``place``, or of its nearest existing parent."""
        node, line = self._root, 1
        for step in place:
            below = dict(_entries(node)).get(step)
            if below is None:
                break
            line, node = below
        return line

    def texts(self) -> Iterator[tuple[int, str]]:
        """Yield the line and text of every scalar value."""
        seen: set[int] = set()
        todo = [self._root]
        while todo:
            node = todo.pop()
            if id(node) in seen:  # an anchored node can appear several times
                continue
            seen.add(id(node))
            if isinstance(node, yaml.ScalarNode):
                yield node.start_mark.line + 1, node.value
            todo += [below for _, (_, below) in _entries(node)]


def _entries(node: yaml.Node | None) -> Iterator[tuple[int | str, tuple[int, yaml.Node]]]:
    """Yield the keys or indices of a node, each with its line and value; merged keys come first."""
    if isinstance(node, yaml.SequenceNode):
        yield from ((index, (item.start_mark.line + 1, item)) for index, item in enumerate(node.value))
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == "<<":
                yield from _entries(value)
        yield from (
            (key.value, (key.start_mark.line + 1, value))
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode) and key.value != "<<"
        )
