"""A capacity question to the plan of least present value, or to the limits that leave none."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import said
from planner.capacity.checks import check
from planner.capacity.costs import costs
from planner.capacity.model import Caps, Floats, Model, build
from planner.capacity.question import Conflict, Margin, Plan, Question
from planner.capacity.search import search

GAP = 0.01
SECONDS = 60.0
NOTHING = 1e-9  # fewer servers than that are none
STOCK = ["sku", "site", "period", "buy", "arrive", "retire", "installed", "active", "idle_w", "peak_w"]
USE = ["sku", "site", "workload", "period", "servers"]


def solve(
    question: Question, *, gap: float = GAP, seconds: float = SECONDS, margin: Margin | None = None
) -> Plan | Conflict:
    """The plan of least present value, proven to within ``gap`` of the best (0.01: 1%) or as far as ``seconds`` allow;
    the Conflict where there is none. ``margin``: workload to what its demand is multiplied by, see ``Margin``.

    Raises FleetmarkError for a question that makes no sense, and where time runs out before any plan is found.
    """
    from planner.capacity.conflict import conflict

    margin = dict(margin or {})
    refuse(question, margin)
    plan = best(question, gap=gap, seconds=seconds, margin=margin)
    return conflict(question, margin=margin, seconds=seconds) if plan is None else plan


def best(
    question: Question,
    *,
    gap: float,
    seconds: float,
    margin: Margin,
    caps: Caps | None = None,
) -> Plan | None:
    """As ``solve``, but None where there is no plan, and no more is bought than ``caps`` allow."""
    began = time.monotonic()
    model = build(question, margin, caps)
    found = search(model, gap, seconds)
    if found is None:
        return None
    if found.values is None:
        raise FleetmarkError(
            said(
                "no plan was found within {n} s, nor was it shown that there is none: allow more time, or ask for "
                "fewer periods or sites",
                n=round(seconds),
            )
        )
    stock, use = _tables(model, found.values)
    money = costs(question, stock, use)
    objective = float(money["present"].sum())
    bound = min(found.bound * model.scale, objective)
    plan = Plan(
        stock=stock,
        use=use,
        costs=money,
        objective=objective,
        bound=bound,
        gap=(objective - bound) / objective if objective > 0 else 0.0,
        seconds=time.monotonic() - began,
        margin=dict(margin),
    )
    if wrong := check(question, plan):
        raise FleetmarkError(said("the solver's plan does not hold: {what}", what=wrong[0]))
    return plan


def refuse(question: Question, margin: Margin) -> None:
    """Raises FleetmarkError for what no plan could be made of, whatever the limits."""
    q = question
    numbers: list[tuple[str, float | None]] = [(f"demand of {w}", v) for w, x in q.workloads.items() for v in x.point]
    numbers += [(f"margin of {w}", x) for w, v in margin.items() for x in (v if isinstance(v, Sequence) else (v,))]
    for s, sku in q.skus.items():
        names = "price idle_w peak_w rack_units ports lead support space migration minimum_order embodied"
        numbers += [(f"{name} of {s}", getattr(sku, name)) for name in names.split()]
        if sku.peak_w < sku.idle_w:
            raise FleetmarkError(said("{sku} draws less at its peak than idle: mend idle_w or peak_w", sku=s))
        for w, worth in sku.worth.items():
            if not (math.isfinite(worth.value) and worth.value > 0):
                raise FleetmarkError(said("the worth of {sku} for {workload} must be positive", sku=s, workload=w))
    for k, site in q.sites.items():
        names = "power_w rack_units ports budget spares energy_price pue"
        numbers += [(f"{name} of {k}", getattr(site, name)) for name in names.split()]
    numbers += [("energy_price", q.energy_price), ("pue", q.pue), ("carbon_price", q.carbon_price), ("grid", q.grid)]
    numbers += [(f"budget of {p}", v) for p, v in zip(q.periods, q.budget, strict=False)]
    for name, value in numbers:
        if value is not None and not (math.isfinite(value) and value >= 0):
            raise FleetmarkError(said("{what} is {value}: it must be 0 or more", what=name, value=value))
    for w, work in q.workloads.items():
        if len(work.point) != len(q.periods):
            raise FleetmarkError(said("the demand of {workload} must have a value for each period", workload=w))
        if not 0 < work.utilisation <= 1:
            raise FleetmarkError(said("the utilisation of {workload} must be above 0 and at most 1", workload=w))
        there = {(c.sku, c.site) for c in q.fleet if c.count}
        able = any(
            w in sku.worth and (sku.price is not None or (s, k) in there)
            for s, sku in q.skus.items()
            for k in (work.sites or q.sites)
        )
        if any(work.point) and not able:
            raise FleetmarkError(
                said(
                    "{workload} is in demand, but no server that can run it is in place or for sale where it may run: "
                    "give a SKU its worth for it",
                    workload=w,
                )
            )
    if not any(c.count for c in q.fleet) and all(sku.price is None for sku in q.skus.values()):
        raise FleetmarkError(said("no server is in place and none is for sale: give a SKU a price"))


def _tables(model: Model, values: Floats) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Plan.stock and Plan.use."""
    shape, q = model.shape, model.shape.question
    number = {pair: p for p, pair in enumerate(shape.pairs)}
    pairs = [(s, k) for s in q.skus for k in q.sites]
    counts = np.zeros((4, len(pairs), shape.periods), dtype=np.int64)
    arrive = np.zeros((len(pairs), shape.periods), dtype=np.int64)
    parts = [np.round(shape.part(values, block)).astype(np.int64) for block in "xdin"]
    for j, pair in enumerate(pairs):
        if pair in number:
            counts[:, j] = [part[number[pair]] for part in parts]
            lead = q.skus[pair[0]].lead
            arrive[j, lead:] = counts[0, j, : max(shape.periods - lead, 0)]
    stock = pd.DataFrame(
        {
            "sku": np.repeat([s for s, _ in pairs], shape.periods),
            "site": np.repeat([k for _, k in pairs], shape.periods),
            "period": np.tile(np.arange(shape.periods), len(pairs)),
            "buy": counts[0].ravel(),
            "arrive": arrive.ravel(),
            "retire": counts[1].ravel(),
            "installed": counts[2].ravel(),
            "active": counts[3].ravel(),
        }
    )
    stock["idle_w"] = stock["active"] * stock["sku"].map({s: sku.idle_w for s, sku in q.skus.items()}).astype(float)
    stock["peak_w"] = stock["installed"] * stock["sku"].map({s: sku.peak_w for s, sku in q.skus.items()}).astype(float)
    servers = shape.part(values, "a")
    some, period = np.nonzero(servers > NOTHING)
    use = pd.DataFrame(
        {
            "sku": [shape.pairs[shape.combos[j][0]][0] for j in some],
            "site": [shape.pairs[shape.combos[j][0]][1] for j in some],
            "workload": [shape.combos[j][1] for j in some],
            "period": period,
            "servers": servers[some, period],
        }
    ).astype({"sku": str, "site": str, "workload": str, "period": int, "servers": float})
    return stock[STOCK], use[USE]
