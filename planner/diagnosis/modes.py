"""Cohorts of two kinds: where values lie in two groups, the hosts of the slower one are no outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.diagnosis.robust import Floats

SHARE, LEAST = 0.25, 3  # hosts of the smaller group: a rarer value is an outlier
# Of the groups' means, in standard deviations within them: Ashman, Bird and Zepf (1994) ask for 2 at least. Of few
# values a normal distribution looks split more often.
DISTANCE, FEW = 4.0, 24.0
BETWEEN = 0.1  # of the hosts, at most, in the middle third between the groups


@dataclass(frozen=True, slots=True)
class Modes:
    """The rows of a matrix whose values lie in two groups. ``upper``: which values belong to the upper one."""

    rows: npt.NDArray[np.int64]
    upper: npt.NDArray[np.bool_]
    low: Floats  # the mean of the lower group of each of ``rows``
    high: Floats


def split(values: Floats, ordered: Floats, least: Floats) -> Modes:
    """The rows of ``values`` (benchmarks x hosts, NaN missing; ``ordered``: each row sorted) in two groups.

    The groups lie at least ``least`` (a row's) apart. They are those of the smallest variance within (Otsu 1979).
    """
    n = np.sum(~np.isnan(values), axis=1)
    centred = np.nan_to_num(ordered - ordered[:, :1])
    below = np.arange(1, values.shape[1] + 1)[None, :]  # values of the lower group if it ends here
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
    """The modes of several blocks of rows as one."""
    if len(parts) == 1:
        return parts[0]
    return Modes(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("rows", "upper", "low", "high")))
