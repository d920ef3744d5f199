"""Define a value that was estimated from data, with its interval."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Self

CONFIDENCE = 0.95
_FARTHEST = math.log(1e300)  # larger values exceed the range of floats and workbooks


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point estimate ``value`` with its interval from ``lo`` to ``hi`` of confidence ``level``.

    The ends are None if the data give no interval. ``df`` is the interval's degrees of freedom, or None if it is not
    based on Student's t. ``n`` is the number of independent units (hosts, machines, draws) of each side.
    """

    value: float
    lo: float | None = None
    hi: float | None = None
    level: float = CONFIDENCE
    df: float | None = None
    _: KW_ONLY
    n: tuple[int, ...] = ()

    @classmethod
    def of_error(
        cls, value: float, se: float, df: float | None, n: tuple[int, ...] = (), level: float = CONFIDENCE
    ) -> Self:
        """Return ``value`` with the interval exp(ln value ± t se), where ``se`` is the standard error of the natural
        logarithm.
        """
        half = deviate(level, df) * se
        return cls(value, value * of_log(-half), value * of_log(half), level, df, n=n)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return both bounds of the interval, or None if it is missing."""
        return None if self.lo is None or self.hi is None else (self.lo, self.hi)

    @property
    def log_error(self) -> float | None:
        """Return the standard error of the natural logarithm, or None if the interval is missing."""
        if self.lo is None or self.hi is None:
            return None
        return math.log(self.hi / self.lo) / 2 / deviate(self.level, self.df)


def of_log(log: float) -> float:
    """Return exp(``log``), limited to 1e-300 to 1e300, because hosts that differ widely can give intervals of any
    width.
    """
    return math.exp(min(max(log, -_FARTHEST), _FARTHEST))


def deviate(level: float, df: float | None) -> float:
    """Return the half-width of an interval of confidence ``level``, in standard errors.

    It is a quantile of Student's t, or of the normal distribution if ``df`` is None or infinite.
    """
    from scipy import special  # imported lazily: a report of few hosts has no intervals

    rank = (1 + level) / 2
    return float(special.ndtri(rank) if df is None or math.isinf(df) else special.stdtrit(df, rank))
