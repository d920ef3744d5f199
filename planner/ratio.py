"""How much faster B is than A, and how sure that is: ratios of geometric means in which a host counts once.

All functions take oriented logarithms of host means (``better * ln x``, higher is better) and give back ratios: 1.83
says that one B does the work of 1.83 A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special  # its t distribution is that of scipy.stats, which takes a second to import

CONFIDENCE = 0.95
SAME = 0.01  # an interval that stays within this of 1 says that there is no difference worth having
NOTHING = 1e-30  # a variance below it is rounding
_FARTHEST = math.log(1e300)  # beyond it neither floats nor sheets have room


class Verdict(StrEnum):
    """What the interval allows to be said."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # the whole interval lies within SAME of 1
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Ratio:
    """``value`` with its interval. ``lo`` and ``hi`` are None where one host a side forbids them. ``hosts``: how many
    stand behind each side.
    """

    value: float
    lo: float | None
    hi: float | None
    p: float | None
    hosts: tuple[int, int]
    df: float | None = None

    @property
    def verdict(self) -> Verdict:
        if self.lo is None or self.hi is None:
            return Verdict.CANNOT_TELL
        if self.lo > 1:
            return Verdict.SAME if self.hi <= 1 + SAME else Verdict.BETTER
        if self.hi < 1:
            return Verdict.SAME if self.lo >= 1 - SAME else Verdict.WORSE
        return Verdict.SAME if self.lo >= 1 - SAME and self.hi <= 1 + SAME else Verdict.CANNOT_TELL


def of_log(log: float) -> float:
    """exp(``log``), kept between 1e-300 and 1e300: hosts that differ wildly can give an interval of any width."""
    return math.exp(min(max(log, -_FARTHEST), _FARTHEST))


def welch(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE, extra: float = 0.0) -> Ratio:
    """exp(mean b - mean a) with Welch's t interval over hosts; ``extra`` is variance to add to that of the difference.

    Welch, Biometrika 34 (1947). A side of one host says nothing about its fleet: then there is no interval.
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    delta = float(y.mean() - x.mean())
    hosts = (len(x), len(y))
    if min(hosts) < 2:
        return Ratio(of_log(delta), None, None, None, hosts)
    va, vb = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    variance = va + vb
    if variance + extra < NOTHING:
        return Ratio(of_log(delta), of_log(delta), of_log(delta), 1.0 if delta == 0 else 0.0, hosts)
    share = va / variance if variance > NOTHING else 0.5
    df = 1 / (share**2 / (len(x) - 1) + (1 - share) ** 2 / (len(y) - 1))
    return _interval(delta, math.sqrt(variance + extra), df, confidence, hosts)


def paired(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE, extra: float = 0.0) -> Ratio:
    """The same hosts before (``a``) and after (``b``), in the same order: Student's t on the differences.

    ``extra`` as in ``welch``.
    """
    d = np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    delta, hosts = float(d.mean()), (len(d), len(d))
    if len(d) < 2:
        return Ratio(of_log(delta), None, None, None, hosts)
    variance = float(d.var(ddof=1)) / len(d) + extra
    if variance < NOTHING:
        return Ratio(of_log(delta), of_log(delta), of_log(delta), 1.0 if delta == 0 else 0.0, hosts)
    return _interval(delta, math.sqrt(variance), float(len(d) - 1), confidence, hosts)


def against(fixed: float, b: Sequence[float], confidence: float = CONFIDENCE, extra: float = 0.0) -> Ratio:
    """Hosts ``b`` against a pinned figure that is what it is: Student's t on their mean."""
    y = np.asarray(b, dtype=float)
    delta, hosts = float(y.mean()) - fixed, (1, len(y))
    if len(y) < 2:
        return Ratio(of_log(delta), None, None, None, hosts)
    variance = float(y.var(ddof=1)) / len(y) + extra
    if variance < NOTHING:
        return Ratio(of_log(delta), of_log(delta), of_log(delta), 1.0 if delta == 0 else 0.0, hosts)
    return _interval(delta, math.sqrt(variance), float(len(y) - 1), confidence, hosts)


def _interval(delta: float, se: float, df: float, confidence: float, hosts: tuple[int, int]) -> Ratio:
    half = float(special.stdtrit(df, (1 + confidence) / 2)) * se
    p = 2 * float(special.stdtr(df, -abs(delta) / se))
    return Ratio(of_log(delta), of_log(delta - half), of_log(delta + half), p, hosts, df)


@dataclass(frozen=True, slots=True)
class Fieller:
    """A ratio of arithmetic means. ``g`` of 1 and above: the interval is unbounded, and ``lo``, ``hi`` infinite."""

    value: float
    lo: float
    hi: float
    g: float


def fieller(numerator: Sequence[float], denominator: Sequence[float], confidence: float = CONFIDENCE) -> Fieller:
    """mean(numerator) / mean(denominator) of raw values with Fieller's interval, variances pooled.

    Fieller, J. R. Stat. Soc. B 16 (1954). Raises ValueError where a side has fewer than two values.
    """
    x, y = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    if min(len(x), len(y)) < 2:
        raise ValueError("Fieller's interval needs two values a side")
    df = len(x) + len(y) - 2
    pooled = float(((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum()) / df
    t = float(special.stdtrit(df, (1 + confidence) / 2))
    mx, my = float(x.mean()), float(y.mean())
    vx, vy = pooled / len(x), pooled / len(y)
    g = t * t * vy / (my * my)
    ratio = mx / my
    if g >= 1:
        return Fieller(ratio, -math.inf, math.inf, g)
    half = t / my * math.sqrt(vx * (1 - g) + ratio * ratio * vy)
    return Fieller(ratio, (ratio - half) / (1 - g), (ratio + half) / (1 - g), g)
