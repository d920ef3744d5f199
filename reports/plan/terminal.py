"""A capacity plan for a terminal: the answer, purchases, costs, capacity, limits, alternatives and futures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import count
from fleetmark.base.units import significant
from planner.capacity.question import Alternative, Binding, Conflict, Question
from planner.capacity.tornado import Effect
from planner.capacity.uncertainty import Futures
from reports.kit.format import clean
from reports.plan.view import Order, PlanView, Supply, price_of, trades

MOST = 8  # rows of a list of limits or effects
MOST_ROWS = 40
_MANY = re.compile(r"\b(server|machine|host|node|unit|port|domain)s$")


def show(v: PlanView, futures: Futures | None, tornado: Sequence[Effect]) -> list[RenderableType]:
    """What to print, in order, for 80 columns and wider."""
    q, plan = v.question, v.plan
    parts: list[RenderableType] = [Text(answer(v), style="bold"), Text(_sure(v), style="dim"), Text()]
    parts += _part("buy", _orders(v, v.orders, buy=True))
    parts += _part("retire", _orders(v, v.retired, buy=False))
    parts += _part(f"cost, {q.currency}", [_costs(v)])
    parts += _part("capacity against demand", [_supply(v, futures)])
    parts += _part("sites, the most in any period", [_sites(v)])
    parts += _part(
        "what binds, and what one unit more of it (of a demand: less) would save", list(_bindings(q, v.bindings))
    )
    parts += _part("next best plans", list(_alternatives(v, v.alternatives)))
    if futures is not None:
        parts += _part(f"{futures.draws:,} simulated futures", list(_futures(v, futures, tornado)))
    if plan.margin:
        parts.append(Text(_margin(v), style="dim"))
    return parts


def answer(v: PlanView) -> str:
    """The plan in one sentence."""
    q = v.question
    what = f"Buy {v.bought_text()}" if v.bought() else "Buy nothing"
    gone = sum(o.count for o in v.retired)
    retired = f", retire {gone:,}" if gone else ""
    span = clean(q.periods[0]) + (f" to {clean(q.periods[-1])}" if len(q.periods) > 1 else "")
    rate = f"{100 * q.discount:.3g}% a year"
    return f"{what}{retired}: {v.plan.objective:,.0f} {q.currency} for {span}, present value at {rate}"


def _sure(v: PlanView) -> str:
    plan, q = v.plan, v.question
    return (
        f"no plan costs less than {plan.bound:,.0f} {q.currency} (gap {plan.gap:.2%}); prices of {q.date}; "
        f"solved in {plan.seconds:.1f} s"
    )


def _part(title: str, parts: Sequence[RenderableType]) -> list[RenderableType]:
    return [Text(title, style="bold"), *parts, Text()] if parts else []


def _table(*columns: str, left: int = 1) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for n, name in enumerate(columns):
        table.add_column(name, justify="left" if n < left else "right", overflow="fold")
    return table


def _orders(v: PlanView, orders: Sequence[Order], *, buy: bool) -> list[RenderableType]:
    if not orders:
        return []
    q = v.question
    more = (Text("in use from"), Text(q.currency)) if buy else (Text(""), Text(""))
    table = _table("order in" if buy else "in", "site", "SKU", "servers", *[str(t) for t in more if str(t)], left=3)
    for o in orders[:MOST_ROWS]:
        arrives = "after the plan" if o.arrives is None else clean(q.periods[o.arrives])
        tail = (arrives, f"{o.money:,.0f}") if buy else ()
        table.add_row(clean(q.periods[o.period]), clean(o.site), clean(o.sku), f"{o.count:,}", *tail)
    out = len(orders) - MOST_ROWS
    return [table, *([Text(f"and {out} more; --format json, --xlsx or --html have all")] if out > 0 else [])]


def _costs(v: PlanView) -> RenderableType:
    table = _table("", *v.years, "present value")
    for kind, (by_year, present) in v.costs.items():
        table.add_row(kind, *[f"{m:,.0f}" for m in by_year], f"{present:,.0f}")
    total = [sum(c[0][n] for c in v.costs.values()) for n in range(len(v.years))]
    table.add_row("all", *[f"{m:,.0f}" for m in total], f"{v.plan.objective:,.0f}", style="bold")
    return table


def _supply(v: PlanView, futures: Futures | None) -> RenderableType:
    """Rows per workload: its first, its tightest and its last period."""
    table = _table("workload", "period", "demand", "planned for", "capacity", "servers", "load", left=2)
    for w, workload in v.question.workloads.items():
        rows = v.of(w)
        chosen: dict[int, Supply] = {s.period: s for s in (rows[0], min(rows, key=lambda s: s.spare), rows[-1])}
        for n, (_, s) in enumerate(sorted(chosen.items())):
            name = f"{clean(w)}, {clean(workload.unit)}" if n == 0 else ""
            figures = [significant(x, 4) for x in (s.demand, s.planned, s.capacity, s.servers)]
            table.add_row(name, clean(v.question.periods[s.period]), *figures, f"{workload.utilisation:.0%}")
    return table


def _sites(v: PlanView) -> RenderableType:
    table = _table("site", "servers", "power at peak", "of", "rack units", "of", "ports", "of")
    for k in v.question.sites:
        mine = [load for load in v.loads if load.site == k]
        top = max(mine, key=lambda load: load.power_w)
        units, plugs = max(m.rack_units for m in mine), max(m.ports for m in mine)
        limits = [
            _kilowatts(top.power_w),
            "" if top.power_limit_w is None else _kilowatts(top.power_limit_w),
            f"{units:,.0f}",
            "" if top.rack_limit is None else f"{top.rack_limit:,.0f}",
            f"{plugs:,.0f}",
            "" if top.port_limit is None else f"{top.port_limit:,.0f}",
        ]
        table.add_row(clean(k), f"{max(m.servers for m in mine):,}", *limits)
    return table


def _kilowatts(watts: float) -> str:
    return f"{watts / 1000:,.1f} kW"


def _bindings(q: Question, bindings: Sequence[Binding]) -> Iterator[Text]:
    for b in bindings[:MOST]:
        saves, unit = price_of(b)
        price = "not known: not solved in time"
        if saves is not None:
            one = _MANY.sub(r"\1", unit)
            price = f"{'about ' if b.relaxed else ''}{significant(saves, 3)} {q.currency} per {one}"
        yield Text(f"  {clean(b.name)}: {clean(price)}")
    if len(bindings) > MOST:
        yield Text(f"  and {len(bindings) - MOST} more")


def _alternatives(v: PlanView, others: Sequence[Alternative]) -> Iterator[Text]:
    for other in others:
        part = other.extra / v.plan.objective if v.plan.objective else 0.0
        proven = "" if other.least >= 0 else ", not proven to be dearer"
        yield Text(f"  {clean(other.name)}: {other.extra:+,.0f} {v.question.currency} ({part:+.2%}){proven}")
        differences = ", ".join(f"{name} {figure}" for name, figure in trades(other, v.question.currency))
        yield Text(f"    {differences or 'the same in purchases, power and space'}", style="dim")
    if v.others_missing:
        yield Text(f"  {v.others_missing}", style="dim")


def _futures(v: PlanView, futures: Futures, tornado: Sequence[Effect]) -> Iterator[RenderableType]:
    yield Text(
        f"  demand is not met in {futures.shortfall.value:.1%} of them "
        f"({futures.shortfall.lo:.1%} to {futures.shortfall.hi:.1%}); "
        f"target: at most {1 - v.question.quantile:.1%}"
    )
    last = futures.table[futures.table["period"] == len(v.question.periods) - 1]
    table = _table("servers needed, last period", "p50", "p90", "p95", "in the plan", "short in")
    for row in last.to_dict("records"):
        sizes = [f"{row[f'servers_{p}']:,.0f}" for p in ("p50", "p90", "p95")]
        table.add_row(clean(row["workload"]), *sizes, f"{row['servers']:,.1f}", f"{row['shortfall']:.1%}")
    yield table
    moving = [e for e in tornado if e.size > 0][:MOST]
    if moving:
        yield Text(
            "  what the cost depends on: its change when one input alone is at the low or high end of its range "
            "(5 and 95%, or ±10% if no range is known)"
        )
        money = v.question.currency
        table = _table("", "low end", "high end", f"at low end, {money}", f"at high end, {money}")
        for e in moving:
            ends = ["no plan" if x is None else f"{x:+,.0f}" for x in (e.at_low, e.at_high)]
            table.add_row(f"  {clean(e.name)}", f"x {e.low:.3g}", f"x {e.high:.3g}", *ends)
        yield table


def _margin(v: PlanView) -> str:
    named = []
    for w in v.question.workloads:
        factors = [v.plan.factor(w, t) for t in range(len(v.question.periods))]
        named.append(f"{clean(w)} {factors[0]:.2f} to {factors[-1]:.2f}")
    return f"planned for more than the median demand, by a factor from first to last period: {', '.join(named)}"


def conflict(q: Question, conflict: Conflict) -> list[RenderableType]:
    """Why there is no plan, and which relaxations would give one."""
    head = f"No plan meets this: {count(len(conflict.limits), 'limit')} cannot hold together"
    parts: list[RenderableType] = [Text(head, style="bold red")]
    for limit in conflict.limits:
        if limit.relax is None:
            others = " and ".join(limit.beside) or "the others"
            change = f"changing it alone does not help: {others} still cannot hold together"
        else:
            cost = f"; the plan then costs {limit.cost:,.0f} {q.currency}" if limit.cost is not None else ""
            by, unit = (limit.relax / 1000, "kW") if limit.unit == "W" else (limit.relax, limit.unit)
            figure = f"{by:,.0f}" if by >= 1e4 else significant(by, 4)
            change = f"alone it must be relaxed by {figure} {unit}{cost}"
        parts.append(Text(f"  {clean(limit.name)}: {clean(change)}"))
    if not conflict.smallest:
        parts.append(Text("  (a smaller set of limits in conflict may exist)", style="dim"))
    return parts
