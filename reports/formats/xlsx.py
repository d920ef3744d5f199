"""A document as a workbook: a tab with an overview, then a tab for each table, with figures in base units."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from fleetmark.base.text import joined, message
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Command, Document, Finding, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.layout import FIRST_ROW, HEAD_ROW, End, column_of, sheet_columns, title_of
from fleetmark.reports.kit.prose import Prose
from fleetmark.reports.kit.tabular import Cell, Column, Tabular
from fleetmark.reports.kit.workbook import COLOURS, GENERAL, GRID, Book, Head, Sheet, cell, form_for

_ROLES = {
    "name": "strong",
    "side": "strong",
    "note": "wrap",
    "code": "code",
    "file": "code",
    "text": "wrap",
    "verdict": "text",
}
_TONES = {"good": "ok", "bad": "worse", "unsure": "unsure", "strong": "strong"}
_WIDEST = {"note": 60, "code": 60, "file": 60}  # characters; other columns are as wide as their texts
_SHEET = re.compile(r"\[([^\[\]]+)\]!")


def render(document: Document, language: Language) -> bytes:
    """Return the workbook. The same document always gives the same bytes."""
    tables = list(_tables(document))
    is_large = any(table.is_large for _, table in tables)
    book = Book(document.answer or document.title, document.created, language, on_disk=is_large)
    readme = book.sheet(message("Readme"), "#1F3A5F")
    sheets = [
        (book.sheet(_tab(section, table), COLOURS[0], in_rows=table.is_large), table) for section, table in tables
    ]
    names = {table.key: sheet.name for sheet, table in sheets}
    for sheet, table in sheets:
        _table(sheet, table, names)
    for chart in (e for s in document.sections_for("xlsx") for e in s.exhibits if isinstance(e, Chart) and e.native):
        _chart(book, chart, {table.key: (sheet, table) for sheet, table in sheets})
    tabs = {sheet.name: table.title for sheet, table in sheets}
    _readme(Prose(readme, readme.top(document.answer or document.title, document.title)), document, tabs)
    return book.bytes()


def _tab(section: Section, table: Tabular) -> str:
    """Return the name of a table's tab: that of its section if it is the only one."""
    is_only = {e.key for e in section.exhibits if isinstance(e, Tabular)} <= {table.key}
    return section.title if section.title and is_only else table.title


def _tables(document: Document) -> Iterator[tuple[Section, Tabular]]:
    """Yield the tables of the document. The findings of a section also become a table."""
    for section in document.sections_for("xlsx"):
        for kind, run in groupby(section.exhibits, type):
            if kind is Finding:
                yield section, _found(section, [e for e in run if isinstance(e, Finding)])
            else:
                yield from ((section, table.for_format("xlsx")) for table in section.tables_of(kind, list(run)))


def _found(section: Section, findings: Sequence[Finding]) -> Tabular:
    columns = (
        Column("subject", message("subject"), "name"),
        Column("finding", message("finding"), "note"),
        Column("details", message("details"), "note"),
        Column("evidence", message("raw files"), "code"),
    )
    rows = tuple(
        (Cell(f.subject), Cell(f.text), Cell(joined(f.details, " ")), Cell("; ".join(f.evidence))) for f in findings
    )
    return Tabular(section.key, section.title, columns, rows)


def _readme(prose: Prose, document: Document, tabs: dict[str, str]) -> None:
    prose.sentences(document.facts)
    for section in document.sections_for("xlsx"):
        spoken = [e for e in section.exhibits if isinstance(e, Note | Command)]
        if spoken:
            prose.heading(section.title)
        for exhibit in spoken:
            if isinstance(exhibit, Command):
                prose.sentences([exhibit.text])
                prose.sentences([exhibit.command], "code")
            else:
                prose.sentences([exhibit.text])
    prose.tabs(tabs)


def _table(sheet: Sheet, table: Tabular, sheets: Mapping[str, str]) -> None:
    sheet.top(table.title, joined(table.notes, " "))
    columns = list(sheet_columns(table))
    places = {f"{column.key}_{end}" if end else column.key: n for n, (column, end, _) in enumerate(columns)}
    # Columns of plain numbers, of which there may be millions.
    plain = {
        n for n, column in enumerate(table.columns) if column.form and not column.formula and not column.has_interval
    }
    if table.is_large:  # written row by row; other heads are as high as the widths of their columns require
        _heads(sheet, columns)
    line = FIRST_ROW - 1
    for line, cells in enumerate(table.rows, FIRST_ROW):
        references = _References(line, places)
        for place, (column, end, number) in enumerate(columns):
            shown = cells[number]
            if number in plain and shown.value is not None and not shown.formula:
                sheet.number(line, place, shown.value, column.form, "value")  # many cells: as fast as possible
            elif not end:
                resolved = partial(_resolved, references=references, sheets=sheets)
                _write(sheet, line, place, column, shown, resolved, is_head=line - FIRST_ROW in table.heads)
            elif (value := shown.lo if end == "lo" else shown.hi) is not None:
                sheet.number(line, place, value, _form(shown), "value")
    if not table.is_large:
        _heads(sheet, columns)
    sheet.filtered(HEAD_ROW, line, len(columns), frozen_columns=1)


def _heads(sheet: Sheet, columns: Sequence[tuple[Column, End, int]]) -> None:
    """Write the heads of a table, below those of groups of columns."""
    for place, (column, _, _) in enumerate(columns):
        if column.group and (not place or columns[place - 1][0].group != column.group):
            sheet.text(HEAD_ROW - 1, place, column.group, "heading")
    sheet.heads(HEAD_ROW, [Head(title_of(c, end), c.unit, _WIDEST.get(c.role, 0)) for c, end, _ in columns])


class _References(dict[str, str]):
    """The cells of a row by the key of their column, named when a formula refers to them."""

    def __init__(self, line: int, places: Mapping[str, int]) -> None:
        self.line, self.places = line, places

    def __missing__(self, key: str) -> str:
        return cell(self.line, self.places[key])


def _resolved(formula: str, references: Mapping[str, str], sheets: Mapping[str, str]) -> str:
    """Return the formula with cells for columns of its row (``{key}``) and sheets for tables (``[key]!``)."""

    def sheet(match: re.Match[str]) -> str:
        return "'" + sheets[match[1]].replace("'", "''") + "'!"

    return _SHEET.sub(sheet, formula.format_map(references))


def _write(
    sheet: Sheet, line: int, place: int, column: Column, shown: Cell, resolved: Callable[[str], str], *, is_head: bool
) -> None:
    formula, form = shown.formula or column.formula, column.form or _form(shown)
    if formula and (shown.value is not None or shown.formula):
        value = shown.value if column.right else shown.text
        sheet.formula(line, place, resolved(formula), value, form, "computed" if column.right else "word")
    elif column.right and (shown.value is not None or shown.is_input):
        sheet.number(line, place, shown.value, form, "input" if shown.is_input else "value")
    else:
        role = "strong" if is_head else _TONES.get(shown.tone) or _ROLES.get(column.role, "text")
        sheet.text(line, place, shown.text, role)
    if shown.limits:
        sheet.must_be_number(line, place, *shown.limits, shown.hint)
    if shown.name:
        sheet.book.name(shown.name, sheet.at(line, place))


def _chart(book: Book, chart: Chart, sheets: Mapping[str, tuple[Sheet, Tabular]]) -> None:
    """Draw a native chart below its table."""
    native = chart.native
    assert native is not None
    sheet, table = sheets[native.table]

    def cells(key: str) -> str:
        column = column_of(table, key)
        return f"={sheet.span(FIRST_ROW, column, FIRST_ROW + native.rows - 1, column)}"

    drawn = book.chart(native.kind, chart.title)
    for number, key in enumerate(native.values):
        series: dict[str, Any] = {"categories": cells(native.category), "values": cells(key), "gap": 50}
        series["name"] = f"={sheet.at(HEAD_ROW, column_of(table, key))}"
        series["fill"] = {"color": COLOURS[number % len(COLOURS)]}
        if native.ends:
            below, above = map(cells, native.ends)
            bars = {"type": "custom", "plus_values": above, "minus_values": below}
            series["y_error_bars"] = bars | {"line": {"color": "#1F3A5F", "width": 1.75}}
            series["fill"] = {"color": "#A9CCE8"}
        drawn.add_series(series)
    if len(native.values) == 1:
        drawn.set_legend({"none": True})
    axis = {"name": book.words(native.axis), "num_format": "0.0", "min": 0} | GRID
    if native.kind == "bar":
        drawn.set_y_axis({"reverse": True})
        drawn.set_x_axis(axis | {"label_position": "high"})
    else:
        drawn.set_y_axis(axis)
    height = min(150 + 26 * native.rows, 1500) if native.kind == "bar" else 360
    sheet.place(drawn, FIRST_ROW + len(table.rows) + 2, 0, 880, height)


def _form(shown: Cell) -> str:
    """Return the number format with which the cell looks like its text."""
    if shown.unit not in ("", "1") and shown.value is not None:
        form = form_for((shown.value,), shown.unit, percent=shown.text.endswith("%"))
        return form if shown.value else f'0" {shown.unit.replace(chr(34), "")}"'
    return shown.form or GENERAL
