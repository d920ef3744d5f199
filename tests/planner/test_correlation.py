"""Correlated demands, shocks and worths of the same hosts: matrices by hand, draws, and promises by simulation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.analysis.results import Conflict, Limit
from fleetmark.planner.capacity.demand.correlation import correlated, matrix, members
from fleetmark.planner.capacity.futures import sample
from fleetmark.planner.capacity.question import Margin, Plan, Question, Shock, Site, Workload
from fleetmark.planner.capacity.sku import Worth
from fleetmark.planner.capacity.solve import solve as solved
from fleetmark.planner.capacity.uncertainty import margined
from tests.planner.questions import ask, sku, work
from tests.planner.uncertain import one_kind, question

NAMES = ("web", "db", "batch", "search", "store", "mail", "logs")
SIGMA = (0.03, 0.06, 0.09)
POINT = (3000.0, 3300.0, 3600.0)


def services(**more: object) -> Question:
    """Seven services whose demand spreads over three periods, on one kind of server."""
    worth = {w: Worth(1.83, 0.02, 10.0) for w in NAMES}
    work = {w: Workload(w, "x", POINT, SIGMA, 0.65) for w in NAMES}
    return question(work, {"new": worth}, **more)


def test_a_matrix_by_hand() -> None:
    correlations = matrix({"web + db": 0.8, "all": 0.2}, ["web", "db", "batch"])
    assert correlations.tolist() == [[1, 0.8, 0.2], [0.8, 1, 0.2], [0.2, 0.2, 1]]
    assert matrix({}, ["web", "db"]).tolist() == [[1, 0], [0, 1]]
    assert members("all", ["a", "b"]) == ["a", "b"] and members("b +a", ["a", "b"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("correlation", "sentence"),
    [
        ({"web + dbb": 0.5}, "no workload 'dbb'"),
        ({"web": 0.5}, "between two workloads or more"),
        ({"web + web": 0.5}, "between two workloads or more"),
        ({"all": -0.9}, "no demands can have these correlations together"),
        ({"web + db": 0.9, "db + batch": 0.9, "web + batch": -0.9}, "smallest eigenvalue of their matrix is -0.8"),
    ],
)
def test_what_is_no_correlation(correlation: dict[str, float], sentence: str) -> None:
    with pytest.raises(FleetmarkError, match=sentence):
        matrix(correlation, ["web", "db", "batch"])


def test_draws_have_the_correlation_and_the_first_keeps_its_own() -> None:
    normal = np.random.default_rng(1).standard_normal((100_000, 3))
    wanted = matrix({"web + db": 0.8, "web + batch": -0.5}, ["web", "db", "batch"])
    drawn = correlated(normal, wanted)
    assert np.corrcoef(drawn.T) == pytest.approx(wanted, abs=0.01)
    assert drawn[:, 0] == pytest.approx(normal[:, 0])
    fully_correlated = correlated(normal, np.ones((3, 3)))
    assert np.abs(fully_correlated - normal[:, :1]).max() < 1e-6


def test_worths_of_the_same_hosts_share_an_error() -> None:
    q = services()
    sku = q.skus["new"]
    lab = {w: replace(e, hosts="lab" if w in ("web", "db") else "") for w, e in sku.worth.items()}
    logs = np.log(sample(replace(q, skus={"new": replace(sku, worth=lab)}), 2000, 1).worth[:, 0, :])
    correlations = np.corrcoef(logs.T)
    assert correlations[0, 1] == pytest.approx(1) and abs(correlations[0, 2]) < 0.1


def test_a_shock_hits_its_share_of_futures_and_lasts() -> None:
    q, plain = services(shock=Shock(0.2, 1.5)), services()
    jump = sample(q, 20_000, 1).demand / sample(plain, 20_000, 1).demand
    assert {*np.round(np.unique(jump), 9)} == {1.0, 1.5}
    assert np.ptp(jump, axis=1).max() < 1e-12  # the same for all workloads
    assert (np.diff(jump[:, 0], axis=1) >= -1e-12).all()
    assert [(jump[:, 0, t] > 1).mean() for t in range(3)] == pytest.approx([0.2 / 3, 0.4 / 3, 0.2], abs=0.01)


def met(plan: Plan, seed: int, together: bool, shock: Shock | None = None) -> float:
    """The share of futures in which the plan's servers suffice, drawn here without the planner's code."""
    rng, n = np.random.default_rng(seed), 20_000
    growth = np.repeat(rng.standard_normal((n, 1)), 7, axis=1) if together else rng.standard_normal((n, 7))
    demand = np.array(POINT) * np.exp(np.array(SIGMA) * growth[:, :, None])
    if shock is not None:
        begin = np.where(rng.random(n) < shock.chance, rng.integers(0, 3, n), 3)
        demand *= np.where(np.arange(3) >= begin[:, None], shock.demand, 1.0)[:, None, :]
    worth = 1.83 * np.exp(0.02 * rng.standard_t(10, (n, 7)))
    servers = (demand / (worth[:, :, None] * 0.65)).sum(axis=1)
    installed = plan.stock.groupby("period")["installed"].sum().to_numpy()
    return float((servers <= installed).all(axis=1).mean())


def test_the_promise_holds_where_one_growth_is_that_of_all() -> None:
    apart, together = (margined(services(**more), one_kind, 0.95) for more in ({}, {"correlation": {"all": 1.0}}))
    assert isinstance(apart, Plan) and isinstance(together, Plan)
    assert max(met(apart, seed, together=True) for seed in range(5)) < 0.85  # what independence would promise in vain
    shares = [met(together, seed, together=True) for seed in range(5)]
    assert min(shares) >= 0.94 and np.mean(shares) >= 0.948 and max(shares) < 0.975


def test_the_promise_holds_under_a_shock() -> None:
    shock = Shock(0.1, 1.2)
    best = margined(services(shock=shock), one_kind, 0.95)
    assert isinstance(best, Plan)
    shares = [met(best, seed, together=False, shock=shock) for seed in range(5)]
    assert min(shares) >= 0.94 and np.mean(shares) >= 0.948


def cheapest(q: Question) -> float:
    """Return the least cost of all orders that meet the quantile, with the exact probability of each begin of a shock."""
    assert q.shock is not None
    point, price = q.workloads["web"].point, q.skus["s"].price or 0.0
    span = range(len(point))
    shocked = [[p * (q.shock.demand if t >= begin else 1.0) for t, p in enumerate(point)] for begin in span]
    least = math.inf
    for orders in itertools.product(range(math.ceil(max(point) * q.shock.demand) + 1), repeat=len(span)):
        installed = list(itertools.accumulate(orders))
        if any(n < p for n, p in zip(installed, point, strict=True)):
            continue
        kept = sum(all(n >= d - 1e-9 for n, d in zip(installed, demand, strict=True)) for demand in shocked)
        if 1 - q.shock.chance * (1 - kept / len(span)) >= q.quantile:
            least = min(least, sum(n * price * q.weight(t) for t, n in enumerate(orders)))
    return least


@pytest.mark.parametrize(
    ("chance", "demand", "quantile"), [(0.1, 1.3, 0.95), (0.3, 1.5, 0.78), (0.04, 1.5, 0.95), (0.6, 1.2, 0.9)]
)
def test_a_shock_costs_what_trying_all_orders_finds(chance: float, demand: float, quantile: float) -> None:
    q = ask([work("web", 4.0, 5.0, 5.0)], [sku("s", {"web": 1.0}, 10.0)], [Site("ams")], discount=0.1)
    q = replace(q, shock=Shock(chance, demand), quantile=quantile)
    plan = margined(q, solved, n=4000)
    assert isinstance(plan, Plan)
    assert plan.objective == pytest.approx(cheapest(q))


def test_a_plan_that_meets_the_quantile_is_a_plan() -> None:
    """With few draws the search asks for more than the quantile; what it asks for may not exist, but what is asked does."""
    q = services()
    enough = margined(q, one_kind, 0.95)
    assert isinstance(enough, Plan)
    room = float(enough.stock["installed"].max()) + 2

    def solve(q: Question, margin: Margin) -> Plan | Conflict:
        plan = one_kind(q, margin)
        full = float(plan.stock["installed"].max()) > room
        return Conflict([Limit("rack units at s0", 5.0, "U")]) if full else plan

    best = margined(q, solve, 0.95, n=200)
    assert isinstance(best, Plan) and met(best, 1, together=False) >= 0.93
