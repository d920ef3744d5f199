"""Futures against closed forms, sharing against a linear programme per draw, margins, and bad input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.analysis.results import Conflict, Limit
from fleetmark.planner.capacity.futures import Fleet, needed, sample
from fleetmark.planner.capacity.question import Margin, Plan, Question, Site, Workload
from fleetmark.planner.capacity.sharing import Servers, possible
from fleetmark.planner.capacity.sku import Worth
from fleetmark.planner.capacity.uncertainty import futures, margined
from tests.planner.uncertain import SE, one_kind, plan, question


def test_sizing_by_hand() -> None:
    """1000 / (1.83 x 0.65) = 840.7; at the ends of E's central 90%, 826 and 857."""
    assert needed(np.array([1000.0]), np.array([1.83]), 0.65) == [841]
    q = question()
    drawn = sample(q, 40_000, 1)
    counts = needed(drawn.demand[:, 0, 0], drawn.worth[:, 0, 0], 0.65)
    assert np.quantile(counts, [0.05, 0.5, 0.95], method="inverted_cdf") == pytest.approx([826, 841, 857], abs=0.5)
    sizing = futures(q, plan(q, {("new", "s0", "web", 0): 841}), 40_000).sizing.iloc[0]
    assert (sizing["sku"], sizing["servers_p50"], sizing["servers_p95"]) == ("new", 841, 857)
    assert sizing["servers_p90"] == 853


def test_a_shortfall_by_hand() -> None:
    """P(D / E > servers u) for normal logarithms, and its interval."""
    q = question({"web": Workload("web", "x", (1000.0,), (0.03,), 0.65)})
    result = futures(q, plan(q, {("new", "s0", "web", 0): 860}), 4000)
    truth = stats.norm.sf(math.log(860 * 0.65 * 1.83 / 1000) / math.hypot(SE, 0.03))
    lo, hi = result.shortfall.interval or (0, 0)
    assert lo < truth < hi and hi - lo < 0.035
    row = result.table.iloc[0]
    assert row["shortfall"] == result.shortfall.value == result.unshared
    assert row["demand_p50"] == pytest.approx(1000, rel=0.005)
    assert row["demand_p95"] / row["demand_p5"] == pytest.approx(math.exp(2 * 1.645 * 0.03), rel=0.01)
    assert row["capacity_p50"] == pytest.approx(860 * 0.65 * 1.83, rel=0.002)
    assert row["servers"] == 860 and row["servers_p50"] == pytest.approx(841, abs=3)
    assert result.by_period.iloc[0]["installed"] == 860


def test_few_hosts_mean_wider_futures() -> None:
    q = question(worth={"new": {"web": Worth(1.83, SE, 4.0)}})
    ratio = sample(q, 40_000, 1).worth[:, 0, 0] / 1.83
    assert np.quantile(ratio, 0.975) == pytest.approx(math.exp(2.776 * SE), rel=0.002)


def test_demand_keeps_its_course_and_workloads_are_independent() -> None:
    growing = Workload("web", "x", (100.0, 200.0), (0.05, 0.1), 0.5)
    q = question({"web": growing, "db": replace(growing, name="db")}, {"new": {"web": Worth(1), "db": Worth(1)}})
    web, db = np.log(sample(q, 20_000, 3).demand).transpose(1, 0, 2)
    assert np.corrcoef(web.T)[0, 1] == pytest.approx(1)
    assert web.std(axis=0) == pytest.approx([0.05, 0.1], rel=0.02)
    assert np.corrcoef(web[:, 0], db[:, 0])[0, 1] == pytest.approx(0, abs=0.03)


def test_a_draw_depends_on_names_alone() -> None:
    q = question(worth={"new": {"web": Worth(1.83, SE)}})
    both = question(worth={"newer": {"web": Worth(2.4, SE)}, "new": {"web": Worth(1.83, SE)}})
    assert (sample(q, 50, 1).worth[:, 0, 0] == sample(both, 50, 1).worth[:, 1, 0]).all()
    assert (sample(q, 50, 1).worth[:, 0, 0] != sample(q, 50, 2).worth[:, 0, 0]).all()


def two() -> Question:
    work = Workload("web", "x", (100.0,), (0.1,), 0.5)
    return question({"web": work, "db": replace(work, name="db")}, {"new": {"web": Worth(1), "db": Worth(1)}})


def test_servers_are_shared_where_that_mends_it() -> None:
    """Two independent workloads need less together than each alone; a dedicated one keeps its servers."""
    q = two()
    use = {("new", "s0", "web", 0): 220.0, ("new", "s0", "db", 0): 220.0}
    result = futures(q, plan(q, use), 4000)
    drawn = sample(q, 4000, 1).demand[:, :, 0]
    assert result.unshared == pytest.approx(float((drawn > 110).any(axis=1).mean()))
    assert result.shortfall.value == pytest.approx(float((drawn.sum(axis=1) > 220).mean()))
    assert result.shortfall.value < result.unshared / 1.5
    assert result.table["shortfall"].sum() >= result.shortfall.value
    apart = replace(q, workloads={n: replace(w, dedicated=True) for n, w in q.workloads.items()})
    assert futures(apart, plan(apart, use), 4000).shortfall.value == result.unshared
    pooled = replace(q, workloads={n: replace(w, pool="front") for n, w in q.workloads.items()})
    assert futures(pooled, plan(pooled, use), 4000).shortfall.value == result.shortfall.value
    split = replace(q, workloads={n: replace(w, pool=n) for n, w in q.workloads.items()})
    assert futures(split, plan(split, use), 4000).shortfall.value == result.unshared


def test_what_rests_is_woken_and_spares_are_not() -> None:
    q = two()
    use = {("new", "s0", "web", 0): 200.0, ("new", "s0", "db", 0): 200.0}
    more = futures(q, plan(q, use, rest=40), 2000).shortfall.value
    spared = replace(q, sites={"s0": Site("s0", spares=40)})
    assert more < 0.2
    assert futures(spared, plan(spared, use, rest=40), 2000).shortfall.value > 0.4


def test_a_lost_domain_must_be_covered() -> None:
    work = {"web": Workload("web", "x", (100.0,), (0.0,), 0.5)}
    q = question(work, {"new": {"web": Worth(1)}}, sites=3)
    use = {("new", f"s{k}", "web", 0): 100.0 for k in range(3)}
    assert futures(q, plan(q, use), 10).shortfall.value == 0
    surviving = replace(q, survive=True)
    assert futures(surviving, plan(q, use), 10).shortfall.value == 0
    assert futures(surviving, plan(q, use), 10).table.iloc[0]["capacity_p50"] == 100
    together = replace(surviving, sites={k: replace(s, domain="dc" if k != "s0" else "") for k, s in q.sites.items()})
    assert futures(together, plan(q, use), 10).shortfall.value == 1


def test_sharing_agrees_with_a_programme_for_each_draw() -> None:
    """Random fleets of 3 SKUs, 3 sites and 3 workloads; any one site may be lost."""
    rng = np.random.default_rng(8)
    verdicts = []
    for _ in range(8):
        count, may = rng.integers(0, 9, (3, 3)).astype(float), rng.random((3, 3, 3)) < 0.8
        kept = np.repeat(~np.eye(3, dtype=bool)[:, :, None], 3, axis=2)
        guests = rng.random(3) < 0.2
        servers = Servers(count, may, kept | guests | (rng.random(3) < 0.3), guests)  # some need not survive
        worth = np.exp(rng.normal(0, 0.3, (25, 3, 3))) * (rng.random((3, 3)) < 0.9)
        shares = np.where(servers.may, servers.count[:, :, None] / 3, 0.0)
        demand = np.exp(rng.normal(1.6, 0.4, (25, 3)))
        shared, left_open = possible(worth, demand, servers, shares)
        assert left_open == 0
        verdicts += [(bool(f), feasible(w, d, servers)) for f, w, d in zip(shared, worth, demand, strict=True)]
    assert all(a == b for a, b in verdicts)
    assert 20 < sum(a for a, _ in verdicts) < 180


def feasible(worth: np.ndarray, demand: np.ndarray, servers: Servers) -> bool:
    """The plain programme: any shares at all."""
    skus, sites, workloads = servers.may.shape
    size = skus * sites * workloads
    index = np.arange(2 * size).reshape(2, *servers.may.shape)  # with everything up, and what is there in all
    rows, limits = [], []
    for guest, kept in [(0, np.ones((sites, workloads), dtype=bool)), *((1, kept) for kept in servers.kept)]:
        for w in range(workloads):
            if guest and servers.guests[w]:
                continue
            row = np.zeros(2 * size)
            for s in range(skus):
                row[index[guest, s, kept[:, w], w]] = -worth[s, w]
            rows.append(row)
            limits.append(-demand[w])
    for s, k, guest in itertools.product(range(skus), range(sites), range(2)):
        row = np.zeros(2 * size)
        row[index[guest, s, k]] = np.where(servers.guests, 1 - guest, 1)
        rows.append(row)
        limits.append(servers.count[s, k])
    for j in range(size):
        if not servers.guests[j % workloads]:
            row = np.zeros(2 * size)
            row[j], row[size + j] = 1, -1
            rows.append(row)
            limits.append(0)
    bounds = [(0, None if ok else 0) for _ in range(2) for ok in servers.may.ravel()]
    return bool(optimize.linprog(np.zeros(2 * size), A_ub=np.array(rows), b_ub=limits, bounds=bounds).status == 0)


@pytest.mark.parametrize("quantile", [0.8, 0.95])
def test_margins_meet_the_quantile_and_little_more(quantile: float) -> None:
    worth = {w: Worth(1.83, 0.01, 10.0) for w in ("web", "db", "batch")}
    work = Workload("web", "x", (3000.0, 3500.0, 4000.0), (0.01, 0.02, 0.03), 0.65)
    q = question({w: replace(work, name=w) for w in worth}, {"new": worth})
    calls: list[Margin] = []

    def solve(q: Question, margin: Margin) -> Plan:
        calls.append(margin)
        return one_kind(q, margin)

    best = margined(q, solve, quantile)
    assert isinstance(best, Plan) and len(calls) <= 10
    met = 1 - futures(q, best, 20_000, seed=99).shortfall.value
    assert quantile - 0.005 <= met <= quantile + 0.03
    assert best.factor("web", 2) > best.factor("web", 0) > 1
    assert best.objective < margined_apart(q, quantile)


def margined_apart(q: Question, quantile: float) -> float:
    """The cost of a separate quantile for each workload, without sharing."""
    draws = sample(q, 4000, 1)
    level = 1 - (1 - quantile) / len(q.workloads)
    margin = {
        w: tuple(
            np.quantile(draws.demand[:, i] / draws.worth[:, 0, i, None] * 1.83 / np.array(work.point), level, axis=0)
        )
        for i, (w, work) in enumerate(q.workloads.items())
    }
    return one_kind(q, margin).objective


def test_a_timeout_keeps_the_best_plan_so_far() -> None:
    q = question({"web": Workload("web", "x", (3000.0, 3500.0), (0.02, 0.03), 0.65)})
    bought = margined(q, one_kind, 0.95)
    assert isinstance(bought, Plan)
    ends = []
    for last in range(1, 9):
        calls = itertools.count(1)

        def solve(q: Question, margin: Margin, last: int = last, calls: Iterator[int] = calls) -> Plan:
            if next(calls) > last:
                raise FleetmarkError("no plan was found within 60 s")
            return one_kind(q, margin)

        try:
            best = margined(q, solve, 0.95)
        except FleetmarkError:
            ends.append("none yet")
            continue
        assert isinstance(best, Plan) and best.objective >= bought.objective
        assert futures(q, best, 20_000, seed=99).shortfall.value <= 0.055
        ends.append("the same" if best.objective == bought.objective else "dearer")
    assert list(dict.fromkeys(ends)) == ["none yet", "dearer", "the same"]


def test_nothing_uncertain_needs_no_margin() -> None:
    q = question(worth={"new": {"web": Worth(1.83)}})
    best = margined(q, one_kind, 0.95)
    assert isinstance(best, Plan) and best.factor("web", 0) == 1
    assert futures(q, best, 100).shortfall.value == 0


def test_margins_that_cannot_be_had_are_a_conflict() -> None:
    q = question({"web": Workload("web", "x", (1000.0,), (0.1,), 0.65)})
    conflict = Conflict([Limit("power at s0", 5.0, "kW")])

    def solve(q: Question, margin: Margin) -> Plan | Conflict:
        return conflict if margin else one_kind(q, margin)

    assert margined(q, solve, 0.95) is conflict
    assert margined(q, lambda *_, margin: conflict, 0.95) is conflict


def test_bad_input() -> None:
    q = question()
    with pytest.raises(FleetmarkError, match="0 futures"):
        futures(q, plan(q, {("new", "s0", "web", 0): 841}), 0)
    with pytest.raises(FleetmarkError, match="a quantile of 1.5"):
        margined(q, one_kind, 1.5)
    nobody = replace(q, skus={"new": replace(q.skus["new"], worth={})})
    with pytest.raises(FleetmarkError, match="web: no SKU can run it"):
        futures(nobody, plan(q, {("new", "s0", "web", 0): 841}), 10)


def test_arrays_of_a_plan() -> None:
    q = two()
    fleet = Fleet(q, plan(q, {("new", "s0", "web", 0): 150.0, ("new", "s0", "db", 0): 50.0}, rest=100))
    assert fleet.count[0, 0, 0] == 300
    assert fleet.grown(0)[0, 0].tolist() == [225, 75]
