"""Derive the plan with the lowest present value from the solution of a programme, and check it against the question."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.model import Model, build
from fleetmark.planner.capacity.question import Margin, Plan, Question
from fleetmark.planner.capacity.search import search
from fleetmark.planner.capacity.shape import Caps, Floats

GAP = 0.01
NOTHING = 1e-9  # minimum number of servers; smaller values count as none
STOCK = ["sku", "site", "period", "buy", "arrive", "retire", "installed", "active", "idle_w", "peak_w"]
USE = ["sku", "site", "workload", "period", "servers", "working"]


def best(
    question: Question,
    *,
    gap: float,
    seconds: float,
    margin: Margin,
    caps: Caps | None = None,
) -> Plan | None:
    """Return the best plan in the same way as ``solve``, or None if there is no plan; ``caps`` limit purchases."""
    began, clock = time.monotonic(), Clock(seconds)
    model = build(question, margin, caps)
    result = search(model, gap, clock)
    if result is None:
        return None
    if result.values is None:
        raise FleetmarkError(
            message(
                "within {n} s, neither a plan nor a proof that there is none was found: allow more time, or use "
                "fewer periods or sites",
                n=round(seconds),
            )
            if clock.stopped
            else message(
                "neither a plan nor a proof that there is none was found: use fewer periods or sites, or allow a "
                "wider gap"
            )
        )
    stock, use = _tables(model, result.values)
    ledger = Ledger(question, stock, use)
    objective = ledger.total
    bound = min(result.bound * model.scale, objective)
    plan = Plan(
        stock=stock,
        use=use,
        costs=ledger.costs,
        objective=objective,
        bound=bound,
        gap=(objective - bound) / objective if objective > 0 else 0.0,
        seconds=time.monotonic() - began,
        margin=dict(margin),
        stopped=clock.stopped,
    )
    if wrong := check(question, plan):
        raise FleetmarkError(message("the solver's plan is not valid: {what}", what=wrong[0]))
    return plan


def _tables(model: Model, values: Floats) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables ``Plan.stock`` and ``Plan.use``."""
    shape, q = model.shape, model.shape.question
    number = {pair: p for p, pair in enumerate(shape.pairs)}
    pairs = [(s, k) for s in q.skus for k in q.sites]
    counts = np.zeros((3, len(pairs), shape.periods), dtype=np.int64)
    parts = [np.round(shape.part(values, block)).astype(np.int64) for block in "xdn"]
    for j, pair in enumerate(pairs):
        if pair in number:
            counts[:, j] = [part[number[pair]] for part in parts]
    decided = pd.DataFrame(
        {
            "sku": np.repeat([s for s, _ in pairs], shape.periods),
            "site": np.repeat([k for _, k in pairs], shape.periods),
            "period": np.tile(np.arange(shape.periods), len(pairs)),
            "buy": counts[0].ravel(),
            "retire": counts[1].ravel(),
            "active": counts[2].ravel(),
        }
    )
    servers, working = shape.servers(values)
    some, period = np.nonzero(servers > NOTHING)
    use = pd.DataFrame(
        {
            "sku": [shape.pairs[shape.combos[j][0]][0] for j in some],
            "site": [shape.pairs[shape.combos[j][0]][1] for j in some],
            "workload": [shape.combos[j][1] for j in some],
            "period": period,
            "servers": servers[some, period],
            "working": working[some, period],
        }
    ).astype({"sku": str, "site": str, "workload": str, "period": int, "servers": float, "working": float})
    return _filled(q, decided, use)[STOCK], use[USE]


def _filled(q: Question, stock: pd.DataFrame, use: pd.DataFrame) -> pd.DataFrame:
    """Return the stock with the columns that follow from decisions: arrivals, installed servers, and power."""
    ledger = Ledger(q, stock, use)
    position = {pair: p for p, pair in enumerate(ledger.pairs)}
    rows = [position.get(pair, -1) for pair in zip(stock["sku"], stock["site"], strict=True)]

    def by_pair(values: Floats) -> Floats:
        padded = np.vstack([values, np.zeros((1, ledger.periods))])  # the last row is for pairs that do not exist
        return np.asarray(padded[rows, stock["period"].to_numpy(int)])

    each = [q.skus[s] for s in stock["sku"]]
    active, installed = by_pair(ledger.active), by_pair(ledger.installed)
    return stock.assign(
        arrive=by_pair(ledger.arrive).astype(np.int64),
        installed=installed.astype(np.int64),
        idle_w=active * np.array([sku.idle_w for sku in each]),
        peak_w=installed * np.array([sku.peak_w for sku in each]),
    )
