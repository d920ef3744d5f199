"""The plan's workbook: LibreOffice computes the values of Python, before and after edits, and every limit can break."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from openpyxl.utils import get_column_letter
from openpyxl.utils.cell import column_index_from_string, range_boundaries

from fleetmark.demand import workbook as plan_workbook
from fleetmark.planner.capacity.analysis.results import Alternative, Binding
from fleetmark.planner.capacity.analysis.tornado import Effect
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import TRADES, Cohort, Plan, Question, Site, Workload
from fleetmark.planner.capacity.sku import Sku, Worth
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.capacity.uncertainty import Futures
from fleetmark.planner.estimate import Estimate
from fleetmark.reports.kit.language import Language
from fleetmark.reports.plan.workbook.numbers import Numbers
from tests import sheets
from tests.reports import plan_sample

CREATED = "2027-01-20T10:00:00Z"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COMPARED = 80  # the row of the tab Cost from which it compares with the plan as solved
Changes = dict[tuple[str, str], Any]


@cache
def sample() -> tuple[Question, Plan, bytes]:
    q = plan_sample.question()
    p = plan_sample.plan(q)
    return q, p, plan_sample.workbook(Answer(q, p), created=CREATED, command="fleetmark plan demand.yml")


def under(book: bytes, tab: str, title: str, i: int, j: int) -> tuple[str, str]:
    """Tab and cell: the i-th row and j-th period of the table with this title, after its names."""
    cells = sheets.values(book)[tab]
    top = next(int(c[1:]) for c, v in cells.items() if c[0] == "A" and str(v).startswith(title))
    first = next(c for c, v in cells.items() if c.endswith(str(top + 1)) and str(v).startswith("2027-Q1"))
    return tab, f"{get_column_letter(column_index_from_string(first.rstrip('0123456789')) + j)}{top + 2 + i}"


def decision(book: bytes, title: str, i: int, t: int) -> tuple[str, str]:
    """Tab and cell of a decision of the Purchase plan."""
    return under(book, "Purchase plan", title, i, t)


def share(book: bytes, kind: str, i: int, t: int) -> tuple[str, str]:
    """Tab and cell of a row's share of servers in Allocation."""
    heads = [c for c, v in sheets.values(book)["Allocation"].items() if str(v).endswith(f"\n{kind}")]
    return "Allocation", f"{heads[t].rstrip('0123456789')}{5 + i}"


@cache
def names(book: bytes) -> dict[str, tuple[str, str]]:
    """Tab and span of every named range."""
    read = openpyxl.load_workbook(io.BytesIO(book), read_only=True)
    return {name: next(iter(target.destinations)) for name, target in read.defined_names.items()}


def named(book: bytes, name: str, i: int = 0, j: int = 0) -> tuple[str, str]:
    """Tab and cell: the i-th row and j-th column of a named range."""
    sheet, span = names(book)[name]
    col, row, _, _ = range_boundaries(span.replace("$", ""))
    return sheet, f"{get_column_letter(col + j)}{row + i}"


def broken(cells: dict[str, Any]) -> set[str]:
    """The kinds of limits that are not kept."""
    return {cells[f"A{c[1:]}"] for c, v in cells.items() if c.startswith("D") and v is False}


def verdict(cells: sheets.Cells) -> str:
    """What the first tab says about the limits."""
    return str(cells["Plan"]["B6"])


# ---------------------------------------------------------------- live through and through


def edits(book: bytes) -> dict[str, Changes]:
    """Inputs changed by a script, a few at a time."""

    def input_place(name: str, i: int = 0, j: int = 0) -> tuple[str, str]:
        return named(book, name, i, j)

    return {
        "money": {
            input_place("sku_price", 1): 11_111.11,
            input_place("question_energy_price"): 0.31,
            input_place("question_discount"): 0.0,
            input_place("question_carbon_price"): 33.3,
            input_place("question_grid"): 0.21,
            input_place("sku_support", 0): 333,
            input_place("sku_migration", 0): 1.5,
            input_place("site_energy_price", 2): 0.07,
            input_place("site_pue", 1): None,
            input_place("question_pue"): 1.11,
        },
        "work": {
            input_place("demand_median", 0, 3): 512.5,
            input_place("demand_sd", 1, 2): 0.25,
            input_place("worth_value", 2): 16.77,
            input_place("worth_se", 2): 0.09,
            input_place("worth_df", 2): 3.14,
            input_place("worth_df", 3): None,
            input_place("workload_utilisation", 0): 0.51,
            input_place("question_quantile"): 0.8,
        },
        "servers": {
            input_place("sku_lead", 1): 2,
            input_place("sku_age_limit", 1): 3,
            input_place("sku_age_limit", 0): None,
            input_place("fleet_count", 0): 44,
            input_place("fleet_age", 2): 7,
            input_place("fleet_arrives", 4): "2027-Q3",
            input_place("sku_peak_w", 0): 280.5,
            input_place("sku_idle_w", 1): 99,
            input_place("sku_embodied", 1): 2500,
        },
        "limits": {
            input_place("site_domain", 1): "elsewhere",
            input_place("site_domain", 2): "nl",
            input_place("site_power_w", 0): None,
            input_place("site_rack_units", 1): 3,
            input_place("site_budget", 2): 1000,
            input_place("site_spares", 0): 4,
            input_place("period_budget", 1): 1000,
            input_place("period_budget", 0): None,
            input_place("sku_minimum_order", 1): 30,
            input_place("question_survive"): "no",
            input_place("site_runs", 2, 1): "no",
            input_place("site_runs", 1, 0): "yes",
        },
    }


def hostile() -> tuple[Question, Plan]:
    """Names with a special meaning in formulas, criteria or searches."""
    worth = {"=cmd()": Worth(3.0), "W*?": Worth(7.0, 0.1, 4.5)}
    skus = {
        name: Sku(name, worth, 100.0 * (n + 1), 10.0, 50.0 + n, rack_units=1, age_limit=2 + n)
        for n, name in enumerate(("a", "A", '>5"x"', "2027"))
    }
    names = ("O'Brien [1]", "o'brien [1]", "~*", "<>")
    q = Question(
        "EUR",
        "2027-01-01",
        ("p&1", "p<2"),
        1.0,
        {n: Workload(n, "'u", (5.0, 6.0), (0.1, 0.1), 0.5) for n in ("=cmd()", "W*?")},
        skus=skus,
        sites={n: Site(n, domain="~*" if n == "<>" else "") for n in names},
        fleet=(Cohort("a", "O'Brien [1]", 3, 1), Cohort("A", "o'brien [1]", 4, 1), Cohort("2027", "~*", 5, 1)),
        survive=True,
    )
    use = {(s, k, w, t): 1.25 for s in skus for k in names for w in worth for t in (0, 1)}
    return q, plan_sample.decided(q, {("A", "<>", 0): 7}, {("a", "O'Brien [1]", 1): 1}, use, {"W*?": 1.1})


def test_every_formula_agrees_with_python_before_and_after_edits(tmp_path: Path) -> None:
    q, p, book = sample()
    changes = edits(book)
    odd = plan_sample.workbook(Answer(*hostile()), created=CREATED)
    changed = {name: sheets.edited(book, change) for name, change in changes.items()}
    computed, strange, *edited = sheets.recalculated([book, odd, *changed.values()])
    assert list(sheets.disagreements(book, computed)) == []
    assert list(sheets.disagreements(odd, strange)) == []
    assert sum(map(len, sheets.formulas(book).values())) > 1500

    total = named(book, "total_present_value")
    assert computed[total[0]][total[1]] == pytest.approx(p.objective, rel=1e-9)
    for i, (_, money) in enumerate(p.costs.groupby("kind", sort=False)["present"].sum().items()):
        sheet, address = under(book, "Cost", "Present value, EUR", i, len(q.periods))
        assert computed[sheet][address] == pytest.approx(money, rel=1e-9)
    assert verdict(computed) == "all are kept"
    assert broken(computed["Checks"]) == set()

    for (name, other), cells in zip(changed.items(), edited, strict=True):
        path = tmp_path / f"{name}.xlsx"
        path.write_bytes(other)
        question = plan_workbook.read(path)
        followed_plan = followed(p, q, question)  # the same decisions for the edited question
        expected = plan_sample.workbook(Answer(question, followed_plan), created=CREATED)
        differences = [d for d in sheets.disagreements(expected, cells) if "'edited'" not in d]
        assert differences == [], name
        assert cells[total[0]][total[1]] != pytest.approx(p.objective, rel=1e-9) or name == "limits", name
        assert verdict(cells) != "all are kept" or name == "money", name
    assert "edited" in edited[1]["Equivalence"].values()
    assert "edited" not in computed["Equivalence"].values()


def followed(plan: Plan, before: Question, after: Question) -> Plan:
    """Return the plan in which servers work as the planned demand has changed, as far as they are assigned."""

    def working(row: Any) -> float:
        then, now = (q.workloads[row.workload].point[row.period] for q in (before, after))
        return float(row.working if now == then else min(row.servers, row.working * now / then))

    return replace(plan, use=plan.use.assign(working=[working(row) for row in plan.use.itertuples()]))


def test_the_mix_of_work_moves_demand_sizing_energy_and_checks(tmp_path: Path) -> None:
    """Less of one workload and more of the other, beside the same edit of the question with the same decisions."""
    q, p, book = sample()
    edited = sheets.edited(book, {named(book, "demand_mix", 0): 0.8, named(book, "demand_mix", 1): 1.3})
    (cells,) = sheets.recalculated([edited])
    path = tmp_path / "mix.xlsx"
    path.write_bytes(edited)
    after = plan_workbook.read(path)
    for name, factor in zip(q.workloads, (0.8, 1.3), strict=True):
        assert after.workloads[name].point == pytest.approx([factor * v for v in q.workloads[name].point])
    expected = plan_sample.workbook(Answer(after, followed(p, q, after)), created=CREATED)
    differences = [d for d in sheets.disagreements(expected, cells) if "'edited'" not in d]
    assert differences == []
    energy = under(book, "Cost", "Money in each period", 2, 0)
    assert cells[energy[0]][energy[1]] != pytest.approx(sheets.values(book)[energy[0]][energy[1]])
    assert "demand is met with a domain gone" in broken(cells["Checks"])
    for tab in ("Plan", "At a glance"):
        assert "edited" in cells[tab].values()
        assert any("fleetmark plan --from plan.xlsx" in str(value) for value in cells[tab].values())


def test_a_changed_mix_has_the_demand_sizing_and_cost_of_a_new_solve(tmp_path: Path) -> None:
    """The edited workbook asks for the plan of the changed question; with its decisions, it computes the same cost."""
    q, mix = plan_sample.question(), (0.9, 1.2)
    works = [
        replace(work, point=tuple(factor * v for v in work.point))
        for factor, work in zip(mix, q.workloads.values(), strict=True)
    ]
    changed = replace(q, workloads={work.name: work for work in works})
    plans = [solve(one, gap=1e-4) for one in (q, changed)]
    assert isinstance(plans[0], Plan) and isinstance(plans[1], Plan)
    book, expected = (
        plan_sample.workbook(Answer(one, plan), created=CREATED) for one, plan in zip((q, changed), plans, strict=True)
    )
    edits = {named(book, "demand_mix", i): factor for i, factor in enumerate(mix)}
    mixed = sheets.edited(book, edits)
    cells, decided = sheets.recalculated([mixed, sheets.edited(book, edits | decisions(book, expected))])
    (tmp_path / "mixed.xlsx").write_bytes(mixed)
    again = solve(plan_workbook.read(tmp_path / "mixed.xlsx"), gap=1e-4)
    assert isinstance(again, Plan)
    assert again.objective == pytest.approx(plans[1].objective, rel=1e-9)
    assert again.stock.equals(plans[1].stock)

    after = sheets.values(expected)
    for tab, title in (("Demand", "planned demand: "), ("Sizing", "Servers needed for "), ("Demand", "demand at 95%")):
        tops = [int(c[1:]) for c, v in after[tab].items() if c[0] == "A" and str(v).startswith(title)]
        rows = {top + 1 + n for top in tops for n in (1, 2)}
        figures = {c: v for c, v in after[tab].items() if int(c.lstrip(LETTERS)) in rows and isinstance(v, float)}
        assert len(figures) >= 12
        assert {c: cells[tab][c] for c in figures} == pytest.approx(figures)
    costs = {c: v for c, v in after["Cost"].items() if isinstance(v, float) and int(c.lstrip(LETTERS)) < COMPARED}
    assert len(costs) > 100
    assert {c: decided["Cost"][c] for c in costs} == pytest.approx(costs)
    total = named(book, "total_present_value")
    assert decided[total[0]][total[1]] == pytest.approx(plans[1].objective, rel=1e-9)
    assert cells[total[0]][total[1]] != pytest.approx(plans[1].objective, rel=1e-3)
    assert verdict(decided) == "all are kept"


def decisions(book: bytes, other: bytes) -> Changes:
    """Return the cells of the solver's decisions, and of the demand that it solved for, as another workbook has them."""
    mine, theirs = sheets.values(book), sheets.values(other)
    live = sheets.formulas(book)
    medians = {named(book, "demand_median", i, j) for i in range(2) for j in range(6)}
    return {
        (tab, cell): value
        for tab in ("Purchase plan", "Allocation", "Pools", "Demand")
        for cell, value in theirs[tab].items()
        if cell not in live.get(tab, {}) and value != mine[tab].get(cell) and (tab, cell) not in medians
    }


def test_every_limit_can_break() -> None:
    q, p, book = sample()
    dedicated = next(c for c, (w, _) in enumerate(Numbers(q, p).combos) if w == "batch")
    cases: list[dict[str, Changes]] = [
        {
            "demand is met with a domain gone": {named(book, "demand_median", 0, 5): 500},
            "power of the site": {named(book, "site_power_w", 0): 18_400},
            "rack units of the site": {named(book, "site_rack_units", 1): 3},
            "ports of the site": {named(book, "site_ports", 2): 100},
            "money for purchases at the site": {named(book, "site_budget", 1): 71_999},
            "money for purchases in the period": {named(book, "period_budget", 3): 404_999},
            "gone at the age limit": {named(book, "sku_age_limit", 0): 9},
            "orders are of the minimum at least": {named(book, "sku_minimum_order", 1): 5},
            "active servers are up, apart from spares and maintenance": {named(book, "site_spares", 0): 2},
            "positions for racks": {named(book, "site_racks", 0): 1, named(book, "site_rack_w", 0): 1000},
            "liquid-cooled positions": {named(book, "sku_cooling", 1): "liquid", named(book, "sku_racks", 1): 1},
            "orders are of whole lots": {named(book, "sku_lot", 1): 7},
            "retired after their term": {named(book, "sku_term", 0): 90},
            "carbon over all periods": {named(book, "question_carbon_limit"): 1},
            **{f"carbon of {year}": {named(book, "question_carbon_by_year"): 1} for year in q.year_names},
            "failures at once as solved": {named(book, "question_survive"): "2"},
            "retired in the site's windows": {named(book, "site_windows", k): "2031-Q1" for k in range(3)},
        },
        {
            "demand is met": {named(book, "demand_median", 1, 5): 14},
            "demand is met with a domain gone": {},  # which follows
            "servers of pools are active": {decision(book, "Active", 0, 0): 7},
            "no server is used twice": {share(book, "share of them", 0, 2): 1.2},
            "shares servers as solved": {named(book, "workload_pool", 0): "front"},
            "ordered only while sold": {named(book, "sku_price", 1): None},
            "whole servers, none below 0": {decision(book, "Servers to order", 2, 1): 24.5, ("Pools", "E5"): 8.4},
            "orders are of whole lots": {},  # which follows
            "runs only where it may": {named(book, "site_runs", 0, 1): "no"},
            "not below 0": {share(book, "share of them", dedicated, 2): -1},
            "no more work than are there for it": {share(book, "share that works", 0, 1): 1.1},
            "utilisation at most 85%": {named(book, "workload_utilisation", 0): 0.86},
            "all servers in place are in the plan": {
                named(book, "fleet_sku", 5): "old",
                named(book, "fleet_site", 5): "rtm",
                named(book, "fleet_count", 5): 1,
            },
        },
    ]
    together = [{address: v for one in case.values() for address, v in one.items()} for case in cases]
    for case, cells in zip(cases, sheets.recalculated([sheets.edited(book, t) for t in together]), strict=True):
        assert broken(cells["Checks"]) == set(case)
        assert verdict(cells).endswith("are not kept: see Checks")
    checks = sheets.values(book)["Checks"]
    assert {checks[f"A{r}"] for r in range(5, 500) if f"A{r}" in checks} == set().union(*cases)


# ---------------------------------------------------------------- what is in it


def test_the_tabs_of_the_methodology_and_what_helps_to_work_on_them() -> None:
    q, _, book = sample()
    read = openpyxl.load_workbook(io.BytesIO(book))
    expected = "Inputs,Benchmarks,Equivalence,Demand,SKU & TCO,Utilisation,Sizing,N+1,Rack & power,Refresh,Scenarios,Sensitivity,Purchase plan,Checks"
    assert read.sheetnames[0] == "Readme"
    assert set(expected.split(",")) <= set(read.sheetnames)
    assert all(tab.freeze_panes for tab in read.worksheets if tab.title not in ("Readme", "Charts"))
    for name in ("sku_price", "demand_median", "worth_value", "site_power_w", "question_discount", "fleet_count"):
        sheet, address = named(book, name)
        tab = read[sheet]
        assert tab[address].fill.fgColor.rgb == "FFFFF2CC", name
        assert any(address in rule.sqref for rule in tab.data_validations.dataValidation), name
    solver = read["Purchase plan"]["C6"]
    assert solver.fill.fgColor.rgb == "FFE2EFDA"
    assert str(read["Purchase plan"].print_area).endswith("$I$68")  # without the workings below
    rules = read["Checks"].conditional_formatting
    assert {rule.formula[0] for area in rules for rule in area.rules} == {"D5=FALSE", "D5=TRUE"}
    colours = {
        tab.title: tab.sheet_properties.tabColor.rgb[2:] for tab in read.worksheets if tab.sheet_properties.tabColor
    }
    assert (colours["Inputs"], colours["Purchase plan"], colours["Checks"]) == ("BF9000", "70AD47", "0072B2")
    texts = [str(c.value) for c in read["Readme"]["B"] if c.value]
    assert "sha256 0011" in [c.value for c in read["Provenance"]["B"]]
    assert "fleetmark plan demand.yml" in texts
    charts = [n for n in zipfile.ZipFile(io.BytesIO(book)).namelist() if n.startswith("xl/charts/chart")]
    assert len(charts) == 1 + len(q.workloads) + len(q.sites)


def test_the_same_plan_gives_the_same_bytes() -> None:
    q, p, book = sample()
    assert plan_sample.workbook(Answer(q, p), created=CREATED, command="fleetmark plan demand.yml") == book


def test_what_was_simulated_and_solved_beside_the_plan() -> None:
    q, p, _ = sample()
    row = {"workload": "web", "period": 5, "shortfall": 0.031, "servers": 80.0}
    row |= {f"{quantity}_p{share}": 100.0 + share for quantity in ("demand", "capacity") for share in (5, 50, 95)}
    row |= {f"servers_p{share}": 70.0 + share for share in (50, 90, 95)}
    sizing = {"workload": "web", "period": 5, "sku": "new"} | {f"servers_p{s}": 40.0 + s for s in (50, 90, 95)}
    by_period = {"period": 5, "installed": 97} | {f"needed_p{s}": 60.0 + s for s in (50, 90, 95)}
    table, sizes, periods = (pd.DataFrame([r]) for r in (row, sizing, by_period))
    futures = Futures(2000, 7, Estimate(0.042, 0.034, 0.052), 0.061, table, sizing=sizes, by_period=periods)
    answer = Answer(
        q,
        p,
        alternatives=[Alternative("without new at rtm", p, 1234.5, -6.0, dict.fromkeys(TRADES, 17.25))],
        bindings=[
            Binding("power at ams in 2027-Q3", "W", 500.0, 0.5),
            Binding("budget of 2027-Q1", "EUR", 9000.0, 0.25),
        ],
        futures=futures,
        tornado=[Effect("price of new", 0.9, 1.1, False, -60_000.0, at_high=None)],
    )
    book = plan_sample.workbook(answer, created=CREATED)
    shown = list(sheets.values(book)["Sensitivity"].values())
    for value in (
        1234.5,
        -6.0,
        17.25,
        "power at ams in 2027-Q3",
        500.0,  # a kW
        0.25,
    ):
        assert value in shown
    for value in (0.031, 195.0, 135.0, 155.0, "new", "price of new", "no plan", -60_000.0, "2028-Q2"):
        assert value in shown
    assert any("4.2% of 2,000 futures" in str(v) and "seed 7" in str(v) for v in shown)


def test_in_another_language_it_is_read_back_all_the_same(tmp_path: Path) -> None:
    q, p, _ = sample()
    texts = {"Inputs": "Eingaben", "SKU & TCO": "Server & TCO", "price": "Preis", "median demand": "Nachfrage"}
    path = tmp_path / "plan.xlsx"
    path.write_bytes(plan_sample.workbook(Answer(q, p), created=CREATED, language=Language("de", texts)))
    assert {"Eingaben", "Server & TCO"} <= set(openpyxl.load_workbook(path).sheetnames)
    assert replace(plan_workbook.read(path), source=q.source) == q


def test_the_smallest_question() -> None:
    q = Question(
        "USD",
        "2027-01-01",
        ("now",),
        1.0,
        {"w": Workload("w", "jobs/s", (0.0,), (0.0,), 0.5)},
        skus={"s": Sku("s", {"w": Worth(1.0)}, None, 0.0, 0.0, rack_units=0)},
        sites={"k": Site("k")},
    )
    nothing = Plan(
        pd.DataFrame(columns=["sku", "site", "period", "buy", "arrive", "retire", "installed", "active", "peak_w"]),
        pd.DataFrame(columns=["sku", "site", "workload", "period", "servers"]),
        pd.DataFrame(columns=["period", "kind", "money", "present"]),
        *(0.0, 0.0),
        gap=0.0,
        seconds=0.0,
    )
    book = plan_sample.workbook(Answer(q, nothing), created=CREATED)
    assert verdict(sheets.values(book)) == "all are kept"
