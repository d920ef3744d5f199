"""Compare at equal service: how many baseline units one candidate unit replaces at the same speed per user."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetmark.base.measurement import Kind
from fleetmark.base.text import joined, message
from fleetmark.base.units import human
from fleetmark.planner.comparison import Comparison
from fleetmark.planner.cost import SERVERS, needed
from fleetmark.planner.frontier import Bound, EqualService
from fleetmark.planner.ratio import Ratio
from fleetmark.reports.comparison.cell import Cell, Line
from fleetmark.reports.frontier.points import Family
from fleetmark.reports.frontier.section import cannot, unit_of
from fleetmark.reports.kit import format as fmt

_PER = ("server", "gpu", "money")  # values of ``per`` that allow a comparison at equal service


@dataclass(frozen=True, slots=True)
class Service:
    """A family of loads at one ``speed``: the ``results`` by candidate title, and the ``line`` that shows them."""

    family: Family
    speed: float
    results: Mapping[str, EqualService]
    line: Line


def services(comparison: Comparison, families: Sequence[Family], number: int = SERVERS) -> tuple[Service, ...]:
    """Return each family at the speed for which the most candidates have a figure.

    Among equally good speeds, the one nearest the middle is chosen. Families without any figure are omitted.
    ``number``: the number of baseline units to replace.
    """
    if comparison.per not in _PER:
        return ()
    candidates = [c.title for c in comparison.candidates]
    listed = []
    for family in families:
        old = family.sides.get(comparison.baseline)
        if old is None or not set(family.sides) & set(candidates):
            continue
        ranked_speeds = sorted(
            family.frontier.speeds,
            key=lambda speed: abs(family.frontier.speeds.index(speed) - len(family.frontier.speeds) // 2),
        )
        results = [
            {c: _at(comparison, family, c, speed) for c in candidates if c in family.sides} for speed in ranked_speeds
        ]
        rated = [(sum(map(_told, equivalences.values())), -n) for n, equivalences in enumerate(results)]
        best, place = max(rated, default=(0, 0))
        if best:
            listed.append((family, ranked_speeds[-place], results[-place]))
    return tuple(
        Service(f, speed, equivalences, _line(comparison, f, speed, equivalences, number, several=len(listed) > 1))
        for f, speed, equivalences in listed
    )


def without(family: Family, drop: Mapping[str, Collection[str]]) -> Family:
    """Return ``family`` without some machines. ``drop``: the names of these machines by side."""
    sides = {
        side: {name: points for name, points in machines.items() if name not in drop.get(side, ())}
        for side, machines in family.sides.items()
    }
    return replace(family, sides={side: machines for side, machines in sides.items() if machines})


def distance(before: Sequence[Service], after: Sequence[Service]) -> float:
    """Return how far results at equal service move, as a log ratio; infinite if a result disappears."""
    changes = [0.0]
    for one, other in zip(before, after, strict=True):
        for candidate, result in one.results.items():
            new = other.results[candidate].ratio if candidate in other.results else None
            if result.ratio is not None:
                changes.append(math.inf if new is None else abs(math.log(new.value / result.ratio.value)))
    return max(changes)


def unserved(comparison: Comparison, families: Sequence[Family]) -> str:
    """Return why sides with loads have no ratio at equal service, or an empty string if they have one."""
    if comparison.per not in _PER or services(comparison, families):
        return ""
    for family in families:
        for candidate in (c.title for c in comparison.candidates if c.title in family.sides):
            if comparison.baseline in family.sides and family.frontier.speeds:
                speed = family.frontier.speeds[len(family.frontier.speeds) // 2]
                reason = _at(comparison, family, candidate, speed).reason
                return message("No ratio at equal service ({reason})", reason=reason) if reason else ""
    return ""


def _at(comparison: Comparison, family: Family, candidate: str, speed: float) -> EqualService:
    """Return the equivalence at ``speed``; with ``per`` money, for one unit of money."""
    e = family.equal_service(comparison.baseline, candidate, speed)
    if comparison.per != "money" or e.ratio is None:
        return e
    prices = [family.prices.get(side) for side in (comparison.baseline, candidate)]
    if prices[0] is None or prices[1] is None or prices[0][1] != prices[1][1]:
        return replace(e, ratio=None, reason=message("the unit price is not known on both sides"))
    return replace(e, ratio=_scaled(e.ratio, prices[0][0] / prices[1][0]))


def _scaled(ratio: Ratio, factor: float) -> Ratio:
    lo, hi = (None if end is None else end * factor for end in (ratio.lo, ratio.hi))
    return replace(ratio, value=ratio.value * factor, lo=lo, hi=hi)


def _told(e: EqualService) -> int:
    """Return the rank of a result's precision: exact ratios, then ratios with missed targets, then bounds."""
    if e.ratio is None:
        return 0
    return 2 if e.bound is not Bound.EXACT else 3 if any(e.missed) else 4


def _line(
    comparison: Comparison,
    family: Family,
    speed: float,
    results: Mapping[str, EqualService],
    number: int,
    *,
    several: bool,
) -> Line:
    piece = family.frontier.piece
    title: str = message("serving at {speed} {piece}s/s per user", speed=f"{speed:g}", piece=piece)
    if several:
        title = joined([title, fmt.clean(family.name)])
    wait = (
        message("wait at most {wait}", wait=human(family.frontier.max_wait, "s")) if family.frontier.max_wait else None
    )
    cells = tuple(_cell(comparison, results.get(c.title), number) for c in comparison.candidates)
    remark = joined([wait, message("per {unit}", unit=unit_of(family)) if family.per_device else None])
    class_ = f"service {family.workload} {family.name} {speed:g}"
    return Line(class_=class_, title=title, kind=Kind.CAPACITY, benchmarks=1, remark=remark, cells=cells, service=True)


def _cell(comparison: Comparison, e: EqualService | None, number: int) -> Cell:
    if e is None or e.ratio is None:
        return Cell(reason=e.reason if e else "")
    r = e.ratio
    servers, ends = "", tuple[str, ...]()
    if comparison.per != "money":
        servers = fmt.servers(number / r.value)
        if r.lo and r.hi:
            ends = (fmt.servers(number / r.hi), fmt.servers(number / r.lo))
        if e.bound is Bound.LEAST:
            servers = message("at most {amount}", amount=servers)
        elif e.bound is Bound.MOST:
            servers = message("at least {amount}", amount=servers)
    return Cell(
        ratio=fmt.ratio(r.value),
        interval=fmt.interval(r.lo, r.hi),
        servers=servers,
        servers_range="–".join(ends) if len(set(ends)) > 1 else "",
        needed_servers=needed(number, r.value) if servers else None,
        verdict=str(r.verdict),
        estimate=r,
        bound=e.bound.value or ("about" if any(e.missed) else ""),
        remark=joined([cannot(e, place) for place in (0, 1)]),
    )
