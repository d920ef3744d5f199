"""Build the first screen of a plan: purchases, retirements, costs, the effect of buying nothing, risks and limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from fleetmark.base.text import Message, joined, message
from fleetmark.planner.capacity.analysis.results import Alternative, Binding
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.question import Cohort, Question
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.plan.model import Load, Order, PlanView, Supply, left_out, price_of

RISKS, LIMITS = 3, 3
NAMED = 4  # maximum SKUs named one by one
_NO_SHARE = 0.005  # share of demand that a percentage without decimals shows as 0
TIGHT = 0.9  # minimum used share of a limit for it to be named
_MANY = re.compile(r"\b(server|machine|host|node|unit|port|domain|GPU)s$")
_ONE = {
    "rack units": message("rack unit"),
    "ports": message("port"),
    "positions": message("position"),
    "servers": message("server"),
    "periods": message("period"),
    "failure domains": message("failure domain"),
}

SAVINGS = message(
    "Savings are present values until the end of the plan: purchase, energy, support and space together, so they may "
    "exceed a server's price. They count fractions of servers. Relaxing a limit pays where it costs less than this."
)
RANGES = message(
    "Change of the present value when one input alone is at an end of its range: 5% and 95%, or ±10% if no range "
    "is known."
)
NO_PLAN = message("“No plan”: in that case no purchase meets every limit.")


@dataclass(frozen=True, slots=True)
class Front:
    """The sentences of the first screen.

    ``now``: what to order first, and when; empty if nothing is bought. ``risks`` and ``limits``: the most important
    first. ``years``: (year, cost), undiscounted.
    """

    answer: str
    now: str
    cost: str
    nothing: str
    sure: tuple[str, ...]
    _: KW_ONLY
    years: tuple[tuple[str, str], ...]
    risks: tuple[str, ...]
    limits: tuple[str, ...]


def front(v: PlanView) -> Front:
    """Return the first screen of the plan ``v``."""
    years = tuple((name, fmt.money(v.in_year(n))) for n, name in enumerate(v.years))
    limits = [*_tight(v), *_prices(v)][:LIMITS]
    return Front(
        _answer(v),
        _now(v),
        _cost(v),
        _nothing(v),
        tuple(_sure(v, v.futures)),
        years=years,
        risks=tuple(_risks(v, v.tornado)),
        limits=tuple(limits),
    )


def _answer(v: PlanView) -> str:
    bought, retired = counted(v.orders), counted(v.retired)
    placed = counted(
        [Order(c.arrives or 0, c.arrives, c.site, c.sku, c.count, money=0.0) for c in v.question.fleet if c.ordered]
    )
    if placed:
        answer = _decided(bought, retired)
        return joined([answer, message("Already on order: {what}.", what=placed)], " ")
    return _decided(bought, retired)


def _decided(bought: str, retired: str) -> str:
    if bought and retired:
        return message("Buy {what}; retire {old}.", what=bought, old=retired)
    if bought:
        return message("Buy {what}.", what=bought)
    return message("Buy nothing; retire {old}.", old=retired) if retired else message("Buy nothing.")


def _now(v: PlanView) -> str:
    """Return what to order first, the order deadline, and the period from which it is usable."""
    if not v.orders:
        return ""
    first = min(order.period for order in v.orders)
    orders = [order for order in v.orders if order.period == first]
    parts = []
    for arrives in sorted({order.arrives for order in orders}, key=lambda t: math.inf if t is None else t):
        purchases = counted([order for order in orders if order.arrives == arrives])
        if arrives is None:
            parts.append(message("{what}, in use after the plan", what=purchases))
        else:
            parts.append(
                message("{what}, in use from {period}", what=purchases, period=fmt.clean(v.question.periods[arrives]))
            )
    values = {"orders": joined(parts, "; "), "period": fmt.clean(v.question.periods[first])}
    values |= {"money": fmt.money(sum(order.money for order in orders)), "currency": v.question.currency}
    if first == 0:
        return message("Order now, in {period}: {orders} ({money} {currency}).", **values)
    return message("Nothing to order before {period}; then {orders} ({money} {currency}).", **values)


def counted(orders: Sequence[Order]) -> str:
    """Return the servers by SKU, in order of arrival: ``29 genoa, 395 turin``."""
    counts: dict[str, int] = {}
    for order in orders:
        counts[order.sku] = counts.get(order.sku, 0) + order.count
    named = [message("{n} {sku}", n=f"{n:,}", sku=fmt.clean(sku)) for sku, n in list(counts.items())[:NAMED]]
    rest = list(counts.values())[NAMED:]
    if rest:
        named.append(message("{n} of {kinds} further SKUs", n=f"{sum(rest):,}", kinds=len(rest)))
    return joined(named)


def _cost(v: PlanView) -> str:
    q, plan = v.question, v.plan
    return message(
        "{cost} {currency} from {first} to {last}, present value at {rate} a year. At most {gap} above the cheapest "
        "possible plan.",
        cost=fmt.money(plan.objective),
        currency=q.currency,
        first=fmt.clean(q.periods[0]),
        last=fmt.clean(q.periods[-1]),
        rate=f"{100 * q.discount:.3g}%",
        gap=fmt.share(max(plan.gap, 0.0), 2),
    )


def _nothing(v: PlanView) -> str:
    first, periods = v.nothing.short_from, v.question.periods
    if first is None:
        return message("If nothing is bought, the servers in place still meet the median demand until the end.")
    last = len(periods) - 1
    leaving = sum(c.count for c in v.question.fleet if _leaves(v, c, last))
    values = {"first": fmt.clean(periods[first]), "last": fmt.clean(periods[-1])}
    share = v.nothing.share[-1]
    values["share"] = fmt.share(share, 0)
    if share < _NO_SHARE and any(v.question.survives(w) for w in v.question.workloads):
        short = (
            message(
                "If nothing is bought, the servers in place miss the median demand from {first} on; in {last} the loss "
                "of two failure domains leaves at least one workload without servers.",
                **values,
            )
            if v.question.survive > 1
            else message(
                "If nothing is bought, the servers in place miss the median demand from {first} on; in {last} the loss "
                "of one failure domain leaves at least one workload without servers.",
                **values,
            )
        )
    elif share < _NO_SHARE:
        short = message(
            "If nothing is bought, the servers in place miss the median demand from {first} on; in {last} at least "
            "one workload has no servers left.",
            **values,
        )
    elif any(v.question.survives(w) for w in v.question.workloads):
        short = (
            message(
                "If nothing is bought, the servers in place miss the median demand from {first} on; in {last} they "
                "serve {share} of it if two failure domains are lost.",
                **values,
            )
            if v.question.survive > 1
            else message(
                "If nothing is bought, the servers in place miss the median demand from {first} on; in {last} they "
                "serve {share} of it if one failure domain is lost.",
                **values,
            )
        )
    else:
        short = message(
            "If nothing is bought, the servers in place miss the median demand from {first} on; in {last} they serve "
            "{share} of it.",
            **values,
        )
    if not leaving:
        return short
    old = message("{n} of {all} then have reached their age limit.", n=f"{leaving:,}", all=f"{in_place(v):,}")
    return joined([short, old], " ")


def in_place(v: PlanView) -> int:
    """Return the number of servers at the start."""
    return sum(c.count for c in v.question.fleet if not c.ordered)


def _leaves(v: PlanView, cohort: Cohort, period: int) -> bool:
    limit = v.question.skus[cohort.sku].age_limit
    return limit is not None and not cohort.ordered and cohort.age + period >= limit


def _sure(v: PlanView, futures: Futures | None) -> Iterator[str]:
    q = v.question
    if futures is not None:
        yield message(
            "Demand is not met in {share} of {n} simulated futures ({lo} to {hi}); the target is at most {target}.",
            share=fmt.share(futures.shortfall.value),
            n=f"{futures.draws:,}",
            lo=fmt.share(futures.shortfall.lo),
            hi=fmt.share(futures.shortfall.hi),
            target=fmt.share(1 - q.promise),
        )
    if q.reviews:
        yield message(
            "This plan and its reviews ({n}) may miss demand in {share} of futures together; each has its part.",
            n=q.reviews,
            share=fmt.share(1 - q.quantile),
        )
    if not q.correlation and sum(max(w.sigma) > 0 for w in q.workloads.values()) > 1:
        yield message(
            "Demands are assumed to be independent. If they grow together, more futures fail; set their correlation."
        )
    if v.answer.stopped:
        yield message(
            "Time ended a search, so a faster machine may find another answer: for the same one everywhere, allow more "
            "(--seconds)."
        )
    safe = [w for w in q.workloads if q.survives(w)]
    names = joined([fmt.clean(w) for w in safe])
    if safe and q.survive > 1:
        yield message(
            "If any two failure domains are lost together, capacity still meets the demand of {workloads}.",
            workloads=names,
        )
    elif len(safe) == len(q.workloads):
        yield message("If any one failure domain is lost, capacity still meets demand.")
    elif safe:
        yield message(
            "If any one failure domain is lost, capacity still meets the demand of {workloads}.", workloads=names
        )
    for w in q.workloads:
        runs = [s.runs for s in v.supply_of(w) if s.runs is not None]
        if runs:
            yield message(
                "{workload} runs in the failover headroom of others: on average at least {share} of it gets done, with "
                "each failure domain down {outage} of the time.",
                workload=fmt.clean(w),
                share=fmt.share(min(runs), 2),
                outage=fmt.share(q.outage, 2),
            )
    yield from left_out(q)
    yield from _served(v)


def _served(v: PlanView) -> Iterator[Message]:
    """Yield the servers of each workload in the last period."""
    last = len(v.question.periods) - 1
    listed = [joined([fmt.clean(s.workload), servers_of(s)], " ") for s in v.supply if s.period == last]
    if listed:
        yield message(
            "Servers in {period}: {workloads}.",
            period=fmt.clean(v.question.periods[last]),
            workloads=joined(listed, "; "),
        )


def basis(q: Question) -> Message:
    """Return how many worth values were given without a measurement."""
    values = [worth for sku in q.skus.values() for worth in sku.worth.values()]
    assumed = sum(worth.origin is None for worth in values)
    if not assumed:
        return message("all worth values measured")
    return message("{n} of {all} worth values not measured", n=assumed, all=len(values))


# --- risks ---------------------------------------------------------------------------------------------------------


def _risks(v: PlanView, tornado: Sequence[Effect]) -> list[str]:
    """Return the inputs that can make the plan impossible, then the inputs that can increase its cost most."""
    rated = sorted(((_worst(e), n, e) for n, e in enumerate(tornado)), key=lambda risk: (-risk[0], risk[1]))
    return [_risk(v, effect, extra) for extra, _, effect in rated if extra > 0][:RISKS]


def _worst(effect: Effect) -> float:
    return max(math.inf if end is None else end for end in (effect.at_low, effect.at_high))


def _risk(v: PlanView, effect: Effect, extra: float) -> str:
    ends = ((effect.at_low, effect.low), (effect.at_high, effect.high))
    factor = next(f for end, f in ends if end is None or end == extra)
    part = fmt.share(abs(factor - 1), 0)
    if factor < 1:
        condition = message("If {input} is {part} lower", input=effect.name, part=part)
    else:
        condition = message("If {input} is {part} higher", input=effect.name, part=part)
    if math.isinf(extra):
        return message("{how}: no plan, since no purchase then meets every limit.", how=condition)
    return message(
        "{how}: {extra} {currency} ({part}).",
        how=condition,
        extra=fmt.change_of_money(extra),
        currency=v.question.currency,
        part=fmt.change(extra / v.plan.objective if v.plan.objective else 0.0),
    )


# --- limits ---------------------------------------------------------------------------------------------------------


def _tight(v: PlanView) -> list[str]:
    """Return the limits of sites that are nearly used up, the tightest first, without duplicates."""
    uses = [use for load in v.loads for use in _uses(load)]
    tightest: dict[tuple[str, str], tuple[float, Load, str]] = {}
    for share, load, resource, text in uses:
        if share >= TIGHT and share > tightest.get((load.site, resource), (0.0, load, ""))[0]:
            tightest[load.site, resource] = (share, load, text)
    ordered = sorted(tightest.values(), key=lambda use: -use[0])
    return [
        message("{use} ({period})", use=text, period=fmt.clean(v.question.periods[load.period]))
        for _, load, text in ordered[: LIMITS - 1]
    ]


def _uses(load: Load) -> Iterator[tuple[float, Load, str, str]]:
    """Yield the used share of a limit, the load, the name of the limit, and both amounts as text."""
    site = fmt.clean(load.site)
    if load.power_limit_w:
        used, limit = kilowatts(load.power_w), kilowatts(load.power_limit_w)
        text = message("power at {site}: {used} of {limit} kW", site=site, used=used, limit=limit)
        yield load.power_w / load.power_limit_w, load, "power", text
    if load.rack_limit:
        used, limit = fmt.money(load.rack_units), fmt.money(load.rack_limit)
        text = message("rack units at {site}: {used} of {limit}", site=site, used=used, limit=limit)
        yield load.rack_units / load.rack_limit, load, "rack units", text
    if load.port_limit:
        used, limit = fmt.money(load.ports), fmt.money(load.port_limit)
        text = message("ports at {site}: {used} of {limit}", site=site, used=used, limit=limit)
        yield load.ports / load.port_limit, load, "ports", text


def kilowatts(watts: float) -> str:
    """Return power in kW with one decimal: ``259.9``."""
    return f"{watts / 1000:,.1f}"


def _prices(v: PlanView) -> list[str]:
    return [message("{limit}: {price}", limit=b.name, price=saving(v, b)) for b in v.by_price]


def saving(v: PlanView, binding: Binding) -> str:
    """Return the saving from one more unit of a limit (for a demand: one unit less)."""
    saves, _ = price_of(binding)
    return message(
        "{step} saves {money} {currency}", step=step(binding), money=fmt.money(saves), currency=v.question.currency
    )


def step(binding: Binding) -> str:
    """Return by how much the limit is relaxed: ``1 kW more``."""
    unit = singular(price_of(binding)[1])
    return message("1 {unit} less", unit=unit) if binding.demand else message("1 {unit} more", unit=unit)


def singular(unit: str) -> str:
    """Return a unit in the singular."""
    return _ONE.get(unit, unit) if isinstance(unit, Message) else _MANY.sub(r"\1", fmt.clean(unit))


# --- sentences shared by several formats ----------------------------------------------------------------------------


def servers_of(s: Supply) -> str:
    """Return the servers of a workload: the number of whole servers, and its share of them if it shares them."""
    number = f"{s.servers:,}"
    if s.share >= 1 - 5e-4:
        return number
    if s.pool:
        return message("{share} of {n} in {pool}", share=fmt.share(s.share, 0), n=number, pool=fmt.clean(s.pool))
    return message("{share} of {n}", share=fmt.share(s.share, 0), n=number)


def other_plan(v: PlanView, other: Alternative) -> str:
    """Return an alternative with its additional cost."""
    extra = message(
        "{name}: {extra} {currency} ({part})",
        name=other.name,
        extra=fmt.change_of_money(other.extra),
        currency=v.question.currency,
        part=fmt.change(other.extra / v.plan.objective if v.plan.objective else 0.0),
    )
    return extra if other.least >= 0 else joined([extra, message("may cost the same")])


def drawn(v: PlanView, futures: Futures) -> Mapping[str, Any]:
    """Return the values for the heading of the futures."""
    return {"period": fmt.clean(v.question.periods[-1]), "n": f"{futures.draws:,}", "seed": futures.seed}
