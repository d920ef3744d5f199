"""Track each metric of a host over its campaigns, and find lasting changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from fleetmark.base.errors import FleetmarkError, leave_out
from fleetmark.base.facts import Facts
from fleetmark.base.patterns import is_chosen, limited
from fleetmark.planner.diagnosis.cohorts import difference
from fleetmark.planner.diagnosis.history import (
    FLEET,
    LEAST_SERIES,
    Change,
    Lasting,
    Noise,
    Trend,
    lasting,
    usual_noise,
)
from fleetmark.planner.diagnosis.outliers import DISCOVERY
from fleetmark.record import figures
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns
from fleetmark.record.diagnosis.table import Table, title
from fleetmark.record.values.host import numbered

MOST = 2000  # maximum number of campaigns to read
MOST_EXPLAINED = 50  # maximum number of series whose facts are compared before and after
MOST_COMPARED = 20  # maximum number of hosts whose facts are compared for a change that all hosts share
MONTH_DAYS = 30.44


@dataclass(frozen=True, slots=True)
class Series:
    """The history of one benchmark on one host.

    ``moments`` (ISO 8601), ``campaigns`` and ``values`` (base unit) are sorted, oldest first. The ``position`` of each
    of the ``changes``, and the ends of the ``trends``, are indices into these lists. ``host`` is empty for the changes
    that all hosts share; the values are then those of the median host. ``causes``: for each change and trend, the facts
    that changed at the same time, as (name, before, after).
    """

    host: str
    benchmark: dict[str, str]
    moments: tuple[str, ...]
    campaigns: tuple[str, ...]
    values: tuple[float, ...]
    _: KW_ONLY
    changes: tuple[Change, ...] = ()
    trends: tuple[Trend, ...] = ()
    causes: tuple[tuple[tuple[str, str, str], ...], ...] = ()

    @property
    def moved(self) -> bool:
        """Return whether there is a lasting change."""
        return bool(self.changes or self.trends)

    @property
    def slower(self) -> bool:
        """Return whether the last step or a slope is a deterioration."""
        return bool(self.changes and self.changes[-1].change < 0) or any(t.change < 0 for t in self.trends)

    @property
    def worst(self) -> float:
        """Return the lowest of the last step and the slopes, in logarithms."""
        return min([c.change for c in self.changes[-1:]] + [t.change for t in self.trends], default=0.0)

    def monthly(self, trend: Trend) -> float | None:
        """Return the change of a slope per month as a share; None if all campaigns have the same date."""
        days = (_moment(self.moments[trend.end]) - _moment(self.moments[trend.start])) / 86400
        return float(np.expm1(trend.change * MONTH_DAYS / days)) if days > 0 else None


def _moment(text: str) -> float:
    """Return a date in seconds since 1970, or 0 if the text is not a date."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


@dataclass(frozen=True, slots=True)
class History:
    """The requested series, benchmark by benchmark.

    ``campaigns``: the number of campaigns read; ``short``: the number of series with too few campaigns to evaluate.
    """

    campaigns: int
    series: tuple[Series, ...]
    short: int

    def changed(self) -> list[Series]:
        """Return the series with a change, worst first."""
        return sorted((s for s in self.series if s.moved), key=lambda s: (s.worst, s.host))


def history(
    root: Path, metrics: Sequence[str], limit: str | None = None, *, name: str | None = None, everything: bool = False
) -> History:
    """Return the history of benchmarks over all campaigns under ``root``.

    ``metrics``: patterns for the title (workload/case/metric); an empty list selects all. ``limit``: a pattern for host
    names; ``name``: the name of the only host to read. Raise FleetmarkError if nothing matches.
    """
    archives = _readable(root)
    nothing = FleetmarkError(f"{root}: no campaign has measurements; run one first: fleetmark run")
    scope = figures.EVERYTHING if everything else figures.HEADLINES
    files = {a.id: a.inside("measurements.parquet") for a in archives}
    names_of = {a.id: a.host_names() for a in archives}
    every = [host for a in archives for host in names_of[a.id]]
    if not every:
        raise nothing
    chosen = {name} if name else set(limited(every, limit) if limit else every)
    machines = [(a.id, host) for a in archives for host in names_of[a.id] if host in chosen]
    places = [f"{campaign}/{host}" for campaign, host in machines]
    table = Table(figures.read(files, numbered(machines), condition=scope, spread=True), places)
    moment = {a.id: str(a.campaign().get("created", "")) for a in archives}
    order = sorted(range(len(machines)), key=lambda i: (machines[i][1], moment[machines[i][0]], machines[i][0]))
    errors = table.errors(np.arange(len(machines)))
    drafts: list[tuple[Series, _Judged]] = []
    for row in range(len(table.keys)):
        benchmark = table.benchmark(row)
        if not _fits(benchmark, metrics):
            continue
        columns: dict[str, list[int]] = {}
        for i in order:
            if not np.isnan(table.values[row, i]):
                columns.setdefault(machines[i][1], []).append(i)
        campaigns_by_host = {host: [machines[i][0] for i in positions] for host, positions in columns.items()}
        values = {host: table.values[row, positions] for host, positions in columns.items()}
        common = _common(values, campaigns_by_host)
        relative_values = {
            host: series - np.array([common.get(c, 0.0) for c in campaigns_by_host[host]])
            for host, series in values.items()
        }
        noise = usual_noise(list(relative_values.values()))
        for host, positions in columns.items():
            dates = campaigns_by_host[host]
            shown = tuple(table.value(row, float(v)) for v in values[host])
            series = Series(host, benchmark, tuple(moment[c] for c in dates), tuple(dates), shown)
            judged = _Judged(relative_values[host], errors[row, positions], float(table.deficit[row]), noise)
            drafts.append((series, judged))
        if common:
            dates = sorted(common, key=lambda c: (moment[c], c))
            level = float(np.median([np.median(v) for v in values.values()]))
            together = np.array([common[c] for c in dates])
            shown = tuple(table.value(row, level + float(v)) for v in together)
            series = Series("", benchmark, tuple(moment[c] for c in dates), tuple(dates), shown)
            unknown = np.full(len(together), np.nan)
            drafts.append((series, _Judged(together, unknown, float(table.deficit[row]), Noise())))
    short = sum(len(series.values) < LEAST_SERIES for series, _ in drafts if series.host)
    bound = DISCOVERY / max(1, len(drafts) - short)  # Bonferroni: one false alarm in 100 calls
    result = [_with(series, judged.result(bound)) for series, judged in drafts]
    result = _explained(result, {a.id: a for a in archives}, names_by_campaign=names_of)
    if not result and not metrics:
        raise nothing
    if not result:
        raise FleetmarkError(f"{root}: no benchmark matches {', '.join(metrics)}; a pattern is workload/case/metric")
    return History(len(archives), tuple(result), short)


@dataclass(frozen=True, slots=True)
class _Judged:
    """The input for evaluating a series: oriented logarithms, their errors, the smallest relevant change, and the
    usual noise.
    """

    values: np.ndarray
    errors: np.ndarray
    deficit: float
    noise: Noise

    def result(self, limit: float) -> Lasting:
        if len(self.values) < LEAST_SERIES:
            return Lasting((), ())
        return lasting(self.values, self.errors, self.deficit, limit, self.noise)


def _with(series: Series, result: Lasting) -> Series:
    """Return the series with its steps and slopes. The level of a step is the median of its measured values."""
    return replace(series, changes=result.steps, trends=result.trends)


def _common(values: Mapping[str, np.ndarray], campaigns_by_host: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the common change of all hosts in each campaign: the median over hosts of logarithm minus host median.

    Return nothing for fewer than FLEET hosts. A campaign of fewer hosts counts as unchanged for its hosts.
    """
    if len(values) < FLEET:
        return {}
    relative: dict[str, list[float]] = {}
    for host, series in values.items():
        centre = float(np.median(series))
        for campaign, value in zip(campaigns_by_host[host], series, strict=True):
            relative.setdefault(campaign, []).append(float(value) - centre)
    return {campaign: float(np.median(each)) for campaign, each in relative.items() if len(each) >= FLEET}


def _explained(
    result: Sequence[Series], archives: Mapping[str, Archive], names_by_campaign: Mapping[str, Sequence[str]]
) -> list[Series]:
    """Return all series. The worst ones include the facts that changed together with each step and slope."""
    worst = sorted((n for n, s in enumerate(result) if s.moved), key=lambda n: result[n].worst)[:MOST_EXPLAINED]
    facts: dict[tuple[str, str], Facts | None] = {}

    def read(campaign: str, host: str) -> Facts | None:
        if (campaign, host) not in facts:
            try:
                facts[campaign, host] = archives[campaign].facts_of(host)
            except FleetmarkError as error:
                leave_out(f"the identity of {host} in {campaign}", error)
                facts[campaign, host] = None
        return facts[campaign, host]

    def cause(series: Series, before: int, after: int) -> tuple[tuple[str, str, str], ...]:
        first, then = series.campaigns[before], series.campaigns[after]
        both = [h for h in names_by_campaign[first] if h in names_by_campaign[then]][:MOST_COMPARED]
        pairs = [(read(first, h), read(then, h)) for h in ([series.host] if series.host else both)]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        changed = [set(difference([b], [a])) for a, b in known]
        shared = list(dict.fromkeys(c for each in changed for c in sorted(each)))
        return tuple(
            (name, old, new)
            for name, new, old in shared
            if 2 * sum((name, new, old) in c for c in changed) > len(known)
        )

    listed = list(result)
    for number in worst:
        series = listed[number]
        ends = [(c.position - 1, c.position) for c in series.changes] + [(t.start, t.end) for t in series.trends]
        listed[number] = replace(series, causes=tuple(cause(series, *each) for each in ends))
    return listed


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
        raise FleetmarkError(
            f"{root}: no campaign has measurements; name another folder with --results or FLEETMARK_RESULTS"
        )
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
                asdict(c)
                | {"campaign": s.campaigns[c.position], "share": float(np.expm1(c.change))}
                | {"facts": _facts_as_json(s, n)}
                for n, c in enumerate(s.changes)
            ],
            "trends": [
                {
                    "from": s.campaigns[t.start],
                    "to": s.campaigns[t.end],
                    "share": float(np.expm1(t.change)),
                    "share_per_month": s.monthly(t),
                    "p": t.p,
                    "facts": _facts_as_json(s, len(s.changes) + n),
                }
                for n, t in enumerate(s.trends)
            ],
        }
        for s in result.series
    ]


def _facts_as_json(series: Series, number: int) -> list[dict[str, str]]:
    causes = series.causes[number] if series.causes else ()
    return [{"fact": name, "before": before, "after": after} for name, before, after in causes]
