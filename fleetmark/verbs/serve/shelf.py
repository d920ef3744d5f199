"""Keep what the pages read from a results root until its campaigns change."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import Summary
from fleetmark.record.imports import FOLDER
from fleetmark.record.listing import summaries
from fleetmark.record.machines import machines
from fleetmark.record.select import Machine

FRESH_S = 5.0  # how long the list of campaigns counts as current
MOST_KEPT = 32  # documents and pages in memory
_FILES = ("campaign.json", "journal.jsonl", "measurements.parquet")
Stamp = tuple[Hashable, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The record at one time. ``stamp`` differs if anything in it differs.

    ``summaries``: of all campaigns, oldest first. ``machines``: hosts of campaigns and machines of imported tables.
    ``campaigns_by_host``: ids, oldest first, of the hosts of campaigns, sorted by name.
    """

    stamp: Stamp
    summaries: Mapping[str, Summary]
    machines: Sequence[Machine]
    campaigns_by_host: Mapping[str, Mapping[str, Machine]]


class Shelf:
    """Keep the list of campaigns and hosts, and what was made last. Threads may use it together."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()  # of the fields below
        self._work = threading.Lock()  # one thing is made at a time: memory stays bounded
        self._recorded: Recorded | None = None
        self._read_at = 0.0
        self._kept: OrderedDict[Hashable, tuple[Stamp, Any]] = OrderedDict()

    def recorded(self) -> Recorded:
        """Return the record, at most FRESH_S old."""
        with self._lock:
            if self._recorded is None or time.monotonic() - self._read_at > FRESH_S:
                self._recorded = self._read(self._recorded)
                self._read_at = time.monotonic()
            return self._recorded

    def _read(self, before: Recorded | None) -> Recorded:
        listed = {s.campaign: s for s in summaries(self.root, stores_index=False)}
        state = tuple((s.campaign, s.finished, s.damaged, *s.statuses.items()) for s in listed.values())
        stamp = (state, _stamps([self.root / FOLDER, *sorted((self.root / FOLDER).glob("*/*"))]))
        if before is not None and before.stamp == stamp:
            return before
        on_record = machines(self.root) if listed or stamp[1] else []
        hosts: dict[str, dict[str, Machine]] = {}
        for machine in on_record:
            if machine.campaign in listed:
                hosts.setdefault(machine.host, {})[machine.campaign] = machine
        return Recorded(stamp, listed, on_record, dict(sorted(hosts.items())))

    def kept(self, key: Hashable, stamp: Stamp, make: Callable[[], T]) -> T:
        """Return what is kept under ``key`` if its ``stamp`` is the same, else what ``make`` returns."""
        stored = self._found(key, stamp)
        if stored is None:
            with self._work:
                stored = self._found(key, stamp)  # another thread may have made it meanwhile
                if stored is None:
                    stored = stamp, make()
                    self._keep(key, stored)
        result: T = stored[1]
        return result

    def close(self) -> None:
        """Wait for what is being made, and make nothing more. Threads of libraries must not outlive the interpreter."""
        self._work.acquire()

    def _found(self, key: Hashable, stamp: Stamp) -> tuple[Stamp, Any] | None:
        with self._lock:
            stored = self._kept.get(key)
            if stored is None or stored[0] != stamp:
                return None
            self._kept.move_to_end(key)
            return stored

    def _keep(self, key: Hashable, stored: tuple[Stamp, Any]) -> None:
        with self._lock:
            self._kept[key] = stored
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)


def stamp_of(archive: Archive) -> Stamp:
    """Return sizes and times of a campaign's files."""
    return _stamps([archive.path / name for name in _FILES])


def _stamps(files: Sequence[Path]) -> Stamp:
    states: list[Hashable] = []
    for file in files:
        with contextlib.suppress(OSError):
            state = file.lstat()
            states.append((file.name, state.st_size, state.st_mtime_ns))
    return tuple(states)
