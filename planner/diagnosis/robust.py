"""How far below the others a value lies: medians and spreads that leave it out itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
NORMAL = 1.4826  # a median absolute deviation in standard deviations of a normal distribution
_FREEDOM, _SHIFT = (
    0.366,
    0.25,
)  # of the t distribution of p_value: fitted to simulations, tests/planner/test_outliers.py


@dataclass(frozen=True, slots=True)
class LowerTail:
    """The values of a matrix that lie below the others of their row, by ``row`` and ``column``: the others' ``median``
    and ``spread`` (in standard deviations), how far ``below`` that median they lie, and the row's ``n`` values.
    """

    row: Whole
    column: Whole
    below: Floats
    median: Floats
    spread: Floats
    n: Whole


def lower_tail(values: Floats, least: float, ordered: Floats | None = None) -> LowerTail:
    """The ``values`` (NaN: missing) of the lower half of their row that lie ``least`` (above 0) or more below the
    others' median.

    ``ordered``: the values, each row sorted, where they are at hand.
    """
    ordered = np.sort(values, axis=1) if ordered is None else ordered
    n = np.sum(~np.isnan(ordered), axis=1)
    # Whichever value below the median is left out, the median of the others is the same.
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
    return LowerTail(row, column, deviation, median[row], NORMAL * spread, n[row])


def _at(ordered: Floats, n: Whole, *, large: bool = False) -> Floats:
    """The median of each row (its first ``n`` values, sorted) without one value of its lower half, or of its upper
    half where ``large``; NaN for rows of fewer than two.
    """
    rest = np.maximum(n - 1, 1)
    shift = 0 if large else 1
    last = ordered.shape[1] - 1
    places = [np.minimum((rest - 1) // 2 + shift, last), np.minimum(rest // 2 + shift, last)]
    rows = np.arange(len(ordered))
    middle = (ordered[rows, places[0]] + ordered[rows, places[1]]) / 2
    return np.where(n > 1, middle, np.nan)


def p_value(z: Floats, n: Whole) -> Floats:
    """The probability that a sound host of ``n`` lies at ``z`` or lower, by chance: ``z`` is its distance from the
    others' median in their spread. Normal noise is assumed; a spread of few values is itself uncertain, hence Student's
    t with as many degrees of freedom as simulations show.
    """
    from scipy import special

    freedom = np.maximum(_FREEDOM * n - _SHIFT, 1.0)
    return np.asarray(special.stdtr(freedom, z / np.sqrt(1 + np.pi / 2 / np.maximum(n - 1, 1))), dtype=np.float64)
