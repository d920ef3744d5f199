"""Build the tables of demand: medians and spread, quantiles, planned demand, and the plan's capacity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fleetmark.base.text import message
from fleetmark.demand import columns as demand
from fleetmark.demand import tables
from fleetmark.demand.columns import AMOUNT, Rule
from fleetmark.planner.capacity.question import SURVIVES
from fleetmark.reports.kit.format import FIGURE_FORM
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.plan.workbook.cells import (
    SPARE,
    by_period,
    decided,
    down,
    entry,
    grid,
    live,
    names,
    numbers,
    ref,
)
from fleetmark.reports.plan.workbook.limits import losses
from fleetmark.reports.plan.workbook.numbers import BAND, Floats, Numbers, quantile


def _growing(n: Numbers, rows: Sequence[int]) -> Tabular:
    """Return the inputs of workloads that grow at the same rate in all periods; their medians are computed."""
    start = Rule(message("a demand"))
    growth = Rule(message("a change"), minimum=-0.99, maximum=100)
    columns = (
        *names(workload=message("workload"), unit=message("unit")),
        numbers("start", message("in the first period"), AMOUNT, width=14),
        numbers("growth", message("growth a year"), "0.0%", width=14),
    )

    def row(j: int) -> Iterator[Cell]:
        i = rows[j]
        work = n.question.workloads[n.workloads[i]]
        yield from (Cell(work.name), Cell(work.unit))
        yield entry(demand.Column("growing_start", message("in the first period"), start, "", AMOUNT), n.point[i, 0])
        yield entry(demand.Column("growing_growth", message("growth a year"), growth, "", "0.0%"), n.growth(i))

    note = message(
        "The medians below are computed from these two values; overwrite them to enter a figure for each period."
    )
    return grid("growing", message("Demand that grows by one rate"), columns, len(rows), row, notes=(note,))


def _mix(n: Numbers) -> Tabular:
    """Return the inputs of the workload mix: a factor on the demand of each workload."""
    column = tables.MIX
    columns = (
        Column("workload", message("workload"), "name", name=f"{column.name}_of"),
        numbers("factor", column.title, column.form, width=14, name=column.name),
    )

    def row(i: int) -> tuple[Cell, Cell]:
        return Cell(n.workloads[i]), entry(column, 1.0)

    note = message("1: the demand as given. Demand, sizing, energy, revenue and checks follow the mix at once.")
    return grid("mix", message("Mix of work"), columns, len(n.workloads), row, notes=(note,))


def _grown(row: int, period: int) -> str:
    """Return the formula of the median demand, ``n`` periods after the first."""
    start, growth = ref("growing", "start", row), ref("growing", "growth", row)
    return f"{start}*(1+{growth})^(question_years*{period})"


def demands(n: Numbers) -> Iterator[Tabular]:
    """Yield demand by workload and period, its quantiles, the planned demand, and the plan's capacity."""
    q = n.question
    works = list(q.workloads.values())
    labels = names(workload=message("workload"), unit=message("unit"))
    labelled = [(Cell(work.name), Cell(work.unit)) for work in works]
    unitless = [(Cell(work.name), Cell("1")) for work in works]

    growing = {i: row for row, i in enumerate(i for i in range(len(works)) if n.growth(i) is not None)}

    def given(column: demand.Column, key: str, values: Floats, rows: list[tuple[Cell, Cell]]) -> Tabular:
        def cell(i: int, t: int) -> Cell:
            if key == "median" and i in growing:
                return live(_grown(growing[i], t), values[i][t], column.form)
            return entry(column, values[i][t] if i < len(works) else None)

        table = by_period(n, key, column.title, labels, [*rows, *[(Cell(), Cell())] * SPARE], cell)
        first, second, *rest = table.columns
        named = (replace(first, name=f"{column.name}_of"), second, *(replace(c, name=column.name) for c in rest))
        return replace(table, columns=named)

    def block(
        key: str, title: str, cell: Callable[[int, int], Cell], form: str, rows: Sequence[Sequence[Cell]] = ()
    ) -> Tabular:
        return by_period(n, key, title, labels, rows or labelled, cell, form)

    def spread(key: str, title: str, share: str, value: float) -> Tabular:
        def cell(i: int, t: int) -> Cell:
            formula = f"{ref('mixed', t, i)}*EXP(NORMSINV({share})*{ref('sigma', t, i)})"
            return live(formula, quantile(n.point[i, t], n.sigma[i, t], value))

        return block(key, title, cell, AMOUNT)

    if growing:
        yield _growing(n, list(growing))
    yield given(tables.MEDIAN, "median", n.point, labelled)
    yield _mix(n)
    mixed = message("median demand in this mix")
    yield block(
        "mixed", mixed, lambda i, t: live(f"{ref('median', t, i)}*{ref('mix', 'factor', i)}", n.point[i, t]), AMOUNT
    )
    yield given(tables.SIGMA, "sigma", n.sigma, unitless)
    yield spread("low", message("demand at 5%"), f"{BAND[0]:g}", BAND[0])
    yield spread("high", message("demand at 95%"), f"{BAND[1]:g}", BAND[1])
    at_share = message("demand at the share of futures in which it must be met")
    yield spread("quantile", at_share, "question_quantile", q.quantile)
    margin = message("margin: what the solver multiplied the median by, for demand and equivalence together")
    yield block("margin", margin, lambda i, t: decided(n.margin[i, t]), "0.0000", unitless)
    planned = message("planned demand: median times margin; the plan must meet it")
    yield block(
        "planned",
        planned,
        lambda i, t: live(f"{ref('mixed', t, i)}*{ref('margin', t, i)}", n.planned[i, t]),
        FIGURE_FORM,
    )
    solved = message("planned demand as solved")
    yield block("solved_demand", solved, lambda i, t: decided(n.planned[i, t]), FIGURE_FORM)
    work_of, used = down("allocation", "workload_no"), down("allocation", "rate")
    done = [n.done(i) for i in range(len(works))]
    delivered = [n.delivered(i) for i in range(len(works))]
    counted = [n.counted(i) for i in range(len(works))]

    def does(i: int, t: int) -> Cell:
        shares = f"{down('allocation', f'runs_{t}')}*{down('allocation', f'servers_{t}')}"
        return live(f"SUMPRODUCT(({work_of}={i + 1})*{used}*{shares})", done[i][t])

    def counts(i: int, t: int) -> Cell:
        each = len(losses(n)) // len(works)
        least = f"MIN({down('left', t, i * each, (i + 1) * each - 1)})"
        formula = f'IF({ref("workloads", "counts", i)}="{SURVIVES}",{least},{ref("delivered", t, i)})'
        return live(formula, counted[i][t])

    yield block("done", message("work done, all sites up"), does, FIGURE_FORM)
    yield block(
        "delivered",
        message("capacity, all sites up"),
        lambda i, t: live(f"SUMIFS({down('allocation', f'work_{t}')},{work_of},{i + 1})", delivered[i][t]),
        FIGURE_FORM,
    )
    yield block("counted", message("capacity"), counts, FIGURE_FORM)
    yield by_period(
        n,
        "band",
        message("width of the band of demand in charts"),
        labels,
        labelled,
        lambda i, t: live(
            f"{ref('high', t, i)}-{ref('low', t, i)}",
            quantile(n.point[i, t], n.sigma[i, t], BAND[1]) - quantile(n.point[i, t], n.sigma[i, t], BAND[0]),
        ),
        AMOUNT,
        is_working=True,
    )
