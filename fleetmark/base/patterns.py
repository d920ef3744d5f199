"""Match names with patterns: shell-style ones for metrics, and Ansible's for hosts (``--limit``)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from fleetmark.base.bounded import read_bytes
from fleetmark.base.errors import FleetmarkError

MAX_LIST_BYTES = 1 << 20  # maximum size of a host file in bytes
_MAX_NAMES = 100_000
_RANGE = re.compile(r"\[([0-9]{1,9})[-:]([0-9]{1,9})\]", re.ASCII)
_BETWEEN = re.compile(r"[,:](?![^\[\]]*\])")  # separators: commas and colons outside brackets


def is_chosen(name: str, patterns: Sequence[str]) -> bool:
    """Return whether any of ``patterns`` matches ``name``. Without patterns, every name matches."""
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def expanded(limit: str) -> str:
    """Return an Ansible host pattern with the names of ``@FILE`` and ``n[001-040]`` expanded.

    A file has a host or pattern per line, like Ansible's retry files. Raise FleetmarkError if a file cannot be read or
    is empty, or if a range is too long or descending.
    """
    if not limit.startswith("~") and ("@" in limit or _RANGE.search(limit)):
        return ",".join(name for part in _BETWEEN.split(limit) for name in _names(part.strip(), limit))
    return limit


def _names(part: str, limit: str) -> Iterator[str]:
    if part.startswith("@"):
        for line in _lines(Path(part[1:]).expanduser()):
            yield from _range(line, limit)
    elif part:
        yield from _range(part, limit)


def _lines(file: Path) -> list[str]:
    try:
        text = read_bytes(file, MAX_LIST_BYTES, "the file needs one host name per line").decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise FleetmarkError(f"--limit @{file}: cannot read the list of hosts: {reason}") from None
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    if not any(lines):
        raise FleetmarkError(f"--limit @{file}: the list is empty; write one host name per line")
    return [line for line in lines if line]


def _range(name: str, limit: str) -> Iterator[str]:
    match = _RANGE.search(name)
    if match is None or name.startswith("~"):
        yield name
        return
    first, last, width = int(match[1]), int(match[2]), len(match[1])
    if not 0 <= last - first < _MAX_NAMES:
        raise FleetmarkError(f"--limit {limit[:80]}: {match[0]} is not a range of hosts; write n[001-040]")
    for number in range(first, last + 1):
        yield f"{name[: match.start()]}{number:0{width}}{name[match.end() :]}"


def limited(names: Iterable[str], limit: str) -> list[str]:
    """Return the host names that match an Ansible pattern of names, globs, ``~regex``, ``!excluded`` and ``&also``.

    Group names do not match, because a record has no groups. Raise FleetmarkError if no name matches.
    """
    every = list(dict.fromkeys(names))
    parts = [part for part in _BETWEEN.split(expanded(limit)) if part]
    included = [p for p in parts if p[0] not in "!&"] or ["all"]
    chosen = {name for pattern in included for name in _matching(every, pattern, limit)}
    for part in parts:
        if part[0] in "!&":
            matching = _matching(every, part[1:], limit)
            chosen = chosen & matching if part[0] == "&" else chosen - matching
    if not chosen:
        present = ", ".join(every[:8]) + (f" and {len(every) - 8} more" if len(every) > 8 else "")
        raise FleetmarkError(f"--limit {limit[:80]} matches no host; there are {present or 'none'}")
    return [name for name in every if name in chosen]


def _matching(names: Sequence[str], pattern: str, limit: str) -> set[str]:
    if pattern in ("all", "*"):
        return set(names)
    if not pattern.startswith("~"):
        return {name for name in names if name == pattern or fnmatch.fnmatchcase(name, pattern)}
    try:
        return {name for name in names if re.match(pattern[1:], name)}
    except re.error as error:
        raise FleetmarkError(f"--limit {limit[:80]}: {pattern!r} is not a regular expression: {error}") from None
