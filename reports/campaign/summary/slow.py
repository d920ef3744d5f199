"""Find the slow hosts of a campaign, each with its likely cause and the command that repeats its benchmarks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from fleetmark.planner.diagnosis.likely import likely_causes
from fleetmark.record.commands import command_for
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.reports.campaign.deviation import Deviations, Unlike, sentence, title
from fleetmark.reports.campaign.view import View
from fleetmark.reports.hosts.likely import MOST_MEASURED, Shortfall, SlowHost
from fleetmark.reports.kit import format as fmt

MOST_SLOW = 3
_LEAST_LOSS = 0.05  # relative to the peers' median
_FIGURES = ("host", "class", "value", "middle", "deviation")


def slow_hosts(view: View, deviations: Deviations) -> list[SlowHost]:
    """Return at most MOST_SLOW of the slowest hosts, the slowest first."""
    slow = [host for host in deviations.unlike if host.deviation < 0][:MOST_SLOW]
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
    slow = [
        frame.loc[frame["host"].isin(hosts) & (frame["deviation"] <= -_LEAST_LOSS), [*METRIC, *_FIGURES]]
        for frame in deviations
    ]
    ordered = pd.concat(slow).sort_values("deviation", kind="stable")
    return {
        str(host): [_shortfall(view, row) for row in rows.head(MOST_MEASURED).to_dict("records")]
        for host, rows in ordered.groupby("host", observed=True)
    }


def _shortfall(view: View, row: Mapping[Hashable, Any]) -> Shortfall:
    metric = Metric(*(str(row[name]) for name in METRIC))
    value, usual = float(row["value"]), float(row["middle"])
    scale = view.scales.get(metric) or fmt.fit([(value, value, value)], metric.unit)
    return Shortfall(
        title(metric), str(row["class"]), -float(row["deviation"]), scale.quantity(value), scale.quantity(usual)
    )
