"""Compute shadow prices by solving the question again: the binding limits and the saving from one more unit."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from fleetmark.base.text import message
from fleetmark.planner.capacity.limits import AMOUNTS, SITE, amount, duals, loosened, name, stands_for, unit
from fleetmark.planner.capacity.model import Model, build
from fleetmark.planner.capacity.question import Binding, Margin, Plan, Question
from fleetmark.planner.capacity.rows import Label
from fleetmark.planner.capacity.search import highs, search

TELLS = 0.2  # maximum error of a reported saving, as a share of the saving or of the relaxation's saving
AIM = 0.05  # maximum sum of the gaps, as a share of the relaxation's saving
TIGHTEST, LOOSEST = 1e-6, 1e-3  # range of these gaps
MOST = 8
WIDEST = 0.1  # maximum change of a limit, as a share of the limit, to separate the saving from the plan's gap
PERIODIC = (*SITE, "domain power", "supply")  # one limit with a row for each period
SHARE = 0.4  # share of the time for the unchanged question


def shadow_prices(question: Question, plan: Plan, *, limit: int = MOST, seconds: float = 30.0) -> list[Binding]:
    """Return, for each of the ``limit`` most valuable limits, the saving if it is loosened by one step.

    A step is what one server uses of the limit, or adds to the demand.

    The original and the loosened question are solved again, to a gap far below the plan's. The plan's distance from the
    optimum therefore does not count as a saving. If that gap is wide, several steps are tried, up to a tenth of the
    limit. If the saving is still unclear, the result is the relaxation's saving.

    The order is by the saving of one step; limits without a saving come last.
    """
    end = time.monotonic() + seconds
    model = build(question, plan.margin)
    relaxed = duals(model, seconds)
    if relaxed is None:
        return []
    steps = {label: _step(question, plan, label) for label in relaxed[1] if label[0] in AMOUNTS}
    weighty = sorted(steps, key=lambda label: (-relaxed[1][label] * steps[label], str(label)))[:limit]
    expected = {label: relaxed[1][label] * steps[label] for label in weighty}
    gap = min(max(AIM * min(expected.values(), default=0.0) / max(relaxed[0], 1e-9), TIGHTEST), LOOSEST)
    before = _solved(model, gap, SHARE * seconds)
    bindings = []
    for j, label in enumerate(weighty):
        missed = 0.0 if before is None else (before[0] - before[1]) / model.scale
        times = _times(missed, expected[label], steps[label], amount(question, stands_for(label)))
        step, hoped = times * steps[label], times * expected[label] * model.scale
        changed = _loosened(question, plan.margin, label, step)
        share = max(end - time.monotonic(), 0.0) / (len(weighty) - j)
        saves, rough = None, False
        if before is not None and share > 0:
            saves = _saved(before, changed, hoped, max(gap, AIM * hoped / max(before[0], 1e-9)), share)
        if saves is None:
            bare = highs(changed, integer=np.zeros_like(changed.integer), seconds=max(share, 1.0))
            if bare.values is not None:
                saves, rough = max(relaxed[0] * model.scale - bare.cost * changed.scale, 0.0), True
        per_unit = None if saves is None else saves / step
        weight = -1.0 if per_unit is None else per_unit * steps[label]
        named, demand = _name(question, label), label[0] == "demand"
        bindings.append((weight, Binding(named, unit(question, label), step, per_unit, rough, demand)))
    return [binding for _, binding in sorted(bindings, key=lambda each: -each[0])]


def _saved(before: tuple[float, float], changed: Model, hoped: float, gap: float, seconds: float) -> float | None:
    """Return the saving of the change from ``before`` (present value, bound), or None if both gaps together may hide
    it.
    """
    if before[0] - before[1] > 2 * TELLS * hoped:
        return None
    after = _solved(changed, min(gap, LOOSEST), seconds)
    if after is None:
        return None
    saved, error = before[0] - after[0], before[0] - before[1] + after[0] - after[1]
    return max(saved, 0.0) if error <= TELLS * max(saved, hoped) else None


def _solved(model: Model, gap: float, seconds: float) -> tuple[float, float] | None:
    """Return the present value and bound, or None if time ran out before there was a plan."""
    result = search(model, gap, seconds)
    if result is None or result.values is None:
        return None
    cost = float(model.cost @ result.values) * model.scale
    return cost, min(result.bound * model.scale, cost)


def _times(missed: float, expected: float, step: float, limit: float) -> int:
    """Return the number of steps to take at once so that the gap ``missed`` does not hide their saving."""
    if expected <= 0:
        return 1
    return max(min(math.ceil(2 * missed / (TELLS * expected)), int(WIDEST * limit / step)), 1)


def _name(q: Question, label: Label) -> str:
    """Return the name of the limit, with its period if a site has one limit per period."""
    always = label[0] != "supply" or q.supply[int(label[1])].period is None
    if label[0] in PERIODIC and len(label) > 2 and always:
        return message("{limit} in {period}", limit=name(q, label[:2]), period=q.periods[int(label[2])])
    return name(q, label)


def _step(q: Question, plan: Plan, label: Label) -> float:
    """Return what one server uses of the limit, or adds to the demand: the maximum over the servers of the plan."""
    kind = label[0]
    if kind == "demand":
        w = str(label[1])
        used = set(plan.use.loc[plan.use["workload"] == w, "sku"]) or {s for s in q.skus if w in q.skus[s].worth}
        work = max(q.rate(s, w) for s in used)
        return min(work / plan.factor(w, int(label[2])), q.workloads[w].point[int(label[2])])
    stock = plan.stock[plan.stock["installed"] + plan.stock["buy"] > 0]
    if kind in SITE:
        stock = stock[stock["site"] == label[1]]
    skus = [q.skus[s] for s in dict.fromkeys(stock["sku"])] or list(q.skus.values())
    each = {
        "power": [s.budgeted_w for s in skus],
        "rack units": [s.rack_units for s in skus],
        "ports": [float(s.ports) for s in skus],
        "racks": [q.positions(s.name, k) for s in skus for k in q.sites],
        "liquid racks": [q.positions(s.name, k) for s in skus for k in q.sites],
        "domain power": [s.budgeted_w for s in skus],
        "supply": [1.0],
    }
    sold = [s.price for s in skus if s.price] or [s.price for s in q.skus.values() if s.price]
    return max(each.get(str(kind), sold), default=1.0) or 1.0


def _loosened(q: Question, margin: Margin, label: Label, step: float) -> Model:
    """Return the programme with more of that limit; a site's limit is loosened only in that period."""
    changed = build(loosened(q, stands_for(label), step), margin)
    if label[0] not in PERIODIC or len(label) < 3:
        return changed
    high = changed.high.copy()
    for row, other in enumerate(changed.labels):
        if other[:2] == label[:2] and other != label:
            high[row] -= step / changed.units[row]
    return replace(changed, high=high)
