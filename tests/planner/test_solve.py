"""Plans against brute force, against sums by hand, and under changes that must not matter."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks import planning
from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity import solve as solving
from fleetmark.planner.capacity.best import best
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.model import Model, build
from fleetmark.planner.capacity.question import KINDS, Cohort, Plan, Question, Site
from fleetmark.planner.capacity.search import SMALL, Result
from fleetmark.planner.capacity.sku import Sku, Worth
from fleetmark.planner.capacity.solve import solve
from tests.planner.brute import least, pooled, small
from tests.planner.questions import ask, sku, work

QUICK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def exact(question: Question, **more: object) -> Plan:
    plan = solve(question, gap=0, **more)  # type: ignore[arg-type]
    assert isinstance(plan, Plan), plan
    assert check(question, plan) == []
    return plan


def bought(plan: Plan) -> dict[str, int]:
    return {str(s): int(n) for s, n in plan.stock.groupby("sku")["buy"].sum().items() if n}


def counts(plan: Plan, column: str, sku: str, site: str = "ams") -> list[int]:
    rows = plan.stock[(plan.stock["sku"] == sku) & (plan.stock["site"] == site)].sort_values("period")
    return [int(n) for n in rows[column]]


def two(worth: float, room: float | None = None) -> Question:
    """min 10x + 6y with worth x + y >= 100, and with room x + 0.5 y <= room."""
    skus = [sku("x", {"web": worth}, 10.0, rack_units=1.0), sku("y", {"web": 1.0}, 6.0, rack_units=0.5)]
    return ask([work("web", 100.0)], skus, [Site("ams", rack_units=room)])


def test_the_oracles_of_two_kinds_of_server() -> None:
    assert exact(two(1.83)).objective == pytest.approx(550, abs=1e-9)
    narrow = exact(two(1.83, room=54.0))
    assert narrow.objective == pytest.approx(554, abs=1e-9)
    assert bought(narrow) == {"x": 47, "y": 14}
    assert exact(two(1.79)).objective == pytest.approx(560, abs=1e-9)


@pytest.mark.parametrize("part", range(5))
def test_500_small_questions_have_the_cost_that_trying_everything_finds(part: int) -> None:
    count, impossible, seed = 0, 0, part * 1000
    while count < 100:
        question, seed = small(seed), seed + 1
        try:
            solving.refuse(question, {})
        except FleetmarkError:
            continue
        count += 1
        plan = best(question, gap=0, seconds=3600, margin={})
        expected = least(question)
        if plan is None:
            impossible += 1
            assert expected == math.inf, f"seed {seed - 1}"
            continue
        assert plan.objective == pytest.approx(expected, rel=1e-6, abs=1e-6), f"seed {seed - 1}"
        assert plan.gap <= 1e-6
        assert check(question, plan) == [], f"seed {seed - 1}"
    assert 5 < impossible < 60  # both kinds are tried


def test_costs_are_those_of_the_model() -> None:
    """One server, bought for 1000, used half: every kind of cost by hand."""
    one = sku("s", {"web": 2.0}, 1000.0, idle_w=100.0, peak_w=300.0, support=40.0, space=20.0, embodied=500.0)
    question = ask(
        [work("web", 0.5, 0.5, utilisation=0.5)],
        [one],
        [Site("ams", energy_price=0.2, pue=1.5)],
        discount=0.1,
        energy_price=9.0,
        pue=9.0,
        carbon_price=100.0,
        grid=0.4,
    )
    plan = exact(question)
    # E u = 1, so half a server works: 100 W at rest and (300 - 100) * 0.5 * 0.5 on top.
    kwh = 8766 * 1.5 * 150 / 1000
    first = {
        "purchase": 1000,
        "rent": 0,
        "energy": 0.2 * kwh,
        "support": 40,
        "space": 20,
        "migration": 0,
        "carbon": 0.1 * (500 + 0.4 * kwh),
        "residual": 0,
    }
    second = first | {"purchase": 0, "carbon": 0.1 * 0.4 * kwh}
    for t, expected in enumerate((first, second)):
        table = plan.costs[plan.costs["period"] == t].set_index("kind")
        assert list(table.index) == list(KINDS)
        assert table["money"].to_dict() == pytest.approx(expected)
        assert table["present"].to_dict() == pytest.approx({kind: money / 1.1**t for kind, money in expected.items()})
    assert plan.objective == pytest.approx(sum(first.values()) + sum(second.values()) / 1.1)


def test_lead_time_means_ordering_early_and_money_later_is_cheaper() -> None:
    one = sku("s", {"web": 1.0}, 100.0, lead=1)
    plan = exact(ask([work("web", 0.0, 2.0, 5.0)], [one], [Site("ams")], discount=0.1))
    assert counts(plan, "buy", "s") == [2, 3, 0]
    assert counts(plan, "arrive", "s") == [0, 2, 3]
    assert counts(plan, "installed", "s") == [0, 2, 5]
    assert plan.objective == pytest.approx(200 + 300 / 1.1)


def test_servers_go_at_their_age_limit() -> None:
    """Three in place, two periods old, with an age limit of three: they leave in period 1; their successors, with a limit of two, in 3."""
    old, new = sku("old", {"web": 1.0}, age_limit=3, migration=7.0), sku("new", {"web": 1.0}, 50.0, age_limit=2)
    question = ask(
        [work("web", 3.0, 3.0, 3.0, 3.0)], [old, new], [Site("ams")], fleet=[Cohort("old", "ams", 3, 2)], discount=0.05
    )
    plan = exact(question)
    assert counts(plan, "installed", "old") == [3, 0, 0, 0]
    assert counts(plan, "buy", "new") == [0, 3, 0, 3]
    assert counts(plan, "retire", "new") == [0, 0, 0, 3]
    assert plan.costs.loc[plan.costs["kind"] == "migration", "money"].tolist() == [0.0, 21.0, 0.0, 0.0]


def test_an_order_is_none_or_the_least() -> None:
    one = sku("s", {"web": 1.0}, 10.0, minimum_order=4)
    assert counts(exact(ask([work("web", 1.0, 6.0)], [one], [Site("ams")], discount=0.5)), "buy", "s") == [6, 0]
    assert counts(exact(ask([work("web", 1.0, 8.0)], [one], [Site("ams")], discount=0.5)), "buy", "s") == [4, 4]


def test_spares_stand_by_where_a_sku_is_in_use() -> None:
    one = sku("s", {"web": 1.0}, 10.0)
    plan = exact(ask([work("web", 3.0)], [one], [Site("ams", spares=2), Site("fra", spares=1)]))
    assert (counts(plan, "buy", "s", "fra"), counts(plan, "active", "s", "fra"), counts(plan, "buy", "s")) == (
        [4],
        [3],
        [0],
    )


def test_a_lost_domain_is_survived() -> None:
    """Two sites need everything twice; three a half more each; sites that fail together count as one."""
    one = sku("s", {"web": 1.0}, 10.0)
    for sites, servers in (
        ([Site("a"), Site("b")], 12),
        ([Site("a"), Site("b"), Site("c")], 9),
        ([Site("a", domain="x"), Site("b", domain="x"), Site("c")], 12),
    ):
        assert bought(exact(ask([work("web", 6.0)], [one], sites, survive=True))) == {"s": servers}


def test_budgets_push_purchases_earlier_or_to_what_costs_more_to_run() -> None:
    one = sku("s", {"web": 1.0}, 10.0)
    question = ask([work("web", 1.0, 5.0)], [one], [Site("ams")], discount=0.5, budget=[None, 20.0])
    assert counts(exact(question), "buy", "s") == [3, 2]
    dear = [Site("ams", budget=20.0), Site("fra", energy_price=1.0)]
    hot = replace(one, idle_w=100.0, peak_w=200.0)
    assert counts(exact(ask([work("web", 5.0)], [hot], dear)), "buy", "s") == [2]


def test_a_dedicated_workload_shares_no_server() -> None:
    one = sku("s", {"web": 1.0, "db": 1.0}, 10.0)
    shared = ask([work("web", 0.4), work("db", 0.5)], [one], [Site("ams")])
    assert bought(exact(shared)) == {"s": 1}
    apart = ask([work("web", 0.4), work("db", 0.5, dedicated=True)], [one], [Site("ams")])
    plan = exact(apart)
    assert bought(plan) == {"s": 2}
    assert plan.use.set_index("workload")["servers"].to_dict() == pytest.approx({"web": 0.4, "db": 1.0})


def test_pools_have_whole_servers_and_share_them_inside_only() -> None:
    one = sku("s", dict.fromkeys(("web", "db", "log"), 1.0), 10.0)
    front = {"pool": "front"}

    def plan(*pools: dict[str, str]) -> Plan:
        works = [work(w, 0.4, **pool) for w, pool in zip(("web", "db", "log"), pools, strict=True)]
        return exact(ask(works, [one], [Site("ams")]))

    assert bought(plan({}, {}, {})) == {"s": 2}
    assert bought(plan(front, front, {})) == {"s": 2}
    assert bought(plan(front, {"pool": "back"}, {})) == {"s": 3}
    assert bought(plan(front, front, front)) == {"s": 2}
    question = ask([work("web", 1.5, **front), work("db", 0.5, **front), work("log", 0.1)], [one], [Site("ams")])
    apart = exact(question)
    ledger = Ledger(question, apart.stock, apart.use)
    assert bought(apart) == {"s": 3}
    assert (ledger.pooled["front"].tolist(), ledger.common.tolist()) == ([[2.0]], [[1.0]])
    together = replace(question, workloads={w: replace(x, pool="front") for w, x in question.workloads.items()})
    assert not check(together, apart)
    twice = replace(question, workloads={w: replace(x, pool=w) for w, x in question.workloads.items()})
    assert "s at ams in 2027: 4.0 servers are used, 3 are active" in check(twice, apart)


def test_what_may_be_pre_empted_runs_in_the_headroom_of_its_own_pool() -> None:
    one = sku("s", {"web": 1.0, "db": 1.0, "log": 1.0}, 10.0)
    guest = {"availability": "preemptible"}
    sites = [Site("ams"), Site("fra")]

    def plan(pool: str) -> Plan:
        works = [work("web", 2.0, availability="survives", pool="front"), work("db", 1.0, availability="normal")]
        return exact(ask([*works, work("log", 2.0, pool=pool, **guest)], [one], sites))

    assert bought(plan("front")) == {"s": 5}  # 2 + 2 that web keeps, where log runs, and 1 for db
    assert bought(plan("")) == {"s": 7}  # beside db there is no headroom


def test_100_small_questions_with_pools_have_the_cost_that_trying_everything_finds() -> None:
    impossible = 0
    for seed in range(100):
        question = pooled(seed)
        try:
            solving.refuse(question, {})
        except FleetmarkError:
            continue
        plan, expected = best(question, gap=0, seconds=3600, margin={}), least(question)
        impossible += plan is None
        if plan is None:
            assert expected == math.inf, f"seed {seed}"
        else:
            assert plan.objective == pytest.approx(expected, rel=1e-6, abs=1e-6), f"seed {seed}"
    assert impossible < 30


def test_a_margin_raises_demand_in_all_periods_or_in_each() -> None:
    question = ask([work("web", 10.0, 10.0)], [sku("s", {"web": 1.0}, 1.0)], [Site("ams")], discount=0.1)
    assert counts(exact(question, margin={"web": 1.25}), "buy", "s") == [13, 0]
    plan = exact(question, margin={"web": [1.0, 1.5]})
    assert counts(plan, "buy", "s") == [10, 5]
    assert (plan.factor("web", 0), plan.factor("web", 1), plan.factor("db", 0)) == (1.0, 1.5, 1.0)


def test_the_same_question_gets_the_same_plan() -> None:
    first, second = (solve(planning.question(3, 5, 3, 5, 300, seed=4)) for _ in range(2))
    assert isinstance(first, Plan) and isinstance(second, Plan)
    pd.testing.assert_frame_equal(first.stock, second.stock)
    pd.testing.assert_frame_equal(first.use, second.use)


def test_a_large_question_is_solved_in_parts_to_its_gap() -> None:
    question = planning.question(6, 9, 6, 8, 3000, seed=1)
    assert build(question, {}).integer.sum() > SMALL
    plan = solve(question, gap=0.01, seconds=3600)
    assert isinstance(plan, Plan)
    assert 0 <= plan.gap <= 0.01
    assert check(question, plan) == []
    assert plan.bound <= plan.objective


@cache
def solved_exactly(seed: int) -> Plan | None:
    return best(planning.question(3, 5, 3, 5, 300, seed=seed), gap=0.01, seconds=3600, margin={})


@pytest.mark.parametrize("gap", [0.05, 0.005])
@pytest.mark.parametrize("seed", [0, 4])
def test_rounding_and_the_restricted_programme_make_plans_too(
    seed: int, gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The methods for large questions, on one that is also solved exactly."""
    question = planning.question(3, 5, 3, 5, 300, seed=seed)
    right = solved_exactly(seed)
    monkeypatch.setattr("fleetmark.planner.capacity.search.SMALL", 0)
    other = best(question, gap=gap, seconds=3600, margin={})
    assert right is not None and other is not None
    assert check(question, other) == []
    assert other.objective >= right.bound * (1 - 1e-6)
    assert other.bound <= right.objective * (1 + 1e-6)
    assert other.gap <= gap


def simple(prices: tuple[float, float], points: list[float], fleet: int, energy: float) -> Question:
    skus = [
        sku(
            "a",
            {"web": 1.5, "db": 1.0},
            prices[0],
            idle_w=100.0,
            peak_w=300.0,
            rack_units=1.0,
            support=10.0,
            migration=5.0,
        ),
        sku("b", {"web": 1.0, "db": 1.2}, prices[1], idle_w=80.0, peak_w=200.0, rack_units=2.0, embodied=100.0),
    ]
    return ask(
        [work("web", *points, utilisation=0.6), work("db", *reversed(points), utilisation=0.7)],
        skus,
        [Site("ams", rack_units=200.0, budget=1e5), Site("fra")],
        fleet=[Cohort("a", "ams", fleet, 1)] if fleet else [],
        energy_price=energy,
        carbon_price=50.0,
        grid=0.3,
        discount=0.07,
    )


questions = st.builds(
    simple,
    st.tuples(st.floats(50, 500), st.floats(50, 500)),
    st.lists(st.floats(0, 9).map(lambda v: round(v, 2)), min_size=1, max_size=3).filter(any),
    st.integers(0, 3),
    st.floats(0, 0.3),
)


@QUICK
@given(questions)
def test_twice_the_money_is_twice_the_objective(question: Question) -> None:
    twice = replace(
        question,
        skus={
            s: replace(v, price=2 * (v.price or 0), support=2 * v.support, migration=2 * v.migration)
            for s, v in question.skus.items()
        },
        sites={k: replace(v, budget=v.budget and 2 * v.budget) for k, v in question.sites.items()},
        energy_price=2 * question.energy_price,
        carbon_price=2 * question.carbon_price,
    )
    assert exact(twice).objective == pytest.approx(2 * exact(question).objective, rel=1e-6)


@QUICK
@given(questions, st.floats(1e-3, 1e6))
def test_the_unit_of_work_does_not_matter(question: Question, factor: float) -> None:
    web = question.workloads["web"]
    scaled = replace(
        question,
        workloads={**question.workloads, "web": replace(web, point=[factor * v for v in web.point])},
        skus={
            s: replace(v, worth={**v.worth, "web": Worth(factor * v.worth["web"].value)})
            for s, v in question.skus.items()
        },
    )
    assert exact(scaled).objective == pytest.approx(exact(question).objective, rel=1e-6)


@QUICK
@given(questions)
def test_a_dear_and_useless_server_changes_nothing(question: Question) -> None:
    useless = sku("c", {"web": 0.1, "db": 0.1}, 1e6, idle_w=5000.0, peak_w=9000.0)
    more = replace(question, skus={**question.skus, "c": useless})
    plan = exact(more)
    assert plan.objective == pytest.approx(exact(question).objective, rel=1e-6)
    assert not counts(plan, "installed", "c")[0]


def broken(plan: Plan, row: dict[str, object], **values: object) -> Plan:
    stock = plan.stock.copy()
    here = pd.Series(True, index=stock.index)
    for column, value in row.items():
        here &= stock[column] == value
    for column, value in values.items():
        stock.loc[here, column] = value
    return replace(plan, stock=stock)


def test_the_check_finds_what_was_broken() -> None:
    question = ask(
        [work("web", 4.0, 4.0, utilisation=0.5, sites=frozenset({"ams"}))],
        [
            sku("a", {"web": 1.0}, 10.0, minimum_order=2, rack_units=1.0, age_limit=2),
            sku("old", {"web": 1.0}, age_limit=3),
        ],
        [Site("ams", rack_units=20.0, spares=1, budget=100.0), Site("fra")],
        fleet=[Cohort("old", "ams", 2, 2)],
        budget=[80.0, 80.0],
    )
    plan = exact(question)
    here = {"sku": "a", "site": "ams", "period": 0}

    def faults(changed: Plan, changed_question: Question = question) -> str:
        return "; ".join(check(changed_question, changed))

    assert "bought at ams, but it is not for sale" in faults(
        broken(plan, {"sku": "old", "site": "ams", "period": 0}, buy=1)
    )
    assert "1 a are ordered for ams in 2027; the minimum is 2" in faults(broken(plan, here, buy=1))
    assert "not the orders of 0 periods before" in faults(broken(plan, here, arrive=1))
    assert "but what is bought and retired leaves" in faults(broken(plan, here, installed=99))
    assert "whole and not negative" in faults(
        broken(plan.__class__(**{**_fields(plan), "stock": plan.stock.astype({"buy": float})}), here, buy=8.5)
    )
    assert "more active than installed, less spares, maintenance and failures" in faults(
        broken(plan, here, active=int(counts(plan, "installed", "a")[0]))
    )
    late = broken(broken(plan, {"sku": "old"}, retire=0), {"sku": "old", "site": "ams"}, installed=2)
    assert "old at ams in 2028: servers beyond their age limit are kept" in faults(late)
    assert "purchases of" in faults(plan, replace(question, budget=[1.0, 80.0]))
    assert "exceed its budget of 1" in faults(
        plan, replace(question, sites=question.sites | {"ams": Site("ams", spares=1, budget=1.0)})
    )
    assert "rack_units of" in faults(
        plan, replace(question, sites=question.sites | {"ams": Site("ams", spares=1, rack_units=2.0)})
    )
    assert "web in 2027: 4 of 8 units" in faults(replace(plan, margin={"web": 2.0})).replace(".0", "")
    assert "without ams" in faults(plan, replace(question, survive=True))
    lazy = replace(plan, use=plan.use.assign(servers=plan.use["servers"] * 3))
    assert "servers are used" in faults(lazy)
    away = replace(plan, use=plan.use.assign(site="fra"))
    assert "web runs at fra, which its question does not allow" in faults(away)
    assert "no worth" in faults(
        plan, replace(question, skus={s: replace(v, worth={}) for s, v in question.skus.items()})
    )
    dedicated = replace(question, workloads={"web": replace(question.workloads["web"], dedicated=True)})
    assert "part of a server" in faults(
        replace(plan, use=plan.use.assign(servers=plan.use["servers"] * 0.99)), dedicated
    )
    assert "present value is" in faults(replace(plan, objective=plan.objective + 1))
    assert "less than the bound" in faults(replace(plan, bound=plan.objective + 5))
    assert "cost of purchase in 2027" in faults(replace(plan, costs=plan.costs.assign(money=plan.costs["money"] + 1.0)))
    assert "which is not in the question" in faults(plan, replace(question, sites={"ams": question.sites["ams"]}))
    assert "not one for each period" in faults(replace(plan, stock=plan.stock[plan.stock["period"] == 0]))


def _fields(plan: Plan) -> dict[str, object]:
    return {name: getattr(plan, name) for name in plan.__dataclass_fields__}


def changed(question: Question, changed_sku: Sku) -> Question:
    return replace(question, skus={**question.skus, changed_sku.name: changed_sku})


def test_questions_that_make_no_sense_are_refused_in_a_sentence() -> None:
    question = two(1.83)
    x = question.skus["x"]
    for wrong, words in (
        (changed(question, replace(x, price=-3.0)), "price of x is -3.0: it must be 0 or more"),
        (changed(question, replace(x, price=math.nan)), "price of x is nan"),
        (changed(question, replace(x, idle_w=5.0)), "x draws less at its peak than idle"),
        (changed(question, replace(x, worth={"web": Worth(0.0)})), "worth of x for web must be positive"),
        (replace(question, workloads={"web": work("web", -1.0)}), "demand of web is -1.0"),
        (replace(question, workloads={"web": work("web", 1.0, 2.0)}), "demand of web must have a value for each period"),
        (replace(question, workloads={"web": work("web", 1.0, utilisation=0.0)}), "utilisation of web"),
        (replace(question, workloads={"gpu": work("gpu", 1.0)}), "gpu is in demand, but no server that can run it"),
        (replace(question, workloads={"web": work("web", 1.0, sites=frozenset({"fra"}))}, skus={"x": replace(x, price=None)}), "web is in demand, but no server"),
        (replace(question, workloads={}, skus={"x": replace(x, price=None)}), "no server is in place and none is for sale"),
    ):  # fmt: skip
        with pytest.raises(FleetmarkError, match=words.replace(".", r"\.")):
            solve(wrong)


@pytest.mark.parametrize(("stopped", "words"), [(True, "was found: allow more time"), (False, "allow a wider gap")])
def test_a_search_without_a_plan_says_what_ended_it(monkeypatch: pytest.MonkeyPatch, stopped: bool, words: str) -> None:
    def search(model: Model, gap: float, clock: Clock) -> Result:
        clock.stopped = stopped
        return Result(None, 0.0)

    monkeypatch.setattr("fleetmark.planner.capacity.best.search", search)
    with pytest.raises(FleetmarkError, match=f"neither a plan nor .*{words}"):
        solve(two(1.83), seconds=7)


def test_few_nodes_end_a_search_at_the_same_plan_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One node: what HiGHS has found by then is a plan, with the gap that is left."""
    monkeypatch.setattr("fleetmark.planner.capacity.search.NODES", 0)
    monkeypatch.setattr("fleetmark.planner.capacity.search.LEAST_NODES", 1)
    question = planning.question(2, 4, 3, 4, 200, seed=1)
    plans = [solve(question, gap=0, seconds=3600) for _ in range(2)]
    assert isinstance(plans[0], Plan) and isinstance(plans[1], Plan) and not plans[0].stopped
    assert plans[0].objective == plans[1].objective and plans[0].bound == plans[1].bound


def test_no_demand_costs_nothing() -> None:
    plan = exact(ask([work("web", 0.0, 0.0)], [sku("s", {"web": 1.0}, 5.0)], [Site("ams")]))
    assert (plan.objective, plan.gap, len(plan.use)) == (0.0, 0.0, 0)


def test_a_sku_that_would_arrive_too_late_is_no_use() -> None:
    late = sku("late", {"web": 1.0}, 1.0, lead=2)
    soon = sku("soon", {"web": 1.0}, 9.0)
    assert bought(exact(ask([work("web", 1.0, 1.0)], [late, soon], [Site("ams")]))) == {"soon": 1}
    assert best(ask([work("web", 1.0, 1.0)], [late], [Site("ams")]), gap=0, seconds=3600, margin={}) is None


def test_the_solver_leaves_standard_output_alone(capfd: pytest.CaptureFixture[str]) -> None:
    best(small(44), gap=1.0, seconds=3600, margin={})  # HiGHS 1.12 prints a line of its own here
    solve(small(44), gap=0)
    assert capfd.readouterr().out == ""
