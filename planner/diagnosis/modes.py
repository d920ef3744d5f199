"""Detect cohorts with two or more performance levels, in which the hosts of the slower group are not outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.planner.diagnosis.robust import Floats

SHARE, LEAST = 0.25, 3  # minimum share and number of hosts in the smaller group; rarer values are outliers
# Minimum distance of the group means in standard deviations within groups. Ashman, Bird and Zepf (1994) require 2.
# With few values, a normal distribution looks split more often.
DISTANCE, FEW = 4.0, 24.0
BETWEEN = 0.1  # maximum share of hosts in the middle third between the groups
PART = 0.15  # minimum share of hosts in each of three or more groups
# Minimum gap between such groups, in median gaps between neighbours. Gaps in normal noise are about exponential, so
# the largest of n exceeds this in less than n * 2 ** -GAP cases.
GAP = 20.0


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


def split(values: Floats, ordered: Floats, least: Floats) -> Modes:
    """Return the rows of ``values`` that form groups.

    These are two groups with the smallest variance within groups (Otsu 1979), or groups separated by at least GAP times
    the usual distance between neighbours. ``values`` has benchmarks x hosts, NaN if missing; ``ordered`` has each row
    sorted. ``least`` is the minimum distance of the groups in each row.
    """
    n = np.sum(~np.isnan(values), axis=1)
    centred = np.nan_to_num(ordered - ordered[:, :1])
    below = np.arange(1, values.shape[1] + 1)[None, :]  # number of values in the lower group for each possible split
    above = n[:, None] - below
    sums, squares = np.cumsum(centred, axis=1), np.cumsum(centred**2, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = sums / below, (sums[:, -1:] - sums) / above
        within = squares[:, -1:] - below * low**2 - above * high**2
        smallest = np.maximum(LEAST, np.ceil(SHARE * n))[:, None]
        within = np.where((below >= smallest) & (above >= smallest), within, np.inf)
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
