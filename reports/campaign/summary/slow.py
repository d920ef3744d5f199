"""Find the slow hosts of a campaign, each with its likely cause and the command that repeats its benchmarks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fleetmark.planner.diagnosis.likely import likely_causes
from fleetmark.record.commands import command_for
from fleetmark.record.figures.metric import Metric
from fleetmark.reports.campaign.deviation import Deviations, Unlike, sentence, title, unlike
from fleetmark.reports.campaign.view import View, by_metric
from fleetmark.reports.hosts.likely import MOST_MEASURED, Shortfall, SlowHost
from fleetmark.reports.kit import format as fmt

MOST_SLOW = 3
_LEAST_LOSS = 0.05  # characters of a benchmark's name in a ticket


def slow_hosts(view: View, deviations: Deviations) -> list[SlowHost]:
    """Return at most MOST_SLOW of the slowest hosts, the slowest first."""
    slow = [host for host in unlike(deviations) if host.deviation < 0][:MOST_SLOW]
    if not slow:
        return []
    measured = _shortfalls(view, deviations, {host.host for host in slow})
    return [_slow(view, host, measured.get(host.host, [])) for host in slow]


def _slow(view: View, unlike_host: Unlike, shortfalls: Sequence[Shortfall]) -> SlowHost:
    known = {h.name: h.facts for h in view.hosts if (h.generation or "") == unlike_host.generation}
    facts = known.pop(unlike_host.host, None)
    peers = [other for other in known.values() if other is not None]
    classes = {s.class_ for s in shortfalls}
    root, campaign = view.results.campaign.root, view.results.campaign.id
    return SlowHost(
        host=unlike_host.host,
        sentence=sentence(unlike_host, view.title_of(unlike_host.generation)),
        facts=facts,
        causes=likely_causes(facts, peers, classes) if facts else (),
        shortfalls=shortfalls,
        command=fmt.typed(command_for(root, "diagnose", campaign, "--confirm")),
    )


def _shortfalls(view: View, deviations: Deviations, hosts: set[str]) -> dict[str, list[Shortfall]]:
    """Return the benchmarks in which each host is slowest, the worst first."""
    by_host: dict[str, list[Shortfall]] = {host: [] for host in hosts}
    for frame in deviations:
        mine = frame[frame["host"].isin(hosts) & (frame["deviation"] <= -_LEAST_LOSS)]
        for metric, rows in by_metric(mine) if len(mine) else ():
            for host, shortfall in _of_metric(view, metric, rows.to_dict("records")):
                by_host[host].append(shortfall)
    return {host: sorted(listed, key=lambda s: -s.loss)[:MOST_MEASURED] for host, listed in by_host.items()}


def _of_metric(view: View, metric: Metric, rows: Iterable[Mapping[Hashable, Any]]) -> Iterator[tuple[str, Shortfall]]:
    for row in rows:
        value, usual = float(row["value"]), float(row["middle"])
        scale = view.scales.get(metric) or fmt.fit([(value, value, value)], metric.unit)
        shortfall = Shortfall(
            title(metric), str(row["class"]), -float(row["deviation"]), scale.quantity(value), scale.quantity(usual)
        )
        yield str(row["host"]), shortfall
