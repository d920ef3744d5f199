"""Build the table of costs by workload: each workload's share of every SKU at a site, and the sums."""

from __future__ import annotations

from collections.abc import Iterator

from fleetmark.base.text import message
from fleetmark.planner.cost.margin import by_workload
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.plan.workbook.cells import MONEY, across, down, grid, live, names, numbers, ref
from fleetmark.reports.plan.workbook.numbers import Numbers


def tables(n: Numbers) -> Iterator[Tabular]:
    """Yield the present value of every SKU at a site, and the cost of each workload."""
    cost = numbers("cost", message("cost"), MONEY, unit=n.question.currency, width=14)

    def pair(i: int) -> Iterator[Cell]:
        yield from (live(ref("buy", key, i), name) for key, name in zip(("sku", "site"), n.pairs[i], strict=True))
        yield live(_cost(n, i), n.pair_costs[i])

    title = message("Present value of all costs of a SKU at a site")
    yield grid(
        "cost_of_pair",
        title,
        (*names(sku=message("SKU"), site=message("site")), cost),
        len(n.pairs),
        pair,
        is_working=True,
    )
    yield _by_workload(n)


def columns_of_combos(n: Numbers) -> tuple[Column, Column]:
    """Return the columns of each workload's use of a SKU at a site, and its cost."""
    return (
        numbers("used_up", message("servers, over all periods"), "#,##0.00", width=14),
        numbers("cost", message("its part of the cost"), MONEY, unit=n.question.currency, width=14),
    )


def of_combo(n: Numbers, c: int) -> Iterator[Cell]:
    """Yield the cells of these columns."""
    p, last, key = n.combos[c][1], n.periods - 1, "allocation"
    yield live("+".join(f"{{share_{t}}}*{{servers_{t}}}" for t in range(last + 1)), n.used_up[c])
    all_servers = f"SUMIFS({down(key, 'used_up')},{down(key, 'pair_no')},{p + 1})"
    all_used = n.used_of_pair[p]
    money = n.pair_costs[p] * n.used_up[c] / all_used if all_used else 0.0
    yield live(f"IF({all_servers}=0,0,{ref('cost_of_pair', 'cost', p)}*{{used_up}}/{all_servers})", money)


def _by_workload(n: Numbers) -> Tabular:
    """Return the cost of each workload; costs of unused servers are divided in proportion to the other costs."""
    money = by_workload(n)
    total, mine = float(money.sum()), down("allocation", "cost")

    def row(i: int) -> Iterator[Cell]:
        yield Cell(n.workloads[i])
        direct = f"SUMIFS({mine},{down('allocation', 'workload_no')},{i + 1})"
        every, even = f"SUM({mine})", f"total_present_value/{len(n.workloads)}"
        formula = f"IF({every}=0,{even},total_present_value*{direct}/{every})"
        yield live(formula if n.combos else even, money[i])
        share = float(money[i]) / total if total else 0.0
        yield live("IF(total_present_value=0,0,{cost}/total_present_value)", share)

    columns = (
        *names(workload=message("workload")),
        numbers("cost", message("present value"), MONEY, unit=n.question.currency, width=14),
        numbers("share", message("share of all costs"), "0.0%", width=14),
    )
    note = message("A SKU at a site is paid by its workloads in proportion to their servers over all periods.")
    title = message("Cost by workload")
    return grid("cost_by_workload", title, columns, len(n.workloads), row, notes=(note,))


def _cost(n: Numbers, i: int) -> str:
    """Return the formula of the present value of all costs of a SKU at a site."""
    last = n.periods - 1
    weights = across("weights", 0, last)
    buy, paid, installed, retire, active, load, kept = (
        across(key, i, last) for key in ("buy", "paid", "installed", "retire", "active", "load", "kept_worth")
    )

    def figure(key: str) -> str:
        return ref("figures", key, i)

    level = f"(1+N(question_energy_price_change))^(question_years*(COLUMN({weights})-COLUMN({ref('weights', 0)})))"
    price = f"{figure('watt')}*{level}"
    if any(key == "energy_price" for key, _ in n.series):
        price = f"{figure('kwh')}*{across('energy_prices', i, last)}*{level}"
    watts = f"({figure('idle_w')}+{figure('swing')}*{load})*{active}"
    per_watt = f"({price}+question_carbon_price/1000*question_grid*{figure('kwh')})"
    yearly = f"({figure('rent')}+{figure('support')}+{figure('space')})*question_years"
    making = f"question_carbon_price/1000*{figure('embodied')}"
    return (
        f"SUMPRODUCT({weights}*(({paid}+{making})*{buy}+{yearly}*{installed}+{figure('migration')}*{retire}"
        f"+{watts}*{per_watt}))-SUM({kept})*{ref('weights', last)}"
    )
