"""Questions and plans of one site for tests of uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from fleetmark.planner.capacity.question import Margin, Plan, Question, Site, Workload
from fleetmark.planner.capacity.sku import Sku, Worth

SE = 0.04 / 1.83 / 1.96  # of ln E, where E = 1.83 +- 0.04 (95%)


def question(
    workloads: Mapping[str, Workload] | None = None,
    worth: Mapping[str, Mapping[str, Worth]] | None = None,
    sites: int = 1,
    **more: object,
) -> Question:
    by_name = workloads or {"web": Workload("web", "old servers", (1000.0,), (0.0,), 0.65)}
    worths = worth or {"new": {"web": Worth(1.83, SE)}}
    skus = {name: Sku(name, w, 10_000, 200, 500, rack_units=1) for name, w in worths.items()}
    periods = [f"P{n}" for n in range(len(next(iter(by_name.values())).point))]
    names = [f"s{n}" for n in range(sites)]
    result = Question("EUR", "2026-11-01", periods, 0.25, by_name, skus=skus, sites={n: Site(n) for n in names})
    return replace(result, **more)  # type: ignore[arg-type]


def plan(q: Question, use: Mapping[tuple[str, str, str, int], float], rest: int = 0) -> Plan:
    """A plan with these servers at work (sku, site, workload, period), and ``rest`` more of each kind everywhere."""
    shares = pd.DataFrame(
        [(*key, v) for key, v in use.items()], columns=["sku", "site", "workload", "period", "servers"]
    )
    servers = shares.groupby(["sku", "site", "period"], as_index=False)["servers"].sum()
    stock = servers.assign(
        installed=np.ceil(servers["servers"]) + rest, active=np.ceil(servers["servers"]), buy=0, arrive=0
    )
    stock = stock.drop(columns="servers").assign(retire=0, idle_w=0.0, peak_w=0.0)
    costs = pd.DataFrame({"period": [0], "kind": ["purchase"], "money": [0.0], "present": [0.0]})
    objective = 1e4 * float(stock["installed"].sum())
    return Plan(stock, shares.assign(working=shares["servers"]), costs, objective, objective, gap=0.0, seconds=0.0)


def one_kind(q: Question, margin: Margin) -> Plan:
    """A solver for one SKU at one site and shared workloads."""
    use = {}
    for w, work in q.workloads.items():
        for t, point in enumerate(work.point):
            factors = margin.get(w, 1.0)
            factor = factors if isinstance(factors, float | int) else factors[t]
            use["new", "s0", w, t] = factor * point / (q.skus["new"].worth[w].value * work.utilisation)
    return plan(q, use)
