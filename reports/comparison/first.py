"""Build the first screen of a comparison: costs, regressions, the classes of work, and caveats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len, set_cell_size

from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Comparison
from fleetmark.planner.ratio import Verdict
from fleetmark.reports.comparison import forest
from fleetmark.reports.comparison.cell import Cell as Result
from fleetmark.reports.comparison.cell import Line
from fleetmark.reports.comparison.coverage import Gap, commands
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.purchase import bills
from fleetmark.reports.comparison.sentences.reliance import Remark
from fleetmark.reports.comparison.titles import per_title
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Command, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Row, Tabular, Tone

VERDICTS: dict[str, Tone] = {Verdict.WORSE: "bad", Verdict.CANNOT_TELL: "unsure"}
_READ: tuple[Kind, ...] = ("html", "pdf", "terminal", "markdown")
_MARKS = "o^+*x#sd"  # marks of candidates in a terminal
_PLOT = 46  # columns of a plot in a terminal
_NAMES = 32  # maximum width of the names next to the plot


def sections(
    face: Face, _: Language, failed: str = "", gaps: Sequence[Gap] = (), same_size: Sequence[str] = ()
) -> Iterator[Section]:
    """Yield the first screen.

    ``_``: the language of drawings. ``failed``: a sentence on runs that did not pass. ``gaps``: the gaps of the
    coverage. ``same_size``: the command line that compares machines of one size, or per part.
    """
    table = classes(face)
    sides = (face.comparison.baseline, *face.candidates) if face.front.not_measured else ()
    steps = (*_of_one_size(face, same_size), *commands(gaps[:1], sides))
    odd, others = _odd(face)
    exhibits = (*_sentences(face), *odd, *steps, *((table,) if table else ()))
    yield Section("classes", "", exhibits, _READ)
    yield Section("classes_plot", "", tuple(_drawing(face, _)), ("terminal",))
    if table_of_costs := bills.table(face.front.costs, fmt.clean(face.comparison.baseline)):
        yield Section("costs", table_of_costs.title, (table_of_costs,), _READ)
    yield Section("readme", "", (*_sentences(face), *odd), ("xlsx",))
    caveats = [Note(remark.text, link=remark.details) for remark in others]
    caveats += [Note(failed, link="failed")] if failed else []
    caveats += [Note(line, quiet=True) for line in face.front.legend]
    yield Section("before", message("Before you rely on this"), tuple(caveats))


def _sentences(face: Face) -> Iterator[Note]:
    first = face.front
    yield from (Note(line) for line in (*first.costs.totals, *first.costs.more, first.bought) if line)
    yield from (Note(message("Gets worse: {what}", what=sentence), "bad") for sentence in first.worse)
    if first.unsure:
        yield Note(message("May get worse: {what}", what=first.unsure), "unsure")
    if not face.has_verdicts and first.lines:
        text = message("No interval, so no verdict: a difference may be chance. Measure each side on several hosts.")
        yield Note(text, "unsure")
    elif not first.worse and not first.unsure and first.lines:
        yield Note(message("Nothing that was measured gets worse."), quiet=True)
    if first.guardrails:
        yield Note(first.guardrails, "bad" if first.broken else "", quiet=not first.broken)
    lacking = [first.peers] if first.peers else []
    lacking += [message("Not measured: {areas}", areas=first.not_measured)] if first.not_measured else []
    lacking += [unpriced(face.comparison)] if first.lines and is_unpriced(face) else []
    if lacking:
        yield Note(joined(lacking, ". "), quiet=True)


def _odd(face: Face) -> tuple[Sequence[Note], Sequence[Remark]]:
    """Return the first remark about hosts that differ from the rest of their side, and all other remarks."""
    remarks = face.front.before
    unusual = [remark for section in ("peers", "hosts") for remark in remarks if remark.details == section]
    first = next(iter(unusual), None)
    if first is None:
        return (), remarks
    return (Note(first.text, "unsure", link=first.details),), [r for r in remarks if r is not first]


def is_unpriced(face: Face) -> bool:
    """Return whether costs are missing because no prices were given."""
    return face.comparison.per == "server" and not (face.front.costs.bills or face.front.bought)


def unpriced(comparison: Comparison) -> Message:
    """Return why there are no costs, and the option that adds them."""
    return message(
        "No prices were given, so there is no cost. Add --price '{side}=AMOUNT EUR' for each side.",
        side=fmt.clean(comparison.baseline),
    )


def _of_one_size(face: Face, line: Sequence[str]) -> Iterator[Command]:
    """Yield the command that compares machines of one size, or per part."""
    if not line:
        return
    if "--per" in line:
        per = per_title(line[line.index("--per") + 1])
        yield Command(message("The sides have no size in common; compare them per {per}", per=per), fmt.typed(line))
        return
    sizes = dict.fromkeys(e.size for c in face.comparison.candidates for e in c.classes.values() if e.size)
    yield Command(message("Compare machines of one size only ({size})", size=next(iter(sizes), "")), fmt.typed(line))


def classes(face: Face) -> Tabular | None:
    """Return the table of classes: for each candidate the ratio, and how many servers replace 100 of the baseline."""
    first = face.front
    if not first.lines:
        return None
    columns = [
        Column("class", message("class of work"), "name"),
        Column(
            "plot",
            message("ratio and 95% interval, log scale"),
            only=("html", "pdf"),
            plot=forest.scale(face.axis),
        ),
    ]
    for n, side in enumerate(face.candidates):
        columns.append(Column(f"ratio_{n}", first.times, "number", group=fmt.clean(side), plot=face.mark(side)))
        if first.becomes:
            columns.append(Column(f"needed_{n}", first.becomes, "number", group=fmt.clean(side)))
    rows: list[Row] = []
    heads = set()
    for title, lines in ((_capacity(face), first.capacity), (_speed(), first.speed)):
        if first.capacity and first.speed:
            heads.add(len(rows))
            rows.append((Cell(title), *(Cell() for _ in columns[1:])))
        rows += [_row(face, line) for line in lines]
    title = message("Ratio of each class of work, with its interval")
    limits: Mapping[Kind, int] = {"terminal": len(rows)}
    return Tabular("classes", title, tuple(columns), tuple(rows), heads=frozenset(heads), limits=limits)


def _capacity(face: Face) -> Message:
    if face.comparison.per == "server":
        return message("Capacity: work that a server gets done")
    return message("Capacity per {per}", per=per_title(face.comparison.per))


def _speed() -> Message:
    return message("Speed of one job, request or flow: times as fast")


def _row(face: Face, line: Line) -> Row:
    plot = face.plot([result.estimate for result in line.cells], is_headline=True)
    cells = [Cell(line.title, details=(line.remark,) if line.remark else ()), Cell(plot=plot)]
    for result in line.cells:
        cells.append(_ratio(result, has_verdict=face.has_verdicts))
        if face.front.becomes:
            cells.append(_needed(result))
    return tuple(cells)


def _ratio(result: Result, *, has_verdict: bool) -> Cell:
    if not result.ratio or result.estimate is None:
        return Cell(hint=result.reason)
    details = (
        word(result.verdict) if has_verdict and result.verdict not in ("", Verdict.BETTER) else "",
        result.remark,
        message("benchmarks {range}", range=result.spread) if result.spread else "",
        message("similar program {interval}", interval=result.workload) if result.workload else "",
    )
    lo, hi = (result.estimate.lo, result.estimate.hi) if result.interval else (None, None)
    return Cell(
        result.figure,
        result.estimate.value,
        lo=lo,
        hi=hi,
        ends=result.interval,
        tone=VERDICTS.get(result.verdict, "") if has_verdict else "",
        details=tuple(filter(None, details)),
    )


def _needed(result: Result) -> Cell:
    if not result.servers or result.estimate is None:
        return Cell()
    return Cell(result.servers, result.needed_servers, ends=result.servers_range)


# --- text plot -----------------------------------------------------------------------------------------------------


def _drawing(face: Face, _: Language) -> Iterator[Chart]:
    """Yield a plot of the classes for a terminal; nothing if there are many candidates."""
    first = face.front
    if not first.lines or len(first.candidates) > len(_MARKS):
        return
    names = [fmt.clean(_(line.title)) for line in first.lines]
    width = min(_NAMES, max(map(cell_len, names)))
    legend = ", ".join(f"{mark} {fmt.clean(side)}" for mark, side in zip(_MARKS, first.candidates, strict=False))
    rows = [f"{'':{width}}  {_ticks(face)}"]
    rows += [
        f"{set_cell_size(name, width)}  {_marks(face, line)}" for name, line in zip(names, first.lines, strict=True)
    ]
    title = message("Ratio of each class, log scale: {marks}", marks=legend)
    yield Chart(title, "", "", lines=tuple(map(str.rstrip, rows)))


def _place(face: Face, ratio: float) -> int:
    """Return the column of ``ratio`` on the axis."""
    axis = face.axis
    part = (math.log(min(max(ratio, axis.lo), axis.hi)) - math.log(axis.lo)) / math.log(axis.hi / axis.lo)
    return round(part * (_PLOT - 1))


def _ticks(face: Face) -> str:
    """Return as many tick labels of the axis as fit. The tick at 1 has priority."""
    line = [" "] * _PLOT
    for tick in sorted(forest.ticks(face.axis), key=lambda t: t != 1):
        label = f"{tick:g}"
        start = min(max(0, _place(face, tick) - len(label) // 2), _PLOT - len(label))
        if all(c == " " for c in line[max(0, start - 1) : start + len(label) + 1]):
            line[start : start + len(label)] = label
    return "".join(line)


def _marks(face: Face, line: Line) -> str:
    cells = [" "] * _PLOT
    cells[_place(face, 1.0)] = "|"
    for mark, result in zip(_MARKS, line.cells, strict=False):
        if result.estimate:
            place = _place(face, result.estimate.value)
            cells[place] = mark if cells[place] in " |" else "@"  # @: several marks in the same column
    return "".join(cells)
