"""Summarise a comparison: the question, the classes of work, cost, regressions, gaps, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleetmark.base.text import Message, joined, message
from fleetmark.planner.comparison import Comparison
from fleetmark.reports.comparison.coverage import MOST_GAPS, Gap, commands
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.first import classes, is_unpriced, unpriced
from fleetmark.reports.comparison.titles import per_title
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Brief, Command, Note
from fleetmark.reports.kit.tabular import Cell, Column, Tabular

MOST_ACROSS = 3  # maximum candidates shown as columns; more are shown as rows
MOST_NAMED = 3


def brief(face: Face, gaps: Sequence[Gap] = (), command: Sequence[str] = ()) -> Brief:
    """Return the brief of a comparison.

    ``gaps``: the gaps of its coverage. ``command``: the command that repeats the comparison.
    """
    first, comparison = face.front, face.comparison
    worse = [*first.worse, *([first.unsure] if first.unsure else ())]
    if not worse and first.lines:
        worse = [message("Nothing that was measured gets worse.")]
    return Brief(
        question=_question(comparison, first.candidates),
        table=_table(face),
        cost=tuple(filter(None, (*first.costs.totals, *first.costs.more, first.bought))) or (unpriced(comparison),),
        worse=tuple(worse),
        missing=(first.not_measured,)
        if first.not_measured
        else (message("Every area of the suite ran on all sides."),),
        certainty=(*(remark.text for remark in first.before), *first.legend),
        steps=tuple(_steps(face, gaps, command)),
    )


def _question(comparison: Comparison, candidates: Sequence[str]) -> Message:
    names = joined([fmt.clean(c) for c in candidates[:MOST_NAMED]])
    if len(candidates) > MOST_NAMED:
        names = message("{names} and {n} more", names=names, n=len(candidates) - MOST_NAMED)
    values = {"baseline": fmt.clean(comparison.baseline), "candidates": names}
    if len(candidates) > 1:
        if comparison.per == "server":
            return message("How many {baseline} servers does one server of each replace: {candidates}?", **values)
        return message(
            "How much more work per {per} do they get done than {baseline}: {candidates}?",
            per=per_title(comparison.per),
            **values,
        )
    if comparison.per == "server":
        return message("How many {baseline} servers does one {candidates} replace?", **values)
    return message(
        "How much more work per {per} does {candidates} get done than {baseline}?",
        per=per_title(comparison.per),
        **values,
    )


def _table(face: Face) -> Tabular | None:
    """Return the ratios of the classes. Many candidates are shown as rows."""
    table = classes(face)
    if table is None:
        return None
    if len(face.candidates) <= MOST_ACROSS:
        return table
    lines = list(face.front.lines)
    columns = (
        Column("candidate", message("candidate"), "name"),
        *(Column(f"class_{n}", line.title, "number") for n, line in enumerate(lines)),
    )
    ratios = [k for k, column in enumerate(table.columns) if column.key.startswith("ratio_")]
    rows = [row for n, row in enumerate(table.rows) if n not in table.heads]
    turned = tuple(
        (Cell(fmt.clean(side)), *(replace(row[k], details=()) for row in rows))
        for side, k in zip(face.candidates, ratios, strict=True)
    )
    return Tabular("candidates", table.title, columns, turned)


def _steps(face: Face, gaps: Sequence[Gap], command: Sequence[str]) -> Iterator[Command | Note]:
    """Yield what to do next: add missing prices, then close the gaps."""
    if command and is_unpriced(face):
        priced = fmt.typed([*command, "--price", f"{face.comparison.baseline}=AMOUNT EUR"])
        yield Command(message("Add prices to see costs."), priced)
    yield from commands(gaps[:MOST_GAPS])
    if command:
        yield Command(message("Make this report again"), fmt.typed(command))
