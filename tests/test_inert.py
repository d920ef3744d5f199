"""Check that outside text never becomes a formula in our tables, and that numbers stay numbers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import openpyxl
import pytest

from fleetmark.base.inert import inert, restored
from fleetmark.base.yaml import read_yaml
from fleetmark.demand import csv as demand_csv
from fleetmark.reports.kit.workbook import Book
from tests.commands import run
from tests.demands import SMALL
from tests.records import Bench, record

FORMULAS = ("=HYPERLINK(1)", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1")


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_text(text: str) -> None:
    assert inert(text) == f"'{text}"
    assert restored(f"'{text}") == text


@pytest.mark.parametrize("value", ["web", "", "-1.5", "+3", "-2e-9", "-5%", "'quoted'", -1.5, 3, None, True])
def test_other_cells_stay_as_they_are(value: object) -> None:
    assert inert(value) is value
    assert not isinstance(value, str) or restored(value) == value


def test_no_cell_of_a_comparison_in_csv_is_a_formula(tmp_path: Path) -> None:
    benches = [
        Bench("stream", f"{text.strip()} {n}", "triad", "B/s", "higher", f"{text.strip()} class")
        for n, text in enumerate(FORMULAS)
    ]
    hosts = {f"h{n}": {"gen": "=old" if n < 2 else "@new"} for n in range(4)}
    record(tmp_path, "c1", hosts, {(h, b): [1.0, 1.5, 2.0] for h in hosts for b in benches})
    table = run(tmp_path, "compare", "-b", "gen==old", "-c", "gen=@new", "--format", "csv")
    cells = [cell for line in csv.reader(io.StringIO(table)) for cell in line]
    assert any(cell.startswith("'@") for cell in cells)
    assert [cell for cell in cells if inert(cell) != cell] == []


def test_names_of_a_plan_go_through_csv_and_back(tmp_path: Path) -> None:
    (tmp_path / "demand.yml").write_text(SMALL.replace("ams", '"=ams"'))
    sheets = demand_csv.sheets(read_yaml(tmp_path / "demand.yml"), ["2027-Q1", "2027-Q2", "2027-Q3", "2027-Q4"])
    assert "'=ams" in sheets["sites.csv"]
    (tmp_path / "sites.csv").write_text(sheets["sites.csv"])
    _, rows = demand_csv.Folder(tmp_path).rows("sites.csv", ["site"], ["site"])
    assert "=ams" in [row.cells["site"] for row in rows]


def test_text_in_a_workbook_stays_text_when_it_is_edited() -> None:
    book = Book("t", "2026-01-01T00:00:00Z")
    sheet = book.sheet("s")
    for row, text in enumerate(("=1+1", "web")):
        sheet.text(row, 0, text)
    cells = openpyxl.load_workbook(io.BytesIO(book.bytes()))["s"]
    assert (cells["A1"].value, cells["A1"].data_type, cells["A1"].quotePrefix) == ("=1+1", "s", True)
    assert not cells["A2"].quotePrefix
