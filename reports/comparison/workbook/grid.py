"""Locate benchmarks and hosts in a comparison's workbook: a row per benchmark, a column per host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from fleetmark.base.measurement import Kind
from fleetmark.base.text import message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Candidate, Comparison, Side
from fleetmark.planner.contrast import Pairing
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.layout import FIRST_ROW
from fleetmark.reports.kit.tabular import Cell, Column, Row
from fleetmark.reports.kit.workbook import absolute, literal

FIRST_COLUMN = 4  # first column of hosts, after class, benchmark, unit and direction

Say = Callable[[str], str]  # function that translates the words in a formula


def cells(table: str, first: tuple[int, int], last: tuple[int, int] | None = None) -> str:
    """Return the absolute address of a cell or range in the sheet of ``table``. Rows of the table count from 0."""
    ends = [first, *([last] if last else [])]
    return f"[{table}]!{':'.join(absolute(FIRST_ROW + row, column) for row, column in ends)}"


def quoted(text: str) -> str:
    """Return ``text`` as a string literal of a formula."""
    return literal(text)


def figure(value: float | None, formula: str = "") -> Cell:
    """Return a cell of a column with a number format. ``formula``: the formula that computes it."""
    return Cell("" if value is None else repr(value), value, formula=formula)


@dataclass(frozen=True, slots=True)
class Grid:
    """The benchmarks and hosts of a comparison.

    ``titles``: the benchmarks by class, then by name, without guardrails. ``classes``: the first and last position of
    each class in ``titles``. ``frames``: the oriented logarithms of each side, hosts by benchmarks, as they are
    compared (per unit with ``--per``). ``first``: the column of each side's first host.
    """

    comparison: Comparison
    titles: tuple[str, ...]
    classes: Mapping[str, tuple[int, int]]
    frames: Mapping[str, pd.DataFrame]
    first: Mapping[str, int]

    def hosts(self, table: str, row: int, side: str) -> str:
        """Return the cells of a side's hosts in a row of ``table``."""
        first = self.first[side]
        return cells(table, (row, first), (row, first + len(self.frames[side]) - 1))

    def benchmarks(self, table: str, class_: str, column: int) -> str:
        """Return the cells of a class's benchmarks in a column of ``table``; for a mix, the cells of all benchmarks."""
        first, last = self.place(class_)
        return cells(table, (first, column), (last, column))

    def place(self, class_: str) -> tuple[int, int]:
        """Return the first and last position of a class's benchmarks in ``titles``."""
        return self.classes.get(class_, (0, len(self.titles) - 1))

    def members(self, class_: str) -> Sequence[str]:
        """Return the benchmarks of a class."""
        first, last = self.place(class_)
        return self.titles[first : last + 1]

    def columns(self, form: str) -> tuple[Column, ...]:
        """Return columns for a table with a row per benchmark and a column per host. ``form``: the number format."""
        return (
            Column("class", message("class")),
            Column("benchmark", message("benchmark"), "name"),
            Column("unit", message("unit")),
            Column("direction", message("direction")),
            *self.host_columns(form),
        )

    def host_columns(self, form: str) -> tuple[Column, ...]:
        """Return a column per host, in the order of ``frames``."""
        hosts = [(str(host), side) for side, frame in self.frames.items() for host in frame.index]
        return tuple(
            Column(f"host_{n}", fmt.clean(host), "number", unit=fmt.clean(side), form=form, has_interval=False)
            for n, (host, side) in enumerate(hosts)
        )

    def names(self, title: str) -> Row:
        """Return the cells to the left of a benchmark's figures."""
        facts = self.comparison.benchmarks.loc[title]
        return (Cell(str(facts["class"])), Cell(title), Cell(str(facts["unit"])), Cell(word(str(facts["better"]))))

    def values(self, title: str) -> list[tuple[str, str, float | None]]:
        """Return the side, host and logarithm of each host's figure, in the order of the columns."""
        return [
            (side, str(host), None if math.isnan(value) else float(value))
            for side, frame in self.frames.items()
            for host, value in frame[title].items()
        ]


def grid(comparison: Comparison, sides: Mapping[str, Side]) -> Grid:
    """Return the grid of a comparison of ``sides``, with the baseline first."""
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
    first: dict[str, int] = {}
    column = FIRST_COLUMN
    for title, frame in frames.items():
        first[title] = column
        column += len(frame)
    return Grid(comparison, titles, places, {t: f.reindex(columns=list(titles)) for t, f in frames.items()}, first)


def _compared(side: Side, comparison: Comparison, candidate: Candidate | None) -> pd.DataFrame:
    """Return a side's compared figures: with one candidate, or with any candidate for the baseline."""
    means = side.means if side.shared is None else side.shared
    excluded = [set(c.excluded) for c in ([candidate] if candidate else comparison.candidates)]
    titles = [title for title in means.columns if title not in set.intersection(*excluded)]
    return means[titles].set_axis(means.index.map(str))
