"""A value that was estimated from data, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

CONFIDENCE = 0.95
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
    """Return how many standard errors an interval of ``level`` reaches either way.

    It is a quantile of Student's t, or of the normal distribution if ``df`` is None or infinite.
    """
    from scipy import special  # imported lazily: a report of few hosts has no intervals

    rank = (1 + level) / 2
    return float(special.ndtri(rank) if df is None or math.isinf(df) else special.stdtrit(df, rank))
