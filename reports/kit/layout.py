"""Locate the cells of a table in its workbook sheet, so that formulas of other tables can refer to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fleetmark.base.text import message
from fleetmark.reports.kit.tabular import Column, Tabular
from fleetmark.reports.kit.workbook import cell

End = Literal["", "lo", "hi"]
HEAD_ROW = 3  # counted from 0, like all rows and columns in this module
FIRST_ROW = HEAD_ROW + 1


def sheet_columns(table: Tabular) -> Iterator[tuple[Column, End, int]]:
    """Yield the columns of the sheet: each column, followed by further columns for the bounds of its interval, if any.

    The last item of each tuple is the number of the column in the table.
    """
    may = [number for number, column in enumerate(table.columns) if column.right and column.has_interval]
    have = {number for row in table.rows for number in may if row[number].lo is not None} if may else set()
    for number, column in enumerate(table.columns):
        yield column, "", number
        if number in have:
            yield column, "lo", number
            yield column, "hi", number


def title_of(column: Column, end: End) -> str:
    """Return the title of a column of the sheet."""
    if not end:
        return column.title
    if end == "lo":
        return message("{figure}, low", figure=column.title)
    return message("{figure}, high", figure=column.title)


def column_of(table: Tabular, key: str, end: End = "") -> int:
    """Return the number of the sheet's column with this key. Raise KeyError if there is none."""
    for place, (column, part, _) in enumerate(sheet_columns(table)):
        if (column.key, part) == (key, end):
            return place
    raise KeyError(key)


def address(table: Tabular, row: int, key: str, end: End = "") -> str:
    """Return the cell of a row of the table, for formulas of any sheet: ``[ratios]!B5``."""
    return f"[{table.key}]!{cell(FIRST_ROW + row, column_of(table, key, end))}"


def span(table: Tabular, key: str, first: int = 0, last: int | None = None) -> str:
    """Return the cells of a column, from row ``first`` to ``last`` (the table's last if None): ``[ratios]!B5:B9``."""
    column = column_of(table, key)
    end = len(table.rows) - 1 if last is None else last
    return f"[{table.key}]!{cell(FIRST_ROW + first, column)}:{cell(FIRST_ROW + end, column)}"
