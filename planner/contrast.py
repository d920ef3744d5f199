"""Two sides over the same benchmarks, as arrays, and what lies between them: ratio, equal work, another workload.

A side is an array of oriented logarithms of host means, hosts by benchmarks, NaN where a host has no figure. Hosts with
gaps stay: ``planner.mixed`` has the model.
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
from planner import bootstrap, mixed
from planner.estimate import Estimate, of_log
from planner.ratio import Mean, Ratio, between, satterthwaite

Floats = npt.NDArray[np.float64]

LEAST_GROUPS = 3  # families of benchmarks, below which nothing is said of another workload
FARTHEST = 3  # times the ratio, beyond which an interval of another workload says nothing


class Pairing(Enum):
    """How the hosts of two sides are related."""

    APART = "different hosts"
    SAME_HOSTS = "the same hosts, before and after"
    PINNED = "a pinned reference, of one row, and hosts"


@dataclass(frozen=True, slots=True)
class Repeats:
    """How well each figure of a side is known by its own repeats: frames as the side's. ``errors``: the standard error
    of the log; ``degrees``: its degrees of freedom. NaN where a figure was measured once. They count where a single
    host of a side has a benchmark.
    """

    errors: pd.DataFrame
    degrees: pd.DataFrame


class _Part(Protocol):
    """One side of a contrast."""

    @property
    def means(self) -> Floats: ...

    @property
    def hosts(self) -> int: ...

    def mean(self, weights: Floats) -> Mean: ...


class TooFewFiguresError(ValueError):
    """A side has too few figures for its hosts and benchmarks."""

    def __init__(self, why: Message) -> None:
        self.why = why
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class _Pinned:
    """A side whose figures have no error of their own."""

    means: Floats
    hosts: int = 1

    def mean(self, weights: Floats) -> Mean:
        return Mean.exact(float(weights @ self.means))


@dataclass(frozen=True, slots=True)
class _Single:
    """A side of one host: ``errors`` and ``degrees`` of its figures, by their repeats; NaN where there are none."""

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
    """The figures of one side, hosts by benchmarks; ``errors`` and ``degrees`` as in Repeats. ``clusters``: the cluster
    of each host, None if hosts are independent.
    """

    logs: Floats
    errors: Floats
    degrees: Floats
    clusters: mixed.Codes | None = None

    @classmethod
    def of(cls, side: pd.DataFrame, names: Sequence[str], repeats: Repeats | None) -> Figures:
        """The benchmarks ``names`` of a side."""
        logs = side[list(names)].to_numpy(float)
        if repeats is None:
            return cls(logs, np.full_like(logs, np.nan), np.full_like(logs, np.nan))
        errors, degrees = (
            frame.reindex(index=side.index, columns=list(names)).to_numpy(float)
            for frame in (repeats.errors, repeats.degrees)
        )
        return cls(logs, errors, degrees)

    def over(self, columns: Sequence[int]) -> Figures:
        """Some of its benchmarks, all of its hosts."""
        return Figures(self.logs[:, columns], self.errors[:, columns], self.degrees[:, columns], self.clusters)

    def less(self, before: Figures) -> Figures:
        """The differences from the same hosts ``before``."""
        mine, theirs = self.errors**2, before.errors**2
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = (mine + theirs) ** 2 / (mine**2 / self.degrees + theirs**2 / before.degrees)
        return Figures(self.logs - before.logs, np.sqrt(mine + theirs), degrees, self.clusters)

    @property
    def gaps(self) -> bool:
        """Whether a host that has some of the benchmarks lacks others."""
        missing = np.isnan(self.logs)
        return bool(missing.any()) and bool((missing.any(axis=1) & ~missing.all(axis=1)).any())

    def part(self, called: Message) -> _Part:
        """Its model. Raises TooFewFiguresError, where the side is ``called`` so."""
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
                    "{hosts} of {side} with {figures} over {benchmarks} do not tell hosts from benchmarks: measure "
                    "{n} more of what they lack, or name a panel of fewer",
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
    """Baseline and candidate over the same benchmarks. Pairs of the same hosts are one side, of their differences,
    against nothing. ``logs``: the figures of both, of pairs the differences, for resampling; ``gaps``: some are
    missing.
    """

    a: _Part
    b: _Part
    pairing: Pairing
    logs: tuple[Floats, Floats]
    gaps: bool

    @classmethod
    def of(cls, sides: tuple[Figures, Figures], columns: Sequence[int], pairing: Pairing) -> Contrast:
        """Over the benchmarks in ``columns``. Raises TooFewFiguresError, which says what would be enough."""
        a, b = (side.over(columns) for side in sides)
        if pairing is Pairing.SAME_HOSTS:
            pairs = b.less(a)
            part = pairs.part(message("the pairs of hosts"))
            return cls(_Pinned(np.zeros(len(columns))), part, pairing, (pairs.logs, pairs.logs), pairs.gaps)
        logs, gaps = (a.logs, b.logs), a.gaps or b.gaps
        candidate = b.part(message("the candidate"))
        baseline = _Pinned(a.logs[0]) if pairing is Pairing.PINNED else a.part(message("the baseline"))
        return cls(baseline, candidate, pairing, logs, gaps)

    @property
    def deltas(self) -> Floats:
        """Logs of the benchmarks' ratios, by the model of each side."""
        deltas: Floats = self.b.means - self.a.means
        return deltas

    @property
    def hosts(self) -> tuple[int, int]:
        """How many stand behind each side."""
        return (self.b.hosts if self.pairing is Pairing.SAME_HOSTS else self.a.hosts, self.b.hosts)

    def means(self, weights: Floats) -> tuple[Mean, Mean]:
        """The weighted mean of each side."""
        return self.a.mean(weights), self.b.mean(weights)

    @property
    def single(self) -> bool:
        """Whether a side is one host, whose figures say nothing of its kind."""
        return self.pairing is Pairing.PINNED or isinstance(self.a, _Single) or isinstance(self.b, _Single)

    @property
    def clusters(self) -> bool:
        """Whether the interval is by clusters of hosts on a side."""
        return any(isinstance(part, mixed.Fit) and part.clusters is not None for part in (self.a, self.b))

    def scores(self, weights: Floats) -> tuple[Floats | None, Floats | None]:
        """Return how far each host of a side lies from its mean; None for a side that is no sample of hosts.

        Hosts without any figure are left out.
        """
        a, b = (part.scores(weights) if isinstance(part, mixed.Fit) else None for part in (self.a, self.b))
        return a, b

    def ratio(self, weights: Floats) -> Ratio:
        """Return the weighted geometric mean of the ratios, with the interval of the fleet."""
        repeats = isinstance(self.a, _Single) or isinstance(self.b, _Single)
        ratio = between(*self.means(weights), self.hosts, of_repeats=repeats)
        ratio = replace(ratio, single=self.single, clusters=self.clusters, p=None if self.single else ratio.p)
        return replace(ratio, of_repeats=False) if ratio.interval is None else ratio

    def resampled(self, weights: Floats) -> Estimate | None:
        """Return the same by the bootstrap over hosts; None if a host lacks a figure, or hosts form clusters."""
        x, y = (logs[~np.isnan(logs).all(axis=1)] for logs in self.logs)
        if self.gaps or self.clusters or self.pairing is Pairing.PINNED:
            return None
        if self.pairing is Pairing.SAME_HOSTS:
            return bootstrap.paired_percentiles((y @ weights).tolist())
        return bootstrap.percentiles((x @ weights).tolist(), (y @ weights).tolist())


def equal_work(contrast: Contrast, w: Floats) -> Ratio:
    """1 / sum(w / r): the server-hours that the mix takes on A over those on B. Interval by the delta method."""
    hours = w * np.array([1 / of_log(d) for d in contrast.deltas])
    linear = contrast.ratio(hours / hours.sum())  # shares of the server-hours on B are the gradient of the headline
    work = -math.log(hours.sum())
    shift = work - math.log(linear.value)
    lo, hi = (None if end is None else of_log(math.log(end) + shift) for end in (linear.lo, linear.hi))
    return replace(linear, value=of_log(work), lo=lo, hi=hi)


def another_workload(
    contrast: Contrast, w: Floats, groups: Sequence[Sequence[int]]
) -> tuple[Estimate | None, Message | None]:
    """Return the interval in which one more benchmark of the class would lie, or the reason why there is none.

    It is a prediction interval over ``groups`` of benchmarks that are redundant or of one family. Their weighted spread
    has Satterthwaite's degrees of freedom, which with equal weights are one less than there are groups. The variance of
    the fleet comes on top. The interval is never narrower than that of the fleet, which may have fewer degrees of
    freedom.

    It takes LEAST_GROUPS groups and a variance of both fleets: a single host has none. An interval that reaches
    FARTHEST times the ratio either way is too wide to be of use.
    """
    if len(groups) < LEAST_GROUPS:
        families = count(len(groups), "family", "families")
        return None, message(
            "the benchmarks are of {families}; run benchmarks of at least {least} on both sides",
            families=families,
            least=LEAST_GROUPS,
        )
    if contrast.single or min(m.df for m in contrast.means(w)) <= 0:
        return None, message("a side is a single host, whose kind may differ from it")
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
    """Return the interval of another workload unless it reaches FARTHEST times its value, and then the reason."""
    value, lo, hi = workload.value, workload.lo, workload.hi
    if lo is None or hi is None or max(hi / value, value / lo) > FARTHEST:
        return None, message("the benchmarks lie too far apart: it would reach a factor of {n} either way", n=FARTHEST)
    return workload, None
