"""Record the state of a copy's files: the version in the store, and the local size and time after the last transfer."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetmark.base.files import decode_json
from fleetmark.base.inside import replace_inside
from fleetmark.record.store.objects import Stored


@dataclass(frozen=True, slots=True)
class Notes:
    """Read and write the notes in ``place``: ``FOLDER.json`` for each folder that was fetched or stored."""

    place: Path

    def _file(self, folder: str) -> Path:
        return self.place / f"{folder}.json"

    def folders(self) -> set[str]:
        """Return the folders that have notes."""
        return {file.name.removesuffix(".json") for file in self.place.glob("*.json")}

    def has(self, folder: str) -> bool:
        """Return whether ``folder`` has notes."""
        return self._file(folder).exists()

    def entries(self, folder: str) -> dict[str, Any]:
        """Return the ``version`` and ``looks`` (local state) of each file by name.

        Damaged notes are ignored, so the folder is fetched again.
        """
        try:
            notes = decode_json(self._file(folder).read_bytes())
            return {str(n): {"version": str(e["version"]), "looks": list(e["looks"])} for n, e in notes.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def add(self, folder: str, entries: Mapping[str, Any], removed: Sequence[str] = ()) -> None:
        """Add ``entries`` to the notes of ``folder``, and remove those in ``removed``."""
        notes = {n: e for n, e in self.entries(folder).items() if n not in removed}
        replace_inside(self._file(folder), self.place, json.dumps(notes | dict(entries)))

    def forget(self, folder: str) -> None:
        """Remove the notes of ``folder``."""
        self._file(folder).unlink(missing_ok=True)


def looks_of(file: Path) -> list[int] | None:
    """Return the size and time of a file; None if it does not exist."""
    try:
        state = os.lstat(file)
    except OSError:
        return None
    return [state.st_size, state.st_mtime_ns]


def is_content(stored: Stored, file: Path) -> bool:
    """Return whether a file's content equals the ``stored`` object.

    Return False if the store's versions are not MD5 digests.
    """
    if file.stat().st_size != stored.size:
        return False
    return hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest() == stored.version


def entry_of(stored: Stored, file: Path) -> dict[str, Any]:
    """Return the entry of a file that was fetched as ``stored``."""
    return {"version": stored.version, "looks": looks_of(file)}


def looked(notes: Mapping[str, Any], name: str) -> list[int] | None:
    """Return the noted state of a file; None if there is no note."""
    entry = notes.get(name)
    return entry["looks"] if entry else None
