"""A table of a workbook, row by row: texts and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.kit.workbook import Head, Sheet


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its format; ``formula``: by which the sheet computes it, ``{line}`` for the number of its row."""

    value: float | None
    form: str
    formula: str = ""


Row = tuple[str | Figure, ...]


def table(sheet: Sheet, row: int, heads: Sequence[Head], rows: Sequence[Row], *, frozen: int = 0) -> None:
    """The sheet's one table, its heads at ``row``; ``frozen`` columns stay visible."""
    for at, cells in enumerate(rows, row + 1):
        for n, (head, cell) in enumerate(zip(heads, cells, strict=True)):
            if not isinstance(cell, Figure):
                sheet.text(at, n, cell, head.role)
            elif cell.formula and cell.value is not None:
                sheet.formula(at, n, cell.formula.format(line=at + 1), cell.value, cell.form)
            else:
                sheet.number(at, n, cell.value, cell.form, "value")
    sheet.heads(row, heads)
    sheet.filtered(row, row + len(rows), len(heads), frozen_columns=frozen)
