"""Read simple inventories of hosts, groups and variables without Ansible, which takes 0.5 s to start.

Only an unambiguous subset of Ansible's syntax is read: names without patterns, one level of groups, no templates, no
vaults, no plugins, no ansible.cfg, and no group_vars beside the file. For everything else, ``read`` returns None, and
Ansible reads the inventory. A test compares the results with Ansible's.
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
# Ansible warns about many other names, which are keywords of playbooks.
_KEY = re.compile(r"(?!ansible_(?:group_priority|facts)$)(?:ansible|fleetmark)_[A-Za-z0-9_]+", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_./:@~+,-]*", re.ASCII)
_MOST = 1 << 20  # maximum file size in bytes
# If one of these is beside the inventory or in the current folder, only Ansible knows all variables.
_MORE = ("group_vars", "host_vars", "vars_plugins", "inventory_plugins", "collections", "plugins")
_PLUGINS = ("~/.ansible/plugins", "/usr/share/ansible/plugins")


class _NotPlain(Exception):
    """Report content that only Ansible can read."""


@dataclass(slots=True)
class _Inventory:
    """Store hosts, groups and their variables in the order of their first appearance, as Ansible does."""

    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)  # by group, including ``all``

    def add(self, host: object, group: str | None, variables: Mapping[str, Any]) -> None:
        name = _fit(_NAME, host)
        self.hosts.setdefault(name, {}).update(variables)
        if group and name not in self.groups.setdefault(group, []):
            self.groups[group].append(name)

    def document(self) -> dict[str, Any]:
        """Return the inventory in the format of ``ansible-inventory --list``."""
        if not self.hosts or self.hosts.keys() & self.groups.keys():
            raise _NotPlain
        in_groups = {host for members in self.groups.values() for host in members}
        ungrouped = [host for host in self.hosts if host not in in_groups]
        members = {name: {"hosts": hosts} for name, hosts in {"ungrouped": ungrouped, **self.groups}.items() if hosts}
        return {
            "_meta": {"hostvars": {host: values for host in self.hosts if (values := self._values(host))}},
            "all": {"children": ["ungrouped", *self.groups]},
            **members,
        }

    def _values(self, host: str) -> dict[str, Any]:
        """Return a host's variables: those of ``all``, then those of its groups by name, then its own."""
        groups = ["all", *sorted(name for name, members in self.groups.items() if host in members)]
        return {
            k: v
            for variables in (*(self.variables.get(g, {}) for g in groups), self.hosts[host])
            for k, v in variables.items()
        }


def read(source: str) -> dict[str, Any] | None:
    """Return the output of ``ansible-inventory --list`` for ``source``, or None if only Ansible can read it.

    Ansible must use its default settings.
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
    """Parse a value as Ansible does: Python literals keep their type, and everything else is text."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    if not isinstance(value, bool | int):  # for example a tuple
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
    """Return whether JSON can represent ``value``, and Ansible would not evaluate it."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, str):
        return "{" not in value
    return value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
