"""Rebuild all rows of a campaign from its steps, add the power of multi-host steps, and mark rows that are excluded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Measurement, Status
from fleetmark.campaign import energy
from fleetmark.campaign.outcome import Outcome, judge, row, workers
from fleetmark.record.archive import Archive
from fleetmark.workloads import load

_CLOCKS_S = 2.0  # clocks that differ by less count as equal, because facts are not more precise
_OF_ROW = ("campaign", "host", "workload", "repeat", "time", "tool_version", "raw", "standing", "members")


def rebuild(
    archive: Archive, outcome_of: Callable[[Path, Mapping[str, Any]], Outcome] | None = None
) -> Iterator[Mapping[str, Any]]:
    """Yield every row of the campaign, step by step, parsed again from the raw files.

    ``outcome_of`` maps a step's folder and description to its outcome (default: ``judge``).
    """
    uncounted = _uncounted(archive)
    clocks = _Clocks(archive)
    for folder, step in archive.steps():
        if not step["serves"]:
            outcome = outcome_of(folder, step) if outcome_of else judge(archive, folder)
            yield from counted([*outcome.rows, *_together(archive, folder, step, outcome, clocks)], step, uncounted)


def _together(
    archive: Archive, folder: Path, step: Mapping[str, Any], outcome: Outcome, clocks: _Clocks
) -> Iterator[dict[str, Any]]:
    """Yield the power and energy of a multi-host step, summed over its hosts if all of them have telemetry."""
    hosts = workers(step) if outcome.rows else ()
    seen = [_watched(archive, folder, step, host, outcome, clocks) for host in hosts]
    watched = [w for w in seen if w is not None]
    if not watched or len(watched) < len(hosts):
        return
    manifest = load(str(step["workload"]))
    of_step = {**{name: outcome.rows[0][name] for name in _OF_ROW}, "status": outcome.status.value}
    for m in energy.drawn(watched):
        yield row(m, {**of_step, "case": step["case"]}, step, manifest)
    for measured_row in outcome.rows:
        identity = {name: measured_row[name] for name in ("case", "subject", "status")}
        for m in energy.of_work(watched, [_rate(measured_row)], manifest):
            yield {**row(m, {**of_step, **identity}, step, manifest), **identity}


def _rate(row: Mapping[str, Any]) -> Measurement:
    """Convert a row back to a measurement."""
    labels, better = json.loads(row["labels"]), Better(row["better"])
    return Measurement(
        row["workload"],
        row["case"],
        row["metric"],
        row["value"],
        row["unit"],
        better=better,
        subject=row["subject"],
        labels=labels,
    )


def _watched(
    archive: Archive, folder: Path, step: Mapping[str, Any], host: str, outcome: Outcome, clocks: _Clocks
) -> energy.Watched | None:
    """Return the telemetry of ``host`` during the step, or None if there is none."""
    is_local = host == step["host"]
    subject = f"{step['subject']} of {step['host']}" if step["members"] else step["subject"]
    theirs = folder if is_local else archive.raw_dir(host, {**step, "subject": subject, "serves": True})
    try:
        telemetry = archive.telemetry(theirs)
    except FleetmarkError:
        return None
    shift = 0.0 if is_local else clocks.between(str(step["host"]), host)
    window = outcome.window and (outcome.window[0] + shift, outcome.window[1] + shift)
    return energy.Watched(telemetry, window) if telemetry else None


class _Clocks:
    """Compute the differences between the clocks of hosts from their facts."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._skews: dict[str, float] = {}

    def between(self, host: str, other: str) -> float:
        """Return the seconds by which the clock of ``other`` is ahead, or 0 if facts cannot resolve a difference."""
        shift = self._skew(other) - self._skew(host)
        return shift if abs(shift) > _CLOCKS_S else 0.0

    def _skew(self, host: str) -> float:
        if host not in self._skews:
            try:
                facts = self._archive.facts_of(host)
            except FleetmarkError:
                facts = None
            self._skews[host] = (facts and facts.skew) or 0.0
        return self._skews[host]


def counted(
    rows: Sequence[Mapping[str, Any]], step: Mapping[str, Any], uncounted: Mapping[tuple[Any, ...], str]
) -> list[Mapping[str, Any]]:
    """Return the rows of ``step``.

    Rows that passed but are excluded have the reason as their status.
    """
    block = (step["host"], step["workload"], step["subject"], step["repeat"])
    word = uncounted.get(block) or uncounted.get((*block, step["case"]))
    return [{**row, "status": word} if word and row["status"] == Status.PASSED else row for row in rows]


def _uncounted(archive: Archive) -> dict[tuple[Any, ...], str]:
    """Return why repeats are excluded: disturbances (by host, workload, subject, repeat), or a case's warm-up."""
    uncounted: dict[tuple[Any, ...], str] = {}
    for e in archive.journal():
        if e["e"] == "rejected":
            uncounted[e["host"], e["workload"], e["subject"], e["repeat"]] = "disturbed"
        elif e["e"] in ("enough", "unstable"):
            for repeat in e["warm_up"]:
                uncounted[e["host"], e["workload"], e["subject"], repeat, e["case"]] = "warm-up"
    return uncounted
