"""A chart whose specification is made only when it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fleetmark.record.figures.metric import Metric
from reports.campaign.view import point
from reports.kit import format as fmt
from reports.kit.charts import Chart, Spec


def chart(title: str, note: str, spec: Callable[[], Spec]) -> Chart:
    """Return a chart that a page shows folded. ``spec``: makes its specification."""
    return Chart(title, note, spec=spec, is_folded=True)


def title_of(metric: Metric) -> str:
    """Return the heading of a metric's chart, such as ``stream 64t: triad``."""
    return f"{fmt.clean(metric.workload)} {fmt.clean(metric.case)}: {point(metric)}"


def lazily(make: Callable[..., Spec], *arguments: Any) -> Callable[[], Spec]:
    """Return a function that makes the specification when the chart is drawn."""
    return lambda: make(*arguments)
