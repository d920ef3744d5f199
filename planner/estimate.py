"""A value that was estimated from data, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Self

CONFIDENCE = 0.95
_MOST_DF, _HIGHEST = 1000, 0.999  # up to which the sum of ``_student`` is short, and exact to 1e-12
_FARTHEST = math.log(1e300)  # beyond it neither floats nor sheets have room


@dataclass(frozen=True, slots=True)
class Estimate:
    """``value`` is the point estimate; ``lo`` and ``hi`` are the ends of its interval of confidence ``level``, None
    where the data give none. ``df``: the interval's degrees of freedom, None where it is not of Student's t. ``n``: how
    many independent units (hosts, machines, draws) stand behind it, one number per side.
    """

    value: float
    lo: float | None = None
    hi: float | None = None
    level: float = CONFIDENCE
    df: float | None = None
    n: tuple[int, ...] = ()

    @classmethod
    def of_error(
        cls, value: float, se: float, df: float | None, n: tuple[int, ...] = (), level: float = CONFIDENCE
    ) -> Self:
        """``value`` with the interval exp(ln value ± t se); ``se`` is the standard error of its natural logarithm."""
        half = deviate(level, df) * se
        return cls(value, value * of_log(-half), value * of_log(half), level, df, n)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, or None where there is no interval."""
        return None if self.lo is None or self.hi is None else (self.lo, self.hi)

    @property
    def log_error(self) -> float | None:
        """Standard error of the value's natural logarithm, by its interval; None where there is no interval."""
        if self.lo is None or self.hi is None:
            return None
        return math.log(self.hi / self.lo) / 2 / deviate(self.level, self.df)


def of_log(log: float) -> float:
    """exp(``log``), kept between 1e-300 and 1e300: hosts that differ wildly can give an interval of any width."""
    return math.exp(min(max(log, -_FARTHEST), _FARTHEST))


def deviate(level: float, df: float | None) -> float:
    """How many standard errors an interval of ``level`` reaches either way: Student's t, or the normal distribution
    where ``df`` is None or infinite.
    """
    if df and df <= _MOST_DF and float(df).is_integer() and level <= _HIGHEST:
        return _student(level, int(df))
    from scipy import special  # its t distribution is that of scipy.stats; to load it takes as long as a small report

    rank = (1 + level) / 2
    return float(special.ndtri(rank) if df is None or math.isinf(df) else special.stdtrit(df, rank))


@cache
def _student(level: float, df: int) -> float:
    """The t between whose two signs Student's distribution holds ``level``, by its finite sum for whole ``df``
    (Abramowitz and Stegun, 1964, 26.7.3 and 26.7.4) and Newton's method, which comes from below as that is concave.
    """
    peak = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)
    t, before = 0.0, -1.0
    while t > before:
        before = t
        t += (level - _within(t, df)) / (2 * peak * (1 + t * t / df) ** (-(df + 1) / 2))
    return before


def _within(t: float, df: int) -> float:
    """The probability of a value between -t and t."""
    angle = math.atan(t / math.sqrt(df))
    square = math.cos(angle) ** 2
    odd = df % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for power in range(2 + odd, df + 1, 2):
        total += term
        term *= square * (power - 1) / power
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
