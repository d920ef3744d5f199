"""Questions without a plan: the limits in conflict, by hand and against trying every set."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from benchmarks import planning
from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.analysis import limits
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.best import best
from fleetmark.planner.capacity.question import Cohort, Plan, Question, Site
from fleetmark.planner.capacity.solve import refuse, solve
from tests.planner.brute import small
from tests.planner.questions import ask, sku, work


def conflict_of(question: Question, **more: float) -> Conflict:
    conflict = solve(question, **more)  # type: ignore[arg-type]
    assert isinstance(conflict, Conflict)
    return conflict


def possible(question: Question) -> bool:
    return best(question, gap=0, seconds=600, margin={}) is not None


def names(conflict: Conflict) -> set[str]:
    return {str(limit.name) for limit in conflict.limits}


def relaxations(conflict: Conflict) -> dict[str, tuple[float | None, str]]:
    return {str(limit.name): (limit.relax, limit.unit) for limit in conflict.limits}


def test_power_against_demand() -> None:
    """10 units need 10 servers of 300 W if there are 2500 W: 8 fit."""
    one = sku("s", {"web": 1.0}, 100.0, peak_w=300.0)
    conflict = conflict_of(ask([work("web", 4.0, 10.0)], [one], [Site("ams", power_w=2500.0)]))
    assert conflict.smallest
    needed = relaxations(conflict)
    assert set(needed) == {"power at ams", "demand of web in 2028"}
    assert needed["power at ams"] == (pytest.approx(500, rel=1e-4), "W")
    assert needed["demand of web in 2028"] == (pytest.approx(2, rel=1e-4), "units")
    assert {str(limit.name): limit.cost for limit in conflict.limits} == pytest.approx(
        {"power at ams": 1000.0, "demand of web in 2028": 800.0}
    )


def test_each_kind_of_limit_is_named_and_relaxed() -> None:
    one = sku("s", {"web": 1.0}, 100.0, peak_w=10.0, rack_units=2.0, ports=2)
    for site, name, relax, unit in (
        (Site("ams", rack_units=7.0), "rack units at ams", 1.0, "rack units"),
        (Site("ams", ports=5.0), "ports at ams", 3.0, "ports"),
        (Site("ams", budget=320.0), "budget of ams", 80.0, "EUR"),
    ):
        needed = relaxations(conflict_of(ask([work("web", 4.0)], [one], [site])))
        assert needed == {
            name: (pytest.approx(relax, rel=1e-4), unit),
            "demand of web in 2027": (pytest.approx(1, abs=1.001), "units"),
        }
    poor = ask([work("web", 4.0)], [one], [Site("ams")], budget=[250.0])
    assert relaxations(conflict_of(poor))["budget of 2027"] == (pytest.approx(150, rel=1e-4), "EUR")
    late = ask([work("web", 1.0, 1.0)], [replace(one, lead=1)], [Site("ams")])
    assert relaxations(conflict_of(late))["lead time of s"] == (1.0, "periods")
    old = sku("old", {"web": 1.0}, age_limit=4)
    aged = ask([work("web", 2.0, 2.0, 2.0)], [old], [Site("ams")], fleet=[Cohort("old", "ams", 2, 2)])
    assert relaxations(conflict_of(aged))["age limit of old"] == (1.0, "periods")
    crowded = ask([work("web", 4.0)], [one], [Site("ams", rack_units=9.0, spares=2)])
    assert relaxations(conflict_of(crowded))["spares at ams"] == (2.0, "servers")
    bulk = ask([work("web", 1.0)], [replace(one, minimum_order=5)], [Site("ams", budget=320.0)])
    assert relaxations(conflict_of(bulk))["minimum order of s"] == (2.0, "servers")


def test_survival_and_the_sites_of_a_workload() -> None:
    one = sku("s", {"web": 1.0}, 100.0)
    question = ask([work("web", 4.0, sites=frozenset({"ams"}))], [one], [Site("ams"), Site("fra")], survive=True)
    needed = relaxations(conflict_of(question))
    assert set(needed) == {"survival of a lost failure domain", "sites of web", "demand of web in 2027"}
    assert needed["survival of a lost failure domain"] == (1.0, "failure domains")
    assert needed["sites of web"] == (1.0, "more sites")


def test_two_separate_troubles_are_not_solved_by_easing_one() -> None:
    skus = [sku("a", {"web": 1.0}, 100.0, lead=1), sku("b", {"db": 1.0}, 100.0, lead=1)]
    conflict = conflict_of(ask([work("web", 4.0, 4.0), work("db", 4.0, 4.0)], skus, [Site("ams")]))
    assert names(conflict) in (
        {"demand of web in 2027", "lead time of a"},
        {"demand of db in 2027", "lead time of b"},
    )
    assert [(limit.relax, limit.cost) for limit in conflict.limits] == [(None, None)] * 2
    other = (
        {"demand of db in 2027", "lead time of b"}
        if "lead time of a" in names(conflict)
        else {"demand of web in 2027", "lead time of a"}
    )
    assert [set(map(str, limit.beside)) for limit in conflict.limits] == [other] * 2


def test_the_margin_is_in_the_demand() -> None:
    one = sku("s", {"web": 1.0}, 100.0)
    conflict = conflict_of(ask([work("web", 4.0)], [one], [Site("ams", budget=400.0)]), margin={"web": 1.5})  # type: ignore[arg-type]
    needed = relaxations(conflict)
    assert needed["budget of ams"] == (pytest.approx(200, rel=1e-4), "EUR")
    assert needed["demand of web in 2027"] == (pytest.approx(4 / 3, rel=1e-4), "units")


def test_named_limits_cannot_hold_together_but_any_fewer_can() -> None:
    """Small questions: sets are irreducible and the smallest; relaxations suffice, and smaller ones do not."""
    conflicts = 0
    for seed in range(60):
        question = small(seed)
        try:
            refuse(question, {})
        except FleetmarkError:
            continue
        conflict = solve(question, gap=0)
        if isinstance(conflict, Plan):
            continue
        conflicts += 1
        every = limits.limits(question)
        mine = [limit for limit in every if limits.name(question, limit) in names(conflict)]
        assert len(mine) == len(conflict.limits), f"seed {seed}"
        assert not possible(limits.without(question, set(every) - set(mine))), f"seed {seed}"
        for limit in mine:
            assert possible(limits.without(question, set(every) - set(mine) | {limit})), f"seed {seed}: {limit}"
        if conflict.smallest and len(every) < 7:
            for fewer in itertools.combinations(every, len(mine) - 1):
                assert possible(limits.without(question, set(every) - set(fewer))), f"seed {seed}: {fewer}"
        for limit, member in zip(
            mine,
            sorted(conflict.limits, key=lambda t: [limits.name(question, m) for m in mine].index(t.name)),
            strict=True,
        ):
            alone = possible(limits.without(question, [limit]))
            assert (member.relax is not None) == alone, f"seed {seed}: {limit}"
            if member.relax is not None and limit[0] in limits.AMOUNTS:
                assert possible(limits.loosened(question, limit, member.relax)), f"seed {seed}: {limit}"
                assert not possible(limits.loosened(question, limit, member.relax * 0.99)), f"seed {seed}: {limit}"
    assert conflicts > 10


def test_a_question_of_some_size_gets_its_conflict_in_time() -> None:
    question = planning.question(4, 6, 4, 6, 400, seed=1)
    sites = {k: replace(site, power_w=(site.power_w or 0) * 0.12) for k, site in question.sites.items()}
    conflict = conflict_of(replace(question, sites=sites), seconds=600)
    assert any(name.startswith("power at") for name in names(conflict))
    assert any(name.startswith("demand of") for name in names(conflict))
    assert len(conflict.limits) < 15
