"""When repeats suffice: the interval of their median, the warm-up before it, and which were disturbed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from planner.centre import order_interval

STEADY = 5  # repeats in a row that have to agree
SLOPE, RANGE = 0.01, 0.02  # of their mean: how much they may drift, and differ
FOREIGN_CORES = 0.25  # of others' work, beyond what kernel threads and a login shell take
FOREIGN_SHARE = 0.01  # of the machine's CPUs


def half_width(values: Sequence[float]) -> float | None:
    """Half the 95% order-statistic interval of the median, as a part of the median.

    None below six values, and where the median is 0 and the interval is not.
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
    """How many of the first repeats come before the first STEADY in a row that agree; at most half of them, else 0.

    Where repeats never settle there is no warm-up to remove.
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
    """The outliers among a case's repeats (to cores busy with other work meanwhile), with how far above the usual.

    The usual is the case's median: kernel threads that work for the case count as other work in every repeat.
    """
    if len(foreign) < 3:
        return {}
    usual = statistics.median(foreign.values())
    limit = max(FOREIGN_CORES, FOREIGN_SHARE * cpus)
    return {repeat: cores - usual for repeat, cores in foreign.items() if cores - usual > limit}
