"""Terms of sale and limits of racks: alike from YAML, sheets and workbook, kept by the plan, live in the workbook."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import openpyxl
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import workbook
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.futures import Fleet, allowance, sample
from fleetmark.planner.capacity.question import Site, Supply
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.cost.cash import by_year
from tests import sheets
from tests.demands import changed
from tests.planner.questions import ask, sku, work
from tests.plans import other_forms, question_of, solved
from tests.reports import plan_sample

SKU = """\
    price: 13000 USD
    price_breaks: {60: 12000 USD, 90: 10000}
    residual: 70%
    price_change: -10%
    lot: 4
    vendor: acme
    slips: {1: 10%, 2: 1%}
    support: 500 USD
"""
TOP = """\
currencies: {USD: 0.9}
energy_price_change: 5%
supply:
  - {item: acme, maximum: 40}
  - {item: genoa, maximum: 36, period: 2027-Q2}
domain_power: {row 1: 110 kW}
"""
NVL = """\
  nvl72:
    price: 3000000
    power: {idle: 40 kW, peak: 120 kW}
    rack_units: 48
    racks: 1
    cooling: liquid
    gpus: 72
    gpu_memory: 192 GB
    worth: {train: 72}
"""
TRAIN = """\
  train:
    unit: GPUs
    demand: [60, 60, 60, 140]
    utilisation: 80%
    gpus: 1
    gpu_memory: 100 GB
"""


def text() -> str:
    """The small question with all terms, and racks that are bought whole."""
    full = changed("    price: 12000\n", SKU, changed("120, 130]", "120, 160]"))
    full = changed("skus:\n", TRAIN + "skus:\n", full)
    full = changed("sites:\n", NVL + "sites:\n", full)
    full = changed("rack_units: 400}", "rack_units: 400, domain: 'row 1', racks: 60, rack_power: 8 kW}", full)
    full = changed("fra: {}", "fra: {liquid_racks: 3, windows: [2027-Q2, 2027-Q4]}", full)
    return TOP + full


def test_terms_arrive_in_the_planners_units(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    genoa, nvl, ams = q.skus["genoa"], q.skus["nvl72"], q.sites["ams"]
    assert genoa.price == pytest.approx(11700)
    assert genoa.breaks == ((60, pytest.approx(10800)), (90, 10000.0))
    assert (genoa.support, genoa.residual, genoa.lot, genoa.vendor) == (450.0, 0.7, 4, "acme")
    assert (genoa.price_change, q.energy_price_change) == (-0.1, 0.05)
    assert q.price_level("genoa", 4) == pytest.approx(0.9)  # quarters
    assert genoa.slips == pytest.approx((0.89, 0.1, 0.01))
    assert (genoa.lead, genoa.allowance, genoa.delay) == (2, 1, 3)  # 1% of lateness fits into half of 5%, 11% do not
    assert (nvl.liquid, nvl.racks, q.sites["fra"].liquid_racks) == (True, 1.0, 3.0)
    assert (ams.racks, ams.rack_w, q.sites["fra"].windows) == (60.0, 8000.0, frozenset({1, 3}))
    assert q.positions("genoa", "ams") == pytest.approx(1 / 11)  # 8 kW over 700 W
    assert q.supply == (Supply("acme", 40), Supply("genoa", 36, 1))
    assert q.domains_w == {"row 1": 110_000.0}


def test_sheets_and_workbook_ask_the_same(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    assert list(other_forms(tmp_path, q)) == [replace(q, source={})] * 2


def test_a_plan_keeps_the_terms(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    plan = solved(q)
    racks = plan.stock[plan.stock["sku"] == "nvl72"]
    # 60 GPUs at 80% take 75, so a second rack; 140 take 175, so a third. All stand where liquid cooling is.
    assert racks[racks["site"] == "fra"]["installed"].tolist() == [2, 2, 2, 3]
    assert not racks[racks["site"] == "ams"]["installed"].any()
    bought = plan.stock[plan.stock["sku"] == "genoa"]
    assert (bought["buy"] % 4 == 0).all()
    assert bought.groupby("period")["buy"].sum().max() <= 40


def test_every_cell_agrees_with_the_account(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    written = plan_sample.workbook(Answer(q, solved(q)), created="")
    (computed,) = sheets.recalculated([written])
    assert list(sheets.disagreements(written, computed)) == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            "price: 13000 USD",
            "price: 13000 GBP",
            "skus.genoa.price: there is no rate for GBP: write what one is in EUR",
        ),
        ("price: 13000 USD", "price: 13000 dollars", "'13000 dollars' is not a price"),
        ("{60: 12000 USD, 90: 10000}", "{many: 3}", "price_breaks: 'many' is not a count of 1 or more"),
        ("{1: 10%, 2: 1%}", "{1: 60%, 2: 50%}", "slips: the shares come to 110%, more than all orders"),
        ("{1: 10%, 2: 1%}", "1 to 2", "'1 to 2' is not a list of entries"),
        ("item: acme", "item: acmee", "supply[1].item: no SKU or vendor 'acmee' (did you mean acme?); there are"),
        ("period: 2027-Q2", "period: 2029-Q2", "supply[2].period: no period '2029-Q2'"),
        ("[2027-Q2, 2027-Q4]", "[2030-Q1]", "sites.fra.windows[1]: no period '2030-Q1'"),
        ("{row 1: 110 kW}", "{row 9: 110 kW}", "domain_power.row 9: no failure domain 'row 9'"),
        ("rack_power: 8 kW", "rack_power: 0", "0 is not above 0"),
        ("cooling: liquid", "cooling: oil", "skus.nvl72.cooling"),
        ("residual: 70%", "residual: 170%", "1.7 is above 1"),
        ("lot: 4", "lot: 0", "0 is below 1"),
        ("price_change: -10%", "price_change: -100%", "skus.genoa.price_change: -1 is below -0.99"),
        ("energy_price_change: 5%", "energy_price_change: 5", "5 is 500% a year: write 5%, or 500% if you mean that"),
    ],
)
def test_bad_terms_name_their_place(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    written = changed(old, new, text())
    with pytest.raises(FleetmarkError) as caught:
        question_of(tmp_path, written)
    line = next(n for n, row in enumerate(written.splitlines(), 1) if new in row)
    assert sentence in str(caught.value)
    assert f"demand.yml line {line}: " in str(caught.value)


def test_power_that_is_provisioned_counts_against_the_limit(tmp_path: Path) -> None:
    """Ten servers that peak at 200 W do not fit into 1 kW, but do where 100 W are set aside for each."""
    nameplate = ask([work("web", 10.0)], [sku("s", {"web": 1.0}, 5.0, peak_w=200.0)], [Site("ams", power_w=1000.0)])
    conflict = solve(nameplate)
    assert isinstance(conflict, Conflict)
    assert [limit.name for limit in conflict.limits] == ["demand of web in 2027", "power at ams"]
    measured = replace(nameplate, skus={"s": replace(nameplate.skus["s"], provisioned_w=100.0)})
    assert solved(measured).objective == pytest.approx(50)
    q = question_of(tmp_path, changed("peak: 700 W}", "peak: 700 W, provisioned: 600 W}"))
    assert (q.skus["genoa"].provisioned_w, q.skus["genoa"].budgeted_w) == (600.0, 600.0)


def test_terms_in_conflict_are_named() -> None:
    """Ten servers are needed; a rack, a row and a vendor each have room for eight."""
    few = ask([work("web", 10.0)], [sku("s", {"web": 1.0}, 5.0, peak_w=100.0, vendor="acme")], [Site("ams")])
    for limit, words, least in (
        ({"supply": (Supply("acme", 8),)}, "supply of acme", 2),
        ({"domains_w": {"ams": 800.0}}, "power of ams", 200),
        ({"sites": {"ams": Site("ams", racks=4.0, rack_w=200.0)}}, "positions for racks at ams", 1),
    ):
        conflict = solve(replace(few, **limit))  # type: ignore[arg-type]
        assert isinstance(conflict, Conflict)
        (other,) = [each for each in conflict.limits if "demand" not in each.name]
        assert str(other.name) == words
        assert other.relax == pytest.approx(least, rel=1e-3)


def test_a_price_break_is_worth_buying_more() -> None:
    """Nine at 10 cost 90, ten at 8 cost 80; and with a year's age they keep half: 40 is left of them."""
    nine = ask([work("web", 9.0)], [sku("s", {"web": 1.0}, 10.0, breaks=((10, 8.0),))], [Site("ams")])
    assert solved(nine).objective == pytest.approx(80)
    lots = replace(nine, skus={"s": replace(nine.skus["s"], breaks=(), lot=4)})
    assert solved(lots).objective == pytest.approx(120)
    kept = replace(nine, skus={"s": replace(nine.skus["s"], residual=0.5)})
    assert solved(kept).objective == pytest.approx(40)


def test_what_is_needed_later_is_bought_when_it_is_cheaper() -> None:
    """Five servers of 10 in the first year, and five more in the third: at 20% less a year they cost 6.4 each then."""
    q = ask([work("web", 5.0, 5.0, 10.0)], [sku("s", {"web": 1.0}, 10.0, price_change=-0.2)], [Site("ams")])
    plan = solved(q)
    assert plan.stock["buy"].tolist() == [5, 0, 5]
    assert plan.objective == pytest.approx(50 + 5 * 6.4)
    dearer = solved(replace(q, skus={"s": replace(q.skus["s"], price_change=0.2)}))
    assert (dearer.stock["buy"].tolist(), dearer.objective) == ([10, 0, 0], pytest.approx(100))
    assert isinstance(solve(replace(q, budget=[50.0, 0.0, 31.9])), Conflict)
    assert solved(replace(q, budget=[50.0, 0.0, 32.1])).objective == pytest.approx(82)


def test_energy_that_becomes_dearer_costs_more_each_year() -> None:
    """A server of 100 W over three years, with energy at 1 a kWh, then at 2 and 4."""
    s = sku("s", {"web": 1.0}, 0.0, peak_w=100.0, idle_w=100.0)
    q = replace(ask([work("web", 1.0, 1.0, 1.0)], [s], [Site("ams")]), energy_price=1.0, energy_price_change=1.0)
    costs = solved(q).costs
    assert costs.loc[costs["kind"] == "energy", "money"].tolist() == pytest.approx([876.6, 1753.2, 3506.4], rel=1e-3)


def test_late_orders_make_the_plan_short_until_they_come() -> None:
    """Half of all futures are a year late: the second of three years lacks servers in these, the third in none."""
    s = sku("s", {"web": 1.0}, 10.0, lead=1, slips=(0.5, 0.5))
    q = ask([work("web", 0.0, 5.0, 5.0)], [s], [Site("ams")])
    plan = solved(q)
    lost, _, _, _ = Fleet(q, plan).short(sample(q, 2000, 1))
    assert lost[:, 1].mean() == pytest.approx(0.5, abs=0.04)
    assert not lost[:, 2].any()
    assert (allowance((0.5, 0.5), 0.95, 1), allowance((0.84, 0.15, 0.01), 0.95, 2)) == (1, 1)
    early = replace(q, skus={"s": replace(s, allowance=1)}, workloads={"web": work("web", 0.0, 0.0, 5.0)})
    assert not Fleet(early, solved(early)).short(sample(early, 500, 1))[0].any()


def test_purchases_are_depreciated_from_their_arrival_on(tmp_path: Path) -> None:
    """Two servers of 30 ordered in 2027 arrive in 2028 and are depreciated over three years, of which one is left."""
    s = sku("s", {"web": 1.0}, 30.0, lead=1, support=1.0)
    q = replace(ask([work("web", 0.0, 2.0, 2.0)], [s], [Site("ams")]), depreciation=3)
    cash = by_year(Answer(q, solved(q)).ledger, [0, 1, 2])
    assert cash.capex.tolist() == [60, 0, 0] and cash.opex.tolist() == [0, 2, 2]
    assert cash.depreciation.tolist() == [0, 20, 20] and cash.book.tolist() == [60, 40, 20]
    full = question_of(tmp_path, changed("pue: 1.3", "pue: 1.3\ndepreciation: 3 quarters", text()))
    assert full.depreciation == 3
    plan = solved(full)
    written = plan_sample.workbook(Answer(full, plan), created="")
    edited = sheets.edited(written, {next(iter(places(written, "question_depreciation"))): 2})
    (tmp_path / "edited.xlsx").write_bytes(edited)
    after = workbook.read(tmp_path / "edited.xlsx")
    assert after.depreciation == 2
    computed, changed_cells = sheets.recalculated([written, edited])
    assert list(sheets.disagreements(written, computed)) == []
    expected = plan_sample.workbook(Answer(after, plan), created="")
    assert [d for d in sheets.disagreements(expected, changed_cells) if "'edited'" not in d] == []


def places(book: bytes, name: str) -> list[tuple[str, str]]:
    """Tab and cell of a named range."""
    target = openpyxl.load_workbook(io.BytesIO(book), read_only=True).defined_names[name]
    return [(sheet, cell.replace("$", "")) for sheet, cell in target.destinations]
