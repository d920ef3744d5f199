"""The ratios of a campaign's figures to a pinned reference; loads what compares only if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetmark.planner.comparison import Comparison
    from fleetmark.reports.comparison.model import RatioRow

RatioOf = Callable[[Mapping[Any, Any]], "RatioRow | None"]


def ratio_of(comparison: Comparison | None) -> RatioOf:
    """What gives a figure's ratio in ``comparison``, None if it has none. A figure is a row with the columns of a
    measurement's identity.
    """
    if comparison is None:
        return lambda _: None
    # Here, since comparisons take 0.1 s to load, and most campaigns have no reference.
    from fleetmark.record.sides.titles import title_of
    from fleetmark.reports.comparison.model import rows

    of_title = {r.benchmark: r for r in rows(comparison) if r.benchmark}
    return lambda row: of_title.get(title_of(row)) or of_title.get(title_of(row, sized=False))
