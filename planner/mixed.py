"""Estimate the mean of one side over benchmarks that some hosts lack, with a linear mixed model.

The oriented log figure of host h and benchmark b is y[h, b] = mu[b] + u[h] + e[h, b], with a random intercept u per
host. The means mu are estimated by generalised least squares. The ratio of the two variances is estimated by restricted
maximum likelihood (REML). A weighted mean over benchmarks then has two variance estimates: the model's, and the
cluster-robust CR2 over hosts. CR2 remains valid if hosts differ by more than an intercept. The larger estimate is used.
Its degrees of freedom are Satterthwaite's (Bell & McCaffrey, Survey Methodology 28, 2002; Pustejovsky & Tipton, JBES
36, 2018).

With two hosts, only CR2 applies. Both estimates then rest on little more than one difference, and the larger of the two
is biased upwards: 95% intervals would cover up to 98.2% (see ``docs/explanation/comparisons.md``). Without gaps, CR2
equals the variance between the two hosts, so both cases follow the same rule.

Missing figures are often missing for a reason, and hosts that lack all figures may differ most from the others. The
variance is therefore increased by the share of such hosts.

Without gaps, the estimate equals the mean over hosts of each host's weighted sum, which is computed directly.

If hosts form clusters (``planner.clustered``), the variance is CR2 over clusters instead of hosts, with or without
gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fleetmark.planner.ratio import Mean

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

WIDEST = 8.0  # maximum absolute log of the variance ratio
MOST_SPARE = 4  # surplus of figures over benchmarks needed for correct coverage
LEAST_KEPT = 0.05  # lower limit of the share of a host's residual that remains, even if the estimate rests on that host
_GRIDS = 3  # grid steps, each an eighth of the previous one
_NOTHING = 1e-300


class TooFewError(ValueError):
    """Report that the figures do not suffice to estimate a mean and its error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The fitted model of one side.

    - ``means``: the estimate of mu for each benchmark
    - ``hosts``: the hosts with at least one figure
    - ``clusters``: the cluster index of each of these hosts, or None if hosts are independent
    """

    means: Floats
    hosts: int
    _errors: Floats  # y less its mean, 0 where missing
    _seen: Floats  # 1 if there is a figure, else 0
    _shrink: Floats  # by host: its weight matrix is I - shrink 11'
    _inverse: Floats  # coefficients of the normal equations
    _residual: float  # variance of e
    _complete: bool
    _widening: float  # increase of the variance for hosts without figures
    clusters: Codes | None = None

    @property
    def units(self) -> int:
        """Return the number of independent units: clusters, or hosts if they are independent."""
        return self.hosts if self.clusters is None else len(np.unique(self.clusters))

    def scores(self, weights: Floats) -> Floats:
        """Return each host's distance from the mean: its weighted mean residual over the benchmarks."""
        weight: Floats = self._seen @ weights
        with np.errstate(invalid="ignore"):
            scores: Floats = self._errors @ weights / np.where(weight > 0, weight, np.nan)
        return scores

    def mean(self, weights: Floats) -> Mean:
        """Return the weighted mean over benchmarks, with its variance and degrees of freedom."""
        value = float(weights @ self.means)
        if self._complete:
            scores = self._errors @ weights
            if self.clusters is not None:
                return self._by_clusters(self.clusters, value, scores / self.hosts, np.full(self.hosts, 1 / self.hosts))
            variance = float(scores.var(ddof=1)) / self.hosts
            return Mean(value, variance, float(self.hosts - 1), self.hosts)
        slope = self._inverse @ weights
        k = self._seen.sum(axis=1)
        error = self._errors
        pull = error @ slope - self._shrink * error.sum(axis=1) * (
            self._seen @ slope
        )  # influence of each host on the mean
        share = (1 - self._shrink * k) * (self._seen @ slope)  # weight of each host's intercept; the weights sum to 1
        if self.clusters is not None:
            return self._by_clusters(self.clusters, value, pull, share)
        kept = np.clip(1 - share, LEAST_KEPT, None)
        clustered = float((pull**2 / kept).sum())
        model = self._residual * float(weights @ slope) if self.hosts > 2 else 0.0
        variance = self._widening * max(model, clustered)
        return Mean(value, variance, _degrees(share, kept), self.hosts)

    def _by_clusters(self, clusters: Codes, value: float, pull: Floats, share: Floats) -> Mean:
        """Return the mean with its CR2 variance over clusters; ``pull`` and ``share`` are given per host."""
        _, places = np.unique(clusters, return_inverse=True)
        pulls: Floats = np.bincount(places, pull).astype(float)
        shares: Floats = np.bincount(places, share).astype(float)
        kept = np.clip(1 - shares, LEAST_KEPT, None)
        variance = self._widening * float((pulls**2 / kept).sum())
        return Mean(value, variance, _degrees(shares, kept), len(shares))


def mean_over(scores: Floats, clusters: Codes | None) -> Mean:
    """Return the mean of one score per host, with its variance over hosts, or over clusters if they are given."""
    return Mean.from_logs(scores) if clusters is None else fit(scores[:, None], clusters).mean(np.ones(1))


def needed(hosts: int, benchmarks: int) -> int:
    """Return the minimum number of figures for hosts with gaps.

    The number is one figure per benchmark plus one per host beyond the first; at most MOST_SPARE of the latter count.
    """
    return benchmarks + max(1, min(hosts - 1, MOST_SPARE))


def fit(y: Floats, clusters: Codes | None = None) -> Fit:
    """Fit the model to the oriented logs ``y`` (hosts by benchmarks, NaN for missing figures).

    ``clusters`` is the cluster index of each host, or None if hosts are independent.

    Raise TooFewError if there are fewer than two hosts, if a benchmark has no figure, or if there are fewer figures
    than ``needed``.
    """
    if len(y) > 1 and y.shape[1] and not np.isnan(y).any():
        centre, nothing = y.mean(axis=0), np.zeros(0)
        return Fit(
            means=centre,
            hosts=len(y),
            _errors=y - centre,
            _seen=np.ones_like(y),
            _shrink=nothing,
            _inverse=nothing,
            _residual=0.0,
            _complete=True,
            _widening=1.0,
            clusters=_several(clusters),
        )
    present = ~np.isnan(y).all(axis=1)
    widening = 2 - float(present.mean()) if len(y) else 1.0
    y, clusters = y[present], _several(clusters, present)
    seen = (~np.isnan(y)).astype(float)
    hosts, benchmarks = y.shape
    cells = int(seen.sum())
    complete = cells == hosts * benchmarks
    if hosts < 2 or not seen.any(axis=0).all() or not (complete or cells >= needed(hosts, benchmarks)):
        raise TooFewError
    centre = np.nanmean(y, axis=0)
    z = np.where(seen > 0, y - centre, 0.0)  # centred, so that sums of squares keep their precision
    if complete:
        return Fit(
            means=centre,
            hosts=hosts,
            _errors=z,
            _seen=seen,
            _shrink=np.zeros(0),
            _inverse=np.zeros(0),
            _residual=0.0,
            _complete=True,
            _widening=1.0,
            clusters=clusters,
        )
    sums = _Sums.from_arrays(z, seen)
    ratio = _most_likely(sums)
    normal, right, _ = sums.equations(np.array([ratio]))
    inverse = np.linalg.inv(normal[0])
    shift = inverse @ right[0]
    k = seen.sum(axis=1)
    shrink = ratio / (1 + ratio * k)
    error = np.where(seen > 0, z - shift, 0.0)
    left = float((error**2).sum() - (shrink * error.sum(axis=1) ** 2).sum())
    residual = max(left, 0.0) / (cells - benchmarks)
    return Fit(
        means=centre + shift,
        hosts=hosts,
        _errors=error,
        _seen=seen,
        _shrink=shrink,
        _inverse=inverse,
        _residual=residual,
        _complete=False,
        _widening=widening,
        clusters=clusters,
    )


def _several(clusters: Codes | None, present: Any = slice(None)) -> Codes | None:
    """Return the clusters of the hosts in ``present``, or None if these hosts all belong to one cluster."""
    if clusters is None:
        return None
    codes: Codes = clusters[present]
    return codes if len(np.unique(codes)) > 1 else None


@dataclass(kw_only=True, frozen=True, slots=True)
class _Sums:
    """The sums that the likelihood needs.

    The likelihood depends on a host's number of benchmarks. Hosts with the same number are therefore summed once, and
    the cost of a search step does not depend on the number of hosts.
    """

    sizes: Floats  # the distinct numbers of benchmarks per host
    hosts: Floats  # the number of hosts for each of these numbers
    pairs: Floats  # for each number, the number of hosts that have both of two benchmarks
    totals: Floats  # for each number, the sum of the host sums, by benchmark
    squares: Floats  # for each number, the sum of the squared host sums
    right: Floats  # the sum by benchmark
    square: float  # the sum of all squares
    counts: Floats  # hosts by benchmarks

    @classmethod
    def from_arrays(cls, z: Floats, seen: Floats) -> _Sums:
        k, sums = seen.sum(axis=1), z.sum(axis=1)
        sizes, of_host = np.unique(k, return_inverse=True)
        groups = [np.flatnonzero(of_host == n) for n in range(len(sizes))]
        return cls(
            sizes=sizes,
            hosts=np.array([float(len(g)) for g in groups]),
            pairs=np.array([seen[g].T @ seen[g] for g in groups]),
            totals=np.array([sums[g] @ seen[g] for g in groups]),
            squares=np.array([float((sums[g] ** 2).sum()) for g in groups]),
            right=z.sum(axis=0),
            square=float((z**2).sum()),
            counts=seen.sum(axis=0),
        )

    def equations(self, ratios: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the normal matrix, right side and total sum of squares for each of the variance ``ratios``."""
        shrink = ratios[:, None] / (1 + ratios[:, None] * self.sizes)
        normal = np.diag(self.counts) - np.tensordot(shrink, self.pairs, 1)
        return normal, self.right - shrink @ self.totals, self.square - shrink @ self.squares

    def deviance(self, logs: Floats) -> Floats:
        """Return twice the negative restricted log-likelihood for each log variance ratio, up to a constant.

        The residual variance is profiled out.
        """
        ratios = np.exp(logs)
        normal, right, total = self.equations(ratios)
        free = float(self.counts.sum()) - len(self.counts)
        left = total - (right * np.linalg.solve(normal, right[:, :, None])[:, :, 0]).sum(axis=1)
        left = np.maximum(left, max(1e-14 * self.square, _NOTHING))
        deviance: Floats = (
            free * np.log(left) + np.log1p(ratios[:, None] * self.sizes) @ self.hosts + np.linalg.slogdet(normal)[1]
        )
        return deviance


def _most_likely(sums: _Sums) -> float:
    """Return the variance ratio that maximises the restricted likelihood.

    A grid over the logarithm is refined around its lowest point. The result is the vertex of the parabola through the
    three finest points.
    """
    step, grid = 1.0, np.arange(-WIDEST, WIDEST + 1)
    for finer in range(_GRIDS):
        deviance = sums.deviance(grid)
        n = int(np.argmin(deviance))
        best = float(grid[n])
        if finer < _GRIDS - 1:
            grid, step = np.clip(np.linspace(best - step, best + step, 17), -WIDEST, WIDEST), step / 8
    left, middle, right = deviance[max(n - 1, 0)], deviance[n], deviance[min(n + 1, len(grid) - 1)]
    curve = float(left - 2 * middle + right)
    if 0 < n < len(grid) - 1 and curve > 0 and abs(best) < WIDEST:
        best += step * float(left - right) / 2 / curve
    return math.exp(min(max(best, -WIDEST), WIDEST))


def _degrees(share: Floats, kept: Floats) -> float:
    """Return Satterthwaite's degrees of freedom of sum (share e)^2 / kept, where e are deviations of hosts from their
    mean.

    The matrix of the quadratic form is M'DM with D = diag(share^2 / kept) and M = I - 1 share'. Both traces have a
    closed form.
    """
    d, q = share**2 / kept, float(share @ share)
    s0, s1, s2 = float(d.sum()), float(d @ share), float(d @ share**2)
    trace = (1 + q) * s0 - 2 * s1
    square = float(d**2 @ (1 + 2 * (q - 2 * share))) + q * q * s0**2 + 2 * s0 * s2 + 2 * s1**2 - 4 * q * s0 * s1
    return trace**2 / square
