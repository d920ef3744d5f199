"""Compute frontiers: the work that a machine does at each speed per user, and how many machines it replaces.

Points are measurements. Between two points that are not dominated, work follows speed linearly on logarithmic axes.
Nothing is extrapolated beyond the slowest and the fastest point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from fleetmark.base.text import message
from fleetmark.planner.ratio import Ratio, welch
from fleetmark.planner.totals import APART, total

_CURVE = 24  # number of speeds in a curve
_ENDS = 1e-9  # relative tolerance for the ends of the measured range


@dataclass(frozen=True, slots=True)
class Point:
    """One load of one machine.

    - ``speed``: the speed for each user, in 1/s
    - ``work``: the work of one unit (a server, an accelerator), in 1/s
    - ``wait``: the seconds until a user sees the first result, or None if it was not measured
    - ``power``: the power of the same unit, in W
    """

    name: str
    speed: float
    work: float
    wait: float | None = None
    power: float | None = None

    @property
    def energy(self) -> float | None:
        """Return the energy per piece of work in J, or None if no power was measured."""
        return self.power / self.work if self.power else None


class Bound(StrEnum):
    """The kind of bound that a ratio is, if some hosts were not measured at the service level."""

    EXACT = ""
    LEAST = "at least"
    MOST = "at most"


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualService:
    """The number of baseline units that one candidate unit replaces at ``speed``.

    - ``ratio``: the number of baseline units, or None; ``reason`` then says why
    - ``baseline``, ``candidate``: the mean work of one unit at ``speed``, in 1/s; hosts that miss the service level
      count 0
    - ``bound``: whether the ratio is a lower or an upper bound
    - ``missed``, ``hosts``: for each side, the number of hosts that miss the service level, and of all hosts
    """

    speed: float
    ratio: Ratio | None = None
    baseline: float | None = None
    candidate: float | None = None
    reason: str = ""
    bound: Bound = Bound.EXACT
    missed: tuple[int, int] = (0, 0)
    hosts: tuple[int, int] = (0, 0)


def dominated(points: Sequence[Point]) -> list[bool]:
    """Return for each point whether another is at least as good in work, speed and wait, and better in one."""
    return [any(_beats(other, point) for other in points) for point in points]


def _beats(a: Point, b: Point) -> bool:
    waits = (a.wait, b.wait) if a.wait is not None and b.wait is not None else (0.0, 0.0)
    pairs = ((a.work, b.work), (a.speed, b.speed), (-waits[0], -waits[1]))
    return all(x >= y for x, y in pairs) and any(x > y for x, y in pairs)


def line(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other point beats in both work and speed, from the slowest to the fastest."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.speed, -p.work)):
        if not kept or point.work > kept[-1].work:
            kept.append(point)
    return kept[::-1]


def work_at(points: Sequence[Point], speed: float, wait: float | None = None) -> float | None:
    """Return the most work of one unit at which each user has at least ``speed`` and waits at most ``wait`` seconds.

    Return None if that is outside the measured range or is never reached.
    """
    edge = line(points)
    if not edge or not edge[0].speed * (1 - _ENDS) <= speed <= edge[-1].speed * (1 + _ENDS):
        return None
    candidates = [between(edge, speed), *(p for p in edge if p.speed >= speed)]
    candidates += [p for a, b in pairwise(edge) if (p := _meets(a, b, wait)) and p.speed >= speed]
    return max((p.work for p in candidates if _waits(p) <= (math.inf if wait is None else wait)), default=None)


def between(edge: Sequence[Point], speed: float) -> Point:
    """Return the point of the line ``edge`` at ``speed``, which lies within the line."""
    for a, b in pairwise(edge):
        if a.speed <= speed <= b.speed and a.speed < b.speed:
            return _mixed(a, b, math.log(speed / a.speed) / math.log(b.speed / a.speed))
    return min(edge, key=lambda p: abs(math.log(p.speed / speed)))


def _waits(point: Point) -> float:
    return 0.0 if point.wait is None else point.wait * (1 - _ENDS)


def _mixed(a: Point, b: Point, share: float) -> Point:
    """Return the point that lies the share ``share`` of the way from ``a`` to ``b``, on logarithmic axes."""

    def mixture(x: float, y: float) -> float:
        return math.exp((1 - share) * math.log(x) + share * math.log(y))

    wait = None if a.wait is None or b.wait is None else mixture(a.wait, b.wait)
    return Point("", mixture(a.speed, b.speed), mixture(a.work, b.work), wait)


def _meets(a: Point, b: Point, wait: float | None) -> Point | None:
    """Return the position between two neighbours at which the wait equals ``wait``."""
    if wait is None or a.wait is None or b.wait is None or a.wait == b.wait:
        return None
    share = math.log(wait / a.wait) / math.log(b.wait / a.wait)
    return _mixed(a, b, share) if 0 <= share <= 1 else None


Side = Mapping[str, Sequence[Point]]  # the points of each host


@dataclass(frozen=True, slots=True)
class _Served:
    """The work of one host at a service level.

    ``missed`` means that the host cannot meet the service level and does no work; ``ceiling`` is an upper bound on its
    work. ``unloaded`` means that every measured load was faster than the service level, so ``work`` is a lower bound.
    """

    work: float
    missed: bool = False
    ceiling: float = 0.0
    unloaded: bool = False


def _served(points: Sequence[Point], speed: float, wait: float | None) -> _Served | None:
    """Return the work of a host at the service level, or None if it has no points. Work falls as the speed rises."""
    edge = line(points)
    if not edge:
        return None
    if speed > edge[-1].speed * (1 + _ENDS):
        return _Served(0.0, missed=True, ceiling=edge[-1].work)
    if work := work_at(points, max(speed, edge[0].speed), wait):
        return _Served(work, unloaded=speed < edge[0].speed * (1 - _ENDS) and work >= edge[0].work)
    return _Served(0.0, missed=True, ceiling=work_at(points, max(speed, edge[0].speed)) or edge[0].work)


def equivalence(old: Side, new: Side, speed: float, wait: float | None = None) -> EqualService:
    """Return how many units of ``old`` one unit of ``new`` replaces at equal service.

    If every host meets the service level, the ratio is that of geometric means with Welch's interval over hosts. If the
    hosts of a side differ, it is the ratio of totals. Hosts that miss the service level count as zero work; the ratio
    is then that of arithmetic means, without an interval.

    If no host of ``old`` meets the service level, its work at its best service level gives a lower bound. A side that
    was faster than the service level at every load also gives a bound. If there is no bound either, the ratio is None.
    """
    sides = [[s for points in side.values() if (s := _served(points, speed, wait))] for side in (old, new)]
    missed = (sum(s.missed for s in sides[0]), sum(s.missed for s in sides[1]))
    hosts = (len(sides[0]), len(sides[1]))
    none = [n for n in (0, 1) if hosts[n] == missed[n]]
    if 1 in none or not all(hosts):
        missing = none or [n for n in (0, 1) if not hosts[n]]
        return EqualService(
            speed=speed,
            ratio=None,
            baseline=None,
            candidate=None,
            reason=_why((old, new), missing, speed),
            bound=Bound.EXACT,
            missed=missed,
            hosts=hosts,
        )
    ceiling = 0 in none
    works = [[s.ceiling if ceiling and n == 0 else s.work for s in side] for n, side in enumerate(sides)]
    unloaded = [any(s.unloaded for s in side) for side in sides]
    if all(unloaded):
        return EqualService(
            speed=speed,
            ratio=None,
            baseline=None,
            candidate=None,
            reason=_why((old, new), [0, 1], speed),
            bound=Bound.EXACT,
            missed=missed,
            hosts=hosts,
        )
    bound = Bound.LEAST if ceiling or unloaded[1] else Bound.MOST if unloaded[0] else Bound.EXACT
    counted = (0 if ceiling else missed[0]) + missed[1]
    arithmetic = [sum(side) / len(side) for side in works]
    if not counted and bound is Bound.EXACT:
        means = [math.exp(sum(map(math.log, side)) / len(side)) for side in works]
        ratio = welch([math.log(w) for w in works[0]], [math.log(w) for w in works[1]])
        if abs(arithmetic[1] / arithmetic[0] / ratio.value - 1) > APART:
            means, ratio = arithmetic, total(np.array(works[0]), np.array(works[1]))
        return EqualService(
            speed=speed,
            ratio=ratio,
            baseline=means[0],
            candidate=means[1],
            reason="",
            bound=bound,
            missed=missed,
            hosts=hosts,
        )
    base, other = arithmetic
    value = Ratio(other / base, n=hosts)
    return EqualService(
        speed=speed,
        ratio=value,
        baseline=None if ceiling else base,
        candidate=other,
        bound=bound,
        missed=missed,
        hosts=hosts,
    )


def _why(sides: Sequence[Side], missing: Sequence[int], speed: float) -> str:
    """Return why the ``missing`` sides (positions in ``sides``) have no figure at ``speed``."""
    reach = [_reach(side) for side in sides]
    if slow := [n for n in missing if speed > reach[n][1]]:
        fastest = max(reach[n][1] for n in slow)
        return message(
            "not equivalent: loads of {who} are no faster than {most}", who=_who(slow), most=f"{fastest:.3g}"
        )
    if fast := [n for n in missing if speed < reach[n][0]]:
        least = min(reach[n][0] for n in fast)
        return message(
            "not measured: every load of {who} is faster (from {least})", who=_who(fast), least=f"{least:.3g}"
        )
    return message("not equivalent: the wait there is too long on {who}", who=_who(missing))


def _who(places: Sequence[int]) -> str:
    one = message("the baseline") if places[0] == 0 else message("the candidate")
    return message("both sides") if len(places) > 1 else one


def _reach(side: Side) -> tuple[float, float]:
    """Return the slowest and the fastest speed of all lines of a side."""
    lines = [edge for points in side.values() if (edge := line(points))]
    return min(e[0].speed for e in lines), max(e[-1].speed for e in lines)


def speeds(old: Side, new: Side) -> list[float]:
    """Return the speeds at which both sides have figures, in ascending order; empty if their ranges do not overlap."""
    reach = []
    for side in (old, new):
        lines = [edge for points in side.values() if (edge := line(points))]
        if not lines:
            return []
        reach.append((min(e[0].speed for e in lines), max(e[-1].speed for e in lines)))
    low, high = max(r[0] for r in reach), min(r[1] for r in reach)
    if not low < high:
        return []
    return [low * (high / low) ** (n / (_CURVE - 1)) for n in range(_CURVE)]
