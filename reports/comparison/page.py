"""A comparison as its page shows it, per baseline: the answer, conversions, a table per class, what was left out."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from fleetmark.base.units import significant
from planner.comparison import WORK_MIX, Comparison
from planner.equivalence import WHOLE
from planner.estimate import Estimate
from planner.ratio import Verdict
from reports.campaign.view import View
from reports.comparison import forest
from reports.comparison.model import Row, extent, figure, footnotes, half_width, hosts, p_value, plus_minus, question
from reports.kit import charts
from reports.kit import format as fmt
from reports.report import Report

SIGNS = {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.SAME: "=", Verdict.CANNOT_TELL: "?"}
_GREY = "#8C8C8C"
_HUGE = 1e6  # a ratio from which on its digits say nothing


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a class's table, its figures as they are printed; a class's headline has no ``baseline``.

    ``half``: what a column of ± sorts by. ``factor``: what one of ``unit`` is in the base unit ``row.unit``. ``again``:
    the benchmark's name stands above. ``plot`` is the ratio on its table's axis, ``key`` the candidate's mark; both are
    SVG.
    """

    row: Row
    ratio: str
    interval: str
    plus_minus: str
    p: str
    n: str
    sign: str
    half: float | None = None
    extent: str = ""
    baseline: str = ""
    candidate: str = ""
    unit: str = ""
    factor: float = 1.0
    again: bool = False
    plot: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ClassTable:
    """A class of work: its headlines, a line per candidate, and its benchmarks, those not compared at the end."""

    name: str
    anchor: str
    heads: Sequence[Line]
    lines: Sequence[Line]
    axis: str
    left_out: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one candidate first. ``of_mix``: the headline for the user's mix; ``least`` and ``most``: the
    lowest and the highest of the other headlines, None where there is none.
    """

    candidate: str
    key: str
    of_mix: Line | None
    heads: Sequence[Line]
    least: Line | None
    most: Line | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Benchmarks that were not compared for one reason."""

    reason: str
    candidates: Sequence[str]
    titles: Sequence[str]


@dataclass(frozen=True, slots=True)
class HostOut:
    """A host that a class's headline does without."""

    candidate: str
    class_: str
    host: str
    reason: str


@dataclass(frozen=True, slots=True)
class Face:
    """The comparison seen from one baseline. ``prefix`` begins the ids of all its anchors; empty for the first."""

    number: int
    prefix: str
    baseline: str
    question: str
    found: Comparison
    answers: Sequence[Answer]
    conversions: Sequence[tuple[str, str, Sequence[Line | None]]]  # candidate, its mark, a cell for each class
    classes: Sequence[str]
    tables: Sequence[ClassTable]
    notes: Sequence[tuple[str, Sequence[str], str]]  # class, candidates, what is to be known of its headline
    footnotes: Sequence[str]
    gaps: Sequence[Gap]
    hosts_out: Sequence[HostOut]
    mix: Sequence[tuple[str, str]]  # class, its share

    @property
    def not_compared(self) -> int:
        """Benchmarks without a ratio for a candidate at least."""
        return len({title for gap in self.gaps for title in gap.titles})


def faces(report: Report, *, all_sides: bool = True) -> list[Face]:
    """The comparison as it was asked for, then (``all_sides``) with each other side as the baseline."""
    assert report.comparison is not None
    seen = [(report.comparison, report.rows), *(report.turned.values() if all_sides else ())]
    marks = _marks(report)
    bits = _bits(report.view)
    return [_face(number, found, rows, marks, bits) for number, (found, rows) in enumerate(seen)]


def _marks(report: Report) -> dict[str, tuple[str, int]]:
    """Side to its colour, as in the charts, and the shape of its mark."""
    return {g: (c, i) for i, (g, c) in enumerate(charts.colour_of(report.view.generations).items())}


def _bits(view: View) -> frozenset[tuple[str, str, str]]:
    """Which (workload, case, metric) people read in bit/s."""
    found = view.stats.loc[view.stats["bits"].astype(bool), ["workload", "case", "metric"]].drop_duplicates()
    return frozenset(found.itertuples(index=False, name=None))


def _face(
    number: int,
    found: Comparison,
    rows: Sequence[Row],
    marks: Mapping[str, tuple[str, int]],
    bits: frozenset[tuple[str, str, str]],
) -> Face:
    prefix = f"b{number}-" if number else ""
    lines = _lines(found, rows, marks, bits)
    heads = {(line.row.candidate, line.row.class_): line for line in lines if not line.row.benchmark}
    classes = list(dict.fromkeys(row.class_ for row in rows if not row.benchmark))
    return Face(
        number,
        prefix,
        found.baseline,
        question(found),
        found,
        [_answer(c.title, heads, classes, marks) for c in found.candidates],
        [(c.title, _key(c.title, marks), [heads.get((c.title, name)) for name in classes]) for c in found.candidates],
        classes,
        _tables(lines, marks, prefix),
        _notes(line for line in heads.values() if _must_know(found, line.row)),
        footnotes(found),
        _gaps(rows),
        [
            HostOut(c.title, name, host, why)
            for c in found.candidates
            for name, e in c.classes.items()
            for host, why in e.hosts_out.items()
        ],
        _mix(found),
    )


def _answer(
    candidate: str, heads: Mapping[tuple[str, str], Line], classes: Sequence[str], marks: Mapping[str, tuple[str, int]]
) -> Answer:
    mine = [heads[candidate, name] for name in classes if (candidate, name) in heads]
    of_mix = next((line for line in mine if line.row.class_ == WORK_MIX), None)
    known = sorted((line for line in mine if line.ratio and line is not of_mix), key=lambda line: line.row.ratio or 0.0)
    least, most = (known[0], known[-1]) if known else (None, None)
    return Answer(candidate, _key(candidate, marks), of_mix, mine, least, most)


def _mix(found: Comparison) -> list[tuple[str, str]]:
    """The work mix that was given: each class with its share of the server-hours."""
    wanted = next((c.classes[WORK_MIX].wanted for c in found.candidates if WORK_MIX in c.classes), {})
    shares: dict[str, float] = defaultdict(float)
    for title, share in wanted.items():
        shares[str(found.benchmarks.loc[title, "class"])] += share
    return [(name, fmt.percent(share)) for name, share in shares.items()]


def _must_know(found: Comparison, row: Row) -> bool:
    """Whether a headline's note says more than how sure it is: gaps, one host, a mix that decides, hosts left out."""
    e = next(c for c in found.candidates if c.title == row.candidate).classes[row.class_]
    return bool(e.ratio is None or e.ratio.interval is None or e.covered < WHOLE or e.work or e.hosts_out)


def _notes(heads: Iterable[Line]) -> list[tuple[str, Sequence[str], str]]:
    """What is to be known of headlines, that of several candidates said once."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in heads:
        if line.row.note:
            found[line.row.class_, line.row.note].append(line.row.candidate)
    return [(class_, candidates, note) for (class_, note), candidates in found.items()]


def _gaps(rows: Sequence[Row]) -> list[Gap]:
    """What has no ratio, reason by reason, the most frequent first."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.benchmark and row.ratio is None:
            found[row.note].append(row)
    gaps = [
        Gap(why, list(dict.fromkeys(r.candidate for r in mine)), list(dict.fromkeys(r.benchmark for r in mine)))
        for why, mine in found.items()
    ]
    return sorted(gaps, key=lambda gap: -len(gap.titles))


# --- tables ----------------------------------------------------------------------------------------------------------


def _tables(lines: Sequence[Line], marks: Mapping[str, tuple[str, int]], prefix: str) -> list[ClassTable]:
    of: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        of[line.row.class_].append(line)
    anchors = _anchors(list(of), prefix)
    return [_table(name, anchors[name], mine, marks) for name, mine in of.items()]


def _table(name: str, anchor: str, lines: Sequence[Line], marks: Mapping[str, tuple[str, int]]) -> ClassTable:
    axis = forest.axis_of(line.row.estimate for line in lines if line.row.estimate)

    def drawn(line: Line, again: bool = False) -> Line:
        row = line.row
        colour, shape = marks.get(row.candidate, (_GREY, 0))
        plot = forest.plot(axis, row.estimate, colour, shape, headline=not row.benchmark)
        return replace(line, again=again, plot=plot)

    heads = [drawn(line) for line in lines if not line.row.benchmark]
    by_title: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.row.benchmark:
            by_title[line.row.benchmark].append(line)
    # What no candidate could be compared in stands last.
    order = sorted(by_title, key=lambda t: (all(x.row.ratio is None for x in by_title[t]), fmt.natural(t)))
    benchmarks = [drawn(line, again=i > 0) for title in order for i, line in enumerate(by_title[title])]
    out = sum(all(x.row.ratio is None for x in mine) for mine in by_title.values())
    return ClassTable(name, anchor, heads, benchmarks, forest.scale(axis), out)


def _anchors(names: Sequence[str], prefix: str) -> dict[str, str]:
    """An id for each class, from its name as far as that goes."""
    made: dict[str, str] = {}
    for name in names:
        slug = f"{prefix}class-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"
        made[name] = slug if slug not in made.values() else f"{slug}-{len(made)}"
    return made


def _lines(
    found: Comparison,
    rows: Sequence[Row],
    marks: Mapping[str, tuple[str, int]],
    bits: frozenset[tuple[str, str, str]],
) -> list[Line]:
    """Every row as it is printed, without its place in a table."""
    scales = _scales(found, rows, bits)
    return [_line(found, row, scales.get(row.benchmark), marks) for row in rows]


def _line(found: Comparison, row: Row, shown: fmt.Shown | None, marks: Mapping[str, tuple[str, int]]) -> Line:
    estimate = row.estimate
    decimals = _decimals(estimate) if estimate else None
    ends = (estimate.interval if estimate else None) or ()
    a, b = row.baseline_value, row.candidate_value
    return Line(
        row,
        _fixed(row.ratio, decimals),
        "–".join(_fixed(end, decimals) for end in ends),
        plus_minus(row),
        p_value(row),
        hosts(found, row),
        SIGNS[Verdict(row.verdict)] if row.verdict else "",
        half=half_width(row),
        extent=extent(row) if row.lowest is not None and figure(row.lowest) != figure(row.highest) else "",
        baseline=shown.number(a) if shown and a is not None else "",
        candidate=shown.number(b) if shown and b is not None else "",
        unit=shown.unit if shown else "",
        factor=1 / shown.factor if shown else 1.0,
        key=_key(row.candidate, marks),
    )


def _scales(found: Comparison, rows: Sequence[Row], bits: frozenset[tuple[str, str, str]]) -> dict[str, fmt.Shown]:
    """Benchmark to the one way to write its figures of all sides."""
    values: dict[str, dict[tuple[str, float], None]] = defaultdict(dict)
    for row in rows:
        if row.benchmark and row.unit:
            for value in (row.baseline_value, row.candidate_value):
                if value is not None:
                    values[row.benchmark][row.unit, value] = None
    about = pd.DataFrame(found.benchmarks)[["workload", "case", "metric"]]
    names = dict(zip(about.index, about.itertuples(index=False, name=None), strict=True))
    return {
        title: fmt.fit(((v, math.nan, math.nan) for _, v in known), next(iter(known))[0], bits=names.get(title) in bits)
        for title, known in values.items()
    }


def _decimals(ratio: Estimate) -> int:
    """Decimals that the interval supports: 2 to 4 significant digits, the last at most half of the half interval."""
    two = 1 - math.floor(math.log10(ratio.value))
    if ratio.interval is None:
        return max(0, two + 1)
    lo, hi = ratio.interval
    half = (hi - lo) / 2
    decimals = two + 2 if half == 0 else -math.floor(math.log10(half / 2))
    return max(0, min(max(decimals, two), two + 2))


def _fixed(value: float | None, decimals: int | None) -> str:
    if value is None:
        return ""
    if decimals is None:
        return significant(value, 3)
    # An end far from its ratio: neither a false 0 nor a row of digits.
    plain = 10.0 ** (1 - decimals) <= value < _HUGE
    return f"{value:,.{decimals}f}" if plain else significant(value, 2)


def _key(candidate: str, marks: Mapping[str, tuple[str, int]]) -> str:
    colour, shape = marks.get(candidate, (_GREY, 0))
    return forest.key(colour, shape)
