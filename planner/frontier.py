"""Frontiers: how much work a machine does at which speed for each user, and what one replaces at equal service.

Points are what was measured. Between two of them that nothing dominates, work follows speed on logarithmic axes; beyond
the slowest and the fastest nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fleetmark.base.text import message
from planner.ratio import Ratio, welch

_CURVE = 24  # speeds of a curve
_ENDS = 1e-9  # relative; a speed that was measured is not beyond what was measured


@dataclass(frozen=True, slots=True)
class Point:
    """One load of one machine. ``speed``: 1/s for each user; ``work``: 1/s of one unit (a server, an accelerator);
    ``wait``: s until a user sees something, None where it was not measured; ``power``: W of the same unit.
    """

    name: str
    speed: float
    work: float
    wait: float | None = None
    power: float | None = None

    @property
    def energy(self) -> float | None:
        """J for each piece of work; None where no power was measured."""
        return self.power / self.work if self.power else None


@dataclass(frozen=True, slots=True)
class Equivalence:
    """How many of the baseline's units one of the candidate's replaces at ``speed``: ``ratio``, or why there is none.

    ``baseline`` and ``candidate``: the work that one unit does there, 1/s.
    """

    speed: float
    ratio: Ratio | None = None
    baseline: float | None = None
    candidate: float | None = None
    reason: str = ""


def dominated(points: Sequence[Point]) -> list[bool]:
    """For each point whether another one is at least as good in work, speed and wait, and better in one of them."""
    return [any(_beats(other, point) for other in points) for point in points]


def _beats(a: Point, b: Point) -> bool:
    waits = (a.wait, b.wait) if a.wait is not None and b.wait is not None else (0.0, 0.0)
    pairs = ((a.work, b.work), (a.speed, b.speed), (-waits[0], -waits[1]))
    return all(x >= y for x, y in pairs) and any(x > y for x, y in pairs)


def line(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats in work and speed, from the slowest to the fastest."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.speed, -p.work)):
        if not kept or point.work > kept[-1].work:
            kept.append(point)
    return kept[::-1]


def work_at(points: Sequence[Point], speed: float, wait: float | None = None) -> float | None:
    """The most work of one unit at which each user has ``speed`` or more, and waits ``wait`` (s) at most.

    None where that lies beyond what was measured, or is not reached.
    """
    edge = line(points)
    if not edge or not edge[0].speed * (1 - _ENDS) <= speed <= edge[-1].speed * (1 + _ENDS):
        return None
    candidates = [between(edge, speed), *(p for p in edge if p.speed >= speed)]
    candidates += [p for a, b in pairwise(edge) if (p := _meets(a, b, wait)) and p.speed >= speed]
    return max((p.work for p in candidates if _waits(p) <= (math.inf if wait is None else wait)), default=None)


def between(edge: Sequence[Point], speed: float) -> Point:
    """The point of the line ``edge`` at ``speed``, which lies within it."""
    for a, b in pairwise(edge):
        if a.speed <= speed <= b.speed and a.speed < b.speed:
            return _mixed(a, b, math.log(speed / a.speed) / math.log(b.speed / a.speed))
    return min(edge, key=lambda p: abs(math.log(p.speed / speed)))


def _waits(point: Point) -> float:
    return 0.0 if point.wait is None else point.wait * (1 - _ENDS)


def _mixed(a: Point, b: Point, share: float) -> Point:
    """What lies ``share`` of the way from ``a`` to ``b``, on logarithmic axes."""

    def of(x: float, y: float) -> float:
        return math.exp((1 - share) * math.log(x) + share * math.log(y))

    wait = None if a.wait is None or b.wait is None else of(a.wait, b.wait)
    return Point("", of(a.speed, b.speed), of(a.work, b.work), wait)


def _meets(a: Point, b: Point, wait: float | None) -> Point | None:
    """The place between two neighbours where the wait is just ``wait``."""
    if wait is None or a.wait is None or b.wait is None or a.wait == b.wait:
        return None
    share = math.log(wait / a.wait) / math.log(b.wait / a.wait)
    return _mixed(a, b, share) if 0 <= share <= 1 else None


Side = Mapping[str, Sequence[Point]]  # host to its points


def equivalence(old: Side, new: Side, speed: float, wait: float | None = None) -> Equivalence:
    """What one unit of ``new`` replaces of ``old`` at equal service; Welch's interval over the hosts of each side.

    A host counts where the service lies within what was measured of it. Where a side has no such host there is no
    number: not equivalent.
    """
    logs: list[list[float]] = []
    for side in (old, new):
        works = [work for points in side.values() if (work := work_at(points, speed, wait))]
        logs.append([math.log(work) for work in works])
    means = [math.exp(sum(of_side) / len(of_side)) if of_side else None for of_side in logs]
    if means[0] is None or means[1] is None:
        missing = [n for n, mean in enumerate(means) if mean is None]
        return Equivalence(speed, None, means[0], means[1], _why((old, new), missing, speed))
    return Equivalence(speed, welch(logs[0], logs[1]), means[0], means[1])


def _why(sides: Sequence[Side], missing: Sequence[int], speed: float) -> str:
    """Why those of ``sides`` that are ``missing`` (places) have no figure at ``speed``."""
    reach = [_reach(side) for side in sides]
    if slow := [n for n in missing if speed > reach[n][1]]:
        most = max(reach[n][1] for n in slow)
        return message("not equivalent: loads of {who} are no faster than {most}", who=_who(slow), most=f"{most:.3g}")
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
    """The slowest and the fastest speed of all lines of a side."""
    lines = [edge for points in side.values() if (edge := line(points))]
    return min(e[0].speed for e in lines), max(e[-1].speed for e in lines)


def speeds(old: Side, new: Side) -> list[float]:
    """The speeds at which both sides have figures, from the slowest to the fastest; empty where they do not meet."""
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
