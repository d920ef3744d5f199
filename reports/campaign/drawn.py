"""A chart whose specification is made only when it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fleetmark.record.figures.metric import Metric
from reports.campaign.view import point
from reports.kit import format as fmt
from reports.kit.charts import Spec


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart that is not drawn yet: its heading, a note for readers, and a function that makes its specification.

    ``headline``: whether the chart shows a headline metric.
    """

    title: str
    note: str
    spec: Callable[[], Spec]
    headline: bool = True


def title_of(metric: Metric) -> str:
    """Return the heading of a metric's chart, such as ``stream 64t: triad``."""
    return f"{fmt.clean(metric.workload)} {fmt.clean(metric.case)}: {point(metric)}"


def lazily(make: Callable[..., Spec], *of: Any) -> Callable[[], Spec]:
    """Return a function that makes the specification when the chart is drawn."""
    return lambda: make(*of)
