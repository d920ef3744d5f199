"""Compute the percentile bootstrap over hosts: a second interval, without an assumed distribution.

Each resample draws hosts with replacement and uses each host's mean. Resampling the repeats within hosts as well would
count their noise twice (Davison & Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).

There is no second interval for fewer than LEAST_HOSTS hosts per side, because the percentiles then fall short of their
nominal coverage, unlike Student's t. Nor is there one for more than MOST_HOSTS hosts, because both intervals then agree
to all printed digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fleetmark.planner.estimate import CONFIDENCE, Estimate, of_log

LEAST_HOSTS, MOST_HOSTS = 10, 1000  # hosts per side
RESAMPLES = 2000
SEED = 1  # fixed, so that the same figures always give the same interval

Draws = npt.NDArray[np.float64]


def percentiles(a: Sequence[float], b: Sequence[float], level: float = CONFIDENCE) -> Estimate | None:
    """Return exp(mean b - mean a) of the hosts' oriented log means, with its interval over resampled hosts.

    Return None if a side has too few or too many hosts.
    """
    if min(len(a), len(b)) < LEAST_HOSTS or max(len(a), len(b)) > MOST_HOSTS:
        return None
    rng = np.random.default_rng(SEED)
    draws = _means(b, rng) - _means(a, rng)
    return _estimate(float(np.mean(b) - np.mean(a)), draws, level, (len(a), len(b)))


def paired_percentiles(differences: Sequence[float], level: float = CONFIDENCE) -> Estimate | None:
    """Return exp(mean difference) for hosts measured before and after, with its interval over resampled hosts.

    Return None if there are too few or too many hosts.
    """
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
