"""Count the servers that are kept idle: spares, servers in maintenance, and servers that are down.

Of N installed servers, at most N - spares - maintenance - down may be active. Spares are a count, a share of N, or
both, and maintenance is a share of N. Down is the smallest k such that at most k servers are down in a share
``quantile`` of the time. Failures are independent, so the number down is binomial: P(Bin(N, U) <= k) >= quantile, U = f
r / (1 + f r) for f failures a year that each take r years to repair.

N - down(N) is not concave, so the program has a line at or above down(N): an edge of its upper concave hull.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import stats

_NEAR = 1e-9  # tolerance for a quantile that was rounded


def unavailability(failures: float, repair: float) -> float:
    """Return the share of servers that are down on average.

    ``failures`` are per server and year, ``repair`` is in years.
    """
    return failures * repair / (1 + failures * repair)


@lru_cache(maxsize=4096)
def down(installed: float, share: float, quantile: float) -> float:
    """Return the number of down servers, of ``installed`` ones, that is not exceeded in a share ``quantile`` of the
    time.

    ``share`` is the result of ``unavailability``.
    """
    return float(_down(np.array([installed]), share, quantile)[0]) if share > 0 and installed >= 1 else 0.0


def _down(installed: np.ndarray, share: float, quantile: float) -> np.ndarray:
    count = np.floor(installed + _NEAR)
    least = stats.binom.ppf(quantile, count, share)
    fewer = np.maximum(least - 1, 0)
    return np.where(stats.binom.cdf(fewer, count, share) >= quantile - _NEAR, fewer, least)


@lru_cache(maxsize=256)
def line(largest: int, usual: int, share: float, quantile: float) -> tuple[float, float]:
    """Return (a, b) such that a + b N >= down(N) for all N from 1 to ``largest``. The line is tight near ``usual``."""
    if share <= 0 or largest < 1:
        return 0.0, 0.0
    counts = np.arange(1, largest + 1)
    hull: list[tuple[int, float]] = []
    for n, k in zip(counts.tolist(), _down(counts, share, quantile).tolist(), strict=True):
        while len(hull) > 1 and (k - hull[-2][1]) * (hull[-1][0] - hull[-2][0]) >= (hull[-1][1] - hull[-2][1]) * (
            n - hull[-2][0]
        ):
            hull.pop()
        hull.append((n, k))
    if len(hull) == 1:
        return hull[0][1], 0.0
    after = next((j for j in range(1, len(hull)) if hull[j][0] >= usual), len(hull) - 1)
    (n, k), (m, more) = hull[after - 1], hull[after]
    slope = (more - k) / (m - n)
    return k - slope * n, slope
