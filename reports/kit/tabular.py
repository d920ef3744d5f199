"""A table whose text is worked out once and reads alike in every format: columns, and cells with their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

_NUMBER = re.compile(r"-?[\d,]+(?:\.(\d+))?(%?)")


@dataclass(frozen=True, slots=True)
class Column:
    """``key``: its name in JSON. ``kind``: ``name`` tells rows apart, ``side`` too (a generation or candidate);
    ``note`` is a sentence that few rows have.
    """

    key: str
    title: str
    kind: Literal["name", "side", "text", "number", "note"] = "text"

    @property
    def right(self) -> bool:
        """Whether its cells stand at the right."""
        return self.kind == "number"


@dataclass(frozen=True, slots=True)
class Cell:
    """What is read, and the number behind it with every digit; None for words, and where there is none. ``unit``: the
    base unit of ``value`` where ``text`` has one too."""

    text: str = ""
    value: float | None = None
    unit: str = ""

    @property
    def form(self) -> str:
        """The number format by which a workbook shows ``value`` as ``text``; empty where none does."""
        match = _NUMBER.fullmatch(self.text)
        if self.value is None or match is None:
            return ""
        decimals, percent = match.groups()
        return f"{'0' if percent else '#,##0'}{'.' + '0' * len(decimals) if decimals else ''}{percent}"


@dataclass(frozen=True, slots=True)
class Tabular:
    """``key``: its name in JSON. Every row has a cell for each column."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a report that is made of tables: a heading, sentences, tables. ``key``: of its kind, in JSON."""

    key: str
    title: str
    notes: tuple[str, ...]
    tables: tuple[Tabular, ...]


def compact(table: Tabular) -> Tabular:
    """``table`` without the columns in which no row has anything."""
    kept = [n for n, _ in enumerate(table.columns) if any(row[n].text for row in table.rows)]
    rows = tuple(tuple(row[n] for n in kept) for row in table.rows)
    return Tabular(table.key, table.title, tuple(table.columns[n] for n in kept), rows)


def documents(parts: Sequence[Part]) -> dict[str, list[dict[str, Any]]]:
    """The parts by kind as JSON has them: numbers with every digit, null where there is none."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        tables = {table.key: [_record(table, row) for row in table.rows] for table in part.tables}
        kinds.setdefault(part.key, []).append({"title": part.title, "notes": list(part.notes), **tables})
    return kinds


def _record(table: Tabular, row: Sequence[Cell]) -> dict[str, Any]:
    return {
        column.key: cell.value if column.kind == "number" else str(cell.text)
        for column, cell in zip(table.columns, row, strict=True)
    }
