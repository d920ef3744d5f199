"""The table below the first screen, as text: classes and benchmarks with figures, ratios and intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.measurement import Kind
from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.words import word
from planner.comparison import Comparison
from planner.contrast import Pairing
from reports.comparison.model import RatioRow
from reports.comparison.titles import basis_title, class_title, spaced
from reports.kit import format as fmt
from workloads.declared import in_bits, in_percent


@dataclass(frozen=True, slots=True)
class Figure:
    """A candidate's part of an entry, as text that may be empty.

    ``value``: the candidate's figure in the entry's unit. ``ratio``, ``interval``: its ratio to the baseline. ``row``:
    the numbers. ``workload``: the prediction interval of a class for another workload.
    """

    row: RatioRow | None = None
    value: str = ""
    ratio: str = ""
    interval: str = ""
    workload: str = ""
    lo: str = ""
    hi: str = ""

    @property
    def text(self) -> str:
        """Return the ratio with its interval, such as ``2.32 (2.21–2.44)``."""
        return f"{self.ratio} ({self.interval})" if self.interval else self.ratio


@dataclass(frozen=True, slots=True)
class Entry:
    """A class (with ``benchmark`` empty) or a benchmark, with a figure for each candidate.

    ``baseline``: the baseline's figure in ``unit``, which is ``factor`` times ``base``. ``hosts``: the number of hosts
    if it is not the usual one. ``note``: a remark. ``basis``: the basis of a class that is not a mean over hosts.
    """

    class_: str
    benchmark: str
    figures: tuple[Figure, ...]
    baseline: str = ""
    unit: str = ""
    base: str = ""
    factor: float = 1.0
    standing: str = ""
    note: str = ""
    hosts: str = ""
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A class with its benchmarks. ``left_out``: the number of benchmarks not compared with any candidate."""

    class_: str
    title: str
    kind: str
    head: Entry
    entries: tuple[Entry, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Guard:
    """A guardrail of one candidate as text."""

    row: RatioRow
    baseline: str
    candidate: str
    limit: str


@dataclass(frozen=True, slots=True)
class Table:
    """The whole table. ``usual``: the number of hosts behind a figure, unless its entry gives another."""

    groups: tuple[Group, ...]
    guards: tuple[Guard, ...]
    usual: str


def table(comparison: Comparison, rows: Sequence[RatioRow]) -> Table:
    """Return the table: the mix, then classes of capacity, then the others. Benchmarks are in natural order."""
    scales = _scales(comparison, rows)
    usual = _usual(comparison, rows)
    cells: dict[str, dict[str, dict[str, RatioRow]]] = {}  # class, benchmark, candidate
    for row in rows:
        if row.kind in (Kind.CAPACITY, Kind.RESPONSIVENESS):
            cells.setdefault(row.class_, {}).setdefault(row.benchmark, {})[row.candidate] = row
    groups = []
    for name, of_class in cells.items():
        if all(r.left_out or (not r.benchmark and r.ratio is None) for of in of_class.values() for r in of.values()):
            continue  # listed with the benchmarks that were not compared
        compared = {t: of for t, of in of_class.items() if t and any(r.ratio is not None for r in of.values())}
        entries = [
            _entry(comparison, name, t, compared[t], scales.get(t), usual) for t in sorted(compared, key=fmt.natural)
        ]
        head = _entry(comparison, name, "", of_class.get("", {}), None, usual)
        out = len(of_class) - len(compared) - ("" in of_class)
        title = comparison.called.get(name) or class_title(name)
        groups.append(Group(name, title, comparison.kind(name), head, tuple(entries), out))
    order = [Kind.CAPACITY.value, Kind.RESPONSIVENESS.value]
    groups.sort(key=lambda g: order.index(g.kind))
    guards = sorted((r for r in rows if r.guardrail), key=lambda r: fmt.natural(r.benchmark))
    return Table(tuple(groups), tuple(_guard(row, scales[row.benchmark]) for row in guards), _said(comparison, usual))


def _entry(
    comparison: Comparison,
    class_: str,
    title: str,
    of: Mapping[str, RatioRow],
    shown: fmt.Shown | None,
    usual: Mapping[str, tuple[int, int]],
) -> Entry:
    figures = tuple(_figure(of.get(c.title), shown) for c in comparison.candidates)
    present = [f.row for f in figures if f.row is not None]
    first = next(iter(present), None)
    base = next((r.baseline_value for r in present if r.baseline_value is not None), None)
    notes = dict.fromkeys(r.note for r in present if r.note)
    unlike = [r for r in present if r.ratio is not None and (r.hosts_baseline, r.hosts_candidate) != usual[r.candidate]]
    return Entry(
        class_,
        title,
        figures,
        shown.number(base) if shown and base is not None else "",
        shown.unit if shown else "",
        first.unit if first else "",
        1 / shown.factor if shown else 1.0,
        next((r.standing for r in present if r.standing), ""),
        joined(notes, "; "),
        joined([hosts_of(comparison, r) for r in unlike]),
        basis_title({r.candidate: r.basis for r in present if r.ratio is not None}),
    )


def _figure(row: RatioRow | None, shown: fmt.Shown | None) -> Figure:
    if row is None:
        return Figure()
    value = shown.number(row.candidate_value) if shown and row.candidate_value is not None else ""
    if row.ratio is None:
        return Figure(row, value)
    return Figure(
        row,
        value,
        fmt.ratio(row.ratio),
        fmt.interval(row.lo, row.hi),
        fmt.interval(row.your_workload_lo, row.your_workload_hi),
        *("" if end is None else fmt.ratio(end) for end in (row.lo, row.hi)),
    )


def _guard(row: RatioRow, shown: fmt.Shown) -> Guard:
    values = [row.baseline_value, row.candidate_value, row.limit]
    return Guard(row, *("" if v is None else shown.quantity(v) for v in values))


def hosts_of(comparison: Comparison, row: RatioRow) -> str:
    """Return the hosts of baseline and candidate, such as ``6+4``, or only the candidate's with a pinned reference."""
    pinned = comparison.pairing is Pairing.PINNED
    return str(row.hosts_candidate) if pinned else f"{row.hosts_baseline}+{row.hosts_candidate}"


def _usual(comparison: Comparison, rows: Sequence[RatioRow]) -> dict[str, tuple[int, int]]:
    """Return, for each candidate, the numbers of hosts of both sides behind most of its ratios."""
    numbers: dict[str, Counter[tuple[int, int]]] = {c.title: Counter() for c in comparison.candidates}
    for row in rows:
        if row.ratio is not None:
            numbers[row.candidate][row.hosts_baseline, row.hosts_candidate] += 1
    return {title: of.most_common(1)[0][0] if of else (0, 0) for title, of in numbers.items()}


def _said(comparison: Comparison, usual: Mapping[str, tuple[int, int]]) -> str:
    known = {title: n for title, n in usual.items() if n != (0, 0)}
    if not known:
        return ""
    base = max(n[0] for n in known.values())
    sides = [] if comparison.pairing is Pairing.PINNED else [(comparison.baseline, base)]
    sides += [(title, n[1]) for title, n in known.items()]
    parts = [spaced(fmt.clean(title), _counted(comparison, title, n)) for title, n in sides]
    return message("Unless a row says otherwise: {sides}.", sides=joined(parts))


def _counted(comparison: Comparison, side: str, n: int) -> Message:
    label = comparison.grouped.get(side)
    return count(n, "host") if label is None else message("{n} (one per {label})", n=n, label=word(label))


def _scales(comparison: Comparison, rows: Sequence[RatioRow]) -> dict[str, fmt.Shown]:
    """Return the unit and digits with which the figures of all sides are written, for each benchmark."""
    values: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for row in rows:
        if row.benchmark and row.unit:
            units.setdefault(row.benchmark, row.unit)
            values.setdefault(row.benchmark, []).extend(
                v for v in (row.baseline_value, row.candidate_value, row.limit) if v is not None
            )
    about = comparison.benchmarks
    names = dict(zip(about.index, zip(about["workload"], about["metric"], strict=True), strict=True))
    return {
        title: fmt.fit(
            ((v, math.nan, math.nan) for v in dict.fromkeys(of)),
            units[title],
            bits=in_bits(*map(str, names[title])),
            percent=in_percent(*map(str, names[title])),
        )
        for title, of in values.items()
    }
