"""The tab Sensitivity: each input moved alone, live; and the stored results of simulations and further solves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fleetmark.base.text import Message, message
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import KINDS, TRADES, Alternative, Binding
from fleetmark.planner.capacity.tornado import Effect
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.format import FIGURE_FORM
from fleetmark.reports.kit.workbook import Book, Head, Sheet, cell
from fleetmark.reports.plan import scenarios
from fleetmark.reports.plan.front import SAVINGS
from fleetmark.reports.plan.model import price_of
from fleetmark.reports.plan.xlsx.layout import Block, Places, named
from fleetmark.reports.plan.xlsx.limits import each, rounded_up
from fleetmark.reports.plan.xlsx.numbers import Numbers, servers_for

_STEP = 0.1
_MONEY, _COUNT = "#,##0;-#,##0;0", "#,##0"
_TRADES: Mapping[str, tuple[Message, str]] = {  # the unit is money where it is empty
    "purchases": (message("purchases"), ""),
    "running": (message("running costs"), ""),
    "servers": (message("servers"), message("servers")),
    "peak_w": (message("power at peak"), "W"),
    "rack_units": (message("rack units"), "U"),
    "carbon_kg": (message("carbon"), "kg CO2e"),
}


def write(book: Book, at: Places, n: Numbers, answer: Answer) -> None:
    """Write the tab."""
    sheet = at.sheets["sensitivity"]
    sheet.text(3, 0, message("by how much each input is moved"))
    sheet.number(3, 1, _STEP, "0.0%", "input")
    sheet.must_be_number(3, 1, 0.001, 10, message("a share: a number, 0.001 to 10"))
    named(book, "sensitivity_step", Block(sheet, 3, 1, 1))
    row = _costs(sheet, at, n, 5)
    row = _sizes(sheet, at, n, row)
    if answer.tornado:
        row = _tornado(sheet, n, answer.tornado, row)
    if answer.futures is not None:
        row = _simulated(sheet, n, answer.futures, row)
    row = _bindings(sheet, n, answer.bindings, row)
    row = _alternatives(sheet, n, answer.alternatives, row)
    _solved(sheet, answer, row)
    sheet.frozen(3, 1)


def _costs(sheet: Sheet, at: Places, n: Numbers, row: int) -> int:
    """The cost of the same plan with one price higher."""
    q = n.question
    sheet.text(row, 0, message("Cost of the plan as it stands, with one input higher (live)"), "heading")
    heads = [
        Head(message("input"), width=34),
        Head(message("present value that it stands for"), q.currency, 16),
        Head(message("adds"), q.currency, 14),
        Head(message("of the total"), "", 10),
    ]
    sheet.heads(row + 1, heads)
    total = at.total.at(0)
    last = n.periods
    kinds: Sequence[tuple[str, Message]] = (
        ("energy", message("energy price at all sites")),
        ("carbon", message("carbon price")),
        ("support", message("support of all SKUs")),
        ("space", message("space of all SKUs")),
        ("migration", message("moving off servers")),
    )
    lines: list[tuple[Message, str, float]] = []
    for kind, label in kinds:
        i = KINDS.index(kind)
        lines.append((label, f"={at.present.sheet.at(at.present.row + i, 2 + last)}", float(n.kinds[kind] @ n.weight)))
    for s, name in enumerate(n.skus):
        mine = [p for p, (sku, _) in enumerate(n.pairs) if sku == name]
        bought = float((n.buy[mine] * n.paid[mine]).sum(axis=0) @ n.weight)
        lines.append(
            (message("price of {sku}", sku=name), f"=SUMPRODUCT({at.bought.line(s)},{at.weight.line(0)})", bought)
        )
    start = line = row + 2
    for label, formula, value in lines:
        sheet.text(line, 0, label)
        sheet.formula(line, 1, formula, value, _MONEY)
        sheet.formula(line, 2, f"={cell(line, 1)}*sensitivity_step", value * _STEP, _MONEY)
        line += 1
    sheet.text(line, 0, message("discount rate"))
    spent = at.kinds.sheet.span(at.kinds.row + len(KINDS), 2, at.kinds.row + len(KINDS), 1 + last)
    begins = at.period.down(2)
    moved = f"SUMPRODUCT(MMULT({spent},(1+question_discount*(1+sensitivity_step))^-{begins}))"
    later = (1 + q.discount * (1 + _STEP)) ** (-q.years * np.arange(n.periods))
    gained = round(float(np.sum([money @ later for money in n.kinds.values()])) - n.total, 6)
    sheet.formula(line, 1, f"={total}", n.total, _MONEY)
    sheet.formula(line, 2, f"=ROUND({moved}-{total},6)", gained, "#,##0.00")
    for i in range(start, line + 1):
        added = gained if i == line else lines[i - start][2] * _STEP
        sheet.formula(i, 3, f"=IF({total}=0,0,{cell(i, 2)}/{total})", added / n.total if n.total else 0.0, "0.00%")
    return line + 2


def _sizes(sheet: Sheet, at: Places, n: Numbers, row: int) -> int:
    """Servers of one SKU that one workload needs, with one input changed."""
    sheet.text(
        row, 0, message("Servers needed in the period chosen in Scenarios, with one input changed (live)"), "heading"
    )
    heads = [
        Head(message("workload, on SKU"), width=34),
        Head(message("as planned"), message("servers")),
        Head(message("demand up"), message("servers")),
        Head(message("E down"), message("servers")),
        Head(message("utilisation down"), message("servers")),
    ]
    sheet.heads(row + 1, heads)
    line = row + 2
    for i, w in enumerate(n.workloads):
        for s in n.skus:
            if w not in n.question.skus[s].worth:
                continue
            e, u = each(at, w, s)
            demand = f"INDEX({at.planned.line(i)},scenario_period)"
            planned, one = float(n.planned[i, -1]), n.question.rate(s, w)
            worth, used = n.question.skus[s].worth[w].value, n.question.utilisation(s, w)
            sheet.text(line, 0, message("{workload}, on {sku}", workload=w, sku=s))
            cases = (
                (rounded_up(demand, f"{e}*{u}"), servers_for(planned, one)),
                (rounded_up(f"{demand}*(1+sensitivity_step)", f"{e}*{u}"), servers_for(planned * (1 + _STEP), one)),
                (rounded_up(demand, f"{e}*(1-sensitivity_step)*{u}"), servers_for(planned, worth * (1 - _STEP) * used)),
                (rounded_up(demand, f"{e}*{u}*(1-sensitivity_step)"), servers_for(planned, one * (1 - _STEP))),
            )
            for col, (formula, value) in enumerate(cases, 1):
                sheet.formula(line, col, f"={formula}", value, _COUNT)
            line += 1
    return line + 1


def _table(
    sheet: Sheet, row: int, heads: Sequence[Head], rows: Sequence[Sequence[object]], forms: Sequence[str]
) -> int:
    """A table of stored results; returns the row below it."""
    sheet.heads(row, heads)
    for i, line in enumerate(rows, row + 1):
        for j, (value, form) in enumerate(zip(line, forms, strict=True)):
            if isinstance(value, int | float):
                sheet.number(i, j, value, form, "solver")
            elif value is not None:
                sheet.text(i, j, value, "value" if j == 0 else "text")
    return row + 1 + len(rows)


def _whole(column: str, value: float | str) -> float | str:
    """Servers as people buy them, rounded up; other figures as they are."""
    servers = column.startswith(("servers", "needed", "installed"))
    return math.ceil(value - 1e-6) if servers and not isinstance(value, str) else value


def _simulated(sheet: Sheet, n: Numbers, f: Futures, row: int) -> int:
    q = n.question
    sheet.text(row, 0, message("Simulated futures (kept as they were when the plan was made)"), "heading")
    text = message(
        "In {share} of {n} futures demand is not met (95% interval {lo} to {hi}; seed {seed}); with servers kept to "
        "the workloads that Allocation gives them, in {unshared}.",
        share=fmt.share(f.shortfall.value),
        n=f"{f.draws:,}",
        lo=fmt.share(f.shortfall.lo),
        hi=fmt.share(f.shortfall.hi),
        seed=f.seed,
        unshared=fmt.share(f.unshared),
    )
    sheet.text(row + 1, 0, text, "note")
    servers = message("servers")

    def part(
        frame: pd.DataFrame, at_row: int, heads: Sequence[Head], columns: Sequence[str], forms: Sequence[str]
    ) -> int:
        rows = [
            [q.periods[int(r["period"])] if c == "period" else _whole(c, r[c]) for c in columns]
            for r in frame.to_dict("records")
        ]
        return _table(sheet, at_row, heads, rows, forms) + 1

    period, workload = Head(message("period")), Head(message("workload"), width=34)
    row = part(
        f.by_period,
        row + 2,
        [
            Head(message("period"), width=34),
            Head(message("installed"), servers),
            *(Head(message("needed at p{share}", share=p), servers) for p in (50, 90, 95)),
        ],
        ["period", "installed", "needed_p50", "needed_p90", "needed_p95"],
        ["", *[_COUNT] * 4],
    )
    row = part(
        f.table,
        row,
        [
            workload,
            period,
            Head(message("is short in"), message("share of futures")),
            *(Head(message("demand p{share}", share=p)) for p in (5, 50, 95)),
            *(Head(message("capacity p{share}", share=p)) for p in (5, 50, 95)),
            Head(message("in the plan"), servers),
            *(Head(message("needed at p{share}", share=p), servers) for p in (50, 90, 95)),
        ],
        [
            "workload",
            "period",
            "shortfall",
            *(f"{what}_p{p}" for what in ("demand", "capacity") for p in (5, 50, 95)),
            "servers",
            *(f"servers_p{p}" for p in (50, 90, 95)),
        ],
        ["", "", "0.0%", *[FIGURE_FORM] * 6, "#,##0.0", *[_COUNT] * 3],
    )
    sheet.text(row, 0, message("Alone, on the SKU that is cheapest for it"), "heading")
    return part(
        f.sizing,
        row + 1,
        [
            workload,
            period,
            Head(message("SKU")),
            *(Head(message("needed at p{share}", share=p), servers) for p in (50, 90, 95)),
        ],
        ["workload", "period", "sku", "servers_p50", "servers_p90", "servers_p95"],
        ["", "", "", *[_COUNT] * 3],
    )


def _tornado(sheet: Sheet, n: Numbers, effects: Sequence[Effect], row: int) -> int:
    money = n.question.currency
    sheet.text(
        row,
        0,
        message(
            "What drives the cost: change of the present value with one input changed (computed with the plan; kept)"
        ),
        "heading",
    )
    heads = [
        Head(message("input"), width=34),
        Head(message("low"), message("times the input"), 16),
        Head(message("high"), message("times the input"), 14),
        Head(message("adds at low"), money),
        Head(message("adds at high"), money),
        Head(message("range"), "", 32),
    ]
    rows = [
        [
            e.name,
            e.low,
            e.high,
            message("no plan") if e.at_low is None else e.at_low,
            message("no plan") if e.at_high is None else e.at_high,
            message("5% to 95% of the estimate") if e.known else message("assumed"),
        ]
        for e in effects
    ]
    return _table(sheet, row + 1, heads, rows, ["", "0.000", "0.000", _MONEY, _MONEY, ""]) + 1


def _saves(binding: Binding) -> float:
    saves = price_of(binding)[0]
    return -1.0 if saves is None else saves


def _bindings(sheet: Sheet, n: Numbers, bindings: Sequence[Binding], row: int) -> int:
    if not bindings:
        return row
    money = n.question.currency
    title = message("What limits the plan, and what relaxing each limit by one unit would save")
    sheet.text(row, 0, title, "heading")
    sheet.text(row + 1, 0, SAVINGS, "note")
    row += 1
    heads = [
        Head(message("limit"), width=34),
        Head(message("unit")),
        Head(message("more that was tried")),
        Head(message("saves for each unit"), message("{money}, present value", money=money), 16),
        Head(message("how it is known"), "", 30),
    ]
    rows = [
        [
            b.name,
            price_of(b)[1],
            b.more / 1000 if b.unit == "W" else b.more,
            price_of(b)[0],
            message("not solved in time")
            if b.saves is None
            else message("about: with fractions of servers")
            if b.relaxed
            else message("solved again"),
        ]
        for b in sorted(bindings, key=_saves, reverse=True)
    ]
    return _table(sheet, row + 1, heads, rows, ["", "", FIGURE_FORM, _MONEY, ""]) + 1


def _alternatives(sheet: Sheet, n: Numbers, others: Sequence[Alternative], row: int) -> int:
    if not others:
        return row
    money = n.question.currency
    sheet.text(row, 0, message("Next best plans, and what they trade (as differences to this one; kept)"), "heading")
    heads = [
        Head(message("plan"), width=34),
        Head(message("costs more"), message("{money}, present value", money=money), 16),
        Head(message("more at least, as proven"), money, 16),
        *(Head(_TRADES[key][0], _TRADES[key][1] or money) for key in TRADES),
    ]
    rows = [[o.name, o.extra, o.least, *(o.trades.get(key) for key in TRADES)] for o in others]
    return _table(sheet, row + 1, heads, rows, ["", *[_MONEY] * (2 + len(TRADES))]) + 1


def _solved(sheet: Sheet, answer: Answer, row: int) -> None:
    """The scenarios that were solved beside the plan, and their differences to it."""
    table = scenarios.rows(answer)
    if not table:
        return
    sheet.text(row, 0, message("Scenarios that were solved beside the plan (kept)"), "heading")
    names = [s.name for s in answer.scenarios]
    heads = [
        Head(message("figure"), width=34),
        Head(message("unit")),
        Head(message("plan")),
        *(Head(name) for name in names),
        *(Head(name, message("difference to the plan")) for name in names),
    ]
    none = message("no plan")
    rows = [
        [r.name, r.unit, r.plan, *(none if x is None else x for x in (*r.scenarios, *r.differences))] for r in table
    ]
    _table(sheet, row + 1, heads, rows, ["", "", *[_MONEY] * (1 + 2 * len(names))])
