"""Present a comparison from one baseline: its rows, its first screen, and the plots that its exhibits share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.planner.comparison import Comparison
from fleetmark.planner.estimate import Estimate
from fleetmark.reports.comparison import forest
from fleetmark.reports.comparison.forest import Axis
from fleetmark.reports.comparison.front import MOST_SIDES, Around, Front, front
from fleetmark.reports.comparison.model import RatioRow
from fleetmark.reports.kit.charts import colour_of

_GREY = "#8C8C8C"


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """A comparison with one of its sides as the baseline.

    ``axis``: the axis of all plots. ``marks``: the colour and shape of each side's marks. ``origins``: the number of
    each benchmark's origin in the document, by title.
    """

    comparison: Comparison
    rows: Sequence[RatioRow]
    front: Front
    axis: Axis
    marks: Mapping[str, tuple[str, int]]
    origins: Mapping[str, int] = field(default_factory=dict)

    @property
    def candidates(self) -> Sequence[str]:
        """Return the titles of the candidates."""
        return self.front.candidates

    @property
    def has_verdicts(self) -> bool:
        """Return whether any ratio has an interval; data of single runs have none, which is stated once."""
        return any(row.lo is not None for row in self.rows if row.ratio is not None)

    def plot(self, estimates: Sequence[Estimate | None], *, is_headline: bool) -> str:
        """Return a plot with the estimates of all candidates. If there are few candidates, each has its own line."""
        lanes = [(e, *self.marks.get(t, (_GREY, 0))) for e, t in zip(estimates, self.candidates, strict=True)]
        return forest.plots(self.axis, lanes, headline=is_headline, apart=len(lanes) <= MOST_SIDES)

    def mark(self, side: str) -> str:
        """Return the mark of a side, for the head of its column."""
        return forest.key(*self.marks.get(side, (_GREY, 0)))


def face(comparison: Comparison, rows: Sequence[RatioRow], around: Around | None, sides: Sequence[str]) -> Face:
    """Return the face of a comparison. ``sides``: the titles of all sides in the order of their colours."""
    first = front(comparison, rows, around)
    classes = [cell.estimate for line in first.lines for cell in line.cells if cell.estimate]
    points = [Estimate(row.ratio) for row in rows if row.benchmark and row.ratio]
    return Face(
        comparison=comparison,
        rows=rows,
        front=first,
        axis=forest.axis_of([*classes, *points]),
        marks={side: (colour, n) for n, (side, colour) in enumerate(colour_of(sides).items())},
    )
