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
import numpy.typing as npt

from planner.estimate import CONFIDENCE, Estimate, deviate, of_log

SAME = 0.01  # an interval that stays within this of 1 says that there is no difference worth having
NOTHING = 1e-30  # a variance below it is rounding


class Verdict(StrEnum):
    """What the interval allows to be concluded."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # the whole interval lies within SAME of 1
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Ratio(Estimate):
    """How much faster one side is than the other. There is no interval where a side has one host. ``p``: how likely a
    ratio so far from 1 is where there is no difference; None where nothing was tested. ``n``: hosts of each side.
    """

    p: float | None = None

    @property
    def verdict(self) -> Verdict:
        if self.lo is None or self.hi is None:
            return Verdict.CANNOT_TELL
        if self.lo > 1:
            return Verdict.SAME if self.hi <= 1 + SAME else Verdict.BETTER
        if self.hi < 1:
            return Verdict.SAME if self.lo >= 1 - SAME else Verdict.WORSE
        return Verdict.SAME if self.lo >= 1 - SAME and self.hi <= 1 + SAME else Verdict.CANNOT_TELL


def welch(a: Sequence[float], b: Sequence[float], level: float = CONFIDENCE, extra: float = 0.0) -> Ratio:
    """exp(mean b - mean a) with Welch's t interval over hosts; ``extra`` is variance to add to that of the difference.

    Welch, Biometrika 34 (1947). A side of one host says nothing about its fleet: then there is no interval.
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    delta = float(y.mean() - x.mean())
    hosts = (len(x), len(y))
    if min(hosts) < 2:
        return Ratio(of_log(delta), level=level, n=hosts)
    va, vb = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    variance = va + vb
    share = va / variance if variance > NOTHING else 0.5
    df = 1 / (share**2 / (len(x) - 1) + (1 - share) ** 2 / (len(y) - 1))
    return _student(delta, variance + extra, df, level, hosts)


def paired(a: Sequence[float], b: Sequence[float], level: float = CONFIDENCE, extra: float = 0.0) -> Ratio:
    """The same hosts before (``a``) and after (``b``), in the same order: Student's t on the differences.

    ``extra`` as in ``welch``.
    """
    differences = np.asarray(b, dtype=float) - np.asarray(a, dtype=float)
    return _one_sample(differences, 0.0, level, extra, (len(differences), len(differences)))


def against(fixed: float, b: Sequence[float], level: float = CONFIDENCE, extra: float = 0.0) -> Ratio:
    """Hosts ``b`` against a pinned figure that has no error of its own: Student's t on their mean."""
    return _one_sample(np.asarray(b, dtype=float), fixed, level, extra, (1, len(b)))


def _one_sample(
    logs: npt.NDArray[np.float64], fixed: float, level: float, extra: float, hosts: tuple[int, int]
) -> Ratio:
    delta = float(logs.mean()) - fixed
    if len(logs) < 2:
        return Ratio(of_log(delta), level=level, n=hosts)
    variance = float(logs.var(ddof=1)) / len(logs) + extra
    return _student(delta, variance, float(len(logs) - 1), level, hosts)


def _student(delta: float, variance: float, df: float, level: float, hosts: tuple[int, int]) -> Ratio:
    """exp(``delta``) with Student's t interval; a variance of nothing leaves an interval of no width."""
    if variance < NOTHING:
        value = of_log(delta)
        return Ratio(value, value, value, level, n=hosts, p=1.0 if delta == 0 else 0.0)
    se = math.sqrt(variance)
    half = deviate(level, df) * se
    from scipy import special  # as in planner.estimate

    p = 2 * float(special.stdtr(df, -abs(delta) / se))
    return Ratio(of_log(delta), of_log(delta - half), of_log(delta + half), level, df, hosts, p)
