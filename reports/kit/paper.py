"""Fit tables on paper: one that is wider than its page becomes several, each with the columns that name its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, islice, takewhile

from fleetmark.base.text import message
from fleetmark.reports.kit.tabular import Cell, Column, Tabular

LANDSCAPE = 271.0  # mm between the margins of paper.css; all lengths here are in mm
UPRIGHT = 170.0  # less than 184, because widths are estimates
FEW = 7  # columns, with breakable names, that always fit on a portrait page
_CHARACTER, _PADDING, _PLOT, _NAME = 1.55, 1.6, 52.0, 22.0
_ROWS = 300  # rows examined for the width


def pieces(table: Tabular) -> Iterator[Tabular]:
    """Yield the table, or parts of it that fit on a page in landscape format. Groups of columns stay together."""
    widths = _widths(table)
    if sum(widths) <= LANDSCAPE:
        yield table
        return
    numbered = list(enumerate(table.columns))
    first = [n for n, column in takewhile(lambda entry: entry[1].role in ("name", "side", "text"), numbered)]
    if sum(widths[n] for n in first) > LANDSCAPE / 2:
        first = first[:1]
    parts: list[list[int]] = [[]]
    room = LANDSCAPE - sum(widths[n] for n in first)
    for n_or_group, run in groupby(numbered[len(first) :], lambda entry: entry[1].group or entry[0]):
        members = [n for n, _ in run]
        blocks = [members] if n_or_group and sum(widths[n] for n in members) <= room else [[n] for n in members]
        for block in blocks:
            if parts[-1] and sum(widths[n] for n in (*parts[-1], *block)) > room:
                parts.append([])
            parts[-1] += block
    for number, part in enumerate(parts):
        piece = table.columns_at([*first, *part])
        title = message("{table}, further columns", table=table.title)
        yield replace(piece, title=title, notes=()) if number else piece


def is_wide(table: Tabular) -> bool:
    """Return whether the table needs a page in landscape format."""
    return len(table.columns) > FEW and sum(_widths(table)) > UPRIGHT


def _widths(table: Tabular) -> list[float]:
    """Return the approximate minimum width of each column."""
    return [_width(column, [row[n] for row in islice(table.rows, _ROWS)]) for n, column in enumerate(table.columns)]


def _width(column: Column, cells: list[Cell]) -> float:
    """Return the approximate minimum width of a column in mm, at the font size of tables."""
    if column.plot or any(cell.plot for cell in cells):
        return _PLOT
    if column.role in ("number", "verdict"):
        longest = max(
            (max(len(cell.text), 0.85 * (len(cell.ends) + 2) if cell.ends else 0) for cell in cells), default=0
        )
        heading = max(map(len, column.title.split()), default=0)
        return max(longest, min(heading, 12), 5) * _CHARACTER + _PADDING
    words = (word for cell in cells for word in (*cell.text.split(), *column.title.split()))
    longest = min(max(map(len, words), default=0), 24)
    return max(longest * _CHARACTER + _PADDING, _NAME if column.role in ("name", "side") else 0.0)
