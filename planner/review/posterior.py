"""Update a plan's worth of a SKU with the measurements of delivered servers.

All errors are on the log scale. An estimate from hosts with an unknown variance is Student's t around its value, so the
posterior of the SKU's mean is the product of one t density for the plan's estimate and one for each measurement. With
many degrees of freedom, it is the precision-weighted mean.

If the plan's estimate was measured in the same way, two parts of its error remain. First, both estimates use the same
hosts of the baseline, so they share that error. Second, the benchmarks of a class represent a different workload, and
measuring them again gives no information about that difference.

If a delivery differs too much from the plan's estimate, its servers are not of the estimated kind. An average would
credit them with the worth of other servers, so the measurement then replaces the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import stats

from fleetmark.base.text import Message, message
from fleetmark.planner.capacity.sku import Worth
from fleetmark.planner.estimate import CONFIDENCE, Estimate, deviate

Floats = npt.NDArray[np.float64]
UNLIKELY = 0.01  # probability of a difference below which the delivered servers count as a different kind
_FARTHEST = 1e6  # end of the grid in standard errors; with few degrees of freedom, the tails are long
_POINTS = 801  # points of the grid around each estimate
_EXACT = 1e-9  # a smaller standard error is rounding


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measured worth of delivered servers, in the workload's unit.

    - ``se``, ``df``: the standard error of its natural logarithm for the mean over these hosts and benchmarks, and its
      degrees of freedom
    - ``hosts``: the number of hosts of the baseline (0 for a rate) and of the delivery
    - ``spread``, ``spread_df``: the additional standard error for the difference between the benchmarks and a workload
      of their class; 0 if a benchmark or a mix describes the workload
    """

    value: float
    se: float
    df: float
    hosts: tuple[int, int] = (0, 1)
    _: KW_ONLY
    spread: float = 0.0
    spread_df: float = math.inf

    @property
    def estimate(self) -> Estimate:
        """Return the measured value with its 95% interval."""
        return Estimate.of_error(self.value, self.se, self.df)

    def below(self, promised: float) -> float:
        """Return the probability that the delivered servers are worth less than ``promised``."""
        return float(stats.t.cdf(math.log(promised / self.value) / max(self.se, _EXACT), min(self.df, 1e6)))


def posterior(prior: Worth, measured: Sequence[Measurement]) -> Worth:
    """Return the worth of ``prior`` updated with measurements of delivered servers.

    The measurements replace a prior that has no error, because it is not an estimate, and a prior that they contradict.
    Without measurements, return the prior.
    """
    if not measured:
        return prior
    origin = prior.origin
    if origin is None:
        both = [((m.se, m.df), (m.spread, m.spread_df)) for m in measured]
        errors = [(math.hypot(one[0], two[0]), _satterthwaite([one, two])) for one, two in both]
        estimated, shared, spread = (prior.se, prior.df), 0.0, (0.0, math.inf)
    else:
        fleet = min(origin.se, prior.se)
        ratios = [(fleet, origin.hosts), *((m.se, m.hosts) for m in measured)]
        shared = math.sqrt(sum(_baseline(*ratio) ** 2 for ratio in ratios) / len(ratios))
        errors = [(_candidate(m.se, m.hosts, shared), m.df) for m in measured]
        estimated, spread = (_candidate(fleet, origin.hosts, shared), origin.df), (_without(prior.se, fleet), prior.df)
    terms = [(math.log(m.value), se, df) for m, (se, df) in zip(measured, errors, strict=True)]
    if is_used := prior.se > _EXACT and not contradicts(prior, measured):
        terms.append((math.log(prior.value), *estimated))
    centre, se = _product(terms)
    fleet_parts = [(se * math.sqrt(share), df) for share, (_, _, df) in zip(_shares(terms), terms, strict=True)]
    # One estimate of the variance gives the error of the baseline and that of the plan's estimate: they err together.
    of_estimate = fleet_parts.pop()[0] if is_used else 0.0
    fleet_parts.append((math.hypot(of_estimate, shared), estimated[1]))
    parts = [*fleet_parts, spread]
    if origin is not None:
        a, b = origin.hosts
        origin = replace(
            origin,
            se=math.hypot(se, shared),
            df=_satterthwaite(fleet_parts),
            hosts=(a, b + sum(m.hosts[1] for m in measured)),
        )
    total = math.hypot(*(error for error, _ in parts))
    return replace(
        prior,
        value=math.exp(centre),
        se=total,
        df=_satterthwaite(parts),
        origin=origin,
        promised=promised(prior),
    )


def promised(worth: Worth) -> float:
    """Return the worth of one server before measurements of deliveries updated it."""
    return worth.promised or worth.value


def contradicts(prior: Worth, measured: Sequence[Measurement]) -> bool:
    """Return whether the difference is so improbable that the delivered servers are probably a different kind."""
    return any(disagreement(prior, m) < UNLIKELY / len(measured) for m in measured)


def disagreement(prior: Worth, measured: Measurement) -> float:
    """Return the two-sided p value of the difference, if the delivered servers are of the planned kind."""
    origin = prior.origin
    if prior.se <= _EXACT:
        return 1.0  # a given figure is not an estimate, so nothing can contradict it
    if origin is None:
        parts = [(prior.se, prior.df), (measured.se, measured.df), (measured.spread, measured.spread_df)]
    else:
        fleet = min(origin.se, prior.se)
        parts = [
            (_without(fleet, _baseline(fleet, origin.hosts)), origin.df),
            (_without(measured.se, _baseline(measured.se, measured.hosts)), measured.df),
        ]
    se = max(math.hypot(*(s for s, _ in parts)), _EXACT)
    t = abs(math.log(measured.value / prior.value)) / se
    return float(2 * stats.t.sf(t, min(_satterthwaite(parts), 1e6)))


def _baseline(se: float, hosts: tuple[int, int]) -> float:
    """Return the part of a ratio's standard error that comes from its baseline, if both sides vary alike."""
    a, b = hosts
    return se * math.sqrt(b / (a + b)) if a and b else 0.0


def _candidate(se: float, hosts: tuple[int, int], baseline: float) -> float:
    """Return a ratio's standard error without the part of its baseline, but at least the part of its own hosts."""
    return max(_without(se, baseline), _without(se, _baseline(se, hosts)))


def _without(se: float, part: float) -> float:
    return math.sqrt(max(se * se - part * part, 0.0))


def _satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of independent errors, given pairs of standard error and degrees of
    freedom.
    """
    variance = sum(se * se for se, _ in parts)
    below = sum(se**4 / df for se, df in parts if not math.isinf(df))
    return math.inf if below == 0 else variance * variance / below


def _product(terms: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return median and standard error of the product of t densities (centre, scale, df).

    The standard error is chosen so that its t interval is as wide as the central 95% of the product.
    """
    exact = [centre for centre, scale, _ in terms if scale <= _EXACT]
    if exact:
        return sum(exact) / len(exact), 0.0
    if len(terms) == 1:
        return terms[0][:2]
    df = _satterthwaite([(math.sqrt(share), df) for share, (_, _, df) in zip(_shares(terms), terms, strict=True)])
    u = np.sinh(np.linspace(-np.arcsinh(_FARTHEST), np.arcsinh(_FARTHEST), _POINTS))
    x = np.unique(np.concatenate([centre + scale * u for centre, scale, _ in terms]))
    logs = sum((_log_density((x - centre) / scale, f) for centre, scale, f in terms), start=np.zeros_like(x))
    density = np.exp(logs - logs.max())
    areas = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(x))])
    low, median, high = np.interp([(1 - CONFIDENCE) / 2, 0.5, (1 + CONFIDENCE) / 2], areas / areas[-1], x)
    return float(median), float(high - low) / 2 / deviate(CONFIDENCE, df)


def _shares(terms: Sequence[tuple[float, float, float]]) -> list[float]:
    """Return the share that each estimate (centre, scale, df) has in the combined precision."""
    precisions = [max(scale, _EXACT) ** -2 for _, scale, _ in terms]
    return [precision / sum(precisions) for precision in precisions]


def _log_density(z: Floats, df: float) -> Floats:
    """Return the logarithm of Student's t density, without its constant term."""
    return -z * z / 2 if math.isinf(df) else -(df + 1) / 2 * np.log1p(z * z / df)


def source_of(prior: Worth, lots: Sequence[str]) -> Message:
    """Return the origin of an updated worth in words."""
    return message("{source}; updated by {lots}", source=prior.source, lots=", ".join(lots))
