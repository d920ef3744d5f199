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
    """The values of a matrix that lie below the others of their row, by ``row`` and ``column``.

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
    """Return the ``values`` in the lower half of their row that are at least ``least`` below the others' median.

    Missing values are NaN. ``least`` is above 0. ``ordered``, if given, holds the values with each row sorted.
    """
    ordered = np.sort(values, axis=1) if ordered is None else ordered
    n = np.sum(~np.isnan(ordered), axis=1)
    # The median of the others is the same for every excluded value below the median.
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


# Degrees of freedom of the Student's t distributions that noise is compared with; the first one is normal noise.
FREEDOMS = (np.inf, 6.0, 3.0)
_SCALES = np.geomspace(0.5, 2.0, 9)  # candidate factors for the scale of a row
_SAMPLE = 512  # number of hosts that are used to estimate the tails of noise
_ROWS = np.array([3.0, 0.2, 0.2])  # weight of the prior of each of FREEDOMS, as a number of rows


def freedoms(values: Floats) -> Floats:
    """Return the degrees of freedom of the noise in each row of ``values``, infinity if it looks normal.

    Slow hosts lie in the lower half, so the upper half shows the noise. The likelihood of its distances from the median
    is maximised over the scale. The largest value counts as censored, since a single fast host gives no information.
    Rows with few hosts give little information, so the shares of FREEDOMS over all rows are their prior (empirical
    Bayes, by EM).
    """
    from scipy import special

    sample = values[:, :: max(1, values.shape[1] // _SAMPLE)]
    ordered = np.sort(sample, axis=1)
    n = np.sum(~np.isnan(ordered), axis=1)
    middle = _at(ordered, n + 1)
    if not len(values) or sample.shape[1] < 4:
        return np.full(len(values), np.inf)
    place = np.arange(sample.shape[1])[None, :]
    upper = (place >= ((n + 1) // 2)[:, None]) & (place < n[:, None])
    distance = np.where(upper, ordered - middle[:, None], np.nan)
    number = np.maximum(upper.sum(axis=1), 1)
    quartile = distance[np.arange(len(n)), np.minimum((n + 1) // 2 + number // 2, sample.shape[1] - 1)]
    usable = (number >= 3) & (quartile > 0)
    x = distance[usable] / quartile[usable, None]
    inner = upper[usable] & (place < (n[usable] - 1)[:, None])
    second = np.nanmax(np.where(inner, x, -np.inf), axis=1)
    likelihood = np.zeros((int(usable.sum()), len(FREEDOMS)))
    for column, freedom in enumerate(FREEDOMS):
        quantile = float(special.stdtrit(min(freedom, 1e9), 0.75))
        each = []
        for scale in _SCALES:
            y = x * quantile / scale
            if np.isinf(freedom):
                density = -0.5 * y**2 - 0.5 * np.log(2 * np.pi)
            else:
                constant = special.gammaln((freedom + 1) / 2) - special.gammaln(freedom / 2)
                power = (freedom + 1) / 2 * np.log1p(np.fmin(y**2, 1e12) / freedom)
                density = constant - 0.5 * np.log(freedom * np.pi) - power
            density = np.where(inner, density + np.log(2 * quantile / scale), 0.0).sum(axis=1)
            beyond = special.stdtr(min(freedom, 1e9), -second * quantile / scale)
            each.append(density + np.log(2 * np.fmax(beyond, 1e-300)))
        likelihood[:, column] = np.max(each, axis=0)
    share = _ROWS / _ROWS.sum()
    for _ in range(20):
        posterior = likelihood + np.log(share)
        posterior = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        share = (posterior.sum(axis=0) + _ROWS) / (len(posterior) + _ROWS.sum())
    result = np.full(len(values), np.inf)
    if len(likelihood):
        result[usable] = np.array(FREEDOMS)[np.argmax(likelihood + np.log(share), axis=1)]
    return result


def missing_share(loss: float) -> float:
    """Return the lost share of performance for a logarithmic ``loss``: 1 - exp(-loss)."""
    return float(-np.expm1(-loss))


def tail_share(z: Floats, freedom: Floats) -> Floats:
    """Return the probability of noise at ``z`` spreads or lower, where a spread is NORMAL times the median deviation.

    ``freedom`` has the degrees of freedom of the noise.
    """
    from scipy import special

    bounded = np.fmin(freedom, 1e9)
    return np.asarray(special.stdtr(bounded, z * NORMAL * special.stdtrit(bounded, 0.75)))


def _at(ordered: Floats, n: Whole, *, large: bool = False) -> Floats:
    """Return the median of each row without one value of its lower half, or of its upper half if ``large``.

    A row has ``n`` sorted values. The median is NaN for rows with fewer than two values.
    """
    rest = np.maximum(n - 1, 1)
    shift = 0 if large else 1
    last = ordered.shape[1] - 1
    places = [np.minimum((rest - 1) // 2 + shift, last), np.minimum(rest // 2 + shift, last)]
    rows = np.arange(len(ordered))
    middle = (ordered[rows, places[0]] + ordered[rows, places[1]]) / 2
    return np.where(n > 1, middle, np.nan)


def uncertain(n: Whole, noise: Floats | float = np.inf) -> Floats:
    """Return the degrees of freedom of distances in a spread of ``n`` values of ``noise``, fitted to simulations."""
    return np.asarray(1 / (1 / np.maximum(_FREEDOM * n - _SHIFT, 1.0) + 1 / np.asarray(noise)))


def p_value(z: Floats, n: Whole, noise: Floats | float = np.inf) -> Floats:
    """Return the probability that a healthy host among ``n`` lies at ``z`` or lower by chance.

    ``z`` is the distance from the others' median in units of their spread; ``noise`` the degrees of freedom of the
    noise, infinity if it is normal. A spread of few values is uncertain, so the distribution is Student's t, with
    degrees of freedom fitted to simulations.
    """
    from scipy import special

    freedom = uncertain(n, noise)
    factor = NORMAL * special.stdtrit(np.fmin(np.asarray(noise), 1e9), 0.75)  # 1 for normal noise
    return np.asarray(
        special.stdtr(freedom, z * factor / np.sqrt(1 + np.pi / 2 / np.maximum(n - 1, 1))), dtype=np.float64
    )
