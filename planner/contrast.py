"""Compare two sides over the same benchmarks, as arrays: ratio, equal work and the interval of another workload.

A side is an array of oriented logarithms of host means, hosts by benchmarks, with NaN for missing figures. Hosts with
gaps are kept; ``planner.mixed`` estimates their side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.text import Message, count, message
from fleetmark.planner import bootstrap, mixed
from fleetmark.planner.estimate import Estimate, of_log
from fleetmark.planner.ratio import Mean, Ratio, between, satterthwaite

Floats = npt.NDArray[np.float64]

LEAST_GROUPS = 3  # minimum number of benchmark families for a prediction about another workload
FARTHEST = 3  # maximum ratio; a wider interval for another workload is not reported


class Pairing(Enum):
    """The relation between the hosts of two sides."""

    APART = "different hosts"
    SAME_HOSTS = "the same hosts, before and after"
    PINNED = "a pinned reference, of one row, and hosts"


@dataclass(frozen=True, slots=True)
class Repeats:
    """The precision of each figure of a side, estimated from its repeats.

    Both frames have the shape of the side: ``errors`` has the standard error of the log, ``degrees`` its degrees of
    freedom. Figures that were measured once are NaN. Repeats are used only if a single host of a side has a benchmark.
    """

    errors: pd.DataFrame
    degrees: pd.DataFrame


class _Part(Protocol):
    """The model of one side of a contrast."""

    @property
    def means(self) -> Floats: ...

    @property
    def hosts(self) -> int: ...

    def mean(self, weights: Floats) -> Mean: ...


class TooFewFiguresError(ValueError):
    """Report that a side has too few figures for its hosts and benchmarks."""

    def __init__(self, reason: Message) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class _Pinned:
    """A side with figures that have no error of their own."""

    means: Floats
    hosts: int = 1

    def mean(self, weights: Floats) -> Mean:
        return Mean.exact(float(weights @ self.means))


@dataclass(frozen=True, slots=True)
class _Single:
    """A side with one host: ``errors`` and ``degrees`` of its figures from repeats, NaN if there are none."""

    means: Floats
    errors: Floats
    degrees: Floats
    hosts: int = 1

    def mean(self, weights: Floats) -> Mean:
        value = float(weights @ self.means)
        counted = weights > 0
        errors, degrees = self.errors[counted], self.degrees[counted]
        if not ((degrees > 0) & np.isfinite(errors)).all():
            return Mean(value, 0.0, 0.0)
        parts = [Mean(0.0, v, d) for v, d in zip((weights[counted] * errors) ** 2, degrees, strict=True)]
        return Mean(value, float(sum(p.variance for p in parts)), satterthwaite(parts))


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one side, hosts by benchmarks.

    ``errors`` and ``degrees`` are defined as in Repeats. ``clusters`` is the cluster index of each host, or None if
    hosts are independent.
    """

    logs: Floats
    errors: Floats
    degrees: Floats
    clusters: mixed.Codes | None = None

    @classmethod
    def from_side(cls, side: pd.DataFrame, names: Sequence[str], repeats: Repeats | None) -> Figures:
        """Return the figures of the benchmarks ``names`` of a side."""
        logs = side[list(names)].to_numpy(float)
        if repeats is None:
            return cls(logs, np.full_like(logs, np.nan), np.full_like(logs, np.nan))
        errors, degrees = (
            frame.reindex(index=side.index, columns=list(names)).to_numpy(float)
            for frame in (repeats.errors, repeats.degrees)
        )
        return cls(logs, errors, degrees)

    def over(self, columns: Sequence[int]) -> Figures:
        """Return a subset of the benchmarks for all hosts."""
        return Figures(self.logs[:, columns], self.errors[:, columns], self.degrees[:, columns], self.clusters)

    def minus(self, before: Figures) -> Figures:
        """Return the differences from the same hosts ``before``."""
        mine, theirs = self.errors**2, before.errors**2
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = (mine + theirs) ** 2 / (mine**2 / self.degrees + theirs**2 / before.degrees)
        return Figures(self.logs - before.logs, np.sqrt(mine + theirs), degrees, self.clusters)

    @property
    def gaps(self) -> bool:
        """Return whether any host has only some of the benchmarks."""
        missing = np.isnan(self.logs)
        return bool(missing.any()) and bool((missing.any(axis=1) & ~missing.all(axis=1)).any())

    def part(self, called: Message) -> _Part:
        """Return the model of the side, or raise TooFewFiguresError naming the side as ``called``."""
        seen = ~np.isnan(self.logs)
        if len(seen) > 1 and seen.all():
            return mixed.fit(self.logs, self.clusters)
        present = seen.any(axis=1)
        logs = self.logs[present]
        hosts, benchmarks = logs.shape
        if hosts == 1:
            return _Single(logs[0], self.errors[present][0], self.degrees[present][0])
        cells = int(seen.sum())
        lacking = mixed.needed(hosts, benchmarks) - cells
        if cells < hosts * benchmarks and lacking > 0:
            raise TooFewFiguresError(
                message(
                    "{hosts} of {side} with {figures} over {benchmarks} do not separate the effects of hosts and "
                    "benchmarks: measure {n} more of the missing figures, or select a smaller panel",
                    hosts=count(hosts, "host"),
                    side=called,
                    figures=count(cells, "figure"),
                    benchmarks=count(benchmarks, "benchmark"),
                    n=lacking,
                )
            )
        return mixed.fit(self.logs, self.clusters)


@dataclass(frozen=True, slots=True)
class Contrast:
    """The baseline and the candidate over the same benchmarks.

    If the sides are the same hosts, they form a single side of differences without a counterpart. ``logs`` has the
    figures of both sides, or the differences, for resampling. ``gaps`` is True if figures are missing.
    """

    a: _Part
    b: _Part
    pairing: Pairing
    logs: tuple[Floats, Floats]
    gaps: bool

    @classmethod
    def from_sides(cls, sides: tuple[Figures, Figures], columns: Sequence[int], pairing: Pairing) -> Contrast:
        """Return the contrast over the benchmarks in ``columns``.

        Raise TooFewFiguresError, which says how many figures are needed.
        """
        a, b = (side.over(columns) for side in sides)
        if pairing is Pairing.SAME_HOSTS:
            pairs = b.minus(a)
            part = pairs.part(message("the pairs of hosts"))
            return cls(_Pinned(np.zeros(len(columns))), part, pairing, (pairs.logs, pairs.logs), pairs.gaps)
        logs, gaps = (a.logs, b.logs), a.gaps or b.gaps
        candidate = b.part(message("the candidate"))
        baseline = _Pinned(a.logs[0]) if pairing is Pairing.PINNED else a.part(message("the baseline"))
        return cls(baseline, candidate, pairing, logs, gaps)

    @property
    def deltas(self) -> Floats:
        """Return the logs of the benchmarks' ratios, estimated by each side's model."""
        deltas: Floats = self.b.means - self.a.means
        return deltas

    @property
    def hosts(self) -> tuple[int, int]:
        """Return the number of hosts on each side."""
        return (self.b.hosts if self.pairing is Pairing.SAME_HOSTS else self.a.hosts, self.b.hosts)

    def means(self, weights: Floats) -> tuple[Mean, Mean]:
        """Return the weighted mean of each side."""
        return self.a.mean(weights), self.b.mean(weights)

    @property
    def single(self) -> bool:
        """Return whether a side has a single host, which is too few to represent its type."""
        return self.pairing is Pairing.PINNED or isinstance(self.a, _Single) or isinstance(self.b, _Single)

    @property
    def clusters(self) -> bool:
        """Return whether the interval counts clusters of hosts on at least one side."""
        return any(isinstance(part, mixed.Fit) and part.clusters is not None for part in (self.a, self.b))

    def scores(self, weights: Floats) -> tuple[Floats | None, Floats | None]:
        """Return each host's distance from the mean of its side, or None for a side that is not a sample of hosts.

        Hosts without figures are omitted.
        """
        a, b = (part.scores(weights) if isinstance(part, mixed.Fit) else None for part in (self.a, self.b))
        return a, b

    def ratio(self, weights: Floats) -> Ratio:
        """Return the weighted geometric mean of the ratios with its confidence interval for the fleet."""
        repeats = isinstance(self.a, _Single) or isinstance(self.b, _Single)
        ratio = between(*self.means(weights), self.hosts, of_repeats=repeats)
        ratio = replace(ratio, single=self.single, clusters=self.clusters, p=None if self.single else ratio.p)
        return replace(ratio, of_repeats=False) if ratio.interval is None else ratio

    def resampled(self, weights: Floats) -> Estimate | None:
        """Return the same ratio with a bootstrap interval over hosts; None if figures are missing or hosts are
        clustered.
        """
        x, y = (logs[~np.isnan(logs).all(axis=1)] for logs in self.logs)
        if self.gaps or self.clusters or self.pairing is Pairing.PINNED:
            return None
        if self.pairing is Pairing.SAME_HOSTS:
            return bootstrap.paired_percentiles((y @ weights).tolist())
        return bootstrap.percentiles((x @ weights).tolist(), (y @ weights).tolist())


def equal_work(contrast: Contrast, w: Floats) -> Ratio:
    """Return 1 / sum(w / r), the server-hours of the mix on A over those on B, with a delta-method interval."""
    hours = w * np.array([1 / of_log(d) for d in contrast.deltas])
    linear = contrast.ratio(hours / hours.sum())  # shares of the server-hours on B are the gradient of the headline
    work = -math.log(hours.sum())
    shift = work - math.log(linear.value)
    lo, hi = (None if end is None else of_log(math.log(end) + shift) for end in (linear.lo, linear.hi))
    return replace(linear, value=of_log(work), lo=lo, hi=hi)


def another_workload(
    contrast: Contrast, w: Floats, groups: Sequence[Sequence[int]]
) -> tuple[Estimate | None, Message | None]:
    """Return the prediction interval for one more benchmark of the class, or the reason why it is not available.

    The prediction interval is computed over ``groups`` of benchmarks that are redundant or belong to one family. The
    weighted variance between groups has Satterthwaite's degrees of freedom; with equal weights, that is the number of
    groups minus one. The variance of the fleet is added. The fleet's interval may have fewer degrees of freedom, so the
    prediction interval is widened to contain it if necessary.

    The interval requires LEAST_GROUPS groups and at least two hosts per side. It is not reported if either end differs
    from 1 by more than a factor of FARTHEST.
    """
    if len(groups) < LEAST_GROUPS:
        return None, message("fewer than {least} families of benchmarks were measured", least=LEAST_GROUPS)
    if contrast.single or min(m.df for m in contrast.means(w)) <= 0:
        return None, message("a side has only one host, too few to represent its type")
    weight = np.array([w[group].sum() for group in groups])
    logs = np.array([w[group] @ contrast.deltas[group] for group in groups]) / weight
    mean, square = float(weight @ logs), float(weight @ weight)
    spread = float(weight @ (logs - mean) ** 2) / (1 - square)
    df = (1 - square) ** 2 / (square - 2 * float((weight**3).sum()) + square**2)
    parts = [Mean(mean, spread * (1 + square), df), *contrast.means(w)]
    total = sum(part.variance for part in parts)
    result = Estimate.of_error(of_log(mean), math.sqrt(total), satterthwaite(parts), (len(groups),))
    fleet = contrast.ratio(w)
    if fleet.lo is not None and result.lo is not None and result.lo > fleet.lo:
        result = replace(result, lo=fleet.lo, hi=fleet.hi, df=fleet.df)
    return of_use(result)


def of_use(workload: Estimate) -> tuple[Estimate | None, Message | None]:
    """Return the interval of another workload, or the reason if it reaches FARTHEST times its value."""
    value, lo, hi = workload.value, workload.lo, workload.hi
    if lo is None or hi is None or max(hi / value, value / lo) > FARTHEST:
        return None, message(
            "the benchmark ratios differ too much: the interval exceeds a factor of {n} either way", n=FARTHEST
        )
    return workload, None
