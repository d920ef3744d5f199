"""The positions of benchmarks and hosts in a comparison's workbook: a row per benchmark, a column per host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from fleetmark.base.measurement import Kind
from planner.comparison import Candidate, Comparison, Side
from planner.contrast import Pairing
from reports.kit import format as fmt
from reports.kit.workbook import Sheet, form_for
from workloads.declared import in_percent

FIRST_ROW = 4  # of benchmarks, below title, note and head
FIRST_COLUMN = 4  # of hosts, right of class, benchmark, unit, better


@dataclass(frozen=True, slots=True)
class Grid:
    """``titles``: benchmarks by class, then by name, one row each, without guardrails. ``classes``: class to its
    first and last place among them. ``frames``: side's title to its oriented logs, hosts by benchmarks, as they are
    compared (per unit where ``--per`` asks for it); ``first``: side's title to the column of its first host.
    """

    comparison: Comparison
    titles: tuple[str, ...]
    classes: Mapping[str, tuple[int, int]]
    frames: Mapping[str, pd.DataFrame]
    first: Mapping[str, int]

    def row(self, title: str) -> int:
        """The sheet's row of a benchmark."""
        return FIRST_ROW + self.titles.index(title)

    def hosts(self, sheet: Sheet, row: int, side: str) -> str:
        """The cells of a side's hosts in a row of ``sheet``."""
        return sheet.span(row, self.first[side], row, self.first[side] + len(self.frames[side]) - 1)

    def benchmarks(self, sheet: Sheet, class_: str, column: int) -> str:
        """The cells of a class's benchmarks (of all, for a class that is a mix of them) in a column of ``sheet``."""
        first, last = self.place(class_)
        return sheet.span(FIRST_ROW + first, column, FIRST_ROW + last, column)

    def place(self, class_: str) -> tuple[int, int]:
        """First and last place among ``titles`` of what a class is made of."""
        return self.classes.get(class_, (0, len(self.titles) - 1))

    def of(self, class_: str) -> Sequence[str]:
        """The benchmarks that a class is made of."""
        first, last = self.place(class_)
        return self.titles[first : last + 1]

    @property
    def columns(self) -> int:
        """How many columns there are, hosts and what stands left of them."""
        return FIRST_COLUMN + sum(len(f) for f in self.frames.values())


def grid(comparison: Comparison, sides: Mapping[str, Side]) -> Grid:
    """The grid of a comparison of ``sides``, baseline first."""
    scored = comparison.benchmarks[comparison.benchmarks["kind"] != Kind.GUARDRAIL]
    classes = {str(t): str(c) for t, c in scored["class"].items()}
    titles = tuple(sorted(classes, key=lambda t: (fmt.natural(classes[t]), fmt.natural(t))))
    places = {
        name: (members[0], members[-1])
        for name, group in groupby(range(len(titles)), key=lambda n: classes[titles[n]])
        if (members := list(group))
    }
    candidates = {c.title: c for c in comparison.candidates}
    frames = {title: _compared(side, comparison, candidates.get(title)) for title, side in sides.items()}
    frames = {t: f.reindex(index=sorted(map(str, f.index), key=fmt.natural)) for t, f in frames.items()}
    if comparison.pairing is Pairing.SAME_HOSTS:  # pairs have the same position on both sides
        names = sorted({str(h) for f in frames.values() for h in f.index}, key=fmt.natural)
        frames = {t: f.reindex(index=names) for t, f in frames.items()}
    first, column = {}, FIRST_COLUMN
    for title, frame in frames.items():
        first[title] = column
        column += len(frame)
    return Grid(comparison, titles, places, {t: f.reindex(columns=list(titles)) for t, f in frames.items()}, first)


def _compared(side: Side, comparison: Comparison, candidate: Candidate | None) -> pd.DataFrame:
    """A side's figures without those that are not compared: with a candidate, or with any of them for the baseline."""
    means = side.means if side.shared is None else side.shared
    excluded = [set(c.excluded) for c in ([candidate] if candidate else comparison.candidates)]
    titles = [title for title in means.columns if title not in set.intersection(*excluded)]
    return means[titles].set_axis(means.index.map(str))


def form_of(comparison: Comparison, title: str, values: Iterable[float | None]) -> str:
    """The number format of figures of the benchmark called ``title``."""
    workload, metric, unit = (str(comparison.benchmarks.loc[title, name]) for name in ("workload", "metric", "unit"))
    return form_for([v for v in values if v is not None], unit, percent=in_percent(workload, metric))
