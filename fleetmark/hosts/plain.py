"""Reads inventories that are no more than hosts, groups and variables, without starting Ansible, which takes 0.5 s.

What is read here is a part of Ansible's forms that leaves no room for doubt: names without patterns, one level of
groups, no templates, no vaults, no plugins, no ansible.cfg, no group_vars beside it. Everything else is Ansible's to
read, so ``read`` is free to return None. A test holds the results against Ansible's own.
"""

from __future__ import annotations

import ast
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml

_NAME = re.compile(r"(?!(?:localhost|127\.)\b)[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_GROUP = re.compile(r"(?!(?:all|ungrouped)$)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Ansible warns of many other names: they are keywords of playbooks.
_KEY = re.compile(r"(?!ansible_(?:group_priority|facts)$)(?:ansible|fleetmark)_[A-Za-z0-9_]+", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_./:@~+,-]*", re.ASCII)
_MOST = 1 << 20  # bytes of a file
# Beside an inventory or in the current folder; then Ansible has more to say about the hosts.
_MORE = ("group_vars", "host_vars", "vars_plugins", "inventory_plugins", "collections", "plugins")
_PLUGINS = ("~/.ansible/plugins", "/usr/share/ansible/plugins")


class _NotPlain(Exception):
    """Something that only Ansible can read."""


@dataclass(slots=True)
class _Inventory:
    """Hosts, groups and their variables in the order in which they are first named, as Ansible keeps them."""

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)  # of groups, ``all`` among them

    def add(self, host: object, group: str | None, variables: Mapping[str, Any]) -> None:
        name = _fit(_NAME, host)
        self.hosts.setdefault(name, {}).update(variables)
        if group and name not in self.groups.setdefault(group, []):
            self.groups[group].append(name)

    def document(self) -> dict[str, Any]:
        """The inventory as ``ansible-inventory --list`` prints it."""
        if not self.hosts or self.hosts.keys() & self.groups.keys():
            raise _NotPlain
        in_groups = {host for members in self.groups.values() for host in members}
        alone = [host for host in self.hosts if host not in in_groups]
        members = {name: {"hosts": hosts} for name, hosts in {"ungrouped": alone, **self.groups}.items() if hosts}
        return {
            "_meta": {"hostvars": {host: values for host in self.hosts if (values := self._values(host))}},
            "all": {"children": ["ungrouped", *self.groups]},
            **members,
        }

    def _values(self, host: str) -> dict[str, Any]:
        """A host's variables: its groups' in the order of their names, behind those of ``all``, before its own."""
        groups = ["all", *sorted(name for name, members in self.groups.items() if host in members)]
        return {
            k: v
            for variables in (*(self.variables.get(g, {}) for g in groups), self.hosts[host])
            for k, v in variables.items()
        }


def read(source: str) -> dict[str, Any] | None:
    """What ``ansible-inventory --list`` prints for ``source``, None where only Ansible can tell. Ansible's settings
    must be the built-in ones.
    """
    path = Path(source).expanduser()
    try:
        _refuse_more(path)
        if "," in source and not path.exists():
            inventory = _Inventory()
            for name in filter(None, map(str.strip, source.split(","))):
                inventory.add(name, None, {})
        elif not path.is_file() or path.stat().st_size > _MOST or os.access(path, os.X_OK):
            return None
        elif path.suffix in (".yml", ".yaml"):
            inventory = _of_yaml(read_yaml(path))
        elif path.suffix in ("", ".ini", ".cfg", ".txt"):
            inventory = _of_ini(path.read_text())
        else:
            return None
        return inventory.document()
    except (_NotPlain, FleetmarkError, OSError, UnicodeDecodeError):
        return None


def _refuse_more(path: Path) -> None:
    folders = {Path.cwd(), path.resolve().parent}
    if any((folder / name).exists() for folder in folders for name in _MORE):
        raise _NotPlain
    if any(Path(folder).expanduser().exists() for folder in _PLUGINS):
        raise _NotPlain


def _fit(pattern: re.Pattern[str], text: object) -> str:
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise _NotPlain
    return text


# --- INI -------------------------------------------------------------------------------------------------------------


def _of_ini(text: str) -> _Inventory:
    inventory, group, kind = _Inventory(), "", "hosts"
    declared: set[str] = set()
    if text.startswith("#!"):
        raise _NotPlain
    for line in map(str.strip, text.splitlines()):
        if not line or line[0] in ";#":
            continue
        if line.startswith("["):
            group, kind = _section(line)
            if group != "all":
                inventory.groups.setdefault(group, [])
            if kind == "hosts":
                declared.add(group)
        elif kind == "hosts":
            name, *words = line.split()
            inventory.add(name, group or None, dict(_assignment(word, _WORD) for word in words))
        else:
            key, value = _assignment(line, re.compile(r"[\w./:@~+,= -]*", re.ASCII))
            inventory.variables.setdefault(group, {})[key] = value
    if inventory.groups.keys() - declared:
        raise _NotPlain
    return inventory


def _section(line: str) -> tuple[str, str]:
    if line == "[all:vars]":
        return "all", "vars"
    name = line.removeprefix("[").removesuffix("]")
    group, colon, kind = name.partition(":")
    if not line.endswith("]") or (colon and kind != "vars"):
        raise _NotPlain
    return _fit(_GROUP, group), kind or "hosts"


def _assignment(text: str, values: re.Pattern[str]) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise _NotPlain
    return _fit(_KEY, key.strip()), _value(_fit(values, value.strip()))


def _value(text: str) -> Any:
    """Python's literals are values of their kind, all else is text, as in Ansible."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    if not isinstance(value, bool | int):  # a tuple, say
        raise _NotPlain
    return value


# --- YAML ------------------------------------------------------------------------------------------------------------


def _of_yaml(document: Mapping[str, Any]) -> _Inventory:
    inventory = _Inventory()
    for name, content in document.items():
        _group(inventory, name if name == "all" else _fit(_GROUP, name), content)
    return inventory


def _group(inventory: _Inventory, name: str, content: Any) -> None:
    if name != "all":
        inventory.groups.setdefault(name, [])
    for key, part in _items(content):
        if key == "hosts":
            for host, variables in _items(part):
                inventory.add(host, name if name != "all" else None, dict(_variables(variables)))
        elif key == "vars":
            inventory.variables.setdefault(name, {}).update(_variables(part))
        elif key == "children" and name == "all":
            for child, inner in _items(part):
                _group(inventory, _fit(_GROUP, child), inner)
        else:
            raise _NotPlain


def _items(part: Any) -> Iterator[tuple[Any, Any]]:
    if part is not None and not isinstance(part, dict):
        raise _NotPlain
    yield from (part or {}).items()


def _variables(part: Any) -> Iterator[tuple[str, Any]]:
    for key, value in _items(part):
        if not _is_plain(value):
            raise _NotPlain
        yield _fit(_KEY, key), value


def _is_plain(value: Any) -> bool:
    """Whether JSON has it as it is, and nobody evaluates it."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, str):
        return "{" not in value
    return value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
