"""A comparison as its page shows it, per baseline: first screen, table of benchmarks, hosts, what was left out."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from planner.comparison import Comparison
from planner.estimate import Estimate
from reports.comparison import forest
from reports.comparison.forest import Axis
from reports.comparison.front import MOST_SIDES, Front, front
from reports.comparison.model import RatioRow, question
from reports.comparison.peers import PeerMap, peer_map
from reports.comparison.table import Entry, Table, table
from reports.comparison.titles import class_title
from reports.kit import charts
from reports.report import Report

OPEN = 40  # benchmarks up to which the table is unfolded
_GREY = "#8C8C8C"
Marks = Mapping[str, tuple[str, int]]  # side's title to its colour, as in the charts, and the shape of its mark


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
    """The comparison seen from one baseline. ``prefix`` begins the ids of all its anchors; empty for the first.
    ``front_plots``: a plot per line of the first screen; ``plots``: one per class and benchmark of the table, by both
    names; ``anchors``: a class's id; ``folded``: the table has more benchmarks than are shown at once.
    """

    number: int
    prefix: str
    baseline: str
    question: str
    comparison: Comparison
    front: Front
    table: Table
    axis: str
    front_plots: Mapping[str, str]
    plots: Mapping[tuple[str, str], str]
    keys: Mapping[str, str]
    anchors: Mapping[str, str]
    folded: bool
    peers: PeerMap | None
    notes: Sequence[tuple[str, Sequence[str], str]]  # class, candidates, note on its headline
    gaps: Sequence[Gap]
    hosts_out: Sequence[HostOut]


def faces(report: Report, *, all_sides: bool = True) -> list[Face]:
    """The comparison with the user's baseline, then (``all_sides``) with each other side as the baseline."""
    assert report.comparison is not None
    comparisons = [(report.comparison, report.rows), *(report.turned.values() if all_sides else ())]
    marks = {g: (c, i) for i, (g, c) in enumerate(charts.colour_of(report.view.generations).items())}
    return [_face(report, number, comparison, rows, marks) for number, (comparison, rows) in enumerate(comparisons)]


def _face(report: Report, number: int, comparison: Comparison, rows: Sequence[RatioRow], marks: Marks) -> Face:
    prefix = f"b{number}-" if number else ""
    first, below = front(comparison, rows, report.around), table(comparison, rows)
    titles = [c.title for c in comparison.candidates]
    classes = [cell.estimate for line in first.lines for cell in line.cells if cell.estimate]
    points = [Estimate(r.ratio) for r in rows if r.benchmark and r.ratio]
    axis = forest.axis_of([*classes, *points])
    entries = [e for group in below.groups for e in (group.head, *group.entries)]
    return Face(
        number,
        prefix,
        comparison.baseline,
        question(comparison),
        comparison,
        first,
        below,
        forest.scale(axis),
        {
            line.class_: _plot(axis, [c.estimate for c in line.cells], titles, marks, headline=True)
            for line in first.lines
        },
        {(e.class_, e.benchmark): _entry_plot(axis, e, titles, marks) for e in entries},
        {title: forest.key(*marks.get(title, (_GREY, 0))) for title in titles},
        _anchors([group.class_ for group in below.groups], prefix),
        sum(len(group.entries) for group in below.groups) > OPEN,
        peer_map(comparison, report.sides),
        _notes(comparison, rows),
        _gaps(rows),
        [
            HostOut(c.title, class_title(name), host, why)
            for c in comparison.candidates
            for name, e in c.classes.items()
            for host, why in e.hosts_out.items()
        ],
    )


def _entry_plot(axis: Axis, entry: Entry, titles: Sequence[str], marks: Marks) -> str:
    estimates = [f.row.estimate if f.row else None for f in entry.figures]
    return _plot(axis, estimates, titles, marks, headline=not entry.benchmark)


def _plot(
    axis: Axis, estimates: Sequence[Estimate | None], titles: Sequence[str], marks: Marks, *, headline: bool
) -> str:
    """All candidates of a line on the page's axis; each on a height of its own where they are few."""
    lanes = [(e, *marks.get(t, (_GREY, 0))) for e, t in zip(estimates, titles, strict=True)]
    return forest.plots(axis, lanes, headline=headline, apart=len(titles) <= MOST_SIDES)


def _notes(comparison: Comparison, rows: Sequence[RatioRow]) -> list[tuple[str, Sequence[str], str]]:
    """Notes on headlines: gaps, hosts left out, why there is none; the same note on several candidates once."""
    of = {c.title: c.classes for c in comparison.candidates}
    candidates_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        if not row.benchmark and row.note:
            e = of[row.candidate][row.class_]
            if e.ratio is None or e.gaps or e.hosts_out:
                candidates_of[class_title(row.class_), row.note].append(row.candidate)
    return [(class_, candidates, note) for (class_, note), candidates in candidates_of.items()]


def _gaps(rows: Iterable[RatioRow]) -> list[Gap]:
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


def _anchors(names: Sequence[str], prefix: str) -> dict[str, str]:
    """An id for each class, from its name as far as that goes."""
    anchors: dict[str, str] = {}
    for name in names:
        slug = f"{prefix}class-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"
        anchors[name] = slug if slug not in anchors.values() else f"{slug}-{len(anchors)}"
    return anchors
