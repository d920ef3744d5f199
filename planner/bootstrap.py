"""The percentile bootstrap over hosts: a second interval that assumes no distribution, for fleets large enough for it.

Hosts are resampled with replacement and each brings its own mean whole: resampling repeats within them as well would
count their noise twice (Davison & Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). Below
LEAST_HOSTS a side the percentiles fall short of their nominal coverage (Student's t does not); above MOST_HOSTS the
two agree to all digits that anyone prints. There is none then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from planner.ratio import of_log

LEAST_HOSTS, MOST_HOSTS = 10, 1000  # a side
RESAMPLES = 2000
SEED = 1  # the same figures give the same interval

Draws = npt.NDArray[np.float64]


def percentiles(a: Sequence[float], b: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """Ends of exp(mean b - mean a) over resampled hosts (oriented log means); None where a side has too few or many."""
    if min(len(a), len(b)) < LEAST_HOSTS or max(len(a), len(b)) > MOST_HOSTS:
        return None
    rng = np.random.default_rng(SEED)
    return _ends(_means(b, rng) - _means(a, rng), confidence)


def paired_percentiles(differences: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """The same of hosts before and after: exp(mean difference) over resampled hosts."""
    if not LEAST_HOSTS <= len(differences) <= MOST_HOSTS:
        return None
    return _ends(_means(differences, np.random.default_rng(SEED)), confidence)


def _means(values: Sequence[float], rng: np.random.Generator) -> Draws:
    """The mean of each resample."""
    x = np.asarray(values, dtype=float)
    means: Draws = x[rng.integers(0, len(x), (RESAMPLES, len(x)))].mean(axis=1)
    return means


def _ends(delta: Draws, confidence: float) -> tuple[float, float]:
    lo, hi = np.quantile(delta, [(1 - confidence) / 2, (1 + confidence) / 2])
    return of_log(float(lo)), of_log(float(hi))
