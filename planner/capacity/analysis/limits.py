"""Define the limits of a question, their names, and the question with a limit loosened or dropped.

A limit is a tuple of its kind and its object:

- demand: a workload and a period
- power, rack units, ports, racks, site budget, spares and windows: a site
- domain power: a failure domain
- supply: the index of the supply limit
- budget: a period
- lead time, age limit, minimum order, lots and sale: a SKU
- sites: a workload
- survival, carbon: no object
- carbon year: a year
- term, failures: a SKU
- maintenance: a site
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.planner.capacity.model import Model
from fleetmark.planner.capacity.question import NORMAL, Question, Site, Workload
from fleetmark.planner.capacity.rows import Label
from fleetmark.planner.capacity.series import each, figures, in_period
from fleetmark.planner.capacity.shape import Floats
from fleetmark.planner.capacity.sku import Sku

AMOUNTS = (  # limits that correspond to rows of the programme
    "demand",
    "power",
    "rack units",
    "ports",
    "racks",
    "liquid racks",
    "domain power",
    "supply",
    "site budget",
    "budget",
    "carbon",
    "carbon year",
)
SKU = {"lead time": "lead", "age limit": "age_limit", "minimum order": "minimum_order"}
SITE = {
    "power": "power_w",
    "rack units": "rack_units",
    "ports": "ports",
    "racks": "racks",
    "liquid racks": "liquid_racks",
    "site budget": "budget",
}
_ENOUGH = 10**9  # a number of servers that no plan exceeds
SKU_RULES: dict[str, dict[str, Any]] = {  # the values of a SKU without each rule
    "age limit": {"age_limit": None},
    "lots": {"lot": 1},
    "term": {"term": 0},
    "failures": {"failure_rate": 0.0},
}
SITE_RULES: dict[str, dict[str, Any]] = {
    "windows": {"windows": None},
    "maintenance": {"maintenance": 0.0},
    "spare share": {"spare_share": 0.0},
}
ALL = (
    "survival",
    "lots",
    "windows",
    "sale",
    "term",
    "failures",
    "maintenance",
    "spare share",
)  # rules that are dropped together


def limits(question: Question) -> list[Label]:
    """Return all limits, starting with those that are easiest to give up."""
    q = question
    labels: list[Label] = [("survival",)] if any(map(q.survives, q.workloads)) else []
    labels += [("sites", w) for w, work in q.workloads.items() if work.sites and set(q.sites) - work.sites]
    for kind, least in (("lead time", 0), ("age limit", None), ("minimum order", 1)):
        labels += [(kind, s) for s, sku in q.skus.items() if getattr(sku, SKU[kind]) not in (None, 0, least)]
    labels += [("lots", s) for s, sku in q.skus.items() if sku.lot > 1 and sku.price is not None]
    labels += [("sale", s) for s, sku in q.skus.items() if None in sku.prices]
    labels += [("windows", k) for k, site in q.sites.items() if site.windows is not None]
    labels += [("term", s) for s, sku in q.skus.items() if sku.term]
    labels += [("failures", s) for s in q.skus if q.unavailability(s)]
    labels += [("maintenance", k) for k, site in q.sites.items() if any(figures(site.maintenance))]
    labels += [("spare share", k) for k, site in q.sites.items() if site.spare_share]
    labels += [("spares", k) for k, site in q.sites.items() if site.spares]
    labels += [("supply", j) for j in range(len(q.supply))]
    labels += [("budget", t) for t, money in enumerate(q.budget) if money is not None]
    liquid = any(sku.liquid for sku in q.skus.values())
    for kind in ("site budget", "ports", "rack units", "racks", "liquid racks", "power"):
        some = kind != "liquid racks" or liquid
        labels += [(kind, k) for k, site in q.sites.items() if some and getattr(site, SITE[kind]) is not None]
    labels += [("domain power", name) for name in q.domains_w]
    labels += [("carbon year", year) if year else ("carbon",) for year, _, _ in q.carbon_limits]
    labels += [("demand", w, t) for w, work in q.workloads.items() for t, point in enumerate(work.point) if point]
    return labels


def name(question: Question, limit: Label) -> str:
    """Return the name of the limit in words."""
    subject = limit[1] if len(limit) > 1 else ""
    period = question.periods[int(limit[-1])] if limit[0] in ("demand", "budget") else ""
    if limit[0] == "supply":
        supply = question.supply[int(limit[1])]
        subject = supply.item
        if supply.period is not None:
            return message("supply of {what} in {period}", what=subject, period=question.periods[supply.period])
    return {
        "demand": lambda: message("demand of {workload} in {period}", workload=subject, period=period),
        "power": lambda: message("power at {site}", site=subject),
        "rack units": lambda: message("rack units at {site}", site=subject),
        "ports": lambda: message("ports at {site}", site=subject),
        "racks": lambda: message("positions for racks at {site}", site=subject),
        "liquid racks": lambda: message("liquid-cooled positions at {site}", site=subject),
        "domain power": lambda: message("power of {domain}", domain=subject),
        "supply": lambda: message("supply of {what}", what=subject),
        "lots": lambda: message("lots in which {sku} is sold", sku=subject),
        "sale": lambda: message("periods in which {sku} is sold", sku=subject),
        "windows": lambda: message("windows for retiring at {site}", site=subject),
        "site budget": lambda: message("budget of {site}", site=subject),
        "budget": lambda: message("budget of {period}", period=period),
        "spares": lambda: message("spares at {site}", site=subject),
        "spare share": lambda: message("share of spares at {site}", site=subject),
        "maintenance": lambda: message("maintenance at {site}", site=subject),
        "term": lambda: message("term of {sku}", sku=subject),
        "failures": lambda: message("failures of {sku}", sku=subject),
        "carbon": lambda: message("carbon over all periods"),
        "carbon year": lambda: message("carbon of {year}", year=subject),
        "lead time": lambda: message("lead time of {sku}", sku=subject),
        "age limit": lambda: message("age limit of {sku}", sku=subject),
        "minimum order": lambda: message("minimum order of {sku}", sku=subject),
        "sites": lambda: message("sites of {workload}", workload=subject),
        "survival": lambda: (
            message("survival of two lost failure domains")
            if question.survive > 1
            else message("survival of a lost failure domain")
        ),
    }[str(limit[0])]()


def unit(question: Question, limit: Label) -> str:
    """Return the unit of the limit."""
    if limit[0] == "demand":
        return question.workloads[str(limit[1])].unit
    return {
        "power": "W",
        "rack units": message("rack units"),
        "ports": message("ports"),
        "racks": message("positions"),
        "liquid racks": message("positions"),
        "domain power": "W",
        "supply": message("servers"),
        "lots": message("rules"),
        "sale": message("rules"),
        "windows": message("rules"),
        "term": message("rules"),
        "failures": message("rules"),
        "maintenance": message("rules"),
        "spare share": message("rules"),
        "carbon": "kg CO2e",
        "carbon year": "kg CO2e",
        "site budget": question.currency,
        "budget": question.currency,
        "spares": message("servers"),
        "minimum order": message("servers"),
        "lead time": message("periods"),
        "age limit": message("periods"),
        "sites": message("more sites"),
        "survival": message("failure domains"),
    }[str(limit[0])]


def without(question: Question, dropped: Collection[Label]) -> Question:
    """Return the question without the ``dropped`` limits; a dropped demand is 0."""
    for limit in dropped:
        kind, subject = str(limit[0]), str(limit[1]) if len(limit) > 1 else ""
        if kind in SITE:
            question = _site(question, replace(question.sites[subject], **{SITE[kind]: None}))  # type: ignore[arg-type]
        elif kind == "budget":
            question = _budget(question, int(limit[1]), None)
        elif kind in SKU_RULES:
            question = _sku(question, replace(question.skus[subject], **SKU_RULES[kind]))
        elif kind in SITE_RULES:
            question = _site(question, replace(question.sites[subject], **SITE_RULES[kind]))
        elif kind == "sites":
            question = _work(question, replace(question.workloads[subject], sites=frozenset()))
        elif kind in ("survival", "carbon"):
            question = _unsafe(question) if kind == "survival" else replace(question, carbon_limit=None)
        elif kind == "carbon year":
            kept = {year: kg for year, kg in question.carbon_by_year.items() if year != subject}
            question = replace(question, carbon_by_year=kept)
        elif kind == "sale":
            sku = question.skus[subject]
            prices = tuple(sku.price if price is None else price for price in sku.prices)
            question = _sku(question, replace(sku, prices=prices))
        elif kind == "supply":
            question = _supply(question, int(limit[1]), _ENOUGH)
        elif kind == "domain power":
            question = replace(question, domains_w={k: w for k, w in question.domains_w.items() if k != subject})
        else:
            question = loosened(question, limit, amount(question, limit))
    return question


def amount(question: Question, limit: Label, period: int = 0) -> float:
    """Return the size of a limit that is an amount or a count.

    For a site's limit, return its size in ``period``.
    """
    kind, subject = str(limit[0]), str(limit[-1])
    if kind == "demand":
        return question.workloads[str(limit[1])].point[int(limit[2])]
    if kind in ("carbon", "carbon year"):
        return question.carbon_by_year[subject] if kind == "carbon year" else question.carbon_limit or 0.0
    if kind in ("budget", "supply"):
        j = int(limit[1])
        return float(question.budget[j] or 0.0) if kind == "budget" else float(question.supply[j].maximum)
    if kind == "domain power":
        return question.domains_w[subject]
    if kind in SITE or kind == "spares":
        return float(in_period(getattr(question.sites[subject], SITE.get(kind, "spares")), period) or 0.0)
    return float(getattr(question.skus[subject], SKU[kind]) or 0.0)


def loosened(question: Question, limit: Label, excess: float) -> Question:
    """Return the question with a limit that is an amount or a count loosened by ``excess``."""
    now = amount(question, limit)
    if limit[0] == "carbon":
        return replace(question, carbon_limit=now + excess)
    kind, subject = str(limit[0]), str(limit[1])
    if kind == "carbon year":
        return replace(question, carbon_by_year={**question.carbon_by_year, subject: now + excess})
    if kind == "demand":
        work, t = question.workloads[subject], int(limit[2])
        point = [max(now - excess, 0.0) if u == t else v for u, v in enumerate(work.point)]
        changed = _work(question, replace(work, point=point))
    elif kind == "budget":
        changed = _budget(question, int(limit[1]), now + excess)
    elif kind == "supply":
        changed = _supply(question, int(limit[1]), int(now + excess))
    elif kind == "domain power":
        changed = replace(question, domains_w={**question.domains_w, subject: now + excess})
    elif kind in SITE:
        more = each(getattr(question.sites[subject], SITE[kind]) or 0.0, lambda size: size + excess)
        changed = _site(question, replace(question.sites[subject], **{SITE[kind]: more}))  # type: ignore[arg-type]
    elif kind == "spares":
        changed = _site(question, replace(question.sites[subject], spares=int(now - excess)))
    else:
        then = int(now + excess) if kind == "age limit" else int(now - excess)
        changed = _sku(question, replace(question.skus[subject], **{SKU[kind]: then}))  # type: ignore[arg-type]
    return changed


def _unsafe(q: Question) -> Question:
    """Return the question in which no workload must survive a failure."""
    works = {w: replace(work, availability=NORMAL) if q.survives(w) else work for w, work in q.workloads.items()}
    return replace(q, survive=0, workloads=works)


def _work(q: Question, work: Workload) -> Question:
    return replace(q, workloads={**q.workloads, work.name: work})


def _site(q: Question, site: Site) -> Question:
    return replace(q, sites={**q.sites, site.name: site})


def _sku(q: Question, sku: Sku) -> Question:
    return replace(q, skus={**q.skus, sku.name: sku})


def _supply(q: Question, j: int, maximum: int) -> Question:
    return replace(q, supply=[replace(s, maximum=maximum) if i == j else s for i, s in enumerate(q.supply)])


def _budget(q: Question, t: int, money: float | None) -> Question:
    return replace(q, budget=[money if u == t else v for u, v in enumerate(q.budget)])


def stands_for(label: Label) -> Label:
    """Return the limit that a row of the programme belongs to; a site's power is one limit over all periods."""
    if label[0] == "demand":
        return label[:3]
    return label[:2]


def elastic(model: Model, only: Label | None = None) -> Model:
    """Return the programme that minimises the violation of limits.

    Every row of a limit has its own slack variable, or the rows of ``only`` share one.
    """
    rows = [r for r, label in enumerate(model.labels) if label[0] in AMOUNTS and only in (None, stands_for(label))]
    sign = np.where(np.isfinite(model.low[rows]), 1.0, -1.0)
    columns = np.zeros(len(rows), dtype=int) if only else np.arange(len(rows))
    more = 1 if only else len(rows)
    slack = sparse.csr_array(sparse.coo_array((sign, (rows, columns)), shape=(model.rows.shape[0], more)))
    return replace(
        model,
        rows=sparse.csr_array(sparse.hstack([model.rows, slack])),
        cost=np.concatenate([np.zeros_like(model.cost), np.ones(more)]),
        lower=np.concatenate([model.lower, np.zeros(more)]),
        upper=np.concatenate([model.upper, np.full(more, np.inf)]),
        integer=np.concatenate([model.integer, np.zeros(more, dtype=bool)]),
    )


def duals(model: Model) -> tuple[float, Mapping[Label, float]] | None:
    """Return the least cost of the relaxation, and the price of one unit of each row's limit by label.

    Zero prices are omitted. Costs are in units of the programme's cost. Return None if there is no solution.
    """
    equal = model.low == model.high
    above = np.isfinite(model.low) & ~equal
    below = ~above & ~equal
    rows = sparse.vstack([model.rows[below], -model.rows[above]]).tocsr()
    solver: Any = linprog  # the type stubs of scipy lack sparse matrices
    result = solver(
        model.cost,
        A_ub=rows,
        b_ub=np.concatenate([model.high[below], -model.low[above]]),
        A_eq=model.rows[equal],
        b_eq=model.low[equal],
        bounds=np.column_stack([model.lower, model.upper]),
        method="highs",
    )
    if result.status == 2:
        return None
    if result.status != 0:
        raise FleetmarkError(message("the solver failed on the capacity question: {why}", why=result.message))
    value: Floats = np.zeros(len(model.labels))
    value[below], value[above] = np.split(np.abs(result.ineqlin.marginals), [int(below.sum())])
    prices: dict[Label, float] = {}
    for row in np.flatnonzero(value > 1e-9).tolist():
        label = model.labels[row]
        key = label[:3] if label[0] == "demand" else label
        prices[key] = prices.get(key, 0.0) + float(value[row] / model.units[row])
    return float(result.fun), prices
