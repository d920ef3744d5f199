"""A table of a workbook: its columns, texts and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.kit.workbook import Head, Sheet


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: ``width`` in characters, ``role`` of its texts."""

    title: str
    width: int
    role: str = "text"
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its format; ``formula``: by which the sheet computes it, ``{line}`` for the number of its row."""

    value: float | None
    form: str
    formula: str = ""


Row = tuple[str | Figure, ...]


def table(sheet: Sheet, row: int, columns: Sequence[Column], rows: Sequence[Row], *, frozen: int = 0) -> None:
    """The sheet's one table, its heads at ``row``; ``frozen`` columns stay visible."""
    for at, cells in enumerate(rows, row + 1):
        for n, (column, cell) in enumerate(zip(columns, cells, strict=True)):
            if not isinstance(cell, Figure):
                sheet.text(at, n, cell, column.role)
            elif cell.formula and cell.value is not None:
                sheet.formula(at, n, cell.formula.format(line=at + 1), cell.value, cell.form)
            else:
                sheet.number(at, n, cell.value, cell.form, "value")
    sheet.heads(row, [Head(c.title, c.unit, c.width) for c in columns])
    sheet.filtered(row, row + len(rows), len(columns), frozen_columns=frozen)
