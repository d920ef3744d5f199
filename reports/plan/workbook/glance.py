"""Build the tab At a glance: money, purchases, servers and power by year, service level, risks, next decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fleetmark.base.text import message
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular, Tone
from fleetmark.reports.kit.workbook import literal
from fleetmark.reports.plan.front import front
from fleetmark.reports.plan.model import PlanView
from fleetmark.reports.plan.workbook.cells import COUNT, MONEY, by_period, down, grid, live, names, numbers, ref
from fleetmark.reports.plan.workbook.inputs import Say
from fleetmark.reports.plan.workbook.numbers import Floats, Numbers

COMMAND = "fleetmark plan --from plan.xlsx --xlsx new.xlsx"
EDITED = message("edited")
REDO = message(
    "Only the solver can redo orders, retirements, active servers, allocation and margins. Save the workbook, "
    "then run: {command}",
    command=COMMAND,
)
_NEAR = 1e-9  # relative difference below which figures count as equal


def rules(say: Say) -> tuple[tuple[str, Tone], ...]:
    """Return the rule that colours the row of ``decisions`` red when the solver must run again."""
    return ((f"{{value}}={literal(say(EDITED))}", "bad"),)


def decisions(n: Numbers, say: Say) -> Row:
    """Return the row that says whether the solver's decisions match the current inputs."""
    as_solved, edited = say(message("as solved")), say(EDITED)
    last = f"p{n.periods - 1}!{len(n.workloads) - 1}"
    sums = [(f"SUM([{key}!p0!0:{last}])", float(np.nansum(values))) for key, values in _followed(n)]
    differs = [f"ABS(total_present_value-{ref('solved', 'value')})>{_NEAR:g}*ABS({ref('solved', 'value')})+0.01"]
    differs += [f"ABS({now}-{then!r})>{_NEAR:g}*{abs(then) + 1!r}" for now, then in sums]
    is_edited = abs(n.total - n.plan.objective) > _NEAR * abs(n.plan.objective) + 0.01
    changed = f"OR({','.join(differs)})"
    state = live(f"IF({changed},{literal(edited)},{literal(as_solved)})", edited if is_edited else as_solved)
    return (Cell(message("decisions of the solver")), state, Cell(REDO))


def _followed(n: Numbers) -> Iterator[tuple[str, Floats]]:
    """Yield the figures that depend on the inputs: planned demand and capacity, by workload and period."""
    yield "planned", n.planned
    yield "counted", np.array([n.counted(i) for i in range(len(n.workloads))])


def tables(v: PlanView, n: Numbers, say: Say) -> Iterator[Tabular]:
    """Yield figures by year, purchases by SKU and period, and the sentences of the first screen."""
    yield _figures(n, say)
    yield _again(say)
    yield _by_year(n)
    yield _bought(n)
    yield _sentences(v)


def _figures(n: Numbers, say: Say) -> Tabular:
    first: tuple[Row, ...] = (
        (Cell(message("present value")), live("total_present_value", n.total, MONEY), Cell(n.question.currency)),
        (*decisions(n, say)[:2], Cell()),
    )
    if any(work.revenue for work in n.question.workloads.values()):
        row = len(n.workloads) + 1
        revenue = sum(
            float(n.point[i] @ n.weight) * n.question.years * work.revenue
            for i, work in enumerate(n.question.workloads.values())
        )
        margin = live(ref("earned", "value", row), revenue - n.total, MONEY)
        first = (*first, (Cell(message("gross margin")), margin, Cell(n.question.currency)))
    columns = (
        *names(figure=message("figure")),
        numbers("value", message("value"), width=20, rules=rules(say)),
        Column("unit", message("unit")),
    )
    return Tabular("glance", message("The plan"), columns, first)


def _again(say: Say) -> Tabular:
    """Return how to run the solver again, in red if the inputs have been edited."""
    edited = f"{ref('glance', 'value', 1)}={literal(say(EDITED))}"
    columns = (*names(what=message("what")), Column("sentence", message("how"), "note", rules=((edited, "bad"),)))
    return Tabular(
        "again", message("After a change of inputs"), columns, [(Cell(message("solving again")), Cell(REDO))]
    )


def _by_year(n: Numbers) -> Tabular:
    """Return cash, servers and power of each year."""
    years = range(max(n.years))
    periods = [[t for t in range(n.periods) if n.years[t] == y + 1] for y in years]
    peak = n.budgeted_w.sum(axis=0) / 1000
    installed = n.installed.sum(axis=0)
    paid = sum(n.kinds.values(), start=np.zeros(n.periods))

    def cash(i: int) -> list[Cell]:
        values = [n.kinds["purchase"], paid - n.kinds["purchase"] - n.kinds["residual"], n.kinds["residual"], paid]
        return [live(ref("cash", y, i), values[i][periods[y]].sum(), MONEY) for y in years]

    def servers(table: str, values: Floats, chosen: Sequence[Sequence[int]]) -> list[Cell]:
        last = len(n.pairs) - 1
        sums = ["+".join(f"SUM({down(table, t, 0, last)})" if n.pairs else "0" for t in span) for span in chosen]
        return [live(formula, values[list(span)].sum(), COUNT) for formula, span in zip(sums, chosen, strict=True)]

    sites = len(n.sites) - 1
    all_sites = [f"SUM({down('power', t, 0, sites)})" for t in range(n.periods)]
    power = [
        live(
            f"MAX({','.join(all_sites[t] for t in span)})/1000",
            float(peak[span].max()),
            "#,##0",
        )
        for span in periods
    ]
    at_end = servers("installed", installed, [span[-1:] for span in periods])
    rows = (
        ((Cell(message("capital expenses (purchases)")), Cell(n.question.currency)), cash(0)),
        ((Cell(message("operating expenses")), Cell(n.question.currency)), cash(1)),
        ((Cell(message("worth at the end")), Cell(n.question.currency)), cash(2)),
        ((Cell(message("total")), Cell(n.question.currency)), cash(3)),
        ((Cell(message("servers ordered")), Cell()), servers("buy", n.buy.sum(axis=0), periods)),
        (
            (Cell(message("servers in place at its end")), Cell()),
            at_end,
        ),
        ((Cell(message("highest power against the limits")), Cell("kW")), power),
    )
    heads = (numbers(f"p{y}", name, width=14) for y, name in enumerate(n.year_names))
    columns = (*names(figure=message("figure")), Column("unit", message("unit")), *heads)
    title = message("By year")
    return grid("glance_years", title, columns, len(rows), lambda i: (*rows[i][0], *rows[i][1]))


def _bought(n: Numbers) -> Tabular:
    """Return the servers ordered of each SKU by period."""
    mine = [(s, [p for p, (sku, _) in enumerate(n.pairs) if sku == s]) for s in n.skus]
    some = [(s, pairs) for s, pairs in mine if pairs and n.buy[pairs].any()]

    def cell(i: int, t: int) -> Cell:
        pairs = some[i][1]
        return live(f"SUM({down('buy', t, pairs[0], pairs[-1])})", n.buy[pairs, t].sum())

    title = message("Servers to order, by period of the order")
    return by_period(n, "glance_buy", title, names(sku=message("SKU")), [[Cell(s)] for s, _ in some], cell, COUNT)


def _sentences(v: PlanView) -> Tabular:
    """Return the next decision, the service level and the largest risks, as they were when the plan was solved."""
    first = front(v)
    sentences = [(message("next decision"), first.now or message("Nothing is bought."))]
    sentences += [(message("promise"), sentence) for sentence in first.sure]
    sentences += [(message("if nothing is bought"), first.nothing)]
    sentences += [(message("risk {n}", n=i + 1), risk) for i, risk in enumerate(first.risks)]
    columns = (*names(what=message("what")), Column("sentence", message("when the plan was solved"), "note"))
    return Tabular(
        "glance_words", message("Decision, promise and risks"), columns, [(Cell(w), Cell(s)) for w, s in sentences]
    )
