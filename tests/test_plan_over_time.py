"""Prices and limits that change over time: alike from YAML, sheets and workbook, kept by the plan, live in the book."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import workbook
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Site
from fleetmark.planner.capacity.solve import solve
from fleetmark.reports.plan.terms import lines
from tests import sheets
from tests.demands import changed
from tests.planner.questions import ask, sku, work
from tests.plans import other_forms, question_of, solved
from tests.reports import plan_sample


def text() -> str:
    """The small question with prices that fall, dearer energy, and a site that opens in the third quarter."""
    full = changed("price: 12000", "price: {2027-Q1: 12000, 2027-Q3: not sold, 2027-Q4: 10000}")
    full = changed("lead: 4 months", "residual: 50%", full)
    full = changed("energy_price: 0.2", "energy_price: [0.2, 0.2, 0.3, 0.25]", full)
    full = changed("[100, 110, 120, 130]", "[100, 130, 150, 190]", full)
    site = "{power: {2027-Q1: 0, 2027-Q3: 60 kW}, ports: [90, 80, 70, 60], energy_price: {2027-Q1: 0.1, 2027-Q2: 0.12}}"
    return changed("fra: {}", f"fra: {site}", full)


def test_a_figure_holds_until_the_next_one(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    genoa, fra = q.skus["genoa"], q.sites["fra"]
    assert (genoa.price, genoa.prices) == (12000.0, (12000.0, 12000.0, None, 10000.0))
    assert [q.price_level("genoa", t) for t in range(4)] == pytest.approx([1, 1, 0, 10 / 12])
    assert (fra.power_w, fra.ports, q.sites["ams"].power_w) == ((0, 0, 60e3, 60e3), (90, 80, 70, 60), 120e3)
    assert [q.price_of_energy("fra", t) for t in range(4)] == [0.1, 0.12, 0.12, 0.12]
    assert [q.price_of_energy("ams", t) for t in range(4)] == [0.2, 0.2, 0.3, 0.25]
    sentences = [str(line) for line in lines(Answer(q, solved(q)).ledger)]
    assert "genoa: its price is 12,000 from 2027-Q1, not sold from 2027-Q3, 10,000 from 2027-Q4" in sentences
    assert "fra: power limit in kW over time: 0 from 2027-Q1, 60 from 2027-Q3" in sentences
    assert "The energy price is 0.2 from 2027-Q1, 0.3 from 2027-Q3, 0.25 from 2027-Q4" in sentences


def test_sheets_and_workbook_ask_the_same(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    assert list(other_forms(tmp_path, q)) == [replace(q, source={})] * 2


def test_every_cell_agrees_with_the_account(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    written = plan_sample.workbook(Answer(q, solved(q)), created="")
    plan = solved(q)
    series = ("Over time", {"C5": 0.4, "E6": 13_000, "F6": 9_000, "E8": 1_000, "C9": 10})
    edited = sheets.edited(written, {(series[0], cell): value for cell, value in series[1].items()})
    computed, changed_cells = sheets.recalculated([written, edited])
    assert list(sheets.disagreements(written, computed)) == []
    (saved,) = sheets.converted([edited], "xlsx")
    (tmp_path / "edited.xlsx").write_bytes(saved)
    after = workbook.read(tmp_path / "edited.xlsx")
    assert after.skus["genoa"].prices == (12_000, 12_000, 13_000, 9_000)
    assert (after.sites["fra"].power_w, after.energy_price) == ((0, 0, 1000, 60e3), (0.4, 0.2, 0.3, 0.25))
    expected = plan_sample.workbook(Answer(after, plan), created="")
    assert [d for d in sheets.disagreements(expected, changed_cells) if "'edited'" not in d] == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[0.2, 0.2, 0.3, 0.25]", "[0.2, 0.2, 0.3]", "energy_price: has 3 figures for 4 periods (2027-Q1 to 2027-Q4)"),
        ("{2027-Q1: 0, 2027-Q3: 60 kW}", "{2027-Q3: 60 kW}", "sites.fra.power: has no figure for 2027-Q1, the first"),
        ("2027-Q3: 60 kW", "2031-Q3: 60 kW", "sites.fra.power.2031-Q3: '2031-Q3' is not one of the periods"),
        ("2027-Q3: 60 kW", "2027-Q3: 60", "sites.fra.power: is 60 W, less than one server draws: write 60 kW"),
        ("2027-Q4: 10000", "2027-Q4: cheap", "skus.genoa.price.2027-Q4: 'cheap' is not a number"),
        (
            "residual: 50%",
            "price_change: 5%",
            "price_change: the price is already given by period; remove price_change",
        ),
        (
            "pue: 1.3",
            "energy_price_change: 5%\npue: 1.3",
            "the energy price is already given by period; remove energy_price_change",
        ),
    ],
)
def test_bad_series_name_their_place(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(FleetmarkError) as caught:
        question_of(tmp_path, changed(old, new, text()))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("demand.yml")


def test_a_site_that_opens_later_is_used_from_then_on() -> None:
    """The cheap site opens in the second year: what the first needs stands at the dear one."""
    cheap, dear = Site("new", power_w=(0.0, 1000.0), energy_price=0.0), Site("old", energy_price=(1.0, 1.0))
    s = sku("s", {"web": 1.0}, 5.0, peak_w=100.0, idle_w=100.0)
    q = replace(ask([work("web", 2.0, 5.0)], [s], [cheap, dear]), energy_price=9.0)
    plan = solved(q)
    stock = plan.stock.set_index(["site", "period"])["installed"]
    assert (stock["new", 0], stock["old", 0], stock["new", 1]) == (0, 2, 5)
    conflict = solve(replace(q, sites={"new": cheap}))
    assert isinstance(conflict, Conflict)
    assert {str(limit.name) for limit in conflict.limits} == {"demand of web in 2027", "power at new"}
    (room,) = [limit.relax for limit in conflict.limits if "power" in limit.name]
    assert room == pytest.approx(200, rel=1e-3)


def test_orders_are_placed_while_a_server_is_sold() -> None:
    """It is sold in the first year and the third, dearer then: the second year's demand is bought ahead."""
    s = sku("s", {"web": 1.0}, 10.0, prices=(10.0, None, 30.0))
    q = ask([work("web", 2.0, 3.0, 4.0)], [s], [Site("ams")])
    plan = solved(q)
    assert plan.stock["buy"].tolist() == [4, 0, 0]
    short = solved(replace(q, budget=[30.0, 0.0, 30.0]))
    assert short.stock["buy"].tolist() == [3, 0, 1]
    assert short.objective == pytest.approx(60)
    never = solve(replace(q, skus={"s": replace(s, prices=(None, None, 30.0), price=30.0)}))
    assert isinstance(never, Conflict)
    assert [str(limit.name) for limit in never.limits] == ["demand of web in 2027", "periods in which s is sold"]
