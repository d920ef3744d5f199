"""Define a rule's suggested setting as data: the host's files or commands, the value, and how to read it back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fleetmark.base.errors import FleetmarkError

_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_,.:-]{0,63}")
# An interface name that the kernel accepts, without characters that a shell interprets.
_INTERFACE = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]{1,15}")


@dataclass(kw_only=True, frozen=True, slots=True)
class Item:
    """One item to set to ``value``; an empty value must come from the user.

    - ``path``: a shell-style pattern of the files to write
    - ``read``: the command that prints the present value, in the one group of ``match``
    - ``write``: the command that sets the value, with ``{}`` in its place
    - ``words``: the values in ``write`` by those that ``read`` prints, if they differ
    - ``unless``: a shell-style pattern of files; if one exists, something else follows the value and would not be
      restored
    - ``least``: the smallest number that can be restored completely
    """

    value: str
    path: str = ""
    read: tuple[str, ...] = ()
    match: str = ""
    write: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    unless: str = ""
    least: int = 0

    @property
    def shown(self) -> str:
        """Return the item and its value on one line."""
        value = self.words.get(self.value, self.value) or "VALUE"
        return f"{self.path} = {self.value or value}" if self.path else " ".join(self.write).replace("{}", value)


@dataclass(frozen=True, slots=True)
class Setting:
    """The ``items`` that are set and restored together. If files are alternatives, some of them may be missing."""

    items: tuple[Item, ...]

    def with_value(self, value: str) -> Setting:
        """Return the setting with another value. Raise FleetmarkError for an invalid value."""
        if not _VALUE.fullmatch(value):
            raise FleetmarkError(f"--to {value}: not a valid value; use only letters, digits and _ , . : -")
        least = max(item.least for item in self.items)
        if least and not (re.fullmatch(r"[0-9]{1,9}", value) and int(value) >= least):
            raise FleetmarkError(f"--to {value}: a value below {least} cannot be undone; use at least {least}")
        return Setting(tuple(replace(item, value=value) for item in self.items))

    def for_device(self, device: str) -> Setting:
        """Return the part of the setting for one interface or disk. Raise FleetmarkError if it has no such part."""
        items = tuple(i for i in self.items if device in (*i.path.split("/"), *i.read))
        if not items:
            raise FleetmarkError(
                f"--on {device}: the rule sets nothing on this device; without --on it sets {self.shown}"
            )
        return Setting(items)

    @property
    def shown(self) -> str:
        """Return all items and their values on one line."""
        return "; ".join(item.shown for item in self.items)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the settings in the form that is used in a host's job."""
        return [{key: value for key, value in asdict(item).items() if value} for item in self.items]


def file(path: str, value: str) -> Setting:
    """Return one file, or all files that a pattern matches, as a setting."""
    return Setting((Item(value=value, path=path),))


def is_interface(name: str) -> bool:
    """Return whether a host's name for an interface or disk is safe in a path and a command."""
    return _INTERFACE.fullmatch(name) is not None
