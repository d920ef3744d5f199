"""Track each metric of a host over its campaigns, and find lasting changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fleetmark.base.errors import FleetmarkError, leave_out
from fleetmark.base.patterns import is_chosen
from fleetmark.planner.diagnosis.history import LEAST_SERIES, Change, changes
from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns
from fleetmark.record.diagnosis.table import Table, title
from fleetmark.record.values.host import numbered

MOST = 2000  # maximum number of campaigns to read


@dataclass(frozen=True, slots=True)
class Series:
    """Store the history of one benchmark on one host.

    ``moments`` (ISO 8601), ``campaigns`` and ``values`` (base unit) are sorted, oldest first. The ``position`` of each
    of the ``changes`` is an index into these lists.
    """

    host: str
    benchmark: dict[str, str]
    moments: tuple[str, ...]
    campaigns: tuple[str, ...]
    values: tuple[float, ...]
    changes: tuple[Change, ...]

    @property
    def slower(self) -> bool:
        """Return whether the last change was for the worse."""
        return bool(self.changes) and self.changes[-1].change < 0


@dataclass(frozen=True, slots=True)
class History:
    """Store the requested series, benchmark by benchmark.

    ``campaigns``: the number of campaigns read; ``short``: the number of series with too few campaigns to judge.
    """

    campaigns: int
    series: tuple[Series, ...]
    short: int

    def changed(self) -> list[Series]:
        """Return the series with a change, worst first."""
        return sorted((s for s in self.series if s.changes), key=lambda s: s.changes[-1].change)


def history(root: Path, metrics: Sequence[str], hosts: Sequence[str], *, everything: bool = False) -> History:
    """Return the history of benchmarks over all campaigns under ``root``.

    ``metrics``: patterns for the title (workload/case/metric); ``hosts``: host names. An empty list selects all. Raise
    FleetmarkError if nothing matches.
    """
    archives = _readable(root)
    which = figures.EVERYTHING if everything else figures.HEADLINES
    files = {a.id: a.inside("measurements.parquet") for a in archives}
    names = {a.id: a.host_names() for a in archives}
    machines = [(a.id, host) for a in archives for host in names[a.id] if not hosts or host in hosts]
    if not machines:
        raise FleetmarkError(f"{root}: no campaign there has {', '.join(hosts) or 'measured anything'}")
    places = [f"{campaign}/{host}" for campaign, host in machines]
    table = Table(figures.read(files, numbered(machines), condition=which, spread=True), places)
    moment = {a.id: str(a.campaign().get("created", "")) for a in archives}
    order = sorted(range(len(machines)), key=lambda i: (machines[i][1], moment[machines[i][0]], machines[i][0]))
    result, short = [], 0
    errors = table.errors(np.arange(len(machines)))
    for row in range(len(table.keys)):
        benchmark = table.benchmark(row)
        if not _fits(benchmark, metrics):
            continue
        columns: dict[str, list[int]] = {}
        for i in order:
            if not np.isnan(table.values[row, i]):
                columns.setdefault(machines[i][1], []).append(i)
        for host, positions in columns.items():
            short += len(positions) < LEAST_SERIES
            series = table.values[row, positions]
            result.append(
                Series(
                    host,
                    benchmark,
                    tuple(moment[machines[i][0]] for i in positions),
                    tuple(machines[i][0] for i in positions),
                    tuple(table.value(row, float(v)) for v in series),
                    tuple(changes(series, errors[row, positions], float(table.deficit[row]))),
                )
            )
    if not result:
        raise FleetmarkError(f"{root}: no benchmark fits {', '.join(metrics)}; a pattern is workload/case/metric")
    return History(len(archives), tuple(result), short)


def _fits(benchmark: Mapping[str, str], patterns: Sequence[str]) -> bool:
    return is_chosen("/".join(benchmark[k] for k in ("workload", "case", "metric")), patterns)


def _readable(root: Path) -> list[Archive]:
    """Return the campaigns that have measurements. Skip damaged ones with a warning."""
    result = []
    for archive in campaigns(root)[-MOST:]:
        try:
            archive.campaign()
            if archive.inside("measurements.parquet").exists():
                result.append(archive)
        except FleetmarkError as error:
            leave_out(archive.id, error)
    if not result:
        raise FleetmarkError(f"{root}: no campaign there measured anything; FLEETMARK_RESULTS or --results says where")
    return result


def as_json(result: History) -> list[dict[str, Any]]:
    """Return the series as data for JSON output."""
    return [
        {
            "host": s.host,
            "benchmark": s.benchmark,
            "title": title(s.benchmark),
            "points": [
                {"created": m, "campaign": c, "value": v}
                for m, c, v in zip(s.moments, s.campaigns, s.values, strict=True)
            ],
            "changes": [
                asdict(c) | {"campaign": s.campaigns[c.position], "share": float(np.expm1(c.change))} for c in s.changes
            ],
        }
        for s in result.series
    ]
