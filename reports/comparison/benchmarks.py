"""Build the section of every benchmark of a comparison: figures, ratios and intervals by class, and the guardrails."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from fleetmark.base.measurement import Kind as MetricKind
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Comparison
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.guardrail import Held
from fleetmark.planner.ratio import Verdict
from fleetmark.reports.comparison import forest
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.first import VERDICTS
from fleetmark.reports.comparison.headline import short_titles
from fleetmark.reports.comparison.model import RatioRow
from fleetmark.reports.comparison.titles import basis_title, class_title, per_title, spaced
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Row, Tabular, Tone
from fleetmark.workloads.declared import counted, in_bits, in_percent

MOST_VALUES = 2  # candidates whose values a terminal shows; with more, it shows only ratios

Cells = Mapping[str, RatioRow]  # a class or benchmark: maps candidate to its row
_HELD: Mapping[str, Tone] = {Held.KEPT: "good", Held.BROKEN: "bad", Held.CANNOT_TELL: "unsure"}


def section(face: Face) -> Section:
    """Return the section of all benchmarks."""
    tables = tuple(_tables(face))
    return Section(
        "ratios",
        message("Benchmarks"),
        (*(_notes(face) if tables else ()), *tables, *guardrails(face)),
        ("html", "pdf", "terminal", "markdown"),
    )


def _notes(face: Face) -> Iterator[Note]:
    comparison = face.comparison
    sentences = [
        message(
            "Above 1, the candidate is better: for latency too. Figures are geometric means over the hosts of a side; "
            "brackets are 95% intervals; a hollow mark has none."
        ),
        _usual_hosts(comparison, _usual(face)),
    ]
    if comparison.pairing is Pairing.SAME_HOSTS:
        sentences.append(message("Figures are means over all hosts of a side, ratios over those measured on both."))
    if comparison.per != "server":
        sentences.append(
            message(
                "Ratios of capacity are per {per}, those of responsiveness are not; the figures next to them are for "
                "whole servers.",
                per=per_title(comparison.per),
            )
        )
    yield Note(joined(filter(None, sentences), " "), quiet=True)


def _tables(face: Face) -> Iterator[Tabular]:
    usual, scales = _usual(face), scales_of(face.comparison, face.rows)
    columns = [
        Column("benchmark", message("benchmark"), "name", only=("html", "pdf", "markdown")),
        Column("short", message("benchmark"), "name", only=("terminal",)),
        Column(
            "plot",
            message("ratio and 95% interval, log scale"),
            only=("html", "pdf"),
            plot=forest.scale(face.axis),
        ),
    ]
    values: tuple[Kind, ...] = () if len(face.candidates) <= MOST_VALUES else ("html", "pdf", "markdown")
    for n, side in enumerate(face.candidates):
        columns.append(Column(f"ratio_{n}", message("ratio"), "number", group=fmt.clean(side), plot=face.mark(side)))
        columns.append(Column(f"value_{n}", message("value"), "number", group=fmt.clean(side), only=values))
    columns.append(Column("baseline", fmt.clean(face.comparison.baseline), "number"))
    rows: list[Row] = []
    heads = set()
    for name, members in _classes(face):
        entries = {t: cells for t, cells in members.items() if t and any(r.ratio is not None for r in cells.values())}
        heads.add(len(rows))
        rows.append(_head(face, name, members, len(entries), usual))
        short = short_titles(entries, face.comparison.benchmarks.loc[list(entries), "metric"])
        standing = _standing(members.get("", {}))
        for title in sorted(entries, key=fmt.natural):
            rows.append(_entry(face, entries[title], short[title], scales.get(title), usual, standing))
    if rows:
        title = message("Ratios of every benchmark, class by class")
        limits: Mapping[Kind, int] = {"terminal": len(rows), "markdown": len(rows)}
        yield Tabular("ratios", title, tuple(columns), tuple(rows), heads=frozenset(heads), limits=limits)


def _classes(face: Face) -> list[tuple[str, Mapping[str, Cells]]]:
    """Return each class with its rows by benchmark: the mix, then capacity classes, then the others."""
    members: dict[str, dict[str, dict[str, RatioRow]]] = {}
    for row in face.rows:
        if row.kind in (MetricKind.CAPACITY, MetricKind.RESPONSIVENESS):
            members.setdefault(row.class_, {}).setdefault(row.benchmark, {})[row.candidate] = row
    compared: list[tuple[str, Mapping[str, Cells]]] = [
        (name, benchmarks)
        for name, benchmarks in members.items()
        if any(row.ratio is not None for cells in benchmarks.values() for row in cells.values())
    ]
    return sorted(compared, key=lambda item: face.comparison.kind(item[0]) != MetricKind.CAPACITY)


def _head(face: Face, name: str, members: Mapping[str, Cells], entries: int, usual: Usual) -> Row:
    """Return the row of a class."""
    cells = members.get("", {})
    comparison = face.comparison
    title = comparison.called.get(name) or class_title(name)
    left_out = len(members) - entries - ("" in members)
    standing = _standing(cells)
    basis = basis_title({r.candidate: r.size or r.basis for r in cells.values() if r.ratio is not None})
    remarks = tuple(text for text in (basis, word(standing) if standing else "") if text)
    facts = joined(
        [
            fmt.clean(name) if title != name else None,
            _entries(max((row.benchmarks for row in cells.values()), default=0) or entries, entries),
            message("{n} not compared", n=left_out) if left_out else None,
            message("times as fast") if comparison.kind(name) == MetricKind.RESPONSIVENESS else None,
        ],
        " · ",
    )
    shown = Cell(title, details=(*([facts] if facts else []), *remarks), anchor=anchor_of(name))
    return (shown, Cell(title, details=remarks), *_figures(face, cells, None, is_head=True))


def _entries(benchmarks: int, rows: int) -> Message | None:
    """Return the number of benchmarks of a class; variants of one benchmark have several rows."""
    if not rows or benchmarks == rows:
        return count(rows, "benchmark") if rows else None
    return message("{benchmarks} in {n} rows", benchmarks=count(benchmarks, "benchmark"), n=rows)


def anchor_of(class_: str) -> str:
    """Return the address of a class on its page, such as ``class-mem-bw``."""
    return f"class-{re.sub(r'[^a-z0-9]+', '-', class_.lower()).strip('-')}"


def _entry(face: Face, cells: Cells, short: str, shown: fmt.Shown | None, usual: Usual, class_standing: str) -> Row:
    """Return the row of a benchmark."""
    title = next(row.benchmark for row in cells.values())
    standing = _standing(cells)
    notes = dict.fromkeys(row.note for row in cells.values() if row.note)
    unlike = [r for r in cells.values() if r.ratio and (r.hosts_baseline, r.hosts_candidate) != usual[r.candidate]]
    hosts = f"n {joined(hosts_of(face.comparison, row) for row in unlike)}" if unlike else ""
    remarks = tuple(filter(None, (joined(notes, "; "), hosts)))
    standings = (word(standing),) if standing else ()
    name = Cell(title, details=(*standings, *remarks))
    brief = Cell(short, details=remarks if standing == class_standing else name.details)
    return (name, brief, *_figures(face, cells, shown, is_head=False))


def _figures(face: Face, cells: Cells, shown: fmt.Shown | None, *, is_head: bool) -> Iterator[Cell]:
    """Yield the plot, the ratio and the figure of each candidate, and the baseline's figure.

    The ratio is next to the name, so that a narrow screen shows it without scrolling.
    """
    rows = [cells.get(side) for side in face.candidates]
    yield Cell(plot=face.plot([row.estimate if row else None for row in rows], is_headline=is_head))
    unit = next((row.unit for row in cells.values()), "")
    for row in rows:
        yield _ratio(row, face.origins, has_verdict=face.has_verdicts)
        yield _value(row.candidate_value if row else None, shown, unit)
    yield _value(next((r.baseline_value for r in rows if r and r.baseline_value is not None), None), shown, unit)


def _value(value: float | None, shown: fmt.Shown | None, unit: str) -> Cell:
    return Cell() if value is None or shown is None else Cell(shown.quantity(value), value, unit if shown.unit else "")


def _ratio(row: RatioRow | None, origins: Mapping[str, int], *, has_verdict: bool) -> Cell:
    """Return the ratio of a class or benchmark with its interval and verdict.

    ``has_verdict``: whether any row has a verdict.
    """
    if row is None or row.ratio is None:
        return Cell()
    details = (word(row.verdict),) if has_verdict and row.verdict not in ("", Verdict.BETTER) else ()
    return Cell(
        fmt.ratio(row.ratio),
        row.ratio,
        lo=row.lo,
        hi=row.hi,
        ends=fmt.interval(row.lo, row.hi),
        tone=VERDICTS.get(row.verdict, "") if has_verdict else "",
        details=details,
        origin=origins.get(row.benchmark),
    )


def _standing(cells: Cells) -> str:
    return next((row.standing for row in cells.values() if row.standing), "")


# --- numbers of hosts behind figures ----------------------------------------------------------------------------------

Usual = Mapping[str, tuple[int, int]]  # candidate to the usual numbers of hosts of both sides behind its ratios


def hosts_of(comparison: Comparison, row: RatioRow) -> str:
    """Return the hosts of baseline and candidate, such as ``6+4``, or only the candidate's for a pinned reference."""
    is_pinned = comparison.pairing is Pairing.PINNED
    return str(row.hosts_candidate) if is_pinned else f"{row.hosts_baseline}+{row.hosts_candidate}"


def _usual(face: Face) -> Usual:
    numbers: dict[str, Counter[tuple[int, int]]] = {side: Counter() for side in face.candidates}
    for row in face.rows:
        if row.ratio is not None:
            numbers[row.candidate][row.hosts_baseline, row.hosts_candidate] += 1
    return {side: counts.most_common(1)[0][0] if counts else (0, 0) for side, counts in numbers.items()}


def _usual_hosts(comparison: Comparison, usual: Usual) -> str:
    known = {side: n for side, n in usual.items() if n != (0, 0)}
    if not known:
        return ""
    base = max(n[0] for n in known.values())
    sides = [] if comparison.pairing is Pairing.PINNED else [(comparison.baseline, base)]
    sides += [(side, n[1]) for side, n in known.items()]
    parts = [spaced(fmt.clean(side), _counted(comparison, side, n)) for side, n in sides]
    return message("Unless a row says otherwise: {sides}.", sides=joined(parts))


def _counted(comparison: Comparison, side: str, n: int) -> Message:
    label = comparison.grouped.get(side)
    return count(n, "host") if label is None else message("{n} (one per {label})", n=n, label=word(label))


def scales_of(comparison: Comparison, rows: Sequence[RatioRow]) -> dict[str, fmt.Shown]:
    """Return the unit and digits for the figures of all sides, for each benchmark."""
    values: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for row in rows:
        if row.benchmark and row.unit:
            units.setdefault(row.benchmark, row.unit)
            figures = (row.baseline_value, row.candidate_value, row.limit)
            values.setdefault(row.benchmark, []).extend(v for v in figures if v is not None)
    facts = comparison.benchmarks
    names = dict(zip(facts.index, zip(facts["workload"], facts["metric"], strict=True), strict=True))
    return {
        title: fmt.fit(
            ((value, math.nan, math.nan) for value in dict.fromkeys(figures)),
            units[title],
            bits=in_bits(*map(str, names[title])),
            percent=in_percent(*map(str, names[title])),
            counted=counted(*map(str, names[title])),
        )
        for title, figures in values.items()
    }


# --- guardrails ------------------------------------------------------------------------------------------------------


def guardrails(face: Face) -> Iterator[Exhibit]:
    """Yield the guardrails with the figures of both sides and the limit, if there are any."""
    rows = sorted((row for row in face.rows if row.guardrail), key=lambda row: fmt.natural(row.benchmark))
    if not rows:
        return
    scales = scales_of(face.comparison, face.rows)
    columns = (
        Column("benchmark", message("benchmark"), "name"),
        Column("candidate", message("candidate"), "side"),
        Column("guardrail", message("guardrail"), "verdict"),
        Column("baseline", fmt.clean(face.comparison.baseline), "number"),
        Column("value", message("candidate's value"), "number"),
        Column("limit", message("limit"), "number"),
        Column("note", message("note"), "note"),
    )
    notes = (
        message(
            "Guardrails must be kept: every host must meet a given limit, and without a limit the candidate must "
            "not be worse than the baseline."
        ),
    )
    cells = tuple(_guard(row, scales[row.benchmark]) for row in rows)
    limits: Mapping[Kind, int] = {"terminal": len(cells), "markdown": len(cells)}
    yield Tabular("guardrails", message("Guardrails"), columns, cells, notes=notes, limits=limits)


def _guard(row: RatioRow, shown: fmt.Shown) -> Row:
    figures = (row.baseline_value, row.candidate_value, row.limit)
    return (
        Cell(row.benchmark, details=(word(row.standing),) if row.standing else ()),
        Cell(row.candidate),
        Cell(word(row.verdict), tone=_HELD[row.verdict]),
        *(_value(value, shown, row.unit) for value in figures),
        Cell(row.note),
    )
