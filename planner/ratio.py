"""Compute how much faster B is than A with an interval: ratios of geometric means in which every host counts once.

All functions take oriented logarithms of host means (``better * ln x``, higher is better) and return ratios: 1.83 means
that one B does the work of 1.83 A.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from fleetmark.planner.estimate import CONFIDENCE, Estimate, deviate, of_log

SAME = 0.01  # relative margin around 1 within which a difference is irrelevant
NOTHING = 1e-30  # a smaller variance counts as rounding error


class Verdict(StrEnum):
    """The verdict that follows from the interval."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # the whole interval lies within SAME of 1
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Ratio(Estimate):
    """The ratio of the speeds of two sides. A side with a single host has no interval over hosts.

    - ``p``: the probability of a ratio at least this far from 1 if the sides were equal; None if nothing was tested
    - ``p_adjusted``: ``p`` adjusted for all ratios tested together
    - ``df_many``: the degrees of freedom for that adjustment, at most ``df``
    - ``n``: the number of hosts on each side
    - ``clusters``: True if the interval counts clusters of hosts
    - ``of_repeats``: True if a side has a single host and the interval comes from its repeats
    - ``single``: True if a side has a single host; the ratio then describes these machines and not their types
    """

    _: KW_ONLY
    p: float | None = None
    p_adjusted: float | None = None
    of_repeats: bool = False
    single: bool = False
    df_many: float | None = None
    clusters: bool = False

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the types of machine, based on the adjusted p if there are several tests."""
        if self.lo is None or self.hi is None or self.of_repeats or self.single:
            return Verdict.CANNOT_TELL
        if self.lo >= 1 - SAME and self.hi <= 1 + SAME:
            return Verdict.SAME
        if self.p_adjusted is not None and self.p_adjusted > 1 - self.level:
            return Verdict.CANNOT_TELL
        if self.lo > 1:
            return Verdict.BETTER
        return Verdict.WORSE if self.hi < 1 else Verdict.CANNOT_TELL

    @property
    def p_of_many(self) -> float | None:
        """Return p with the degrees of freedom that are accurate in the far tails, as used for adjusted p values."""
        se = self.log_error
        if self.p is None or self.df_many is None or not se:
            return self.p
        return two_sided(math.log(self.value) / se, self.df_many)

    def selected(self, rank: int, among: int) -> tuple[float, float] | None:
        """Return the interval for one of ``rank`` ratios selected by value from ``among`` ratios.

        A selected ratio is extreme partly by chance. Its interval therefore has the level 1 - (1 - level) * of / among,
        which restores the nominal coverage on average. Source: Benjamini & Yekutieli, JASA 100 (2005).
        """
        se = self.log_error
        if se is None or among <= rank:
            return self.interval
        half = deviate(1 - (1 - self.level) * rank / among, self.df_many or self.df) * se
        return self.value * of_log(-half), self.value * of_log(half)


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of one side's oriented logarithms, its variance and the degrees of freedom of that variance.

    The degrees of freedom are infinite for an exact figure, and 0 if the variance is unknown. ``units`` is the number
    of independent units (hosts or clusters of hosts), or 0 if the variance has another source.
    """

    value: float
    variance: float
    df: float
    units: int = 0

    @classmethod
    def from_logs(cls, logs: npt.NDArray[np.float64]) -> Mean:
        """Return the mean of one figure per host."""
        if len(logs) < 2:
            return cls(float(logs.mean()), 0.0, 0.0)
        return cls(float(logs.mean()), float(logs.var(ddof=1)) / len(logs), float(len(logs) - 1), len(logs))

    @classmethod
    def exact(cls, value: float) -> Mean:
        """Return a figure without an error of its own."""
        return cls(value, 0.0, math.inf)


def between(a: Mean, b: Mean, hosts: tuple[int, int], level: float = CONFIDENCE, of_repeats: bool = False) -> Ratio:
    """Return exp(b - a) with Student's t interval; the variances add, and ``degrees`` gives the degrees of freedom.

    The ratio has no interval if the variance of a side is unknown. If ``of_repeats`` is True (see Ratio), nothing is
    tested.
    """
    delta = b.value - a.value
    if min(a.df, b.df) <= 0:
        return Ratio(of_log(delta), level=level, n=hosts)
    variance = a.variance + b.variance
    df, df_many = degrees(a, b)
    ratio = replace(student(delta, variance, df, level, hosts), df_many=df_many)
    return replace(ratio, p=None, of_repeats=True) if of_repeats else ratio


def degrees(a: Mean, b: Mean) -> tuple[float, float]:
    """Return the degrees of freedom of a difference of two means: for an interval, and for one of many tests.

    Both values are Satterthwaite's, with an upper limit if the sides have different numbers of hosts. Satterthwaite
    estimates the degrees of freedom from both variances. If the variance of the smaller side happens to be small, the
    estimate is too high. Intervals for 3 hosts against 20 would then cover 92.6%. The far tails, which determine
    adjusted p values, would be wrong by a factor of 30.

    If n hosts with f degrees of freedom are compared with N hosts, the limit for many tests is f (1 + n / N). It is f
    for very unequal sides, and equals Satterthwaite's maximum for equal sides. The limit for an interval is n - 1 times
    as high. ``benchmarks.coverage`` simulates both.
    """
    df = satterthwaite([a, b])
    few, many = sorted((a, b), key=lambda mean: mean.units)
    if few.units == many.units or few.units < 2:
        return df, df
    ceiling = few.df * (1 + few.units / many.units)
    return min(df, (few.units - 1) * ceiling), min(df, ceiling)


def satterthwaite(parts: Sequence[Mean]) -> float:
    """Return the degrees of freedom of the summed variances of ``parts``; if all are zero, they count equally."""
    total = sum(part.variance for part in parts)
    known = [part for part in parts if math.isfinite(part.df)]
    shares = [part.variance / total if total > NOTHING else 1 / len(known) for part in known]
    spread = sum(share**2 / part.df for share, part in zip(shares, known, strict=True))
    return 1 / spread if spread else math.inf


def welch(a: Sequence[float], b: Sequence[float], level: float = CONFIDENCE) -> Ratio:
    """Return exp(mean b - mean a) with Welch's t interval over hosts (Welch, Biometrika 34, 1947).

    There is no interval if a side has only one host, because one host says nothing about the variation in its fleet.
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return between(Mean.from_logs(x), Mean.from_logs(y), (len(x), len(y)), level)


def against(fixed: float, b: Sequence[float], level: float = CONFIDENCE) -> Ratio:
    """Return the ratio of hosts ``b`` to the pinned figure of a single host, with Student's t interval for their mean.

    The interval does not cover the difference between the pinned host and its type, so nothing is tested.
    """
    ratio = between(Mean.exact(fixed), Mean.from_logs(np.asarray(b, dtype=float)), (1, len(b)), level)
    return replace(ratio, p=None, single=True)


def adjusted(ps: npt.ArrayLike, tests: int | None = None) -> npt.NDArray[np.float64]:
    """Return the smallest false discovery rate at which each p counts.

    ``ps`` are the smallest p of ``tests`` tests; by default they are all.
    Source: Benjamini & Hochberg, J. R. Statist. Soc. B 57 (1995).
    """
    values = np.asarray(ps, dtype=float)
    order = np.argsort(values, kind="stable")
    rates = values[order] * (len(values) if tests is None else tests) / np.arange(1, len(values) + 1)
    result = np.empty(len(values))
    result[order] = np.minimum(1.0, np.minimum.accumulate(rates[::-1])[::-1])
    return result


def among(ratios: Mapping[str, Ratio]) -> dict[str, float]:
    """Return the adjusted p of each tested ratio by name; a single tested ratio keeps its own p."""
    tested = {name: r for name, r in ratios.items() if r.p is not None}
    if len(tested) == 1:
        return {name: r.p for name, r in tested.items() if r.p is not None}
    ps = {name: p for name, r in tested.items() if (p := r.p_of_many) is not None}
    return dict(zip(ps, adjusted(list(ps.values())).tolist(), strict=True))


def student(delta: float, variance: float, df: float, level: float, hosts: tuple[int, int]) -> Ratio:
    """Return exp(``delta``) with Student's t interval; a variance of zero gives an interval of zero width."""
    if variance < NOTHING:
        value = of_log(delta)
        return Ratio(value, value, value, level, n=hosts, p=1.0 if delta == 0 else 0.0)
    se = math.sqrt(variance)
    half = deviate(level, df) * se
    return Ratio(
        of_log(delta), of_log(delta - half), of_log(delta + half), level, df, n=hosts, p=two_sided(delta / se, df)
    )


def two_sided(t: float, df: float) -> float:
    """Return the probability that Student's t is at least this far from 0."""
    from scipy import special  # imported lazily, as in planner.estimate

    return 2 * float(special.stdtr(df, -abs(t)))
