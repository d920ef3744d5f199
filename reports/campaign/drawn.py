"""A chart to be drawn: its heading, its note, and how its specification is made."""

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
    """A chart to be: its heading, what a reader must know, how its specification is made, and whether a headline stands
    on it."""

    title: str
    note: str
    spec: Callable[[], Spec]
    headline: bool = True


def title_of(metric: Metric) -> str:
    """``stream 64t: triad``."""
    return f"{fmt.clean(metric.workload)} {fmt.clean(metric.case)}: {point(metric)}"


def lazily(make: Callable[..., Spec], *of: Any) -> Callable[[], Spec]:
    """A specification that is made when it is drawn."""
    return lambda: make(*of)
