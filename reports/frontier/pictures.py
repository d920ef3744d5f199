"""Pictures of frontiers: work against speed, and what replaces what along the speed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fleetmark.base.text import message
from fleetmark.planner.frontier import EqualService, Point, equivalence, line, speeds
from fleetmark.reports.frontier.section import Block
from fleetmark.reports.kit import charts
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Across, Chart, Line
from fleetmark.reports.kit.language import Language


def pictures(blocks: Sequence[Block], language: Language) -> list[list[Chart]]:
    """The pictures of each block."""
    return [[*_work(block, language), *_curve(block, language)] for block in blocks]


def _work(block: Block, _: Language) -> list[Chart]:
    family = block.family
    colours = _colours(block)
    piece = family.frontier.piece
    lines = [
        Line(_name(block, side, machine, machines), colours[side], n, _line(points))
        for side, machines in family.sides.items()
        for n, (machine, points) in enumerate(machines.items())
    ]
    across = _(message("{piece}s/s of one user", piece=piece))
    up = _(message("{piece}s/s per {unit}", piece=piece, unit=block.unit))
    title = message("Work against speed: {family}", family=fmt.clean(family.name))
    note = message("A point is a load; higher and further right is better. Lines join what no other load dominates.")
    return [Chart(title, note, spec=lambda: charts.curve(lines, across, up, Across.SPEED))]


def _colours(block: Block) -> dict[str, str]:
    """Return the colour of each side, the same as in all other charts of the document."""
    return charts.colour_of(dict.fromkeys((*block.titles, *block.family.sides)))


def _name(block: Block, side: str, machine: str, machines: Mapping[str, object]) -> str:
    title = fmt.clean(block.title(side))
    return title if len(machines) == 1 and title else fmt.clean(f"{title} {machine}".strip())


def _line(points: Sequence[Point]) -> list[charts.Point]:
    return [(p.speed, p.work, math.nan, math.nan) for p in line(points)]


def _curve(block: Block, _: Language) -> list[Chart]:
    family, wait = block.family, block.family.frontier.max_wait or None
    if block.baseline not in family.sides:
        return []
    old, lines = family.sides[str(block.baseline)], []
    for n, (side, new) in enumerate((s, m) for s, m in family.sides.items() if s != block.baseline):
        curve = [e for speed in speeds(old, new) if (e := equivalence(old, new, speed, wait)).ratio is not None]
        if len(curve) > 1:
            colour = _colours(block)[side]
            lines.append(Line(fmt.clean(block.title(side)), colour, n, [_ratio(e) for e in curve]))
    if not lines:
        return []
    across = _(message("{piece}s/s of one user", piece=family.frontier.piece))
    up = _(message("of the baseline, one replaces"))
    note = message("Interpolated between measured loads, never beyond them; the band is the interval over hosts.")
    title = message("Equivalence at equal service")
    return [Chart(title, note, spec=lambda: charts.curve(lines, across, up, Across.SPEED))]


def _ratio(e: EqualService) -> charts.Point:
    assert e.ratio is not None
    ends = e.ratio.interval or (math.nan, math.nan)
    return (e.speed, e.ratio.value, *ends)
