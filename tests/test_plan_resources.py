"""Several resources: what a unit of demand needs of a server bounds its work; the one that binds is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import workbook
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.futures import Fleet, sample
from fleetmark.planner.capacity.question import Question, Site
from fleetmark.planner.capacity.solve import solve
from fleetmark.reports.kit.document import Finding
from fleetmark.reports.kit.language import language
from fleetmark.reports.plan.document import document as plan_document
from tests import sheets
from tests.demands import changed
from tests.planner.questions import ask, sku, work
from tests.plans import other_forms, question_of, solved
from tests.reports import plan_sample


def text() -> str:
    """The small question, in which a unit of demand needs memory and IOPS; genoa runs out of memory first."""
    full = changed("    utilisation: 65%", "    utilisation: 65%\n    needs: {memory: 400 GB, iops: 20000}")
    full = changed("    worth: {web: 1}", "    has: {memory: 512 GB, iops: 400000}\n    worth: {web: 1}", full)
    return changed("    worth: {web: 1.83}", "    has: {memory: 0.384 TB, iops: 1000000}\n    worth: {web: 1.83}", full)


def test_the_scarcest_resource_bounds_the_work(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    assert q.workloads["web"].needs == {"memory": 400e9, "iops": 20_000}
    assert q.skus["genoa"].has == {"memory": 384e9, "iops": 1e6}
    assert (q.rate("icelake", "web"), q.rate("genoa", "web")) == pytest.approx((0.65, 0.96))  # not 1.83 * 0.65
    assert (q.binding("icelake", "web"), q.binding("genoa", "web")) == ("", "memory")
    assert q.utilisation("genoa", "web") == pytest.approx(0.96 / 1.83)


def test_sheets_and_workbook_ask_the_same(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    assert list(other_forms(tmp_path, q)) == [replace(q, source={})] * 2


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("memory: 400 GB", "memory: 400", "skus.icelake.has.memory: is in B, web needs a plain number: give both"),
        ("memory: 400 GB", "memory: some", "workloads.web.needs.memory: 'some' is not an amount: write 8 GB"),
        ("memory: 512 GB", "momory: 512 GB", "skus.icelake.has: has no memory (did you mean momory?), which web needs"),
        ("memory: 512 GB", "memory: 0", "skus.icelake.has.memory: is 0, but web needs it: remove its worth for web"),
        ("iops: 1000000}", "iops: {measured: {select: gen=genoa, benchmark: x}}}", "skus.genoa.has.iops: "),
    ],
)
def test_bad_resources_name_their_place(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(FleetmarkError) as caught:
        question_of(tmp_path, changed(old, new, text()))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("demand.yml line ")


def test_a_conflict_names_the_resource_that_bounds_the_servers_of_a_demand() -> None:
    """Memory bounds what fast serves, and disk what wide serves; web in 2028 needs more than the site has room for."""
    fast = sku("fast", {"web": 4.0, "db": 1.0}, 10.0, rack_units=1.0, has={"memory": 2.0, "disk": 9.0})
    wide = sku("wide", {"web": 2.0}, 10.0, rack_units=1.0, has={"memory": 8.0, "disk": 1.0})
    web, db = work("web", 4.0, 30.0, needs={"memory": 1.0, "disk": 1.0}), work("db", 1.0, 1.0)
    q = ask([web, db], [fast, wide], [Site("ams", rack_units=10.0)])
    answer = solve(q, gap=0)
    assert isinstance(answer, Conflict)
    scarce = {limit.name: limit.scarce for limit in answer.limits}
    assert scarce["demand of web in 2028"] == {"fast": "memory", "wide": "disk"}
    assert scarce["rack units at ams"] == {}
    page = plan_document(Answer(q, None, answer), "", "", language("en"))
    texts = " ".join(str(x.text) for s in page.sections for x in s.exhibits if isinstance(x, Finding))
    assert "demand of web in 2028" in texts
    assert "memory bounds the work of fast; disk bounds the work of wide" in texts


def least(q: Question) -> float:
    """Return the least cost by a programme of its own for HiGHS: units served, and rows for each resource.

    Servers stay once bought; the variables are purchases of each SKU and period, then units by period, workload, SKU.
    """
    works, skus, span = list(q.workloads.values()), list(q.skus.values()), range(len(q.periods))
    bought = {(s.name, t): n for n, (s, t) in enumerate((s, t) for s in skus for t in span)}
    keys = [(t, w, s) for t in span for w in works for s in skus]
    served = {(t, w.name, s.name): len(bought) + n for n, (t, w, s) in enumerate(keys)}
    size = len(bought) + len(served)
    cost, rows = np.zeros(size), list[Any]()
    low, high = list[float](), list[float]()
    for (name, t), n in bought.items():
        cost[n] = (q.skus[name].prices[t] or 0.0) * q.weight(t)
    for t in span:
        for w in works:
            row = np.zeros(size)
            row[[served[t, w.name, s.name] for s in skus]] = 1
            rows, low, high = [*rows, row], [*low, w.point[t]], [*high, np.inf]
        for s in skus:  # each workload takes the share of servers of which its scarcest resource needs most
            shares = np.zeros(size)
            for w in works:
                each = [1 / (s.worth[w.name].value * w.utilisation), *(need / s.has[r] for r, need in w.needs.items())]
                shares[served[t, w.name, s.name]] = max(each)
            shares[[bought[s.name, u] for u in range(t + 1)]] = -1
            rows, low, high = [*rows, shares], [*low, -np.inf], [*high, 0.0]
    is_purchase = np.arange(size) < len(bought)
    constraints = optimize.LinearConstraint(np.array(rows), low, high)
    bounds = optimize.Bounds(np.zeros(size), np.full(size, np.inf))
    return float(
        optimize.milp(cost, constraints=constraints, integrality=is_purchase.astype(int), bounds=bounds).fun or 0.0
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_programme_of_its_own_finds_the_same_cost(seed: int) -> None:
    r = np.random.default_rng(seed)
    skus = [
        sku(
            name,
            {w: float(r.uniform(0.5, 3)) for w in ("web", "db")},
            0.0,
            has={"memory": float(r.uniform(50, 200)), "disk": 100.0},
        )
        for name in ("a", "b", "c")
    ]
    skus = [replace(s, price=p[0], prices=p) for s in skus for p in [tuple(map(float, r.integers(5, 30, 3)))]]
    works = [work(w, *r.uniform(5, 40, 3).round(1).tolist()) for w in ("web", "db")]
    works = [replace(w, needs={"memory": float(r.uniform(60, 200)), "disk": 30.0}) for w in works]
    q = ask(works, skus, [Site("ams")])
    assert {q.binding(s.name, w.name) for s in skus for w in works} >= {"memory"}
    assert solved(q, gap=0).objective == pytest.approx(least(q), rel=1e-6)


def test_a_faster_server_serves_no_more_than_its_memory() -> None:
    """With worth uncertain by 30%, a server that has memory for one unit serves one unit in nearly all futures."""
    s = sku("s", {"web": 2.0}, 5.0, has={"memory": 1.0})
    s = replace(s, worth={"web": replace(s.worth["web"], se=0.3)})
    w = replace(work("web", 10.0), needs={"memory": 1.0})
    q = ask([w], [s], [Site("ams")])
    draws = sample(q, 2000, 1)
    assert draws.worth.max() <= 1.0
    plan = solved(q)
    assert plan.objective == pytest.approx(50)
    lost, _, _, _ = Fleet(q, plan).short(draws)
    assert lost.mean() == pytest.approx(float((draws.worth < 1).mean()), abs=1e-9) and lost.mean() < 0.02


def test_every_cell_agrees_with_the_account(tmp_path: Path) -> None:
    q = question_of(tmp_path, text())
    plan = solved(q)
    written = plan_sample.workbook(Answer(q, plan), created="")
    edited = sheets.edited(written, {("Resources", "D5"): 300e9, ("Resources", "D7"): 256e9})
    computed, changed_cells = sheets.recalculated([written, edited])
    assert list(sheets.disagreements(written, computed)) == []
    (tmp_path / "edited.xlsx").write_bytes(edited)
    after = workbook.read(tmp_path / "edited.xlsx")
    assert (after.workloads["web"].needs["memory"], after.skus["icelake"].has["memory"]) == (300e9, 256e9)
    expected = plan_sample.workbook(Answer(after, plan), created="")
    assert [d for d in sheets.disagreements(expected, changed_cells) if "'edited'" not in d] == []
