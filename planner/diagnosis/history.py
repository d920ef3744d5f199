"""Find lasting changes of a host: steps and slopes of a metric over its campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fleetmark.planner.diagnosis.outliers import DISCOVERY, FLOOR
from fleetmark.planner.diagnosis.robust import NORMAL, Floats

LEAST = 2  # minimum number of campaigns on either side of a change, since a single campaign may be an outlier
STRETCH = 3  # minimum number of campaigns of a temporary change
MOST_SERIES = 500  # maximum number of campaigns for finding temporary changes
LEAST_SERIES = 5  # minimum number of campaigns to rule out chance
LEAST_HOSTS = 3  # minimum number of hosts for estimating the usual noise of a benchmark
FLEET = 5  # minimum number of hosts for a median that shows changes common to all hosts
_FREEDOM = 60.0  # maximum degrees of freedom of the noise estimated from other hosts
_WINDOW, _ODD = 5, 4.0  # campaigns around a value, and the deviations from their median at which the value is cut off
_ENDS = 200  # maximum number of points for the slope by medians


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


@dataclass(frozen=True, slots=True)
class Trend:
    """A steady change between the campaigns ``start`` and ``end`` (indices).

    ``change`` is the total in logarithms; below 0 is slower. ``p`` is the probability of such a slope by chance.
    """

    start: int
    end: int
    change: float
    p: float


@dataclass(frozen=True, slots=True)
class Noise:
    """The usual standard deviation of a campaign's value, and the degrees of freedom of that estimate."""

    deviation: float = 0.0
    freedom: float = 0.0


@dataclass(frozen=True, slots=True)
class Lasting:
    """The steps and slopes of a series in order."""

    steps: tuple[Change, ...] = ()
    trends: tuple[Trend, ...] = ()


def usual_noise(series: Sequence[Floats]) -> Noise:
    """Return the usual noise of several hosts' series, from the differences between successive campaigns.

    Steps and slopes have little effect on these differences. With fewer than LEAST_HOSTS series, there is no estimate.
    """
    known = [values for values in series if len(values) >= LEAST_SERIES]
    if len(known) < LEAST_HOSTS:
        return Noise()
    steps = [np.diff(values) for values in known]
    deviations = [_deviation(d) for d in steps]
    return Noise(float(np.median(deviations)), min(_FREEDOM, sum(map(len, steps)) / 3))


def _deviation(steps: Floats) -> float:
    """Return the standard deviation of values, estimated from the ``steps`` between them.

    The estimate uses the median absolute deviation, with the correction for few values of Croux and Rousseeuw (1992).
    """
    n = len(steps)
    return NORMAL * float(np.median(np.abs(steps - np.median(steps)))) / float(np.sqrt(2)) * n / (n - 0.8)


def lasting(
    values: Floats, errors: Floats, deficit: float, level: float = DISCOVERY, noise: Noise = Noise()
) -> Lasting:
    """Return the steps and slopes of a series of oriented logarithms, one per campaign.

    ``errors`` are the standard errors from repeats, NaN if unknown. ``noise`` is the usual noise of other hosts, which
    adds its degrees of freedom. If both a slope and a step fit a segment, the one with the smaller sum of squares is
    used. The residuals of a slope are searched for steps. Both need a p of at most ``level`` and a change of at least
    ``deficit`` (a share). A slope must also be confirmed by the median of the slopes between pairs of points (Theil
    1950, Sen 1968), so that a single outlier cannot cause one. Single outliers are cut off beforehand.
    """
    values = _without_odd(values, max(noise.deviation, _least(errors)))
    steps, trends = _segment(values, errors, 0, len(values), deficit, level, noise)
    return Lasting(tuple(sorted(steps, key=lambda c: c.position)), tuple(sorted(trends, key=lambda trend: trend.start)))


def _without_odd(values: Floats, least: float) -> Floats:
    """Return the series with each value cut off at _ODD deviations from the median of the campaigns around it."""
    from scipy import ndimage

    if len(values) < LEAST_SERIES:
        return values
    around = ndimage.median_filter(values, _WINDOW, mode="mirror")
    reach = _ODD * max(_deviation(np.diff(values)), least)
    return np.asarray(np.clip(values, around - reach, around + reach))


def changes(values: Floats, errors: Floats, deficit: float, level: float = DISCOVERY) -> list[Change]:
    """Return the change points of a series in order.

    ``values`` are oriented logarithms, one per campaign. ``errors`` are their standard errors from repeats, or NaN if
    unknown.

    The method is binary segmentation (Scott and Knott 1974). The split of a segment with the largest two-sample t must
    meet two conditions. Its p, multiplied by the number of splits tried (Bonferroni), is at most ``level``. The levels
    differ by at least ``deficit`` (a share). Then both parts are searched.

    If no split meets them, a stretch between two splits may, because single splits miss two changes that cancel each
    other. The assumed deviation within segments is at least FLOOR and at least that of repeats.
    """
    return list(lasting(values, errors, deficit, level).steps)


def _segment(
    values: Floats,
    errors: Floats,
    first: int,
    last: int,
    deficit: float,
    level: float,
    noise: Noise,
    *,
    sloped: bool = True,
) -> tuple[list[Change], list[Trend]]:
    """Return the steps and slopes between two positions; slopes are searched only if ``sloped``."""
    segment, least = values[first:last], _least(errors[first:last])
    best = _split(segment, least, noise)
    slope = _slope(segment, least, noise) if sloped else None
    matters = -float(np.log1p(-deficit))
    is_step = best is not None and best.p <= level and abs(best.after - best.before) >= matters
    is_slope = (
        slope is not None
        and slope.p <= level
        and min(abs(slope.change), 2 * abs(slope.middle)) >= matters
        and slope.change * slope.middle > 0
    )
    if slope is not None and is_slope and not (is_step and best is not None and best.squares <= slope.squares):
        rest = values.copy()
        rest[first:last] = slope.rest
        steps, _ = _segment(rest, errors, first, last, deficit, level, noise, sloped=False)
        return (
            [replace(s, before=s.before + slope.centre, after=s.after + slope.centre) for s in steps],
            [Trend(first, last - 1, slope.change, slope.p)],
        )
    if best is not None and is_step:
        position = first + best.position
        here = [Change(position, best.after - best.before, best.before, best.after, best.p)]
        trends: list[Trend] = []
        for start, end in ((first, position), (position, last)):
            inner, more = _segment(values, errors, start, end, deficit, level, noise, sloped=sloped)
            here += inner
            trends += more
        return here, trends
    return _stretch(segment, least, first, matters, level), []


def _stretch(segment: Floats, least: float, first: int, matters: float, level: float) -> list[Change]:
    """Return both ends of a temporary change, or nothing."""
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


@dataclass(kw_only=True, frozen=True, slots=True)
class _Slope:
    """A fitted line.

    - ``change``: its total change; ``middle``: the same by medians
    - ``p``: the probability by chance
    - ``squares``: the residual sum of squares
    - ``rest``: the values without the line
    - ``centre``: the centre of the segment
    """

    change: float
    middle: float
    p: float
    squares: float
    rest: Floats
    centre: float


def _slope(values: Floats, least: float, noise: Noise) -> _Slope | None:
    """Return the line through a segment, or None if it is too short."""
    from scipy import special

    n = len(values)
    if n < LEAST_SERIES:
        return None
    x = np.arange(n) - (n - 1) / 2
    centre = float(values.mean())
    slope = float(x @ (values - centre) / (x @ x))
    rest = values - centre - slope * x
    squares = float(rest @ rest)
    deviation, freedom = _pooled(squares, n - 2, least, noise)
    t = abs(slope) / (float(deviation) / float(np.sqrt(x @ x)))
    p = min(1.0, 2 * float(special.stdtr(freedom, -t)))
    chosen = np.unique(np.linspace(0, n - 1, min(n, _ENDS)).astype(int))
    start, end = np.triu_indices(len(chosen), 1)
    start, end = chosen[start], chosen[end]
    middle = float(np.median((values[end] - values[start]) / (end - start)))
    return _Slope(change=slope * (n - 1), middle=middle * (n - 1), p=p, squares=squares, rest=rest, centre=centre)


def _pooled(squares: Floats | float, freedom: int, least: float, noise: Noise) -> tuple[Floats, float]:
    """Return the deviation within a segment, pooled with the usual ``noise``, and its degrees of freedom."""
    joint = (np.maximum(squares, 0.0) + noise.freedom * noise.deviation**2) / (freedom + noise.freedom)
    return np.maximum(np.sqrt(joint), least), freedom + noise.freedom


def _least(errors: Floats) -> float:
    """Return the minimum deviation of a series."""
    known = errors[~np.isnan(errors)]
    return max(FLOOR, float(np.median(known)) if len(known) else 0.0)


def _interval(values: Floats, least: float) -> tuple[int, int, float, float, float] | None:
    """Return the stretch that most likely differs from the values before and after it (Olshen et al. 2004).

    The result has its two ends, its p, and the levels outside and inside. Return None if the series is too short, or
    too long to try all stretches.
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


@dataclass(frozen=True, slots=True)
class _Step:
    """The most likely step of a segment: its position, its p, both levels, and the residual sum of squares."""

    position: int
    p: float
    before: float
    after: float
    squares: float


def _split(values: Floats, least: float, noise: Noise) -> _Step | None:
    """Return the most likely step in one segment, or None if it is too short."""
    from scipy import special

    n = len(values)
    if n < LEAST_SERIES:
        return None
    places = np.arange(LEAST, n - LEAST + 1)
    sums, squares = np.cumsum(values), np.cumsum(values**2)
    before, after = sums[places - 1] / places, (sums[-1] - sums[places - 1]) / (n - places)
    within = squares[-1] - places * before**2 - (n - places) * after**2
    deviation, freedom = _pooled(within, n - 2, least, noise)
    t = np.abs(after - before) / (deviation * np.sqrt(1 / places + 1 / (n - places)))
    best = int(np.argmax(t))
    p = min(1.0, 2 * float(special.stdtr(freedom, -t[best])) * len(places))
    return _Step(int(places[best]), p, float(before[best]), float(after[best]), float(within[best]))
