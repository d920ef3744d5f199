"""Build the tables of the plan: the solver's decisions, the resulting stock, and the allocation of servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from fleetmark.base.text import message
from fleetmark.demand.columns import PRICE, YES
from fleetmark.planner.capacity.question import PREEMPTIBLE
from fleetmark.planner.capacity.sku import LIQUID
from fleetmark.planner.cost.cash import depreciated
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.plan.workbook import shares
from fleetmark.reports.plan.workbook.cells import (
    COUNT,
    MONEY,
    SHARE,
    across,
    by_period,
    decided,
    down,
    grid,
    live,
    names,
    numbers,
    periods,
    plain,
    ref,
    total,
)
from fleetmark.reports.plan.workbook.numbers import Floats, Numbers

_WORK = "#,##0.0;-#,##0.0;–"


def pair_labels() -> tuple[Column, ...]:
    """Return the columns that name a SKU at a site."""
    return names(sku=message("SKU"), site=message("site"))


def pair_names(n: Numbers) -> list[tuple[Cell, Cell]]:
    """Return the names of each SKU at a site as references to the first table of the purchase plan."""
    return [(live(ref("buy", "sku", i), s), live(ref("buy", "site", i), k)) for i, (s, k) in enumerate(n.pairs)]


def tables(n: Numbers) -> Iterator[Tabular]:
    """Yield what to order, retire and switch on, the resulting stock, and the workings behind costs."""
    given = [(Cell(s), Cell(k)) for s, k in n.pairs]
    for key, title, values in (
        ("buy", message("Servers to order, by period of the order (as solved)"), n.buy),
        ("retire", message("Servers to retire (as solved)"), n.retire),
        ("active", message("Active servers, switched on for work (as solved)"), n.active),
    ):
        last = () if key == "active" else (total(values, COUNT),)
        cell = partial(_decision, values)
        yield by_period(n, key, title, pair_labels(), given if key == "buy" else pair_names(n), cell, COUNT, last=last)
    arriving = message("Arriving: ordered one lead time earlier, or on order at the start")
    yield _pairs(n, "arrive", arriving, partial(_arriving, n), n.arrive, COUNT)
    installed = message("Installed: previous stock plus arrivals, minus retirements")
    yield _pairs(n, "installed", installed, _installed, n.installed, COUNT)
    load = message("Load of the active servers with everything up, for their energy")
    yield _pairs(n, "load", load, _load, n.load_of_active, SHARE)
    paid = message("Price of one (of a SKU with price breaks as solved)")
    yield _pairs(n, "paid", paid, partial(_paid, n), n.paid, PRICE, is_working=True)
    kept = message("Ordered servers in place at the end, by period of arrival")
    yield _pairs(n, "kept", kept, partial(_kept, n), n.left, COUNT, is_working=True)
    worth = message("Their residual value at the end")
    yield _pairs(n, "kept_worth", worth, partial(_kept_worth, n), n.left_worth, MONEY, is_working=True)
    if n.question.depreciation:
        title = message("Depreciation of purchases, from their arrival on")
        yield _pairs(n, "depreciated", title, partial(_depreciated, n), depreciated(n), MONEY, is_working=True)
    if any(key == "energy_price" for key, _ in n.series):
        q = n.question
        prices = np.array(
            [[q.price_of_energy(k, t) / q.energy_level(t) for t in range(n.periods)] for _, k in n.pairs]
        ).reshape(n.buy.shape)
        title = message("Energy price, before its change a year")
        yield _pairs(n, "energy_prices", title, partial(_energy_price, n), prices, "0.0000", is_working=True)
    yield _figures(n)


def _pairs(
    n: Numbers, key: str, title: str, formula: Callable[[int, int], str], values: Floats, form: str, **more: Any
) -> Tabular:
    """Return a table with a row per SKU and site."""

    def cell(i: int, t: int) -> Cell:
        return live(formula(i, t), values[i, t])

    return by_period(n, key, title, pair_labels(), pair_names(n), cell, form, **more)


def _decision(values: Floats, i: int, t: int) -> Cell:
    return decided(values[i, t])


def _ordered(n: Numbers, i: int, t: int) -> str:
    """Return the orders that arrive in a period."""
    late = f"{ref('periods', 'no', t)}-{ref('figures', 'lead', i)}"
    return f"IF({late}<1,0,INDEX({across('buy', i, n.periods - 1)},{late}))"


def _arriving(n: Numbers, i: int, t: int) -> str:
    arrives = f"EXACT(fleet_arrives,{ref('periods', 'name', t)})"
    placed = f"EXACT(fleet_sku,{{sku}})*EXACT(fleet_site,{{site}})*{arrives}*fleet_count"
    return f"{_ordered(n, i, t)}+SUMPRODUCT({placed})"


def _installed(i: int, t: int) -> str:
    before = f"{{p{t - 1}}}" if t else ref("figures", "start", i)
    return f"{before}+{ref('arrive', t, i)}-{ref('retire', t, i)}"


def _load(i: int, t: int) -> str:
    shares = "*".join(down("allocation", key) for key in ("used", f"runs_{t}", f"servers_{t}"))
    busy = f"SUMPRODUCT(({down('allocation', 'pair_no')}={i + 1})*{shares})"
    return f"IF({ref('active', t, i)}=0,0,{busy}/{ref('active', t, i)})"


def _paid(n: Numbers, i: int, t: int) -> str:
    row = n.skus.index(n.pairs[i][0])
    level = n.question.price_level(n.pairs[i][0], t)
    first = float(n.paid[i, t]) / level if level else 0.0
    price = f'IF({ref("skus", "price_breaks", row)}="",N({ref("skus", "price", row)}),{first!r})'
    return f"{price}*{_level(n, row, str(t), ref('periods', 'begins', t))}"


def _level(n: Numbers, row: int, period: str, begins: str) -> str:
    """Return the SKU's price relative to its first price, ordered in a ``period`` that starts at ``begins``."""
    sku = n.skus[row]
    if ("price", sku) not in n.series:
        return f"(1+N({ref('skus', 'price_change', row)}))^{begins}"
    j = list(n.series).index(("price", sku))
    price = ref("skus", "price", row)
    now = f"INDEX({across('series', j, n.periods - 1)},1,{period}+1)"
    return f"IF(N({price})=0,1,N({now})/{price})"


def _depreciated(n: Numbers, i: int, t: int) -> str:
    bought, paid = (across(key, i, n.periods - 1) for key in ("buy", "paid"))
    arrives = f"(COLUMN({bought})-COLUMN({ref('buy', 0, i)})+{ref('figures', 'lead', i)})"
    inside = f"({arrives}<={t})*({arrives}>{t}-N(question_depreciation))"
    return f"IF(N(question_depreciation)=0,0,SUMPRODUCT({inside}*{bought}*{paid})/question_depreciation)"


def _energy_price(n: Numbers, i: int, t: int) -> str:
    site = n.pairs[i][1]
    general = n.series_cell("energy_price", "", t) or "question_energy_price"
    local = ref("sites", "energy_price", n.sites.index(site))
    return n.series_cell("energy_price", site, t) or f'IF({local}="",{general},{local})'


def _kept(n: Numbers, i: int, t: int) -> str:
    rest = f"-SUM({across('kept', i, n.periods - 1, t + 1)})" if t + 1 < n.periods else ""
    limit = ref("figures", "age_limit", i)
    new = f'{n.periods - t}<=IF({limit}="",{n.periods},{limit})'
    return f"IF({new},MIN({_ordered(n, i, t)},{ref('installed', n.periods - 1, i)}{rest}),0)"


def _kept_worth(n: Numbers, i: int, t: int) -> str:
    sku = n.pairs[i][0]
    breaks, price = ref("skus", "price_breaks", n.skus.index(sku)), ref("figures", "price", i)
    ordered = f"MAX({t}-{ref('figures', 'lead', i)},0)"
    level = _level(n, n.skus.index(sku), ordered, f"(question_years*{ordered})")
    one = f'IF({breaks}="",{price},{n.question.skus[sku].least_price!r})*{level}'
    share = ref("figures", "residual", i)
    return f"IF({share}=0,0,{ref('kept', t, i)}*{one}*{share}^(question_years*{n.periods - t}))"


def _figures(n: Numbers) -> Tabular:
    """Return the figures of each row's SKU and site, for the formulas above and for those of Cost."""
    q = n.question
    servers, yearly = message("servers"), message("{money} a year", money=q.currency)
    columns = (
        numbers("start", message("in place at the start"), unit=servers),
        numbers("price", message("price"), unit=q.currency),
        numbers("idle_w", message("power idle"), unit="W"),
        numbers("swing", message("peak less idle"), unit="W"),
        numbers("peak", message("power against the limit"), unit="W"),
        numbers("rack_units", message("rack units"), unit="U"),
        numbers("ports", message("ports")),
        numbers("rent", message("rent"), unit=yearly),
        numbers("support", message("support"), unit=yearly),
        numbers("space", message("space"), unit=yearly),
        numbers("migration", message("moving off one"), unit=q.currency),
        numbers("embodied", message("embodied carbon"), unit="kg CO2e"),
        numbers("lead", message("lead time, with what is allowed for late ones"), unit=message("periods"), width=18),
        numbers("age_limit", message("age limit"), unit=message("periods")),
        numbers("minimum_order", message("minimum order"), unit=servers),
        numbers("spares", message("spares"), unit=servers),
        numbers("spare_share", message("spares, as a share"), "0.0%", unit=message("share of servers")),
        numbers("kwh", message("one W over a period"), "0.0000", unit="kWh"),
        numbers("watt", message("one W over a period"), "0.0000", unit=q.currency),
        numbers("site_no", message("no. of the site")),
        numbers("racks", message("positions for racks")),
        numbers("liquid", message("liquid-cooled positions")),
        numbers("residual", message("keeps of its price"), unit=message("a year")),
        numbers("term", message("least service"), unit=message("periods")),
        numbers("unavailable", message("down on average"), "0.00%", unit=message("share of servers")),
    )

    def row(i: int) -> Sequence[Cell]:
        s, k = n.pairs[i]
        sku, site, place = q.skus[s], q.sites[k], n.sites.index(k)

        def sku_ref(field: str) -> str:
            return ref("skus", field, n.skus.index(s))

        def sku_cell(field: str) -> Cell:
            return live(sku_ref(field), getattr(sku, field))

        start = 'SUMPRODUCT(EXACT(fleet_sku,{sku})*EXACT(fleet_site,{site})*(fleet_arrives="")*fleet_count)'
        rack = ref("sites", "rack_w", place)
        share = f"IF(OR(N({rack})=0,{{peak}}=0),0,1/MAX(INT({rack}/{{peak}}),1))"
        racks = f"IF(N({sku_ref('racks')})>0,{sku_ref('racks')},{share})"
        taken, is_liquid = q.positions(s, k), f'{sku_ref("cooling")}="{LIQUID}"'
        price = q.energy(k) * q.price_of_energy(k, 0)
        failing = f"(N({sku_ref('failure_rate')})*N({sku_ref('repair')})*question_years)"
        return (
            *pair_names(n)[i],
            live(start, n.start[i]),
            live(f"N({sku_ref('price')})", n.price(s)),
            sku_cell("idle_w"),
            live(f"{sku_ref('peak_w')}-{sku_ref('idle_w')}", sku.peak_w - sku.idle_w),
            live(f'IF({sku_ref("provisioned_w")}="",{sku_ref("peak_w")},{sku_ref("provisioned_w")})', sku.budgeted_w),
            *map(sku_cell, ("rack_units", "ports")),
            live(f"N({sku_ref('rent')})", sku.rent),
            *map(sku_cell, ("support", "space", "migration", "embodied")),
            live(f'{sku_ref("lead")}+IF({sku_ref("slips")}="",0,{sku.allowance})', sku.delay),
            live(f'IF({sku_ref("age_limit")}="","",{sku_ref("age_limit")})', sku.age_limit),
            sku_cell("minimum_order"),
            live(ref("sites", "spares", place), site.spares),
            live(f"N({ref('sites', 'spare_share', place)})", site.spare_share),
            live(ref("sites", "kwh", place), q.energy(k)),
            live(ref("sites", "watt", place), price),
            live(f"{place + 1}", place + 1),
            live(f"IF({is_liquid},0,{racks})", 0.0 if sku.liquid else taken),
            live(f"IF({is_liquid},{racks},0)", taken if sku.liquid else 0.0),
            live(f"N({sku_ref('residual')})", sku.residual),
            live(f"N({sku_ref('term')})", sku.term),
            live(f"{failing}/(1+{failing})", q.unavailability(s)),
        )

    title = message("Figures behind each row, from SKU & TCO, Sites and Fleet")
    return grid("figures", title, (*pair_labels(), *columns), len(n.pairs), row, is_working=True)


# --- allocation ------------------------------------------------------------------------------------------------------


def allocation(n: Numbers) -> Tabular:
    """Return which share of whole servers serves each workload, and the work that it can do."""
    one_or_zero, of_server = message("1 or 0"), message("share of a server")
    columns = (
        *names(workload=message("workload"), sku=message("SKU"), site=message("site")),
        numbers("workload_no", message("no. of the workload")),
        numbers("pair_no", message("no. of the row in Purchase plan"), width=18),
        numbers("site_no", message("no. of the site"), width=16),
        numbers(
            "rate", message("E u: work of one server"), "#,##0.0000", unit=message("unit of the workload"), width=24
        ),
        numbers("used", message("utilisation"), "0.0%", unit=of_server, width=18),
        *((Column("bound", message("bound by"), width=14),) if n.resources else ()),
        numbers("may", message("may run there"), unit=one_or_zero),
        numbers("stays", message("stays in a failure"), unit=one_or_zero),
        numbers("pool_no", message("row in Pools"), unit=message("0: servers that all share"), width=16),
        *periods(n, COUNT, "servers_", unit=message("whole servers")),
        *periods(n, SHARE, "share_", unit=message("share of them")),
        *periods(n, SHARE, "working_", unit=message("share that works")),
        *periods(n, SHARE, "runs_", unit=message("share that works at the demand now")),
        *periods(n, _WORK, "work_", unit=message("work")),
        *shares.columns_of_combos(n),
    )
    return grid("allocation", message("Allocation"), columns, len(n.combos), partial(_allocated, n))


def _allocated(n: Numbers, c: int) -> Iterator[Cell]:
    q, (w, p), pool_no = n.question, n.combos[c], n.own_of[c]
    s, k = n.pairs[p]
    i, site = n.workloads.index(w), n.sites.index(k)
    yield from (Cell(w), Cell(s), Cell(k), plain(i + 1), plain(p + 1), plain(site + 1))
    e, u = n.worth_cells(w, s)
    yield from (live(f"{e}*{u}", n.rate[c]), live(u, n.used[c]))
    if n.resources:
        yield live(ref("worth", "bound", n.pairs_of_worth.index((s, w))), q.binding(s, w))
    may = not q.workloads[w].sites or k in q.workloads[w].sites
    anywhere, here = down("sites", f"runs_{i}"), ref("sites", f"runs_{i}", site)
    yield live(f'IF(COUNTA({anywhere})=0,1,IF({here}="{YES}",1,0))', float(may))
    yield live(f'IF({ref("workloads", "counts", i)}="{PREEMPTIBLE}",0,1)', float(not q.yields(w)))
    yield plain(0 if pool_no is None else pool_no + 1)
    for t in range(n.periods):
        if pool_no is not None:
            servers = ref("pools", t, pool_no) if pool_no >= 0 else "0"
        else:
            pooled = f"-SUMIFS({down('pools', t)},{down('pools', 'pair_no')},{p + 1})" if n.dedicated_pools else ""
            servers = f"{ref('active', t, p)}{pooled}"
        yield live(servers, n.of_pool[c, t])
    yield from map(decided, n.share[c])
    yield from map(decided, n.share_working[c])
    for t in range(n.periods):
        now, then = ref("planned", t, i), ref("solved_demand", t, i)
        follows = f"MIN({{share_{t}}},{{working_{t}}}*{now}/{then})"
        yield live(f"IF(OR({then}=0,{now}={then}),{{working_{t}}},{follows})", n.share_working[c, t])
    yield from (live(f"{{rate}}*{{share_{t}}}*{{servers_{t}}}", n.capacity[c, t]) for t in range(n.periods))
    yield from shares.of_combo(n, c)


def pools(n: Numbers) -> Tabular:
    """Return a row for each dedicated pool, with the SKU and site of its servers."""
    columns = (
        *names(pool=message("pool"), sku=message("SKU"), site=message("site")),
        numbers("pair_no", message("no. of the row in Purchase plan"), width=18),
        *periods(n, COUNT, unit=message("servers")),
    )

    def row(j: int) -> Sequence[Cell]:
        name, p = n.dedicated_pools[j]
        return (Cell(name), *map(Cell, n.pairs[p]), plain(p + 1), *map(decided, n.pooled[name][p]))

    return grid("pools", message("Pools"), columns, len(n.dedicated_pools), row)
