"""Resume a question and its plan from a later period, with earlier purchases in place or on order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import pandas as pd

from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Cohort, Plan, Question, Site, Workload
from fleetmark.planner.capacity.sku import Sku
from fleetmark.planner.review.orders import moves, orders

_NOT_BY_PERIOD = ("periods", "slips", "breaks", "fleet", "supply")
_Part = TypeVar("_Part", Question, Workload, Sku, Site)


@dataclass(slots=True)
class _Owned:
    """Servers in place: the period of their arrival (negative before the plan), and their number."""

    arrived: int
    count: int


def question_from(question: Question, plan: Plan, now: int) -> Question:
    """Return the question that remains in period ``now``, before its decisions.

    Servers that the plan has bought by then are in place, or on order and paid for. The oldest retire first. Prices,
    demands and limits are those of the remaining periods. Money that a site has spent is deducted from its budget, and
    carbon that the plan has emitted from the carbon limit.
    """
    if now == 0:
        return question
    q = question
    later: Question = _sliced(q, now, len(q.periods))
    return replace(
        later,
        periods=tuple(q.periods[now:]),
        workloads={n: _sliced(w, now, len(q.periods)) for n, w in q.workloads.items()},
        skus={n: _sku(q, s, now) for n, s in q.skus.items()},
        sites={n: _site(q, s, plan, now) for n, s in q.sites.items()},
        fleet=_fleet(q, plan, now),
        supply=tuple(
            s if s.period is None else replace(s, period=s.period - now)
            for s in q.supply
            if s.period is None or s.period >= now
        ),
        **_carbon_limits(q, plan, now),
        **_energy(q, later, now),
    )


def _carbon_limits(q: Question, plan: Plan, now: int) -> dict[str, Any]:
    """Return the kg CO2e that the remaining periods may emit, together and in each year."""
    ledger = Ledger(q, plan.stock, plan.use)
    emitted = ledger.embodied + q.grid * ledger.kwh
    left = {
        year: max(limit - float(emitted[[t for t in periods if t < now]].sum()), 0.0)
        for year, periods, limit in q.carbon_limits
        if periods[-1] >= now
    }
    return {"carbon_limit": left.pop("", None), "carbon_by_year": left}


def plan_from(question: Question, plan: Plan, now: int) -> Plan:
    """Return the decisions of ``plan`` from period ``now`` on, with their costs in the remaining ``question``."""

    def rest(frame: pd.DataFrame) -> pd.DataFrame:
        kept = frame[frame["period"] >= now]
        return kept.assign(period=kept["period"] - now).reset_index(drop=True)

    stock, use = rest(plan.stock), rest(plan.use)
    at_once = stock["sku"].map(lambda s: question.skus[s].delay == 0)
    first = stock["period"] == 0  # earlier orders are in place already
    stock.loc[first, "arrive"] = stock["buy"].where(at_once, 0)[first]
    ledger = Ledger(question, stock, use)
    margin = {w: tuple(plan.factor(w, t + now) for t in range(len(question.periods))) for w in question.workloads}
    return replace(
        plan, stock=stock, use=use, costs=ledger.costs, objective=ledger.total, bound=0.0, gap=0.0, margin=margin
    )


def _sliced(part: _Part, now: int, periods: int) -> _Part:
    """Return a part of a question, with its figures by period cut to start at ``now``."""
    changed: dict[str, Any] = {
        f.name: tuple(value[now:])
        for f in fields(part)
        if f.name not in _NOT_BY_PERIOD
        for value in [getattr(part, f.name)]
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == periods
    }
    return replace(part, **changed)


def _sku(q: Question, sku: Sku, now: int) -> Sku:
    """Return a SKU with its price in period ``now``, or in the first later one in which it is sold."""
    later: Sku = _sliced(sku, now, len(q.periods))
    change = (1 + sku.price_change) ** (q.years * now)
    written = next((p for p in later.prices if p is not None), None) if later.prices else sku.price
    if written is None or not sku.price:
        return replace(later, price=written)
    level = change * written / sku.price
    return replace(
        later,
        price=sku.price * level,
        prices=tuple(None if p is None else p * change for p in later.prices),
        breaks=tuple((count, price * level) for count, price in sku.breaks),
    )


def _site(q: Question, site: Site, plan: Plan, now: int) -> Site:
    later: Site = _sliced(site, now, len(q.periods))
    if site.windows is not None:
        later = replace(later, windows=frozenset(t - now for t in site.windows if t >= now))
    if site.budget is not None:
        later = replace(later, budget=max(site.budget - spent(q, plan, site.name, now), 0.0))
    return later


def spent(q: Question, plan: Plan, site: str, now: int) -> float:
    """Return the money for a site's purchases before period ``now``, undiscounted."""
    return sum(order.money for order in orders(q, plan) if order.site == site and order.period < now)


def _energy(q: Question, later: Question, now: int) -> dict[str, Any]:
    """Return the energy prices in period ``now``, adjusted by ``energy_price_change``."""
    level = q.energy_level(now)
    if level == 1.0 or isinstance(later.energy_price, tuple):
        return {}
    return {"energy_price": later.energy_price * level}


def _fleet(q: Question, plan: Plan, now: int) -> tuple[Cohort, ...]:
    """Return the servers in place in period ``now``, before its decisions, and those on order."""
    owned: dict[tuple[str, str], list[_Owned]] = defaultdict(list)
    later = []
    for c in q.fleet:
        if c.arrives is not None and c.arrives > now:
            later.append(replace(c, arrives=c.arrives - now))
        else:
            owned[c.sku, c.site].append(_Owned(-c.age if c.arrives is None else c.arrives, c.count))
    for order in orders(q, plan):
        arrives = order.period + q.skus[order.sku].delay
        if order.period >= now:
            continue
        if arrives <= now:
            owned[order.sku, order.site].append(_Owned(arrives, order.count))
        elif arrives < len(q.periods):
            later.append(Cohort(order.sku, order.site, order.count, arrives=arrives - now))
    for (sku, site, period), count in moves(plan, "retire").items():
        if period < now:
            _retire(owned[sku, site], count)
    place = [
        Cohort(sku, site, one.count, age=now - one.arrived)
        for (sku, site), several in owned.items()
        for one in sorted(several, key=lambda one: one.arrived)
        if one.count
    ]
    return (*place, *later)


def _retire(owned: list[_Owned], count: int) -> None:
    for one in sorted(owned, key=lambda one: one.arrived):
        gone = min(one.count, count)
        one.count -= gone
        count -= gone
