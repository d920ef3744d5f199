"""Compute the percentile bootstrap over hosts: a second interval without assumed distribution, for large fleets.

Hosts are resampled with replacement, and each contributes its mean: resampling repeats within hosts as well would
count their noise twice (Davison & Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). Below
LEAST_HOSTS a side the percentiles fall short of their nominal coverage (Student's t does not); above MOST_HOSTS the
two agree to all digits that are printed. There is no second interval then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fleetmark.planner.estimate import CONFIDENCE, Estimate, of_log

LEAST_HOSTS, MOST_HOSTS = 10, 1000  # a side
RESAMPLES = 2000
SEED = 1  # the same figures give the same interval

Draws = npt.NDArray[np.float64]


def percentiles(a: Sequence[float], b: Sequence[float], level: float = CONFIDENCE) -> Estimate | None:
    """exp(mean b - mean a) of hosts' oriented log means, its interval over resampled hosts; None if a side has too few
    hosts or too many.
    """
    if min(len(a), len(b)) < LEAST_HOSTS or max(len(a), len(b)) > MOST_HOSTS:
        return None
    rng = np.random.default_rng(SEED)
    draws = _means(b, rng) - _means(a, rng)
    return _estimate(float(np.mean(b) - np.mean(a)), draws, level, (len(a), len(b)))


def paired_percentiles(differences: Sequence[float], level: float = CONFIDENCE) -> Estimate | None:
    """Return the same for hosts before and after: exp(mean difference) over resampled hosts."""
    if not LEAST_HOSTS <= len(differences) <= MOST_HOSTS:
        return None
    draws = _means(differences, np.random.default_rng(SEED))
    return _estimate(float(np.mean(differences)), draws, level, (len(differences), len(differences)))


def _means(values: Sequence[float], rng: np.random.Generator) -> Draws:
    """Return the mean of each resample."""
    x = np.asarray(values, dtype=float)
    means: Draws = x[rng.integers(0, len(x), (RESAMPLES, len(x)))].mean(axis=1)
    return means


def _estimate(delta: float, draws: Draws, level: float, hosts: tuple[int, int]) -> Estimate:
    lo, hi = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(of_log(delta), of_log(float(lo)), of_log(float(hi)), level, n=hosts)
