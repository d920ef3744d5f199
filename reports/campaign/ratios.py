"""Compute the ratios of a campaign's figures to a pinned reference, and load the comparison code only if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetmark.planner.comparison import Comparison
    from fleetmark.reports.comparison.model import RatioRow

RatioOf = Callable[[Mapping[Any, Any]], "RatioRow | None"]


def ratio_of(comparison: Comparison | None) -> RatioOf:
    """Return a function that gives a figure's ratio in ``comparison``, or None if the figure has none.

    A figure is a row with the columns that identify a measurement.
    """
    if comparison is None:
        return lambda _: None
    # Imported here because comparisons take 0.1 s to load and most campaigns have no reference.
    from fleetmark.record.sides.titles import title_of
    from fleetmark.reports.comparison.model import rows

    of_title = {r.benchmark: r for r in rows(comparison) if r.benchmark}
    return lambda row: of_title.get(title_of(row)) or of_title.get(title_of(row, sized=False))
