"""Receive the files of finished steps from one host into the archive, part by part and within limits."""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from fleetmark.record.archive import Archive
from fleetmark.record.replies import MAX_FILE, MAX_PART, MAX_RESULT_BYTES, MAX_STEP, Ended, NoReply, Part, Result, read
from fleetmark.record.steps import Step

_RUNNER_FILES = ("result.json", "stdout", "stderr", "server.stdout", "server.stderr")
_MOST_FILES = 1000 + len(_RUNNER_FILES)


@dataclass(slots=True)
class _Arriving:
    """The step whose files are arriving. ``sizes`` has the bytes received so far by file name; the last file is
    still open.
    """

    step: str
    folder: Path
    sizes: dict[str, int] = field(default_factory=dict)
    file: BinaryIO | None = None
    name: str = ""


class Receiver:
    """Receive the steps of one host over one connection.

    The class is for a single thread. Its memory is bounded by the size of one part. Raise NoReply if the host breaks
    the protocol, and CannotKeep if the archive cannot be written.
    """

    def __init__(self, archive: Archive, host: str, steps: Mapping[str, Step], have: Iterable[str] = ()) -> None:
        """Prepare for the steps of a host; the steps in ``have`` are already stored and are not sent again."""
        self._archive, self._host, self._steps = archive, host, steps
        self._have = set(have)
        self._arriving: _Arriving | None = None

    def take(self, part: Part) -> int:
        """Store the next bytes of a step's file. Return their number."""
        data = _unpacked(part.data)
        if self._arriving and self._arriving.step != part.step:
            raise NoReply(f"files of step {part.step} before the end of step {self._arriving.step}")
        now = self._arriving or self._begin(part.step)
        limit = MAX_RESULT_BYTES if part.name == "result.json" else MAX_FILE
        if part.name != now.name:
            self._next_file(now, part.name)
        now.sizes[part.name] += len(data)
        if now.sizes[part.name] > limit:
            raise NoReply(f"{part.name} of step {part.step} has more than {limit >> 20} MiB")
        if sum(now.sizes.values()) > MAX_STEP:
            raise NoReply(f"the files of step {part.step} have more than {MAX_STEP >> 20} MiB")
        assert now.file
        with self._archive.keeping(now.folder):
            now.file.write(data)
        return len(data)

    def end(self, ended: Ended) -> tuple[Path, Result]:
        """End a step after all its files have arrived.

        Return their folder, for ``Archive.save_step``, and the result.
        """
        now = self._arriving
        if now is None or now.step != ended.step or now.sizes != ended.files:
            raise NoReply(f"step {ended.step} ends without all of its files")
        with self._archive.keeping(now.folder):
            _close(now)
        try:
            result = read(Result, (now.folder / "result.json").read_bytes())
        except FileNotFoundError:
            raise NoReply(f"step {ended.step} has no result.json") from None
        except NoReply as error:
            raise NoReply(f"result.json of step {ended.step}: {error}") from None
        self._arriving = None
        return now.folder, result

    def forget(self) -> None:
        """Remove the files of a step that was incomplete when the connection ended."""
        if self._arriving:
            if self._arriving.file:
                with contextlib.suppress(OSError):
                    self._arriving.file.close()
            self._archive.discard(self._arriving.folder)
            self._arriving = None

    def _begin(self, step_id: str) -> _Arriving:
        step = self._steps.get(step_id)
        if step is None or step_id in self._have:
            raise NoReply(f"files of step {step_id}, which it {'has sent' if step else 'was not given'}")
        self._have.add(step_id)
        self._arriving = _Arriving(step_id, self._archive.begin_step(self._host, step.as_json()))
        return self._arriving

    def _next_file(self, now: _Arriving, name: str) -> None:
        if not _is_expected(self._steps[now.step], name):
            raise NoReply(f"step {now.step} left a file {name[:80]!r}, which matches none of its patterns")
        if name in now.sizes or len(now.sizes) >= _MOST_FILES:
            raise NoReply(f"the files of step {now.step} are out of order, or too many")
        with self._archive.keeping(now.folder):
            _close(now)
            now.file = self._archive.new_file(now.folder, name)
        now.name, now.sizes[name] = name, 0


def _is_expected(step: Step, name: str) -> bool:
    """Return whether a step may leave a file with this name.

    It may be one of the runner's own files, or match one of the step's patterns.
    """
    if name in _RUNNER_FILES:
        return True
    if "/" in name or name.startswith(".") or name == "step.json" or not name.isprintable() or not name.isascii():
        return False
    return any(fnmatch.fnmatchcase(name, PurePosixPath(pattern).name) for pattern in step.files)


def _unpacked(data: str) -> bytes:
    """Return the unpacked bytes of a part. Unpacking stops after ``MAX_PART`` bytes."""
    try:
        packed = base64.b64decode(data, validate=True)
        stream = zlib.decompressobj()
        raw = stream.decompress(packed, MAX_PART + 1)
    except (ValueError, zlib.error) as error:
        raise NoReply(f"a part of a file cannot be unpacked: {error}") from None
    if len(raw) > MAX_PART or not stream.eof or stream.unused_data:
        raise NoReply(f"a part of a file is cut, or has more than {MAX_PART >> 10} KiB")
    return raw


def _close(now: _Arriving) -> None:
    """Sync and close the current file; an empty file needs no sync."""
    if now.file:
        now.file.flush()
        if now.sizes[now.name]:
            os.fsync(now.file.fileno())
        now.file.close()
        now.file = None
