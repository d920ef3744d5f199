"""Build the tables of a capacity plan: purchases, costs, capacity, sites, limits, scenarios, risks and inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.base.text import joined, message
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.sku import Sku
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.planner.cost.margin import gross_margins
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, compact, figure, number, share
from fleetmark.reports.plan import scenarios
from fleetmark.reports.plan.front import RANGES, SAVINGS, drawn, kilowatts, servers_of, step
from fleetmark.reports.plan.model import (
    NEAR,
    Load,
    Order,
    PlanView,
    Served,
    Supply,
    availability,
    kind,
    price_of,
    served,
    shares_with,
)

MOST_ORDERS, MOST_LINES = 40, 8  # maximum rows in a terminal: of orders, and of limits or inputs


def orders(v: PlanView) -> Tabular:
    """Return a row for each purchase."""
    columns = (
        Column("period", message("order in"), "name"),
        Column("site", message("site")),
        Column("sku", message("SKU")),
        Column("servers", message("servers"), "number"),
        Column("arrives", message("in use from")),
        Column("money", v.question.currency, "number"),
    )
    rows = tuple(
        (
            *_placed(v, order),
            Cell(message("after the plan")) if order.arrives is None else Cell(v.question.periods[order.arrives]),
            number(order.money),
        )
        for order in v.orders
    )
    return Tabular("buy", message("Purchases"), columns, rows, limits={"terminal": MOST_ORDERS})


def retired(v: PlanView) -> Tabular:
    """Return a row for each retirement."""
    columns = (
        Column("period", message("retire in"), "name"),
        Column("site", message("site")),
        Column("sku", message("SKU")),
        Column("servers", message("servers"), "number"),
        Column("money", message("migration"), "number", unit=v.question.currency),
    )
    rows = tuple((*_placed(v, order), number(order.money)) for order in v.retired)
    return Tabular("retire", message("Retired"), columns, rows, limits={"terminal": MOST_ORDERS})


def _placed(v: PlanView, order: Order) -> tuple[Cell, Cell, Cell, Cell]:
    return Cell(v.question.periods[order.period]), Cell(order.site), Cell(order.sku), number(order.count)


def costs(v: PlanView) -> Tabular:
    """Return the costs by kind and year, and their total."""
    columns = (
        Column("kind", message("kind"), "name"),
        *(Column(year, year, "number") for year in v.years),
        Column("present", message("present value"), "number"),
    )
    rows = [(Cell(kind(name)), *map(number, (*by_year, present))) for name, (by_year, present) in v.costs.items()]
    total = [Cell(fmt.money(x), x, tone="strong") for x in (*map(v.in_year, range(len(v.years))), v.plan.objective)]
    title = message("Cost, {currency}", currency=v.question.currency)
    return Tabular("costs", title, columns, (*rows, (Cell(message("all"), tone="strong"), *total)))


def cash(v: PlanView) -> Tabular:
    """Return capital and operating expenses by year, and the depreciation of purchases if there is any."""
    money = v.cash
    columns = (Column("figure", message("figure"), "name"), *(Column(year, year, "number") for year in v.years))
    rows = [
        (message("capital expenses (purchases)"), money.capex),
        (message("operating expenses"), money.opex),
        (message("worth at the end"), money.at_end),
        (message("total"), money.total),
    ]
    if v.question.depreciation:
        rows += [
            (message("depreciation"), money.depreciation),
            (message("paid, not yet depreciated"), money.book),
        ]
    shown = [(Cell(label), *map(number, values.tolist())) for label, values in rows if values.any()]
    title = message("Capital and operating expenses by year, {currency}", currency=v.question.currency)
    return Tabular("cash", title, columns, shown)


def margins(v: PlanView) -> Tabular:
    """Return the revenue, the share of costs and the gross margin of each workload; no rows without revenue."""
    columns = (
        Column("workload", message("workload"), "name"),
        Column("revenue", message("revenue"), "number"),
        Column("cost", message("cost"), "number"),
        Column("margin", message("gross margin"), "number"),
        Column("share", message("of revenue"), "number"),
    )
    rows = [
        (Cell(m.workload), *map(number, (m.revenue, m.cost, m.margin)), Cell() if m.share is None else share(m.share))
        for m in gross_margins(v.answer.ledger)
    ]
    title = message("Revenue and gross margin, {currency}, present value", currency=v.question.currency)
    note = message("Costs of servers are shared in proportion to the servers that are assigned to each workload.")
    return Tabular("margins", title, columns, rows, notes=(note,))


def capacity(v: PlanView) -> Tabular:
    """Return capacity and demand of each workload in its first, its tightest and its last period."""
    chosen: list[Supply] = []
    for workload in v.question.workloads:
        supply = v.supply_of(workload)
        periods = {s.period: s for s in (supply[0], min(supply, key=lambda s: s.spare), supply[-1])}
        chosen += [periods[t] for t in sorted(periods)]
    columns = (
        Column("workload", message("workload"), "name"),
        Column("unit", message("unit")),
        Column("period", message("period")),
        Column("demand", message("demand"), "number"),
        Column("planned", message("planned for"), "number"),
        Column("capacity", message("capacity"), "number"),
        *_USE,
        *_bound(v),
    )
    rows = [
        (*_named(v, s), *map(figure, (s.demand, s.planned, s.capacity)), *_use(s), *_bound_by(v, s)) for s in chosen
    ]
    return Tabular("capacity", message("Capacity against demand"), columns, rows)


def capacity_by_period(v: PlanView) -> Tabular:
    """Return capacity and demand of each workload in each period."""
    columns = (
        Column("workload", message("workload"), "name"),
        Column("unit", message("unit"), only=("html", "xlsx", "csv", "json")),  # on paper, the table above has it
        Column("period", message("period")),
        Column("demand", message("demand, median"), "number"),
        Column("margin", message("margin"), "number"),
        Column("planned", message("planned for"), "number"),
        Column("capacity", message("capacity"), "number"),
        Column("all_up", message("with all sites up"), "number"),
        Column("nothing", message("if nothing is bought"), "number"),
        *_USE,
        *_bound(v),
    )
    rows = []
    for s in v.supply:
        margin = v.plan.factor(s.workload, s.period)
        amounts = map(figure, (s.planned, s.capacity, s.all_up, s.nothing))
        median, factor = figure(s.demand), Cell(fmt.factor(margin), margin)
        rows.append((*_named(v, s), median, factor, *amounts, *_use(s), *_bound_by(v, s)))
    return Tabular("capacity_by_period", message("Capacity in all periods"), columns, rows)


_USE = (
    Column("servers", message("servers"), "number"),
    Column("load", message("load"), "number"),
    Column("load_lost", message("load, one lost"), "number"),
)


def _bound(v: PlanView) -> tuple[Column, ...]:
    """Return the column of the resource that limits the servers, if any workload needs resources."""
    some = any(work.needs for work in v.question.workloads.values())
    return (Column("bound_by", message("bound by")),) if some else ()


def _bound_by(v: PlanView, s: Supply) -> tuple[Cell, ...]:
    """Return the resources that limit a workload's servers, sorted by the number of servers that each limits."""
    shares = sorted(s.bound_by.items(), key=lambda item: -item[1])
    names = [(message("speed") if not name else fmt.clean(name), part) for name, part in shares]
    listed = [name if part > 1 - NEAR else joined([name, fmt.share(part, 0)], " ") for name, part in names]
    return (Cell(joined(listed)),) if _bound(v) else ()


def _named(v: PlanView, s: Supply) -> tuple[Cell, Cell, Cell]:
    return Cell(s.workload), Cell(v.question.workloads[s.workload].unit), Cell(v.question.periods[s.period])


def _use(s: Supply) -> tuple[Cell, Cell, Cell]:
    return Cell(servers_of(s), s.servers), share(s.load, 0), share(s.load_lost, 0)


def sites(v: PlanView) -> Tabular:
    """Return the servers of each site and the highest use of each limit in any period."""
    rows = []
    for site in v.question.sites:
        loads = [load for load in v.loads if load.site == site]
        top = max(loads, key=lambda load: load.power_w)
        used = [
            Cell(f"{max(load.servers for load in loads):,}", max(load.servers for load in loads)),
            _power(max(load.mean_w for load in loads)),
            _power(max(load.failover_w for load in loads)),
            _power(top.power_w),
            _power(top.power_limit_w),
            number(max(load.rack_units for load in loads)),
            number(top.rack_limit),
            number(max(load.ports for load in loads)),
            number(top.port_limit),
        ]
        rows.append((Cell(site), *used))
    columns = (Column("site", message("site"), "name"), *_LIMITED)
    return Tabular("sites", message("Sites, the most in any period"), columns, rows)


def sites_by_period(v: PlanView) -> Tabular:
    """Return the servers of each site and its use of each limit in each period."""
    columns = (Column("site", message("site"), "name"), Column("period", message("period")), *_LIMITED)
    rows = [(Cell(s.site), Cell(v.question.periods[s.period]), *_limited(s)) for s in v.loads]
    return Tabular("sites_by_period", message("Sites in all periods"), columns, rows)


_LIMITED = (
    Column("servers", message("servers"), "number"),
    Column("mean_w", message("mean kW"), "number"),
    Column("failover_w", message("kW, one lost"), "number"),
    Column("power_w", message("kW at peak"), "number"),
    Column("power_limit_w", message("power limit"), "number", unit="kW"),
    Column("rack_units", message("rack units"), "number"),
    Column("rack_limit", message("rack-unit limit"), "number"),
    Column("ports", message("ports"), "number"),
    Column("port_limit", message("port limit"), "number"),
)


def _limited(s: Load) -> tuple[Cell, ...]:
    power = map(_power, (s.mean_w, s.failover_w, s.power_w, s.power_limit_w))
    return (number(s.servers), *power, *map(number, (s.rack_units, s.rack_limit, s.ports, s.port_limit)))


def _power(watts: float | None) -> Cell:
    return Cell() if watts is None else Cell(kilowatts(watts), watts, "W")


def bindings(v: PlanView) -> Tabular:
    """Return the binding limits, and the saving from relaxing each by one unit."""
    columns = (
        Column("limit", message("limit"), "name"),
        Column("step", message("relaxed by")),
        Column("saves", message("saves"), "number", unit=v.question.currency),
    )
    rows = [(Cell(b.name), Cell(step(b)), number(price_of(b)[0])) for b in v.by_price]
    title = message("What limits the plan, and what relaxing each limit by one unit would save")
    return Tabular("binding", title, columns, rows, notes=(SAVINGS,), limits={"terminal": MOST_LINES})


def compared(answer: Answer) -> Tabular:
    """Return the figures of the plan, and the differences of each scenario from it."""
    columns = (
        Column("figure", message("figure"), "name"),
        Column("unit", message("unit")),
        Column("plan", message("plan"), "number"),
        *(Column(s.name, s.name, "number") for s in answer.scenarios),
    )
    rows = [
        (Cell(row.name), Cell(row.unit), number(row.plan), *(Cell(scenarios.shown(x), x) for x in row.differences))
        for row in scenarios.rows(answer)
    ]
    return Tabular("scenarios", message("Scenarios, as differences to the plan"), columns, rows)


def needed(v: PlanView, futures: Futures) -> Tabular:
    """Return the servers that each workload needs in the last period, by share of the simulated futures."""
    quantiles = ("p50", "p90", "p95")
    columns = (
        Column("workload", message("workload"), "name"),
        *(Column(f"servers_{p}", p, "number") for p in quantiles),
        Column("servers", message("in the plan"), "number"),
        Column("shortfall", message("short in"), "number"),
    )
    last = futures.table[futures.table["period"] == len(v.question.periods) - 1]
    rows = [
        (
            Cell(row["workload"]),
            *(Cell(fmt.servers(row[f"servers_{p}"]), row[f"servers_{p}"]) for p in quantiles),
            Cell(fmt.servers_shared(row["servers"]), row["servers"]),
            share(row["shortfall"]),
        )
        for row in last.to_dict("records")
    ]
    title = message("Servers needed in {period} across {n} simulated futures (seed {seed})", **drawn(v, futures))
    return Tabular("futures", title, columns, rows)


def drivers(v: PlanView, effects: Sequence[Effect]) -> Tabular:
    """Return the change of the present value with each input at the ends of its range."""
    money = v.question.currency
    columns = (
        Column("name", message("input"), "name"),
        Column("low", message("low end"), "number"),
        Column("high", message("high end"), "number"),
        Column("at_low", message("at low end, {currency}", currency=money), "number"),
        Column("at_high", message("at high end, {currency}", currency=money), "number"),
    )
    rows = [
        (
            Cell(e.name),
            *(Cell(f"× {fmt.factor(factor)}", factor) for factor in (e.low, e.high)),
            *(
                Cell(message("no plan")) if change is None else Cell(fmt.change_of_money(change), change)
                for change in (e.at_low, e.at_high)
            ),
        )
        for e in effects
    ]
    title = message("What drives the cost")
    return Tabular("tornado", title, columns, rows, notes=(RANGES,), limits={"terminal": MOST_LINES})


def worth(v: PlanView) -> Tabular:
    """Return the equivalence and utilisation of one server, by workload and SKU."""
    columns = (
        Column("workload", message("workload"), "name"),
        Column("sku", message("SKU")),
        Column("worth", message("worth"), "number"),
        Column("utilisation", message("utilisation"), "number"),
        Column("source", message("worth from")),
        Column("why", message("utilisation from")),
    )
    rows = tuple(map(_worth, served(v.question)))
    return compact(Tabular("worth", message("Worth and utilisation of one server"), columns, rows))


def _worth(row: Served) -> tuple[Cell, ...]:
    lo, hi = (None, None) if row.worth.lo == row.worth.hi else (row.worth.lo, row.worth.hi)
    ends = "" if lo is None or hi is None else f"{fmt.figure(lo)}–{fmt.figure(hi)}"
    value = Cell(fmt.figure(row.worth.value), row.worth.value, lo=lo, hi=hi, ends=ends)
    return (Cell(row.workload), Cell(row.sku), value, share(row.utilisation), Cell(row.source), Cell(row.reason))


def skus(v: PlanView) -> Tabular:
    """Return the price, power and limits of each SKU."""
    columns = (
        Column("sku", message("SKU"), "name"),
        Column("price", message("price"), "number", unit=v.question.currency),
        Column("idle_w", message("idle"), "number", unit="W"),
        Column("peak_w", message("peak"), "number", unit="W"),
        Column("rack_units", message("rack units"), "number"),
        Column("lead", message("lead, periods"), "number"),
        Column("age_limit", message("age limit, periods"), "number"),
        Column("in_place", message("in place"), "number"),
    )
    return Tabular("skus", message("Servers"), columns, [_sku(v, sku) for sku in v.question.skus.values()])


def _sku(v: PlanView, sku: Sku) -> tuple[Cell, ...]:
    price = Cell(message("not sold")) if sku.price is None else number(sku.price)
    sizes = map(figure, (sku.idle_w, sku.peak_w, sku.rack_units))
    counts = map(number, (sku.lead, sku.age_limit, v.in_place(sku.name)))
    return (Cell(sku.name), price, *sizes, *counts)


def workloads(v: PlanView) -> Tabular:
    """Return the placement of each workload: its unit, availability, neighbours and sites."""
    q = v.question
    columns = (
        Column("workload", message("workload"), "name"),
        Column("unit", message("unit")),
        Column("when_lost", message("when a failure domain is lost")),
        Column("shares", message("shares servers with")),
        Column("sites", message("sites")),
    )
    rows = [
        (
            Cell(w.name),
            Cell(w.unit),
            Cell(availability(q.availability(w.name))),
            Cell(shares_with(q, w.name)),
            Cell(", ".join(sorted(w.sites)) if w.sites else message("all")),
        )
        for w in q.workloads.values()
    ]
    return Tabular("workloads", message("Workloads"), columns, rows)


def sources(source: Mapping[str, Any]) -> Tabular:
    """Return the files and versions from which the question was read."""
    columns = (
        Column("source", message("source"), "name", name="question_source"),
        Column("version", message("version or hash"), "code", name="question_source"),
    )
    return Tabular("sources", message("Sources"), columns, [(Cell(k), Cell(str(x))) for k, x in source.items()])
