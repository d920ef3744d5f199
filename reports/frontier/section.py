"""The section of frontiers: pictures and points of each family, and what replaces what at equal service."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.text import message
from fleetmark.base.units import human, significant
from fleetmark.record.results import Results
from planner.frontier import Equivalence, Point, dominated, equivalence, line, speeds
from reports.frontier.points import Family, families
from reports.kit import charts
from reports.kit import format as fmt
from reports.kit.charts import Across, Chart, Line
from reports.kit.language import Language

_FIRST = 9000  # numbers of charts, far from those of the other charts of a page
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class PointRow:
    """A point as it is printed. ``value`` columns may be empty: not measured, or without a price."""

    side: str
    machine: str
    load: str
    work: str
    speed: str
    wait: str
    energy: str
    cost: str
    dominated: bool


@dataclass(frozen=True, slots=True)
class EqualRow:
    """What one of ``candidate`` replaces at a speed: the ratio with its interval, or why there is none."""

    candidate: str
    speed: str
    baseline: str
    own: str
    ratio: str
    interval: str
    reason: str
    n: str


@dataclass(frozen=True, slots=True)
class Block:
    """A family: its heading, unit, pictures, points, and (in comparisons) equivalences."""

    title: str
    unit: str
    wait: str
    charts: Sequence[Chart]
    points: Sequence[PointRow]
    equal: Sequence[EqualRow]
    energy: bool
    cost: bool


def blocks(results: Results, titles: Mapping[str, str], language: Language, baseline: str | None = None) -> list[Block]:
    """Every family on record. ``titles``: a generation's name as people read it; with ``baseline`` (a generation) the
    others are compared with it.
    """
    return [_block(n, f, titles, language, baseline) for n, f in enumerate(families(results))]


def _block(number: int, family: Family, titles: Mapping[str, str], _: Language, baseline: str | None) -> Block:
    unit = message("accelerator") if family.per_device else message("server")
    colours = charts.colour_of(family.sides)
    across = _(message("speed of one user, 1/s"))
    up = _(message("work per {unit}, 1/s", unit=unit))
    lines = [
        Line(_name(titles, side, machine, of), colours.get(side, charts.colour_of([side])[side]), n, _line(points))
        for side, of in family.sides.items()
        for n, (machine, points) in enumerate(of.items())
    ]
    drawn = [
        Chart(
            message("Work against speed: {family}", family=fmt.clean(family.name)),
            message("A point is a load; higher and further right is better. Lines join what no other load dominates."),
            charts.to_svg(charts.curve(lines, across, up, Across.LOAD), _FIRST + 2 * number),
        )
    ]
    equal: list[EqualRow] = []
    if baseline in family.sides:
        curve, equal = _compared(family, str(baseline), titles, _, _FIRST + 2 * number + 1)
        drawn += curve
    points = list(_rows(family, titles))
    return Block(
        f"{family.workload} {family.name}",
        unit,
        human(family.about.within, "s") if family.about.within else "",
        drawn,
        points,
        equal,
        any(p.energy for p in points),
        any(p.cost for p in points),
    )


def _name(titles: Mapping[str, str], side: str, machine: str, of: Mapping[str, object]) -> str:
    title = fmt.clean(titles.get(side, side))
    return title if len(of) == 1 and title else fmt.clean(f"{title} {machine}".strip())


def _line(points: Sequence[Point]) -> list[charts.Point]:
    return [(p.speed, p.work, math.nan, math.nan) for p in line(points)]


def _rows(family: Family, titles: Mapping[str, str]) -> Iterator[PointRow]:
    for side, machines in family.sides.items():
        price = family.prices.get(side)
        for machine, points in machines.items():
            beaten = dominated(points)
            for point, bad in sorted(zip(points, beaten, strict=True), key=lambda both: both[0].speed):
                cost = price[0] / (point.work * 3600) * _MILLION if price else None
                yield PointRow(
                    titles.get(side, side),
                    machine,
                    point.name,
                    significant(point.work),
                    significant(point.speed),
                    human(point.wait, "s") if point.wait else "",
                    significant(point.energy) if point.energy else "",
                    f"{significant(cost)} {price[1]}" if cost and price else "",
                    bad,
                )


def _compared(
    family: Family, baseline: str, titles: Mapping[str, str], _: Language, number: int
) -> tuple[list[Chart], list[EqualRow]]:
    old = family.sides[baseline]
    wait = family.about.within or None
    lines: list[Line] = []
    rows: list[EqualRow] = []
    for n, (side, new) in enumerate((s, m) for s, m in family.sides.items() if s != baseline):
        title = titles.get(side, side)
        rows += [_equal(title, equivalence(old, new, at, wait)) for at in family.about.at]
        curve = [e for at in speeds(old, new) if (e := equivalence(old, new, at, wait)).ratio is not None]
        if len(curve) > 1:
            colour = charts.colour_of(family.sides)[side]
            lines.append(Line(fmt.clean(title), colour, n, [_ratio(e) for e in curve]))
    if not lines:
        return [], rows
    spec = charts.curve(
        lines, _(message("speed of one user, 1/s")), _(message("of the baseline, one replaces")), Across.LOAD
    )
    note = message("Interpolated between measured loads, never beyond them; the band is the interval over hosts.")
    return [Chart(message("Equivalence at equal service"), note, charts.to_svg(spec, number))], rows


def _ratio(e: Equivalence) -> charts.Point:
    assert e.ratio is not None
    ends = e.ratio.interval or (math.nan, math.nan)
    return (e.speed, e.ratio.value, *ends)


def _equal(candidate: str, e: Equivalence) -> EqualRow:
    r = e.ratio
    ends = r.interval if r else None
    return EqualRow(
        candidate,
        f"{e.speed:g}",
        significant(e.baseline) if e.baseline else "",
        significant(e.candidate) if e.candidate else "",
        significant(r.value) if r else "",
        f"{significant(ends[0])} – {significant(ends[1])}" if ends else "",
        e.reason or ("" if ends else message("one host a side: no interval over hosts")),
        f"{r.n[0]} / {r.n[1]}" if r else "",
    )
