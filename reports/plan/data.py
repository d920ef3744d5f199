"""Export a capacity plan for programs: figures with full precision, periods by name, money in its own currency."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.planner.capacity.analysis.results import Alternative, Conflict
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.planner.cost.margin import gross_margins
from fleetmark.reports.plan import scenarios, terms
from fleetmark.reports.plan.front import front
from fleetmark.reports.plan.model import PlanView, Supply, served, view

SCHEMA = 1
CASH = ("capex", "opex", "at_end", "total", "depreciation", "book")
_KEYS = {"by_period": "whole", "reason": "why"}  # fields that have a different key in JSON


def as_json(answer: Answer, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan with its analyses, or the reason why there is none.

    ``details``: further keys at the top (command, time).
    """
    if answer.conflict is not None:
        return _refusal(answer.question, answer.conflict, details)
    v = view(answer)
    q, first, futures = v.question, front(v), v.futures
    names = [s.name for s in answer.scenarios]
    doc = {
        "schema": SCHEMA,
        **details,
        "summary": asdict(first),
        "nothing": {"share": v.nothing.share},
        "question": _question(q),
        "plan": _plan(v, q),
        "costs": {
            "by_kind": [
                {"kind": kind, "by_year": dict(zip(v.years, by_year, strict=True)), "present": present}
                for kind, (by_year, present) in v.costs.items()
            ],
            "by_year": {year: v.in_year(n) for n, year in enumerate(v.years)},
            "cash": [
                {"year": year} | {name: float(getattr(v.cash, name)[n]) for name in CASH}
                for n, year in enumerate(v.years)
            ],
            "margins": [
                {"workload": m.workload, "revenue": m.revenue, "cost": m.cost, "margin": m.margin, "share": m.share}
                for m in gross_margins(answer.ledger)
            ],
        },
        "capacity": [{**asdict(s), "period": q.periods[s.period], "bound_by": _bound_by(s)} for s in v.supply],
        "sites": [{**asdict(s), "period": q.periods[s.period]} for s in v.loads],
        "worth": [
            {"workload": row.workload, "sku": row.sku, "utilisation": row.utilisation, "source": row.source}
            | {"worth": row.worth.value, "lo": row.worth.lo, "hi": row.worth.hi}
            for row in served(q)
        ],
        "terms": _terms(answer.ledger),
        "binding": [asdict(b) for b in v.bindings],
        "alternatives": [_alternative(a) for a in v.alternatives],
        "futures": None if futures is None else _futures(futures, q),
        "tornado": [asdict(e) for e in v.tornado],
        "scenarios": [
            {"name": s.name, "figures": s.figures, "buy": s.bought, "question": _question(s.question)}
            for s in answer.scenarios
        ],
        "differences": [
            {"figure": row.name, "unit": row.unit, "plan": row.plan}
            | {"scenarios": dict(zip(names, row.differences, strict=True))}
            for row in scenarios.rows(answer)
        ],
        "conflict": None,
    }
    return _plain_keys(doc)


def _refusal(q: Question, conflict: Conflict, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return why there is no plan."""
    doc = {"smallest": conflict.smallest, "limits": [asdict(limit) for limit in conflict.limits]}
    return _plain_keys({"schema": SCHEMA, **details, "question": _question(q), "plan": None, "conflict": doc})


def _question(q: Question) -> dict[str, Any]:
    """Return every input, with periods by name."""
    doc = {f.name: getattr(q, f.name) for f in fields(q)}

    def named(period: int | None) -> str | None:
        return None if period is None else q.periods[period]

    doc["fleet"] = [{**asdict(c), "arrives": named(c.arrives)} for c in q.fleet]
    doc["supply"] = [{**asdict(s), "period": named(s.period)} for s in q.supply]
    doc["sites"] = {
        k: {**asdict(site), "windows": None if site.windows is None else [named(t) for t in sorted(site.windows)]}
        for k, site in q.sites.items()
    }
    return doc


def _bound_by(supply: Supply) -> str | None:
    """Return the resources that limit most of a workload's servers, or None if it needs no resources."""
    shares = supply.bound_by
    return (max(shares, key=shares.__getitem__) or "speed") if shares else None


def _terms(ledger: Ledger) -> dict[str, Any]:
    """Return the effects of constraints and terms: rows and feeds, supply, late orders, and residual values."""
    q = ledger.question
    residual = {
        (s, k): ledger.left_worth[p].sum() for p, (s, k) in enumerate(ledger.pairs) if ledger.left_worth[p].any()
    }
    return {
        "lines": terms.lines(ledger),
        "domains": [
            {"domain": name, "limit_w": limit, "power_w": ledger.domain_w(name)} for name, limit in q.domains_w.items()
        ],
        "supply": [
            {"of": s.item, "most": s.maximum, "period": None if s.period is None else q.periods[s.period], "ordered": n}
            for s in q.supply
            for n in [ledger.supplied(s)]
        ],
        "late_orders": [
            {"sku": s, "slips": sku.slips, "lead": sku.lead, "allowance": sku.allowance}
            for s, sku in q.skus.items()
            if sku.slips
        ],
        "residual": [{"sku": s, "site": k, "worth_at_the_end": money} for (s, k), money in residual.items()],
        "pools": [
            {"pool": name, "workloads": members, "servers": servers.sum(axis=0)}
            for name, members in q.pools.items()
            for servers in [ledger.pooled.get(name, ledger.common)]
        ],
    }


def _plan(v: PlanView, q: Question) -> dict[str, Any]:
    plan = v.plan
    return {
        "objective": plan.objective,
        "bound": plan.bound,
        "gap": plan.gap,
        "seconds": plan.seconds,
        "stopped": plan.stopped,
        "currency": q.currency,
        "margin": {w: [plan.factor(w, t) for t in range(len(q.periods))] for w in q.workloads},
        "buy": [
            {**asdict(o), "period": q.periods[o.period], "arrives": None if o.arrives is None else q.periods[o.arrives]}
            for o in v.orders
        ],
        "retire": [
            {"period": q.periods[o.period], "site": o.site, "sku": o.sku, "count": o.count, "money": o.money}
            for o in v.retired
        ],
        "costs": _named(plan.costs, q),
        "stock": _named(_occupied(plan), q),
        "use": _use(v, q),
    }


def _use(v: PlanView, q: Question) -> list[dict[str, Any]]:
    """Return the share of a pool's servers (``of``) available to each workload, and the share that is operational."""
    n = v.answer.ledger
    return [
        {"workload": w, "pool": q.pool(w), "sku": n.pairs[p][0], "site": n.pairs[p][1], "period": q.periods[t]}
        | {"of": round(n.of_pool[c, t]), "share": n.share[c, t], "share_working": n.share_working[c, t]}
        for c, (w, p) in enumerate(n.combos)
        for t in range(n.periods)
        if n.servers[c, t]
    ]


def _occupied(plan: Plan) -> pd.DataFrame:
    """Return the stock without rows of zeros."""
    counts = plan.stock[["buy", "arrive", "retire", "installed"]]
    return plan.stock[(counts != 0).any(axis=1)]


def _named(frame: pd.DataFrame, q: Question) -> list[dict[str, Any]]:
    named = frame.assign(period=[q.periods[int(t)] for t in frame["period"]])
    return [{str(k): v for k, v in row.items()} for row in named.to_dict("records")]


def _alternative(a: Alternative) -> dict[str, Any]:
    bought = a.plan.stock.groupby("sku")["buy"].sum()
    return {
        "name": a.name,
        "objective": a.plan.objective,
        "extra": a.extra,
        "least": a.least,
        "trades": dict(a.trades),
        "buy": {str(s): int(n) for s, n in bought.items() if n},
    }


def _futures(futures: Futures, q: Question) -> dict[str, Any]:
    values = {_KEYS.get(f.name, f.name): getattr(futures, f.name) for f in fields(futures)}
    frames = {key: value for key, value in values.items() if isinstance(value, pd.DataFrame)}
    plain = {key: value for key, value in values.items() if key not in frames}
    plain |= {"shortfall": futures.shortfall.value, "lo": futures.shortfall.lo, "hi": futures.shortfall.hi}
    return plain | {key: _named(frames[key], q) for key in sorted(frames)}


def _plain_keys(doc: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in doc.items()}


def _plain(value: Any) -> Any:
    """Convert a value to JSON types. Infinities (such as infinite degrees of freedom) and NaN become null."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({_KEYS.get(f.name, f.name): getattr(value, f.name) for f in fields(value)})
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Sequence):
        return [_plain(v) for v in value]
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
