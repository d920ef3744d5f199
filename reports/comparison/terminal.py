"""A comparison for a terminal: the headline of each class, its benchmarks, what was left out, and conversions."""

from __future__ import annotations

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.measurement import Kind
from fleetmark.base.text import count
from planner.comparison import Comparison
from planner.guardrail import Held
from planner.ratio import Verdict
from reports.comparison.model import (
    RatioRow,
    by_kind,
    extent,
    figure,
    footnotes,
    heading,
    hosts,
    how_to_read,
    named,
    p_value,
    plus_minus,
    question,
    rows,
    shortened,
    value,
)
from reports.kit import format as fmt

_HELD = {Held.KEPT: "green", Held.BROKEN: "red", Held.CANNOT_TELL: "yellow"}
_STYLE = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.SAME: "cyan", Verdict.CANNOT_TELL: "yellow"}
MOST_OUT = 8
MOST_HEAD = 12  # characters of a side's name over its column; for a longer name, its role


def show(comparison: Comparison) -> list[RenderableType]:
    """What to print, in order, for 80 columns and wider."""
    comparison = shortened(comparison)
    all_rows = rows(comparison)
    parts: list[RenderableType] = [Text(fmt.clean(question(comparison)), style="bold"), Text()]
    for warning in comparison.warnings:
        parts.append(Text(f"warning: {fmt.clean(warning)}", style="bold yellow"))
    if comparison.warnings:
        parts.append(Text())
    for candidate in comparison.candidates:
        candidate_rows = [r for r in all_rows if r.candidate == candidate.title]
        if len(comparison.candidates) > 1 and len(candidate.title) > MOST_HEAD:
            parts.append(Text(f"candidate {fmt.clean(candidate.title)}", style="bold"))
        for kind, of_kind in by_kind(candidate_rows):
            parts.append(Text(fmt.clean(heading(comparison, kind, candidate.title)), style="bold"))
            if kind == Kind.GUARDRAIL:
                parts += [_guardrails(comparison, of_kind, candidate.title), Text()]
            else:
                parts += [*_headlines(of_kind), Text(), _table(comparison, of_kind, candidate.title), Text()]
        if excluded := [r for r in candidate_rows if r.left_out]:
            parts += [*_excluded(excluded), Text()]
    if len(comparison.candidates) > 1:
        for kind in (Kind.CAPACITY, Kind.RESPONSIVENESS):
            if any(r.kind == kind and not r.benchmark for r in all_rows):
                parts += [_conversions(comparison, all_rows, kind), Text()]
    notes = [*comparison.notes, *footnotes(comparison), *how_to_read(comparison)]
    return [*parts, *(Text(fmt.clean(note), style="dim") for note in notes)]


def _headlines(candidate_rows: list[RatioRow]) -> list[Text]:
    """The answer for each class: its headline, both intervals, and what there is to know of them."""
    lines = []
    for row in candidate_rows:
        if not row.benchmark:
            first, *below = [line for line in (row.headline, row.intervals, row.note) if line] or [""]
            lines.append(Text.assemble((f"{fmt.clean(row.class_)}: ", "bold"), fmt.clean(first)))
            lines += [Text(f"  {fmt.clean(line)}", style="dim") for line in below]
    return lines


def _excluded(excluded: list[RatioRow]) -> list[Text]:
    """Benchmarks that were not compared, by the reason."""
    lines = [Text(f"not compared: {count(len(excluded), 'benchmark')}", style="bold")]
    for why in dict.fromkeys(r.note for r in excluded):
        titles = [fmt.clean(r.benchmark) for r in excluded if r.note == why]
        more = f"; and {len(titles) - MOST_OUT} more, which --format csv has" if len(titles) > MOST_OUT else ""
        lines.append(Text(f"  {fmt.clean(why)}: {'; '.join(titles[:MOST_OUT])}{more}"))
    return lines


def _table(comparison: Comparison, candidate_rows: list[RatioRow], title: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("class, benchmark", overflow="fold")
    _sides(table, comparison, title)
    for column in ("ratio", "±", "p", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for row in candidate_rows:
        verdict = Text(row.verdict, style=_STYLE[Verdict(row.verdict)]) if row.verdict else Text("")
        numbers = (plus_minus(row), p_value(row), hosts(comparison, row), verdict)
        if not row.benchmark:
            head = Text(fmt.clean(row.class_), style="bold")
            head.append(f", {row.standing}" if row.standing else "", style="not bold")
            ratio = Text(figure(row.ratio) or "none", style="bold")
            table.add_row(head, "", Text(extent(row), style="dim"), ratio, *numbers)
        elif row.ratio is not None:
            name = Text(f"  {fmt.clean(named(row.benchmark, row))}")
            values = [value(v, row.unit) for v in (row.baseline_value, row.candidate_value)]
            table.add_row(name, *values, figure(row.ratio), *numbers)
    return table


def _sides(table: Table, comparison: Comparison, title: str) -> None:
    for side, part in ((comparison.baseline, "baseline"), (title, "candidate")):
        label = fmt.clean(side) if len(side) <= MOST_HEAD else part
        table.add_column(label, justify="right", overflow="fold")


def _guardrails(comparison: Comparison, guardrail_rows: list[RatioRow], title: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("class, benchmark", overflow="fold")
    _sides(table, comparison, title)
    table.add_column("limit", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for row in guardrail_rows:
        if row.guardrail:
            values = [value(v, row.unit) for v in (row.baseline_value, row.candidate_value, row.limit)]
            state = Text(row.verdict, style=_HELD[Held(row.verdict)])
            state.append(f", {fmt.clean(row.note)}" if row.note and row.limit is not None else "", style="default")
            table.add_row(f"  {fmt.clean(named(row.benchmark, row))}", *values, hosts(comparison, row), state)
    return table


def _head(row: RatioRow) -> str:
    return " ".join(part for part in (figure(row.ratio), plus_minus(row), row.standing) if part)


def _conversions(comparison: Comparison, all_rows: list[RatioRow], kind: Kind) -> Table:
    """Candidates by class: how many of the baseline one is worth, or how many times as fast it is."""
    classes = list(dict.fromkeys(r.class_ for r in all_rows if not r.benchmark and r.kind == kind))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, title=None)
    baseline = fmt.clean(comparison.baseline)
    head = f"one … = so many {baseline}" if kind is Kind.CAPACITY else f"… is so many times as fast as {baseline}"
    table.add_column(head, overflow="fold")
    for name in classes:
        table.add_column(fmt.clean(name), justify="right", no_wrap=True)
    heads = {(r.candidate, r.class_): r for r in all_rows if not r.benchmark}
    table.add_row(Text(fmt.clean(comparison.baseline)), *["1" for _ in classes])
    for c in comparison.candidates:
        cells = [heads.get((c.title, name)) for name in classes]
        table.add_row(Text(fmt.clean(c.title)), *[_head(r) if r else "" for r in cells])
    return table
