"""Find a workload's bottleneck: fit its demand for each resource to the measured rates and times of machines.

A workload of demand d (per unit of work: bytes, operations, core seconds) takes tau_i = d_i / R_i on resource i of rate
R_i. Its total time is T = (sum tau_i^p)^(1/p). With p = 1 the resources are used one after the other. With infinite p
they overlap completely (a roofline), and only the slowest resource counts.

For a given p, c_i = d_i^p is the non-negative least-squares fit of sum c_i R_i^-p / T^p to 1, so it minimises relative
errors. The p chosen from ``POWERS`` is the one that best predicts machines left out of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy import optimize

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import count, message
from fleetmark.planner.estimate import CONFIDENCE, Estimate, deviate
from fleetmark.planner.ratio import Ratio

Floats = npt.NDArray[np.float64]

POWERS = (1.0, 1.5, 2.0, 4.0, math.inf)
MOST_CONDITION = 30.0  # maximum condition number; above it, columns are collinear (Belsley, Kuh and Welsch 1980)
MOST_SPREAD = 0.20  # maximum half-width of a share's interval; wider shares are not attributed
MOST_ERROR = 0.20  # maximum half-width of a prediction's interval, in logs; wider predictions are not reported
BEYOND = 2.0  # maximum factor between a rate and the fitted rates
RESAMPLED = 400
THROTTLES = (0.4, 0.5, 0.65, 0.8)  # fractions of a rate; four, because a third of resamples omit any given machine
_TURNS = 50
_SAME = 1e-6  # log errors that differ by less are treated as equal, and the simplest p is used


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A workload's demand vector.

    - ``rates``: one row per machine and one column per resource
    - ``times``: the time for a unit of work on each machine
    - ``demand``: the demand per unit of work, in the unit of the rate x s
    - ``errors``: by p, the root mean square of the log error on machines left out
    - ``shares``: each resource's share of the time, eps_i = tau_i^p / sum tau^p, at the geometric mean of the machines,
      with its 95% bootstrap interval over machines
    - ``refused``: why the shares cannot be attributed; empty if they can
    - ``throttle``: the resource to throttle on one machine, to each of ``THROTTLES`` of its rate, to improve the
      attribution most, and the resulting condition number
    - ``drawn``: the (p, demand) of each bootstrap draw, used for the intervals of predictions
    - ``alike``: the other values of p that fit as well within the noise
    """

    machines: Sequence[str]
    resources: Sequence[str]
    rates: Floats
    times: Floats
    demand: Mapping[str, float]
    p: float
    errors: Mapping[float, float]
    shares: Mapping[str, Estimate]
    condition: float
    refused: Sequence[str] = ()
    throttle: tuple[str, float] | None = None
    drawn: Sequence[tuple[float, Sequence[float]]] = field(default=(), repr=False)
    alike: Sequence[float] = ()

    @property
    def error(self) -> float:
        """Return the root mean square of the log error on machines left out, at the chosen p."""
        return self.errors[self.p]

    @property
    def df(self) -> int:
        """Return the degrees of freedom of ``error``."""
        return len(self.machines) - len(self.resources)

    def rates_of(self, rates: Mapping[str, float] | None) -> Floats:
        """Return ``rates`` in the profile's order, or the geometric mean of the machines if None.

        Raise FleetmarkError for a rate that is missing or not positive.
        """
        if rates is None:
            return np.asarray(np.exp(np.log(self.rates).mean(axis=0)))
        absent = [r for r in self.resources if r not in rates]
        if absent:
            raise FleetmarkError(f"no rate of {', '.join(absent)}: the profile needs {', '.join(self.resources)}")
        _positive({r: rates[r] for r in self.resources}, "rate")
        return np.array([float(rates[r]) for r in self.resources])


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A possible purchase: ``factors`` multiplies the rate of each resource; ``money`` is its price."""

    name: str
    factors: Mapping[str, float]
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """The effect of an upgrade.

    ``ratio`` is the throughput after the upgrade divided by the throughput before it; ``per_money`` is (ratio - 1) /
    money.
    """

    upgrade: Upgrade
    ratio: Ratio
    per_money: float | None


def time_of(demand: Sequence[float] | Floats, rates: Sequence[float] | Floats, p: float) -> float:
    """Return T = (sum (d_i / R_i)^p)^(1/p) in s; if p is infinite, the largest d_i / R_i."""
    return float(_times(np.asarray(demand, dtype=float), np.atleast_2d(np.asarray(rates, dtype=float)), p)[0])


def sensitivities(demand: Sequence[float] | Floats, rates: Sequence[float] | Floats, p: float) -> Floats:
    """Return eps_i = tau_i^p / sum tau^p: the percentage by which T falls if rate i rises by 1%.

    The values sum to 1.
    """
    tau = np.asarray(demand, dtype=float) / np.asarray(rates, dtype=float)
    relative = tau / tau.max()
    parts = (relative >= 1 - 1e-12).astype(float) if math.isinf(p) else relative**p
    return np.asarray(parts / parts.sum())


def _times(demand: Floats, rates: Floats, p: float) -> Floats:
    tau = demand / rates
    top = tau.max(axis=1)
    if math.isinf(p):
        return np.asarray(top)
    scale = np.where(top > 0, top, 1.0)
    return np.asarray(top * ((tau / scale[:, None]) ** p).sum(axis=1) ** (1 / p))


def fit(rates: Mapping[str, Mapping[str, float]], times: Mapping[str, float], *, seed: int = 1) -> Profile:
    """Fit the demand vector to the ``times`` and ``rates`` of machines.

    ``times`` maps machine to seconds per unit of work; ``rates`` maps machine to resource to rate. ``seed`` is that of
    the bootstrap.

    Raise FleetmarkError if there are fewer machines than resources + 1, if a machine lacks a rate, or if a figure is
    not positive.
    """
    machines = sorted(times)
    resources = list(dict.fromkeys(r for m in machines for r in rates.get(m, {})))
    if not resources:
        raise FleetmarkError("a profile needs resources: no machine has a rate")
    for m in machines:
        if absent := [r for r in resources if r not in rates.get(m, {})]:
            raise FleetmarkError(
                f"{m} has no rate of {', '.join(absent)}; exclude the machine, or measure the rate there"
            )
        _positive({f"{r} of {m}": rates[m][r] for r in resources}, "rate")
    _positive(times, "time")
    if len(machines) < len(resources) + 1:
        raise FleetmarkError(
            f"{count(len(machines), 'machine')} for {count(len(resources), 'resource')}: a profile takes at least "
            f"{len(resources) + 1}; measure more machines that differ, or name fewer resources"
        )
    r = np.array([[float(rates[m][name]) for name in resources] for m in machines])
    t = np.array([float(times[m]) for m in machines])
    scale, unit = np.exp(np.log(r).mean(axis=0)), float(np.exp(np.log(t).mean()))
    x, y = r / scale, t / unit  # scale the numbers to about 1; this changes nothing else
    missed = {p: _left_out(x, y, p) for p in POWERS}
    errors = {p: math.sqrt(float(np.mean(e**2))) for p, e in missed.items()}
    p = next(p for p in POWERS if errors[p] <= min(errors.values()) + _SAME)
    demand = _fitted(x, y, p)
    drawn = _bootstrap(x, y, seed)
    shares = sensitivities(demand, np.ones(len(resources)), p)
    spread = math.sqrt(len(y) / (len(y) - len(resources)))  # a model fits its own machines better than others
    estimates = _estimates(shares, [sensitivities(d, np.ones(len(resources)), q) for q, d in drawn], spread, len(y))
    condition = _condition(_design(x, y, p))
    refused = _refusals(resources, condition, estimates)
    return Profile(
        machines=machines,
        resources=resources,
        rates=r,
        times=t,
        demand=dict(zip(resources, (demand * scale * unit).tolist(), strict=True)),
        p=p,
        errors=errors,
        shares=dict(zip(resources, estimates, strict=True)),
        condition=condition,
        refused=refused,
        throttle=_throttle(resources, demand, x, y, p) if refused else None,
        drawn=[(q, (d * scale * unit).tolist()) for q, d in drawn],
        alike=_alike(missed, p),
    )


def _positive(figures: Mapping[str, float], noun: str) -> None:
    for name, value in figures.items():
        if not (math.isfinite(value) and value > 0):
            raise FleetmarkError(f"a {noun} of {value:g} ({name}): rates and times must be positive")


def _fitted(rates: Floats, times: Floats, p: float) -> Floats:
    """Return the fitted demand for one p; a resource without influence on the times gets 0."""
    if math.isinf(p):
        return _roofline(rates, times)
    c, _ = optimize.nnls(_design(rates, times, p), np.ones(len(times)))
    return np.asarray(c ** (1 / p))


def _design(rates: Floats, times: Floats, p: float) -> Floats:
    """Return R_i^-p / T^p, with the largest finite p in place of an infinite one."""
    power = p if math.isfinite(p) else max(q for q in POWERS if math.isfinite(q))
    return np.asarray((rates * times[:, None]) ** -power)


def _roofline(rates: Floats, times: Floats) -> Floats:
    """Fit T = max d_i / R_i by alternating between two steps.

    One step finds the resource that limits each machine; the other fits the demand to those machines (mean of logs).
    The fit starts from the highest roof below all times. At the end, it drops every resource that does not improve the
    fit.
    """
    product = rates * times[:, None]  # the demand if only that resource limited the workload
    logs, every = np.log(product), np.arange(len(times))

    def error(demand: Floats) -> float:
        return float(np.sum(np.log(_times(demand, rates, math.inf) / times) ** 2))

    def settle(demand: Floats) -> Floats:
        best, least, before = demand, error(demand), None
        for _ in range(_TURNS):
            blamed = np.argmax(demand / rates, axis=1)
            if before is not None and (blamed == before).all():
                break
            count = np.bincount(blamed, minlength=len(demand))
            total = np.bincount(blamed, logs[every, blamed], len(demand))
            demand, before = np.where(count > 0, np.exp(total / np.maximum(count, 1)), 0.0), blamed
            if (now := error(demand)) < least:
                best, least = demand, now
        return best

    smooth = _fitted(rates, times, max(q for q in POWERS if math.isfinite(q)))
    best = min((settle(product.min(axis=0)), settle(smooth)), key=error)
    for i in np.argsort(sensitivities(best, np.ones(len(best)), 1.0)):
        without = best.copy()
        without[i] = 0.0
        if without.any() and error(without) <= error(best) + _SAME**2:
            best = without
    return best


def _left_out(rates: Floats, times: Floats, p: float) -> Floats:
    """Return ln(predicted / measured) for each machine, predicted by a fit to the other machines."""
    errors = np.empty(len(times))
    for n in range(len(times)):
        others = np.arange(len(times)) != n
        predicted = _times(_fitted(rates[others], times[others], p), rates[n : n + 1], p)[0]
        errors[n] = math.log(predicted / times[n]) if predicted > 0 else math.inf
    return errors


def _alike(missed: Mapping[float, Floats], p: float) -> list[float]:
    """Return the other powers that fit about as well as p. Their squared errors exceed those of p by less than the
    standard error of the difference.
    """
    powers = []
    for q, errors in missed.items():
        if q == p or not np.isfinite(errors).all():
            continue
        more = errors**2 - missed[p] ** 2
        if more.mean() <= more.std(ddof=1) / math.sqrt(len(more)) + _SAME**2:
            powers.append(q)
    return powers


def _bootstrap(rates: Floats, times: Floats, seed: int) -> list[tuple[float, Floats]]:
    """Return fits to machines drawn with replacement.

    Each draw has at least as many different machines as resources. Each fit uses the p that fits its machines best,
    since all p have equally many parameters.
    """
    rng = np.random.default_rng(seed)
    count, needed = len(times), rates.shape[1]
    resamples: list[tuple[float, Floats]] = []
    while len(resamples) < RESAMPLED:
        rows = rng.integers(0, count, count)
        if len(np.unique(rows)) < needed:
            continue
        x, y = rates[rows], times[rows]
        fits = [(p, _fitted(x, y, p)) for p in POWERS]
        errors = [float(np.sum(np.log(np.maximum(_times(d, x, p), 1e-300) / y) ** 2)) for p, d in fits]
        resamples.append(fits[next(i for i, e in enumerate(errors) if e <= min(errors) + _SAME**2)])
    return resamples


def _estimates(point: Floats, drawn: Sequence[Floats], spread: float, machines: int) -> list[Estimate]:
    """Return shares with percentile intervals, widened about the point by ``spread`` and limited to 0 to 1."""
    samples = point + (np.array(drawn) - point) * spread
    tail = (1 - CONFIDENCE) / 2
    low, high = np.clip(np.quantile(samples, [tail, 1 - tail], axis=0), 0, 1)
    return [
        Estimate(float(share), float(a), float(b), n=(machines,)) for share, a, b in zip(point, low, high, strict=True)
    ]


def _condition(design: Floats) -> float:
    """Return the condition number after scaling the columns to equal length."""
    values = np.linalg.svd(design / np.linalg.norm(design, axis=0), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > values[0] * 1e-12 else math.inf


def _refusals(resources: Sequence[str], condition: float, shares: Sequence[Estimate]) -> list[str]:
    refused: list[str] = []
    if condition > MOST_CONDITION:
        refused.append(
            message(
                "the machines' rates rise and fall together: condition number {condition}, and the limit is {most}",
                condition=f"{condition:.0f}" if math.isfinite(condition) else "∞",
                most=f"{MOST_CONDITION:.0f}",
            )
        )
    for name, share in zip(resources, shares, strict=True):
        low, high = share.interval or (0.0, 1.0)
        if high - low > 2 * MOST_SPREAD:
            refused.append(
                message(
                    "the share of {resource} is anywhere from {low} to {high}",
                    resource=name,
                    low=f"{low:.0%}",
                    high=f"{high:.0%}",
                )
            )
    return refused


def _throttle(resources: Sequence[str], demand: Floats, rates: Floats, times: Floats, p: float) -> tuple[str, float]:
    """Return the resource to throttle to ``THROTTLES`` on an average machine to separate the resources best.

    Also return the resulting condition number.
    """
    conditions = []
    for i, name in enumerate(resources):
        throttled = np.ones((len(THROTTLES), len(resources)))
        throttled[:, i] = THROTTLES
        design = _design(np.vstack([rates, throttled]), np.append(times, _times(demand, throttled, p)), p)
        conditions.append((_condition(design), name))
    condition, name = min(conditions)
    return name, condition


def equivalence(profile: Profile, a: Mapping[str, float] | None, b: Mapping[str, float]) -> Ratio:
    """Return how many machines with rates ``a`` one machine with rates ``b`` replaces.

    If ``a`` is None, it is the geometric mean of the fitted machines. The interval combines the bootstrap's spread,
    which covers d and p, with the error on machines left out, once for each side. It uses Student's t with machines -
    resources degrees of freedom.

    Raise FleetmarkError for rates that are missing or not positive.
    """
    x, y = profile.rates_of(a), profile.rates_of(b)
    return _ratio(profile, x, y, 0.0 if np.allclose(x, y, rtol=1e-12, atol=0) else 2 * profile.error**2)


def _ratio(profile: Profile, before: Floats, after: Floats, extra: float) -> Ratio:
    def log(demand: Sequence[float], p: float) -> float:
        return math.log(time_of(demand, before, p) / time_of(demand, after, p))

    delta = log(tuple(profile.demand.values()), profile.p)
    drawn = [log(d, p) for p, d in profile.drawn]
    half = deviate(CONFIDENCE, profile.df) * math.sqrt(_variance(profile, delta, drawn) + extra)
    value, lo, hi = (math.exp(delta + d) for d in (0.0, -half, half))
    return Ratio(value, lo, hi, df=float(profile.df), n=(len(profile.machines), len(profile.machines)))


def _variance(profile: Profile, point: float, drawn: Sequence[float]) -> float:
    """Return the variance of the bootstrap draws about the point, increased because a model fits its own machines
    better than others.
    """
    return float(np.mean((np.array(drawn) - point) ** 2)) * len(profile.machines) / profile.df


def predicted(profile: Profile, rates: Mapping[str, float]) -> Estimate:
    """Return the predicted units of work per second of a machine with these ``rates``.

    The interval combines the bootstrap's spread with the error on machines left out. It uses Student's t with
    ``profile.df`` degrees of freedom.
    """
    x = profile.rates_of(rates)
    log = -math.log(time_of(tuple(profile.demand.values()), x, profile.p))
    drawn = [-math.log(time_of(d, x, p)) for p, d in profile.drawn]
    se = math.sqrt(_variance(profile, log, drawn) + profile.error**2)
    return Estimate.of_error(math.exp(log), se, float(profile.df), (len(profile.machines),))


def cannot_tell(profile: Profile, rates: Mapping[str, float]) -> str:
    """Return why no prediction is possible for a machine with these ``rates``; empty if one is possible."""
    x = profile.rates_of(rates)
    low, high = profile.rates.min(axis=0) / BEYOND, profile.rates.max(axis=0) * BEYOND
    out = [n for n, v, a, b in zip(profile.resources, x, low, high, strict=True) if not a <= v <= b]
    if out:
        return message(
            "its {resources} is more than {times} times beyond the fitted machines",
            resources=", ".join(out),
            times=f"{BEYOND:g}",
        )
    rate = predicted(profile, rates)
    half = math.log((rate.hi or rate.value) / rate.value)
    if half > math.log1p(MOST_ERROR):
        return message(
            "the interval is wider than ±{most} (±{half}, {machines} machines for {resources} resources)",
            most=f"{MOST_ERROR:.0%}",
            half=f"{math.expm1(half):.0%}",
            machines=len(profile.machines),
            resources=len(profile.resources),
        )
    return ""


def gains(profile: Profile, upgrades: Sequence[Upgrade], rates: Mapping[str, float] | None = None) -> list[Gain]:
    """Return the gain of each upgrade of a machine with these ``rates``.

    If ``rates`` is None, they are the geometric mean of the fitted machines. Upgrades with the highest gain per money
    come first, then those without a price, by gain. The intervals include only the bootstrap's spread, because the
    model's error is the same before and after an upgrade.

    Raise FleetmarkError if an upgrade names a resource that the profile lacks, or a factor that is not positive.
    """
    before = profile.rates_of(rates)
    ranked = []
    for u in upgrades:
        for name in u.factors:
            if name not in profile.resources:
                raise FleetmarkError(
                    f"upgrade {u.name}: {name} is not a resource of the profile ({', '.join(profile.resources)})"
                )
        _positive(u.factors, "factor")
        if u.money is not None:
            _positive({u.name: u.money}, "price")
        after = before * np.array([u.factors.get(r, 1.0) for r in profile.resources])
        ratio = _ratio(profile, before, after, 0.0)
        ranked.append(Gain(u, ratio, (ratio.value - 1) / u.money if u.money is not None else None))
    return sorted(ranked, key=lambda g: (g.per_money is None, -(g.per_money or 0.0), -g.ratio.value))
