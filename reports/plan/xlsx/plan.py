"""The tabs of the plan: the solver's decisions, the resulting stock, the allocation of servers, and the costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fleetmark.base.text import Message, message
from fleetmark.demand import equipment
from fleetmark.demand.columns import INTEGER, LIQUID, PRICE, YES
from fleetmark.planner.capacity.question import KINDS, PREEMPTIBLE
from fleetmark.reports.kit.workbook import Book, Head, cell
from fleetmark.reports.plan.xlsx.inputs import columns_at
from fleetmark.reports.plan.xlsx.layout import (
    COMBO,
    FIGURES,
    HEAD,
    POOL,
    Block,
    Places,
    headed,
    named,
    period_heads,
    right_aligned,
)
from fleetmark.reports.plan.xlsx.numbers import Floats, Numbers

_COUNT, _SHARE, FIGURE = "#,##0;-#,##0;–", "0.0%;-0.0%;–", "#,##0.0;-#,##0.0;–"


def write(book: Book, at: Places, n: Numbers) -> None:
    """Write these tabs."""
    _plan(at, n)
    _figures(at, n)
    _allocation(at, n)
    _cost(book, at, n)


def _labelled(block: Block, title: Message, at: Places, n: Numbers, last: tuple[Head, ...] = ()) -> None:
    """A block with a row per pair."""
    headed(block, title, [Head(message("SKU"), width=20), Head(message("site"), width=16)], n, last)
    _pairs(block, at, n)


def _pairs(block: Block, at: Places, n: Numbers) -> None:
    """The names of the pairs: texts in the first block, references to it in the others."""
    for i, (s, k) in enumerate(n.pairs):
        if block is at.buy:
            block.sheet.text(block.row + i, 0, s, "strong")
            block.sheet.text(block.row + i, 1, k, "strong")
        else:
            for col, name in enumerate((s, k)):
                block.sheet.formula(block.row + i, col, f"={cell(at.buy.row + i, col)}", name, role="word")


def figure(at: Places, name: str) -> int:
    """The column of a figure of the plan's rows."""
    assert name in FIGURES
    return FIGURES.index(name)


def _plan(at: Places, n: Numbers) -> None:
    decided = (
        (at.buy, message("To order: servers, in the period of the order (as solved)"), n.buy),
        (at.retire, message("To retire: servers (as solved)"), n.retire),
        (at.active, message("Active: servers switched on for work (as solved)"), n.active),
    )
    total = Head(message("total"), width=11)
    for block, title, values in decided:
        _labelled(block, title, at, n, () if block is at.active else (total,))
        block.numbers(values, _COUNT, "solver")
        if block is at.active:
            continue
        for i in range(block.rows):
            block.sheet.formula(
                block.row + i, block.col + block.cols, f"=SUM({block.across(i)})", values[i].sum(), _COUNT
            )

    lead, start = figure(at, "lead"), figure(at, "start")
    _labelled(
        at.arrive, message("Arriving: what was ordered a lead time before, and what was on order at the start"), at, n
    )

    def arriving(i: int, t: int) -> str:
        late = f"{at.period_number(t)}-{at.figures.near(i, lead)}"
        sku, site = (cell(at.arrive.row + i, col) for col in (0, 1))
        placed = (
            f"EXACT(fleet_sku,{sku})*EXACT(fleet_site,{site})*EXACT(fleet_arrives,{at.period.at(t, 1)})*fleet_count"
        )
        return f"=IF({late}<1,0,INDEX({at.buy.across(i)},{late}))+SUMPRODUCT({placed})"

    at.arrive.live(arriving, n.arrive, _COUNT)
    _labelled(at.installed, message("Installed: before, and what arrives, without what is retired"), at, n)
    at.installed.live(
        lambda i, t: (
            f"={at.installed.near(i, t - 1) if t else at.figures.near(i, start)}"
            f"+{at.arrive.near(i, t)}-{at.retire.near(i, t)}"
        ),
        n.installed,
        _COUNT,
    )
    pair_of, used = at.combo.down(4), at.combo.down(7)

    def load(i: int, t: int) -> str:
        busy = f"SUMPRODUCT(({pair_of}={i + 1})*{used}*{at.working.down(t)}*{at.pool.down(t)})"
        return f"=IF({at.active.near(i, t)}=0,0,{busy}/{at.active.near(i, t)})"

    _labelled(at.load, message("Load of the active servers with everything up, for their energy"), at, n)
    at.load.live(load, n.load_of_active, _SHARE)
    _money_of_orders(at, n)
    at.buy.sheet.frozen(3, 2)
    at.buy.sheet.inner.print_area(0, 0, at.load.row + at.load.rows, at.buy.col + at.buy.cols)


def _money_of_orders(at: Places, n: Numbers) -> None:
    """The price of one by the quantity ordered, and what orders are worth at the end."""
    columns = equipment.skus()
    price, breaks = (columns_at(columns, field) for field in ("price", "price_breaks"))
    _labelled(at.paid, message("Price of one (of a SKU with price breaks as solved)"), at, n)

    def paid(i: int, t: int) -> str:
        row = n.skus.index(n.pairs[i][0])
        return f'=IF({at.sku.at(row, breaks)}="",N({at.sku.at(row, price)}),{float(n.paid[i, t])!r})'

    at.paid.live(paid, n.paid, PRICE)
    lead, limit, keeps, last = (figure(at, name) for name in ("lead", "age_limit", "residual", "price"))
    _labelled(at.kept, message("Of the orders, in place at the end: servers, by the period of their arrival"), at, n)

    def kept(i: int, t: int) -> str:
        late = f"{at.period_number(t)}-{at.figures.near(i, lead)}"
        rest = f"-SUM({at.kept.across(i, t + 1)})" if t + 1 < n.periods else ""
        own = f"IF({late}<1,0,INDEX({at.buy.across(i)},{late}))"
        new = f'{n.periods - t}<=IF({at.figures.near(i, limit)}="",{n.periods},{at.figures.near(i, limit)})'
        return f"=IF({new},MIN({own},{at.installed.near(i, n.periods - 1)}{rest}),0)"

    at.kept.live(kept, n.left, _COUNT)
    _labelled(at.kept_worth, message("What these are worth at the end"), at, n)

    def worth(i: int, t: int) -> str:
        row = n.skus.index(n.pairs[i][0])
        one = (
            f'IF({at.sku.at(row, breaks)}="",{at.figures.near(i, last)},{n.question.skus[n.pairs[i][0]].least_price!r})'
        )
        age = f"(question_years*{n.periods - t})"
        share = at.figures.near(i, keeps)
        return f"=IF({share}=0,0,{at.kept.near(i, t)}*{one}*{share}^{age})"

    at.kept_worth.live(worth, n.left_worth, _MONEY)


def _figures(at: Places, n: Numbers) -> None:
    """The figures of each row's SKU and site for the formulas above and those of Cost."""
    q, block = n.question, at.figures
    sku_columns, site_columns = equipment.skus(), equipment.sites()

    def of_sku(field: str) -> Callable[[int], str]:
        place = columns_at(sku_columns, field)
        return lambda i: at.sku.at(n.skus.index(n.pairs[i][0]), place)

    def of_site(place: Block, col: int = 0) -> Callable[[int], str]:
        return lambda i: place.at(n.sites.index(n.pairs[i][1]), col)

    def cells(word: Callable[[int], str], form: str = "={}") -> Callable[[int], str]:
        return lambda i: form.format(word(i))

    def fleet(i: int) -> str:
        sku, site = cell(block.row + i, 0), cell(block.row + i, 1)
        return f'=SUMPRODUCT(EXACT(fleet_sku,{sku})*EXACT(fleet_site,{site})*(fleet_arrives="")*fleet_count)'

    rack = of_site(at.site, columns_at(site_columns, "rack_w"))

    def racks(i: int) -> str:
        """Positions of its own, or its share of a rack's power."""
        own, watts = of_sku("racks")(i), block.near(i, figure(at, "peak"))
        share = f"IF(OR(N({rack(i)})=0,{watts}=0),0,1/MAX(INT({rack(i)}/{watts}),1))"
        return f"IF(N({own})>0,{own},{share})"

    spares = columns_at(site_columns, "spares")
    skus = [q.skus[s] for s, _ in n.pairs]
    sites = [q.sites[k] for _, k in n.pairs]
    figures: Mapping[str, tuple[Head, Callable[[int], str], Callable[[int], float | None]]] = {
        "start": (Head(message("in place at the start"), message("servers")), fleet, lambda i: n.start[i]),
        "price": (
            Head(message("price"), q.currency),
            cells(of_sku("price"), "=N({})"),
            lambda i: n.price(n.pairs[i][0]),
        ),
        "idle": (Head(message("power idle"), "W"), cells(of_sku("idle_w")), lambda i: skus[i].idle_w),
        "swing": (
            Head(message("peak less idle"), "W"),
            lambda i: f"={of_sku('peak_w')(i)}-{of_sku('idle_w')(i)}",
            lambda i: skus[i].peak_w - skus[i].idle_w,
        ),
        "peak": (
            Head(message("power against the limit"), "W"),
            lambda i: f'=IF({of_sku("provisioned_w")(i)}="",{of_sku("peak_w")(i)},{of_sku("provisioned_w")(i)})',
            lambda i: skus[i].budgeted_w,
        ),
        "rack_units": (Head(message("rack units"), "U"), cells(of_sku("rack_units")), lambda i: skus[i].rack_units),
        "ports": (Head(message("ports")), cells(of_sku("ports")), lambda i: skus[i].ports),
        "support": (
            Head(message("support"), message("{money} a year", money=q.currency)),
            cells(of_sku("support")),
            lambda i: skus[i].support,
        ),
        "space": (
            Head(message("space"), message("{money} a year", money=q.currency)),
            cells(of_sku("space")),
            lambda i: skus[i].space,
        ),
        "migration": (
            Head(message("moving off one"), q.currency),
            cells(of_sku("migration")),
            lambda i: skus[i].migration,
        ),
        "embodied": (
            Head(message("embodied carbon"), "kg CO2e"),
            cells(of_sku("embodied")),
            lambda i: skus[i].embodied,
        ),
        "lead": (
            Head(message("lead time, with what is allowed for late ones"), message("periods"), 18),
            lambda i: f'={of_sku("lead")(i)}+IF({of_sku("slips")(i)}="",0,{skus[i].allowance})',
            lambda i: skus[i].delay,
        ),
        "age_limit": (
            Head(message("age limit"), message("periods")),
            lambda i: f'=IF({of_sku("age_limit")(i)}="","",{of_sku("age_limit")(i)})',
            lambda i: skus[i].age_limit,
        ),
        "minimum": (
            Head(message("minimum order"), message("servers")),
            cells(of_sku("minimum_order")),
            lambda i: skus[i].minimum_order,
        ),
        "spares": (
            Head(message("spares"), message("servers")),
            cells(of_site(at.site, spares)),
            lambda i: sites[i].spares,
        ),
        "kwh": (
            Head(message("one W over a period"), "kWh"),
            cells(of_site(at.site_kwh)),
            lambda i: q.energy(n.pairs[i][1]),
        ),
        "watt": (
            Head(message("one W over a period"), q.currency),
            cells(of_site(at.site_watt)),
            lambda i: q.energy(n.pairs[i][1]) * q.price_of_energy(n.pairs[i][1]),
        ),
        "site": (
            Head(message("no. of the site")),
            lambda i: f"={n.sites.index(n.pairs[i][1]) + 1}",
            lambda i: n.sites.index(n.pairs[i][1]) + 1,
        ),
        "racks": (
            Head(message("positions for racks")),
            lambda i: f'=IF({of_sku("cooling")(i)}="{LIQUID}",0,{racks(i)})',
            lambda i: 0.0 if skus[i].liquid else q.positions(*n.pairs[i]),
        ),
        "liquid": (
            Head(message("liquid-cooled positions")),
            lambda i: f'=IF({of_sku("cooling")(i)}="{LIQUID}",{racks(i)},0)',
            lambda i: q.positions(*n.pairs[i]) if skus[i].liquid else 0.0,
        ),
        "residual": (
            Head(message("keeps of its price"), message("a year")),
            cells(of_sku("residual"), "=N({})"),
            lambda i: skus[i].residual,
        ),
    }
    block.sheet.text(block.row - 2, 0, message("Figures behind each row, from SKU & TCO, Sites and Fleet"), "heading")
    heads = [Head(message("SKU"), width=20), Head(message("site"), width=16), *(figures[name][0] for name in FIGURES)]
    block.sheet.heads(block.row - 1, heads)
    _pairs(block, at, n)
    for i in range(block.rows):
        for j, name in enumerate(FIGURES):
            _, formula, value = figures[name]
            form = "0.0000" if name in ("kwh", "watt") else "#,##0.##"
            block.sheet.formula(block.row + i, block.col + j, formula(i), value(i), form)


def _allocation(at: Places, n: Numbers) -> None:
    q, sheet = n.question, at.combo.sheet
    heads = [
        Head(message("workload"), width=22),
        Head(message("SKU"), width=20),
        Head(message("site"), width=16),
        Head(message("no. of the workload")),
        Head(message("no. of the row in Purchase plan"), width=18),
        Head(message("no. of the site"), width=16),
        Head(message("E u: work of one server"), message("unit of the workload"), 24),
        Head(message("utilisation"), message("share of a server"), 18),
        Head(message("may run there"), message("1 or 0")),
        Head(message("stays in a failure"), message("1 or 0")),
        Head(message("row in Pools"), message("0: servers that all share"), 16),
    ]
    blocks = (
        message("whole servers"),
        message("share of them"),
        message("share that works"),
        message("work"),
    )
    sheet.heads(HEAD, [*heads, *(Head(h.name, what, 11) for what in blocks for h in period_heads(n))])
    numbers = list(q.workloads)
    for c, (w, p) in enumerate(n.combos):
        row = at.combo.row + c
        s, k = n.pairs[p]
        for col, name in enumerate((w, s, k)):
            sheet.text(row, col, name, "strong" if col == 0 else "text")
        i = numbers.index(w)
        sheet.number(row, 3, i + 1, role="value")
        sheet.number(row, 4, p + 1, role="value")
        site = n.sites.index(k)
        sheet.number(row, 5, site + 1, role="value")
        u = at.worth_used.at(at.worth_row(s, w))
        sheet.formula(row, 6, f"={at.worth.at(at.worth_row(s, w), 2)}*{u}", n.rate[c], "#,##0.0000")
        sheet.formula(row, 7, f"={u}", n.used[c], "0.0%")
        anywhere, here = at.runs.down(i), at.runs.at(site, i)
        may = not q.workloads[w].sites or k in q.workloads[w].sites
        sheet.formula(row, 8, f'=IF(COUNTA({anywhere})=0,1,IF({here}="{YES}",1,0))', float(may))
        stays = f'=IF({at.available.at(i)}="{PREEMPTIBLE}",0,1)'
        sheet.formula(row, 9, stays, float(not q.yields(w)))
        sheet.number(row, 10, 0 if (own := n.own_of[c]) is None else own + 1, role="value")
    if n.combos:

        def servers(c: int, t: int) -> str:
            own, pair = n.own_of[c], n.combos[c][1]
            if own is not None:
                return f"={at.pools.at(own, t)}" if own >= 0 else "=0"
            less = f"-SUMIFS({at.pools.down(t)},{pairs_of_pools(at)},{pair + 1})" if n.own else ""
            return f"={at.active.at(pair, t)}{less}"

        at.pool.live(servers, n.of_pool, _COUNT)
        at.share.numbers(n.share, _SHARE, "solver")
        at.working.numbers(n.share_working, _SHARE, "solver")
        each = [cell(at.combo.row + c, 6) for c in range(at.combo.rows)]
        at.capacity.live(lambda c, t: f"=${each[c]}*{at.share.near(c, t)}*{at.pool.near(c, t)}", n.capacity, FIGURE)
    sheet.filtered(HEAD, HEAD + at.combo.rows, COMBO + 4 * n.periods, frozen_columns=3)
    _pools(at, n)


def _pools(at: Places, n: Numbers) -> None:
    """A row for each pool of its own and the SKU and site of its servers."""
    sheet = at.pools.sheet
    heads = [
        Head(message("pool"), width=22),
        Head(message("SKU"), width=20),
        Head(message("site"), width=16),
        Head(message("no. of the row in Purchase plan"), width=18),
    ]
    sheet.heads(HEAD, [*heads, *(Head(h.name, message("servers"), 11) for h in period_heads(n))])
    for j, (name, p) in enumerate(n.own):
        for col, word in enumerate((name, *n.pairs[p])):
            sheet.text(at.pools.row + j, col, word, "strong" if col == 0 else "text")
        sheet.number(at.pools.row + j, 3, p + 1, role="value")
    if n.own:
        at.pools.numbers([n.pooled[name][p] for name, p in n.own], _COUNT, "solver")
    sheet.filtered(HEAD, HEAD + at.pools.rows, POOL + n.periods, frozen_columns=3)


def pairs_of_pools(at: Places) -> str:
    """The rows in Purchase plan of the pools' rows."""
    return at.pools.down(3 - POOL)


# ---------------------------------------------------------------- money

_WORDS: Mapping[str, Message] = {
    "purchase": message("purchase"),
    "energy": message("energy"),
    "support": message("support"),
    "space": message("space"),
    "migration": message("migration"),
    "carbon": message("carbon"),
    "residual": message("worth at the end"),
}


_MONEY = INTEGER


def _summed(n: Numbers, block: Block, values: Floats) -> None:
    """A row of sums below a block of money, and a column of sums to the right of both."""
    sheet, row = block.sheet, block.row + block.rows
    sheet.text(row, 0, message("total"), "strong")
    for i in range(block.rows + 1):
        sheet.text(block.row + i, 1, n.question.currency)
    for j in range(block.cols):
        span = f"{block.near(0, j)}:{block.near(block.rows - 1, j)}"
        sheet.formula(row, block.col + j, f"=SUM({span})", float(values[:, j].sum()), _MONEY, "key")
    for i in range(block.rows + 1):
        total = float(values.sum() if i == block.rows else values[i].sum())
        sheet.formula(block.row + i, block.col + block.cols, f"=SUM({block.across(i)})", total, _MONEY, "key")


def _kind_names(block: Block) -> None:
    for i, kind in enumerate(KINDS):
        block.sheet.text(block.row + i, 0, _WORDS[kind], "strong")


def _labels(first: Message) -> list[Head]:
    return [Head(first, width=36), Head(message("unit"), width=14)]


def _total() -> Head:
    return Head(message("total"), width=14)


def _cost(book: Book, at: Places, n: Numbers) -> None:
    sheet = at.kinds.sheet
    kinds = np.array([n.kinds[kind] for kind in KINDS])
    formulas = _formulas(at)
    headed(at.kinds, message("Money in each period, undiscounted"), _labels(message("kind")), n, (_total(),))
    _kind_names(at.kinds)
    at.kinds.live(lambda i, t: formulas[KINDS[i]](t), kinds, _MONEY)
    _summed(n, at.kinds, kinds)
    sheet.text(at.weight.row, 0, message("present value of 1"))
    at.weight.live(lambda _, t: f"={at.period.at(t, 3)}", n.weight, "0.0000")
    sheet.text(at.year_of.row, 0, message("no. of the year"))
    at.year_of.numbers(n.years, "0", "value")

    headed(at.present, message("Present value"), _labels(message("kind")), n, (_total(),))
    _kind_names(at.present)
    present = kinds * n.weight
    at.present.live(lambda i, t: f"={at.kinds.near(i, t)}*{at.weight.near(0, t)}", present, _MONEY)
    _summed(n, at.present, present)
    named(book, "total_present_value", at.total)
    _by_year(at, n, kinds)
    _by_sku(at, n)

    row = at.bought.row + at.bought.rows + 2
    sheet.text(row, 0, message("present value as solved"))
    sheet.number(row, 2, n.plan.objective, PRICE, "solver")
    sheet.text(row + 1, 0, message("present value now, less that as solved"))
    more = round(n.total - n.plan.objective, 2) + 0.0
    sheet.formula(row + 1, 2, f"=ROUND({at.total.near(0)}-{cell(row, 2)},2)", more, PRICE)
    for line in (row, row + 1):
        sheet.text(line, 1, n.question.currency)
    sheet.frozen(3, 2)


def _formulas(at: Places) -> Mapping[str, Callable[[int], str]]:
    """Kind of cost to its formula for a period."""

    def of(name: str) -> str:
        return at.figures.down(figure(at, name))

    def draw(t: int) -> str:
        return f"({of('idle')}*{at.active.down(t)}+{of('swing')}*{at.load.down(t)}*{at.active.down(t)})"

    return {
        "purchase": lambda t: f"=SUMPRODUCT({at.paid.down(t)},{at.buy.down(t)})",
        "energy": lambda t: f"=SUMPRODUCT({of('watt')}*{draw(t)})",
        "support": lambda t: f"=question_years*SUMPRODUCT({of('support')},{at.installed.down(t)})",
        "space": lambda t: f"=question_years*SUMPRODUCT({of('space')},{at.installed.down(t)})",
        "migration": lambda t: f"=SUMPRODUCT({of('migration')},{at.retire.down(t)})",
        "carbon": lambda t: (
            f"=question_carbon_price/1000*(SUMPRODUCT({of('embodied')},{at.buy.down(t)})"
            f"+question_grid*SUMPRODUCT({of('kwh')}*{draw(t)}))"
        ),
        "residual": lambda t: f"=-SUM({at.kept_worth.all})" if t == at.kept_worth.cols - 1 else "=0",
    }


def _by_year(at: Places, n: Numbers, kinds: Floats) -> None:
    block, sheet = at.by_year, at.by_year.sheet
    labels, heads = _labels(message("kind")), [*(Head(name, width=11) for name in n.year_names), _total()]
    sheet.text(block.row - 2, 0, message("By year, undiscounted"), "heading")
    sheet.heads(block.row - 1, [*labels, *heads])
    right_aligned(sheet, block.row - 1, len(labels), heads)
    _kind_names(block)
    yearly = np.array([[row[np.array(n.years) == y + 1].sum() for y in range(block.cols)] for row in kinds])
    years = f"${at.year_of.near(0, 0)}:${at.year_of.near(0, n.periods - 1)}"
    block.live(lambda i, y: f"=SUMIFS({at.kinds.across(i)},{years},{y + 1})", yearly, _MONEY)
    _summed(n, block, yearly)


def _by_sku(at: Places, n: Numbers) -> None:
    block = at.bought
    headed(block, message("Purchases by SKU, undiscounted"), _labels(message("SKU")), n, (_total(),))
    for i, s in enumerate(n.skus):
        block.sheet.text(block.row + i, 0, s, "strong")
    mine = [[p for p, (s, _) in enumerate(n.pairs) if s == sku] for sku in n.skus]
    bought = np.array([(n.buy[rows] * n.paid[rows]).sum(axis=0) for rows in mine])

    def spent(i: int, t: int) -> str:
        if not mine[i]:
            return "=0"
        rows = mine[i][0], mine[i][-1]
        return f"=SUMPRODUCT({at.paid.down(t, *rows)},{at.buy.down(t, *rows)})"

    block.live(spent, bought, _MONEY)
    _summed(n, block, bought)
