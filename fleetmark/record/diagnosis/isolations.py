"""Find the hosts that slow down multi-host cases: read recorded rates, failures and labels, and plan further runs."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.planner.diagnosis import places
from fleetmark.planner.diagnosis.isolation.panel import PAIR
from fleetmark.planner.diagnosis.isolation.partners import Fault, Pair, Suspicion
from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns_inside, container_of, repeated, summarise
from fleetmark.record.diagnosis import gangs, pairs
from fleetmark.record.diagnosis.table import Table
from fleetmark.record.figures.pairs import peer
from fleetmark.workloads import entry_of, plain_case

FOLDER = "isolations"  # subfolder for further campaigns that explain a campaign's slow pairs
REPEATS = 2
FAILED = float("-inf")
_MEDIAN_DIFFERENCE = 0.954  # median absolute difference of two normal values, in standard deviations


@dataclass(frozen=True, slots=True)
class Question:
    """The ``metric`` of a multi-host ``case`` to explain. ``labels``: those that name the places of hosts."""

    workload: str
    case: str
    metric: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Isolated:
    """The answer to a question about a campaign.

    ``suspicion``: the suspected hosts; ``campaigns``: the further campaigns that were run, as paths relative to
    ``campaign``; ``ran``: the groups of hosts in each of them.
    """

    campaign: str
    question: Question
    suspicion: Suspicion
    campaigns: tuple[str, ...]
    ran: tuple[tuple[frozenset[str], ...], ...] = ()

    def evidence(self, fault: Fault) -> list[str]:
        """Return the raw files that show a fault.

        The files come from runs of the fault's hosts alone or in pairs, or else from all further runs. Without further
        runs, they are the campaign's own files.
        """
        members = set(fault.members)
        few = [
            name
            for name, groups in zip(self.campaigns, self.ran, strict=False)
            if any(len(group) <= PAIR and members <= group for group in groups)
        ]
        return [f"{name}/raw" for name in few or self.campaigns] or ["raw"]


def question(archive: Archive, text: str, label: str | None = None) -> Question:
    """Parse ``iperf3/tcp-1``, optionally followed by a metric. ``label``: the only label of places (default: all in
    ``places.NAMES``).

    Raise FleetmarkError, with the valid choices, if no hosts ran the case together or no host has the label.
    """
    if label is not None and not labels(archive, [label]):
        known = sorted({str(name) for host in archive.campaign()["hosts"] for name in host.get("labels") or {}})
        raise FleetmarkError(
            f"--border {label}: no host of {archive.id} has this label; they have {', '.join(known) or 'none'}"
        )
    names = places.NAMES if label is None else (label,)
    workload, _, rest = text.partition("/")
    case, _, metric = rest.partition("/")
    together = gangs.groups(archive)
    if (workload, case) in together:
        return Question(workload, case, gangs.metric_of(archive, workload, case, metric), names)
    rows = pairs.rows_of(*_figures(archive))
    rows = rows[rows["better"] != Better.NONE.value]
    listed = sorted(f"{w}/{c}" for w, c in {*zip(rows["workload"], rows["case"], strict=True), *together})
    rows_of_case = rows[(rows["workload"] == workload) & (rows["case"] == case)]
    metrics = list(dict.fromkeys(rows_of_case["metric"]))
    if not metrics or (metric and metric not in metrics):
        choices = ", ".join(listed) if listed else "none: no case ran between two hosts or more"
        raise FleetmarkError(f"--isolate {text}: no hosts of {archive.id} ran this case together; there is {choices}")
    return Question(workload, case, metric or metrics[0], names)


def labels(archive: Archive, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the values of labels by host, for the labels that any host has."""
    hosts = archive.campaign()["hosts"]
    values = {
        name: {str(h["name"]): str(h["labels"][name]) for h in hosts if (h.get("labels") or {}).get(name)}
        for name in names
    }
    return {name: by_host for name, by_host in values.items() if by_host}


def _directions(archive: Archive, question: Question) -> tuple[dict[Pair, list[float]], list[str]]:
    """Return the rates of each pair, one per direction, and the names of all hosts."""
    measured, names = _figures(archive)
    rows = pairs.rows_of(measured, names)
    is_chosen = (
        (rows["workload"] == question.workload) & (rows["case"] == question.case) & (rows["metric"] == question.metric)
    )
    result: dict[Pair, list[float]] = {}
    for a, b, value in rows.loc[is_chosen, ["a", "b", "value"]].itertuples(index=False, name=None):
        result.setdefault(frozenset((names[int(a)], names[int(b)])), []).append(float(value))
    return result, names


def noise(archive: Archive, question: Question) -> float:
    """Estimate the standard deviation of a rate from the median difference between the directions of a pair.

    Return 0 if no pair has both directions.
    """
    both = [abs(rates[0] - rates[1]) for rates in _directions(archive, question)[0].values() if len(rates) == 2]
    return float(np.median(both)) / _MEDIAN_DIFFERENCE if both else 0.0


def rates(archive: Archive, question: Question) -> dict[Pair, float]:
    """Return the slower direction of each pair as an oriented logarithm, or FAILED if a direction failed."""
    directions, names = _directions(archive, question)
    result = {pair: min(rates) for pair, rates in directions.items()}
    known = set(names)
    for host, subject in _failed(archive, question):
        other = peer(host, subject, known)
        if other is not None:
            result[frozenset((host, other))] = FAILED
    return result


def alone(archive: Archive, question: Question) -> dict[str, float]:
    """Return the rate of each host alone as an oriented logarithm, or FAILED if the run failed."""
    table = Table(*_figures(archive))
    metrics = table.metrics
    is_chosen = (
        (metrics["workload"] == question.workload)
        & (metrics["case"] == question.case)
        & (metrics["metric"] == question.metric)
    )
    result = {
        host: float(table.values[row, column])
        for row in np.flatnonzero(is_chosen.to_numpy(bool))
        for host, column in table.place.items()
        if not np.isnan(table.values[row, column])
    }
    return result | {host: FAILED for host, subject in _failed(archive, question) if ">" not in subject}


def _figures(archive: Archive) -> tuple[figures.Figures, list[str]]:
    from fleetmark.record.diagnosis import read

    return read(archive, everything=True)


def _failed(archive: Archive, question: Question) -> list[tuple[str, str]]:
    """Return the host and the subject of each failed run."""
    return [
        (str(e["host"]), str(e["subject"]))
        for e in archive.journal()
        if e["e"] == "outcome"
        and (e["workload"], e["case"]) == (question.workload, question.case)
        and e["status"] == Status.FAILED.value
    ]


def suite(
    archive: Archive,
    question: Question,
    groups: Sequence[tuple[str, ...]],
    case: str = "",
    settings: Mapping[str, Any] | None = None,
    repeats: int = REPEATS,
) -> dict[str, Any]:
    """Return the suite document that runs the case on these hosts: alone, in pairs, or several together.

    ``case`` and ``settings``: the name and settings of the case for this number of hosts.
    """
    entry = entry_of(question.workload, question.case)
    if settings is None:
        settings = (archive.campaign().get("settings") or {}).get(entry, {})
    name = case or plain_case(question.case)
    return {
        "description": f"Find the cause of slow {question.workload} {question.case} in {archive.id}.",
        "repeats": repeats,
        **repeated(archive),
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
    """Return the campaign that an earlier call started for the same runs, and whether it is finished.

    If there are several, return the last or the ``nth`` one.
    """
    campaigns_begun = []
    for begun in campaigns_inside(archive, FOLDER):
        read = begun.campaign().get("suite_as_read") or {}
        hosts_by_entry = {name: (choice or {}).get("hosts") for name, choice in (read.get("workloads") or {}).items()}
        if hosts_by_entry == {name: choice["hosts"] for name, choice in wanted["workloads"].items()}:
            campaigns_begun.append(begun)
    if not campaigns_begun or nth >= len(campaigns_begun):
        return None
    return campaigns_begun[nth], summarise(campaigns_begun[nth]).finished
