"""Decide whether repeats suffice, from the interval of their median, the warm-up, and disturbed repeats."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from fleetmark.planner.centre import order_interval

STEADY = 5  # number of consecutive repeats that must agree
SLOPE, RANGE = 0.01, 0.02  # maximum drift and difference, relative to their mean
FOREIGN_CORES = 0.25  # maximum cores busy with other work, not counting kernel threads and a login shell
FOREIGN_SHARE = 0.01  # the same as a share of the machine's CPUs


def half_width(values: Sequence[float]) -> float | None:
    """Return half the 95% order-statistic interval of the median, relative to the median.

    Return None for fewer than six values, or if the median is 0 and the interval is not.
    """
    ranks = order_interval(len(values))
    if ranks is None:
        return None
    middle, ordered = statistics.median(values), sorted(values)
    if ordered[ranks[1] - 1] == ordered[ranks[0] - 1]:
        return 0.0
    if middle == 0:
        return None
    return (ordered[ranks[1] - 1] - ordered[ranks[0] - 1]) / 2 / abs(middle)


def warm_up(values: Sequence[float]) -> int:
    """Return the number of warm-up repeats: those before the first STEADY consecutive repeats that agree.

    The warm-up is at most half of the repeats. If the repeats never settle, it is 0.
    """
    for start in range(len(values) // 2 + 1):
        window = values[start : start + STEADY]
        if len(window) == STEADY and _steady(window):
            return start
    return 0


def _steady(window: Sequence[float]) -> bool:
    mean = statistics.fmean(window)
    if mean == 0:
        return max(window) == min(window)
    places = range(len(window))
    slope = statistics.linear_regression(places, window).slope * (len(window) - 1)
    return abs(slope / mean) < SLOPE and (max(window) - min(window)) / abs(mean) < RANGE


def disturbed(foreign: Mapping[int, float], cpus: int) -> dict[int, float]:
    """Return the outliers among a case's repeats, by the cores busy with other work, with their excess over the median.

    The median is the reference because kernel threads that work for the case count as other work in every repeat.
    """
    if len(foreign) < 3:
        return {}
    usual = statistics.median(foreign.values())
    limit = max(FOREIGN_CORES, FOREIGN_SHARE * cpus)
    return {repeat: cores - usual for repeat, cores in foreign.items() if cores - usual > limit}
