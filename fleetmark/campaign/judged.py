"""Cache the outcomes of a campaign's steps on disk, so that a later controller need not parse the files again."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter, ValidationError

import fleetmark
from fleetmark import parsers, workloads
from fleetmark.base import extensions, schema
from fleetmark.campaign.outcome import Outcome, judge
from fleetmark.campaign.rebuild import rebuild
from fleetmark.record.archive import Archive
from fleetmark.record.spool import Spool

_OUTCOME = TypeAdapter(Outcome)


class Judged:
    """Evaluate steps and cache their outcomes on disk. ``forget`` removes the cache."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._spool = archive, Spool(archive, code())

    def __enter__(self) -> Judged:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spool.close()

    def outcome(self, folder: Path) -> Outcome:
        """Return the outcome of the step whose raw files are in ``folder``."""
        key = self._spool.key(folder)  # computed before reading, so that files that change meanwhile are read again
        try:
            cached = _OUTCOME.validate_python(self._spool.get(key))
            for row in cached.rows:
                schema.checked(row)
            return cached
        except (ValidationError, TypeError):
            outcome = judge(self._archive, folder)
        self._spool.put(key, {f.name: getattr(outcome, f.name) for f in fields(outcome)})
        return outcome

    def forget(self) -> None:
        """Remove the cache. Call this when the measurements are written and no step is outstanding."""
        self._spool.remove()


def write_measurements(archive: Archive, judged: Judged | None = None) -> None:
    """Write the measurements of all steps so far, using cached outcomes if available."""
    if judged is None:
        with Judged(archive) as opened:
            write_measurements(archive, opened)
    else:
        archive.write_measurements(rebuild(archive, lambda folder, _: judged.outcome(folder)))


def code() -> str:
    """Return a SHA-256 that identifies the code and manifests used to interpret raw files.

    It covers file sizes and modification times: reading all the code would take as long as parsing a small campaign.
    """
    return _state_of(tuple(extensions.code_files()))


@cache
def _state_of(files: tuple[Path, ...]) -> str:
    """Return a SHA-256 that covers Fleetmark's own code and manifests, and the external ``files``."""
    digest = hashlib.sha256()
    for path in files:
        info = path.stat()
        digest.update(f"{path} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}\n".encode())
    for package in (fleetmark, parsers, workloads):
        root = Path(str(package.__file__)).parent
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(n for n in names if n.endswith((".py", ".yml"))):
                with contextlib.suppress(FileNotFoundError):  # an editor's temporary file may disappear meanwhile
                    info = Path(folder, name).stat()
                    state = f"{info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}"
                    digest.update(f"{folder}/{name} {state}\n".encode())
    return digest.hexdigest()
