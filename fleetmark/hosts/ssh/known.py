"""Look up a host's keys in known_hosts as OpenSSH does (sshd(8)): hashed names, patterns and markers.

A file is read once for all hosts, because ``ssh-keygen -F`` would take at least two processes per host.
"""

from __future__ import annotations

import base64
import hmac
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

_HASHED = "|1|"  # followed by the salt and the name's HMAC-SHA1
_reading = threading.Lock()  # hosts are checked concurrently, and the first thread reads the file for all


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A line of known_hosts that matches a host. ``marker``: empty, ``@revoked`` or ``@cert-authority``."""

    marker: str
    type: str
    blob: bytes
    file: Path


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    names: str  # as written in the file
    words: tuple[str, str, str]  # marker, type, key in base64


@dataclass(frozen=True, slots=True)
class _File:
    """The lines of a file. ``plain``: lines by plain name; ``others``: lines with hashed names or patterns."""

    plain: Mapping[str, Sequence[_Line]]
    others: Sequence[_Line]


def known_keys(names: Iterable[str], files: Iterable[Path]) -> list[KnownKey]:
    """Return a host's keys in ``files``, under the first of ``names`` that has any."""
    files = list(files)
    for name in names:
        if keys := [key for file in files for key in _look_up(name, file)]:
            return keys
    return []


def _look_up(name: str, file: Path) -> Iterator[KnownKey]:
    try:
        stat = file.stat()
        if not S_ISREG(stat.st_mode):
            return  # /dev/null means no file
        with _reading:
            content = _read(file, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return  # as in ssh, ignore a file that this user cannot read
    lines = [*content.plain.get(name.lower(), ()), *(line for line in content.others if _names(line.names, name))]
    for line in sorted(lines, key=lambda line: line.number):
        marker, kind, key = line.words
        try:
            yield KnownKey(marker, kind, base64.b64decode(key, validate=True), file)
        except ValueError:  # not base64, or not ASCII
            continue  # ssh also skips invalid lines


@lru_cache(maxsize=16)
def _read(file: Path, _changed: int, _size: int) -> _File:
    plain: dict[str, list[_Line]] = {}
    others: list[_Line] = []
    for number, text in enumerate(file.read_bytes().decode(errors="replace").split("\n")):
        words = re.split("[ \t\r]+", text.strip(" \t\r"))
        marker = words.pop(0) if words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#"):
            continue
        line = _Line(number, words[0], (marker, words[1], words[2]))
        if words[0].startswith("|") or set(words[0]) & set("*?!"):
            others.append(line)
        else:
            for name in dict.fromkeys(words[0].lower().split(",")):
                plain.setdefault(name, []).append(line)
    return _File(plain, others)


def _names(names: str, name: str) -> bool:
    """Return whether ``name`` matches the names of a line: one hashed name, or comma-separated patterns."""
    if names.startswith("|"):
        return names.startswith(_HASHED) and _is_hash_of(names.removeprefix(_HASHED), name)
    patterns, name = names.lower().split(","), name.lower()  # a HostKeyAlias may contain upper-case letters
    if any(_pattern(p[1:]).fullmatch(name) for p in patterns if p.startswith("!")):
        return False
    return any(_pattern(p).fullmatch(name) for p in patterns if not p.startswith("!"))


def _is_hash_of(text: str, name: str) -> bool:
    salt, _, digest = text.partition("|")
    try:
        return hmac.digest(base64.b64decode(salt), name.encode(), "sha1") == base64.b64decode(digest)
    except ValueError:
        return False


@lru_cache(maxsize=4096)
def _pattern(pattern: str) -> re.Pattern[str]:
    """Compile an OpenSSH pattern with ``*`` and ``?``. Brackets are literal, as around a name with a port."""
    words = {"*": ".*", "?": "."}
    return re.compile("".join(words.get(c) or re.escape(c) for c in pattern), re.DOTALL)
