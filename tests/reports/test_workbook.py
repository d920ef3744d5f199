"""The layer over XlsxWriter: text that stays text, legal names, statistics that Excel's own functions round, formats."""

from __future__ import annotations

import io
import math

import openpyxl
import pytest
from scipy import stats

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.reports.kit.workbook import (
    GENERAL,
    MOST_COLUMNS,
    MOST_TEXT,
    Book,
    Head,
    cell,
    form_for,
    literal,
    t_quantile,
    t_two_sided,
)
from tests.sheets import disagreements, formulas, recalculated, values


def book() -> Book:
    return Book("A title", "2026-11-21T00:00:00Z")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "=1+1"),
        ("+1", "+1"),
        ("@sum", "@sum"),
        ("-2", "-2"),
        ("http://example.org/x", "http://example.org/x"),
        ("a\x00b\x1bc", "a\u2400b\u241bc"),
        ("\ufffe\ud800\u202e", "<U+FFFE><U+D800><U+202E>"),
        ("_x0041_", "_x0041_"),
        ("one\ntwo", "one two"),
        ("😀" * 3, "😀" * 3),
        ("é" * 40_000, "é" * (MOST_TEXT - 1) + "…"),
    ],
)
def test_text_is_text_whatever_it_holds(text: str, shown: str) -> None:
    workbook = book()
    sheet = workbook.sheet("S")
    sheet.text(0, 0, text)
    data = workbook.bytes()
    read = openpyxl.load_workbook(io.BytesIO(data))["S"]["A1"]
    assert (read.value, read.data_type, read.hyperlink) == (shown, "s", None)
    assert not formulas(data)["S"]


def test_names_of_sheets_and_cells_are_legal_and_differ() -> None:
    workbook = book()
    names = [workbook.sheet(n).name for n in ("a/b[c]:*?", "A-B-C----", "x" * 40, "x" * 40, "History", "'", "Message")]
    assert names[0] == "a-b-c----" and names[1] == "A-B-C---- (2)" and names[4] != "History" and names[5]
    assert all(len(n) <= 31 for n in names) and len({n.lower() for n in names}) == len(names)
    target = workbook.sheets["Message"].address(0, 0)
    defined = [workbook.name(n, target) for n in ("E_gen=new", "E_gen new", "A1", "R1C1", "9lives", "世界")]
    assert defined == ["E_gen_new", "E_gen_new_2", "_A1", "_R1C1", "_9lives", "__"]
    assert set(openpyxl.load_workbook(io.BytesIO(workbook.bytes())).defined_names) == set(defined)


def test_long_titles_become_names_that_end_with_a_word() -> None:
    book = Book("b", "")
    titles = ["Measured bandwidth against hardware peak", "20261101T000000-icelake: 1 file that it used", "x" * 40]
    assert [book.sheet(title).name for title in titles] == [
        "Measured bandwidth against",
        "20261101T000000-icelake",
        "x" * 31,
    ]
    assert book.sheet(titles[0]).name == "Measured bandwidth against (2)"


def test_rows_are_as_high_as_their_texts() -> None:
    """A column of 100 characters has room for 98: prose of 97 letters is one line, of 190 two; Chinese is wider."""
    texts = book()
    sheet = texts.sheet("Texts")
    sheet.width(0, 100)
    for row, text in enumerate(("word " * 19 + "xx", "word " * 38, "\u5b57" * 46)):
        sheet.text(row, 0, text, "wrap")
    read = openpyxl.load_workbook(io.BytesIO(texts.bytes()))["Texts"]
    assert [read.row_dimensions[row].height for row in (1, 2, 3)] == [None, 30, 30]


def test_references_quote_the_sheet() -> None:
    workbook = book()
    sheet = workbook.sheet("it's")
    assert (sheet.address(3, 1), sheet.span(3, 1, 8, 27)) == ("'it''s'!$B$4", "'it''s'!$B$4:$AB$9")
    assert (cell(3, 1), literal('a"b')) == ("B4", '"a""b"')


def test_student_s_t_of_any_degrees_of_freedom() -> None:
    """TINV and TDIST cut 2.47 degrees of freedom down to 2, which makes 4.30 of 3.61."""
    workbook = book()
    sheet = workbook.sheet("S")
    for row, df in enumerate((1, 1.3, 2.47, 3.9, 10, 29.3, 998.7, 1e6)):
        sheet.number(row, 0, df)
        for column, confidence in enumerate((0.5, 0.95, 0.999), 1):
            sheet.formula(
                row, column, f"={t_quantile(str(confidence), cell(row, 0))}", stats.t.ppf((1 + confidence) / 2, df)
            )
        for column, t in enumerate((0.0, 1e-6, 0.5, 2.0, -7.0, 40.0), 4):
            sheet.number(row + 20, column, t)
            p = float(2 * stats.t.sf(abs(t), df))
            sheet.formula(row, column, f"={t_two_sided(cell(row + 20, column), cell(row, 0))}", p)
    data = workbook.bytes()
    assert list(disagreements(data, recalculated([data])[0])) == []


def test_numbers_that_are_none() -> None:
    workbook = book()
    sheet = workbook.sheet("S")
    for column, value in enumerate((None, math.nan, math.inf, 0.1 + 0.2)):
        sheet.number(0, column, value)
    with pytest.raises(ValueError, match="inf"):
        sheet.formula(1, 0, "=1/0", math.inf)
    with pytest.raises(ValueError, match="characters"):
        sheet.formula(1, 0, "=" + "1+" * 5000 + "1", 1.0)
    assert values(workbook.bytes())["S"] == {"C1": "∞", "D1": pytest.approx(0.3)}


def test_a_sheet_that_is_too_small_says_what_to_do() -> None:
    sheet = book().sheet("Per host")
    with pytest.raises(FleetmarkError, match=r"Per host would need .* 16,385 columns; .* narrow the selection"):
        sheet.number(0, MOST_COLUMNS, 1.0)


def test_the_same_content_gives_the_same_bytes_and_fixed_text_is_translated() -> None:
    def workbook() -> bytes:
        shouting = Book(message("A title"), "no date", lambda text: text.upper())
        sheet = shouting.sheet(message("Sheet"))
        sheet.heads(0, [Head(message("head"), "s", 12), Head("as it stands")])
        sheet.filtered(0, 3, 2)
        sheet.number(1, 1, 2.5, role="input")
        chart = shouting.chart("line", message("chart"))
        chart.add_series({"values": f"={sheet.span(1, 1, 2, 1)}"})
        sheet.place(chart, 5, 5)
        return shouting.bytes()

    assert workbook() == workbook()
    assert values(workbook())["SHEET"] == {"A1": "HEAD\ns", "B1": "as it stands", "B2": 2.5}


@pytest.mark.parametrize(
    ("figures", "unit", "shown"),
    [
        ([2.1e11], "B/s", '#,##0,,," GB/s"'),
        ([4.5e4], "1/s", '#,##0" /s"'),
        ([7.1e-8], "s", '##0.00E+0" s"'),
        ([1.5], "s", '#,##0.00" s"'),
        ([210.0], "1", "#,##0"),
        ([math.nan], "s", GENERAL),
    ],
)
def test_formats_scale_figures_that_keep_their_base_unit(figures: list[float], unit: str, shown: str) -> None:
    assert form_for(figures, unit) == shown


def test_a_share_that_people_read_in_percent_does_so_in_a_cell() -> None:
    assert form_for([0.00245], "1", percent=True) == "0.000%" and form_for([0.762], "1", percent=True) == "0.0%"
    assert form_for([210.0], "B/s", percent=True) == form_for([210.0], "B/s")


@pytest.mark.parametrize(
    ("width", "shown"), [(5e9, '#,##0,,," GB/s"'), (3e9, '#,##0.0,,," GB/s"'), (0.0, '#,##0.0,,," GB/s"')]
)
def test_a_narrow_interval_has_a_fourth_digit(width: float, shown: str) -> None:
    assert form_for([2.1e11], "B/s", width) == shown
