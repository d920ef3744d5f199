"""The effects of inputs on cost, against hand-worked changes of one input."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from fleetmark.planner.capacity.analysis.tornado import Effect, tornado
from fleetmark.planner.capacity.clock import Clock
from fleetmark.planner.capacity.question import Plan, Question, Site, Workload
from fleetmark.planner.capacity.sku import Sku, Worth

SE = 0.01


def question() -> Question:
    """100 servers of the one SKU worth buying, at 10000 each and no other cost; the dear one is never bought."""
    work = Workload("web", "x", (120.0,), (0.05,), 0.6)
    cheap = Sku("cheap", {"web": Worth(2.0, SE)}, 10_000, 0, 0, rack_units=1)
    dear = Sku("dear", {"web": Worth(2.0)}, 20_000, 0, 0, rack_units=1)
    return Question(
        "EUR", "2026-11-01", ["P0"], 1.0, {"web": work}, skus={"cheap": cheap, "dear": dear}, sites={"a": Site("a")}
    )


def plan() -> Plan:
    stock = pd.DataFrame([{"sku": "cheap", "site": "a", "period": 0, "buy": 100, "installed": 100, "active": 100}])
    use = pd.DataFrame([{"sku": "cheap", "site": "a", "workload": "web", "period": 0, "servers": 100.0}])
    costs = pd.DataFrame([{"period": 0, "kind": "purchase", "money": 1e6, "present": 1e6}])
    return Plan(stock, use, costs, 1e6, 1e6, gap=0.0, seconds=0.0)


def by_name(effects: list[Effect]) -> dict[str, Effect]:
    return {e.name: e for e in effects}


def test_each_input_by_hand() -> None:
    effects = tornado(question(), plan())
    assert [e.size for e in effects] == sorted((e.size for e in effects), reverse=True)
    effect_by_name = by_name(effects)
    price, demand, worth = (
        effect_by_name["price of cheap"],
        effect_by_name["demand of web"],
        effect_by_name["worth of cheap for web"],
    )
    assert (price.at_low, price.at_high) == pytest.approx((-1e5, 1e5))
    up = math.exp(1.6449 * 0.05)
    assert demand.known and (demand.at_low, demand.at_high) == pytest.approx(
        (1e6 * (1 / up - 1), 1e6 * (up - 1)), rel=1e-3
    )
    sure = math.exp(1.6449 * SE)
    assert (worth.at_low, worth.at_high) == pytest.approx((1e6 * (sure - 1), 1e6 * (1 / sure - 1)), rel=1e-3)
    assert (
        effect_by_name["price of dear"].size
        == effect_by_name["worth of dear for web"].size
        == pytest.approx(0, abs=1e-3)
    )
    use = effect_by_name["utilisation of web"]
    assert (use.low, use.high, use.at_high) == pytest.approx((0.9, 1.1, 1e6 * (1 / 1.1 - 1)))
    assert "energy price" not in effect_by_name


def test_the_cap_of_utilisation_holds() -> None:
    q = question()
    q = replace(q, workloads={"web": replace(q.workloads["web"], utilisation=0.85)})
    use = by_name(tornado(q, plan()))["utilisation of web"]
    assert use.high == 1 and use.at_high == pytest.approx(0, abs=1e-3)


def test_a_worse_sku_makes_room_for_the_next() -> None:
    """If the cheap one is worth little, the dear one bounds the loss."""
    q = question()
    unsure = replace(q.skus["cheap"], worth={"web": Worth(2.0, 1.0)})
    worth = by_name(tornado(replace(q, skus=dict(q.skus) | {"cheap": unsure}), plan()))["worth of cheap for web"]
    assert worth.at_low == pytest.approx(1e6)


def test_the_machine_that_demand_is_counted_in_is_worth_one() -> None:
    q = question()
    unit = replace(q.skus["dear"], worth={"web": Worth(1.0)})
    names = by_name(tornado(replace(q, skus=dict(q.skus) | {"dear": unit}), plan()))
    assert "worth of cheap for web" in names and "worth of dear for web" not in names


def test_an_end_without_a_plan_comes_first() -> None:
    q = replace(question(), sites={"a": Site("a", rack_units=103)})
    effects = tornado(q, plan())
    assert effects[0].size == math.inf
    assert by_name(effects)["demand of web"].at_high is None and by_name(effects)["demand of web"].at_low is not None


def test_a_margin_is_not_counted_on_top_of_the_doubt_it_is_for() -> None:
    """110 servers fit, for a demand of 100 or 108.6 servers, but not for 108.6 and the margin."""
    q = replace(question(), sites={"a": Site("a", rack_units=115)})
    effect_by_name = by_name(tornado(q, replace(plan(), margin={"web": 1.1})))
    up = math.exp(1.6449 * 0.05)
    assert effect_by_name["demand of web"].at_high == pytest.approx(1e6 * (up - 1), rel=1e-3)
    assert effect_by_name["worth of cheap for web"].at_low == pytest.approx(1e6 * (math.exp(1.6449 * SE) - 1), rel=1e-3)
    assert effect_by_name["price of cheap"].at_high == pytest.approx(1.1e5)  # a price is paid for the margin too
    assert effect_by_name["utilisation of web"].at_low is None  # and servers that do less need it still


def test_energy_and_few_inputs_in_little_time() -> None:
    q = question()
    hot = {n: replace(s, idle_w=100, peak_w=100) for n, s in q.skus.items()}
    q = replace(q, skus=hot, energy_price=0.2, pue=1.5)
    energy = by_name(tornado(q, plan()))["energy price"]
    assert energy.at_high == pytest.approx(0.1 * 100 * 100 * 8.766 * 0.2 * 1.5, rel=1e-6)
    assert len(tornado(q, plan(), limit=2)) == 2
    ticks = iter(range(1000))
    assert len(tornado(q, plan(), clock=Clock(2.5, lambda: float(next(ticks))))) == 2


def test_what_cannot_be_met_has_no_tornado() -> None:
    assert tornado(replace(question(), sites={"a": Site("a", rack_units=10)}), plan()) == []
