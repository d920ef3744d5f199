"""The plan of least present value from the solution of a programme, checked against its question."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from planner.capacity.checks import check
from planner.capacity.costs import costs
from planner.capacity.model import Caps, Floats, Model, build
from planner.capacity.question import Margin, Plan, Question
from planner.capacity.search import search

GAP = 0.01
NOTHING = 1e-9  # servers; less counts as none
STOCK = ["sku", "site", "period", "buy", "arrive", "retire", "installed", "active", "idle_w", "peak_w"]
USE = ["sku", "site", "workload", "period", "servers"]


def best(
    question: Question,
    *,
    gap: float,
    seconds: float,
    margin: Margin,
    caps: Caps | None = None,
) -> Plan | None:
    """As ``solve``, but None if there is no plan; ``caps`` limit purchases."""
    began = time.monotonic()
    model = build(question, margin, caps)
    result = search(model, gap, seconds)
    if result is None:
        return None
    if result.values is None:
        raise FleetmarkError(
            message(
                "no plan was found within {n} s, nor was it shown that there is none: allow more time, or ask for "
                "fewer periods or sites",
                n=round(seconds),
            )
        )
    stock, use = _tables(model, result.values)
    cost = costs(question, stock, use)
    objective = float(cost["present"].sum())
    bound = min(result.bound * model.scale, objective)
    plan = Plan(
        stock=stock,
        use=use,
        costs=cost,
        objective=objective,
        bound=bound,
        gap=(objective - bound) / objective if objective > 0 else 0.0,
        seconds=time.monotonic() - began,
        margin=dict(margin),
    )
    if wrong := check(question, plan):
        raise FleetmarkError(message("the solver's plan does not hold: {what}", what=wrong[0]))
    return plan


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
