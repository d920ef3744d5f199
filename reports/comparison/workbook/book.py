"""Build the sections of a comparison's workbook, in the order of their tabs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fleetmark.base.measurement import Better, Kind
from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import CLASH, Candidate, Side
from fleetmark.planner.cost import ROUNDING, needed
from fleetmark.planner.equivalence import DISAGREE, Basis
from fleetmark.planner.estimate import CONFIDENCE
from fleetmark.planner.ratio import SAME, Ratio
from fleetmark.reports.comparison import excluded
from fleetmark.reports.comparison.benchmarks import guardrails
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.headline import FLEET, WORKLOAD
from fleetmark.reports.comparison.method import DEGREES
from fleetmark.reports.comparison.model import lone, question
from fleetmark.reports.comparison.workbook import answer, classes, hosts, ratios
from fleetmark.reports.comparison.workbook.classes import ClassRow
from fleetmark.reports.comparison.workbook.grid import Grid, Say, figure, grid, quoted
from fleetmark.reports.comparison.workbook.hosts import LOGS
from fleetmark.reports.comparison.workbook.sources import sources
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.native import Native
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular, quantity
from fleetmark.reports.kit.workbook import INTEGER, RATIO
from fleetmark.workloads.declared import counted, in_bits, in_percent

_KEYS = (
    *("candidate", "class", "kind", "benchmark", "unit", "direction", "baseline", "other"),
    *(*ratios.KEYS, "p_adjusted", "standing", "note", *ratios.WORKINGS),
)


def sections(face: Face, sides: Mapping[str, Side], folder: str, say: Say) -> Iterator[Section]:
    """Yield the tabs. ``folder``: where the measurements are. ``say``: translates the words in formulas."""
    place = grid(face.comparison, sides)
    measured = sources(sides, place.titles)
    rows = classes.lines(place)
    weights, scores, headlines = classes.tables(place, rows, say)
    conversion, capacity = _conversion(face, rows, say)
    tabs: tuple[tuple[str, Message, tuple[Exhibit, ...]], ...] = (
        ("inputs", message("Inputs"), (_inputs(face),)),
        ("conversion", message("Conversion"), (conversion, *_bars(face, capacity))),
        ("headlines", message("Classes"), (headlines, *classes.forest(rows))),
        (
            "answers",
            message("Answers"),
            (_answers(face, rows, say), Note(FLEET, quiet=True), Note(WORKLOAD, quiet=True)),
        ),
        ("weights", message("Weights"), (weights,)),
        ("benchmarks", message("Benchmarks"), (_benchmarks(face, place, say),)),
        ("guardrails", message("Guardrails"), tuple(guardrails(face))),
        ("logs", message("Host logs"), (hosts.logs(place, measured),)),
        ("figures", message("Per host"), (hosts.figures(place),)),
        ("scores", message("Host scores"), (scores,)),
        ("raw", message("Raw"), (hosts.raw(measured, face.comparison.per, folder),)),
        ("left_out", message("Excluded"), (excluded.listing(face),)),
        ("use", message("How to work with it"), tuple(map(Note, _HOW if measured.is_listed else (_HOW[0], *_HOW[2:])))),
        ("degrees", DEGREES[0], (Note(DEGREES[1]),)),
    )
    yield from (Section(f"tab-{key}", title, exhibits, ("xlsx",)) for key, title, exhibits in tabs)


def first(face: Face, sides: Mapping[str, Side]) -> Section:
    """Return the tab with the numeric answer; its ratios are copied from the tab Classes."""
    return answer.section(face, classes.lines(grid(face.comparison, sides)))


def _inputs(face: Face) -> Tabular:
    """Return the inputs that all tabs share."""
    inputs: list[tuple[Message, float, str, str, float, float]] = [
        (message("confidence of intervals"), CONFIDENCE, f"{CONFIDENCE:.1%}", ratios.CONFIDENCE_NAME, 0.5, 0.999),
        (message("no relevant difference: within"), SAME, f"{SAME:.1%}", ratios.SAME_NAME, 0, 0.5),
    ]
    rows = tuple(
        (
            Cell(title),
            Cell(
                text,
                value,
                is_input=True,
                name=name,
                limits=(lo, hi),
                hint=message("a number from {lo} to {hi}", lo=f"{lo:g}", hi=f"{hi:g}"),
            ),
        )
        for title, value, text, name, lo, hi in inputs
    )
    columns = (Column("input", message("input"), "name"), Column("value", message("value"), "number"))
    note = message("Yellow cells are inputs. When you change one, all results that depend on it are recalculated.")
    return Tabular("inputs", question(face.comparison), columns, rows, notes=(note,))


# --- benchmarks ------------------------------------------------------------------------------------------------------


def _benchmarks(face: Face, place: Grid, say: Say) -> Tabular:
    comparison = face.comparison
    worked = ratios.columns(comparison.baseline, _KEYS, say)
    listed = (
        Column("candidate", message("candidate"), "side"),
        Column("class", message("class")),
        Column("kind", message("kind")),
        Column("benchmark", message("benchmark"), "name"),
        Column("unit", message("unit")),
        Column("direction", message("direction")),
        Column("baseline", message("baseline"), "number", unit=fmt.clean(comparison.baseline)),
        Column("other", message("geometric mean"), "number", unit=message("candidate")),
        Column("standing", message("standing")),
        Column("note", message("note"), "note"),
    )
    by_key = {column.key: column for column in listed} | worked
    rows = [
        _benchmark(face, place, candidate, title, say) for candidate in comparison.candidates for title in place.titles
    ]
    note = message(
        "Above 1, the candidate is better. Means are of whole servers, ratios of capacity per {per}.",
        per=word(comparison.per),
    )
    title = message("Single benchmarks")
    return Tabular("benchmarks", title, tuple(by_key[key] for key in _KEYS), tuple(rows), notes=(note,))


def _benchmark(face: Face, place: Grid, candidate: Candidate, title: str, say: Say) -> Row:
    comparison = face.comparison
    facts = comparison.benchmarks.loc[title]
    each = {t: ratio for e in candidate.classes.values() for t, ratio in e.each.items()}
    is_stratum = any(e.basis is Basis.STRATA and title in e.each for e in candidate.classes.values())
    reasons = {t: reason for e in candidate.classes.values() for t, reason in e.left_out.items()} | dict(
        candidate.excluded
    )
    row = {
        "candidate": Cell(candidate.title),
        "class": Cell(str(facts["class"])),
        "kind": Cell(word(str(facts["kind"]))),
        "benchmark": Cell(title),
        "unit": Cell("bit/s" if in_bits(str(facts["workload"]), str(facts["metric"])) else str(facts["unit"])),
        "direction": Cell(word(str(facts["better"]))),
        "standing": Cell(word(candidate.standing.get(title, ""))),
        "note": Cell(joined([reasons.get(title), lone(comparison, candidate).get(title)], "; ")),
    }
    if not candidate.excluded.get(title, "").startswith(CLASH):  # otherwise the figures are not comparable
        for key, side in (("baseline", comparison.baseline), ("other", candidate.title)):
            row[key] = _mean(face, place, title, side)
    if title in each:
        row |= _ratio(face, place, candidate, title, each[title], say, is_stratum=is_stratum)
    return tuple(row.get(key, Cell()) for key in _KEYS)


def _mean(face: Face, place: Grid, title: str, side: str) -> Cell:
    """Return the geometric mean of a side, as a formula unless figures are divided by an amount."""
    facts = face.comparison.benchmarks.loc[title]
    names = str(facts["workload"]), str(facts["metric"])
    value, unit = face.comparison.figures[side].get(title), str(facts["unit"])
    bits = in_bits(*names)
    shown = quantity(value, unit, bits=bits, percent=in_percent(*names), counted=counted(*names), digits=4)
    if shown.value is None or face.comparison.per != "server" or place.frames[side][title].isna().all():
        return shown
    minus, factor = "-" if facts["better"] == Better.LOWER else "", "8*" if bits and unit == "B/s" else ""
    return replace(shown, formula=f"={factor}EXP({minus}AVERAGE({place.hosts(LOGS, place.titles.index(title), side)}))")


def _ratio(
    face: Face, place: Grid, candidate: Candidate, title: str, ratio: Ratio, say: Say, *, is_stratum: bool
) -> dict[str, Cell]:
    if is_stratum or ratio.of_repeats or ratio.clusters:
        return ratios.fixed(ratio)
    pairing, row = face.comparison.pairing, place.titles.index(title)
    both = (face.comparison.baseline, candidate.title)
    a, b = (place.hosts(LOGS, row, side) for side in both)
    x, y = (place.frames[side][title].to_numpy(float) for side in both)
    values = ratios.worked_out(x, y, pairing, ratio)
    verdict = ratios.verdict_formula(say)
    return ratios.live(ratios.of_hosts(a, b, pairing), values, verdict, has_adjusted=True)


# --- results ---------------------------------------------------------------------------------------------------------


def _conversion(face: Face, rows: Sequence[ClassRow], say: Say) -> tuple[Tabular, int]:
    """Return the classes by candidates, capacity classes first, and the number of capacity classes."""
    is_replaced = face.comparison.per == "server"
    columns = [Column("class", message("class"), "name"), Column("kind", message("kind"))]
    for k, side in enumerate(face.candidates):
        columns += _conversion_columns(k, fmt.clean(side), say, is_replaced=is_replaced)
    places = {(line.candidate.title, classes.title(line)): line for line in rows}
    names = {classes.title(line): line.kind for line in sorted(rows, key=lambda line: line.kind != Kind.CAPACITY)}
    table = []
    for name, kind in names.items():
        cells = [Cell(name), Cell(word(kind))]
        for k, side in enumerate(face.candidates):
            cells += _converted(k, places.get((side, name)), face.front.costs.terms.servers, is_replaced=is_replaced)
        table.append(tuple(cells))
    note = message("All values here are computed from the other tabs and the yellow cells.")
    title = message("Baseline servers that one candidate replaces")
    capacity = sum(kind == Kind.CAPACITY for kind in names.values())
    return Tabular("conversion", title, tuple(columns), tuple(table), notes=(note,)), capacity


def _conversion_columns(k: int, side: str, say: Say, *, is_replaced: bool) -> Iterator[Column]:
    times = message("× baseline")
    listed: list[tuple[str, Message, Message, str]] = [
        ("ratio", message("servers replaced, or times as fast"), times, RATIO),
        ("lo", message("from"), times, RATIO),
        ("hi", message("to"), times, RATIO),
        ("verdict", message("verdict"), message("verdict"), ""),
    ]
    if is_replaced:
        listed += [
            ("needed", message("needed instead"), message("servers"), INTEGER),
            ("needed_lo", message("needed, from"), message("servers"), INTEGER),
            ("needed_hi", message("needed, to"), message("servers"), INTEGER),
        ]
    listed += [
        ("workload_lo", message("your workload from"), times, RATIO),
        ("workload_hi", message("your workload to"), times, RATIO),
    ]
    for key, title, unit, form in listed:
        role = "number" if form else "verdict"
        rules = ratios.verdict_rules(f"verdict_{k}", say) if key == "verdict" else ()
        yield Column(f"{key}_{k}", title, role, unit=unit, group=side, form=form, rules=rules)  # type: ignore[arg-type]


def _converted(k: int, line: ClassRow | None, servers: int, *, is_replaced: bool) -> list[Cell]:
    """Return the cells of one candidate: live copies of the tab Classes, and the number of needed servers."""
    if line is None:
        return [Cell()] * (9 if is_replaced else 6)
    ratio, kind = line.ratio, line.kind
    values = (ratio.value, ratio.lo, ratio.hi) if ratio else (None, None, None)

    def copied(key: str) -> str:
        return f'=IF({line.cell(key)}="","",{line.cell(key)})'

    shown = [figure(value, copied(key)) for key, value in zip(("ratio", "lo", "hi"), values, strict=True)]
    verdict = ratios.shown_verdict(ratio if line.is_judged else None)
    row = [*shown, replace(verdict, formula=copied("verdict"))]
    if is_replaced and kind == Kind.CAPACITY:
        for key, end in zip(("ratio", "hi", "lo"), (values[0], values[2], values[1]), strict=True):
            count = None if end is None else needed(servers, end)
            reference = f"{{{key}_{k}}}"
            row.append(figure(count, f'=IF({reference}="","",ROUNDUP({answer.SERVERS}/{reference}-{ROUNDING:.6f},0))'))
    elif is_replaced:
        row += [Cell()] * 3
    return [*row, *(figure(value, copied(key)) for key, value in classes.yours(line))]


def _bars(face: Face, capacity: int) -> Iterator[Chart]:
    if capacity:
        values = tuple(f"ratio_{k}" for k in range(len(face.candidates)))
        native = Native(
            kind="column",
            table="conversion",
            category="class",
            values=values,
            rows=capacity,
            colours=tuple(face.marks[side][0] for side in face.candidates if side in face.marks),
            axis=message("× baseline"),
        )
        yield Chart(message("Baseline servers that one candidate replaces"), "", "", native=native)


def _answers(face: Face, rows: Sequence[ClassRow], say: Say) -> Tabular:
    """Return a sentence with live numbers for each candidate and class. Benchmarks that disagree come first."""
    columns = (Column("candidate", message("candidate"), "side"), Column("answer", message("answer"), "text"))
    sentences = tuple((Cell(line.candidate.title), _answer(face, line, say)) for line in rows if line.is_judged)
    return Tabular("answers", message("Live from the other tabs"), columns, sentences)


def _answer(face: Face, line: ClassRow, say: Say) -> Cell:
    ratio, e, baseline = line.ratio, line.equivalence, face.comparison.baseline
    begin, end = f"{say(classes.title(line))}: ", f" × {fmt.clean(baseline)}"
    if line.kind == Kind.RESPONSIVENESS:
        end = say(message(" times as fast as {baseline}", baseline=baseline))
    mean, yours = f"{say(message('mean'))} ", f"; {say(message('your workload'))} "
    lo, hi = (value for _, value in classes.yours(line))
    if ratio is None:
        text = begin + say(line.equivalence.reason)
    else:
        apart = f"{e.lowest:,.2f} ({e.lowest_title}) – {e.highest:,.2f} ({e.highest_title}); {mean}"
        interval = f" ({ratio.lo:,.2f} – {ratio.hi:,.2f})" if ratio.interval else ""
        text = f"{begin}{apart if e.disagree and not line.equal_work else ''}{ratio.value:,.2f}{end}{interval}"
        text += f", {say(word(ratio.verdict))}" + (f"{yours}{lo:,.2f} – {hi:,.2f}" if lo and hi else "")
    lowest, highest = line.cell("lowest"), line.cell("highest")
    ends = f'" ("&FIXED({line.cell("lo")},2)&" – "&FIXED({line.cell("hi")},2)&")"'
    live = f'FIXED({line.cell("ratio")},2)&{quoted(end)}&IF({line.cell("lo")}="","",{ends})&", "&{line.cell("verdict")}'
    if not line.equal_work:
        both = f"AND({lowest}<1-{ratios.SAME_NAME},{highest}>1+{ratios.SAME_NAME})"
        lowest_title, highest_title = line.cell("lowest_title"), line.cell("highest_title")
        named = (
            f'FIXED({lowest},2)&" ("&{lowest_title}&") – "&FIXED({highest},2)&" ("&{highest_title}&"); "&{quoted(mean)}'
        )
        live = f'IF(OR({both},{highest}>{DISAGREE!r}*{lowest}),{named},"")&{live}'
    workload = f'FIXED({line.cell("workload_lo")},2)&" – "&FIXED({line.cell("workload_hi")},2)'
    live += f'&IF({line.cell("workload_lo")}="","",{quoted(yours)}&{workload})'
    return Cell(text, formula=f'={quoted(begin)}&IF({line.cell("ratio")}="",{line.cell("note")},{live})')


_HOW = (
    message("Yellow cells are inputs. When you change one, all results that depend on it are recalculated."),
    message("You can filter rows, but sort only copies, because formulas refer to ranges of other tabs."),
    message("Use the named cells (E_…, E_lo_…, E_hi_…) in your own workbooks."),
    message("Programs other than Excel and LibreOffice show the results that Fleetmark computed."),
)
