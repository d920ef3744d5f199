"""Tables whose text is worked out once and reads alike in every format: columns, and cells with their values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

from fleetmark.base.text import joined
from fleetmark.base.units import human, scale_for, significant
from reports.kit import format as fmt

_NUMBER = re.compile(r"-?[\d,]+(?:\.(\d+))?(%?)")
Tone = Literal["", "good", "bad", "unsure", "strong", "hot1", "hot2", "hot3"]  # hot: how far, on a map of heat


@dataclass(frozen=True, slots=True)
class Column:
    """``key``: its name in JSON and CSV. ``role``: ``name`` tells rows apart, ``side`` too (a generation or candidate);
    ``note`` is a sentence that few rows have, ``code`` something to type, ``file`` paths below the
    document's folder, with "; " between them. ``formula``: what computes it in a
    workbook, with ``{key}`` for the cell of another column in the same row.
    """

    key: str
    title: str
    role: Literal["name", "side", "text", "number", "verdict", "note", "code", "file"] = "text"
    formula: str = ""

    @property
    def right(self) -> bool:
        """Whether its cells stand at the right."""
        return self.role == "number"


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and the number behind it with every digit; None for words, and where there is none. ``unit``: the base
    unit of ``value`` where ``text`` has one too. ``lo``, ``hi``: the ends of its interval, which ``text`` does not
    have: ``shown`` adds them. ``tone``: whether it is good or bad news.
    """

    text: str = ""
    value: float | None = None
    unit: str = ""
    _: KW_ONLY
    lo: float | None = None
    hi: float | None = None
    ends: str = ""
    tone: Tone = ""

    @property
    def shown(self) -> str:
        """The text with the interval behind it."""
        return joined([self.text, f"({self.ends})" if self.ends else None], " ")

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
    """``key``: its name in JSON. Every row has a cell for each column. ``listing``: a list that is asked for as such,
    which a terminal shows whole."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    listing: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a report that is made of tables: a heading, sentences, tables. ``key``: of its kind, in JSON."""

    key: str
    title: str
    notes: tuple[str, ...]
    tables: tuple[Tabular, ...]


def number(value: float | None) -> Cell:
    """A count, ``1,234``; an empty cell for None."""
    return Cell() if value is None else Cell(f"{value:,.0f}", value)


def share(value: float | None, decimals: int = 1) -> Cell:
    """A part of 1 in percent; an empty cell for None."""
    return Cell() if value is None else Cell(fmt.share(value, decimals), value)


def quantity(
    value: float | None,
    unit: str,
    *,
    lo: float | None = None,
    hi: float | None = None,
    bits: bool = False,
    percent: bool = False,
    digits: int = 3,
) -> Cell:
    """A value of a base unit with ``digits`` significant digits, and its interval; an empty cell for None."""
    if value is None:
        return Cell()
    scale = scale_for(value, unit, bits=bits, percent=percent)
    ends = "" if lo is None or hi is None else "–".join(significant(v * scale.factor, digits) for v in (lo, hi))
    return Cell(human(value, unit, bits=bits, percent=percent, digits=digits), value, unit, lo=lo, hi=hi, ends=ends)


def times(value: float | None, lo: float | None = None, hi: float | None = None) -> Cell:
    """How many times as much, with its interval; an empty cell for None."""
    return Cell() if value is None else Cell(fmt.ratio(value), value, lo=lo, hi=hi, ends=fmt.interval(lo, hi))


def compact(table: Tabular) -> Tabular:
    """``table`` without the columns in which no row has anything."""
    kept = [n for n, _ in enumerate(table.columns) if any(row[n].text for row in table.rows)]
    rows = tuple(tuple(row[n] for n in kept) for row in table.rows)
    return replace(table, columns=tuple(table.columns[n] for n in kept), rows=rows)


def records(table: Tabular) -> list[dict[str, float | str | None]]:
    """The rows for programs: numbers with every digit, their unit and the ends of their interval in keys of their own
    (``KEY_unit``, ``KEY_lo``, ``KEY_hi``) where a column has any; None where a number is missing."""
    fields = [list(_fields(column, [row[n] for row in table.rows])) for n, column in enumerate(table.columns)]
    keys = [key for field in fields for key, _ in field]
    columns = [cells for field in fields for _, cells in field]
    return [dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True)]


def _fields(column: Column, cells: Sequence[Cell]) -> Iterator[tuple[str, list[float | str | None]]]:
    if column.role != "number":
        yield column.key, [str(cell.text) for cell in cells]
        return
    yield column.key, [cell.value for cell in cells]
    if any(cell.unit for cell in cells):
        yield f"{column.key}_unit", [cell.unit if cell.value is not None else None for cell in cells]
    if any(cell.lo is not None for cell in cells):
        yield f"{column.key}_lo", [cell.lo for cell in cells]
        yield f"{column.key}_hi", [cell.hi for cell in cells]


def documents(parts: Sequence[Part]) -> dict[str, list[dict[str, Any]]]:
    """The parts by kind as JSON has them: numbers with every digit, null where there is none."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        tables = {table.key: [_record(table, row) for row in table.rows] for table in part.tables}
        kinds.setdefault(part.key, []).append({"title": part.title, "notes": list(part.notes), **tables})
    return kinds


def _record(table: Tabular, row: Sequence[Cell]) -> dict[str, Any]:
    return {
        column.key: cell.value if column.right else str(cell.text)
        for column, cell in zip(table.columns, row, strict=True)
    }
