"""Read the cells of an edited workbook, located by named ranges."""

from __future__ import annotations

import datetime
import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.utils import get_column_letter
from openpyxl.utils.cell import range_boundaries
from openpyxl.utils.exceptions import InvalidFileException

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand.columns import Column
from fleetmark.demand.places import Where

_BROKEN = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    ValueError,
    TypeError,
    SyntaxError,
    InvalidFileException,
)

LARGEST_BYTES = 32 << 20  # maximum file size
LARGEST_UNPACKED = 128 << 20  # maximum size of all parts after decompression
MOST_PARTS = 2_000  # maximum number of files within the .xlsx archive
MOST_ROWS = 200_000  # highest row number in a tab, since rows can leave gaps
MOST_CELLS = 500_000  # maximum number of cells per tab, including gaps within a row

Value = float | str | bool


@dataclass(frozen=True, slots=True)
class Area:
    """A named range; rows and columns count from 1."""

    sheet: str
    row: int
    col: int
    last_row: int
    last_col: int

    def cell(self, row: int, col: int | None = None) -> str:
        """Return the name of a cell, such as ``C7``."""
        return f"{get_column_letter(self.col if col is None else col)}{row}"


@dataclass
class Cells:
    """The cells of a workbook. Raise FleetmarkError for a file that is not a workbook."""

    path: Path
    raw: bytes
    faults: list[tuple[Where, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raise FleetmarkError if the file unpacks to more than the limit, or declares its own document type."""
        try:
            with zipfile.ZipFile(io.BytesIO(self.raw)) as packed:
                parts = packed.infolist()
                if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > LARGEST_UNPACKED:
                    raise FleetmarkError(
                        f"{self.path}: expands to more than {LARGEST_UNPACKED >> 20} MiB or {MOST_PARTS:,} parts; "
                        "use the workbook that fleetmark plan --xlsx wrote"
                    )
        except _BROKEN:
            return  # the error is reported when the file is opened

    def _opened(self, *, values: bool) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # warnings about parts that are not read: charts, and validation added by other programs
                return openpyxl.load_workbook(io.BytesIO(self.raw), read_only=True, data_only=values)
        except _BROKEN as error:
            raise FleetmarkError(
                f"{self.path}: is not a readable workbook ({type(error).__name__}: {error}); use the workbook "
                "that fleetmark plan --xlsx wrote, saved as .xlsx"
            ) from None

    @cached_property
    def _book(self) -> Any:
        return self._opened(values=True)

    @cached_property
    def _formulas(self) -> Any:
        return self._opened(values=False)

    def close(self) -> None:
        """Close the file."""
        for name in ("_book", "_formulas"):
            if name in self.__dict__:
                self.__dict__[name].close()

    # ------------------------------------------------------------ places

    @property
    def sheets(self) -> list[str]:
        """Return the names of the tabs, in order."""
        return list(self._book.sheetnames)

    def area(self, name: str, title: str) -> Area | None:
        """Return the named range ``name``. If it is missing, record an error and return None.

        ``title`` describes the range's content in the error's message.
        """
        defined = self._book.defined_names.get(name)
        target = "" if defined is None else str(defined.attr_text or "")
        match = re.fullmatch(r"(?:'((?:[^']|'')+)'|([^'!]+))!(\$?[A-Z]+\$?\d+(?::\$?[A-Z]+\$?\d+)?)", target)
        sheet = (match[1] or match[2]).replace("''", "'") if match else ""
        if match is None or sheet not in self._book.sheetnames:
            sentence = (
                f"{title} is gone (the range {name}): its cells, column or tab were deleted; "
                "start again with a workbook from fleetmark plan --xlsx"
            )
            self.faults.append((Where(self.path.name), sentence))
            return None
        col, row, last_col, last_row = range_boundaries(match[3].replace("$", ""))
        assert col and row and last_col and last_row
        return Area(sheet, row, col, last_row, last_col)

    def last_row(self, sheet: str) -> int:
        """Return the last row with content."""
        return max((row for row, _ in self._cells(sheet)), default=0)

    def _cells(self, sheet: str) -> dict[tuple[int, int], tuple[Any, str]]:
        return self._read(sheet, values=True)

    def _read(self, sheet: str, *, values: bool) -> dict[tuple[int, int], tuple[Any, str]]:
        """Return the (value, type) of the non-empty cells of a tab by (row, column)."""
        sheets: dict[tuple[str, bool], dict[tuple[int, int], tuple[Any, str]]] = self.__dict__.setdefault("_sheets", {})
        if (sheet, values) not in sheets:
            tab = (self._book if values else self._formulas)[sheet]
            tab.reset_dimensions()  # some programs write wrong dimensions
            try:
                sheets[sheet, values] = {
                    (cell.row, cell.column): (cell.value, cell.data_type)
                    for row in self._bounded(sheet, tab.iter_rows(max_row=MOST_ROWS + 1))
                    for cell in row
                    if cell.value is not None
                }
            except _BROKEN as error:
                raise FleetmarkError(f"{self.path}, sheet {sheet}: cannot be read ({error}); save it again") from None
        return sheets[sheet, values]

    def _bounded(self, sheet: str, rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        """Yield the ``rows`` of a tab. Raise FleetmarkError if there are more rows or cells than the limit."""
        cells = 0
        for n, row in enumerate(rows, 1):
            cells += len(row)
            if n > MOST_ROWS or cells > MOST_CELLS:
                raise FleetmarkError(
                    f"{self.path}, sheet {sheet}: more than {MOST_ROWS:,} rows or {MOST_CELLS:,} cells; "
                    "delete empty rows and columns"
                )
            yield row

    # ------------------------------------------------------------ content

    def place_of(self, area: Area, row: int, col: int | None = None) -> Where:
        """Return the place of a cell in the area's tab."""
        return Where(self.path.name, row, sheet=area.sheet, cell=area.cell(row, col))

    def fault(self, area: Area, row: int, col: int, sentence: str) -> None:
        """Record an error at a cell."""
        self.faults.append((self.place_of(area, row, col), sentence))

    def empty(self, area: Area, row: int, col: int) -> bool:
        """Return whether a cell has no content."""
        if (row, col) in self._cells(area.sheet):
            value, _ = self._cells(area.sheet)[row, col]
            return isinstance(value, str) and not value.strip()
        return (row, col) not in self._read(area.sheet, values=False)

    def value(self, area: Area, row: int, col: int) -> Value | None:
        """Return the content of a cell, or None if it is empty.

        Record an error if it contains an error or a formula without a stored value.
        """
        content, kind = self._cells(area.sheet).get((row, col), (None, "n"))
        if content is None and not self.empty(area, row, col):
            sentence = "contains a formula without a stored value: save the workbook in Excel or LibreOffice"
            self.fault(area, row, col, sentence)
            return None
        if kind == "e":
            self.fault(area, row, col, f"holds the error {content}: write a value, or clear the cell if it is optional")
            return None
        if isinstance(content, datetime.datetime):
            return content.date().isoformat()
        return (content.strip() or None) if isinstance(content, str) else content

    def table(self, columns: Sequence[Column]) -> list[tuple[int, dict[str, Area], dict[str, Value | None]]]:
        """Yield the non-empty rows of a table: the row's number, and the areas and values of its columns by field.

        A table extends to the end of its tab.
        """
        areas = {c.field: self.area(c.name, f"the column {c.title}") for c in columns}
        present = {field: area for field, area in areas.items() if area is not None}
        if len(present) < len(columns):
            return []
        key = present[columns[0].field]
        return [
            (row, present, {field: self.value(area, row, area.col) for field, area in present.items()})
            for row in range(key.row, max(key.last_row, self.last_row(key.sheet)) + 1)
            if not all(self.empty(area, row, area.col) for area in present.values())
        ]

    def column(self, area: Area, row: int) -> str:
        """Return the text of a cell in a column that Fleetmark wrote, or an empty string."""
        content, _ = self._cells(area.sheet).get((row, area.col), ("", "s"))
        return str(content)

    def number(self, area: Area, row: int) -> float | None:
        """Return the number of a cell in a column that Fleetmark wrote, or None."""
        content, _ = self._cells(area.sheet).get((row, area.col), (None, "n"))
        return float(content) if isinstance(content, int | float) else None


def text(value: Value | None) -> str:
    """Return a name as text, since spreadsheets store the name 2027 as a number."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return "" if value is None else str(value)
