"""Cache the content of a results root for the pages until its campaigns change."""

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

FRESH_S = 5.0  # seconds for which the list of campaigns counts as current
MOST_KEPT = 32  # maximum documents and pages in memory
_FILES = ("campaign.json", "journal.jsonl", "measurements.parquet")
Stamp = tuple[Hashable, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The state of the record at one time. ``stamp`` changes with any change of the record.

    ``summaries``: all campaigns, oldest first. ``machines``: hosts of campaigns and machines of imported tables.
    ``campaigns_by_host``: campaign ids, oldest first, by host name in alphabetical order.
    """

    stamp: Stamp
    summaries: Mapping[str, Summary]
    machines: Sequence[Machine]
    campaigns_by_host: Mapping[str, Mapping[str, Machine]]


class Shelf:
    """Cache the list of campaigns and hosts, and the latest pages. Safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()  # protects the fields below
        self._work = threading.Lock()  # only one page is created at a time, which bounds the memory
        self._recorded: Recorded | None = None
        self._read_at = 0.0
        self._kept: OrderedDict[Hashable, tuple[Stamp, Any]] = OrderedDict()

    def recorded(self) -> Recorded:
        """Return the state of the record, at most FRESH_S seconds old."""
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
        """Return the cached value of ``key`` if its ``stamp`` is unchanged, else call ``make`` and cache its result."""
        stored = self._found(key, stamp)
        if stored is None:
            with self._work:
                stored = self._found(key, stamp)  # another thread may have cached the value meanwhile
                if stored is None:
                    stored = stamp, make()
                    self._keep(key, stored)
        result: T = stored[1]
        return result

    def close(self) -> None:
        """Wait for the page in progress, and create no more pages.

        Threads of libraries must not outlive the interpreter.
        """
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
    """Return the sizes and modification times of a campaign's files."""
    return _stamps([archive.path / name for name in _FILES])


def _stamps(files: Sequence[Path]) -> Stamp:
    states: list[Hashable] = []
    for file in files:
        with contextlib.suppress(OSError):
            state = file.lstat()
            states.append((file.name, state.st_size, state.st_mtime_ns))
    return tuple(states)
