"""A comparison as its page shows it, per baseline: the answer, conversions, a table per class, what was left out."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from fleetmark.base.measurement import Kind
from fleetmark.base.units import human, significant
from planner.comparison import WORK_MIX, Comparison
from planner.equivalence import bounded
from planner.estimate import Estimate
from planner.guardrail import Held
from planner.ratio import Verdict
from reports.campaign.view import View
from reports.comparison import forest
from reports.comparison.model import (
    RatioRow,
    extent,
    figure,
    footnotes,
    half_width,
    hosts,
    p_value,
    plus_minus,
    question,
)
from reports.kit import charts
from reports.kit import format as fmt
from reports.report import Report

HELD = {Held.KEPT: "▲", Held.BROKEN: "▼", Held.CANNOT_TELL: "?"}
SIGNS = {Verdict.BETTER: "▲", Verdict.WORSE: "▼", Verdict.SAME: "=", Verdict.CANNOT_TELL: "?"}
_GREY = "#8C8C8C"
Marks = Mapping[str, tuple[str, int]]  # side's title to its colour, as in the charts, and the shape of its mark
_HUGE = 1e6  # a ratio from which on its digits say nothing


@dataclass(frozen=True, slots=True)
class RatioLine:
    """A row of a class's table, its figures as they are printed; a class's headline has no ``baseline``.

    ``workload``: a headline's interval of your workload; ``ends``: where its benchmarks disagree, between which.
    ``half``: what a column of ± sorts by. ``factor``: what one of ``unit`` is in the base unit ``row.unit``. ``again``:
    the line above has the same benchmark. ``plot`` is the ratio on its table's axis, ``key`` the candidate's mark; both
    are SVG.
    """

    row: RatioRow
    ratio: str
    interval: str
    plus_minus: str
    p: str
    n: str
    sign: str
    half: float | None = None
    extent: str = ""
    workload: str = ""
    ends: str = ""
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
    kind: str
    anchor: str
    heads: Sequence[RatioLine]
    lines: Sequence[RatioLine]
    axis: str
    left_out: int


@dataclass(frozen=True, slots=True)
class GuardLine:
    """A guardrail of one candidate, its figures as they are printed. ``again``: the line above has the same one."""

    row: RatioRow
    baseline: str
    candidate: str
    limit: str
    n: str
    sign: str
    key: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The summary of one candidate. ``of_mix``: the headline for the user's mix; ``least`` and ``most``: the
    lowest and the highest of the other headlines of capacity, ``slowest`` and ``fastest`` those of responsiveness, None
    where there is none. ``heads``: the headlines of capacity, and ``speeds`` those of responsiveness; where there is no
    capacity, they are the heads. ``guards``: the guardrails; ``broken``: those that are.
    """

    candidate: str
    key: str
    of_mix: RatioLine | None
    heads: Sequence[RatioLine]
    speeds: Sequence[RatioLine]
    least: RatioLine | None
    most: RatioLine | None
    slowest: RatioLine | None
    fastest: RatioLine | None
    guards: Sequence[GuardLine]

    @property
    def broken(self) -> Sequence[GuardLine]:
        """The guardrails that do not hold."""
        return [line for line in self.guards if line.row.verdict == Held.BROKEN]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What each candidate is worth, or how fast it is: a column for each class of one ``kind``. ``rows``: a candidate,
    its mark, and its cells.
    """

    kind: str
    classes: Sequence[str]
    rows: Sequence[tuple[str, str, Sequence[RatioLine | None]]]


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
    comparison: Comparison
    answers: Sequence[Answer]
    conversions: Sequence[Conversion]
    tables: Sequence[ClassTable]
    guards: Sequence[GuardLine]
    notes: Sequence[tuple[str, Sequence[str], str]]  # class, candidates, note on its headline
    footnotes: Sequence[str]
    gaps: Sequence[Gap]
    hosts_out: Sequence[HostOut]
    mix: Sequence[tuple[str, str]]  # class, its share

    @property
    def not_compared(self) -> int:
        """Benchmarks without a ratio for a candidate at least."""
        return len({title for gap in self.gaps for title in gap.titles})


def faces(report: Report, *, all_sides: bool = True) -> list[Face]:
    """The comparison with the user's baseline, then (``all_sides``) with each other side as the baseline."""
    assert report.comparison is not None
    comparisons = [(report.comparison, report.rows), *(report.turned.values() if all_sides else ())]
    marks = _marks(report)
    bits = _bits(report.view)
    return [_face(number, comparison, rows, marks, bits) for number, (comparison, rows) in enumerate(comparisons)]


def _marks(report: Report) -> dict[str, tuple[str, int]]:
    """Side to its colour, as in the charts, and the shape of its mark."""
    return {g: (c, i) for i, (g, c) in enumerate(charts.colour_of(report.view.generations).items())}


def _bits(view: View) -> frozenset[tuple[str, str, str]]:
    """Which (workload, case, metric) people read in bit/s."""
    metrics = view.stats.loc[view.stats["bits"].astype(bool), ["workload", "case", "metric"]].drop_duplicates()
    return frozenset(metrics.itertuples(index=False, name=None))


def _face(
    number: int,
    comparison: Comparison,
    rows: Sequence[RatioRow],
    marks: Marks,
    bits: frozenset[tuple[str, str, str]],
) -> Face:
    prefix = f"b{number}-" if number else ""
    sides = comparison.candidates
    guards = _guards(comparison, rows, marks)
    lines = _lines(comparison, [row for row in rows if row.kind != Kind.GUARDRAIL], marks, bits)
    heads = {(line.row.candidate, line.row.class_): line for line in lines if not line.row.benchmark}
    classes = list(dict.fromkeys(line.row.class_ for line in lines if not line.row.benchmark))
    return Face(
        number,
        prefix,
        comparison.baseline,
        question(comparison),
        comparison,
        [_answer(comparison, c.title, heads, classes, guards, marks) for c in comparison.candidates],
        [
            Conversion(
                kind, names, [(c.title, _key(c.title, marks), [heads.get((c.title, n)) for n in names]) for c in sides]
            )
            for kind, names in _by_kind(comparison, classes)
        ],
        _tables(comparison, lines, marks, prefix),
        guards,
        _notes(line for line in heads.values() if _must_know(comparison, line.row)),
        footnotes(comparison),
        _gaps(rows),
        [
            HostOut(c.title, name, host, why)
            for c in comparison.candidates
            for name, e in c.classes.items()
            for host, why in e.hosts_out.items()
        ],
        _mix(comparison),
    )


def _by_kind(comparison: Comparison, classes: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The kinds that have classes, each with these."""
    groups = [(kind, [n for n in classes if comparison.kind(n) == kind]) for kind in Kind]
    return [(kind.value, names) for kind, names in groups if names]


def _answer(
    comparison: Comparison,
    candidate: str,
    heads: Mapping[tuple[str, str], RatioLine],
    classes: Sequence[str],
    guards: Sequence[GuardLine],
    marks: Marks,
) -> Answer:
    groups = [
        (kind, [heads[candidate, name] for name in names if (candidate, name) in heads])
        for kind, names in _by_kind(comparison, classes)
    ]
    of = dict(groups)
    of_mix = next((line for line in of.get(Kind.CAPACITY, ()) if line.row.class_ == WORK_MIX), None)
    least, most = _ends(line for line in of.get(Kind.CAPACITY, ()) if line is not of_mix)
    slowest, fastest = _ends(of.get(Kind.RESPONSIVENESS, ()))
    mine = [replace(g, again=False) for g in guards if g.row.candidate == candidate]
    return Answer(
        candidate,
        _key(candidate, marks),
        of_mix,
        of.get(Kind.CAPACITY) or of.get(Kind.RESPONSIVENESS, []),
        of.get(Kind.RESPONSIVENESS, []) if of.get(Kind.CAPACITY) else [],
        least,
        most,
        slowest,
        fastest,
        mine,
    )


def _ends(lines: Iterable[RatioLine]) -> tuple[RatioLine | None, RatioLine | None]:
    """Those with the lowest and the highest ratio; None where none has one."""
    ranked = sorted((line for line in lines if line.ratio), key=lambda line: line.row.ratio or 0.0)
    return (ranked[0], ranked[-1]) if ranked else (None, None)


def _guards(comparison: Comparison, rows: Sequence[RatioRow], marks: Marks) -> list[GuardLine]:
    """The guardrails that both sides have, those of one benchmark below each other."""
    guards = sorted((row for row in rows if row.guardrail), key=lambda row: fmt.natural(row.benchmark))
    lines: list[GuardLine] = []
    for row in guards:
        a, b, limit = (
            "" if v is None else human(v, row.unit) for v in (row.baseline_value, row.candidate_value, row.limit)
        )
        again = bool(lines) and lines[-1].row.benchmark == row.benchmark
        sign = HELD[Held(row.verdict)]
        lines.append(GuardLine(row, a, b, limit, hosts(comparison, row), sign, _key(row.candidate, marks), again))
    return lines


def _mix(comparison: Comparison) -> list[tuple[str, str]]:
    """The user's work mix: each class with its share of the server-hours."""
    weights = next((c.classes[WORK_MIX].weights for c in comparison.candidates if WORK_MIX in c.classes), {})
    shares: dict[str, float] = defaultdict(float)
    for title, share in weights.items():
        shares[str(comparison.benchmarks.loc[title, "class"])] += share
    return [(name, fmt.percent(share)) for name, share in shares.items()]


def _must_know(comparison: Comparison, row: RatioRow) -> bool:
    """Whether a headline's note has more than the bootstrap's interval: gaps, hosts left out, or why there is none."""
    e = next(c for c in comparison.candidates if c.title == row.candidate).classes[row.class_]
    return bool(e.ratio is None or e.gaps or e.hosts_out)


def _notes(heads: Iterable[RatioLine]) -> list[tuple[str, Sequence[str], str]]:
    """Notes on headlines; the same note on several candidates appears once."""
    candidates_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in heads:
        if line.row.note:
            candidates_of[line.row.class_, line.row.note].append(line.row.candidate)
    return [(class_, candidates, note) for (class_, note), candidates in candidates_of.items()]


def _gaps(rows: Sequence[RatioRow]) -> list[Gap]:
    """Benchmarks without a ratio by reason, the most frequent first."""
    by_reason: dict[str, list[RatioRow]] = defaultdict(list)
    for row in rows:
        if row.left_out:
            by_reason[row.note].append(row)
    gaps = [
        Gap(why, list(dict.fromkeys(r.candidate for r in group)), list(dict.fromkeys(r.benchmark for r in group)))
        for why, group in by_reason.items()
    ]
    return sorted(gaps, key=lambda gap: -len(gap.titles))


# --- tables ----------------------------------------------------------------------------------------------------------


def _tables(comparison: Comparison, lines: Sequence[RatioLine], marks: Marks, prefix: str) -> list[ClassTable]:
    by_class: dict[str, list[RatioLine]] = defaultdict(list)
    for line in lines:
        by_class[line.row.class_].append(line)
    anchors = _anchors(list(by_class), prefix)
    tables = [_table(name, comparison.kind(name), anchors[name], group, marks) for name, group in by_class.items()]
    return sorted(tables, key=lambda table: list(Kind).index(Kind(table.kind)))


def _table(name: str, kind: str, anchor: str, lines: Sequence[RatioLine], marks: Marks) -> ClassTable:
    axis = forest.axis_of(line.row.estimate for line in lines if line.row.estimate)

    def plotted(line: RatioLine, again: bool = False) -> RatioLine:
        row = line.row
        colour, shape = marks.get(row.candidate, (_GREY, 0))
        plot = forest.plot(axis, row.estimate, colour, shape, headline=not row.benchmark)
        return replace(line, again=again, plot=plot)

    heads = [plotted(line) for line in lines if not line.row.benchmark]
    by_title: dict[str, list[RatioLine]] = defaultdict(list)
    for line in lines:
        if line.row.benchmark:
            by_title[line.row.benchmark].append(line)
    # Benchmarks without a ratio for any candidate come last.
    order = sorted(by_title, key=lambda t: (all(x.row.ratio is None for x in by_title[t]), fmt.natural(t)))
    benchmarks = [plotted(line, again=i > 0) for title in order for i, line in enumerate(by_title[title])]
    excluded = sum(all(x.row.ratio is None for x in group) for group in by_title.values())
    return ClassTable(name, kind, anchor, heads, benchmarks, forest.scale(axis), excluded)


def _anchors(names: Sequence[str], prefix: str) -> dict[str, str]:
    """An id for each class, from its name as far as that goes."""
    anchors: dict[str, str] = {}
    for name in names:
        slug = f"{prefix}class-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"
        anchors[name] = slug if slug not in anchors.values() else f"{slug}-{len(anchors)}"
    return anchors


def _lines(
    comparison: Comparison,
    rows: Sequence[RatioRow],
    marks: Marks,
    bits: frozenset[tuple[str, str, str]],
) -> list[RatioLine]:
    """Every row as it is printed, without its place in a table."""
    scales = _scales(comparison, rows, bits)
    return [_line(comparison, row, scales.get(row.benchmark), marks) for row in rows]


def _line(comparison: Comparison, row: RatioRow, shown: fmt.Shown | None, marks: Marks) -> RatioLine:
    estimate = row.estimate
    decimals = _decimals(estimate) if estimate else None
    ends = (estimate.interval if estimate else None) or ()
    a, b = row.baseline_value, row.candidate_value
    return RatioLine(
        row,
        _fixed(row.ratio, decimals),
        "–".join(_fixed(end, decimals) for end in ends),
        plus_minus(row),
        p_value(row),
        hosts(comparison, row),
        SIGNS[Verdict(row.verdict)] if row.verdict else "",
        half=half_width(row),
        extent=extent(row) if row.lowest is not None and figure(row.lowest) != figure(row.highest) else "",
        workload=_workload(row),
        ends=row.ends if row.disagree and row.work is None else "",
        baseline=shown.number(a) if shown and a is not None else "",
        candidate=shown.number(b) if shown and b is not None else "",
        unit=shown.unit if shown else "",
        factor=1 / shown.factor if shown else 1.0,
        key=_key(row.candidate, marks),
    )


def _workload(row: RatioRow) -> str:
    lo, hi = row.your_workload_lo, row.your_workload_hi
    if row.ratio is None or not bounded(lo, hi):
        return ""
    decimals = _decimals(Estimate(row.ratio, lo, hi))
    return f"{_fixed(lo, decimals)}–{_fixed(hi, decimals)}"


def _scales(
    comparison: Comparison, rows: Sequence[RatioRow], bits: frozenset[tuple[str, str, str]]
) -> dict[str, fmt.Shown]:
    """Benchmark to the one way to write its figures of all sides."""
    values: dict[str, dict[tuple[str, float], None]] = defaultdict(dict)
    for row in rows:
        if row.benchmark and row.unit:
            for value in (row.baseline_value, row.candidate_value):
                if value is not None:
                    values[row.benchmark][row.unit, value] = None
    about = pd.DataFrame(comparison.benchmarks)[["workload", "case", "metric"]]
    names = dict(zip(about.index, about.itertuples(index=False, name=None), strict=True))
    return {
        title: fmt.fit(((v, math.nan, math.nan) for _, v in pairs), next(iter(pairs))[0], bits=names.get(title) in bits)
        for title, pairs in values.items()
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


def _key(candidate: str, marks: Marks) -> str:
    colour, shape = marks.get(candidate, (_GREY, 0))
    return forest.key(colour, shape)
