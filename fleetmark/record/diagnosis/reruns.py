"""Plan repeats on suspect hosts, and evaluate each finding by its repeats."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.text import Message, message
from fleetmark.planner.diagnosis.confirm import Settled, settle, settle_tail
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.planner.diagnosis.outliers import LARGE
from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns_inside, container_of, repeated, summarise
from fleetmark.record.diagnosis import Diagnosis, pairs, read
from fleetmark.record.diagnosis.table import BENCHMARK, Table, title
from fleetmark.workloads import entry_of, plain_case

FOLDER = "confirmations"  # subfolder of a campaign for the campaigns that confirm it
PEERS = 4  # healthy hosts measured with the suspects of a cohort
LEAST_REPEATS = 5
OF_PAIRS = 3  # number of repeats; each has both directions and several partners
_SAME = tuple(name for name in BENCHMARK if name != "class")


@dataclass(frozen=True, slots=True)
class Rerun:
    """The repeat to run: ``suite`` (the content of a suite file) on ``hosts``.

    ``notes``: the findings that cannot be settled.
    """

    suite: Mapping[str, Any]
    hosts: tuple[str, ...]
    notes: tuple[Message, ...]


def can_be_settled(finding: Finding) -> bool:
    """Return whether a repeat on single hosts can settle the finding."""
    return bool(finding.host) and finding.kind is not Kind.GROUPS


def rerun(archive: Archive, diagnosis: Diagnosis) -> Rerun:
    """Return a suite of the cases in which suspects are slow, for the suspects and the most typical of their healthy
    peers.
    """
    measured, names = read(archive, everything=True)
    table = Table(measured, names)
    guilty = {h for f in diagnosis.findings if can_be_settled(f) for h in (f.host, f.other) if h}
    sound = {
        host: peers
        for cohort in diagnosis.cohorts
        for peers in [_ordinary(table, [h for h in cohort.peers if h not in guilty])]
        for host in cohort.hosts
    }
    groups: dict[str, dict[str, dict[tuple[str, ...], None]]] = {}
    notes: list[Message] = []
    repeats: dict[str, int] = {}
    for finding in filter(can_be_settled, diagnosis.findings):
        peers = sound.get(finding.host, ())
        if not peers and finding.kind is not Kind.REGRESSION:
            notes.append(
                message(
                    "{benchmark} on {host}: no healthy host of its kind is left for a comparison.",
                    benchmark=title(finding.benchmark),
                    host=finding.host,
                )
            )
            continue
        workload, case = finding.benchmark["workload"], finding.benchmark["case"]
        entry = entry_of(workload, case)
        of_case = groups.setdefault(entry, {}).setdefault(plain_case(case), {})
        of_case |= dict.fromkeys(_together(finding, peers))
        before = _runs(table, finding) if finding.kind is Kind.TAIL else 0
        least = OF_PAIRS if finding.kind in (Kind.NODE, Kind.LINK) else LEAST_REPEATS
        repeats[entry] = max(repeats.get(entry, 0), least, 2 * before)
    document = archive.campaign()
    suite = {
        "name": "confirm",
        "description": f"Repeats the slow cases of suspects in {archive.id}, with healthy hosts for comparison.",
        "repeats": LEAST_REPEATS,
        **repeated(archive),
        "workloads": {
            entry: {
                "set": dict((document.get("settings") or {}).get(entry, {})),
                **container_of(archive, entry),
                "cases": [glob.escape(case) for case in cases],
                "repeats": repeats[entry],
                "hosts": {case: [list(group) for group in each] for case, each in cases.items()},
            }
            for entry, cases in groups.items()
        },
    }
    taking_part = {h for cases in groups.values() for each in cases.values() for group in each for h in group}
    return Rerun(suite, tuple(h for h in names if h in taking_part), tuple(notes))


def _together(finding: Finding, peers: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the hosts, alone or in pairs, that repeat a finding's case."""
    if finding.kind is Kind.LINK:
        return [(finding.host, finding.other), *((h, p) for h in (finding.host, finding.other) for p in peers)]
    if finding.kind is Kind.NODE:
        return [*((finding.host, p) for p in peers), *pairwise(peers)]
    return [(h,) for h in (finding.host, *peers)]


def _ordinary(table: Table, hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the PEERS of ``hosts`` that are nearest to the medians of the others."""
    if not hosts:
        return ()
    values = table.values[:, [table.place[h] for h in hosts]]
    known = ~np.isnan(values)
    away = np.abs(values - np.nanmedian(np.where(known.any(axis=1)[:, None], values, 0.0), axis=1)[:, None])
    far = np.where(known, away, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    order = sorted(range(len(hosts)), key=lambda i: (not known[:, i].any(), far[i], hosts[i]))
    return tuple(hosts[i] for i in order[:PEERS])


def _runs(table: Table, finding: Finding) -> int:
    row = _row(table, finding)
    return 0 if row is None else int(table.runs[row, table.place[finding.host]])


def _row(table: Table, finding: Finding) -> int | None:
    matches = np.ones(len(table.keys), dtype=bool)
    for name in _SAME:
        matches &= (table.metrics[name] == finding.benchmark[name]).to_numpy(bool)
    rows = np.flatnonzero(matches)
    return int(rows[0]) if len(rows) else None


# --- verdicts of the repeats
# --------------------------------------------------------------------------------------------


def confirmations(archive: Archive) -> list[Archive]:
    """Return the campaigns that confirm this one, oldest first."""
    return campaigns_inside(archive, FOLDER)


def unfinished(archive: Archive) -> Archive | None:
    """Return the last confirmation if it is not finished."""
    last = confirmations(archive)[-1:]
    return last[0] if last and not summarise(last[0]).finished else None


def settled(archive: Archive, diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis with the verdicts of the last confirmation that has measurements."""
    repeats = [a for a in confirmations(archive) if a.inside("measurements.parquet").exists()]
    if not repeats:
        return diagnosis
    last = repeats[-1]
    measured, names = read(last, everything=True)
    seen = _Repeats(measured, names, str(Path(FOLDER) / last.id))
    guilty = {h for f in diagnosis.findings if can_be_settled(f) for h in (f.host, f.other) if h}
    before = Table(*read(archive, everything=True))
    findings = [
        replace(f, settled=seen.settled(f, guilty, _runs(before, f))) if can_be_settled(f) else f
        for f in diagnosis.findings
    ]
    return replace(diagnosis, findings=tuple(findings))


class _Repeats:
    """The figures of one confirmation."""

    def __init__(self, measured: figures.Figures, names: Sequence[str], campaign: str) -> None:
        self.table = Table(measured, names)
        self.pairs = pairs.rows_of(measured, names)
        self.names, self.campaign = names, campaign

    def settled(self, finding: Finding, guilty: set[str], before: int) -> Settled | None:
        """Return the verdict of the repeat on a finding; None if it was not measured again."""
        if finding.kind in (Kind.NODE, Kind.LINK):
            result = self._pairs(finding, guilty)
        else:
            row = _row(self.table, finding)
            column = self.table.place.get(finding.host)
            if row is None or column is None or np.isnan(self.table.values[row, column]):
                return None
            peers = [n for h, n in self.table.place.items() if h not in guilty]
            result = self._alone(
                finding, row, column, [p for p in peers if not np.isnan(self.table.values[row, p])], before
            )
        return replace(result, campaign=self.campaign) if result else None

    def _alone(self, finding: Finding, row: int, column: int, peers: list[int], before: int) -> Settled | None:
        values = self.table.values[row]
        if finding.kind is Kind.TAIL:
            suspect, *others = (self._single(row, c) for c in (column, *peers))
            n = min((len(o) for o in others), default=0)
            return settle_tail(suspect, np.array([o[:n] for o in others]), before) if n else None
        error = float(self.table.errors(np.arange(len(values)))[row, column])
        spread = float(np.nan_to_num(error))
        if finding.kind is Kind.REGRESSION:
            expected = np.array([np.log(finding.expected) * self.table.sign[row]])
        else:
            expected = values[peers]
            spread = max(spread, _spread(finding))
        if not len(expected):
            return None
        runs = int(self.table.runs[row, column])
        return settle(float(values[column]), expected, spread, float(self.table.deficit[row]), runs)

    def _single(self, row: int, column: int) -> np.ndarray:
        part = pd.DataFrame({"record": [column], "key": [self.table.keys[row]]})
        runs = figures.values(self.table.measured, part)["value"].to_numpy(float)
        return np.asarray(np.log(runs) * self.table.sign[row], dtype=np.float64)

    def _pairs(self, finding: Finding, guilty: set[str]) -> Settled | None:
        matches = np.ones(len(self.pairs), dtype=bool)
        for name in _SAME:
            if name != "subject":
                matches &= (self.pairs[name] == finding.benchmark[name]).to_numpy(bool)
        rows = self.pairs[matches]
        ends = [{self.names[a], self.names[b]} for a, b in zip(rows["a"], rows["b"], strict=True)]
        suspects = {finding.host, finding.other} - {""}
        link = finding.kind is Kind.LINK
        is_suspect = [suspects == e if link else finding.host in e and not (e - suspects) & guilty for e in ends]
        sound = [
            bool(suspects & e) and not (e - suspects) & guilty and suspects != e if link else not e & guilty
            for e in ends
        ]
        values = rows["value"].to_numpy(float)
        if not any(is_suspect) or not any(sound):
            return None
        runs = int(rows["n"].to_numpy(int)[is_suspect].sum())
        deficit = LARGE * (2 if link else 1)
        return settle(float(np.median(values[is_suspect])), values[sound], _spread(finding), deficit, runs)


def _spread(finding: Finding) -> float:
    """Return the spread of healthy hosts in the first campaign.

    It follows from the suspect's distance to them in percent and in spreads.
    """
    return float(-np.log1p(-finding.deficit) / -finding.z) if finding.z < 0 and finding.deficit < 1 else 0.0
