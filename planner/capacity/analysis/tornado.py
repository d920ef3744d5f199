"""Find out what a plan's cost depends on: move one input at a time over its range, and compute the lowest cost again.

The cost is computed from the relaxation with fractions of servers, so that one move takes one linear programme. This
cost is slightly below the plan's cost, but its differences show the effect of an input, including the substitution of
one SKU by another. All processors solve programmes at the same time.

Margins stay unchanged, with one exception: a workload has no margin while its demand or worth is varied over its
estimated range. The margin covers just that uncertainty, so using both would count it twice.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, replace

from scipy import optimize, stats

from fleetmark.base.text import message
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.model import build
from fleetmark.planner.capacity.question import Margin, Plan, Question
from fleetmark.planner.capacity.queueing import CAP
from fleetmark.planner.capacity.series import each, figures
from fleetmark.planner.capacity.sku import Worth

STEP = 0.10  # relative change up and down if the range of an input is unknown
RANK = 0.95  # the upper end of a known range; the lower end mirrors it
_UNIT = 1.0  # worth of the machine in which demand is counted: exact, so it has no range
_UNUSED = 1e-6  # rank of an input that the plan does not use; such inputs come last


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one input.

    ``low`` and ``high`` are factors on it: the 5% and 95% quantiles if ``known``, otherwise 1 - ``STEP`` and 1 +
    ``STEP``. ``at_low`` and ``at_high`` are the changes of the present value, or None if there is no plan with that
    factor.
    """

    name: str
    low: float
    high: float
    known: bool
    at_low: float | None
    _: KW_ONLY
    at_high: float | None

    @property
    def size(self) -> float:
        """Return the larger change; it is infinite if there is no plan at one end."""
        ends = (self.at_low, self.at_high)
        return max(math.inf if end is None else abs(end) for end in ends)


@dataclass(frozen=True, slots=True)
class _Input:
    name: str
    low: float
    high: float
    known: bool
    rank: float
    _: KW_ONLY
    moved: Callable[[bool], Question]  # the argument is True to move to the high end
    covers: str = ""  # the workload whose margin covers the uncertainty of this input


def tornado(
    question: Question,
    plan: Plan,
    *,
    limit: int = 40,
    clock: Clock | None = None,
) -> list[Effect]:
    """Return the inputs by their effect on the cost, the largest first.

    Inputs are demands, worths, prices, utilisations and the energy price. Only the ``limit`` inputs that the plan uses
    most are moved, and only until ``clock`` (60 s) ends.
    """
    base = _relaxed(question, plan.margin)
    if base is None:
        return []
    inputs = sorted(_inputs(question, plan), key=lambda i: -i.rank)[:limit]
    within = clock or Clock(60.0)

    def without(workload: str) -> Margin:
        return {w: m for w, m in plan.margin.items() if w != workload}

    def effect(one: _Input) -> Effect | None:
        before = bases[one.covers]
        if before is None or within.over():  # a smaller demand always has a plan, but the solver may not find it
            return None
        low, high = (_relaxed(one.moved(end), without(one.covers)) for end in (False, True))
        at_low, at_high = (None if cost is None else cost - before for cost in (low, high))
        return Effect(one.name, one.low, one.high, one.known, at_low, at_high=at_high)

    covered = sorted({one.covers for one in inputs} - {""})
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the solver releases Python's lock
        bases = {"": base} | dict(
            zip(covered, pool.map(lambda w: _relaxed(question, without(w)), covered), strict=True)
        )
        effects = [e for e in pool.map(effect, inputs) if e is not None]
    return sorted(effects, key=lambda e: -e.size)


def _relaxed(question: Question, margin: Margin) -> float | None:
    """Return the lowest cost with fractions of servers, or None if there is no plan."""
    model = build(question, margin)
    limits = optimize.LinearConstraint(model.rows, model.low, model.high)
    result = optimize.milp(model.cost, constraints=limits, bounds=optimize.Bounds(model.lower, model.upper))
    return float(result.fun) * model.scale if result.fun is not None else None


def _inputs(q: Question, plan: Plan) -> list[_Input]:
    """Return every input with the share of the plan that it affects, to first order."""
    use, stock = plan.use, plan.stock
    total = float(use["servers"].sum()) or 1.0
    of_workload = use.groupby("workload")["servers"].sum() / total
    of_worth = use.groupby(["sku", "workload"])["servers"].sum() / total
    bought = stock.groupby("sku")["buy"].sum() / (float(stock["buy"].sum()) or 1.0)
    energy = float(plan.costs.loc[plan.costs["kind"] == "energy", "present"].sum()) / (plan.objective or 1.0)
    priced = any(any(figures(p)) for p in (q.energy_price, *(s.energy_price or 0.0 for s in q.sites.values())))
    inputs = [_energy(q, energy)] if priced else []
    for w in q.workloads:
        share = float(of_workload.get(w, 0.0))
        inputs += [_demand(q, w, share), _utilisation(q, w, share)]
        unsure = [n for n, s in q.skus.items() if w in s.worth and (s.worth[w].se or s.worth[w].value != _UNIT)]
        inputs += [_worth(q, s, w, float(of_worth.get((s, w), _UNUSED))) for s in unsure]
    return inputs + [_price(q, s, float(bought.get(s, 0.0)) or _UNUSED) for s in q.skus if q.skus[s].price]


def _demand(q: Question, name: str, share: float) -> _Input:
    w = q.workloads[name]
    known, z = max(w.sigma) > 0, float(stats.norm.ppf(RANK))
    last = z * w.sigma[-1]

    def moved(up: bool) -> Question:
        sign = 1 if up else -1
        factors = [math.exp(sign * z * s) if known else 1 + sign * STEP for s in w.sigma]
        return _with_workload(q, name, point=tuple(p * f for p, f in zip(w.point, factors, strict=True)))

    low, high = (math.exp(-last), math.exp(last)) if known else (1 - STEP, 1 + STEP)
    covers = name if known else ""
    return _Input(
        message("demand of {workload}", workload=name),
        low,
        high,
        known,
        share * (high - low),
        moved=moved,
        covers=covers,
    )


def _utilisation(q: Question, name: str, share: float) -> _Input:
    used = [q.speed_limit(s, name) for s, sku in q.skus.items() if name in sku.worth] or [q.workloads[name].utilisation]
    high = max(min(1 + STEP, CAP / min(used)), 1.0)

    def moved(up: bool) -> Question:
        factor = high if up else 1 - STEP

        def used_more(worth: Worth) -> Worth:
            u = worth.utilisation
            return worth if u is None else replace(worth, utilisation=min(u * factor, max(CAP, u)))

        changed = _with_workload(q, name, utilisation=q.workloads[name].utilisation * factor)
        skus = {
            s: replace(sku, worth={w: used_more(e) if w == name else e for w, e in sku.worth.items()})
            for s, sku in q.skus.items()
        }
        return replace(changed, skus=skus)

    return _Input(
        message("utilisation of {workload}", workload=name),
        1 - STEP,
        high,
        False,
        share * (high - 1 + STEP),
        moved=moved,
    )


def _worth(q: Question, sku: str, workload: str, share: float) -> _Input:
    s = q.skus[sku]
    e = s.worth[workload]
    deviate = float(stats.norm.ppf(RANK) if math.isinf(e.df) else stats.t.ppf(RANK, e.df))
    known = e.se > 0
    low, high = (math.exp(-deviate * e.se), math.exp(deviate * e.se)) if known else (1 - STEP, 1 + STEP)

    def moved(up: bool) -> Question:
        worth = dict(s.worth) | {workload: replace(e, value=e.value * (high if up else low))}
        return replace(q, skus=dict(q.skus) | {sku: replace(s, worth=worth)})

    name = message("worth of {sku} for {workload}", sku=sku, workload=workload)
    return _Input(name, low, high, known, share * (high - low), moved=moved, covers=workload if known else "")


def _price(q: Question, sku: str, share: float) -> _Input:
    s = q.skus[sku]

    def moved(up: bool) -> Question:
        factor = 1 + STEP if up else 1 - STEP
        breaks = tuple((least, price * factor) for least, price in s.breaks)
        prices = tuple(None if price is None else price * factor for price in s.prices)
        changed = replace(s, price=(s.price or 0.0) * factor, breaks=breaks, prices=prices)
        return replace(q, skus=dict(q.skus) | {sku: changed})

    return _Input(message("price of {sku}", sku=sku), 1 - STEP, 1 + STEP, False, share * 2 * STEP, moved=moved)


def _energy(q: Question, share: float) -> _Input:
    def moved(up: bool) -> Question:
        factor = 1 + STEP if up else 1 - STEP
        sites = {
            k: s if s.energy_price is None else replace(s, energy_price=each(s.energy_price, lambda p: p * factor))
            for k, s in q.sites.items()
        }
        return replace(q, energy_price=each(q.energy_price, lambda p: p * factor), sites=sites)

    return _Input(message("energy price"), 1 - STEP, 1 + STEP, False, share * 2 * STEP, moved=moved)


def _with_workload(q: Question, name: str, **changed: float | Sequence[float]) -> Question:
    return replace(q, workloads=dict(q.workloads) | {name: replace(q.workloads[name], **changed)})  # type: ignore[arg-type]
