"""Draw frontiers: work against speed, and the replacement ratios along the speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from fleetmark.base.text import joined, message
from fleetmark.base.units import human, significant
from fleetmark.planner.frontier import EqualService, Point, line, speeds
from fleetmark.reports.frontier.section import Block, cost_per_million, sides_of
from fleetmark.reports.kit import charts
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Across, Chart, Line
from fleetmark.reports.kit.document import Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.native import Native
from fleetmark.reports.kit.scatter import Cloud, Spot, drawing, scatter
from fleetmark.reports.kit.tabular import Kind


def pictures(blocks: Sequence[Block], language: Language) -> list[list[Chart]]:
    """Return the charts of each block."""
    return [[*_work(block, language, is_only=len(blocks) == 1), *_curve(block, language)] for block in blocks]


def sections(blocks: Sequence[Block], language: Language, only: tuple[Kind, ...]) -> Iterator[Section]:
    """Yield the section of each block, with its charts before the table of loads, which is long. ``only``: formats."""
    for number, (block, drawn) in enumerate(zip(blocks, pictures(blocks, language), strict=True)):
        *first, loads = block.section.exhibits
        yield replace(block.section, key=f"frontier{number or ''}", exhibits=(*first, *drawn, loads), only=only)


def _work(block: Block, _: Language, *, is_only: bool) -> list[Chart]:
    """Return the chart of work against speed, or of cost against speed if every side has a price in the same currency.

    ``is_only``: no other family has a table of loads, so a workbook can find its rows.
    """
    family = block.family
    piece, currency = family.frontier.piece, _currency(block)
    clouds = list(_clouds(block, _, currency))
    speed, values = message("{piece}s/s of one user", piece=piece), {"family": fmt.clean(family.name)}
    if currency:
        up = message("{currency} per million {piece}s", currency=fmt.clean(currency), piece=piece)
        title = message("Cost against speed: {family}", **values)
        note = message("A point is a load; lower and further right is better. {lines}", lines=_LINES)
    else:
        up = message("{piece}s/s per {unit}", piece=piece, unit=block.unit)
        title = message("Work against speed: {family}", **values)
        note = message("A point is a load; higher and further right is better. {lines}", lines=_LINES)
    overall = _best([spot for cloud in clouds for spot in cloud.spots], is_cost=bool(currency))
    native = Native(
        kind="scatter",
        table="loads",
        category="speed",
        values=("cost" if currency else "work",),
        axis=up,
        category_axis=speed,
        groups=tuple((cloud.name, len(cloud.spots), cloud.colour) for cloud in clouds),
    )
    return [
        Chart(
            title,
            note,
            spec=partial(scatter, clouds, overall, _(speed), _(up)),
            lines=drawing(clouds, _(message("{title} (log)", title=speed)), _(message("{title} (log)", title=up))),
            native=native if is_only else None,
            series=tuple(cloud.name for cloud in clouds) if 1 < len(clouds) <= _MOST_SERIES else (),
        )
    ]


_LINES = message(
    "Faint points are worse than another point of the same machine; the grey band connects the best points of all "
    "machines."
)
_MOST_SERIES = 60  # series that a reader can choose


def _currency(block: Block) -> str:
    """Return the currency of the prices, if every side has one and all are in the same currency."""
    currencies = {currency for _, currency in block.family.prices.values()}
    return currencies.pop() if len(currencies) == 1 and set(block.family.prices) == set(block.family.sides) else ""


def _clouds(block: Block, _: Language, currency: str) -> Iterator[Cloud]:
    """Yield the loads of each machine, in the order of the table of loads."""
    family, colours = block.family, _colours(block)
    for side, machines in sides_of(family, block.baseline):
        price = family.prices[side][0] if currency else None
        for machine, points in machines.items():
            best = {id(point) for point in line(points)}
            spots = [
                Spot(point.speed, _height(point, price), _(_setting(block, point, price, currency)), id(point) in best)
                for point in sorted(points, key=lambda p: (p.speed, p.name))
            ]
            yield Cloud(_name(block, side, machine, machines), colours[side], spots)


def _height(point: Point, price: float | None) -> float:
    return point.work if price is None else cost_per_million(price, point.work)


def _setting(block: Block, point: Point, price: float | None, currency: str) -> str:
    """Return what a point shows on hover: its load, both of its figures, and the wait."""
    piece = block.family.frontier.piece
    wait = message("wait {time}", time=human(point.wait, "s")) if point.wait else None
    cost = None
    if price is not None:
        amount = fmt.price(cost_per_million(price, point.work))
        cost = message("{cost} {currency} per million {piece}s", cost=amount, currency=fmt.clean(currency), piece=piece)
    work = message("{work} {piece}s/s per {unit}", work=significant(point.work, 4), piece=piece, unit=block.unit)
    speed = message("{speed} {piece}s/s of one user", speed=significant(point.speed, 4), piece=piece)
    load = fmt.clean(point.name.removeprefix(f"{block.family.kind}-"))
    return joined([load, speed, cost, work, wait])


def _best(spots: Sequence[Spot], *, is_cost: bool) -> list[Spot]:
    """Return the points that no point of any machine dominates."""
    kept: list[Spot] = []
    for spot in sorted(spots, key=lambda s: (-s.x, s.y if is_cost else -s.y)):
        if not kept or (spot.y < kept[-1].y if is_cost else spot.y > kept[-1].y):
            kept.append(spot)
    return kept[::-1]


def _colours(block: Block) -> dict[str, str]:
    """Return the colour of each side, as in all other charts of the document."""
    return charts.colour_of(dict.fromkeys((*block.titles, *block.family.sides)))


def _name(block: Block, side: str, machine: str, machines: Mapping[str, object]) -> str:
    title = fmt.clean(block.title(side))
    if len(machines) == 1 and title:
        return title
    return fmt.clean(machine if machine.startswith(title) else f"{title} {machine}".strip())


def _curve(block: Block, _: Language) -> list[Chart]:
    family, baseline = block.family, block.baseline
    if baseline is None or baseline not in family.sides:
        return []
    old, lines = family.sides[baseline], []
    for n, (side, new) in enumerate((s, m) for s, m in family.sides.items() if s != baseline):
        at_speeds = (family.equal_service(baseline, side, speed) for speed in speeds(old, new))
        curve = [e for e in at_speeds if e.ratio is not None]
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
