"""Compute how far a value lies below the others, with medians and spreads that exclude the value itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
NORMAL = 1.4826  # the factor from a median absolute deviation to the standard deviation of a normal distribution
_FREEDOM, _SHIFT = (
    0.366,
    0.25,
)  # degrees of freedom of p_value, fitted to simulations (tests/planner/test_outliers.py)


@dataclass(kw_only=True, frozen=True, slots=True)
class LowerTail:
    """Hold the values of a matrix that lie below the others of their row, by ``row`` and ``column``.

    ``median`` and ``spread`` (in standard deviations) describe the others. ``below`` is the distance below that median,
    and ``n`` the number of values in the row.
    """

    row: Whole
    column: Whole
    below: Floats
    median: Floats
    spread: Floats
    n: Whole


def lower_tail(values: Floats, least: float, ordered: Floats | None = None) -> LowerTail:
    """Return the ``values`` (NaN: missing) in the lower half of their row that are at least ``least`` below the others'
    median.

    ``least`` is above 0. ``ordered`` has the values with each row sorted, if available.
    """
    ordered = np.sort(values, axis=1) if ordered is None else ordered
    n = np.sum(~np.isnan(ordered), axis=1)
    # The median of the others is the same for every value below the median that is left out.
    median = _at(ordered, n)
    below = median[:, None] - values
    middle = ordered[np.arange(len(n)), np.minimum(n // 2, ordered.shape[1] - 1)]
    row, column = np.nonzero((below >= least) & (values < middle[:, None]))
    rows, inverse = np.unique(row, return_inverse=True)
    deviations = np.abs(values[rows] - median[rows, None])
    deviations.sort(axis=1)
    deviation = below[row, column]
    without_small, without_large = _at(deviations, n[rows]), _at(deviations, n[rows], large=True)
    usual = deviations[np.arange(len(rows)), n[rows] // 2]
    spread = np.where(deviation >= usual[inverse], without_large[inverse], without_small[inverse])
    return LowerTail(row=row, column=column, below=deviation, median=median[row], spread=NORMAL * spread, n=n[row])


def _at(ordered: Floats, n: Whole, *, large: bool = False) -> Floats:
    """Return the median of each row without one value of its lower half, or of its upper half if ``large``.

    A row has ``n`` values, sorted. The median is NaN for rows with fewer than two.
    """
    rest = np.maximum(n - 1, 1)
    shift = 0 if large else 1
    last = ordered.shape[1] - 1
    places = [np.minimum((rest - 1) // 2 + shift, last), np.minimum(rest // 2 + shift, last)]
    rows = np.arange(len(ordered))
    middle = (ordered[rows, places[0]] + ordered[rows, places[1]]) / 2
    return np.where(n > 1, middle, np.nan)


def p_value(z: Floats, n: Whole) -> Floats:
    """Return the probability that a sound host among ``n`` lies at ``z`` or lower by chance.

    ``z`` is the distance from the others' median in units of their spread. The noise is assumed to be normal. A spread
    of few values is uncertain, so the distribution is Student's t, with degrees of freedom fitted to simulations.
    """
    from scipy import special

    freedom = np.maximum(_FREEDOM * n - _SHIFT, 1.0)
    return np.asarray(special.stdtr(freedom, z / np.sqrt(1 + np.pi / 2 / np.maximum(n - 1, 1))), dtype=np.float64)
