"""The tabs that compare the plan with its limits: sizing, N+1, rack and power, refresh, scenarios."""

from __future__ import annotations

import numpy as np

from fleetmark.base.text import Message, message
from fleetmark.demand import equipment
from fleetmark.demand.columns import AMOUNT
from fleetmark.reports.kit.workbook import Book, Head, cell
from fleetmark.reports.plan.xlsx.inputs import columns_at
from fleetmark.reports.plan.xlsx.layout import Block, Places, headed, named, right_aligned
from fleetmark.reports.plan.xlsx.numbers import Floats, Numbers, servers_for
from fleetmark.reports.plan.xlsx.plan import figure

_WORK, _COUNT, _SHARE = "#,##0.##;-#,##0.##;0", "#,##0", "0.0%"
MULTIPLIERS = (0.8, 1.0, 1.2)
_OTHER = 1.5  # the first value of the multiplier's input


def write(book: Book, at: Places, n: Numbers) -> None:
    """Write these tabs."""
    _sizing(at, n)
    _lost(book, at, n)
    _rack(at, n)
    _refresh(at, n)
    _scenarios(book, at, n)


def each(at: Places, workload: str, sku: str) -> tuple[str, str]:
    """References to E of a SKU for a workload, and to the utilisation of its servers for it."""
    row = at.worth_row(sku, workload)
    return at.worth.at(row, 2), at.worth_used.at(row)


def rounded_up(demand: str, one: str) -> str:
    """The formula of servers for a demand. It rounds first, because rounding noise differs between programs."""
    return f"ROUNDUP(ROUND({demand}/({one}),6),0)"


def _sizing(at: Places, n: Numbers) -> None:
    sheet = at.sheets["sizing"]
    row = 3
    for i, w in enumerate(n.workloads):
        able = [s for s in n.skus if w in n.question.skus[s].worth]
        block = Block(sheet, row + 2, 3, max(len(able), 1), n.periods)
        labels = [
            Head(message("SKU"), width=20),
            Head(message("E u: work of one server"), width=16),
            Head(message("unit"), width=14),
        ]
        headed(block, message("Servers needed for {workload}", workload=w), labels, n)
        for j, s in enumerate(able):
            e, u = each(at, w, s)
            line = block.row + j
            sheet.text(line, 0, s, "strong")
            sheet.formula(line, 1, f"={e}*{u}", n.question.rate(s, w), "#,##0.0000")
            sheet.text(line, 2, message("servers"))
            for t in range(n.periods):
                needed = servers_for(n.planned[i, t], n.question.rate(s, w))
                demand = at.planned.at(i, t)
                sheet.formula(line, 3 + t, f"={rounded_up(demand, f'{e}*{u}')}", needed, _COUNT)
        row += block.rows + 3
    sheet.frozen(3, 3)


def _lost(book: Book, at: Places, n: Numbers) -> None:
    sheet = at.left.sheet
    labels = [
        Head(message("workload"), width=22),
        Head(message("without the domain of"), width=22),
        Head(message("failure domain"), width=16),
    ]

    def names(block: Block) -> None:
        for line, (i, k, d) in enumerate(at.losses):
            sheet.text(block.row + line, 0, n.workloads[i], "strong")
            sheet.text(block.row + line, 1, n.sites[k])
            sheet.formula(block.row + line, 2, f"={at.site_domain.at(k, d)}", n.lost(k, d), role="word")

    left = [n.delivered(i, n.lost(k, d)) if n.lost(k, d) else None for i, k, d in at.losses]
    headed(at.left, message("Capacity left, in the unit of the workload"), labels, n)
    names(at.left)
    workload, site = at.combo.down(3), at.combo.down(5)
    all_sites = f"ROW({at.site_list.down()})-ROW({at.site_list.at(0)})+1"

    def remaining(line: int, t: int) -> str:
        i, k, d = at.losses[line]
        lost = at.site_domain.at(k, d)
        stays = f'ISERROR(FIND(","&{lost}&",",{at.site_list.down()}))'
        work = f"SUMIFS({at.capacity.down(t)},{workload},{i + 1},{site},{all_sites})"
        return f'=IF({lost}="","",SUMPRODUCT({stays}*{work}))'

    def remains(line: int, t: int) -> float | None:
        values = left[line]
        return None if values is None else float(values[t])

    def slack(line: int, t: int) -> float | None:
        value = remains(line, t)
        return None if value is None else round(value - float(n.planned[at.losses[line][0], t]), 6) + 0.0

    at.left.live(remaining, remains, _WORK)
    headed(at.above, message("Capacity left, less the planned demand"), labels, n)
    names(at.above)
    at.above.live(
        lambda line, t: (
            f'=IF({at.left.near(line, t)}="","",'
            f"ROUND({at.left.near(line, t)}-{at.planned.at(at.losses[line][0], t)},6))"
        ),
        slack,
        _WORK,
    )
    sheet.inner.conditional_format(
        at.above.here, {"type": "cell", "criteria": "<", "value": -1e-6, "format": book.style("bad")}
    )
    sheet.frozen(3, 3)


def _rack(at: Places, n: Numbers) -> None:
    q, sheet = n.question, at.power.sheet
    columns = equipment.sites()
    site = at.figures.down(figure(at, "site"))

    def block(
        place: Block,
        title: Message,
        unit: Message | str,
        limit: str,
        what: str,
        servers: Block,
        loads: Floats,
        add: bool = False,
    ) -> None:
        labels = [Head(message("site"), width=18), Head(message("unit"), width=8), Head(message("limit"), width=14)]
        last = [Head(message("highest use of the limit"), width=14)]
        headed(place, title, labels, n, last)
        where = columns_at(columns, limit)
        for k, name in enumerate(n.sites):
            row = place.row + k
            sheet.text(row, 0, name, "strong")
            sheet.text(row, 1, unit)
            source = at.site.at(k, where)
            most = getattr(q.sites[name], limit)
            sheet.formula(row, 2, f'=IF({source}="","",{source})', most, "#,##0.##")
            head, span = cell(row, 2), place.across(k)
            share = None if not most else loads[k].max() / most
            sheet.formula(row, place.col + place.cols, f'=IF(N({head})=0,"",MAX({span})/{head})', share, _SHARE)
            colours = {"type": "formula", "criteria": f'=AND(${head}<>"",{place.near(k)}>${head}*(1+1E-9))'}
            sheet.inner.conditional_format(place.across(k), {**colours, "format": sheet.book.style("bad")})
        figures = at.figures.down(figure(at, what)) if what else ""

        def summed(k: int, t: int) -> str:
            before = f"{place.near(k, t - 1)}+" if add and t else ""
            each = figures or at.paid.down(t)
            return f"={before}SUMPRODUCT(({site}={k + 1})*{each}*{servers.down(t)})"

        place.live(summed, loads, _COUNT)

    block(
        at.power,
        message("Power of all installed servers, as it counts against the limit"),
        "W",
        "power_w",
        "peak",
        at.installed,
        n.budgeted_w,
    )
    block(
        at.units,
        message("Rack units"),
        "U",
        "rack_units",
        "rack_units",
        at.installed,
        n.rack_units,
    )
    block(
        at.ports,
        message("Ports"),
        message("ports"),
        "ports",
        "ports",
        at.installed,
        n.ports,
    )
    for place, title, limit, loads in (
        (at.racks, message("Positions for racks"), "racks", n.racks(liquid=False)),
        (at.liquid, message("Liquid-cooled positions"), "liquid_racks", n.racks(liquid=True)),
    ):
        block(place, title, message("positions"), limit, limit.removesuffix("_racks"), at.installed, loads)
    block(
        at.spent, message("Money for purchases, since the start"), q.currency, "budget", "", at.buy, n.spent, add=True
    )
    sheet.frozen(3, 3)


def _refresh(at: Places, n: Numbers) -> None:
    labels = [Head(message("SKU"), width=20), Head(message("site"), width=16)]

    def names(block: Block) -> None:
        for i, pair in enumerate(n.pairs):
            for col, name in enumerate(pair):
                block.sheet.formula(block.row + i, col, f"={at.buy.sheet.at(at.buy.row + i, col)}", name, role="word")

    headed(at.must_leave, message("Have reached their age limit by then: servers"), labels, n)
    names(at.must_leave)

    def leaving(i: int, t: int) -> str:
        sku, site = (at.buy.sheet.at(at.buy.row + i, col) for col in (0, 1))
        limit, number = at.figures.at(i, figure(at, "age_limit")), at.period_number(t)
        first = at.arrive.at(i)
        bought = f"IF({number}>{limit},SUM({first}:INDEX({at.arrive.line(i)},{number}-{limit})),0)"
        in_place = (
            f'SUMPRODUCT(EXACT(fleet_sku,{sku})*EXACT(fleet_site,{site})*(fleet_arrives="")'
            f"*(fleet_age+{number}-1>={limit})*fleet_count)"
        )
        return f'=IF({limit}="",0,{in_place}+{bought})'

    at.must_leave.live(leaving, n.must_leave, _COUNT)
    headed(at.have_left, message("Have been retired by then: servers"), labels, n)
    names(at.have_left)
    at.have_left.live(
        lambda i, t: f"={f'{at.have_left.near(i, t - 1)}+' if t else ''}{at.retire.at(i, t)}",
        np.cumsum(n.retire, axis=1),
        _COUNT,
    )
    at.must_leave.sheet.frozen(3, 2)


def _scenarios(book: Book, at: Places, n: Numbers) -> None:
    sheet, row = at.sheets["scenarios"], 3
    for label, value, name, form in (
        (message("period (number, see Inputs)"), n.periods, "scenario_period", "0"),
        (message("demand, a multiple of the median, of your own"), _OTHER, "scenario_multiplier", "0.00"),
    ):
        sheet.text(row, 0, label)
        sheet.number(row, 2, value, form, "input")
        named(book, name, Block(sheet, row, 2, 1))
        row += 1
    sheet.must_be_one_of(3, 2, list(range(1, n.periods + 1)))
    sheet.must_be_number(4, 2, 0, 1000, message("a multiple of the demand: a number, 0 to 1000"))
    sheet.formula(3, 3, f"=INDEX({at.period.down(1)},scenario_period)", n.question.periods[-1], role="word")
    ends = (message("E at lo"), message("E"), message("E at hi"))
    head = row + 2
    for i, w in enumerate(n.workloads):
        sheet.text(head, 0, message("Servers needed for {workload}", workload=w), "heading")
        sheet.text(head + 1, 0, message("median demand"))
        demand = n.point[i, -1]
        sheet.formula(head + 1, 2, f"=INDEX({at.median.line(i)},scenario_period)", demand, AMOUNT)
        sheet.formula(head + 1, 3, f"={at.workload.at(i, 1)}", n.question.workloads[w].unit, role="word")
        shown = [
            Head(e, message("demand × {m}", m="…" if m is None else f"{m:g}"), 14)
            for e in ends
            for m in (*MULTIPLIERS, None)
        ]
        sheet.heads(head + 2, [Head(message("SKU"), width=26), Head(message("unit"), width=12), *shown])
        right_aligned(sheet, head + 2, 2, shown)
        able = [s for s in n.skus if w in n.question.skus[s].worth]
        for j, s in enumerate(able):
            line = head + 3 + j
            worth = n.question.skus[s].worth[w]
            lo, hi = worth.estimate.interval or (worth.value, worth.value)
            k = at.worth_row(s, w)
            sheet.text(line, 0, s, "strong")
            sheet.text(line, 1, message("servers"))
            col = 2
            for e, value in ((at.worth_lo.at(k), lo), (at.worth.at(k, 2), worth.value), (at.worth_hi.at(k), hi)):
                for m in (*MULTIPLIERS, None):
                    by = "scenario_multiplier" if m is None else f"{m:g}"
                    formula = rounded_up(f"{by}*$C${head + 2}", f"{e}*{at.worth_used.at(k)}")
                    times = _OTHER if m is None else m
                    needed = servers_for(times * demand, value * n.question.utilisation(s, w))
                    sheet.formula(line, col, f"={formula}", needed, _COUNT)
                    col += 1
        head += len(able) + 4
    sheet.frozen(3, 1)
