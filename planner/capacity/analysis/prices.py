"""Compute shadow prices: the binding limits, and the saving if each limit is loosened by one step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fleetmark.base.text import message
from fleetmark.planner.capacity.analysis.limits import AMOUNTS, SITE, duals, loosened, name, stands_for, unit
from fleetmark.planner.capacity.analysis.results import Binding
from fleetmark.planner.capacity.model import Model, build
from fleetmark.planner.capacity.question import Margin, Plan, Question
from fleetmark.planner.capacity.rows import Label
from fleetmark.planner.capacity.search import highs
from fleetmark.planner.capacity.sku import Sku

MOST = 8
PERIODIC = (*SITE, "domain power", "supply")  # limits with one row per period


def shadow_prices(question: Question, plan: Plan, *, limit: int = MOST) -> list[Binding]:
    """Return the saving if a limit is loosened by one step, for the ``limit`` most valuable limits.

    A step is the amount of the limit that one server uses, or the demand that it serves. The saving is computed from
    the relaxation, in which servers may be fractions. Plans with whole servers would not show it, because their
    difference is smaller than their gap. Limits are sorted by the saving of one step.
    """
    relaxed = duals(build(question, plan.margin))
    if relaxed is None:
        return []
    steps = {label: _step(question, plan, label) for label in relaxed[1] if label[0] in AMOUNTS}
    weighty = sorted(steps, key=lambda label: (-relaxed[1][label] * steps[label], str(label)))[:limit]
    bindings = []
    for label in weighty:
        changed = _loosened(question, plan.margin, label, steps[label])
        bare = highs(changed, integer=np.zeros_like(changed.integer))
        saves = max((relaxed[0] - bare.cost) * changed.scale, 0.0)
        named, demand = _name(question, label), label[0] == "demand"
        step = steps[label]
        bindings.append((saves, Binding(named, unit(question, label), step, saves / step, demand)))
    return [binding for _, binding in sorted(bindings, key=lambda each: -each[0])]


def _name(q: Question, label: Label) -> str:
    """Return the name of the limit, with its period if a site has one limit per period."""
    always = label[0] != "supply" or q.supply[int(label[1])].period is None
    if label[0] in PERIODIC and len(label) > 2 and always:
        return message("{limit} in {period}", limit=name(q, label[:2]), period=q.periods[int(label[2])])
    return name(q, label)


def _step(q: Question, plan: Plan, label: Label) -> float:
    """Return the amount of the limit that one server uses, or serves: the maximum over the servers of the plan."""
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
        "carbon": [_carbon(q, s, len(q.periods)) for s in skus],
        "carbon year": [_carbon(q, s, q.year_names.count(str(label[-1]))) for s in skus],
    }
    sold = [s.price for s in skus if s.price] or [s.price for s in q.skus.values() if s.price]
    return max(each.get(str(kind), sold), default=1.0) or 1.0


def _carbon(q: Question, sku: Sku, periods: int) -> float:
    """Return the kg CO2e of making a server and of running it at its peak load for this number of periods."""
    used = max(q.energy(k) for k in q.sites) * sku.peak_w * periods * q.grid
    return sku.embodied + used


def _loosened(q: Question, margin: Margin, label: Label, step: float) -> Model:
    """Return the programme with this limit loosened; a site's limit is loosened only in that period."""
    changed = build(loosened(q, stands_for(label), step), margin)
    if label[0] not in PERIODIC or len(label) < 3:
        return changed
    high = changed.high.copy()
    for row, other in enumerate(changed.labels):
        if other[:2] == label[:2] and other != label:
            high[row] -= step / changed.units[row]
    return replace(changed, high=high)
