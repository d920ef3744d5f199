"""Cache the documents parsed from a campaign's raw files on disk while the campaign runs.

``judged.jsonl`` has a line per folder of raw files: a CRC-32 of the line, a key, and a document. The key is a hash of
the folder's name, the state of its files and the reading code, so a document is reused only if all of them are
unchanged. The file can be deleted: missing, damaged or outdated documents are parsed from the raw files again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

from fleetmark.record.archive import Archive

NAME = "judged.jsonl"
_LONGEST = 64 << 20  # maximum bytes per line; longer documents are not stored
_HEAD = 8 + 1 + 64 + 1  # the CRC-32 and the key, each followed by a space


class Spool:
    """The cached documents of a campaign by key.

    Only their file positions are in memory. If the disk is full, the cache stays empty.
    """

    def __init__(self, archive: Archive, reader: str) -> None:
        """Open the cache of ``archive``. ``reader``: identifies the code that parses raw files, with its version."""
        self._archive, self._reader = archive, reader
        self._file: int | None = None
        self._places: dict[bytes, tuple[int, int]] = {}
        with contextlib.suppress(OSError):
            self._file = archive.append_to(NAME)
            self._find_lines(self._file)

    def key(self, folder: Path) -> bytes | None:
        """Return the key of ``folder`` for the current state of its files; None if they cannot be examined."""
        try:
            with os.scandir(folder) as entries:
                files = sorted((e.name, *_state(e.stat(follow_symlinks=False))) for e in entries)
        except OSError:
            return None
        identity = [self._reader, self._archive.id, self._archive.named(folder), files]
        return hashlib.sha256(json.dumps(identity).encode()).hexdigest().encode()

    def get(self, key: bytes | None) -> Any:
        """Return the document of ``key``; None if it is missing or damaged."""
        if self._file is None or key not in self._places:
            return None
        offset, length = self._places[key]
        with contextlib.suppress(OSError, ValueError, RecursionError):
            line = os.pread(self._file, length, offset)
            if int(line[:8], 16) == zlib.crc32(line[9:]) and line[9 : _HEAD - 1] == key:
                return json.loads(line[_HEAD:])
        return None

    def put(self, key: bytes | None, document: Any) -> None:
        """Store ``document``, if there is room for it."""
        if self._file is None or key is None:
            return
        rest = key + b" " + json.dumps(document).encode()
        line = b"%08x %s\n" % (zlib.crc32(rest), rest)
        if len(line) > _LONGEST:
            return
        try:
            offset = os.lseek(self._file, 0, os.SEEK_END)
            if os.write(self._file, line) == len(line):
                self._places[key] = (offset, len(line) - 1)
            else:
                self.close()
        except OSError:
            self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def remove(self) -> None:
        """Close the spool and remove its file."""
        self.close()
        self._archive.discard(self._archive.path / NAME)

    def _find_lines(self, handle: int) -> None:
        offset, last = 0, b""
        with os.fdopen(os.dup(handle), "rb") as file:
            while line := file.readline(_LONGEST):
                if line.endswith(b"\n"):
                    self._places[line[9 : _HEAD - 1]] = (offset, len(line) - 1)
                offset += len(line)
                last = line
        if offset and not last.endswith(b"\n"):
            os.write(handle, b"\n")  # a crash left a partial line, which the next line must not continue


def _state(s: os.stat_result) -> tuple[int, ...]:
    return (s.st_mode, s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns)
