"""Build the tables of costs: by kind and period, as present value, by year, and purchases by SKU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from fleetmark.base.text import Message, message
from fleetmark.demand.columns import PRICE
from fleetmark.planner.capacity.question import KINDS
from fleetmark.planner.cost.cash import AT_END, CAPITAL, by_year
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.plan.model import kind
from fleetmark.reports.plan.workbook import shares
from fleetmark.reports.plan.workbook.cells import (
    MONEY,
    across,
    by_period,
    decided,
    down,
    grid,
    live,
    names,
    numbers,
    plain,
    ref,
    total,
)
from fleetmark.reports.plan.workbook.numbers import Floats, Numbers

LAST = len(KINDS) - 1  # the last row of kinds, above the row of sums


def tables(n: Numbers) -> Iterator[Tabular]:
    """Yield money by kind and period, its present value, and by year."""
    labels = [kind(name) for name in KINDS]
    kinds = np.array([n.kinds[kind] for kind in KINDS])
    formulas = _formulas(n)
    yield _summed(
        n, "kinds", message("Money in each period, undiscounted"), labels, lambda i, t: formulas[KINDS[i]](t), kinds
    )
    yield by_period(
        n,
        "weights",
        message("Periods"),
        names(kind=message("figure")),
        [[Cell(message("present value of 1"))], [Cell(message("no. of the year"))]],
        lambda i, t: plain(n.years[t]) if i else live(ref("periods", "weight", t), n.weight[t], "0.0000"),
        "0",
    )
    present = message("Present value")
    yield _summed(
        n,
        "present",
        present,
        labels,
        lambda i, t: f"{ref('kinds', t, i)}*{ref('weights', t)}",
        kinds * n.weight,
        name="total_present_value",
    )
    emitted = (n.embodied + n.question.grid * n.kwh)[None]
    yield by_period(
        n,
        "emitted",
        message("Carbon of energy and of making the ordered servers"),
        (*names(figure=message("figure")), Column("unit", message("unit"))),
        [[Cell(message("carbon")), Cell("kg CO2e")]],
        lambda i, t: live(formulas["emitted"](t), emitted[i, t]),
        MONEY,
        last=[total(emitted)],
    )
    yield _by_year(n, kinds)
    yield _cash(n)
    yield from shares.tables(n)
    if any(work.revenue for work in n.question.workloads.values()):
        yield _earned(n)
    mine = [[p for p, (s, _) in enumerate(n.pairs) if s == sku] for sku in n.skus]

    def spent(i: int, t: int) -> str:
        if not mine[i]:
            return "0"
        rows = mine[i][0], mine[i][-1]
        return f"SUMPRODUCT({down('paid', t, *rows)},{down('buy', t, *rows)})"

    bought = np.array([(n.buy[rows] * n.paid[rows]).sum(axis=0) for rows in mine])
    yield _summed(n, "bought", message("Purchases by SKU, undiscounted"), n.skus, spent, bought)
    more = round(n.total - n.plan.objective, 2) + 0.0
    now = f"ROUND({ref('present', 'total', LAST + 1)}-{ref('solved', 'value')},2)"
    rows = (
        (Cell(message("present value as solved")), decided(n.plan.objective)),
        (Cell(message("present value now, less that as solved")), live(now, more)),
    )
    columns = (*names(kind=message("figure")), numbers("value", message("value"), PRICE, unit=n.question.currency))
    yield Tabular("solved", message("Compared with the solved plan"), columns, rows)


def _summed(
    n: Numbers,
    key: str,
    title: str,
    labels: Sequence[str],
    formula: Callable[[int, int], str],
    values: Floats,
    *,
    name: str = "",
) -> Tabular:
    """Return a table of amounts of money, with totals in the last row and the last column."""
    everything = np.vstack([values, values.sum(axis=0)])
    last = len(labels) - 1

    def cell(i: int, t: int) -> Cell:
        if i > last:
            return live(f"SUM({down(key, t, 0, last)})", everything[i, t], tone="strong")
        return live(formula(i, t), everything[i, t])

    column, across_row = total(everything, tone="strong")
    sums = column, lambda i: replace(across_row(i), name=name if i > last else "")
    rows = [[Cell(label)] for label in (*labels, message("total"))]
    return by_period(n, key, _in(title, n), names(kind=message("kind")), rows, cell, MONEY, last=[sums])


def _in(title: str, n: Numbers) -> Message:
    return message("{figure}, {currency}", figure=title, currency=n.question.currency)


def _formulas(n: Numbers) -> Mapping[str, Callable[[int], str]]:
    """Return the formulas for each kind of cost in a period, and for carbon emissions."""

    def column(name: str) -> str:
        return down("figures", name)

    def draw(t: int) -> str:
        active = down("active", t)
        return f"({column('idle_w')}*{active}+{column('swing')}*{down('load', t)}*{active})"

    def energy(t: int) -> str:
        if not any(key == "energy_price" for key, _ in n.series):
            return f"SUMPRODUCT({column('watt')}*{draw(t)})*{ref('periods', 'energy', t)}"
        return f"SUMPRODUCT({column('kwh')}*{down('energy_prices', t)}*{draw(t)})*{ref('periods', 'energy', t)}"

    left = f"[kept_worth!p0!0:p{n.periods - 1}!{len(n.pairs) - 1}]"
    return {
        "emitted": lambda t: (
            f"SUMPRODUCT({column('embodied')},{down('buy', t)})+question_grid*SUMPRODUCT({column('kwh')}*{draw(t)})"
        ),
        "purchase": lambda t: f"SUMPRODUCT({down('paid', t)},{down('buy', t)})",
        "energy": energy,
        "rent": lambda t: f"question_years*SUMPRODUCT({column('rent')},{down('installed', t)})",
        "support": lambda t: f"question_years*SUMPRODUCT({column('support')},{down('installed', t)})",
        "space": lambda t: f"question_years*SUMPRODUCT({column('space')},{down('installed', t)})",
        "migration": lambda t: f"SUMPRODUCT({column('migration')},{down('retire', t)})",
        "carbon": lambda t: f"question_carbon_price/1000*{ref('emitted', t)}",
        "residual": lambda t: f"-SUM({left})" if t == n.periods - 1 and n.pairs else "0",
    }


def _cash(n: Numbers) -> Tabular:
    """Return capital and operating expenses by year, and the depreciation of purchases if there is any."""
    cash = by_year(n, [year - 1 for year in n.years])
    running = [i for i, kind in enumerate(KINDS) if kind not in (CAPITAL, AT_END)]
    capital, at_end = KINDS.index(CAPITAL), KINDS.index(AT_END)
    last = len(n.pairs) - 1

    def year(i: int, y: int) -> str:
        return ref("years", y, i)

    def parts(y: int) -> str:
        inside = "+".join(f"SUM({down('depreciated', t, 0, last)})" for t in range(n.periods) if n.years[t] == y + 1)
        return inside if n.pairs else "0"

    def book(y: int) -> str:
        before = f"{{p{y - 1}}}+" if y else ""
        return f"{before}{ref('cash', y, 0)}-{ref('cash', y, 4)}"

    rows: list[tuple[Message, Callable[[int], str], Floats]] = [
        (message("capital expenses (purchases)"), lambda y: year(capital, y), cash.capex),
        (message("operating expenses"), lambda y: "+".join(year(i, y) for i in running), cash.opex),
        (message("worth at the end"), lambda y: year(at_end, y), cash.at_end),
        (message("total"), lambda y: f"SUM({down('cash', y, 0, 2)})", cash.total),
    ]
    if n.question.depreciation:
        rows += [
            (message("depreciation"), parts, cash.depreciation),
            (message("paid, not yet depreciated"), book, cash.book),
        ]

    def row(i: int) -> Iterator[Cell]:
        label, formula, values = rows[i]
        yield Cell(label)
        yield from (live(formula(y), values[y]) for y in range(len(values)))

    heads = (numbers(f"p{y}", name, MONEY, width=11) for y, name in enumerate(n.year_names))
    columns = (*names(kind=message("figure")), *heads)
    return grid("cash", _in(message("Capital and operating expenses by year"), n), columns, len(rows), row)


def _earned(n: Numbers) -> Tabular:
    """Return the present value of each workload's revenue at the median demand, and the gross margin of the plan."""
    works = list(n.question.workloads.values())
    revenue = [float(n.point[i] @ n.weight) * n.question.years * work.revenue for i, work in enumerate(works)]
    weights, last = across("weights", 0, n.periods - 1), len(works)
    rows = [
        (
            Cell(work.name),
            live(
                f"SUMPRODUCT({across('mixed', i, n.periods - 1)},{weights})*question_years"
                f"*N({ref('workloads', 'revenue', i)})",
                revenue[i],
            ),
        )
        for i, work in enumerate(works)
    ]
    all_revenue = f"SUM({down('earned', 'value', 0, last - 1)})"
    rows.append((Cell(message("revenue of all workloads")), live(all_revenue, sum(revenue), tone="strong")))
    margin = f"{ref('earned', 'value', last)}-total_present_value"
    rows.append((Cell(message("gross margin")), live(margin, sum(revenue) - n.total, tone="strong")))
    columns = (*names(workload=message("workload")), numbers("value", message("present value"), MONEY, width=14))
    return Tabular("earned", _in(message("Revenue and gross margin"), n), columns, rows)


def _by_year(n: Numbers, kinds: Floats) -> Tabular:
    years = range(max(n.years))
    yearly = np.array([[row[np.array(n.years) == y + 1].sum() for y in years] for row in kinds])
    everything = np.vstack([yearly, yearly.sum(axis=0)])
    numbered = across("weights", 1, n.periods - 1)
    column, sums = total(everything, tone="strong")

    def row(i: int) -> Iterator[Cell]:
        yield Cell(message("total") if i > LAST else kind(KINDS[i]))
        for y in years:
            spent = f"SUMIFS({across('kinds', i, n.periods - 1)},{numbered},{y + 1})"
            if i > LAST:
                yield live(f"SUM({down('years', y, 0, LAST)})", everything[i, y], tone="strong")
            else:
                yield live(spent, everything[i, y])
        yield sums(i)

    heads = (numbers(f"p{y}", name, MONEY, width=11) for y, name in enumerate(n.year_names))
    columns = (*names(kind=message("kind")), *heads, column)
    return grid("years", _in(message("By year, undiscounted"), n), columns, len(everything), row)
