"""Decide between machines with few benchmarks: choose the next benchmark to run, and decide when to stop.

The decision is about the mean of logarithms over a panel of benchmarks; a machine has run only some of them. Machines
on record show how benchmarks vary together. A figure of a machine of an unseen family is a line in the machine's mean,
plus an error with a covariance matrix: some benchmarks grow more than others from small machines to large ones. The
mean of a machine with some figures, and its error, then follow by generalised least squares (universal kriging:
Cressie, Statistics for Spatial Data, 1993, section 3.4). The next benchmark is the one that reduces this error most.

The covariance matrix is shrunk towards a matrix in which all benchmarks are alike (Ledoit & Wolf, J. Multivariate
Analysis 88, 2004), and slopes towards 1. The amount of shrinkage and the scale of errors after each number of
benchmarks are calibrated by leaving families out.

The probability of a wrong decision is that of the present figures, on the assumption that all ratios are equally likely
beforehand. It does not depend on how often the decision was checked before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from fleetmark.base.errors import FleetmarkError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST_FAMILIES = 5
LEAST_BENCHMARKS = 3
FOLDS = 8  # number of groups of families; each group is omitted once
SHRINKING = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
SLOPE = 0.2  # standard deviation of slopes around 1, as in a transfer
_LEAST = 1e-10  # minimum variance: a matrix of residuals that add up to zero is singular


@dataclass(frozen=True, slots=True)
class Lines:
    """The expected figure of each benchmark: ``start`` + ``slope`` x (the machine's mean - ``centre``).

    The average of all ``start`` is ``centre``, and the average of all ``slope`` is 1.
    """

    start: Floats
    slope: Floats
    centre: float

    def mean(self, figures: Floats, chosen: Ints, weights: Floats) -> Floats:
        """Return the means of machines from the weighted figures (machines, benchmarks) of the chosen benchmarks."""
        return np.asarray(self.centre + (figures - self.start[chosen]) @ weights)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The statistics of some benchmarks over the stored machines.

    - ``titles``: the benchmarks; ``lines``: their figures as lines in a machine's mean
    - ``covariance``: the covariance of a new family's distances from these lines
    - ``scale``: the factor on the covariance after 1, 2, ... benchmarks
    - ``families``, ``machines``: the number of families and of machines
    """

    titles: tuple[str, ...]
    lines: Lines
    covariance: Floats
    scale: Floats
    families: int
    machines: int

    def scaled(self, count: int) -> Floats:
        """Return the covariance after ``count`` benchmarks."""
        return np.asarray(self.covariance * self.scale[count - 1])

    def positions(self, titles: Sequence[str]) -> Ints:
        """Return the positions of benchmarks in the panel."""
        place = {title: n for n, title in enumerate(self.titles)}
        return np.array([place[title] for title in titles], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Level:
    """The mean of a machine's logarithms over the panel, its standard error, and the degrees of freedom."""

    log: float
    se: float
    df: float

    def minus(self, other: Level) -> Level:
        """Return the difference between two machines."""
        return Level(self.log - other.log, math.hypot(self.se, other.se), min(self.df, other.df))

    def above(self, log: float) -> float:
        """Return the probability that the mean is above ``log``."""
        if self.se == 0:
            return float(self.log >= log)
        return float(stats.t.sf((log - self.log) / self.se, self.df))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the bounds of the interval."""
        reach = float(stats.t.ppf((1 + confidence) / 2, self.df)) * self.se
        return self.log - reach, self.log + reach


def learned(history: pd.DataFrame, families: Mapping[str, str]) -> Panel:
    """Return the panel of the benchmarks that stored machines have in common.

    ``history``: oriented logarithms, a row per machine and a column per benchmark, without gaps. ``families``: the
    family of each machine; effects shared by a family's members count once.

    Raise FleetmarkError for fewer than ``LEAST_FAMILIES`` or ``LEAST_BENCHMARKS``.
    """
    names = [families[str(machine)] for machine in history.index]
    count = len({*names})
    if count < LEAST_FAMILIES:
        raise FleetmarkError(
            f"{count} families of stored machines have all of these benchmarks, at least {LEAST_FAMILIES} are "
            "needed to estimate the correlation of benchmarks: import published results, or select fewer benchmarks"
        )
    if history.shape[1] < LEAST_BENCHMARKS:
        raise FleetmarkError(
            f"{history.shape[1]} benchmarks: at least {LEAST_BENCHMARKS} are needed to choose between them: run all"
        )
    logs = history.to_numpy(float)
    codes = pd.factorize(pd.Series(names), sort=True)[0]
    shrinking, scale = _calibrated(logs, codes)
    lines, moments = _moments(logs, codes)
    covariance = _shrunk(moments, shrinking)
    return Panel(
        titles=tuple(map(str, history.columns)),
        lines=lines,
        covariance=covariance,
        scale=_falling(scale, covariance, lines.slope),
        families=count,
        machines=len(logs),
    )


def level(
    panel: Panel, logs: Mapping[str, float], noise: Mapping[str, float] | None = None, host: float = 0.0
) -> Level:
    """Return the mean of a machine over the panel from its known figures.

    ``noise`` is the variance of each figure from repeats and hosts, independent between benchmarks. ``host`` is the
    variance that all figures share. Raise FleetmarkError if there is no figure of the panel.
    """
    titles = [title for title in panel.titles if title in logs]
    if not titles:
        raise FleetmarkError("no benchmark of the panel has been run")
    chosen = panel.positions(titles)
    errors = np.array([(noise or {}).get(title, 0.0) for title in titles])
    figures = np.array([logs[title] for title in titles])
    if len(titles) == len(panel.titles):
        return Level(float(figures.mean()), math.sqrt(float(errors.sum()) / len(titles) ** 2 + host), math.inf)
    weights, variance = _weights(panel.scaled(len(titles)), panel.lines.slope, chosen, errors)
    return Level(float(panel.lines.mean(figures, chosen, weights)), math.sqrt(variance + host), panel.families - 1.0)


def order(
    panel: Panel, known: Sequence[str] = (), noise: Mapping[str, float] | None = None, host: float = 0.0
) -> Iterator[tuple[str, float]]:
    """Yield the remaining benchmarks, the most informative first, with the standard error of the mean after each."""
    errors = np.array([(noise or {}).get(title, 0.0) for title in panel.titles])
    chosen = list(panel.positions(known))
    for title in _order(panel.covariance, panel.lines.slope, chosen, errors):
        chosen.append(title)
        some = np.array(chosen)
        variance = (
            float(errors.sum()) / len(some) ** 2
            if len(some) == len(panel.titles)
            else _weights(panel.scaled(len(some)), panel.lines.slope, some, errors[some])[1]
        )
        yield panel.titles[title], math.sqrt(variance + host)


def is_decided(wrong: float, error: float) -> bool:
    """Return whether the probability of being ``wrong`` is small enough to stop."""
    return wrong <= error


def best_of(levels: Sequence[Level]) -> tuple[int, float]:
    """Return the position of the highest machine, and the probability (at most) that another one is higher."""
    best = max(range(len(levels)), key=lambda n: levels[n].log)
    others = (levels[n].minus(levels[best]) for n in range(len(levels)) if n != best)
    return best, min(sum(other.above(0.0) for other in others), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPlan:
    """The runs needed for a decision: the benchmarks in order, on each of ``hosts``, with the standard error after
    each.

    ``is_enough`` is False if the allowed error is exceeded even with all benchmarks on that many hosts.
    """

    hosts: int
    steps: tuple[tuple[str, float], ...]
    is_enough: bool

    @property
    def runs(self) -> int:
        """Return the number of runs: one per benchmark and host."""
        return self.hosts * len(self.steps)


def planned(
    panel: Panel,
    distance: float,
    error: float,
    *,
    known: Sequence[str] = (),
    noise: Mapping[str, float] | None = None,
    host: float = 0.0,
    most_hosts: int = 8,
) -> TestPlan:
    """Return the test plan with the minimum number of runs that decides if the truth is ``distance`` from the
    threshold.

    ``distance`` is a difference of logarithms, above 0. ``error`` is the allowed probability of a wrong decision.
    ``known`` are the benchmarks that have been run. ``noise`` and ``host``: the variances of one host, as in ``level``.
    """
    plans = []
    for hosts in range(1, most_hosts + 1 if host or noise else 2):
        steps: list[tuple[str, float]] = []
        of_host = {title: variance / hosts for title, variance in (noise or {}).items()}
        is_enough = False
        for title, se in order(panel, known, of_host, host / hosts):
            steps.append((title, se))
            is_complete = len(known) + len(steps) == len(panel.titles)
            df = math.inf if is_complete else panel.families - 1.0
            if is_enough := is_decided(Level(-distance, se, df).above(0.0), error):
                break
        plans.append(TestPlan(hosts=hosts, steps=tuple(steps), is_enough=is_enough))
    return min(plans, key=lambda plan: (not plan.is_enough, plan.runs if plan.is_enough else -plan.hosts))


# --- covariance ------------------------------------------------------------------------------------------------------


def _moments(logs: Floats, families: Ints) -> tuple[Lines, Floats]:
    """Return the lines of benchmarks, and the covariance of distances from them. All families have the same weight.

    Slopes are shrunk towards 1 as their standard error, relative to ``SLOPE``, requires.
    """
    sizes = np.bincount(families)
    weights = 1 / sizes[families] / len(sizes)
    means = logs.mean(axis=1)
    centre = float(weights @ means)
    distances = logs - means[:, None]
    profile = weights @ distances
    reach = means - centre
    spread = float(weights @ reach**2)
    steeper = (weights * reach) @ (distances - profile) / spread if spread else np.zeros(logs.shape[1])
    rest = distances - profile - np.outer(reach, steeper)
    certain = spread * len(sizes) * SLOPE**2
    scatter = float((weights @ rest**2).mean())
    steeper = steeper * (certain / (certain + scatter) if certain else 0.0)
    errors = distances - profile - np.outer(reach, steeper)
    degrees = len(sizes) - 2  # a mean and a slope are estimated
    covariance = (errors * weights[:, None]).T @ errors * len(sizes) / degrees
    return Lines(np.asarray(centre + profile), np.asarray(1 + steeper), centre), np.asarray(covariance)


def _shrunk(covariance: Floats, part: float) -> Floats:
    """Return the covariance, moved by ``part`` towards that of benchmarks that are all alike and add up to zero."""
    count = len(covariance)
    alike = (np.eye(count) - 1 / count) * np.trace(covariance) / (count - 1)
    return np.asarray((1 - part) * covariance + part * alike)


def _calibrated(logs: Floats, families: Ints) -> tuple[float, Floats]:
    """Return the amount of shrinkage and the factor on the variance after each number of benchmarks, from the
    likelihood of left-out families.
    """
    count, benchmarks = int(families.max()) + 1, logs.shape[1]
    folds = np.arange(count) % min(FOLDS, count)
    best = (-math.inf, SHRINKING[-1], np.ones(benchmarks))
    for part in SHRINKING:
        scores, squares = [], []
        for fold in range(int(folds.max()) + 1):
            out = folds[families] == fold
            if len({*families[~out]}) < 3:
                continue
            lines, covariance = _moments(logs[~out], pd.factorize(families[~out])[0])
            shrunk = _shrunk(covariance, part)
            weight = 1 / np.bincount(families[out], minlength=count)[families[out]]
            order, known = list(_order(shrunk, lines.slope, [], np.zeros(benchmarks))), logs[out].mean(axis=1)
            for size in range(1, benchmarks):
                chosen = np.array(order[:size])
                weights, variance = _weights(shrunk, lines.slope, chosen, np.zeros(size))
                error = lines.mean(logs[out][:, chosen], chosen, weights) - known
                squares.append(np.average(error**2 / variance, weights=weight))
                scores.append(math.log(variance))
        scale = np.reshape(squares, (-1, benchmarks - 1)).mean(axis=0)
        likelihood = -float(np.mean(scores)) - float(np.log(scale).mean())
        if likelihood > best[0]:
            best = likelihood, part, np.append(scale, 1.0)
    return best[1], best[2]


def _falling(scale: Floats, covariance: Floats, slope: Floats) -> Floats:
    """Return the scale, increased where the variance would otherwise rise with another benchmark."""
    none = np.zeros(len(slope))
    order = np.array(list(_order(covariance, slope, [], none)))
    variances = np.array([_weights(covariance, slope, order[:n], none[:n])[1] for n in range(1, len(slope) + 1)])
    return np.asarray(np.maximum.accumulate((scale * variances)[::-1])[::-1] / variances)


def _weights(covariance: Floats, slope: Floats, chosen: Ints, noise: Floats) -> tuple[Floats, float]:
    """Return the weights of the chosen benchmarks in the estimate of the mean, and its variance."""
    matrix = covariance[np.ix_(chosen, chosen)] + np.diag(noise + _LEAST)
    inverse = np.linalg.solve(matrix, slope[chosen])
    variance = 1 / float(inverse @ slope[chosen])
    return np.asarray(inverse * variance), variance


def _order(covariance: Floats, slope: Floats, chosen: Sequence[int], noise: Floats) -> Iterator[int]:
    """Yield the remaining positions, each the one that reduces the variance most.

    The covariance given the chosen benchmarks follows by elimination, one benchmark at a time.
    """
    rest = covariance + np.diag(noise + _LEAST)
    steep, left = slope.copy(), np.ones(len(slope), dtype=bool)
    taken = iter(chosen)
    while left.any():
        known = next(taken, None)
        gain = np.where(left, steep**2 / np.where(left, np.diag(rest), 1.0), -np.inf)
        n = int(np.argmax(gain)) if known is None else int(known)
        left[n] = False
        if known is None:
            yield n
        column = rest[:, n] / rest[n, n]
        steep = steep - column * steep[n]
        rest = rest - np.outer(column, rest[n])
