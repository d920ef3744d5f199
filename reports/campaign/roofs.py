"""Compare the best measured rate of each part of a campaign's hosts with the theoretical peak. Functions are pure."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fleetmark.planner.diagnosis.cohorts import kind_of
from fleetmark.record.figures.pairs import peer
from fleetmark.record.roofs import Rate, best_of, part_of, roofs
from fleetmark.reports.campaign.view import View
from fleetmark.reports.hosts.roofs import Line
from fleetmark.reports.hosts.roofs import lines as of_kinds
from fleetmark.reports.kit import format as fmt

_METRIC = ["workload", "case", "metric", "unit"]
_COLUMNS = ["host", *_METRIC, "class", "subject", "labels", "standing", "value"]


def lines(view: View) -> list[Line]:
    """Return every measured part by kind of host; empty if no part has a peak or another part to compare with."""
    facts = {host.name: host.facts for host in view.hosts if host.facts is not None}
    kinds = {host.name: kind_of(host.facts, host.generation or "")[0] for host in view.hosts}
    listed = of_kinds(list(roofs(facts, list(kinds), best_of(_rates(view), facts))), kinds)
    return listed if any(line.share is not None or line.balance is not None for line in listed) else []


def _rates(view: View) -> Iterator[Rate]:
    """Return the rates of single hosts; a pair's rate counts for both of its hosts."""
    chosen = _metrics_of_parts(view)
    if not chosen:
        return
    hosts = {host.name for host in view.hosts}
    for figures in view.of_hosts:
        rows = figures[pd.MultiIndex.from_frame(figures[_METRIC]).isin(chosen)][_COLUMNS]
        for host, workload, case, metric, unit, class_, subject, labels, standing, value in rows.itertuples(
            index=False
        ):
            part, pair = chosen[workload, case, metric, unit], ">" in subject
            other = peer(host, subject, hosts) if pair else None
            if (pair and other is None) or (part == "link" and not pair):  # a host's own loopback is not a link
                continue
            title = f"{workload} {case} {fmt.point(metric, 'pairs' if pair else subject, labels, standing)}"
            for end in filter(None, (host, other)):
                yield Rate(
                    host=end,
                    workload=workload,
                    case=case,
                    metric=metric,
                    class_=class_,
                    unit=unit,
                    value=value,
                    title=title,
                )


def _metrics_of_parts(view: View) -> dict[tuple[str, ...], str]:
    """Return the metrics that are a rate of one host's part, and the part.

    Metrics of several hosts together are omitted.
    """
    joint = set(
        view.results.values.distinct("workload", "case", condition="members <> ''").itertuples(index=False, name=None)
    )
    parts = {key: part_of(*key) for key in view.of_hosts.distinct(*_METRIC) if key[:2] not in joint}
    return {key: held.part for key, held in parts.items() if held is not None}
