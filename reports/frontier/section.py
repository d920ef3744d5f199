"""Build the section of a frontier: the loads of each family, and replacement ratios at equal service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, joined, message
from fleetmark.base.units import human
from fleetmark.planner.frontier import Bound, EqualService, Point, dominated
from fleetmark.reports.frontier.points import Family
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, figure

_MILLION = 1e6
_HOUR = 3600.0  # seconds
_MOST_OPEN = 40  # loads of a table that a page shows unfolded
_BOUNDS = {Bound.EXACT: "", Bound.LEAST: message("at least"), Bound.MOST: message("at most")}


@dataclass(frozen=True, slots=True)
class Block:
    """A family and its ``section`` without charts.

    ``titles``: the display names of generations. ``baseline``: the generation that the others are compared with, None
    in a campaign.
    """

    family: Family
    titles: Mapping[str, str]
    baseline: str | None
    section: Section

    @property
    def unit(self) -> str:
        return unit_of(self.family)

    def title(self, side: str) -> str:
        return self.titles.get(side, side)


def blocks(families: Sequence[Family], titles: Mapping[str, str], baseline: str | None = None) -> tuple[Block, ...]:
    """Return the blocks of all families."""
    return tuple(Block(f, titles, baseline, _section(f, titles, baseline)) for f in families)


def unit_of(family: Family) -> str:
    """Return the unit that work and power refer to."""
    return message("accelerator") if family.per_device else message("server")


def _section(family: Family, titles: Mapping[str, str], baseline: str | None) -> Section:
    equal = _equal(family, titles, baseline) if baseline in family.sides and len(family.sides) > 1 else None
    loads = _loads(family, titles, baseline)
    title = message("Frontier of {family}", family=fmt.clean(f"{family.workload} {family.name}"))
    notes = (Note(text, quiet=True) for text in _notes(family, equal))
    return Section("frontier", title, (*notes, *(table for table in (equal, loads) if table)))


def _notes(family: Family, equal: Tabular | None) -> Iterator[Message]:
    if equal is not None:
        yield message(
            "At equal service: how many {unit}s of the baseline one of the candidate replaces.", unit=unit_of(family)
        )
        if family.frontier.max_wait:
            yield message("The median wait is at most {wait}.", wait=human(family.frontier.max_wait, "s"))
        if any(family.quality.values()):
            shares = [f"{metric} {fmt.share(bound, 0)}" for metric, bound in family.frontier.quality.items()]
            amounts = [f"{metric} {bound:g}" for metric, bound in family.frontier.differences.items()]
            bounds = joined(fmt.clean(text) for text in (*shares, *amounts))
            yield message("Answers may be worse than the baseline's by at most: {bounds}.", bounds=bounds)
    yield message("A dominated load is worse than another one in work, speed and wait.")
    if family.provisioned:
        yield message("MW: the power that is provisioned for a server.")
    if family.sources:
        yield message("Power: by {sources}.", sources=joined(fmt.clean(s) for s in family.sources))


# --- equal service --------------------------------------------------------------------------------------------------


def _equal(family: Family, titles: Mapping[str, str], baseline: str | None) -> Tabular:
    piece, unit = family.frontier.piece, unit_of(family)
    columns = (
        Column("candidate", message("candidate"), "name"),
        Column("speed", message("{piece}s/s of one user", piece=piece), "number"),
        Column("bound", message("bound")),
        Column("ratio", message("one replaces"), "number"),
        Column("lo", message("95% from"), "number"),
        Column("hi", message("to"), "number"),
        Column("baseline_work", message("baseline, {piece}s/s per {unit}", piece=piece, unit=unit), "number"),
        Column("candidate_work", message("candidate, {piece}s/s per {unit}", piece=piece, unit=unit), "number"),
        Column("hosts", message("hosts")),
        Column("note", message("note"), "note"),
    )
    rows = [
        _equal_row(titles.get(side, side), family.equal_service(str(baseline), side, speed))
        for side in family.sides
        if side != baseline
        for speed in family.frontier.speeds
    ]
    return Tabular("equal_service", message("Equivalence at equal service"), columns, tuple(rows))


def _equal_row(candidate: str, e: EqualService) -> tuple[Cell, ...]:
    r = e.ratio
    lo, hi = r.interval if r and r.interval else (None, None)
    return (
        Cell(candidate),
        Cell(f"{e.speed:g}", e.speed),
        Cell(_BOUNDS[e.bound] or (message("about") if r and any(e.missed) else "")),
        _ratio(r.value if r else None),
        _ratio(lo),
        _ratio(hi),
        figure(e.baseline),
        figure(e.candidate),
        Cell(f"{r.n[0]}+{r.n[1]}" if r else ""),
        Cell(_note(e)),
    )


def _note(e: EqualService) -> str:
    """Return why there is no figure, or a note on the figure."""
    if e.ratio is None:
        return e.reason
    if e.bound is not Bound.EXACT and not any(e.missed):
        return message("the load was too low to reach this speed")
    if any(e.missed):
        base, other = cannot(e, 0), cannot(e, 1)
        return joined([base, other])
    return "" if e.ratio.interval else message("one host per side: no interval over hosts")


def cannot(e: EqualService, place: int) -> Message | None:
    """Return ``2 of 4 hosts miss the target`` for the baseline (``place`` 0) or the candidate.

    Hosts that miss the target do no work.
    """
    if not e.missed[place]:
        return None
    values = {"n": e.missed[place], "all": e.hosts[place]}
    if place == 0:
        return message("{n} of {all} baseline hosts miss the target", **values)
    return message("{n} of {all} hosts miss the target", **values)


# --- loads -----------------------------------------------------------------------------------------------------------


def _loads(family: Family, titles: Mapping[str, str], baseline: str | None) -> Tabular:
    piece, unit = family.frontier.piece, unit_of(family)
    currencies = sorted({currency for _, currency in family.prices.values()})
    cost = (
        message("{currency} per million {piece}s", currency=fmt.clean(currencies[0]), piece=piece)
        if len(currencies) == 1
        else message("cost per million {piece}s", piece=piece)
    )
    columns = (
        Column("side", message("generation") if baseline is None else message("side"), "side"),
        Column("host", message("host"), "name"),
        Column("load", message("load"), "name"),
        Column("work", message("{piece}s/s per {unit}", piece=piece, unit=unit), "number"),
        Column("speed", message("{piece}s/s of one user", piece=piece), "number"),
        Column("wait", message("wait, s"), "number"),
        Column("energy", message("J per {piece}", piece=piece), "number"),
        Column("cost", cost, "number" if len(currencies) == 1 else "text"),
        Column("per_megawatt", message("{piece}s/s per MW", piece=piece), "number"),
        Column("dominated", message("note")),
    )
    rows = [
        _load_row(family, titles.get(side, side), machine, point, bad, family.prices.get(side), len(currencies) == 1)
        for side, machines in sides_of(family, baseline)
        for machine, points in machines.items()
        for point, bad in sorted(
            zip(points, dominated(points), strict=True), key=lambda both: (both[0].speed, both[0].name)
        )
    ]
    return compact(Tabular("loads", message("Loads"), columns, tuple(rows), is_folded=len(rows) > _MOST_OPEN))


def sides_of(family: Family, baseline: str | None) -> list[tuple[str, Mapping[str, tuple[Point, ...]]]]:
    """Return the points of each machine by side, the baseline first."""
    return sorted(family.sides.items(), key=lambda item: item[0] != baseline)


def cost_per_million(price: float, work: float) -> float:
    """Return the cost of a million pieces of work. ``price``: per hour; ``work``: in 1/s, both for the same unit."""
    return price / (work * _HOUR) * _MILLION


def _load_row(
    family: Family,
    side: str,
    machine: str,
    point: Point,
    bad: bool,
    price: tuple[float, str] | None,
    one_currency: bool,
) -> tuple[Cell, ...]:
    cost = _cost(cost_per_million(price[0], point.work), price[1], one_currency) if price else Cell()
    watts = family.provisioned.get(machine)
    return (
        Cell(side),
        Cell(machine),
        Cell(point.name.removeprefix(f"{family.kind}-")),
        figure(point.work),
        figure(point.speed),
        figure(point.wait),
        figure(point.energy),
        cost,
        figure(point.work / watts * _MILLION if watts else None),
        Cell(message("dominated") if bad else ""),
    )


def _cost(amount: float, currency: str, one_currency: bool) -> Cell:
    text = fmt.price(amount)
    return Cell(text, amount) if one_currency else Cell(f"{text} {fmt.clean(currency)}")


def _ratio(value: float | None) -> Cell:
    return Cell() if value is None else Cell(fmt.ratio(value), value)
