"""Decide between machines with few benchmarks: choose the next benchmark to run, and decide when to stop.

The decision is about the mean of logarithms over a panel of benchmarks; a machine has run only some of them. Machines
on record show how benchmarks vary together. Relative to its own mean, a machine of an unseen family has the usual
profile plus an error with a covariance matrix. The mean of a machine with some figures, and its error, then follow by
generalised least squares (ordinary kriging: Cressie, Statistics for Spatial Data, 1993, section 3.2). The next
benchmark is the one that reduces this error most.

The covariance matrix is shrunk towards a matrix in which all benchmarks are alike (Ledoit & Wolf, J. Multivariate
Analysis 88, 2004). The amount of shrinkage and the scale of errors are calibrated by leaving families out.
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
LOOKS = 0.5  # share of the allowed error for each look, because the decision is checked after every run
_LEAST = 1e-10  # minimum variance: a matrix of residuals that add up to zero is singular


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The statistics of some benchmarks over the stored machines.

    - ``titles``: the benchmarks; ``profile``: their usual distance from a machine's mean, which is 0 on average
    - ``covariance``: the covariance of a new family's distances from that profile
    - ``families``, ``machines``: the number of families and of machines
    """

    titles: tuple[str, ...]
    profile: Floats
    covariance: Floats
    families: int
    machines: int

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
    profile, covariance = _moments(logs, codes)
    return Panel(
        titles=tuple(map(str, history.columns)),
        profile=profile,
        covariance=scale * _shrunk(covariance, shrinking),
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
    weights, variance = _weights(panel.covariance, chosen, errors)
    figures = np.array([logs[title] for title in titles])
    complete = len(titles) == len(panel.titles)
    if complete:
        weights = np.full(len(titles), 1 / len(titles))
        variance = float(weights**2 @ errors)
    mean = float(weights @ (figures - panel.profile[chosen]))
    return Level(mean, math.sqrt(variance + host), math.inf if complete else float(panel.families - 1))


def order(
    panel: Panel, known: Sequence[str] = (), noise: Mapping[str, float] | None = None, host: float = 0.0
) -> Iterator[tuple[str, float]]:
    """Yield the remaining benchmarks, the most informative first, with the standard error of the mean after each."""
    errors = np.array([(noise or {}).get(title, 0.0) for title in panel.titles])
    for title, variance in _order(panel.covariance, list(panel.positions(known)), errors):
        yield panel.titles[title], math.sqrt(variance + host)


def is_decided(wrong: float, error: float) -> bool:
    """Return whether the probability of being ``wrong`` is small enough to stop after any run."""
    return wrong <= error * LOOKS


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


def _moments(logs: Floats, families: Ints) -> tuple[Floats, Floats]:
    """Return the usual distances from a machine's mean (benchmarks,), and their covariance. All families have the same
    weight.
    """
    distances = logs - logs.mean(axis=1, keepdims=True)
    sizes = np.bincount(families)
    weights = 1 / sizes[families] / len(sizes)
    profile: Floats = weights @ distances
    errors = distances - profile
    return profile, np.asarray((errors * weights[:, None]).T @ errors * len(sizes) / (len(sizes) - 1))


def _shrunk(covariance: Floats, part: float) -> Floats:
    """Return the covariance, moved by ``part`` towards that of benchmarks that are all alike and add up to zero."""
    count = len(covariance)
    alike = (np.eye(count) - 1 / count) * np.trace(covariance) / (count - 1)
    return np.asarray((1 - part) * covariance + part * alike)


def _calibrated(logs: Floats, families: Ints) -> tuple[float, float]:
    """Return the amount of shrinkage and the factor on the variance, from the likelihood of left-out families."""
    count = int(families.max()) + 1
    folds = np.arange(count) % min(FOLDS, count)
    best = (-math.inf, SHRINKING[-1], 1.0)
    for part in SHRINKING:
        scores, squares = [], []
        for fold in range(int(folds.max()) + 1):
            out = folds[families] == fold
            if len({*families[~out]}) < 3:
                continue
            profile, covariance = _moments(logs[~out], pd.factorize(families[~out])[0])
            shrunk = _shrunk(covariance, part)
            weight = 1 / np.bincount(families[out], minlength=count)[families[out]]
            chosen: list[int] = []
            for title, _ in _order(shrunk, [], np.zeros(len(shrunk))):
                chosen.append(title)
                if len(chosen) == len(shrunk):
                    break
                weights, variance = _weights(shrunk, np.array(chosen), np.zeros(len(chosen)))
                error = (logs[out][:, chosen] - profile[chosen]) @ weights - logs[out].mean(axis=1)
                squares.append(np.average(error**2 / variance, weights=weight))
                scores.append(math.log(variance))
        scale = float(np.mean(squares))
        likelihood = -float(np.mean(scores)) - math.log(scale)
        best = max(best, (likelihood, part, scale))
    return best[1], best[2]


def _weights(covariance: Floats, chosen: Ints, noise: Floats) -> tuple[Floats, float]:
    """Return the weights of the chosen benchmarks in the estimate of the mean, and its variance."""
    matrix = covariance[np.ix_(chosen, chosen)] + np.diag(noise + _LEAST)
    inverse = np.linalg.solve(matrix, np.ones(len(chosen)))
    variance = 1 / float(inverse.sum())
    return np.asarray(inverse * variance), variance


def _order(covariance: Floats, chosen: list[int], noise: Floats) -> Iterator[tuple[int, float]]:
    """Yield the remaining positions, each the one that reduces the variance most, and the variance after it."""
    chosen = list(chosen)
    left = [n for n in range(len(covariance)) if n not in chosen]
    while left:
        variances = [_weights(covariance, np.array([*chosen, n]), noise[[*chosen, n]])[1] for n in left]
        place = int(np.argmin(variances))
        chosen.append(left.pop(place))
        yield chosen[-1], variances[place]
