"""Failures, maintenance, spares as a share, rented servers and a limit on carbon: files, plans, workbook, promises."""

from __future__ import annotations

import io
import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from scipy import optimize, stats

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import workbook
from fleetmark.planner.capacity.analysis.prices import shadow_prices
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.question import KINDS, Cohort, Plan, Question, Site
from fleetmark.planner.capacity.reserve import down, line, unavailability
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.cost.margin import gross_margins
from fleetmark.reports.plan.model import cost_colours
from tests import sheets
from tests.demands import changed
from tests.planner.questions import ask, sku, work
from tests.plans import other_forms, question_of, solved
from tests.reports import plan_sample

BUFFERS = """\
    price: 12000
    failure_rate: 40%
    repair: 2 weeks
  burst:
    price: 0
    power: {idle: 0 W, peak: 0 W}
    rack_units: 0
    rent: 900 per month
    term: 2 quarters
    worth: {web: 1.5}
"""


def text() -> str:
    """The small question with every buffer."""
    full = changed("    price: 12000\n    power: {idle: 220", BUFFERS + "    power: {idle: 220")
    head, rest = full.split("  burst:\n")
    burst, genoa = rest[: rest.index("    power: {idle: 220")], rest[rest.index("    power: {idle: 220") :]
    skus, sites = genoa.split("sites:\n")
    full = head + skus + "  burst:\n" + burst + "sites:\n" + sites
    full = changed("fra: {}", "fra: {spares: 3%, maintenance: {2027-Q1: 0, 2027-Q3: 5%}}", full)
    full = changed("rack_units: 400}", "rack_units: 400, spares: 2, maintenance: 2%}", full)
    full = changed("    utilisation: 65%\n", "    utilisation: 65%\n    revenue: 1200 per month\n", full)
    return full + "carbon: {price: 50, grid: 0.3, limit: 900 t}\n"


def test_buffers_arrive_in_the_planners_units(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    genoa, burst = q.skus["genoa"], q.skus["burst"]
    assert genoa.failure_rate == 0.4
    assert genoa.repair == pytest.approx(14 / 365.25 / 0.25)
    assert q.unavailability("genoa") == pytest.approx(0.4 * 14 / 365.25 / (1 + 0.4 * 14 / 365.25))
    assert (burst.rent, burst.term, burst.price) == (10_800.0, 2, 0.0)
    assert (q.sites["fra"].spare_share, q.sites["fra"].maintenance) == (0.03, (0.0, 0.0, 0.05, 0.05))
    assert (q.sites["ams"].spares, q.sites["ams"].maintenance) == (2, 0.02)
    assert (q.carbon_limit, q.workloads["web"].revenue) == (900_000.0, 14_400.0)


def test_sheets_and_workbook_ask_the_same(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    assert list(other_forms(tmp_path, q)) == [replace(q, source={})] * 2


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("    repair: 2 weeks\n", "", "failure_rate: give repair"),
        ("900 per month", "900 a month", "is not money per time: write 900 per month"),
        ("spares: 3%", "spares: 2.5", "is neither a number of servers nor a share of them"),
        ("term: 2 quarters", "term: 3 years\n    age_limit: 1 year", "above the age limit"),
        ("spares: 3%", "spares: 0.03", "is part of a server: write 3% for a share, or a number of servers"),
        ("spares: 3%", "spares: 3%, spare_share: 2%", "spares is already a share"),
        ("2027-Q3: 5%", "2027-Q3: 98%", "and spares take all servers"),
        ("limit: 900 t", "limit: 900 lb", "is not a mass: write 900 kg or 120 t"),
        (
            "    price: 12000\n",
            "    price: 0\n",
            "skus.genoa.price: is 0, and there is no rent: write its price, `not sold`",
        ),
    ],
)
def test_a_buffer_that_cannot_be_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(FleetmarkError, match=sentence):
        question_of(tmp_path, changed(old, new, text()))


@pytest.mark.parametrize(("share", "quantile"), [(0.0015, 0.95), (0.02, 0.99), (0.3, 0.9)])
def test_the_line_lies_at_or_above_the_servers_that_are_down(share: float, quantile: float) -> None:
    usual = 60
    fixed, slope = line(300, usual, share, quantile)
    exact = []
    for n in range(1, 301):  # by adding probabilities, not by the quantile function
        chances = np.cumsum(stats.binom.pmf(np.arange(n + 1), n, share))
        exact.append(int(np.argmax(chances >= quantile - 1e-9)))
        assert down(n, share, quantile) == exact[-1]
    above = fixed + slope * np.arange(1, 301) - np.array(exact)
    assert above.min() >= -1e-9
    assert abs(above).min() < 1e-9  # it touches
    assert above[usual - 1] < 1.5


def test_the_share_that_is_down_is_that_of_a_simulation() -> None:
    """Servers fail after exponential times and are repaired after a fixed time."""
    rng, failures, repair = np.random.default_rng(3), 2.0, 0.1
    up = rng.exponential(1 / failures, 200_000).sum()
    assert unavailability(failures, repair) == pytest.approx(200_000 * repair / (up + 200_000 * repair), rel=0.01)


def test_servers_that_fail_leave_enough_in_the_promised_share_of_the_time() -> None:
    one = sku("s", {"web": 1.0}, 10.0, failure_rate=1.0, repair=0.05)
    q = ask([work("web", 50.0)], [one], [Site("ams")], quantile=0.98)
    plan = solve(q, gap=0)
    assert isinstance(plan, Plan)
    bought = int(plan.stock["installed"].sum())
    share = q.unavailability("s")
    broken = np.random.default_rng(1).binomial(bought, share, 400_000)
    assert (bought - broken >= 50).mean() >= 0.98 - 0.001
    least = next(n for n in itertools.count(50) if stats.binom.cdf(n - 50, n, share) >= 0.98)
    assert least <= bought <= least + 1
    short = replace(plan, stock=plan.stock.assign(installed=50, buy=50, arrive=50))
    assert any("failures" in fault for fault in check(q, short))


def test_rent_is_paid_for_the_term_at_least() -> None:
    """A peak of one period: two rented servers stay two periods, which costs less than two bought ones."""
    bought, hired = sku("own", {"web": 1.0}, 70.0), sku("hired", {"web": 1.0}, 0.0, rent=30.0, term=2)
    q = ask([work("web", 3.0, 5.0, 3.0, 3.0)], [bought, hired], [Site("ams")])
    plan = solve(q, gap=0)
    assert isinstance(plan, Plan)
    rows = plan.stock[plan.stock["sku"] == "hired"].sort_values("period")
    assert rows["installed"].tolist() in ([0, 2, 2, 0], [2, 2, 0, 0])
    assert plan.objective == pytest.approx(3 * 70 + 2 * 30 * 2)
    assert plan.costs.loc[plan.costs["kind"] == "rent", "money"].sum() == pytest.approx(120)
    early = plan.stock.copy()
    gone = (early["sku"] == "hired") & (early["installed"] > 0)
    last = early.loc[gone, "period"].max()
    early.loc[gone & (early["period"] == last), ["installed", "active"]] = 0
    early.loc[(early["sku"] == "hired") & (early["period"] == last), "retire"] = 2
    early.loc[(early["sku"] == "hired") & (early["period"] == last + 1), "retire"] = 0
    assert any("before their term" in fault for fault in check(q, replace(plan, stock=early)))


def _carbon(limit: float | None, q: Question) -> float:
    """Return the least cost of one period by trying all orders; work is split by a linear programme."""
    skus = list(q.skus.values())
    least = math.inf
    for counts in itertools.product(range(9), repeat=2):
        for active in itertools.product(*(range(n + 1) for n in counts)):
            fixed = sum(n * s.embodied for n, s in zip(counts, skus, strict=True))
            kg = [q.energy("ams") * q.grid * (s.peak_w - s.idle_w) for s in skus]  # of a server at work
            idle = sum(n * q.energy("ams") * q.grid * s.idle_w for n, s in zip(active, skus, strict=True))
            money = sum(n * (s.price or 0.0) for n, s in zip(counts, skus, strict=True))
            money += sum(n * q.watt("ams", 0) * s.idle_w for n, s in zip(active, skus, strict=True))
            swing = [q.watt("ams", 0) * (s.peak_w - s.idle_w) for s in skus]
            rows, high = [[-s.worth["web"].value for s in skus]], [-q.workloads["web"].point[0]]
            if limit is not None:
                rows, high = [*rows, kg], [*high, limit - fixed - idle]
            answer = optimize.linprog(swing, A_ub=rows, b_ub=high, bounds=[(0, n) for n in active])
            if answer.status == 0:
                least = min(least, money + float(answer.fun or 0.0))
    return least


def _emitting(limit: float | None) -> Question:
    """A cheap server that emits much and a dear one that emits little."""
    dirty = sku("dirty", {"web": 1.0}, 10.0, idle_w=50.0, peak_w=300.0, embodied=300.0)
    clean = sku("clean", {"web": 1.0}, 25.0, idle_w=20.0, peak_w=100.0, embodied=200.0)
    return ask([work("web", 5.0)], [dirty, clean], [Site("ams")], grid=0.3, energy_price=0.001, carbon_limit=limit)


@pytest.mark.parametrize("limit", [None, 5000.0, 3500.0, 2350.0])
def test_the_limit_on_carbon_gives_the_cost_that_trying_everything_finds(limit: float | None) -> None:
    q = _emitting(limit)
    plan = solve(q, gap=0)
    assert isinstance(plan, Plan)
    assert check(q, plan) == []
    assert plan.objective == pytest.approx(_carbon(limit, q), rel=1e-6)
    emitted = Answer(q, plan).ledger.carbon
    assert limit is None or emitted <= limit * (1 + 1e-6)
    dearer = replace(q, carbon_limit=emitted * 0.99)
    assert any("kg CO2e" in fault for fault in check(dearer, plan))


def test_carbon_has_a_shadow_price_and_a_name_in_conflicts() -> None:
    q = _emitting(3500.0)
    plan = solve(q, gap=0)
    assert isinstance(plan, Plan)
    (binding,) = [b for b in shadow_prices(q, plan) if b.unit == "kg CO2e"]
    assert "carbon" in binding.name
    assert binding.saves > 0
    none = solve(_emitting(1000.0), gap=0)
    assert isinstance(none, Conflict)
    assert {str(limit.name) for limit in none.limits} >= {"carbon over all periods"}
    (cap,) = [limit for limit in none.limits if limit.unit == "kg CO2e"]
    enough = solve(_emitting(1000.0 + (cap.relax or 0.0)), gap=0)
    assert isinstance(enough, Plan)


def test_buffers_that_leave_no_plan_are_named() -> None:
    one = sku("s", {"web": 1.0}, None, failure_rate=1.0, repair=0.1)
    sites = [Site("ams", spare_share=0.1, maintenance=0.1)]
    none = solve(ask([work("web", 10.0)], [one], sites, fleet=[Cohort("s", "ams", 11)]), gap=0)
    assert isinstance(none, Conflict)
    names = {str(limit.name) for limit in none.limits}
    assert names & {"maintenance at ams", "share of spares at ams", "failures of s"}


def test_every_cell_agrees_with_the_account_and_follows_the_failure_rate(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    plan = solved(q)
    written = plan_sample.workbook(Answer(q, plan), created="")
    edited = sheets.edited(
        written, {_place(written, "sku_failure_rate", 1): 9.0, _place(written, "sku_rent", 2): 600.0}
    )
    computed, worse = sheets.recalculated([written, edited])
    assert list(sheets.disagreements(written, computed)) == []
    (saved,) = sheets.converted([edited], "xlsx")
    (tmp_path / "edited.xlsx").write_bytes(saved)
    after = workbook.read(tmp_path / "edited.xlsx")
    assert (after.skus["genoa"].failure_rate, after.skus["burst"].rent) == (9.0, 600.0)
    expected = plan_sample.workbook(Answer(after, plan), created="")
    assert [d for d in sheets.disagreements(expected, worse) if "'edited'" not in d] == []


def _place(book: bytes, name: str, row: int) -> tuple[str, str]:
    """Return the sheet and cell of a row of a named range."""
    ((sheet, span),) = openpyxl.load_workbook(io.BytesIO(book)).defined_names[name].destinations
    column, first = re.match(r"\$([A-Z]+)\$(\d+)", span).groups()  # type: ignore[union-attr]
    return sheet, f"{column}{int(first) + row}"


def test_growth_is_an_input_and_the_workbook_asks_for_another_solve(tmp_path: Path) -> None:
    q = question_of(tmp_path, changed("[100, 110, 120, 130]", "{start: 100, growth: 20%}"))
    plan = solved(q)
    written = plan_sample.workbook(Answer(q, plan), created="")
    sheet, cell = _headed(written, "growth a year")
    edited = sheets.edited(written, {(sheet, cell): 0.6})
    before, after = sheets.recalculated([written, edited])
    assert list(sheets.disagreements(written, before)) == []
    assert "as solved" in before["Plan"].values()
    for sheet in ("Plan", "At a glance"):
        assert "edited" in after[sheet].values()
        assert any("fleetmark plan --from plan.xlsx" in str(value) for value in after[sheet].values())
    (saved,) = sheets.converted([edited], "xlsx")
    (tmp_path / "edited.xlsx").write_bytes(saved)
    grown = workbook.read(tmp_path / "edited.xlsx").workloads["web"].point
    assert list(grown) == pytest.approx([100 * 1.6 ** (t / 4) for t in range(4)])


def _headed(book: bytes, title: str) -> tuple[str, str]:
    """Return the sheet and the cell below a heading of a table."""
    for name, cells in sheets.values(book).items():
        for cell, value in cells.items():
            if str(value).startswith(title):
                column, row = re.match(r"([A-Z]+)(\d+)", cell).groups()  # type: ignore[union-attr]
                return name, f"{column}{int(row) + 1}"
    raise AssertionError(title)


def test_gross_margins_share_all_costs_and_count_the_revenue_of_the_median_demand(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    batch = replace(q.workloads["web"], name="batch", revenue=0.0, point=(10.0,) * 4)
    worth = {s: replace(k, worth={**k.worth, "batch": k.worth["web"]}) for s, k in q.skus.items()}
    q = replace(q, workloads={**q.workloads, "batch": batch}, skus=worth)
    ledger = Answer(q, solved(q)).ledger
    web, other = gross_margins(ledger)
    assert web.cost + other.cost == pytest.approx(ledger.total)
    assert web.cost > other.cost > 0
    assert (other.revenue, other.share) == (0.0, None)
    by_hand = sum(point * 1200 * 3 / 1.08 ** (t / 4) for t, point in enumerate([100, 110, 120, 130]))
    assert web.revenue == pytest.approx(by_hand)
    assert web.margin == pytest.approx(by_hand - web.cost)
    assert gross_margins(Answer(replace(q, workloads={"batch": batch}), solved(q)).ledger) == []


def test_every_kind_of_cost_has_a_colour_of_its_own() -> None:
    colours = cost_colours()
    assert list(colours) == list(KINDS) and len(set(colours.values())) == len(KINDS)
