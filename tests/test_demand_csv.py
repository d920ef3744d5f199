"""The planner's input as CSV sheets: the same question as from YAML, and faults with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.yaml import read_yaml
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import question as demand
from fleetmark.planner.capacity.question import Question
from tests.demands import SMALL, changed


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "demand.yml"
    file.write_text(SMALL)
    return file


def sheets(tmp_path: Path, source: Path, folder_name: str = "sheets") -> Path:
    folder = tmp_path / folder_name
    folder.mkdir()
    names = demand.read(source, tmp_path / "results").periods
    for name, text in demand_csv.sheets(read_yaml(source), names).items():
        (folder / name).write_text(text)
    return folder


FORMS = [
    "[100, 110, 120, 130]",
    "70",
    "{start: 100, growth: 20%}",
    "{start: {p50: 100, p90: 110}, growth: {p50: 30%, p90: 50%}}",
    "{p50: [100, 110, 120, 130], p90: 150}",
    "{2027-Q1: 100, 2027-Q2: 110, 2027-Q3: 120, 2027-Q4: 130}",
]


@pytest.mark.parametrize("form", FORMS)
def test_sheets_ask_the_same_question(tmp_path: Path, form: str) -> None:
    file = tmp_path / "demand.yml"
    file.write_text(changed("[100, 110, 120, 130]", form).replace("pue: 1.3", "pue: 1.3\nbudget: [5, none, 7, 8]"))
    assert are_equal(demand.read(file, tmp_path), demand.read(sheets(tmp_path, file), tmp_path))


def test_the_example_asks_the_same_question_in_sheets(tmp_path: Path) -> None:
    q = demand.read(demand.EXAMPLE, tmp_path)
    assert are_equal(q, demand.read(sheets(tmp_path, demand.EXAMPLE), tmp_path))
    assert (len(q.sites), len(q.skus), len(q.workloads), len(q.periods), q.survive) == (2, 3, 2, 8, True)


def are_equal(a: Question, b: Question) -> bool:
    from dataclasses import replace

    return replace(a, source={}) == replace(b, source={})


@pytest.mark.parametrize(
    ("sheet", "old", "new", "sentence"),
    [
        ("skus.csv", "12000", "-3", "skus.csv line 3, column price: -3 is below 0"),
        ("skus.csv", "12000", "", "skus.csv line 3: skus.genoa: price is missing"),
        ("skus.csv", "price", "prise", "skus.csv line 1, column prise: there is no such column (did you mean price?)"),
        ("skus.csv", "genoa,", "icelake,", "skus.csv line 3: sku icelake is already at line 2"),
        ("skus.csv", "genoa,", ",", "skus.csv line 3: sku is empty"),
        ("worth.csv", "genoa,", "geona,", "worth.csv line 3, column sku: no SKU 'geona' (did you mean genoa?)"),
        ("worth.csv", "web,1.83", "wbe,1.83", "worth.csv line 3: skus.genoa.worth.wbe: no workload 'wbe'"),
        ("worth.csv", "1.83", "1,83", "worth.csv line 3: has 4 cells under 3 heads"),
        ("fleet.csv", "200", "two", "fleet.csv line 2, column count: 'two' is not a number"),
        ("fleet.csv", "ams", "lhr", "fleet.csv line 2, column site: no site 'lhr'"),
        ("demand.csv", "110", "-1", "demand.csv line 2, column 2027-Q2: -1 is below 0"),
        ("demand.csv", "110", "", "demand.csv line 2: workloads.web.demand: has no figure for 2027-Q2"),
        ("demand.csv", "2027-Q2", "2027-Q9", "demand.csv line 2, column 2027-Q9: '2027-Q9' is not one of the periods"),
        ("settings.csv", "pue", "peu", "settings.csv line 8, column key: there is no setting 'peu' (did you mean pue?)"),
        ("settings.csv", "1.3", "0.3", "settings.csv line 8, column value: 0.3 is below 1"),
        ("settings.csv", "discount,8%", "currency,EUR", "settings.csv line 6: currency is already at line 2"),
    ],
)  # fmt: skip
def test_bad_sheets_name_line_and_column(
    tmp_path: Path, small: Path, sheet: str, old: str, new: str, sentence: str
) -> None:
    folder = sheets(tmp_path, small)
    text = (folder / sheet).read_text()
    assert old in text
    (folder / sheet).write_text(text.replace(old, new, 1))
    with pytest.raises(FleetmarkError) as error:
        demand.read(folder, tmp_path)
    assert any(fault.startswith(sentence) for fault in str(error.value).splitlines()), str(error.value)


def test_missing_and_unknown_sheets(tmp_path: Path, small: Path) -> None:
    folder = sheets(tmp_path, small)
    (folder / "feet.csv").write_text("sku,site,count\n")
    with pytest.raises(FleetmarkError, match=r"feet.csv: not a sheet of the planner"):
        demand.read(folder, tmp_path)
    (folder / "feet.csv").unlink()
    (folder / "worth.csv").unlink()
    with pytest.raises(FleetmarkError, match=r"worth.csv: No such file"):
        demand.read(folder, tmp_path)


def test_periods_may_be_the_heads_of_the_demand(tmp_path: Path, small: Path) -> None:
    folder = sheets(tmp_path, small)
    settings = (folder / "settings.csv").read_text()
    (folder / "settings.csv").write_text("".join(r for r in settings.splitlines(True) if "periods" not in r))
    assert are_equal(demand.read(folder, tmp_path), demand.read(small, tmp_path))
    text = (folder / "demand.csv").read_text()
    (folder / "demand.csv").write_text(text.replace("2027-Q2,2027-Q3", "2027-Q3,2027-Q2"))
    with pytest.raises(FleetmarkError, match=r"demand.csv line 1.*2027-Q3 is out of order"):
        demand.read(folder, tmp_path)


def test_sheets_as_a_spreadsheet_of_another_country_saves_them(tmp_path: Path, small: Path) -> None:
    folder = sheets(tmp_path, small)
    for sheet in folder.iterdir():
        sheet.write_text("\ufeff" + sheet.read_text().replace(",", ";"), encoding="utf-8")
    assert are_equal(demand.read(folder, tmp_path), demand.read(small, tmp_path))


def test_a_heading_with_control_characters_is_one_line_of_the_error(tmp_path: Path, small: Path) -> None:
    folder = sheets(tmp_path, small)
    file = next(folder.glob("*.csv"))
    file.write_text("a\x0bb\x1b[31m" + file.read_text())
    with pytest.raises(FleetmarkError) as raised:
        demand.read(folder, tmp_path / "results")
    text = str(raised.value)
    assert "a b" in text and all(line.isprintable() for line in text.split("\n"))
    assert text.splitlines() == text.split("\n")
