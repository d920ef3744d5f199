"""Detect cohorts with two performance levels, in which the hosts of the slower group are not outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.planner.diagnosis.robust import Floats

SHARE, LEAST = 0.25, 3  # minimum number of hosts in the smaller group; rarer values are outliers
# Minimum distance of the group means in standard deviations within groups. Ashman, Bird and Zepf (1994) require 2.
# With few values, a normal distribution looks split more often.
DISTANCE, FEW = 4.0, 24.0
BETWEEN = 0.1  # maximum share of hosts in the middle third between the groups


@dataclass(frozen=True, slots=True)
class Modes:
    """Hold the rows of a matrix whose values form two groups; ``upper`` tells which values belong to the upper one."""

    rows: npt.NDArray[np.int64]
    upper: npt.NDArray[np.bool_]
    low: Floats  # the mean of the lower group for each of ``rows``
    high: Floats


def split(values: Floats, ordered: Floats, least: Floats) -> Modes:
    """Return the rows of ``values`` that form two groups with the smallest variance within groups (Otsu 1979).

    ``values`` has benchmarks x hosts, NaN if missing; ``ordered`` has each row sorted. ``least`` is the minimum
    distance of the groups in each row.
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
    rows = np.flatnonzero(chosen)
    border = (ordered[rows, cut[rows]] + ordered[rows, cut[rows] + 1]) / 2
    upper = values[rows] > border[:, None]
    of_rows = values[rows]
    low_mean = np.nanmean(np.where(upper, np.nan, of_rows), axis=1) if len(rows) else np.empty(0)
    high_mean = np.nanmean(np.where(upper, of_rows, np.nan), axis=1) if len(rows) else np.empty(0)
    return Modes(rows, upper, low_mean, high_mean)


def joined(parts: Sequence[Modes]) -> Modes:
    """Return the modes of several blocks of rows as one object."""
    if len(parts) == 1:
        return parts[0]
    return Modes(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "upper", "low", "high")))
