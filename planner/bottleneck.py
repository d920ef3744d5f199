"""What a workload is short of: its demand of each resource, fitted from machines' measured rates and its time on them.

Work of demand d (per unit of work: bytes, operations, seconds of a core) takes tau_i = d_i / R_i on resource i of rate
R_i, and T = (sum tau_i^p)^(1/p) altogether: p = 1 one after the other, p infinite wholly overlapped (a roofline: the
slowest resource alone counts). For a given p, c_i = d_i^p is a non-negative least-squares fit of sum c_i R_i^-p / T^p
to 1, that is to relative errors; p is the one of ``POWERS`` that best predicts machines left out.
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
from planner.estimate import CONFIDENCE, Estimate, deviate
from planner.ratio import Ratio

Floats = npt.NDArray[np.float64]

POWERS = (1.0, 1.5, 2.0, 4.0, math.inf)
MOST_CONDITION = 30.0  # Belsley, Kuh and Welsch 1980: from here on columns carry the same information
MOST_SPREAD = 0.20  # half the width of a share's interval, from which on it is no attribution
MOST_ERROR = 0.20  # half the width of a prediction's interval in logs, from which on it is none
BEYOND = 2.0  # a rate this many times beyond those fitted is out of reach
RESAMPLED = 400
THROTTLES = (0.4, 0.5, 0.65, 0.8)  # of a rate: four depths, since one odd machine is absent from a third of resamples
_TURNS = 50
_SAME = 1e-6  # log errors that differ by less are equal: the simplest p is taken


@dataclass(frozen=True, slots=True)
class Profile:
    """A workload's demand vector. ``rates``: a row per machine, a column per resource; ``times``: of a unit of work.

    ``demand``: per unit of work, in the unit of the rate x s. ``errors``: p to the root mean square of the log error on
    machines left out. ``shares``: each resource's part of the time, eps_i = tau_i^p / sum tau^p, at the geometric mean
    of the machines, with its 95% interval (bootstrap over machines). ``refused``: why the shares are no
    attribution, empty where they are; ``throttle``: the resource whose throttling on one machine, to each of
    ``THROTTLES`` of its rate, would settle it best, and the condition number then. ``drawn``: the bootstrap's (p,
    demand), from which intervals of predictions come. ``alike``: the other p that do as well within the noise.
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
        """Root mean square of the log error on machines left out, at the p chosen."""
        return self.errors[self.p]

    @property
    def df(self) -> int:
        """Degrees of freedom of that error."""
        return len(self.machines) - len(self.resources)

    def rates_of(self, rates: Mapping[str, float] | None) -> Floats:
        """``rates`` in the profile's order; the machines' geometric mean where None. Raises FleetmarkError for a rate
        that is absent or not positive.
        """
        if rates is None:
            return np.asarray(np.exp(np.log(self.rates).mean(axis=0)))
        absent = [r for r in self.resources if r not in rates]
        if absent:
            raise FleetmarkError(f"no rate of {', '.join(absent)}: the profile rests on {', '.join(self.resources)}")
        _positive({r: rates[r] for r in self.resources}, "rate")
        return np.array([float(rates[r]) for r in self.resources])


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A possible purchase. ``factors``: resource to what its rate is multiplied by; ``money``: its price."""

    name: str
    factors: Mapping[str, float]
    money: float | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """An upgrade and its effect: ``ratio`` is throughput after over before; ``per_money``: (ratio - 1) / money."""

    upgrade: Upgrade
    ratio: Ratio
    per_money: float | None


def time_of(demand: Sequence[float] | Floats, rates: Sequence[float] | Floats, p: float) -> float:
    """T = (sum (d_i / R_i)^p)^(1/p), s; the largest of them where p is infinite."""
    return float(_times(np.asarray(demand, dtype=float), np.atleast_2d(np.asarray(rates, dtype=float)), p)[0])


def sensitivities(demand: Sequence[float] | Floats, rates: Sequence[float] | Floats, p: float) -> Floats:
    """eps_i = tau_i^p / sum tau^p: by how many percent T falls for one percent more of rate i. They sum to 1."""
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
    """The demand vector behind ``times`` (machine to seconds per unit of work) on machines with these ``rates``
    (machine to resource to rate). ``seed``: of the bootstrap.

    Raises FleetmarkError for fewer machines than resources + 1, machines without all rates, and figures not positive.
    """
    machines = sorted(times)
    resources = list(dict.fromkeys(r for m in machines for r in rates.get(m, {})))
    if not resources:
        raise FleetmarkError("a profile needs resources: no machine has a rate")
    for m in machines:
        if absent := [r for r in resources if r not in rates.get(m, {})]:
            raise FleetmarkError(f"{m} has no rate of {', '.join(absent)}; leave the machine out or measure it there")
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
    x, y = r / scale, t / unit  # numbers near 1, which change nothing else
    missed = {p: _left_out(x, y, p) for p in POWERS}
    errors = {p: math.sqrt(float(np.mean(e**2))) for p, e in missed.items()}
    p = next(p for p in POWERS if errors[p] <= min(errors.values()) + _SAME)
    demand = _fitted(x, y, p)
    drawn = _bootstrap(x, y, seed)
    shares = sensitivities(demand, np.ones(len(resources)), p)
    spread = math.sqrt(len(y) / (len(y) - len(resources)))  # a fit is nearer to its own machines than to others
    estimates = _estimates(shares, [sensitivities(d, np.ones(len(resources)), q) for q, d in drawn], spread, len(y))
    condition = _condition(_design(x, y, p))
    refused = _refusals(resources, condition, estimates)
    return Profile(
        machines,
        resources,
        r,
        t,
        dict(zip(resources, (demand * scale * unit).tolist(), strict=True)),
        p,
        errors,
        dict(zip(resources, estimates, strict=True)),
        condition,
        refused,
        _throttle(resources, demand, x, y, p) if refused else None,
        [(q, (d * scale * unit).tolist()) for q, d in drawn],
        _alike(missed, p),
    )


def _positive(figures: Mapping[str, float], noun: str) -> None:
    for name, value in figures.items():
        if not (math.isfinite(value) and value > 0):
            raise FleetmarkError(f"a {noun} of {value:g} ({name}): rates and times are positive numbers")


def _fitted(rates: Floats, times: Floats, p: float) -> Floats:
    """The demand for one p; a resource that does not show in the times gets 0."""
    if math.isinf(p):
        return _roofline(rates, times)
    c, _ = optimize.nnls(_design(rates, times, p), np.ones(len(times)))
    return np.asarray(c ** (1 / p))


def _design(rates: Floats, times: Floats, p: float) -> Floats:
    """R_i^-p / T^p, the largest finite p in place of an infinite one."""
    power = p if math.isfinite(p) else max(q for q in POWERS if math.isfinite(q))
    return np.asarray((rates * times[:, None]) ** -power)


def _roofline(rates: Floats, times: Floats) -> Floats:
    """T = max d_i / R_i by turns: which resource binds each machine, and the demand that fits those it binds (mean of
    logs); from the tightest roof under all times, then without every resource whose absence costs nothing.
    """
    product = rates * times[:, None]  # the demand, were that resource alone to blame
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
    """ln(predicted / true) of each machine, predicted by a fit to the others."""
    errors = np.empty(len(times))
    for n in range(len(times)):
        others = np.arange(len(times)) != n
        predicted = _times(_fitted(rates[others], times[others], p), rates[n : n + 1], p)[0]
        errors[n] = math.log(predicted / times[n]) if predicted > 0 else math.inf
    return errors


def _alike(missed: Mapping[float, Floats], p: float) -> list[float]:
    """The other powers whose squared errors exceed those of p by less than the standard error of that difference."""
    powers = []
    for q, errors in missed.items():
        if q == p or not np.isfinite(errors).all():
            continue
        more = errors**2 - missed[p] ** 2
        if more.mean() <= more.std(ddof=1) / math.sqrt(len(more)) + _SAME**2:
            powers.append(q)
    return powers


def _bootstrap(rates: Floats, times: Floats, seed: int) -> list[tuple[float, Floats]]:
    """Fits to machines drawn with replacement, at least as many different ones as resources; each with the p that
    fits its machines best (all p have as many parameters).
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
    """Shares with percentile intervals, widened about the point by ``spread``, within 0 and 1."""
    samples = point + (np.array(drawn) - point) * spread
    tail = (1 - CONFIDENCE) / 2
    low, high = np.clip(np.quantile(samples, [tail, 1 - tail], axis=0), 0, 1)
    return [
        Estimate(float(share), float(a), float(b), n=(machines,)) for share, a, b in zip(point, low, high, strict=True)
    ]


def _condition(design: Floats) -> float:
    """The condition number with columns brought to one length."""
    values = np.linalg.svd(design / np.linalg.norm(design, axis=0), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > values[0] * 1e-12 else math.inf


def _refusals(resources: Sequence[str], condition: float, shares: Sequence[Estimate]) -> list[str]:
    refused: list[str] = []
    if condition > MOST_CONDITION:
        refused.append(
            message(
                "the machines' rates rise and fall together: condition number {condition}, where {most} is the most",
                condition=f"{condition:.0f}" if math.isfinite(condition) else "∞",
                most=f"{MOST_CONDITION:.0f}",
            )
        )
    for name, share in zip(resources, shares, strict=True):
        low, high = share.interval or (0.0, 1.0)
        if high - low > 2 * MOST_SPREAD:
            refused.append(
                message(
                    "the share of {resource} lies anywhere from {low} to {high}",
                    resource=name,
                    low=f"{low:.0%}",
                    high=f"{high:.0%}",
                )
            )
    return refused


def _throttle(resources: Sequence[str], demand: Floats, rates: Floats, times: Floats, p: float) -> tuple[str, float]:
    """The resource whose throttling to ``THROTTLES``, on a machine like the mean, would separate the resources best,
    and the condition number then.
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
    """How many machines with rates ``a`` (None: the geometric mean of those fitted) one with rates ``b`` is worth.

    The interval joins the bootstrap's spread, which carries d and p, and the error on machines left out, once for each
    side, as Student's t with machines - resources degrees of freedom. Raises FleetmarkError for rates that are absent
    or not positive.
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
    """The variance of the bootstrap's draws about the point, raised because a fit is closer to its own machines."""
    return float(np.mean((np.array(drawn) - point) ** 2)) * len(profile.machines) / profile.df


def predicted(profile: Profile, rates: Mapping[str, float]) -> Estimate:
    """Units of work per second of a machine with these ``rates``. The interval joins the bootstrap's spread and the
    error on machines left out, as Student's t with ``profile.df`` degrees of freedom.
    """
    x = profile.rates_of(rates)
    log = -math.log(time_of(tuple(profile.demand.values()), x, profile.p))
    drawn = [-math.log(time_of(d, x, p)) for p, d in profile.drawn]
    se = math.sqrt(_variance(profile, log, drawn) + profile.error**2)
    return Estimate.of_error(math.exp(log), se, float(profile.df), (len(profile.machines),))


def cannot_tell(profile: Profile, rates: Mapping[str, float]) -> str:
    """Why there is no prediction for a machine with these ``rates``; empty where there is one."""
    x = profile.rates_of(rates)
    low, high = profile.rates.min(axis=0) / BEYOND, profile.rates.max(axis=0) * BEYOND
    out = [n for n, v, a, b in zip(profile.resources, x, low, high, strict=True) if not a <= v <= b]
    if out:
        return message(
            "its {resources} lies more than {times} times beyond the machines fitted",
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
    """The gain of each upgrade of a machine with these ``rates`` (None: the geometric mean of those fitted): the most
    per money first, then those without a price, by gain. The intervals are the bootstrap's alone: the same machine
    before and after shares the error of the model.

    Raises FleetmarkError for an upgrade of what the profile does not rest on, or by a factor that is not positive.
    """
    before = profile.rates_of(rates)
    ranked = []
    for u in upgrades:
        for name in u.factors:
            if name not in profile.resources:
                raise FleetmarkError(
                    f"upgrade {u.name}: {name} is no resource of the profile ({', '.join(profile.resources)})"
                )
        _positive(u.factors, "factor")
        if u.money is not None:
            _positive({u.name: u.money}, "price")
        after = before * np.array([u.factors.get(r, 1.0) for r in profile.resources])
        ratio = _ratio(profile, before, after, 0.0)
        ranked.append(Gain(u, ratio, (ratio.value - 1) / u.money if u.money is not None else None))
    return sorted(ranked, key=lambda g: (g.per_money is None, -(g.per_money or 0.0), -g.ratio.value))
