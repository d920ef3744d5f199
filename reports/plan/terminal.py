"""A capacity plan for a terminal: the first screen, then purchases, costs, capacity, limits, other plans, futures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import Message, count, joined, message
from planner.capacity.answer import Answer
from planner.capacity.question import Alternative, Conflict, Question
from planner.capacity.tornado import Effect
from planner.capacity.uncertainty import Futures
from reports.kit import format as fmt
from reports.kit.format import clean
from reports.kit.language import Language
from reports.plan import scenarios, terms
from reports.plan.front import NO_PLAN, RANGES, SAVINGS, Front, drawn, front, kilowatts, other_plan, saving, servers_of
from reports.plan.model import Order, PlanView, Supply, availability, kind, served, trades, view

MOST = 8  # rows of a list of limits or effects
MOST_ROWS = 40
_Say = Language


def show(answer: Answer, language: Language | None = None) -> list[RenderableType]:
    """What to print, in order, for 80 columns and wider."""
    _ = language or Language()
    if answer.conflict is not None:
        return _conflict(answer.question, answer.conflict, _)
    v = view(answer)
    q, plan, futures = v.question, v.plan, v.futures
    parts: list[RenderableType] = [*_front(v, front(v), _), Text()]
    parts += _part(_(message("Buy")), _orders(v, v.orders, _, buy=True))
    parts += _part(_(message("Retire")), _orders(v, v.retired, _, buy=False))
    parts += _part(_(message("Cost, {currency}", currency=q.currency)), [_costs(v, _)])
    parts += _part(_(message("Capacity against demand")), [_supply(v, _)])
    parts += _part(_(message("Worth and utilisation of one server")), [_served(v, _)])
    parts += _part(_(message("Sites, the most in any period")), [_sites(v, _)])
    parts += _part(_(terms.TITLE), [_item(clean(_(line))) for line in terms.lines(answer.ledger)])
    limits = message("What limits the plan, and what relaxing each limit by one unit would save")
    parts += _part(_(limits), list(_bindings(v, _)))
    parts += _part(_(message("Next best plans")), list(_alternatives(v, v.alternatives, _)))
    if compared := scenarios.rows(answer):
        names = [clean(s.name) for s in answer.scenarios]
        parts += _part(_(message("Scenarios, as differences to the plan")), [_compared(compared, names, _)])
    if futures is not None:
        title = message("Servers needed in {period} across {n} simulated futures (seed {seed})", **drawn(v, futures))
        parts += _part(_(title), [_needed(v, futures, _)])
    parts += _part(_(message("What drives the cost")), list(_drivers(v, v.tornado, _)))
    if plan.margin:
        parts.append(Text(_margin(v, _), style="dim"))
    return parts


def _front(v: PlanView, shown: Front, _: _Say) -> Iterator[RenderableType]:
    yield Text(_(shown.answer), style="bold")
    if shown.now:
        yield Text(_(shown.now))
    yield Text(_(shown.cost))
    yield Text(_(shown.nothing))
    yield from (Text(_(line)) for line in shown.sure)
    years = "   ".join(f"{clean(year)} {cost}" for year, cost in shown.years)
    yield Text(_(message("Cost by year, {currency}: {years}", currency=v.question.currency, years=years)))
    for title, lines in ((message("Largest risks"), shown.risks), (message("What limits it"), shown.limits)):
        if lines:
            yield Text(_(title), style="bold")
            yield from (_item(_(line)) for line in lines)
    prices = message("Prices of {date}; solved in {seconds} s.", date=v.question.date, seconds=f"{v.plan.seconds:.1f}")
    yield Text(_(prices), style="dim")


def _item(text: str) -> Text:
    return Text(f"  {text}")


def _part(title: str, parts: Sequence[RenderableType]) -> list[RenderableType]:
    return [Text(title, style="bold"), *parts, Text()] if parts else []


def _table(*columns: str, left: int = 1) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for n, name in enumerate(columns):
        table.add_column(name, justify="left" if n < left else "right", overflow="fold")
    return table


def _orders(v: PlanView, orders: Sequence[Order], _: _Say, *, buy: bool) -> list[RenderableType]:
    if not orders:
        return []
    q = v.question
    when = _(message("order in")) if buy else _(message("retire in"))
    more = (_(message("in use from")), q.currency) if buy else ()
    table = _table(when, _(message("site")), "SKU", _(message("servers")), *more, left=3)
    for o in orders[:MOST_ROWS]:
        arrives = _(message("after the plan")) if o.arrives is None else clean(q.periods[o.arrives])
        tail = (arrives, fmt.money(o.money)) if buy else ()
        table.add_row(clean(q.periods[o.period]), clean(o.site), clean(o.sku), f"{o.count:,}", *tail)
    out = len(orders) - MOST_ROWS
    more_rows = message("and {n} more; --format json, --xlsx or --html have all", n=out)
    return [table, *([Text(_(more_rows))] if out > 0 else [])]


def _costs(v: PlanView, _: _Say) -> RenderableType:
    table = _table("", *v.years, _(message("present value")))
    for name, (by_year, present) in v.costs.items():
        table.add_row(_(kind(name)), *[fmt.money(m) for m in by_year], fmt.money(present))
    total = [fmt.money(v.in_year(n)) for n in range(len(v.years))]
    table.add_row(_(message("all")), *total, fmt.money(v.plan.objective), style="bold")
    return table


def _supply(v: PlanView, _: _Say) -> RenderableType:
    """Rows per workload: its first, its tightest and its last period."""
    heads = (message("workload"), message("period"), message("demand"), message("planned for"), message("capacity"))
    more = (message("servers"), message("load"), message("load, one lost"))
    table = _table(*[_(head) for head in (*heads, *more)], left=2)
    for w, workload in v.question.workloads.items():
        rows = v.of(w)
        chosen: dict[int, Supply] = {s.period: s for s in (rows[0], min(rows, key=lambda s: s.spare), rows[-1])}
        for n, (_period, s) in enumerate(sorted(chosen.items())):
            name = f"{clean(w)}, {clean(workload.unit)}" if n == 0 else ""
            figures = [fmt.figure(x) for x in (s.demand, s.planned, s.capacity)]
            lost = "" if s.load_lost is None else fmt.share(s.load_lost, 0)
            tail = (_(servers_of(s)), fmt.share(s.load, 0), lost)
            table.add_row(name, clean(v.question.periods[s.period]), *figures, *tail)
    return table


def _served(v: PlanView, _: _Say) -> RenderableType:
    """A row per workload and SKU; the availability of a workload under its name."""
    heads = (message("workload"), "SKU", message("worth"), message("95% interval"), message("utilisation"))
    table = _table(*[_(head) for head in heads], _(message("worth from")), left=2)
    table.columns[-1].justify = "left"
    before = ""
    for row in served(v.question):
        name = f"{clean(row.workload)}, {_(availability(v.question.availability(row.workload)))}"
        worth = row.worth
        span = "" if worth.lo == worth.hi else f"{fmt.figure(worth.lo or 0.0)} – {fmt.figure(worth.hi or 0.0)}"
        first = name if row.workload != before else ""
        figures = (fmt.figure(worth.value), span, fmt.share(row.utilisation))
        table.add_row(first, clean(row.sku), *figures, clean(_(row.source)))
        before = row.workload
    return table


def _sites(v: PlanView, _: _Say) -> RenderableType:
    of = _(message("limit"))
    draws = (message("mean kW"), message("kW, one lost"), message("kW at peak"))
    heads = (*(_(head) for head in draws), of, _(message("rack units")), of, _(message("ports")), of)
    table = _table(_(message("site")), _(message("servers")), *heads)
    for k in v.question.sites:
        mine = [load for load in v.loads if load.site == k]
        top = max(mine, key=lambda load: load.power_w)
        units, plugs = max(m.rack_units for m in mine), max(m.ports for m in mine)
        limits = [
            kilowatts(max(m.mean_w for m in mine)),
            kilowatts(max(m.failover_w for m in mine)),
            kilowatts(top.power_w),
            "" if top.power_limit_w is None else kilowatts(top.power_limit_w),
            fmt.money(units),
            "" if top.rack_limit is None else fmt.money(top.rack_limit),
            fmt.money(plugs),
            "" if top.port_limit is None else fmt.money(top.port_limit),
        ]
        table.add_row(clean(k), f"{max(m.servers for m in mine):,}", *limits)
    return table


def _bindings(v: PlanView, _: _Say) -> Iterator[Text]:
    limits = v.by_price
    for b in limits[:MOST]:
        yield _item(f"{clean(_(b.name))}: {clean(_(saving(v, b)))}")
    if len(limits) > MOST:
        yield _item(_(message("and {n} more", n=len(limits) - MOST)))
    if limits:
        yield Text(_(SAVINGS), style="dim")


def _alternatives(v: PlanView, others: Sequence[Alternative], _: _Say) -> Iterator[Text]:
    for other in others:
        yield _item(_(other_plan(v, other)))
        figures = ", ".join(f"{_(name)} {figure}" for name, figure in trades(other, v.question.currency))
        yield Text(f"    {figures or _(message('the same in purchases, power and space'))}", style="dim")
    if v.others_missing:
        yield _item(_(v.others_missing))


def _compared(rows: Sequence[scenarios.Row], names: Sequence[str], _: _Say) -> RenderableType:
    table = _table("", _(message("plan")), *names)
    for row in rows:
        unit = _(row.unit) if isinstance(row.unit, Message) else clean(row.unit)
        differences = [_(scenarios.shown(value)) for value in row.differences]
        table.add_row(f"{_(row.name)}, {unit}", fmt.money(row.plan), *differences)
    return table


def _needed(v: PlanView, futures: Futures, _: _Say) -> RenderableType:
    last = futures.table[futures.table["period"] == len(v.question.periods) - 1]
    table = _table(_(message("workload")), "p50", "p90", "p95", _(message("in the plan")), _(message("short in")))
    for row in last.to_dict("records"):
        sizes = [fmt.servers(row[f"servers_{p}"]) for p in ("p50", "p90", "p95")]
        table.add_row(clean(row["workload"]), *sizes, fmt.servers_shared(row["servers"]), fmt.share(row["shortfall"]))
    return table


def _drivers(v: PlanView, tornado: Sequence[Effect], _: _Say) -> Iterator[RenderableType]:
    moving = [e for e in tornado if e.size > 0][:MOST]
    if not moving:
        return
    yield Text(_(RANGES), style="dim")
    money = v.question.currency
    low, high = (
        _(message("at low end, {currency}", currency=money)),
        _(message("at high end, {currency}", currency=money)),
    )
    table = _table(_(message("input")), _(message("low end")), _(message("high end")), low, high)
    for e in moving:
        ends = [_(message("no plan")) if x is None else fmt.change_of_money(x) for x in (e.at_low, e.at_high)]
        table.add_row(clean(_(e.name)), f"× {fmt.factor(e.low)}", f"× {fmt.factor(e.high)}", *ends)
    yield table
    if any(x is None for e in moving for x in (e.at_low, e.at_high)):
        yield Text(_(NO_PLAN), style="dim")


def _margin(v: PlanView, _: _Say) -> str:
    named = []
    for w in v.question.workloads:
        factors = [v.plan.factor(w, t) for t in range(len(v.question.periods))]
        ends = {"first": fmt.factor(factors[0]), "last": fmt.factor(factors[-1])}
        named.append(message("{workload} {first} to {last}", workload=clean(w), **ends))
    return _(message("Planned demand over median demand, first to last period: {margins}", margins=joined(named)))


def _conflict(q: Question, conflict: Conflict, _: _Say) -> list[RenderableType]:
    """Why there is no plan, and which relaxations would give one."""
    limits = count(len(conflict.limits), "limit")
    head = message("No plan is possible: {limits} cannot hold together", limits=limits)
    parts: list[RenderableType] = [Text(_(head), style="bold red")]
    for limit in conflict.limits:
        if limit.relax is None:
            others: str = joined(limit.beside, message(" and ")) or message("the others")
            change: Message = message(
                "changing it alone does not help: {others} still cannot hold together", others=others
            )
        else:
            by, unit = (limit.relax / 1000, "kW") if limit.unit == "W" else (limit.relax, limit.unit)
            change = message("alone it must be relaxed by {by} {unit}", by=fmt.amount(by), unit=unit)
            if limit.cost is not None:
                cost = f"{fmt.money(limit.cost)} {q.currency}"
                change = message("{change}; the plan then costs {cost}", change=change, cost=cost)
        parts.append(_item(f"{clean(_(limit.name))}: {clean(_(change))}"))
    if not conflict.smallest:
        parts.append(Text(f"  {_(message('(a smaller set of limits in conflict may exist)'))}", style="dim"))
    return parts
