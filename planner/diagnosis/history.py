"""Find permanent changes of a host: change points of a metric over its campaigns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetmark.planner.diagnosis.outliers import DISCOVERY, FLOOR
from fleetmark.planner.diagnosis.robust import Floats

LEAST = 2  # minimum number of campaigns on either side of a change; a single one may be an outlier
STRETCH = 3  # minimum number of campaigns of a temporary change
MOST_SERIES = 500  # maximum number of campaigns for finding temporary changes
LEAST_SERIES = 5  # minimum number of campaigns to rule out chance


@dataclass(frozen=True, slots=True)
class Change:
    """A change of level at ``position``, the index of the first campaign after it.

    ``change`` is in logarithms; below 0 is slower. ``before`` and ``after`` are the levels, in oriented logarithms.
    ``p`` is the probability of such a change by chance, anywhere in the segment.
    """

    position: int
    change: float
    before: float
    after: float
    p: float


def changes(values: Floats, errors: Floats, deficit: float, level: float = DISCOVERY) -> list[Change]:
    """Return the change points of a series in order.

    ``values`` are oriented logarithms, one per campaign. ``errors`` are their standard errors from repeats, or NaN if
    unknown.

    The method is binary segmentation (Scott and Knott 1974). The split of a segment with the largest two-sample t
    counts on two conditions. Its p, multiplied by the number of splits tried (Bonferroni), is at most ``level``. The
    levels differ by at least ``deficit`` (a share). Then both parts are searched.

    If no split counts, a stretch between two of them may, because single splits miss two changes that cancel each
    other. The assumed deviation within segments is at least FLOOR and at least that of repeats.
    """
    return sorted(_segment(values, errors, 0, len(values), deficit, level), key=lambda c: c.position)


def _segment(values: Floats, errors: Floats, first: int, last: int, deficit: float, level: float) -> list[Change]:
    segment, least = values[first:last], _least(errors[first:last])
    best = _split(segment, least)
    matters = -float(np.log1p(-deficit))
    if best is not None and best[1] <= level and abs(best[3] - best[2]) >= matters:
        split, p, before, after = best
        parts = [(first, first + split), (first + split, last)]
        inner = [c for a, b in parts for c in _segment(values, errors, a, b, deficit, level)]
        return [Change(first + split, after - before, before, after, p), *inner]
    between = _interval(segment, least)
    if between is None or between[2] > level:
        return []
    start, end, p, outside, inside = between
    around = np.concatenate([segment[:start], segment[end:]])
    if min(abs(inside - outside), abs(np.median(segment[start:end]) - np.median(around))) < matters:
        return []  # too few campaigns, or a single outlier
    return [
        Change(first + start, inside - outside, outside, inside, p),
        Change(first + end, outside - inside, inside, outside, p),
    ]


def _least(errors: Floats) -> float:
    """Return the minimum deviation of a series."""
    known = errors[~np.isnan(errors)]
    return max(FLOOR, float(np.median(known)) if len(known) else 0.0)


def _interval(values: Floats, least: float) -> tuple[int, int, float, float, float] | None:
    """Return the likeliest stretch that differs from the values before and after it (Olshen et al. 2004).

    The result is its ends, its p, and the levels outside and inside. Return None if the series is too short, or too
    long to try all stretches.
    """
    from scipy import special

    n = len(values)
    if not LEAST_SERIES < n <= MOST_SERIES:
        return None
    start, end = np.triu_indices(n + 1, STRETCH)
    size = end - start
    chosen = (start >= LEAST) & (end <= n - LEAST)
    start, end, size = start[chosen], end[chosen], size[chosen]
    if not len(start):
        return None
    sums = np.concatenate([[0.0], np.cumsum(values)])
    total = sums[end] - sums[start]
    inside, outside = total / size, (sums[-1] - total) / (n - size)
    within = float(values @ values) - size * inside**2 - (n - size) * outside**2
    deviation = np.maximum(np.sqrt(np.maximum(within, 0.0) / (n - 2)), least)
    t = np.abs(inside - outside) / (deviation * np.sqrt(1 / size + 1 / (n - size)))
    best = int(np.argmax(t))
    p = min(1.0, 2 * float(special.stdtr(n - 2, -t[best])) * len(start))
    return int(start[best]), int(end[best]), p, float(outside[best]), float(inside[best])


def _split(values: Floats, least: float) -> tuple[int, float, float, float] | None:
    """Return the likeliest position of a change in one segment, its p, and the levels before and after."""
    from scipy import special

    n = len(values)
    if n < LEAST_SERIES:
        return None
    places = np.arange(LEAST, n - LEAST + 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    before, after = sums[places - 1] / places, (sums[-1] - sums[places - 1]) / (n - places)
    within = squares[-1] - places * before**2 - (n - places) * after**2
    deviation = np.maximum(np.sqrt(np.maximum(within, 0.0) / (n - 2)), least)
    t = np.abs(after - before) / (deviation * np.sqrt(1 / places + 1 / (n - places)))
    best = int(np.argmax(t))
    p = min(1.0, 2 * float(special.stdtr(n - 2, -t[best])) * len(places))
    return int(places[best]), p, float(before[best]), float(after[best])
