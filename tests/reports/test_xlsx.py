"""The workbook, as LibreOffice recalculates it: every formula agrees with Python, inputs work, and nothing in it acts."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import openpyxl
import pytest
from openpyxl.utils import range_boundaries

from fleetmark.base.measurement import Status
from fleetmark.record.results import Results
from fleetmark.reports.campaign import tabs
from fleetmark.reports.campaign.document import document
from fleetmark.reports.campaign.view import view
from fleetmark.reports.formats import xlsx as book_format
from fleetmark.reports.kit.language import Language
from tests.reports import sample
from tests.sheets import Cells, disagreements, formulas, recalculated, table, values

CAMPAIGNS = {"campaign": sample.six, "one": sample.one}


def of_campaign(results: Results, **options: Any) -> bytes:
    return book_format.render(document(results, **options), Language())


@pytest.fixture(scope="module")
def books() -> dict[str, bytes]:
    return {name: of_campaign(results()) for name, results in CAMPAIGNS.items()}


@pytest.fixture(scope="module")
def computed(books: Mapping[str, bytes]) -> dict[str, Cells]:
    """Return the books as LibreOffice computes them, in one start."""
    return dict(zip(books, recalculated(list(books.values())), strict=True))


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_recalculated_agrees_with_python_on_every_formula_cell(
    name: str, books: Mapping[str, bytes], computed: Mapping[str, Cells]
) -> None:
    assert sum(map(len, formulas(books[name]).values())) > 90
    assert list(disagreements(books[name], computed[name])) == []


def test_paper_has_the_first_rows_of_a_long_table(books: Mapping[str, bytes]) -> None:
    """Print the first 200 rows of measurements below the row of heads, and every row of headlines."""
    read = openpyxl.load_workbook(io.BytesIO(books["campaign"]))
    raw = read["Raw"]
    head = next(row for row in range(1, 9) if raw.cell(row, 1).value == "workload")
    assert raw.max_row > head + book_format.MOST_PRINTED
    last = range_boundaries(str(raw.print_area).split("!")[1].replace("$", ""))[3]
    assert last == head + book_format.MOST_PRINTED
    assert not read["Headlines"].print_area  # all of it


def test_what_did_not_pass_is_listed(books: Mapping[str, bytes]) -> None:
    failed = " ".join(str(v) for v in values(books["campaign"])["Not passed"].values())
    assert "io_uring_setup failed" in failed and "no compiler on the host" in failed


def test_the_same_campaign_gives_the_same_bytes(books: Mapping[str, bytes]) -> None:
    assert of_campaign(sample.six()) == books["campaign"]


def test_a_campaign_of_which_nothing_passed_is_a_workbook_too() -> None:
    book = of_campaign(sample.tiny({}, ended=[("h1", Status.FAILED, "no luck")]))
    assert "no luck" in values(book)["Not passed"].values()


def test_values_of_a_campaign_are_live(books: Mapping[str, bytes]) -> None:
    cells = formulas(books["campaign"])
    assert any(f.startswith("=MEDIAN('Raw'") for f in cells["Per host"].values())
    stats = view(sample.six()).stats
    median = stats[(stats["host"] == "ice-a") & (stats["metric"] == "triad")]["value"].iloc[0]
    cells_now = [v for v in values(books["campaign"])["Per host"].values() if isinstance(v, float)]
    assert np.isclose(cells_now, median).any()


def test_every_value_stands_in_a_campaign_workbook_that_is_asked_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabs, "LIVE", 10)
    results = sample.six()
    heads, rows = table(of_campaign(results, has_every_value=True), "Raw")
    numbers = [v for row in rows for column, v in row.items() if column not in (heads["host"], heads["repeat"])]
    m = results.values.frame
    passed = m.loc[(m["status"] == "passed") & np.isfinite(m["value"].astype(float))]
    assert len(passed) > 10
    assert sorted(numbers) == pytest.approx(sorted(passed["value"]), rel=1e-12)
    assert {(row[heads["host"]], row[heads["repeat"]]) for row in rows} == {
        *zip(passed["host"], passed["repeat"], strict=True)
    }
    first = passed.iloc[0]
    (triad,) = [row for row in rows if (row[heads["host"]], row[heads["repeat"]]) == (first["host"], first["repeat"])]
    title = next(t for t in heads if t.startswith(f"{first['workload']} {first['case']} {first['metric']}"))
    values_of_run = passed[(passed["host"] == first["host"]) & (passed["repeat"] == first["repeat"])]
    assert triad[heads[title]] in values_of_run[values_of_run["metric"] == first["metric"]]["value"].to_numpy()
    unasked = values(of_campaign(results))["Raw"]
    assert not any(isinstance(value, float) for value in unasked.values())
