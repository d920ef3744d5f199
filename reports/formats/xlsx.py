"""Render a document as a workbook: an overview tab, then a tab for each table, with figures in base units."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, takewhile
from typing import Any

from fleetmark.base.text import joined, message
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Command, Document, Exhibit, Finding, Note, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.layout import FIRST_ROW, HEAD_ROW, End, column_of, sheet_columns, title_of
from fleetmark.reports.kit.manifest import parts
from fleetmark.reports.kit.native import Native
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
_REFERENCE = re.compile(r'"(?:[^"]|"")*"|\{(\w+)\}|\[([^\[\]!]+)\]!|\[(\w+)!(\w+)(?:!(-?\d+))?(?::(\w+)!(-?\d+))?\]')
MOST_PRINTED = 200  # printed rows of a table; its tab has all rows
_LINES = 19  # rows for a chart in a tab of charts
_TABS = ("#8EA0B8", COLOURS[0], "#BF9000", "#70AD47")  # tab colours: records, results, inputs, and a solver's decisions

_SAID = re.compile(r"(?:IOPS|[a-z]+/s)$")  # finds the unit of a rate in the text of a cell


def render(document: Document, language: Language) -> bytes:
    """Return the workbook. The same document always gives the same bytes."""
    is_large = any(table.is_large for _, table in document.tables_for("xlsx"))
    book = Book(document.answer or document.title, document.created, language, on_disk=is_large)
    readme = book.sheet(message("Readme"), "#1F3A5F")
    places, tabs = Places(), dict[str, str]()
    for section in document.sections_for("xlsx"):
        if section.is_sheet:
            tabs |= _stacked(book, section, places)
        else:
            for table in _tables(section):
                sheet = book.sheet(_tab(section, table), COLOURS[0], in_rows=table.is_large)
                places.add(Placed(sheet, table, HEAD_ROW))
                tabs[sheet.name] = table.title
    for placed in places.every:
        _table(placed, places)
    for section in document.sections_for("xlsx"):
        charts = [e for e in section.exhibits if isinstance(e, Chart) and e.native]
        if section.is_sheet:
            _tab_charts(book, section, charts, places)
        else:
            for chart in charts:
                _chart(book, chart, places)
    _readme(Prose(readme, readme.top(document.answer or document.title, document.title)), document, tabs)
    if document.manifest:
        book.hidden("Manifest", parts(document.manifest))
    return book.bytes()


def _stacked(book: Book, section: Section, places: Places) -> dict[str, str]:
    """Add a tab with the tables of the section, one below the other. Return its name and description."""
    note = joined((e.text for e in section.exhibits if isinstance(e, Note)), " ")
    tables = [table.for_format("xlsx") for table in section.exhibits if isinstance(table, Tabular)]
    sheet = places.tabs[section.key] = book.sheet(section.title)
    row = sheet.top(section.title, note)
    for table in tables:
        if len(tables) == 1:
            places.add(Placed(sheet, table, HEAD_ROW, is_stacked=True))
            break
        head = row + 1 + bool(table.notes) + any(column.group for column in table.columns)
        places.add(placed := Placed(sheet, table, head, is_stacked=True, has_title=True))
        row = placed.last + 2
    return {sheet.name: note}


def _tab(section: Section, table: Tabular) -> str:
    """Return the name of a table's tab: that of its section if it is the only one."""
    is_only = {e.key for e in section.exhibits if isinstance(e, Tabular)} <= {table.key}
    return section.title if section.title and is_only else table.title


def _tables(section: Section) -> Iterator[Tabular]:
    """Yield the tables of the section. Its findings also become a table."""
    for kind, run in groupby(section.exhibits, type):
        if kind is Finding:
            findings = [e for e in run if isinstance(e, Finding) and not _is_sentence(e)]
            yield from [_found(section, findings)] if findings else []
        else:
            yield from (table.for_format("xlsx") for table in section.tables_of(kind, list(run)))


def _is_sentence(exhibit: Exhibit) -> bool:
    """Return whether the exhibit belongs in the Readme tab: a sentence about no particular subject."""
    if isinstance(exhibit, Finding):
        return not (exhibit.subject or exhibit.details or exhibit.evidence)
    return isinstance(exhibit, Note | Command)


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
        spoken = [e for e in section.exhibits if _is_sentence(e) and not section.is_sheet]
        if spoken:
            prose.heading(section.title)
        for exhibit in spoken:
            if isinstance(exhibit, Command):
                prose.sentences([exhibit.text])
                prose.sentences([exhibit.command], "code")
            elif isinstance(exhibit, Note | Finding):
                prose.sentences([exhibit.text])
    prose.tabs(tabs)


@dataclass(frozen=True, slots=True)
class Placed:
    """A table in its sheet.

    ``head``: the row of its headings. ``is_stacked``: its tab may contain other tables. ``has_title``: the title is
    above the table instead of above the tab.
    """

    sheet: Sheet
    table: Tabular
    head: int
    is_stacked: bool = False
    has_title: bool = False

    @property
    def first(self) -> int:
        """Return its first row of cells."""
        return self.head + 1

    @property
    def last(self) -> int:
        """Return its last row of cells; a table without rows has one empty row."""
        return self.head + max(len(self.table.rows), 1)

    @property
    def columns(self) -> dict[str, int]:
        """Return the position of each column of the sheet by its key."""
        return {f"{c.key}_{end}" if end else c.key: n for n, (c, end, _) in enumerate(sheet_columns(self.table))}


class Places(dict[str, Placed]):
    """Record where the tables are, by key, and replace the references of formulas by addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.every: list[Placed] = []  # includes tables with the same key: one per group
        self.tabs: dict[str, Sheet] = {}  # the tabs of sections that have a single tab
        self.ranks: dict[str, int] = {}  # by tab: the highest rank of its cells, which determines the tab's colour
        self.printed: dict[str, int] = {}  # by tab: the last column that is printed
        self._columns: dict[int, dict[str, int]] = {}

    def add(self, placed: Placed) -> None:
        self.every.append(placed)
        self[placed.table.key] = placed

    def columns(self, placed: Placed) -> dict[str, int]:
        """Return the position of each column of a table by its key."""
        if id(placed) not in self._columns:
            self._columns[id(placed)] = placed.columns
        return self._columns[id(placed)]

    def named(self, key: str, placed: Placed) -> Placed:
        """Return the table that a formula in ``placed`` refers to as ``key``: ``placed`` itself if it has that key."""
        return placed if placed.table.key == key else self[key]

    def resolved(self, formula: str, placed: Placed, line: int) -> str:
        """Return the formula of a cell in row ``line`` of the sheet. Strings in the formula stay unchanged."""

        def address(match: re.Match[str]) -> str:
            row_key, sheet, table, first, row, last, last_row = match.groups()
            if row_key:
                return cell(line, self.columns(placed)[row_key])
            if sheet:
                return "'" + self.named(sheet, placed).sheet.name.replace("'", "''") + "'!"
            if not table:
                return match[0]
            target = self.named(table, placed)
            columns = self.columns(target)
            ends = [(target.first + int(row or 0), columns[first])]
            if last:
                ends.append((target.first + int(last_row), columns[last]))
            elif not row:
                ends.append((target.last, columns[first]))
            if target.sheet is placed.sheet:
                return ":".join(cell(*end) for end in ends)
            return target.sheet.span(*ends[0], *ends[1]) if len(ends) > 1 else target.sheet.address(*ends[0])

        return _REFERENCE.sub(address, formula)


def _table(placed: Placed, places: Places) -> None:
    sheet, table, head = placed.sheet, placed.table, placed.head
    columns = list(sheet_columns(table))
    notes = joined(table.notes, " ")
    if placed.has_title:
        sheet.text(head - 1 - bool(notes) - any(c.group for c in table.columns), 0, table.title, "heading")
    if placed.is_stacked:
        sheet.text(head - 1, 0, notes, "note")
    else:
        sheet.top(table.title, notes)
    # Columns of plain numbers, which may have millions of rows.
    plain = {
        n for n, column in enumerate(table.columns) if column.form and not column.formula and not column.has_interval
    }
    if table.is_large:  # written row by row; other headings are as high as their column widths require
        _heads(sheet, columns, head)
    line = placed.head
    for line, cells in enumerate(table.rows, placed.first):
        if placed.is_stacked:
            places.ranks[sheet.name] = max(places.ranks.get(sheet.name, 0), *map(_rank, cells))
        for place, (column, end, number) in enumerate(columns):
            shown = in_bits(cells[number])
            if number in plain and shown.value is not None and not (shown.formula or shown.is_input or shown.form):
                role = "solver" if shown.is_decided else "value"
                sheet.number(line, place, shown.value, column.form, role)  # many cells: write them as fast as possible
            elif not end:
                resolved = partial(places.resolved, placed=placed, line=line)
                _write(sheet, line, place, column, shown, resolved, is_head=line - placed.first in table.heads)
            elif (value := shown.lo if end == "lo" else shown.hi) is not None:
                sheet.number(line, place, value, _form(shown), "value")
    if not table.is_large:
        _heads(sheet, columns, head)
    _names(placed, [column for column, _, _ in columns])
    _rules(placed, columns, places)
    _view(placed, line, [column for column, _, _ in columns], places)


def _rank(shown: Cell) -> int:
    return 3 if shown.is_decided else 2 if shown.is_input else 1 if shown.formula else 0


def _names(placed: Placed, columns: Sequence[Column]) -> None:
    """Name the ranges of columns that have a name."""
    for name, run in groupby(enumerate(columns), lambda numbered: numbered[1].name):
        if name:
            places = [place for place, _ in run]
            placed.sheet.book.name(name, placed.sheet.span(placed.first, places[0], placed.last, places[-1]))


def _rules(placed: Placed, columns: Sequence[tuple[Column, End, int]], places: Places) -> None:
    """Give cells the tone of their column's first rule that is true, also after edits by the reader."""
    for place, (column, end, _) in enumerate(columns):
        for rule, tone in () if end else column.rules:
            criteria = places.resolved(rule, placed, placed.first)
            look = {"type": "formula", "criteria": criteria, "format": placed.sheet.book.style(_TONES[tone])}
            placed.sheet.inner.conditional_format(
                placed.first, place, placed.last, place, look | {"stop_if_true": True}
            )


def _view(placed: Placed, line: int, columns: Sequence[Column], places: Places) -> None:
    """Freeze the headings, add a filter to a table that is alone in its tab, and set the print area."""
    sheet, printed = placed.sheet, list(takewhile(lambda column: not column.is_working, columns))
    names = sum(1 for _ in takewhile(lambda column: column.role in ("name", "side"), columns)) or 1
    if placed.has_title:
        sheet.frozen(HEAD_ROW, names)
    else:
        sheet.filtered(placed.head, line, len(columns), frozen_columns=names if placed.is_stacked else 1)
    if placed.is_stacked:
        sheet.inner.set_tab_color(_TABS[places.ranks.get(sheet.name, 0)])
    if printed and not placed.table.is_working:
        last = places.printed[sheet.name] = max(len(printed) - 1, places.printed.get(sheet.name, 0))
        last_row = min(line, placed.head + MOST_PRINTED)
        if placed.has_title or len(printed) < len(columns) or last_row < line:
            sheet.printed(last_row, last)


def _heads(sheet: Sheet, columns: list[tuple[Column, End, int]], row: int) -> None:
    """Write the headings of a table below those of its column groups."""
    for place, (column, _, _) in enumerate(columns):
        if column.group and (not place or columns[place - 1][0].group != column.group):
            sheet.text(row - 1, place, column.group, "heading")
    sheet.heads(
        row,
        [Head(title_of(c, end), c.unit, c.width or _WIDEST.get(c.role, 0), is_right=c.right) for c, end, _ in columns],
    )


def _write(
    sheet: Sheet, line: int, place: int, column: Column, shown: Cell, resolved: Callable[[str], str], *, is_head: bool
) -> None:
    formula, form = shown.formula or column.formula, shown.form or column.form or _form(shown)
    is_number = column.right or shown.value is not None
    if formula and (shown.value is not None or shown.formula):
        role = "key" if shown.tone == "strong" else "computed"
        value = shown.value if is_number and not (shown.value is None and shown.text) else shown.text
        sheet.formula(line, place, resolved(formula), value, form, role if is_number else "word")
    elif shown.value is not None if shown.is_input or shown.is_decided else column.right and shown.value is not None:
        role = "input" if shown.is_input else "solver" if shown.is_decided else "value"
        sheet.number(line, place, shown.value, form, role)
    elif shown.is_input and not shown.text:
        sheet.number(line, place, None, form, "input")
    else:
        role = "strong" if is_head else _TONES.get(shown.tone) or _ROLES.get(column.role, "text")
        sheet.text(line, place, shown.text, "input" if shown.is_input else "solver" if shown.is_decided else role)
    if shown.limits:
        sheet.must_be_number(line, place, *shown.limits, shown.hint)
    if shown.choices:
        sheet.must_be_one_of(line, place, shown.choices)
    if shown.name:
        sheet.book.name(shown.name, sheet.address(line, place))


def _tab_charts(book: Book, section: Section, charts: Sequence[Chart], places: Places) -> None:
    """Draw the charts of a tab of charts, two in a row."""
    sheet = places.tabs[section.key]
    above = Placed(
        sheet, Tabular("", "", (), ()), max((p.last + 2 for p in places.values() if p.sheet is sheet), default=HEAD_ROW)
    )
    for number, chart in enumerate(charts):
        row, column = above.head + _LINES * (number // 2), 10 * (number % 2)
        sheet.place(_drawn(book, chart, above, places), row, column, 610, 20 * (_LINES - 1))
    sheet.inner.set_h_pagebreaks([above.head + 2 * _LINES * page for page in range(1, (len(charts) + 3) // 4)])


def _drawn(book: Book, chart: Chart, placed: Placed, places: Places) -> Any:
    """Return a native chart of series of arbitrary cells. Lines are drawn over areas and columns."""
    native = chart.native
    assert native is not None
    stacked = [s for s in native.series if s.kind != "line"]
    drawn = book.chart(stacked[0].kind, chart.title, subtype="stacked")
    lines = book.chart("line", "")
    for series in native.series:
        given = {
            "name": book.words(series.name).lstrip("="),
            "categories": "=" + places.resolved(native.category, placed, 0),
        }
        given["values"] = "=" + places.resolved(series.values, placed, 0)
        if series.kind == "line":
            look: Any = {"line": {"color": series.colour, "width": 2.25, "dash_type": series.dash}}
            lines.add_series(given | look | {"marker": {"type": "none"}})
        elif series.colour:
            look = {"fill": {"color": series.colour, "transparency": series.transparency}, "gap": 70}
            drawn.add_series(given | look | ({"border": {"none": True}} if series.kind == "area" else {}))
        else:
            drawn.add_series(given | {"fill": {"none": True}, "border": {"none": True}})
    if len(stacked) < len(native.series):
        drawn.combine(lines)
    hidden = [n for n, series in enumerate(native.series) if not series.colour]
    drawn.set_legend({"position": "bottom", **({"delete_series": hidden} if hidden else {})})
    axis = {"name": book.words(native.axis).lstrip("="), "num_format": native.form, "name_font": {"bold": False}}
    drawn.set_y_axis(axis | GRID)
    return drawn


def _chart(book: Book, chart: Chart, places: Places) -> None:
    """Draw a native chart below its table."""
    native = chart.native
    assert native is not None
    sheet, table = places[native.table].sheet, places[native.table].table
    if native.kind == "scatter":
        sheet.place(_scatter(book, chart, native, places[native.table]), FIRST_ROW + len(table.rows) + 2, 0, 880, 480)
        return

    def cells(key: str) -> str:
        column = column_of(table, key)
        return f"={sheet.span(FIRST_ROW, column, FIRST_ROW + native.rows - 1, column)}"

    drawn = book.chart(native.kind, chart.title)
    for number, key in enumerate(native.values):
        series: dict[str, Any] = {"categories": cells(native.category), "values": cells(key), "gap": 50}
        series["name"] = f"={sheet.address(HEAD_ROW, column_of(table, key))}"
        series["fill"] = {"color": (native.colours or COLOURS)[number % len(native.colours or COLOURS)]}
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


def _scatter(book: Book, chart: Chart, native: Native, placed: Placed) -> Any:
    """Return a native chart of points on logarithmic axes. Each group of consecutive rows is a series."""
    drawn = book.chart("scatter", chart.title)
    x, y = (column_of(placed.table, key) for key in (native.category, *native.values))
    row = FIRST_ROW
    for name, rows, colour in native.groups:
        cells = [f"={placed.sheet.span(row, column, row + rows - 1, column)}" for column in (x, y)]
        marker = {"type": "circle", "size": 6, "fill": {"color": colour}, "border": {"color": colour}}
        drawn.add_series(
            {"name": book.words(name).lstrip("="), "categories": cells[0], "values": cells[1], "marker": marker}
        )
        row += rows
    title = message("{title} (log)", title=native.category_axis), message("{title} (log)", title=native.axis)
    for set_axis, words in zip((drawn.set_x_axis, drawn.set_y_axis), title, strict=True):
        set_axis({"name": book.words(words), "log_base": 10, "num_format": "General", "crossing": "min"} | GRID)
    return drawn


def in_bits(shown: Cell) -> Cell:
    """Return a cell that is read in bit/s with its number in bit/s, because no number format multiplies by 8.

    The formula stays, because it refers to cells in bit/s or contains the factor.
    """
    if shown.unit != "B/s" or not shown.text.endswith("bit/s"):
        return shown
    value, lo, hi = (None if x is None else 8 * x for x in (shown.value, shown.lo, shown.hi))
    return replace(shown, value=value, lo=lo, hi=hi, unit="bit/s")


def _form(shown: Cell) -> str:
    """Return the number format that makes the cell look like its text."""
    if shown.unit not in ("", "1") and shown.value is not None:
        match = _SAID.search(shown.text) if shown.unit == "1/s" else None
        form = form_for((shown.value,), shown.unit, percent=shown.text.endswith("%"), counted=match[0] if match else "")
        return form if shown.value else f'0" {shown.unit.replace(chr(34), "")}"'
    return shown.text_form or GENERAL
