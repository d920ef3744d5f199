"""Test the next best plans and shadow prices, by hand and by solving again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks import planning
from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.analysis.alternatives import alternatives, trades
from fleetmark.planner.capacity.analysis.prices import shadow_prices
from fleetmark.planner.capacity.best import best
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.question import TRADES, Plan, Question, Site
from fleetmark.planner.capacity.shape import Caps
from fleetmark.planner.capacity.solve import solve
from tests.planner.questions import ask, sku, work


def exact(question: Question) -> Plan:
    plan = solve(question, gap=0)
    assert isinstance(plan, Plan)
    return plan


def three() -> Question:
    """Return a question of 100 units with three SKUs: a 100 at 5, b 50 at 11, c 25 at 24, so 500, 550 or 600."""
    skus = [
        sku("a", {"web": 1.0}, 5.0, peak_w=100.0, rack_units=1.0),
        sku("b", {"web": 2.0}, 11.0, peak_w=150.0, rack_units=1.0, embodied=10.0),
        sku("c", {"web": 4.0}, 24.0, peak_w=200.0, rack_units=2.0),
    ]
    return ask([work("web", 100.0)], skus, [Site("ams"), Site("fra")])


def test_the_next_best_lack_what_the_better_ones_buy() -> None:
    question = three()
    plan = exact(question)
    assert plan.objective == pytest.approx(500)
    first, second = alternatives(question, plan)
    assert (str(first.name), first.extra, first.least) == ("without a", pytest.approx(50), pytest.approx(50))
    assert (str(second.name), second.extra) == ("without a, b", pytest.approx(100))
    assert list(first.trades) == list(TRADES)
    expected = {"purchases": 50, "running": 0, "servers": -50, "peak_w": -2500, "rack_units": -50, "carbon_kg": 500}
    assert first.trades == pytest.approx(expected)
    for other in (first, second):
        assert check(question, other.plan) == []
        assert other.extra == pytest.approx(other.plan.objective - plan.objective)
    assert trades(question, plan)["servers"] == 100
    assert [a.name for a in alternatives(question, plan, limit=1)] == [first.name]


def test_where_only_one_server_will_do_sites_tell_plans_apart() -> None:
    sites = [Site("ams", energy_price=0.1), Site("fra", energy_price=0.2), Site("lon", energy_price=0.3)]
    one = sku("s", {"web": 1.0}, 100.0, idle_w=100.0, peak_w=100.0)
    question = ask([work("web", 3.0)], [one], sites)
    first, second = alternatives(question, exact(question))
    kwh = 3 * 8766 * 0.1
    assert (str(first.name), first.extra) == ("without s at ams", pytest.approx(0.1 * kwh))
    assert (str(second.name), second.extra) == ("without s at ams, s at fra", pytest.approx(0.2 * kwh))


def test_what_cannot_be_left_out_is_halved() -> None:
    """Buy 80 of a and 10 of b: b alone lacks ports, a alone lacks power, and so does half of the 10 b."""
    skus = [
        sku("a", {"web": 1.0}, 5.0, peak_w=100.0),
        sku("b", {"web": 2.0}, 11.0, peak_w=150.0, ports=3),
    ]
    question = ask([work("web", 100.0)], skus, [Site("ams", power_w=9500.0, ports=120.0)])
    plan = exact(question)
    assert plan.objective == pytest.approx(80 * 5 + 10 * 11)
    first, second = alternatives(question, plan)
    assert (str(first.name), first.extra) == ("with at most 40 a", pytest.approx(40 * 5 + 30 * 11 - plan.objective))
    assert (str(second.name), second.extra) == ("with at most 20 a", pytest.approx(20 * 5 + 40 * 11 - plan.objective))
    assert check(question, first.plan) == check(question, second.plan) == []


def test_a_choice_that_takes_too_long_does_not_cost_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    question = three()
    plan = exact(question)
    tried = []

    def late(question: Question, *, caps: Caps, **more: Any) -> Plan | None:
        tried.append(caps)
        if len(tried) in (1, 3):
            raise FleetmarkError("no plan was found within 1 s")
        return best(question, caps=caps, **more)

    monkeypatch.setattr("fleetmark.planner.capacity.analysis.alternatives.best", late)
    others = alternatives(question, plan)
    assert len(tried) > 3 and len(others) == 2
    assert all(check(question, a.plan) == [] and a.extra > -1e-6 for a in others)


def test_no_alternative_where_nothing_else_can_be_bought() -> None:
    for demand in (3.0, 0.0):
        question = ask([work("web", demand)], [sku("s", {"web": 1.0}, 1.0)], [Site("ams")])
        assert alternatives(question, exact(question)) == []


def test_alternatives_of_a_question_of_some_size_hold() -> None:
    question = planning.question(3, 5, 3, 5, 300, seed=1)
    plan = solve(question)
    assert isinstance(plan, Plan)
    others = alternatives(question, plan, clock=Clock(30))
    assert others
    bought = {(s, k) for s, k, n in zip(*(plan.stock[c] for c in ("sku", "site", "buy")), strict=True) if n}
    for other in others:
        assert check(question, other.plan) == []
        theirs = {(s, k) for s, k, n in zip(*(other.plan.stock[c] for c in ("sku", "site", "buy")), strict=True) if n}
        assert bought - theirs
        assert other.least <= other.extra
        assert other.plan.objective >= plan.bound


def test_a_demand_is_worth_what_a_server_of_it_costs() -> None:
    question = ask([work("web", 10.0)], [sku("s", {"web": 2.0}, 100.0)], [Site("ams")])
    (binding,) = shadow_prices(question, exact(question))
    assert (str(binding.name), binding.unit, binding.more) == ("demand of web in 2027", "units", 2.0)
    assert binding.saves == pytest.approx(50)  # 100 for a server that serves 2


def test_power_is_worth_the_cheaper_servers_it_has_room_for() -> None:
    """Cheap servers draw 300 W, expensive ones 100 W: with 200 W more, a cheap one replaces an expensive one."""
    skus = [sku("cheap", {"web": 1.0}, 100.0, peak_w=300.0), sku("dear", {"web": 1.0}, 250.0, peak_w=100.0)]
    question = ask([work("web", 10.0, 5.0)], skus, [Site("ams", power_w=1800.0)])
    plan = exact(question)
    assert plan.objective == pytest.approx(4 * 100 + 6 * 250)
    bindings = {str(b.name): b for b in shadow_prices(question, plan)}
    power = bindings["power at ams in 2027"]
    assert (power.unit, power.more) == ("W", 300.0)
    more = exact(replace(question, sites={"ams": Site("ams", power_w=2000.0)}))
    assert power.saves == pytest.approx((plan.objective - more.objective) / 200)
    assert power.saves == pytest.approx(0.75)
    assert "power at ams in 2028" not in bindings  # half of it is free then


def test_budgets_rack_units_and_ports_have_their_prices() -> None:
    skus = [
        sku("cheap", {"web": 1.0}, 100.0, rack_units=2.0, ports=3, support=10.0),
        sku("dear", {"web": 1.0}, 250.0, rack_units=1.0, ports=1),
    ]
    for site, name, unit, more, saves in (
        (Site("ams", rack_units=14.0), "rack units at ams in 2027", "rack units", 2.0, 140.0),
        (Site("ams", ports=18.0), "ports at ams in 2027", "ports", 3.0, 140.0 / 2),
    ):
        question = ask([work("web", 10.0)], skus, [site])
        binding = {str(b.name): b for b in shadow_prices(question, exact(question))}[name]
        assert (binding.unit, binding.more) == (unit, more)
        assert binding.saves == pytest.approx(saves)
    thrifty = [sku("cheap", {"web": 1.0}, 100.0, support=90.0), sku("dear", {"web": 1.0}, 150.0)]
    question = ask([work("web", 10.0)], thrifty, [Site("ams")], budget=[1200.0])
    binding = {str(b.name): b for b in shadow_prices(question, exact(question))}["budget of 2027"]
    assert (binding.unit, binding.more) == ("EUR", 150.0)
    assert binding.saves == pytest.approx((3 * 90 - 3 * 50) / 150)  # three more of the expensive ones
    narrow = replace(question, budget=[], sites={"ams": Site("ams", budget=1200.0)})
    assert "budget of ams" in {str(b.name) for b in shadow_prices(narrow, exact(narrow))}


def test_the_margin_counts_and_the_most_weighty_remain() -> None:
    question = ask([work("web", 10.0, 20.0)], [sku("s", {"web": 2.0}, 100.0)], [Site("ams")], discount=0.1)
    plan = solve(question, gap=0, margin={"web": [1.0, 2.0]})
    assert isinstance(plan, Plan)
    assert plan.objective == pytest.approx(5 * 100 + 15 * 100 / 1.1)
    bindings = shadow_prices(question, plan)
    last = {str(b.name): b for b in bindings}["demand of web in 2028"]
    assert last.more == 1.0  # twice that, by its margin, is the work of a server
    assert last.saves == pytest.approx(100 / 1.1)
    assert len(shadow_prices(question, plan, limit=1)) == 1


def test_the_same_question_has_the_same_answer() -> None:
    """Plans, next best plans and prices follow from work, not from time; where time ended a search, that is told."""
    question = planning.question(2, 4, 3, 4, 200, seed=1)
    answers = []
    for seconds in (3_600.0, 36_000.0):  # no machine is so slow that time would end a search
        plan, clock = solve(question, seconds=seconds), Clock(seconds)
        assert isinstance(plan, Plan) and not plan.stopped
        others = alternatives(question, plan, clock=clock)
        answers.append((plan.objective, [o.plan.objective for o in others], shadow_prices(question, plan, limit=3)))
        assert not clock.stopped
    assert answers[0] == answers[1]
    assert len(answers[0][2]) == 3 and all(b.saves > 0 for b in answers[0][2])
    hurried = Clock(0.0)
    alternatives(question, plan, clock=hurried)
    assert hurried.stopped
