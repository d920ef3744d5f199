"""Test all kinds of documents in all formats: figures, units, intervals and verdicts agree; nothing is truncated."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetmark import workloads
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.reports.comparison.titles import class_title
from fleetmark.reports.formats import csv as csv_format
from fleetmark.reports.formats import html, markdown
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Command, Document, Finding, Note, Section, Tile
from fleetmark.reports.kit.language import language
from fleetmark.reports.kit.layout import address, column_of, sheet_columns, span
from fleetmark.reports.kit.native import Native
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number, quantity, share, times
from tests.reports import rendered
from tests.reports.kinds import KINDS

HOUSE = Path(__file__).parents[2]
COLUMNS = (
    Column("host", message("host"), "name"),
    Column("rate", message("measured"), "number"),
    Column("peak", message("peak"), "number"),
    Column("share", message("% of peak"), "number", "={rate}/{peak}"),
    Column("ratio", message("ratio"), "number"),
    Column("verdict", message("verdict"), "verdict"),
    Column("file", message("raw files"), "code"),
)
ROWS = (
    (
        Cell("n|1 *x*"),
        quantity(2.10987e11, "B/s", lo=2.0e11, hi=2.2e11),
        quantity(2.4e11, "B/s"),
        share(2.10987e11 / 2.4e11),
        times(1.2749, 1.1, 1.44),
        Cell(message("worse"), tone="bad"),
        Cell("raw/x"),
    ),
    (Cell("=n2"), quantity(None, "B/s"), Cell(), Cell(), times(0.00012), Cell(), Cell()),
    (Cell("n3"), quantity(7.5e-8, "s"), Cell(), share(0.5), number(1234), Cell(message("same")), Cell("<b>")),
)
TABLE = Tabular("rates", message("measured"), COLUMNS, ROWS)
GROUPED = Tabular(
    "grouped",
    message("Benchmarks"),
    (
        Column("benchmark", message("benchmark"), "name"),
        Column("plot", message("verdict"), only=("html", "pdf")),
        Column("a", message("ratio"), "number", group="old", unit="B/s", hint="how"),
        Column("b", message("share"), "number", group="new"),
    ),
    (
        (Cell("memory", details=("one of two",), anchor="memory"), Cell(plot="<svg></svg>"), times(1.5), share(0.25)),
        (
            Cell("stream", link="rates-table", hint="why"),
            Cell(),
            Cell("1.50", 1.5, formula="=[rates]!B5"),
            Cell("", None, is_input=True, limits=(0, 1), name="weight"),
        ),
        (Cell("cache"), Cell(), times(2.5), share(0.5)),
    ),
    heads=frozenset({0}),
    notes=("read it so",),
)
DRAWN = Chart(
    "ratios",
    "",
    "<svg></svg>",
    lines=("  1  2",),
    native=Native(kind="bar", table="grouped", category="benchmark", values=("a",), rows=3, ends=("b", "b"), axis="x"),
)
# Totals and facts that are in a document but not in its JSON form, which is older.
NOT_IN_RECORD = {
    "machines": {"number", "memory", "time"},
    "workloads": {"cases", "repeats", "time"},
    "roofs": {"share"},
    "upgrades": {"gain_per_1000"},
    "binding": {"saves"},  # in the record for a W, not a kW
    "skus": {"in_place"},
}
SAMPLE = Document(
    title="20260101T000000-x",
    answer="1 of 3 hosts is slow",
    tone="bad",
    details=("3 hosts", "9 benchmarks"),
    folder=Path("/results/x"),
    created="2026-11-24T12:00:00Z",
    sections=(
        Section(
            "facts",
            message("Facts"),
            (
                Note("a note"),
                Note("quiet", quiet=True),
                Command("do this", "fleetmark diagnose --all"),
                Finding("n1", "n1 is slow", ("surely",), ("raw/x", "../out")),
                TABLE,
                Chart("a chart", "how to read it", '<svg width="9" height="9"></svg>', small=True),
                Tile("cost", number(1200), "per year"),
                Tile("hosts", number(3)),
            ),
        ),
        Section("grouped", "Groups", (GROUPED, DRAWN), is_folded=True),
        Section("paper", message("Provenance"), (Note("on pages only"),), ("html", "pdf", "xlsx")),
    ),
)


@pytest.fixture(scope="module", params=["sample", *KINDS])
def document(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Document:
    return SAMPLE if request.param == "sample" else KINDS[request.param](tmp_path_factory.mktemp("kind"))


def rows(document: Document, kind: Any) -> Iterator[tuple[Tabular, tuple[Cell, ...]]]:
    for _, table in document.tables_for(kind):
        yield from ((table, row) for row in table.rows)


def texts(table: Tabular, number: int, row: tuple[Cell, ...], joint: str) -> list[str]:
    """Return the displayed text of the cells. ``joint``: what separates their lines."""
    absent = "" if number in table.heads else "–"
    cells = zip(table.columns, row, strict=True)
    return [
        " ".join(joint.join([cell.shown, *cell.details]).split()) or (absent if column.right else "")
        for column, cell in cells
    ]


def test_a_page_and_markdown_have_every_cell(document: Document) -> None:
    page, marks = rendered.on_page(document), rendered.in_markdown(document)
    for _, table in document.tables_for("html"):
        for place, row in enumerate(table.rows):
            assert texts(table, place, row, " ") in page
    for _, table in document.tables_for("markdown"):
        for place, row in enumerate(table.rows):
            assert ["" if text == "–" else text for text in texts(table, place, row, ", ")] in marks


@pytest.mark.parametrize("width", [80, 140])
def test_a_terminal_cuts_no_figure(document: Document, width: int) -> None:
    text = rendered.shown(document, width)
    assert all(len(line.rstrip()) <= width or line.startswith(" ") for line in text.splitlines())
    squeezed = "".join(text.split()).replace("−", "-")
    for table, row in rows(document, "terminal"):
        if table.listing or len(table.rows) <= 24:
            figures = [cell.text for column, cell in zip(table.columns, row, strict=True) if column.right]
            assert [figure for figure in figures if "".join(figure.split()).replace("−", "-") not in squeezed] == []


def test_paper_has_every_figure_within_its_margins(document: Document, tmp_path: Path) -> None:
    text, outside = rendered.on_paper(document, tmp_path)
    assert outside == []
    for table, row in rows(document, "pdf"):
        cells = [cell for column, cell in zip(table.columns, row, strict=True) if column.right]
        figures = [text for cell in cells for text in (cell.text, cell.ends)]  # the interval may be on its own line
        assert [f for f in figures if "".join(f.split()).replace("−", "-") not in text.replace("−", "-")] == []


def numbers(data: Any) -> Iterator[float]:
    """Yield every number in JSON data."""
    if isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from numbers(value)
    elif isinstance(data, int | float):
        yield float(data)


def test_json_and_csv_have_every_value_with_its_unit_and_interval(document: Document) -> None:
    known = set(numbers(rendered.in_json(document)))
    for table, row in rows(document, "json"):
        for column, cell in zip(table.columns, row, strict=True):
            if column.key not in NOT_IN_RECORD.get(table.key, ()):
                assert {v for v in (cell.value, cell.lo, cell.hi) if v is not None} <= known, (table.key, column.key)
    if not any(True for _ in document.tables_for("csv")):
        with pytest.raises(FleetmarkError, match="no table"):
            csv_format.render(document)
        return
    lines = iter(rendered.in_csv(document))
    for _, table in document.tables_for("csv"):
        head = next(lines) or next(lines)
        for row in table.rows:
            line = dict(zip(head, next(lines), strict=True))
            for column, cell in zip(table.columns, row, strict=True):
                if not column.right:
                    assert line[column.key] == str(cell.text)
                    continue
                for key, value in (("", cell.value), ("_lo", cell.lo), ("_hi", cell.hi)):
                    if not key or value is not None:
                        assert line[column.key + key] == ("" if value is None else str(value))
                assert line.get(f"{column.key}_unit", "") == cell.unit


def first_row(sheet: Any, section: Section, table: Tabular) -> int:
    """Return the row of the first values of a table, which may stand below others in its tab."""
    tables = [e for e in section.exhibits if isinstance(e, Tabular)]
    if not section.is_sheet or len(tables) == 1:
        return 5
    title = next(n for n in range(1, sheet.max_row) if sheet.cell(n, 1).value == table.title)
    return title + 2 + bool(table.notes) + any(column.group for column in table.columns)


def test_a_workbook_has_every_value_with_its_unit_and_interval(document: Document) -> None:
    book: Any = rendered.in_workbook(document)
    values: Any = rendered.in_workbook(document, data_only=True)
    sheets = book.worksheets[1:]
    # openpyxl looks at every cell of a sheet for a row by its number
    lines, results = ({sheet.title: list(sheet.iter_rows()) for sheet in read.worksheets} for read in (book, values))
    for section, table in document.tables_for("xlsx"):
        if section.is_sheet:
            sheet = next(sheet for sheet in sheets if sheet["A1"].value == section.title)
        else:
            sheet = next(sheet for sheet in sheets if sheet["A1"].value == table.title)
            sheets.remove(sheet)
        for n, row in enumerate(table.rows, first_row(sheet, section, table) - 1):
            places = [(column.key, end) for column, end, _ in sheet_columns(table)]
            line = dict(zip(places, lines[sheet.title][n], strict=False))  # a tab may have wider tables
            known = dict(zip(places, results[sheet.title][n], strict=False))
            for column, cell in zip(table.columns, row, strict=True):
                written, value = line[column.key, ""], known[column.key, ""].value
                if not column.right or cell.value is None:
                    assert str(value or "") == str(cell.text)
                    continue
                bits = 8 if cell.unit == "B/s" and cell.text.endswith("bit/s") else 1
                assert math.isclose(value, cell.value * bits, rel_tol=1e-12)
                if column.formula or cell.formula:
                    assert str(written.value).startswith("=")
                if cell.unit not in ("", "1") and not cell.text.endswith("%") and not column.form:
                    units = (cell.unit.rpartition("/")[2], cell.text.rpartition(" ")[2])  # as in B/s, or IOPS
                    assert any(unit in written.number_format for unit in units)
                if cell.lo is not None:
                    assert cell.hi is not None
                    assert line[column.key, "lo"].value == pytest.approx(cell.lo * bits)
                    assert line[column.key, "hi"].value == pytest.approx(cell.hi * bits)


def test_a_formula_names_the_cells_of_its_row() -> None:
    sheet = rendered.in_workbook(SAMPLE)["Facts (2)"]
    assert sheet["F5"].value == "=B5/E5" and sheet["A6"].value == "=n2" and sheet["A6"].data_type == "s"


def test_a_formula_names_the_sheet_of_another_table() -> None:
    sheet = rendered.in_workbook(SAMPLE)["Groups"]
    assert sheet["B6"].value == "='Facts (2)'!B5"
    assert sheet["B3"].value == "old" and sheet["B4"].value == "ratio\nB/s"
    assert address(TABLE, 0, "rate") == "[rates]!B5" and span(TABLE, "peak") == "[rates]!E5:E7"
    assert address(TABLE, 2, "ratio", "hi") == "[rates]!I7"
    with pytest.raises(KeyError, match="nothing"):
        column_of(TABLE, "nothing")


def test_pages_group_columns_and_rows_and_fold_sections() -> None:
    page = html.render(SAMPLE, rendered.ENGLISH)
    assert '<th scope="colgroup" colspan="1">old</th>' in page and '<tbody class="class" id="memory"' in page
    assert '<details class="section">' in page and '<a href="#rates-table">stream</a>' in page
    assert "<svg></svg>" in page and "<svg></svg>" not in rendered.shown(SAMPLE)
    assert "<details class" not in html.render(SAMPLE, rendered.ENGLISH, medium="paper")
    assert ["benchmark", "old: ratio (B/s)", "new: share"] in rendered.in_markdown(SAMPLE)


def test_another_viewpoint_has_the_sections_that_differ() -> None:
    other = replace(SAMPLE, answer="seen otherwise", viewpoint="new", sections=SAMPLE.sections[:1])
    page = html.render(replace(SAMPLE, viewpoint="old", alternatives=(other,)), rendered.ENGLISH)
    assert page.count("seen otherwise") == 2 and '<option value="1">new</option>' in page  # its title, its answer
    assert page.count('data-part="facts"') == 2 and 'data-part="grouped"' not in page
    assert 'id="b1-facts"' in page
    assert "seen otherwise" not in html.render(SAMPLE, rendered.ENGLISH, medium="paper")


def test_a_limit_says_how_many_rows_are_left_out() -> None:
    table = replace(TABLE, limits={"html": 2, "terminal": 1, "markdown": 2})
    document = Document(title="x", answer="y", sections=(Section("a", "A", (table,)),))
    assert "and 1 more" in html.render(document, rendered.ENGLISH)
    assert "and 2 more" in rendered.shown(document) and "and 1 more" in markdown.render(document, rendered.ENGLISH)


def test_a_workbook_names_cells_limits_inputs_and_draws_charts() -> None:
    book: Any = rendered.in_workbook(SAMPLE)
    assert book.defined_names["weight"].attr_text == "'Groups'!$C$6"
    (rule,) = book["Groups"].data_validations.dataValidation
    assert (rule.formula1, rule.formula2, str(rule.sqref)) == ("0", "1", "C6")
    (series,) = book["Groups"]._charts[0].series
    assert series.val.numRef.f == "'Groups'!$B$5:$B$7" and series.errBars.plus.numRef.f == "'Groups'!$C$5:$C$7"
    assert "  1  2" in rendered.shown(SAMPLE)


def test_a_narrow_terminal_shows_wide_tables_in_parts() -> None:
    columns = (Column("name", "name", "name"), *(Column(f"c{n}", f"c{n}", "number") for n in range(9)))
    table = Tabular("wide", "wide", columns, ((Cell("row"), *(number(10**9 + n) for n in range(9))),))
    text = rendered.shown(Document(title="x", answer="x", sections=(Section("wide", "wide", (table,)),)), 60)
    assert all(f"{10**9 + n:,}" in text for n in range(9)) and text.count("row") == 3


def test_findings_are_a_tab_and_evidence_a_link_within_the_folder() -> None:
    book = rendered.in_workbook(SAMPLE)
    assert [str(c.value) for c in book["Facts"][5]] == ["n1", "n1 is slow", "surely", "raw/x; ../out"]
    page = html.render(SAMPLE, rendered.ENGLISH)
    assert 'href="file:///results/x/raw/x"' in page and "out" in page and "file:///results/out" not in page
    assert "on pages only" in page and "on pages only" not in rendered.shown(SAMPLE)
    assert "file:" not in html.render(SAMPLE, rendered.ENGLISH, medium="paper")


def test_every_kind_is_spoken_in_chinese(document: Document) -> None:
    chinese = language("zh-CN")
    assert rendered.shown(document, language=chinese) != rendered.shown(document) or document is SAMPLE
    assert 'lang="zh-CN"' in html.render(document, chinese)


def coloured(spec: Any) -> Iterator[tuple[str, str]]:
    """Yield the names in the scales of a chart's specification, each with its colour."""
    if isinstance(spec, dict):
        scale = spec.get("scale", {})
        if spec.get("type") == "nominal" and "range" in scale:
            pairs = zip(scale["domain"], scale["range"], strict=True)
            yield from (pair for pair in pairs if isinstance(pair[1], str))  # other scales are of dashes
    if isinstance(spec, dict | list):
        for value in spec.values() if isinstance(spec, dict) else spec:
            yield from coloured(value)


def test_a_name_has_one_colour_in_all_charts(document: Document) -> None:
    colours: dict[str, set[str]] = {}
    for section in document.sections:
        for chart in (e for e in section.exhibits if isinstance(e, Chart) and e.spec):
            assert chart.spec
            for name, colour in coloured(chart.spec()):
                colours.setdefault(name, set()).add(colour)
    assert {name: several for name, several in colours.items() if len(several) > 1} == {}
    if document.title.startswith("Capacity plan") and document.tone != "bad":
        assert set(colours) >= {"old", "new", "purchase", "energy"}


# The catalogue shows the names that a user types; all other documents show titles.
CLASSES = {workloads.load(name).class_ for name in workloads.names()} - {"none"}
TYPED = {"fio", "Workloads and suites"}  # titles of documents of the catalogue


def test_a_class_has_one_name(document: Document) -> None:
    if document.title in TYPED:
        return
    titled = {name for name in CLASSES if "-" in name and class_title(name) != name}
    assert len(titled) > 8
    cells = [cell.text for _, table in document.tables_for("html") for row in table.rows for cell in row]
    sentences = [e.text for s in document.sections for e in s.exhibits if isinstance(e, Note | Finding)]
    assert [text for text in (*cells, *sentences) if text in titled] == []


def test_formats_know_exhibits_only() -> None:
    for file in sorted((HOUSE / "reports" / "formats").glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        ours = [m for m in modules if m.split(".")[0] in ("reports", "planner", "workloads", "parsers", "fleetmark")]
        assert [
            m
            for m in ours
            if not m.startswith(("fleetmark.reports.formats", "fleetmark.reports.kit", "fleetmark.base"))
        ] == [m for m in ours if m == "fleetmark"], file
