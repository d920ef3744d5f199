"""A comparison for a terminal: the first screen, then every benchmark, guardrails and exclusions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import count, message
from fleetmark.base.words import word
from planner.comparison import Comparison
from planner.guardrail import Held
from planner.ratio import Verdict
from reports.comparison import forest
from reports.comparison import table as of
from reports.comparison.cell import Cell, Line
from reports.comparison.front import MOST_SIDES, Around, Front, front
from reports.comparison.headline import short_titles
from reports.comparison.model import RatioRow, rows
from reports.comparison.titles import basis_title
from reports.kit import console
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.tabular import Part

_HELD = {Held.KEPT: "green", Held.BROKEN: "red", Held.CANNOT_TELL: "yellow"}
_STYLE = {Verdict.BETTER: "", Verdict.WORSE: "bold red", Verdict.SAME: "cyan", Verdict.CANNOT_TELL: "yellow"}
_MARKS = "o^+*"
_LEAST_PLOT, _MOST_PLOT = 14, 48  # columns
_COLUMN = 18  # width of a candidate, in columns of the terminal
MOST_OUT = 8


def show(
    comparison: Comparison,
    all_rows: Sequence[RatioRow] | None = None,
    around: Around | None = None,
    language: Language | None = None,
    tables: Sequence[Part] = (),
) -> list[RenderableType]:
    """Return what to print, in order, for at least 80 columns."""
    all_rows, _ = rows(comparison) if all_rows is None else all_rows, language or Language()
    first, below = front(comparison, all_rows, around), of.table(comparison, all_rows)
    parts: list[RenderableType] = [*_head(first, _), Text(), _Classes(comparison, first, _)]
    if first.before or first.legend:
        parts += [Text(), Text(_(message("Before you rely on this")), style="bold")]
        parts += [_bullet(_(remark.text)) for remark in first.before]
        parts += [_bullet(_(line), "dim") for line in first.legend]
    if below.groups:
        parts += [Text(), Text(_(message("Benchmarks")), style="bold"), Text(_(below.usual), style="dim")]
    for k, candidate in enumerate(comparison.candidates):
        if below.groups:
            parts += [Text(), _benchmarks(comparison, below, k, candidate.title, _)]
        if guards := [g for g in below.guards if g.row.candidate == candidate.title]:
            parts += [Text(), _guardrails(comparison, guards, candidate.title, _)]
    parts += console.show(tables, _)
    if excluded := list(_excluded(all_rows, _)):
        parts += [Text(), Text(_(message("Benchmarks not compared")), style="bold"), *excluded]
    if comparison.notes:
        parts += [Text(), Text(_(message("Notes")), style="bold")]
        parts += [_bullet(_(note), "dim") for note in comparison.notes]
    return parts


def _bullet(text: str, style: str = "") -> RenderableType:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_row("-", Text(fmt.clean(text), style=style))
    return table


def _head(first: Front, _: Language) -> Iterator[Text]:
    yield Text(fmt.clean(_(first.answer)), style="bold")
    for line in (first.sides, first.basis):
        if line:
            yield Text(fmt.clean(_(line)), style="dim")
    for line in (*first.totals, first.bought):
        if line:
            yield Text(fmt.clean(_(line)))
    for sentence in first.worse:
        yield Text(f"{_(message('GETS WORSE'))}  {fmt.clean(_(sentence))}", style="bold red")
    if first.unsure:
        yield Text(f"{_(message('May get worse:'))} {fmt.clean(_(first.unsure))}", style="yellow")
    if not first.worse and not first.unsure and first.lines:
        yield Text(_(message("Nothing that was measured gets worse.")), style="dim")
    if first.guardrails:
        yield Text(fmt.clean(_(first.guardrails)), style="bold red" if first.broken else "dim")
    if first.not_measured:
        yield Text(_(message("Not measured: {areas}", areas=first.not_measured)))


class _Classes:
    """The table of classes with a plot. Machines are columns, as many as fit beside each other."""

    def __init__(self, comparison: Comparison, first: Front, language: Language) -> None:
        self.comparison, self.first, self._ = comparison, first, language

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        first, _ = self.first, self._
        if not first.lines:
            return
        width = options.max_width
        longest = max(cell_len(_(line.title)) for line in first.lines)
        name = max(12, min(longest, 26))
        sides = len(first.candidates)
        room = width - name - sides * (_COLUMN + 2) - 4
        if sides <= MOST_SIDES and room >= _LEAST_PLOT:
            yield self._table(range(sides), name, min(room, _MOST_PLOT))
        else:
            each = max(1, (width - name) // (_COLUMN + 2))
            for start in range(0, sides, each):
                yield self._table(range(start, min(start + each, sides)), name, 0)
        if first.becomes:
            yield Text(f"→ {_(message('what {becomes}', becomes=first.becomes))}", style="dim")

    def _table(self, sides: range, name: int, plot: int) -> Table:
        first, _ = self.first, self._
        axis = forest.axis_of(c.estimate for line in first.lines for c in line.cells if c.estimate)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
        table.add_column("", width=name, overflow="fold")
        if plot:
            table.add_column(_axis(axis, plot), width=plot, no_wrap=True)
        for k in sides:
            mark = f"{_MARKS[k]} " if plot else ""
            label = f"{mark}{fmt.clean(first.candidates[k])}"
            table.add_column(label, justify="right", width=_COLUMN, overflow="fold")
        for kind, lines in (("", first.capacity), (_(message("speed")), first.speed)):
            if kind and lines and first.capacity:
                table.add_row(Text(kind, style="dim"))
            for line in lines:
                cells: list[RenderableType] = [_named(line, _)]
                if plot:
                    cells.append(_plot(axis, line, plot))
                table.add_row(*cells, *(_cell(line.cells[k], _) for k in sides))
        return table


def _named(line: Line, _: Language) -> Text:
    text = Text(fmt.clean(_(line.title)), style="bold")
    if line.remark:
        text.append(f"\n{fmt.clean(_(line.remark))}", style="not bold dim")
    return text


def _cell(cell: Cell, _: Language) -> Text:
    if not cell.ratio:
        return Text("–", style="dim")
    style = _STYLE[Verdict(cell.verdict)] if cell.verdict else ""
    text = Text(fmt.clean(_(cell.text)), style=style or "bold")
    if cell.verdict and cell.verdict != Verdict.BETTER:
        text.append(f"\n{_(word(cell.verdict))}", style=style)
    for line in (
        f"→ {_(cell.needed)}" if cell.needed else "",
        _(message("benchmarks {range}", range=cell.spread)) if cell.spread else "",
        _(message("own {interval}", interval=cell.workload)) if cell.workload else "",
    ):
        text.append(f"\n{line}" if line else "", style="not bold dim" if not line.startswith("→") else "not bold")
    return text


def _at(axis: forest.Axis, ratio: float, width: int) -> int:
    """Return the column of ``ratio`` on the axis."""
    part = (math.log(min(max(ratio, axis.lo), axis.hi)) - math.log(axis.lo)) / math.log(axis.hi / axis.lo)
    return round(part * (width - 1))


def _axis(axis: forest.Axis, width: int) -> Text:
    """Return the tick labels of the axis, as many as fit. The tick at 1 has priority."""
    line = [" "] * width
    for tick in sorted(forest.ticks(axis), key=lambda t: t != 1):
        label = f"{tick:g}"
        start = min(max(0, _at(axis, tick, width) - len(label) // 2), width - len(label))
        if all(c == " " for c in line[max(0, start - 1) : start + len(label) + 1]):
            line[start : start + len(label)] = label
    return Text("".join(line))


def _plot(axis: forest.Axis, line: Line, width: int) -> Text:
    cells = [" "] * width
    cells[_at(axis, 1.0, width)] = "|"
    for mark, cell in zip(_MARKS, line.cells, strict=False):
        if cell.estimate:
            place = _at(axis, cell.estimate.value, width)
            cells[place] = mark if cells[place] in " |" else "@"  # @: several marks in the same column
    return Text("".join(cells))


# --- every benchmark --------------------------------------------------------------------------------------------------


def _benchmarks(comparison: Comparison, below: of.Table, k: int, title: str, _: Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(_(message("benchmark")), overflow="fold", ratio=1)
    for side in (comparison.baseline, title):
        table.add_column(fmt.clean(side), justify="right", overflow="fold", max_width=14)
    table.add_column(_(message("ratio")), justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for group in below.groups:
        head = group.head.figures[k]
        entries = [e for e in group.entries if e.figures[k].ratio]
        if not head.ratio and not entries:
            continue
        table.add_row(Text(fmt.clean(_(group.title)), style="bold"), "", "", *_ratio(head, group.head, "bold", _))
        about = comparison.benchmarks
        short = short_titles([e.benchmark for e in entries], about.loc[[e.benchmark for e in entries], "metric"])
        for entry in entries:
            figure = entry.figures[k]
            values = [f"{v} {entry.unit}".strip() if v else "" for v in (entry.baseline, figure.value)]
            table.add_row(
                Padding(fmt.clean(short[entry.benchmark]), (0, 0, 0, 2)), *values, *_ratio(figure, entry, "", _, head)
            )
    return table


def _ratio(
    figure: of.Figure, entry: of.Entry, style: str, _: Language, head: of.Figure | None = None
) -> tuple[Text, Text]:
    """Return the ratio, and remarks about it. ``head``: the figure of its class, whose standing is not repeated."""
    verdict = figure.row.verdict if figure.row else ""
    colour = _STYLE[Verdict(verdict)] if verdict else ""
    remarks = [] if verdict in ("", Verdict.BETTER) else [_(word(verdict))]
    standing = figure.row.standing if figure.row else ""
    above = head.row.standing if head and head.row else ""
    remarks += [_(word(standing))] if standing and standing != above else []
    basis = basis_title({figure.row.candidate: figure.row.basis}) if figure.row else ""
    remarks += [_(basis)] if basis else []
    remarks += [f"n {entry.hosts}"] if entry.hosts else []
    return Text(figure.text or "–", style=colour or style), Text(", ".join(remarks), style=colour)


def _guardrails(comparison: Comparison, guards: Sequence[of.Guard], title: str, _: Language) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(_(message("Guardrails")), overflow="fold", ratio=1)
    for side in (comparison.baseline, title, _(message("limit"))):
        table.add_column(fmt.clean(side), justify="right", overflow="fold", max_width=14)
    table.add_column("", overflow="fold")
    for guard in guards:
        state = Text(_(word(guard.row.verdict)), style=_HELD[Held(guard.row.verdict)])
        if guard.row.note and guard.limit:
            state.append(f", {fmt.clean(_(guard.row.note))}", style="default")
        name = Padding(fmt.clean(guard.row.benchmark), (0, 0, 0, 2))
        table.add_row(name, guard.baseline, guard.candidate, guard.limit or "–", state)
    return table


def _excluded(all_rows: Sequence[RatioRow], _: Language) -> Iterator[RenderableType]:
    """Yield the reasons for exclusion, most frequent first, each with the number of benchmarks and the first names."""
    by_reason: dict[str, dict[str, None]] = {}
    for row in all_rows:
        if row.left_out:
            by_reason.setdefault(row.note, {})[row.benchmark] = None
    ranked = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    for reason, titles in ranked[:MOST_OUT]:
        names = ", ".join(map(fmt.clean, list(titles)[:3])) + (", …" if len(titles) > 3 else "")
        yield _bullet(f"{_(reason)}: {_(count(len(titles), 'benchmark'))} ({names})")
    if len(ranked) > MOST_OUT:
        yield _bullet(_(message("and {n} more", n=len(ranked) - MOST_OUT)))
