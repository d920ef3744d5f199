"""A cache on disk of the outcomes of a campaign's steps: what an earlier controller judged is not parsed again."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import TracebackType

from pydantic import TypeAdapter, ValidationError

import fleetmark
import parsers
import workloads
from fleetmark.base import schema
from fleetmark.campaign.outcome import Outcome, judge
from fleetmark.record.archive import Archive
from fleetmark.record.spool import Spool

_OUTCOME = TypeAdapter(Outcome)


class Judged:
    """``outcome`` is ``judge`` with a cache on disk, which ``forget`` removes."""

    def __init__(self, archive: Archive) -> None:
        self._archive, self._spool = archive, Spool(archive, _code())

    def __enter__(self) -> Judged:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._spool.close()

    def outcome(self, folder: Path) -> Outcome:
        """The outcome of the step whose raw files lie in ``folder``."""
        key = self._spool.key(folder)  # taken before the files are read: files that change meanwhile are read again
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
        """Remove the cache: the measurements are written and no step is owed."""
        self._spool.remove()


@cache
def _code() -> str:
    """SHA-256 of the code and manifests that turn raw files into outcomes: other versions may read them differently."""
    digest = hashlib.sha256()
    for package in (fleetmark, parsers, workloads):
        root = Path(str(package.__file__)).parent
        for file in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".yml")):
            raw = file.read_bytes()
            digest.update(f"{root.name}/{file.relative_to(root)} {len(raw)}\n".encode() + raw)
    return digest.hexdigest()
