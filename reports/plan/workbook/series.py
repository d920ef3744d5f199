"""Build the table of figures that change from period to period, and the dependent cells of other tables."""

from __future__ import annotations

from dataclasses import replace

from fleetmark.base.text import message
from fleetmark.demand import tables
from fleetmark.demand.amounts import NOT_SOLD
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.plan.workbook.cells import SPARE, by_period, entry, live
from fleetmark.reports.plan.workbook.numbers import Numbers


def follows(n: Numbers, cell: Cell, key: str, name: str) -> Cell:
    """Return the input cell of a figure; if it changes over time, a reference to its first input in the series."""
    figures = n.series.get((key, name))
    if figures is None:
        return cell
    t = next(t for t, value in enumerate(figures) if value is not None)
    source = n.series_cell(key, name, t)
    return live(f'IF({source}="","",{source})', figures[t], cell.form)


def table(n: Numbers) -> Tabular:
    """Return the figures that change from period to period."""
    rows = [(tuple(map(entry, tables.series(), key)), values) for key, values in n.series.items()]
    empty = tuple(entry(column, None) for column in tables.series())
    labels = tuple(Column(c.field, c.title, "name", name=c.name) for c in tables.series())

    def cell(i: int, t: int) -> Cell:
        if i >= len(rows):
            return Cell("", is_input=True)
        value = rows[i][1][t]
        return Cell(NOT_SOLD, is_input=True) if value is None else Cell("", value, is_input=True)

    labelled = [*(names for names, _ in rows), *[empty] * SPARE]
    grid = by_period(n, "series", message("Figures by period"), labels, labelled, cell, "#,##0.####")
    first, second, *rest = grid.columns
    return replace(grid, columns=(first, second, *(replace(c, name=tables.SERIES_VALUE) for c in rest)))
