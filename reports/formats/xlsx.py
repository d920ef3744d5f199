"""A document as a workbook: a tab with an overview, then a tab for each table, with figures in base units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from fleetmark.base.text import joined, message
from reports.kit.document import Command, Document, Finding, Note, Section
from reports.kit.language import Language
from reports.kit.prose import Prose
from reports.kit.tabular import Cell, Column, Tabular
from reports.kit.workbook import COLOURS, GENERAL, Book, Head, Sheet, cell, form_for

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
_WIDEST = {"note": 60, "code": 60, "file": 60, "text": 50}  # characters


def render(document: Document, language: Language) -> bytes:
    """Return the workbook, without charts. The same document always gives the same bytes."""
    book = Book(document.answer or document.title, document.created, language)
    readme = book.sheet(message("Readme"), "#1F3A5F")
    tabs = {}
    for section, table in _tables(document):
        alike = {e.key for e in section.exhibits if isinstance(e, Tabular)} <= {table.key}
        sheet = book.sheet(section.title if section.title and alike else table.title, COLOURS[0])
        _table(sheet, table)
        tabs[sheet.name] = table.title
    _readme(Prose(readme, readme.top(document.answer or document.title, document.title)), document, tabs)
    return book.bytes()


def _tables(document: Document) -> Iterator[tuple[Section, Tabular]]:
    """Yield the tables of the document. The findings of a section also become a table."""
    for section in document.sections_for("xlsx"):
        for kind, run in groupby(section.exhibits, type):
            if kind is Finding:
                yield section, _found(section, [e for e in run if isinstance(e, Finding)])
            elif kind is Tabular:
                yield from ((section, e) for e in run if isinstance(e, Tabular))


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


def _table(sheet: Sheet, table: Tabular) -> None:
    row = sheet.top(table.title)
    columns = [part for n, column in enumerate(table.columns) for part in _parts(n, column, table)]
    places = {key: n for n, (key, *_) in enumerate(columns)}
    for line, cells in enumerate(table.rows, row + 1):
        references = {key: cell(line, n) for key, n in places.items()}
        for place, (_, _, end, n) in enumerate(columns):
            column, shown = table.columns[n], cells[n]
            if not end:
                _write(sheet, line, place, column, shown, references)
            elif (value := shown.lo if end == "lo" else shown.hi) is not None:
                sheet.number(line, place, value, _form(shown), "value")
    heads = [Head(title, "", _WIDEST.get(table.columns[n].role, 0)) for _, title, _, n in columns]
    sheet.heads(row, heads)
    sheet.filtered(row, row + len(table.rows), len(heads), frozen_columns=1)


def _parts(number: int, column: Column, table: Tabular) -> Iterator[tuple[str, str, str, int]]:
    """Yield the sheet columns of one table column: the figure, and the ends of its interval if there are any."""
    yield column.key, column.title, "", number
    if any(row[number].lo is not None for row in table.rows):
        yield f"{column.key}_lo", message("{figure}, low", figure=column.title), "lo", number
        yield f"{column.key}_hi", message("{figure}, high", figure=column.title), "hi", number


def _write(sheet: Sheet, line: int, place: int, column: Column, shown: Cell, references: dict[str, str]) -> None:
    if column.formula and shown.value is not None:
        sheet.formula(line, place, column.formula.format(**references), shown.value, _form(shown))
    elif column.right and shown.value is not None:
        sheet.number(line, place, shown.value, _form(shown), "value")
    else:
        sheet.text(line, place, shown.text, _TONES.get(shown.tone) or _ROLES.get(column.role, "text"))


def _form(shown: Cell) -> str:
    """Return the number format with which the cell looks like its text."""
    if shown.unit not in ("", "1") and shown.value is not None:
        return form_for((shown.value,), shown.unit, percent=shown.text.endswith("%"))
    return shown.form or GENERAL
