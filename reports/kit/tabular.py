"""Define tables with text that is formatted once and is the same in every format: columns, and cells with values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import groupby, islice
from typing import Literal, overload

from fleetmark.base.text import joined
from fleetmark.base.units import scale_for, significant, with_unit
from fleetmark.reports.kit import format as fmt

_NUMBER = re.compile(r"[-\u2212]?[\d,]+(?:\.(\d+))?(%?)")
Kind = Literal["terminal", "html", "pdf", "xlsx", "markdown", "json", "csv"]
# hot1 to hot3: levels of a heat map. h-5 to h5: levels of a deviation; positive is better.
Heat = Literal["hot1", "hot2", "hot3", "h-5", "h-4", "h-3", "h-2", "h-1", "h0", "h1", "h2", "h3", "h4", "h5"]
Tone = Literal["", "good", "bad", "unsure", "strong"] | Heat


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    ``key``: its name in JSON and CSV. ``formula``: the formula that computes it in a workbook, with ``{key}`` for the
    cell of another column in the same row, ``[table]!`` before an address in the sheet of the table with that key,
    ``[table!key!row]`` for a cell, ``[table!key!row:key!row]`` for a range, and ``[table!key]`` for a whole column.
    ``role``: the use of the column. ``name`` and ``side`` (a generation or candidate) identify a row, ``note`` is a
    sentence that only a few rows have, ``code`` is text to type, and ``file`` contains paths below the document's
    folder, separated by "; ". ``hint``: an explanation that a page shows on hover. ``group``: a heading over
    neighbouring columns with the same group. ``only``: the formats that include the column; all formats if empty.
    ``unit``: the unit of the column's figures, if its cells have none in their text. ``plot``: an inline SVG beside the
    title, for pages. ``form``: the number format of its cells in a workbook, if it does not follow from their text.
    ``has_interval``: whether its cells may have an interval. ``name``: the name of its cells in a workbook;
    neighbouring columns with the same name are one range. ``rules``: formulas that give its cells a tone in a workbook
    while they are true. ``width``: in characters, in a workbook. ``is_working``: a workbook does not print it.
    """

    key: str
    title: str
    role: Literal["name", "side", "text", "number", "verdict", "note", "code", "file"] = "text"
    formula: str = ""
    _: KW_ONLY
    hint: str = ""
    group: str = ""
    only: tuple[Kind, ...] = ()
    unit: str = ""
    plot: str = ""
    form: str = ""
    has_interval: bool = True
    name: str = ""
    rules: tuple[tuple[str, Tone], ...] = ()
    width: int = 0
    is_working: bool = False

    @property
    def right(self) -> bool:
        """Return whether the cells of the column are right-aligned."""
        return self.role == "number"

    def full_title(self, _: Callable[[str], str]) -> str:
        """Return the title with the group and the unit of the column, for formats with one line of headings."""
        title = joined([_(self.group), _(self.title)], ": ")
        return f"{title} ({_(self.unit)})" if self.unit else title


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and its number ``value`` with full precision; None if the text is not a number or is empty.

    ``unit``: the base unit of ``value``, if ``text`` has a unit. ``lo``, ``hi``: the bounds of its interval, which
    ``shown`` adds to ``text``. ``tone``: whether it is good or bad news. ``plot``: an inline SVG, for pages. ``hint``:
    an explanation that a page shows on hover. ``link``: the id of a section or table of the same page. ``formula``: as
    ``Column.formula``, for this cell only. ``is_input``: the reader of a workbook may change the cell, between
    ``limits`` or to one of ``choices`` (listed, or the name of a range with suggestions); ``hint`` is then its prompt.
    ``is_decided``: a solver decided its value. ``entry``: the number of the document's breakdown entry that a page
    opens from this cell; ``origin``: that of the document's origin. ``details``: further lines below the text.
    ``anchor``: the id of the row on a page. ``name``: the name of the cell in a workbook. ``form``: as ``Column.form``,
    for this cell only.
    """

    text: str = ""
    value: float | None = None
    unit: str = ""
    _: KW_ONLY
    lo: float | None = None
    hi: float | None = None
    ends: str = ""
    tone: Tone = ""
    plot: str = ""
    hint: str = ""
    link: str = ""
    formula: str = ""
    is_input: bool = False
    limits: tuple[float, float] | None = None
    choices: tuple[str, ...] | str = ()
    is_decided: bool = False
    entry: int | None = None
    origin: int | None = None
    details: tuple[str, ...] = ()
    anchor: str = ""
    name: str = ""
    form: str = ""

    @property
    def shown(self) -> str:
        """Return the text followed by the interval, with the minus sign that people read."""
        text = joined([self.text, f"({self.ends})" if self.ends else None], " ")
        return text if self.value is None else fmt.with_minus(text)

    @property
    def full(self) -> str:
        """Return the text with interval and details in one line."""
        return joined([self.shown, *self.details])

    @property
    def text_form(self) -> str:
        """Return the number format with which a workbook shows ``value`` as ``text``; empty if there is none."""
        match = _NUMBER.fullmatch(self.text)
        if self.value is None or match is None:
            return ""
        decimals, percent = match.groups()
        return f"{'0' if percent else '#,##0'}{'.' + '0' * len(decimals) if decimals else ''}{percent}"


Row = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Tabular:
    """A table. Every row has a cell for each column.

    ``key``: the table's name in JSON. ``rows``: any sequence; a format reads the rows once, in order, so they may be
    computed when read. ``listing``: the user asked for this list, so a terminal shows all rows. ``heads``: numbers of
    the rows that are headings of the rows below; a page folds the rows below. ``notes``: sentences between title and
    table. ``limits``: the maximum number of rows in each format, which states how many it omits. ``is_folded``: a page
    on a screen shows only the title until the reader opens the table. ``is_large``: the table may have millions of
    cells, so that a workbook is written through files. ``is_working``: a workbook does not print it.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    listing: bool = False
    _: KW_ONLY
    heads: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    limits: Mapping[Kind, int] = field(default_factory=dict)
    is_folded: bool = False
    is_large: bool = False
    is_working: bool = False

    def for_format(self, kind: Kind) -> Tabular:
        """Return the table with the columns that the format includes."""
        kept = [n for n, column in enumerate(self.columns) if not column.only or kind in column.only]
        return self if len(kept) == len(self.columns) else self.columns_at(kept)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Return the groups of neighbouring columns, each with its number of columns."""
        return [(group, len(list(run))) for group, run in groupby(self.columns, lambda column: column.group)]

    def columns_at(self, places: Sequence[int]) -> Tabular:
        """Return the table with the columns at these ``places``."""
        return replace(self, columns=tuple(self.columns[n] for n in places), rows=_Chosen(self.rows, places))


class LazyRows(Sequence[Row]):
    """Rows that are computed in order each time they are read.

    ``size``: the number of rows, an upper bound, or a function that returns it.
    """

    def __init__(self, make: Callable[[], Iterable[Row]], size: int | Callable[[], int]) -> None:
        self.make, self.size = make, size

    def __len__(self) -> int:
        return self.size if isinstance(self.size, int) else self.size()

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Row]: ...
    def __getitem__(self, number: int | slice) -> Row | Sequence[Row]:
        if isinstance(number, slice):
            return list(islice(self.make(), number.start, number.stop, number.step))
        return next(islice(self.make(), number, None))

    def __iter__(self) -> Iterator[Row]:
        return iter(self.make())


class _Chosen(Sequence[Row]):
    """Rows with only some of their cells, chosen when they are read."""

    def __init__(self, rows: Sequence[Row], places: Sequence[int]) -> None:
        self.rows, self.places = rows, places

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Row]: ...
    def __getitem__(self, number: int | slice) -> Row | Sequence[Row]:
        if isinstance(number, slice):
            return _Chosen(self.rows[number], self.places)
        row = self.rows[number]
        return tuple(row[n] for n in self.places)

    def __iter__(self) -> Iterator[Row]:
        return (tuple(row[n] for n in self.places) for row in self.rows)


def number(value: float | None) -> Cell:
    """Return a cell with a count (``1,234``), or an empty cell for None."""
    return Cell() if value is None else Cell(f"{value:,.0f}", value)


def figure(value: float | None) -> Cell:
    """Return a cell with a quantity in the unit of its column, or an empty cell for None."""
    return Cell() if value is None else Cell(fmt.figure(value), value)


def share(value: float | None, decimals: int = 1) -> Cell:
    """Return a cell with a fraction in percent, or an empty cell for None."""
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
    counted: str = "",
) -> Cell:
    """Return a cell with a value in a base unit, rounded to ``digits`` digits, and its interval; empty for None.

    The other options are those of ``base.units.scale_for``.
    """
    if value is None:
        return Cell()
    scale = scale_for(value, unit, bits=bits, percent=percent, counted=counted)
    ends = "" if lo is None or hi is None else "–".join(significant(v * scale.factor, digits) for v in (lo, hi))
    return Cell(with_unit(significant(value * scale.factor, digits), scale.unit), value, unit, lo=lo, hi=hi, ends=ends)


def times(value: float | None, lo: float | None = None, hi: float | None = None) -> Cell:
    """Return a cell with a ratio and its interval, or an empty cell for None."""
    return Cell() if value is None else Cell(fmt.ratio(value), value, lo=lo, hi=hi, ends=fmt.interval(lo, hi))


def compact(table: Tabular) -> Tabular:
    """Return ``table`` without its empty columns."""
    return table.columns_at([n for n, _ in enumerate(table.columns) if any(row[n].text for row in table.rows)])


def records(table: Tabular) -> list[dict[str, float | str | None]]:
    """Return the rows for programs: numbers with full precision, None for a missing number.

    If a column has units or intervals, they have keys of their own (``KEY_unit``, ``KEY_lo``, ``KEY_hi``).
    """
    rows = list(table.rows)  # read only once, because rows may be computed when read
    fields = [list(_fields(column, [row[n] for row in rows])) for n, column in enumerate(table.columns)]
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
