"""Cases between hosts on record, to find who makes them slow: rates, failures, labels, and what to run more."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns_inside, container_of, summarise
from fleetmark.record.diagnosis import gangs, pairs
from fleetmark.record.diagnosis.table import Table
from fleetmark.record.figures.pairs import peer
from planner.diagnosis.panel import PAIR
from planner.diagnosis.partners import Fault, Pair, Suspicion
from workloads import entry_of, plain_case

FOLDER = "isolations"  # folder of campaigns, inside the campaign whose slow pairs they explain
LABEL = "rack"
REPEATS = 2
FAILED = float("-inf")
_MEDIAN_DIFFERENCE = 0.954  # the median of how much two normal values differ, in their deviations


@dataclass(frozen=True, slots=True)
class Question:
    """One ``metric`` of a ``case`` between hosts. ``label``: which label of hosts makes borders."""

    workload: str
    case: str
    metric: str
    label: str


@dataclass(frozen=True, slots=True)
class Isolated:
    """What was asked of which campaign, who it is, the campaigns (paths relative to it) that were run for it, and the
    groups of hosts that each of them ran (``ran``)."""

    campaign: str
    question: Question
    suspicion: Suspicion
    campaigns: tuple[str, ...]
    ran: tuple[tuple[frozenset[str], ...], ...] = ()

    def evidence(self, fault: Fault) -> list[str]:
        """The raw files of a fault: its hosts by themselves or in pairs, else all that was run; the campaign's own
        where nothing was."""
        own = set(fault.members)
        few = [
            name
            for name, groups in zip(self.campaigns, self.ran, strict=False)
            if any(len(group) <= PAIR and own <= group for group in groups)
        ]
        return [f"{name}/raw" for name in few or self.campaigns] or ["raw"]


def question(archive: Archive, text: str, label: str | None = None) -> Question:
    """``iperf3/tcp-1`` (or with a metric behind it) as a question; borders are those of LABEL by default.

    Raises FleetmarkError for a case that no hosts ran together, and names those that there are; the same for a label
    that no host has.
    """
    if label is not None and not labels(archive, label):
        known = sorted({str(name) for host in archive.campaign()["hosts"] for name in host.get("labels") or {}})
        raise FleetmarkError(
            f"--border {label}: no host of {archive.id} has this label; they have {', '.join(known) or 'none'}"
        )
    label = label or LABEL
    workload, _, rest = text.partition("/")
    case, _, metric = rest.partition("/")
    together = gangs.groups(archive)
    if (workload, case) in together:
        return Question(workload, case, gangs.metric_of(archive, workload, case, metric), label)
    rows = pairs.rows_of(*_figures(archive))
    rows = rows[rows["better"] != Better.NONE.value]
    listed = sorted(f"{w}/{c}" for w, c in {*zip(rows["workload"], rows["case"], strict=True), *together})
    own = rows[(rows["workload"] == workload) & (rows["case"] == case)]
    metrics = list(dict.fromkeys(own["metric"]))
    if not metrics or (metric and metric not in metrics):
        choices = ", ".join(listed) if listed else "none: no case ran between two hosts or more"
        raise FleetmarkError(f"--isolate {text}: no hosts of {archive.id} measured it together; there is {choices}")
    return Question(workload, case, metric or metrics[0], label)


def labels(archive: Archive, label: str) -> dict[str, str]:
    """Host to the value of one of its labels, for those that have it."""
    hosts = archive.campaign()["hosts"]
    return {str(h["name"]): str(h["labels"][label]) for h in hosts if (h.get("labels") or {}).get(label)}


def _directions(archive: Archive, asked: Question) -> tuple[dict[Pair, list[float]], list[str]]:
    """The rates of each pair, one a direction, and the names of all hosts."""
    measured, names = _figures(archive)
    rows = pairs.rows_of(measured, names)
    own = (rows["workload"] == asked.workload) & (rows["case"] == asked.case) & (rows["metric"] == asked.metric)
    result: dict[Pair, list[float]] = {}
    for a, b, value in rows.loc[own, ["a", "b", "value"]].itertuples(index=False, name=None):
        result.setdefault(frozenset((names[int(a)], names[int(b)])), []).append(float(value))
    return result, names


def noise(archive: Archive, asked: Question) -> float:
    """The deviation of a rate, from how much the two directions of most pairs differ; 0 where none has both."""
    both = [abs(of[0] - of[1]) for of in _directions(archive, asked)[0].values() if len(of) == 2]
    return float(np.median(both)) / _MEDIAN_DIFFERENCE if both else 0.0


def rates(archive: Archive, asked: Question) -> dict[Pair, float]:
    """The slower direction of each pair, an oriented logarithm; FAILED where a direction failed."""
    directions, names = _directions(archive, asked)
    result = {pair: min(of) for pair, of in directions.items()}
    known = set(names)
    for host, subject in _failed(archive, asked):
        other = peer(host, subject, known)
        if other is not None:
            result[frozenset((host, other))] = FAILED
    return result


def alone(archive: Archive, asked: Question) -> dict[str, float]:
    """The rate of each host by itself, an oriented logarithm; FAILED where it failed."""
    table = Table(*_figures(archive))
    about = table.about
    same = (about["workload"] == asked.workload) & (about["case"] == asked.case) & (about["metric"] == asked.metric)
    result = {
        host: float(table.values[row, column])
        for row in np.flatnonzero(same.to_numpy(bool))
        for host, column in table.place.items()
        if not np.isnan(table.values[row, column])
    }
    return result | {host: FAILED for host, subject in _failed(archive, asked) if ">" not in subject}


def _figures(archive: Archive) -> tuple[figures.Figures, list[str]]:
    from fleetmark.record.diagnosis import read

    return read(archive, everything=True)


def _failed(archive: Archive, asked: Question) -> list[tuple[str, str]]:
    """Host and subject of the runs that failed."""
    return [
        (str(e["host"]), str(e["subject"]))
        for e in archive.journal()
        if e["e"] == "outcome"
        and (e["workload"], e["case"]) == (asked.workload, asked.case)
        and e["status"] == Status.FAILED.value
    ]


def suite(
    archive: Archive,
    asked: Question,
    groups: Sequence[tuple[str, ...]],
    case: str = "",
    settings: Mapping[str, Any] | None = None,
    repeats: int = REPEATS,
) -> dict[str, Any]:
    """Return the suite document that runs the case on these hosts: alone, in pairs, or several together.

    ``case`` and ``settings``: the name and settings of the case for this number of hosts.
    """
    entry = entry_of(asked.workload, asked.case)
    if settings is None:
        settings = (archive.campaign().get("settings") or {}).get(entry, {})
    name = case or plain_case(asked.case)
    return {
        "about": f"Who makes {asked.workload} {asked.case} slow in {archive.id}.",
        "repeats": repeats,
        "workloads": {
            entry: {
                "set": dict(settings),
                **container_of(archive, entry),
                "cases": [glob.escape(name)],
                "hosts": {name: [list(group) for group in groups]},
            }
        },
    }


def before(archive: Archive, wanted: Mapping[str, Any], nth: int = -1) -> tuple[Archive, bool] | None:
    """The campaign that an earlier call began for the same runs, the last or the ``nth`` of them, and whether it is
    finished."""
    own = []
    for begun in campaigns_inside(archive, FOLDER):
        read = begun.campaign().get("suite_as_read") or {}
        of = {name: (choice or {}).get("hosts") for name, choice in (read.get("workloads") or {}).items()}
        if of == {name: choice["hosts"] for name, choice in wanted["workloads"].items()}:
            own.append(begun)
    if not own or nth >= len(own):
        return None
    return own[nth], summarise(own[nth]).finished
