"""Edited workbooks, read back: the same question, edits, new rows, and faults with tab and cell."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.utils import get_column_letter
from openpyxl.utils.cell import range_boundaries

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand.workbook import read
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Cohort, Question
from fleetmark.planner.capacity.sku import Worth
from tests import sheets
from tests.reports import plan_sample

Edit = dict[tuple[str, int, int], Any]  # (name of a range, row, column) to value


@cache
def written() -> tuple[Question, bytes]:
    q = plan_sample.question()
    return q, plan_sample.workbook(Answer(q, plan_sample.plan(q)), created="2027-01-20T10:00:00Z")


def changed(edit: Edit) -> bytes:
    book = openpyxl.load_workbook(io.BytesIO(written()[1]))
    for (name, i, j), value in edit.items():
        ((sheet, span),) = book.defined_names[name].destinations
        col, row, _, _ = range_boundaries(span.replace("$", ""))
        book[sheet][f"{get_column_letter(col + j)}{row + i}"] = value
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def edited(folder: Path, edit: Edit) -> Question:
    path = folder / "plan.xlsx"
    path.write_bytes(changed(edit))
    return read(path)


def refused(folder: Path, book: bytes) -> str:
    path = folder / "plan.xlsx"
    path.write_bytes(book)
    with pytest.raises(FleetmarkError) as caught:
        read(path)
    return str(caught.value).replace(str(folder) + "/", "")


def test_nothing_edited_is_the_same_question(tmp_path: Path) -> None:
    q, book = written()
    path = tmp_path / "plan.xlsx"
    path.write_bytes(book)
    question = read(path)
    assert replace(question, source=q.source) == q
    assert {k: v for k, v in question.source.items() if k != "plan.xlsx"} == q.source
    assert len(question.source["plan.xlsx"]) == 64


def test_every_digit_comes_back(tmp_path: Path) -> None:
    q = replace(plan_sample.question(), energy_price=0.1 + 0.2, discount=1 / 17)
    path = tmp_path / "plan.xlsx"
    path.write_bytes(plan_sample.workbook(Answer(q, plan_sample.plan(q)), created=""))
    assert (read(path).energy_price, read(path).discount) == (q.energy_price, q.discount)


def test_edits_are_read_with_their_source(tmp_path: Path) -> None:
    q, _ = written()
    edit: Edit = {
        ("sku_price", 1, 0): 8500,
        ("sku_age_limit", 0, 0): None,
        ("demand_median", 0, 2): 345.5,
        ("worth_value", 2, 0): 19,
        ("worth_df", 3, 0): None,
        ("workload_utilisation", 0, 0): 0.5,
        ("workload_pool", 0, 0): "front",
        ("site_power_w", 0, 0): None,
        ("site_runs", 0, 1): None,
        ("site_runs", 1, 1): None,
        ("site_runs", 2, 1): None,
        ("question_survive", 0, 0): "No",
        ("question_date", 0, 0): "2027-03-01",
        ("period_budget", 0, 0): None,
        ("period_budget", 2, 0): None,
        ("fleet_count", 0, 0): 51.0,
    }
    question = edited(tmp_path, edit)
    assert question.skus["new"].price == 8500
    assert question.skus["old"].age_limit is None
    assert question.workloads["web"].point[2] == 345.5
    assert question.skus["new"].worth["web"] == Worth(19.0, 0.0111, 9.37, "given in plan.xlsx")
    assert question.skus["new"].worth["batch"] == Worth(1.83, 0.02, math.inf, "given in plan.xlsx")
    assert question.skus["old"].worth["web"] == q.skus["old"].worth["web"]
    assert (question.workloads["web"].utilisation, question.workloads["web"].reason) == (0.5, "given in plan.xlsx")
    assert question.workloads["batch"].reason == q.workloads["batch"].reason
    assert question.workloads["batch"].sites == frozenset()
    assert [question.pool(w) for w in question.workloads] == ["front", "batch"]
    assert question.sites["ams"].power_w is None
    assert (question.survive, question.date, question.budget, question.fleet[0].count) == (False, "2027-03-01", (), 51)


def test_rows_may_be_added_in_the_empty_ones_and_below_them(tmp_path: Path) -> None:
    q, _ = written()
    sku = dict(
        zip(
            ("name", "price", "idle_w", "peak_w", "rack_units", "gpus", "ports", "lead"),
            ("arm", 7000, 90, 250, 1, 0, 1, 1),
            strict=True,
        )
    )
    sku |= dict.fromkeys(("support", "space", "migration", "minimum_order", "embodied"), 0)
    edit: Edit = {(f"sku_{field}", 3, 0): value for field, value in sku.items()}
    edit |= {
        ("worth_sku", 5, 0): "arm",
        ("worth_workload", 5, 0): "web",
        ("worth_value", 5, 0): 12,
        ("worth_se", 5, 0): 0.03,
    }
    edit |= {("site_name", 3, 0): "par", ("site_spares", 3, 0): 0, ("site_runs", 3, 1): "yes"}
    edit |= {
        ("fleet_sku", 30, 0): "arm",
        ("fleet_site", 30, 0): "par",
        ("fleet_count", 30, 0): 5,
        ("fleet_age", 30, 0): 1,
    }
    question = edited(tmp_path, edit)
    assert question.skus["arm"].worth == {"web": Worth(12.0, 0.03, math.inf, "given in plan.xlsx")}
    assert (question.skus["arm"].peak_w, question.skus["arm"].age_limit) == (250, None)
    assert list(question.sites) == [*q.sites, "par"]
    assert question.workloads["batch"].sites == {"ams", "fra", "par"}
    assert question.fleet[-1] == Cohort("arm", "par", 5, 1)


def test_workloads_and_periods_are_added_and_removed(tmp_path: Path) -> None:
    q, _ = written()
    edit: Edit = {("workload_name", 2, 0): "mail", ("workload_unit", 2, 0): "requests/s"}
    edit |= {("workload_utilisation", 2, 0): 0.5, ("workload_dedicated", 2, 0): "no"}
    edit |= {("demand_median_of", 2, 0): "mail", ("demand_sd_of", 2, 0): "mail", ("period_name", 6, 0): "2028-Q3"}
    edit |= {("worth_sku", 5, 0): "new", ("worth_workload", 5, 0): "mail", ("worth_value", 5, 0): 40}
    edit |= {("worth_se", 5, 0): 0}
    edit |= {("demand_median", i, 6): 500.0 - 490 * i for i in range(2)} | {("demand_sd", i, 6): 0.1 for i in range(2)}
    edit |= {("demand_median", 2, t): 70 for t in range(7)} | {("demand_sd", 2, t): 0 for t in range(7)}
    more = edited(tmp_path, edit)
    assert (list(more.workloads), more.periods[-1]) == (["web", "batch", "mail"], "2028-Q3")
    assert more.workloads["web"].point == (*q.workloads["web"].point, 500.0)
    assert (more.workloads["mail"].point, more.workloads["mail"].sites) == ((70.0,) * 7, frozenset())
    assert more.skus["new"].worth["mail"] == Worth(40.0, 0.0, math.inf, "given in plan.xlsx")
    fewer: Edit = {(f"workload_{field}", 1, 0): None for field in ("name", "unit", "utilisation", "dedicated")}
    fewer |= {(f"fleet_{field}", 4, 0): None for field in ("sku", "site", "count", "age", "arrives")}
    smaller = edited(tmp_path, fewer | {("period_name", 5, 0): None, ("period_name", 4, 0): None})
    assert (list(smaller.workloads), smaller.periods) == (["web"], q.periods[:4])
    assert smaller.workloads["web"].point == q.workloads["web"].point[:4]
    assert list(smaller.skus["new"].worth) == ["web"]


def test_saved_by_another_program_and_with_formulas_as_inputs(tmp_path: Path) -> None:
    edit: Edit = {("sku_price", 1, 0): "=9000*1.1", ("demand_median", 0, 0): "=500/2"}
    faults = refused(tmp_path, changed(edit))
    assert "plan.xlsx, sheet SKU & TCO, B6: contains a formula without a stored value" in faults
    assert "sheet Demand, C6: contains a formula" in faults
    (saved,) = sheets.converted([changed(edit)], "xlsx")
    path = tmp_path / "saved.xlsx"
    path.write_bytes(saved)
    question, (q, _) = read(path), written()
    assert question.skus["new"].price == pytest.approx(9900)
    assert question.workloads["web"].point == (250.0, *q.workloads["web"].point[1:])
    assert question.skus["old"] == q.skus["old"]
    assert question.skus["new"].worth == q.skus["new"].worth
    assert (question.sites, question.fleet, question.budget) == (q.sites, q.fleet, q.budget)


FAULTS: list[list[tuple[Edit, str]]] = [  # each list in one workbook
    [
        ({("question_pue", 0, 0): True}, "sheet Inputs, B13: True is not a number"),
        ({("question_survive", 0, 0): "perhaps"}, "sheet Inputs, B18: 'perhaps' is neither yes, no nor 2"),
        ({("question_date", 0, 0): "soon"}, "sheet Inputs, B8: 'soon' is not a date: write 2027-01-31"),
    ],
    [
        (
            {("sku_price", 1, 0): "abc"},
            "sheet SKU & TCO, B6: 'abc' is not a number",
        ),
        ({("demand_median", 1, 3): None}, "sheet Demand, F7: is empty: write a number"),
        ({("demand_median", 1, 2): -4}, "sheet Demand, E7: -4 is below 0"),
        ({("worth_value", 0, 0): 0}, "sheet Equivalence, C5: 0 is not above 0"),
        ({("fleet_count", 0, 0): 2.5}, "sheet Fleet, C5: 2.5 is not a whole number"),
        (
            {("workload_utilisation", 0, 0): 0.9},
            "sheet Utilisation, C5: 0.9 is above 0.85",
        ),
        ({("site_power_w", 0, 0): "#DIV/0!"}, "sheet Sites, C5: holds the error #DIV/0!: write a value"),
        ({("fleet_count", 6, 0): 3}, "sheet Fleet, A11: is empty"),
    ],
    [
        ({("site_runs", 0, 1): "maybe"}, "sheet Sites, Q5: 'maybe' is neither yes nor no"),
        ({("worth_workload", 1, 0): "bach"}, "sheet Equivalence, B6: no workload 'bach'"),
        (
            {("worth_sku", 4, 0): "new", ("worth_workload", 4, 0): "web"},
            "sheet Equivalence, A9: new has an equivalence for web already",
        ),
        ({("demand_median_of", 0, 0): "wbe"}, "sheet Demand, A6: no workload 'wbe'"),
    ],
    [
        ({("fleet_sku", 1, 0): "nwe"}, "sheet Fleet, A6: no SKU 'nwe' (did you mean new?); there are old, new, gpu"),
        ({("fleet_site", 2, 0): "fr"}, "sheet Fleet, B7: no site 'fr' (did you mean fra?)"),
    ],
    [
        ({("sku_price", 1, 0): "9,000"}, "sheet SKU & TCO, B6: '9,000' is not a price"),
        (
            {("sku_lead", 2, 0): "1 qrt"},
            "sheet SKU & TCO, H7: '1 qrt' is not a duration: write 2 (periods), 2 quarters",
        ),
        ({("sku_idle_w", 0, 0): 9000}, "sheet SKU & TCO, C5: peak (300 W) is below idle (9000 W)"),
        ({("site_name", 1, 0): "ams"}, "sheet Sites, A6: site 'ams' is already in row 5"),
        ({("site_runs", 0, 1): "no", ("site_runs", 2, 1): "no"}, "sheet Sites, Q5: batch may run nowhere"),
    ],
    [
        ({("workload_availability", 1, 0): "preemptible"}, "sheet Utilisation, A6: preemptible work runs on"),
        (
            {("workload_dedicated", 0, 0): "yes", ("workload_pool", 0, 0): "back"},
            "sheet Utilisation, A5: a workload with dedicated servers cannot share a pool",
        ),
        ({("supply_item", 0, 0): "new", ("supply_maximum", 0, 0): 1.5}, "sheet Supply, B5: 1.5 is not a whole number"),
        ({("sku_slips", 1, 0): "1: 80%, 2: 40%"}, "sheet SKU & TCO, X6: the shares come to 120%, more than all orders"),
        ({("sku_price_breaks", 1, 0): "many: 8000"}, "sheet SKU & TCO, V6: 'many' is not a count of 1 or more"),
    ],
    [
        ({("workload_pool", 0, 0): "batch"}, "sheet Utilisation, H5: batch is a workload with dedicated servers"),
        ({("sku_price", 2, 0): None}, "sheet Fleet, A9: gpu is on order, but it is not sold: give it a price"),
        ({("fleet_arrives", 4, 0): "2031-Q1"}, "sheet Fleet, E9: no period '2031-Q1'"),
        ({("supply_item", 0, 0): "nwe", ("supply_maximum", 0, 0): 3}, "sheet Supply, A5: no SKU or vendor 'nwe'"),
        ({("site_windows", 0, 0): "2027-Q9"}, "sheet Sites, M5: sites.ams.windows[1]: no period '2027-Q9'"),
        ({("question_domain_power", 0, 0): "row 9: 80 kW"}, "sheet Inputs, B21: domain_power.row 9: no failure domain"),
    ],
    [
        (
            {("workload_gpus", 1, 0): 8},
            "sheet Utilisation, F6: no SKU can run it: old, new: it has 0 GPUs of 0 GB, one unit needs 8 GPUs; gpu: it",
        ),
    ],
    [({("workload_gpus", 1, 0): 2}, "sheet Equivalence, C9: is 6.5, more than its 4 GPUs give (2)")],
    [
        (
            {("workload_availability", 0, 0): "preemptible", ("workload_dedicated", 1, 0): "no"}
            | {("workload_pool", 1, 0): "back"},
            "sheet Utilisation, A5: may be pre-empted, but no workload that survives a failure shares its SKUs and sites",
        ),
    ],
]


@pytest.mark.parametrize("faults", FAULTS)
def test_a_broken_cell_is_named(faults: list[tuple[Edit, str]], tmp_path: Path) -> None:
    output = refused(tmp_path, changed({place: v for edit, _ in faults for place, v in edit.items()}))
    assert [sentence for _, sentence in faults if f"plan.xlsx, {sentence}" not in output] == [], output


def test_several_at_once_but_not_all(tmp_path: Path) -> None:
    faults = refused(tmp_path, changed({("sku_price", 1, 0): "x", ("fleet_age", 0, 0): -1, ("demand_sd", 0, 0): "y"}))
    assert [line.split(":")[0] for line in faults.splitlines()] == [
        "plan.xlsx, sheet Fleet, D5",
        "plan.xlsx, sheet Demand, C27",
        "plan.xlsx, sheet SKU & TCO, B6",
    ]
    many = refused(tmp_path, changed({("demand_median", i, t): "?" for i in range(2) for t in range(6)}))
    assert len(many.splitlines()) == 11
    assert many.endswith("and 2 more faults")


def test_a_demand_that_nothing_can_run(tmp_path: Path) -> None:
    edit: Edit = {(f"worth_{field}", i, 0): None for field in ("sku", "workload", "value", "se", "df") for i in (0, 2)}
    faults = refused(tmp_path, changed(edit))
    assert "sheet Utilisation, A5: no SKU has a worth for it: nothing can run it" in faults


def test_a_demand_whose_servers_are_neither_sold_nor_where_it_may_run(tmp_path: Path) -> None:
    q, _ = written()
    edit: Edit = {("sku_price", i, 0): None for i in range(len(q.skus))}
    edit |= {("fleet_count", i, 0): 0 for i in range(len(q.fleet))}
    faults = refused(tmp_path, changed(edit))
    assert "sheet Utilisation, A5: runs on old, new only, which is neither sold nor in the fleet" in faults
    assert "in the fleet at ams, fra, where it may run" in faults


def test_periods_follow_one_another_and_have_the_length_of_the_setting(tmp_path: Path) -> None:
    edit: Edit = {("period_name", 0, 0): "2027-Q2", ("period_name", 1, 0): "2027-Q1"}
    assert "sheet Inputs, B30: 2027-Q1 is out of order: 2027-Q3 comes after 2027-Q2" in refused(tmp_path, changed(edit))
    faults = refused(tmp_path, changed({("period_name", 1, 0): "2027-Q1"}))
    assert "sheet Inputs, B30: period 2027-Q1 is there twice" in faults
    faults = refused(tmp_path, changed({("question_years", 0, 0): 1}))
    assert "sheet Inputs, B30: '2027-Q1' is a quarter, not a year" in faults
    renamed = edited(
        tmp_path, {("period_name", i, 0): f"phase {i + 1}" for i in range(6)} | {("fleet_arrives", 4, 0): "phase 4"}
    )
    assert renamed.periods[:2] == ("phase 1", "phase 2")


def test_survival_needs_a_second_failure_domain(tmp_path: Path) -> None:
    q, _ = written()
    faults = refused(tmp_path, changed({("site_domain", i, 0): "europe" for i in range(len(q.sites))}))
    assert "sheet Inputs, B18: there is only one failure domain (europe), so nothing remains if it fails" in faults


def _without(name: str) -> Callable[[Any], None]:
    def change(book: Any) -> None:
        del book[name]

    return change


def _gone(name: str) -> Callable[[Any], None]:
    def change(book: Any) -> None:
        book.defined_names[name].attr_text = "'SKU & TCO'!#REF!"

    return change


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        (_without("Fleet"), r"the column SKU is gone \(the range fleet_sku\): its cells, column or tab were deleted"),
        (_without("Benchmarks"), "the column value of the worths as planned is gone"),
        (_gone("sku_peak_w"), r"the column power peak is gone \(the range sku_peak_w\)"),
        (_gone("demand_median"), "median demand is gone"),
    ],
)
def test_a_deleted_tab_or_column(change: Callable[[Any], None], faults: str, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(io.BytesIO(written()[1]))
    change(book)
    book.save(tmp_path / "plan.xlsx")
    with pytest.raises(FleetmarkError, match=faults):
        read(tmp_path / "plan.xlsx")


def test_what_is_no_workbook_of_ours(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match=r"none\.xlsx: cannot be read: No such file"):
        read(tmp_path / "none.xlsx")
    assert "is not a readable workbook" in refused(tmp_path, b"sku,price\nnew,9000\n")
    assert "is not a readable workbook" in refused(tmp_path, written()[1][:5000])
    other = io.BytesIO()
    openpyxl.Workbook().save(other)
    faults = refused(tmp_path, other.getvalue())
    assert "discount rate is gone (the range question_discount)" in faults
