"""Detect cohorts with two or more performance levels, in which the hosts of the slower group are not outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.planner.diagnosis.robust import Floats

SHARE, LEAST = 0.25, 3  # minimum share of hosts in the slower group, and number in both; rarer values are outliers
# Minimum distance of the group means in standard deviations within groups. Ashman, Bird and Zepf (1994) require 2.
# With few values, a normal distribution looks split more often.
DISTANCE, FEW = 4.0, 24.0
BETWEEN = 0.1  # maximum share of hosts in the middle third between the groups
PART = 0.15  # minimum share of hosts in each of three or more groups
# Minimum gap between such groups, in median gaps between neighbours. Gaps in normal noise are about exponential, so
# the largest of n exceeds this in less than n * 2 ** -GAP cases.
GAP = 20.0
# A fast minority: its minimum share, and the maximum share of it, beyond which the slow hosts are outliers.
FAST, REST = 0.05, 0.6
CHANCE = 1e-5  # p value of the gap below a fast minority, for Student's t
REPEATS = 8  # degrees of freedom of the noise that repeats show, as it adds to the spread of a fast minority


@dataclass(frozen=True, slots=True)
class Modes:
    """The rows of a matrix with values that form groups.

    ``group`` has the number of each value's group: 0 for the slowest group, -1 if the value is missing. ``low`` and
    ``high`` are the means below and above the largest gap.
    """

    rows: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    low: Floats
    high: Floats

    @property
    def upper(self) -> npt.NDArray[np.bool_]:
        """Return which values do not belong to the slowest group."""
        return self.group > 0


def split(values: Floats, ordered: Floats, least: Floats, noise: Floats) -> Modes:
    """Return the rows of ``values`` that form groups.

    These are two groups with the smallest variance within groups (Otsu 1979), groups separated by at least GAP times
    the usual distance between neighbours, or a fast minority (``fastest``). ``values`` has benchmarks x hosts, NaN if
    missing; ``ordered`` has each row sorted. ``least`` is the minimum distance of the groups in each row, and ``noise``
    the standard deviation that repeats explain (NaN: unknown).
    """
    n = np.sum(~np.isnan(values), axis=1)
    centred = np.nan_to_num(ordered - ordered[:, :1])
    below = np.arange(1, values.shape[1] + 1)[None, :]  # number of values in the lower group for each possible split
    above = n[:, None] - below
    sums, squares = np.cumsum(centred, axis=1), np.cumsum(centred**2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = sums / below, (sums[:, -1:] - sums) / above
        within = squares[:, -1:] - below * low**2 - above * high**2
        smallest, fewest = (np.maximum(LEAST, np.ceil(share * n))[:, None] for share in (SHARE, FAST))
        within = np.where((below >= smallest) & (above >= fewest), within, np.inf)
        cut = np.argmin(within, axis=1)
        cell = (np.arange(len(values)), cut)
        spread = np.sqrt(np.maximum(within[cell], 0.0) / np.maximum(n - 2, 1))
        gap = high[cell] - low[cell]
        third = gap[:, None] / 3
        middle = (centred > low[cell][:, None] + third) & (centred < high[cell][:, None] - third)
        few = np.sum(middle & (np.arange(values.shape[1]) < n[:, None]), axis=1) <= BETWEEN * n
        chosen = np.isfinite(within[cell]) & (gap >= least) & (gap > (DISTANCE + FEW / np.maximum(n, 1)) * spread) & few
    borders = {int(row): [(ordered[row, cut[row]] + ordered[row, cut[row] + 1]) / 2] for row in np.flatnonzero(chosen)}
    with np.errstate(invalid="ignore"):
        wide = np.nanmax(np.diff(ordered, axis=1), axis=1, initial=0.0) >= least
    for row in np.flatnonzero(wide & (n >= 2 * LEAST)):
        if cuts := _gaps(ordered[row, : n[row]], float(least[row])):
            borders[int(row)] = cuts
    for position, border in fastest(ordered, least, noise, np.maximum(2, np.ceil(FAST * n)), REST).items():
        if border > max(borders.get(position, [-np.inf])):
            borders.setdefault(position, []).append(border)
    return grouped(values, borders)


def grouped(values: Floats, borders: Mapping[int, Sequence[float]]) -> Modes:
    """Return the groups that the ``borders`` of some rows of ``values`` separate."""
    rows = np.array(sorted(borders), dtype=np.int64)
    group = np.full((len(rows), values.shape[1]), -1, dtype=np.int64)
    low_mean, high_mean = np.empty(len(rows)), np.empty(len(rows))
    for position, row in enumerate(rows):
        one = values[row]
        known = ~np.isnan(one)
        group[position, known] = np.searchsorted(borders[int(row)], one[known])
        slowest = group[position] == 0
        low_mean[position], high_mean[position] = one[slowest].mean(), one[known & ~slowest].mean()
    return Modes(rows, group, low_mean, high_mean)


def fastest(ordered: Floats, least: Floats, noise: Floats, smallest: Floats, largest: float) -> dict[int, float]:
    """Return the rows in which a few fast hosts are clearly separate from slower hosts, each with the threshold.

    ``ordered`` has each row sorted, NaN last. The means of both sides differ by at least ``least``, and the gap between
    them exceeds the spread of the fast hosts: Student's t at CHANCE. That spread is their own, or if larger the one
    combined with the ``noise`` of repeats (NaN: unknown), which counts as REPEATS degrees of freedom, like a prior
    (Smyth 2004). The slow hosts need no common level. The fast side has between ``smallest`` hosts and a share of
    ``largest``.
    """
    from scipy import special

    n = np.sum(~np.isnan(ordered), axis=1)[:, None]
    if ordered.shape[1] < 2:
        return {}
    gaps = np.diff(ordered, axis=1)
    below = np.arange(1, ordered.shape[1])[None, :]
    above = n - below
    centred = np.nan_to_num(ordered - ordered[:, :1])
    sums, squares = np.cumsum(centred, axis=1), np.cumsum(centred**2, axis=1)
    known = ~np.isnan(noise)[:, None]
    freedom = above - 1 + np.where(known, REPEATS, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        high = (sums[:, -1:] - sums[:, :-1]) / above
        distance = high - sums[:, :-1] / below
        within = np.fmax(squares[:, -1:] - squares[:, :-1] - above * high**2, 0.0)
        pooled = np.sqrt((within + np.where(known, REPEATS * noise[:, None] ** 2, 0.0)) / freedom)
        spread = np.fmax(np.sqrt(within / np.maximum(above - 1, 1)), pooled)
        usable = (above >= smallest[:, None]) & (above <= largest * n) & (freedom > 0) & (distance >= least[:, None])
        t = np.where(usable & (gaps > 0), gaps / np.fmax(spread, 1e-12), 0.0)
        chance = special.stdtr(np.maximum(freedom, 1), -t)
    chance = np.where(t > 0, chance, 1.0)
    cut = np.argmin(chance, axis=1)
    rows = np.flatnonzero(chance[np.arange(len(cut)), cut] <= CHANCE)
    return {int(row): float(ordered[row, cut[row]] + ordered[row, cut[row] + 1]) / 2 for row in rows}


def _gaps(ordered: Floats, least: float) -> list[float]:
    """Return the borders between groups of sorted values, or none if no gap is large enough."""
    gaps = np.diff(ordered)
    usual = np.median(gaps[gaps > 0]) if np.count_nonzero(gaps) > LEAST else np.inf
    smallest = max(LEAST, int(np.ceil(PART * len(ordered))))
    borders, start = [], 0
    for place in np.flatnonzero(gaps >= max(least, GAP * float(usual))):
        if place + 1 - start >= smallest and len(ordered) - place - 1 >= smallest:
            borders.append(float(ordered[place] + ordered[place + 1]) / 2)
            start = int(place) + 1
    return borders


def none(columns: int) -> Modes:
    """Return the modes of a matrix with ``columns`` columns in which no row forms groups."""
    return Modes(np.array([], dtype=np.int64), np.empty((0, columns), dtype=np.int64), np.array([]), np.array([]))


def joined(parts: Sequence[Modes]) -> Modes:
    """Merge the modes of several blocks of rows into one object."""
    if len(parts) == 1:
        return parts[0]
    return Modes(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "group", "low", "high")))
