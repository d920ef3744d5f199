"""Two failures at once, of hosts and of failure domains, and a limit on carbon in each year."""

from __future__ import annotations

import functools
import io
import itertools
import math
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from scipy import optimize

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.analysis.prices import shadow_prices
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.best import best
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.question import Cohort, Plan, Question, Site
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.review.later import question_from
from tests import sheets
from tests.demands import SMALL, changed
from tests.planner.brute import carbon_limited, least
from tests.planner.questions import ask, sku, work
from tests.plans import other_forms, question_of, solved
from tests.reports import plan_sample

THREE_SITES = "  fra: {}\n  par: {rack_units: 400}\n"


def exact(q: Question) -> Plan:
    plan = solve(q, gap=0)
    assert isinstance(plan, Plan)
    assert check(q, plan) == []
    return plan


def test_two_spares_survive_any_two_hosts_that_fail() -> None:
    """Without any two of the installed hosts, the others still serve the demand; without three they do not."""
    fast, slow = sku("fast", {"web": 2.0}, 30.0), sku("slow", {"web": 1.0}, 10.0)
    q = ask([work("web", 7.0, 9.0)], [fast, slow], [Site("ams", spares=2)], fleet=[Cohort("fast", "ams", 3)])
    plan = exact(q)
    for t, demand in enumerate(q.workloads["web"].point):
        stock = plan.stock[(plan.stock["period"] == t) & (plan.stock["installed"] > 0)]
        hosts = [q.rate(s, "web") for s, n in zip(stock["sku"], stock["installed"], strict=True) for _ in range(n)]
        assert all(sum(hosts) - sum(lost) >= demand - 1e-9 for lost in itertools.combinations(hosts, 2))
    one = exact(ask([work("web", 9.0)], [slow], [Site("ams", spares=2)]))
    assert int(one.stock["installed"].sum()) == 11  # not 12


def triple(seed: int) -> Question:
    """Return a question of one SKU at three sites, any two of which may fail at once."""
    r = random.Random(seed)
    names = ["web", "db"][: r.choice([1, 1, 2])]
    one = sku(
        "s",
        {w: r.choice([1.0, 1.5, 2.0]) for w in names},
        float(r.randint(1, 20)),
        peak_w=float(r.randint(0, 9)),
        idle_w=0.0,
        support=float(r.randint(0, 4)),
    )
    works = [
        work(w, round(r.uniform(0.2, 1.6 / len(names)), 2), availability=r.choice(["", "", "normal"])) for w in names
    ]
    sites = [
        Site(k, spares=int(r.random() < 0.2), domain=r.choice(["", "", f"{k}, feed"]) if k != "z" else "")
        for k in ("x", "y", "z")
    ]
    fleet = [Cohort("s", "x", r.randint(0, 2))]
    return ask(works, [one], sites, survive=2, fleet=fleet, energy_price=0.1)


def plan_of_least_cost(q: Question, seed: int) -> Plan | None:
    """Return the plan, which has no fault and the cost that trying everything finds; None if both find no plan."""
    plan, expected = best(q, gap=0, seconds=600, margin={}), least(q)
    if plan is None:
        assert expected == math.inf, f"seed {seed}"
        return None
    assert check(q, plan) == []
    assert plan.objective == pytest.approx(expected, rel=1e-6, abs=1e-6), f"seed {seed}"
    return plan


def test_small_questions_that_survive_two_domains_have_the_cost_that_trying_everything_finds() -> None:
    impossible = 0
    for seed in range(15):
        q = triple(seed)
        plan = plan_of_least_cost(q, seed)
        if plan is None:
            impossible += 1
            continue
        once = replace(q, survive=1)
        with_one = best(once, gap=0, seconds=600, margin={})
        assert with_one is not None and with_one.objective <= plan.objective + 1e-6
    assert impossible < 12


def test_two_lost_domains_need_as_much_again_at_the_third_and_are_checked() -> None:
    one = sku("s", {"web": 1.0}, 10.0)
    sites = [Site("a"), Site("b"), Site("c")]
    q = ask([work("web", 6.0)], [one], sites, survive=2)
    plan = exact(q)
    assert int(plan.stock["installed"].sum()) == 18
    weaker = exact(replace(q, survive=1))
    assert int(weaker.stock["installed"].sum()) == 9
    assert any("without a, b" in fault for fault in check(q, weaker))


def test_two_domains_at_once_in_files_and_the_workbook(tmp_path: Path) -> None:
    text = changed("    lead: 4 months\n", "", changed("  fra: {}\n", THREE_SITES)) + "survive: 2\n"
    q = question_of(tmp_path, text)
    assert (q.survive, len(q.cases)) == (2, 3)
    assert list(other_forms(tmp_path, q)) == [replace(q, source={})] * 2


def test_the_workbook_counts_two_failures_shares_of_spares_and_the_carbon_of_years(tmp_path: Path) -> None:
    text = changed("    lead: 4 months\n", "", changed("  fra: {}\n", "  fra: {spares: 5%}\n  par: {spares: 1}\n"))
    q = question_of(tmp_path, text + "survive: 2\ncarbon: {grid: 0.3, yearly_limit: {2027: 900 t}}\n")
    written = plan_sample.workbook(Answer(q, solved(q)), created="")
    edits = {
        place(written, "question_carbon_by_year"): "2027: 10000",
        place(written, "site_spare_share", 1): 0.5,
    }
    before, after = sheets.recalculated([written, sheets.edited(written, edits)])
    assert list(sheets.disagreements(written, before)) == []
    assert broken(before) == set()
    assert broken(after) == {"carbon of 2027", "active servers are up, apart from spares and maintenance"}
    once = replace(q, survive=1)
    written = plan_sample.workbook(Answer(once, solved(once)), created="")
    before, after = sheets.recalculated([written, sheets.edited(written, {place(written, "question_survive"): "2"})])
    assert broken(before) == set()
    assert broken(after) == {"failures at once as solved"}


def place(book: bytes, name: str, row: int = 0) -> tuple[str, str]:
    """Return the sheet and cell of a row of a named range."""
    ((sheet, span),) = openpyxl.load_workbook(io.BytesIO(book)).defined_names[name].destinations
    column, first = re.match(r"\$([A-Z]+)\$(\d+)", span).groups()  # type: ignore[union-attr]
    return sheet, f"{column}{int(first) + row}"


def broken(computed: Any) -> set[str]:
    """Return the kinds of limits that the tab Checks says are not kept."""
    cells = computed["Checks"]
    rows = {cell[1:] for cell, value in cells.items() if cell.startswith("D") and value is False}
    return {str(cells[f"A{row}"]) for row in rows}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("survive: 2", "survive: 3", "is neither yes, no nor 2"),
        ("  par: {rack_units: 400}\n", "", "any two of ams, fra may fail at once: nothing would remain"),
        (
            "survive: 2",
            "survive: 2\nreviews: 12\nquantile: 99.9%",
            "line 32: reviews: 12 reviews leave too few futures",
        ),
        ("yearly_limit: {2027: 400 t}", "yearly_limit: {2029: 400 t}", "'2029' is no year of the plan; there are 2027"),
        (
            "yearly_limit: {2027: 400 t}",
            "yearly_limit: [400 t, 300 t]",
            "has 2 figures, but needs one for each of 2027",
        ),
    ],
)
def test_what_cannot_be_survived_or_limited_is_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    text = changed("  fra: {}\n", THREE_SITES) + "survive: 2\ncarbon: {grid: 0.3, yearly_limit: {2027: 400 t}}\n"
    with pytest.raises(FleetmarkError, match=sentence):
        question_of(tmp_path, changed(old, new, text))


def emitting(limits: dict[str, float], **more: float) -> Question:
    """A cheap server that emits much and a dear one that emits little, over two years."""
    dirty = sku("dirty", {"web": 1.0}, 10.0, peak_w=300.0, embodied=300.0)
    clean = sku("clean", {"web": 1.0}, 25.0, peak_w=100.0, embodied=200.0)
    works, costs = [work("web", 3.0, 4.0)], {"grid": 0.3, "energy_price": 0.001, "discount": 0.1, **more}
    return ask(works, [dirty, clean], [Site("ams")], carbon_by_year=limits, **costs)


def cheapest(q: Question) -> float:
    """Return the least cost by trying all orders of both years; work is split by a linear programme."""
    skus = list(q.skus.values())
    kg = [q.energy("ams") * q.grid * s.peak_w for s in skus]

    @functools.cache
    def running(t: int, installed: tuple[int, ...], orders: tuple[int, ...]) -> float:
        limit = q.carbon_by_year.get(q.periods[t], math.inf)
        left = min(limit - sum(n * s.embodied for n, s in zip(orders, skus, strict=True)), 1e9)
        answer = optimize.linprog(
            [q.watt("ams", t) * s.peak_w for s in skus],
            A_ub=[[-1.0, -1.0], kg],
            b_ub=[-q.workloads["web"].point[t], left],
            bounds=[(0, n) for n in installed],
        )
        paid = sum(n * (s.price or 0.0) for n, s in zip(orders, skus, strict=True))
        return q.weight(t) * (paid + float(answer.fun)) if answer.status == 0 else math.inf

    counts = list(itertools.product(range(5), repeat=2))
    return min(
        running(0, first, first) + running(1, tuple(np.add(first, second).tolist()), second)
        for first in counts
        for second in counts
    )


@pytest.mark.parametrize(
    "limits", [{}, {"2027": 2300.0}, {"2028": 2000.0}, {"2027": 2000.0, "2028": 1500.0}, {"2027": 900.0}]
)
def test_limits_on_carbon_by_year_give_the_cost_that_trying_everything_finds(limits: dict[str, float]) -> None:
    q = emitting(limits)
    answer, expected = solve(q, gap=0), cheapest(q)
    if expected == math.inf:
        assert isinstance(answer, Conflict)
        (cap,) = [limit for limit in answer.limits if limit.unit == "kg CO2e"]
        assert cap.name == "carbon of 2027" and cap.relax is not None
        assert isinstance(solve(emitting({"2027": 900.0 + cap.relax})), Plan)
        return
    assert isinstance(answer, Plan)
    assert check(q, answer) == []
    assert answer.objective == pytest.approx(expected, rel=1e-6)
    loose = exact(emitting({}))
    if limits:
        assert any("kg CO2e in" in fault for fault in check(q, loose))
        assert any("carbon of" in b.name for b in shadow_prices(q, answer))


def test_small_questions_with_limits_on_carbon_have_the_cost_that_trying_everything_finds() -> None:
    """With spares, rent, terms and maintenance beside the limits of years; many limits change the plan."""
    changed_plans, impossible = 0, 0
    for seed in range(60):
        q = carbon_limited(seed)
        plan = plan_of_least_cost(q, seed)
        if plan is None:
            impossible += 1
            continue
        free = best(replace(q, carbon_by_year={}), gap=0, seconds=600, margin={})
        assert free is not None
        changed_plans += free.objective < plan.objective - 1e-6
    assert impossible < 30 and changed_plans > 10


def test_a_review_keeps_what_is_left_of_the_years_limit(tmp_path: Path) -> None:
    text = SMALL + "carbon: {grid: 0.3, yearly_limit: 900 t}\n"
    q = question_of(tmp_path, text)
    assert q.carbon_by_year == {"2027": 900_000.0}
    assert list(other_forms(tmp_path, q)) == [replace(q, source={})] * 2
    rest = question_from(q, solved(q), 2)
    assert 0 < rest.carbon_by_year["2027"] < 900_000.0
