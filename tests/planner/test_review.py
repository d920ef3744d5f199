"""Reviews of deliveries: updated worths, what is owed, and the question and plan that remain."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Cohort, Plan, Question, Site
from fleetmark.planner.capacity.sku import Worth
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.review.later import plan_from, question_from
from fleetmark.planner.review.lots import deliveries, lots
from fleetmark.planner.review.orders import orders
from fleetmark.planner.review.origin import Origin
from fleetmark.planner.review.posterior import Measurement, posterior, promised
from fleetmark.planner.review.promise import promise
from fleetmark.planner.review.review import Finding, Verdict, findings, owed, replanned, updated, updates
from tests.planner.questions import ask, sku, work

INF = math.inf


def test_precisions_add_up() -> None:
    """Two normal estimates of a rate: the mean of the logarithms is weighted by 1 / variance."""
    prior = Worth(100.0, 0.02, origin=Origin("gen=new", benchmark="x", se=0.02))
    after = posterior(prior, [Measurement(95.0, 0.01, INF, (0, 4))])
    assert math.log(after.value) == pytest.approx((math.log(100) / 4 + math.log(95)) / (1 / 4 + 1), abs=1e-4)
    assert after.se == pytest.approx(0.02 / math.sqrt(5), rel=2e-3)
    assert math.isinf(after.df)


def test_few_degrees_of_freedom_are_the_product_of_two_densities() -> None:
    prior = Worth(1.0, 0.03, 2.0, origin=Origin("gen=new", benchmark="x", se=0.03, df=2.0))
    measured = Measurement(1.1, 0.01, 5.0, (0, 6))
    after = posterior(prior, [measured])

    def density(x: float) -> float:
        return float(stats.t.pdf(x / 0.03, 2) * stats.t.pdf((x - math.log(1.1)) / 0.01, 5))

    ends = after.estimate.interval
    assert ends is not None
    area = integrate.quad(density, -2, 2, points=[0, 0.09], limit=500)[0]
    inside = integrate.quad(density, math.log(ends[0]), math.log(ends[1]), points=[0.09], limit=500)[0]
    assert inside / area == pytest.approx(0.95, abs=0.01)
    assert after.value > 1.08  # the plan's estimate is too vague to pull it


def test_the_error_of_the_common_baseline_stays() -> None:
    """4 old hosts, 4 new ones: half of each variance is the baseline's, and only the rest is halved."""
    se = 0.02
    prior = Worth(1.8, se, INF, origin=Origin("gen=new", "gen=old", class_="cpu-int", se=se, hosts=(4, 4)))
    after = posterior(prior, [Measurement(1.8, se, INF, (4, 4))])
    assert after.se**2 == pytest.approx(se**2 / 2 + se**2 / 4, rel=5e-3)


def test_the_baseline_and_the_estimate_share_one_estimate_of_the_variance() -> None:
    """A measurement without weight leaves error and degrees of freedom as they are: halves of an error err together."""
    prior = Worth(1.8, 0.02, 10.0, origin=Origin("gen=new", "gen=old", class_="c", se=0.02, df=10.0, hosts=(6, 6)))
    after = posterior(prior, [Measurement(1.8, 1.0, 5.0, (10**9, 1))])
    assert (after.se, after.df) == pytest.approx((0.02, 10.0), rel=0.01)


def test_servers_that_are_others_replace_the_estimate() -> None:
    """10% slower at 1% and 1% error is no chance; 3% slower is, and is averaged."""
    prior = Worth(100.0, 0.01, INF, origin=Origin("gen=new", benchmark="x", se=0.01))
    assert posterior(prior, [Measurement(90.0, 0.01, INF, (0, 4))]).value == pytest.approx(90.0)
    assert posterior(prior, [Measurement(97.0, 0.01, INF, (0, 4))]).value == pytest.approx(math.sqrt(9700.0), rel=1e-4)


def test_a_workload_unlike_the_benchmarks_stays_as_uncertain() -> None:
    """The worth's error is 5%, that of its hosts 1%: measuring the benchmarks again leaves the rest."""
    prior = Worth(1.8, 0.05, INF, origin=Origin("gen=new", benchmark="x", se=0.01, hosts=(0, 4)))
    after = posterior(prior, [Measurement(1.77, 0.001, INF, (0, 50))])
    assert after.value == pytest.approx(1.77, rel=2e-3)
    assert after.se == pytest.approx(math.sqrt(0.05**2 - 0.01**2), rel=1e-3)


def test_a_figure_without_an_error_is_replaced() -> None:
    after = posterior(Worth(1.83), [Measurement(1.71, 0.01, 5.0, (6, 6))])
    assert after.value == pytest.approx(1.71)
    assert (after.se, after.df) == pytest.approx((0.01, 5.0))
    assert posterior(Worth(1.83), []) == Worth(1.83)


def test_later_reviews_remember_the_promise() -> None:
    prior = Worth(1.83, 0.02, 10.0, origin=Origin("gen=new", "gen=old", class_="cpu-int", se=0.02, df=10, hosts=(6, 6)))
    once = posterior(prior, [Measurement(1.80, 0.01, 5.0, (6, 6))])
    twice = posterior(once, [Measurement(1.79, 0.01, 5.0, (6, 6))])
    assert promised(prior) == promised(once) == promised(twice) == 1.83
    assert twice.se < once.se < prior.se


@pytest.mark.parametrize("sides", [(6, 6), (20, 3)])
def test_intervals_cover_the_true_worth(sides: tuple[int, int]) -> None:
    """Draw true worths from a comparison's interval, measure a lot with the same baseline, count what 90% cover."""
    rng, (a, b), spread, n = np.random.default_rng(11), sides, 0.03, 6
    df = a + b - 2.0
    se = spread * math.sqrt(1 / a + 1 / b)
    prior = Worth(1.83, se, df, origin=Origin("n", "o", class_="c", se=se, df=df, hosts=sides))
    trials, covered = 1000, 0
    for _ in range(trials):
        sigma = spread * math.sqrt(df / rng.chisquare(df))
        of_baseline = rng.normal(0, sigma / math.sqrt(a))
        truth = math.log(1.83) + of_baseline - rng.normal(0, sigma / math.sqrt(b))
        logs = rng.normal(truth - of_baseline, sigma, n)
        parts = (spread**2 / a, float(logs.var(ddof=1)) / n)
        measured_df = sum(parts) ** 2 / (parts[0] ** 2 / df + parts[1] ** 2 / (n - 1))
        after = posterior(prior, [Measurement(math.exp(logs.mean()), math.sqrt(sum(parts)), measured_df, (a, n))])
        ends = Estimate.of_error(after.value, after.se, after.df, level=0.9).interval
        assert ends is not None
        covered += ends[0] <= math.exp(truth) <= ends[1]
    assert 0.87 <= covered / trials <= 0.93


# --- what is owed ---------------------------------------------------------------------------------------------------


def test_servers_owed() -> None:
    """200 servers of 1.71 instead of 1.83 lack 200 x 0.12 / 1.71 = 14.04 servers."""
    missing = owed(200, 1.83, Estimate(1.71, 1.68, 1.74))
    assert missing.value == pytest.approx(14.035, abs=1e-3)
    assert (missing.lo, missing.hi) == pytest.approx((200 * 0.09 / 1.74, 200 * 0.15 / 1.68))


@pytest.mark.parametrize(
    ("value", "verdict", "servers"),
    [(1.71, Verdict.BELOW, 8), (1.80, Verdict.CANNOT_TELL, 0), (1.83, Verdict.KEPT, 0), (1.9, Verdict.KEPT, 0)],
)
def test_a_lot_is_below_if_its_whole_interval_is(value: float, verdict: Verdict, servers: int) -> None:
    q, plan = growing()
    delivery = deliveries(q, plan, ["new@2028=c"])[0]
    delivery = replace(delivery, lot=replace(delivery.lot, count=100))
    finding = findings(q, [(delivery, {"web": Measurement(value, 0.01, 20.0, (6, 6))})])[0]
    assert isinstance(finding, Finding)
    assert (finding.verdict, finding.servers) == (verdict, servers)
    assert finding.money == servers * 1000.0 * 0.9  # the price falls by 10% a year, and it was ordered in 2028
    assert finding.below == pytest.approx(stats.t.cdf(math.log(1.83 / value) / 0.01, 20))


# --- what remains ---------------------------------------------------------------------------------------------------


def growing(lead: int = 0) -> tuple[Question, Plan]:
    """Four years of growth; old servers that reach their age limit, new ones whose price falls."""
    old = sku("old", {"web": 1.0}, None, age_limit=5, support=10.0)
    new = sku("new", {"web": 1.83}, 1000.0, lead=lead, support=7.0, price_change=-0.1, residual=0.5)
    q = ask(
        [work("web", 80.0, 110.0, 140.0, 190.0)],
        [old, new],
        [Site("ams", budget=200_000.0)],
        fleet=[Cohort("old", "ams", 60, age=2), Cohort("old", "ams", 25, age=0), Cohort("new", "ams", 5, arrives=2)],
        discount=0.07,
        budget=(90_000.0, 80_000.0, 70_000.0, 60_000.0),
    )
    plan = solve(q, gap=0.0005)
    assert isinstance(plan, Plan)
    return q, plan


@pytest.mark.parametrize("lead", [0, 1])
@pytest.mark.parametrize("now", [0, 1, 2, 3])
def test_what_remains_of_a_plan_is_a_plan_of_what_remains(lead: int, now: int) -> None:
    q, plan = growing(lead)
    rest = question_from(q, plan, now)
    remaining = plan_from(rest, plan, now)
    assert check(rest, remaining) == []
    assert list(rest.periods) == list(q.periods[now:])
    servers = plan.stock[plan.stock["period"] >= now]["installed"].tolist()
    assert remaining.stock["installed"].tolist() == servers
    running = ["energy", "support", "space", "migration", "carbon", "purchase"]
    present = plan.costs[(plan.costs["period"] >= now) & plan.costs["kind"].isin(running)]["present"].sum()
    part = remaining.costs[remaining.costs["kind"].isin(running)]["present"].sum()
    assert part * q.weight(now) == pytest.approx(present)


def test_the_rest_can_be_planned_at_no_higher_cost() -> None:
    q, plan = growing()
    rest = question_from(q, plan, 1)
    again = solve(rest, gap=0.0005)
    assert isinstance(again, Plan)
    assert again.objective <= plan_from(rest, plan, 1).objective * 1.001


def test_money_that_was_spent_is_off_the_budget_of_a_site() -> None:
    q, plan = growing()
    spent = sum(o.money for o in orders(q, plan) if o.period < 2)
    assert spent > 0
    assert question_from(q, plan, 2).sites["ams"].budget == pytest.approx(200_000.0 - spent)
    assert question_from(q, plan, 2).budget == (70_000.0, 60_000.0)


def test_carbon_that_was_emitted_is_off_its_limit() -> None:
    q, plan = growing()
    q = replace(q, grid=0.4, skus={**q.skus, "new": replace(q.skus["new"], embodied=1200.0)})
    emitted = Ledger(q, plan.stock, plan.use).carbon
    rest = question_from(replace(q, carbon_limit=emitted), plan, 2)
    later = plan_from(rest, plan, 2)
    left = Ledger(rest, later.stock, later.use).carbon
    assert 0 < left < emitted
    assert rest.carbon_limit == pytest.approx(left)


def test_figures_by_period_and_prices_go_on() -> None:
    q, plan = growing()
    new = replace(q.skus["new"], prices=(None, 1000.0, 900.0, None), price=1000.0, breaks=((50, 800.0),))
    series = replace(
        q,
        skus={**q.skus, "new": new},
        energy_price=(0.1, 0.2, 0.3, 0.4),
        sites={"ams": Site("ams", power_w=(1.0,) * 4)},
    )
    rest = question_from(series, plan, 2)
    assert rest.energy_price == (0.3, 0.4)
    assert rest.sites["ams"].power_w == (1.0, 1.0)
    for t in (0, 1):
        later, before = rest.skus["new"], series.skus["new"]
        for count in (1, 60):
            price = before.price_in(count) * series.price_level("new", t + 2)
            assert later.price_in(count) * rest.price_level("new", t) == pytest.approx(price)


# --- lots -----------------------------------------------------------------------------------------------------------


def test_lots_are_named_by_their_arrival() -> None:
    q, plan = growing(lead=1)
    named = {lot.name: lot for lot in lots(q, plan)}
    assert {lot.ordered for lot in named.values() if lot.name == "new@2028"} == {0}
    on_order = [lot for lot in lots(q, plan) if lot.ordered is None]
    assert [(lot.name, lot.count) for lot in on_order] == [("new@2029", 5)]


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (["new@2031=c"], "lot 'new@2031' was never planned"),
        (["old@2028=c"], "lot 'old@2028' was never planned"),
        (["new@2027=c"], "the order of 2027 arrives as new@2028"),
        (["new=c"], "write it as SKU@PERIOD or SKU@PERIOD/SITE"),
        (["new@2028"], "write it as LOT=CAMPAIGN"),
        (["new@2028=a", "new@2028=b"], "new@2028 has these servers already"),
        (["new@2028=new@2029", "new@2029=new@2028"], "in a circle (new@2028 -> new@2029 -> new@2028)"),
        (["new@2028=new@2028"], "in a circle (new@2028 -> new@2028)"),
        (["new@2028=new@2029"], "add --delivered new@2029=CAMPAIGN"),
    ],
)
def test_lots_that_are_refused(written: list[str], sentence: str) -> None:
    q, plan = growing(lead=1)
    with pytest.raises(FleetmarkError) as error:
        deliveries(q, plan, written)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_lot_may_stand_for_another_and_counts_once() -> None:
    q, plan = growing(lead=1)
    both = deliveries(q, plan, ["new@2028=c1", "new@2029=new@2028"])
    assert [(d.campaign, d.like) for d in both] == [("c1", ""), ("c1", "new@2028")]
    measured = Measurement(1.7, 0.02, 10.0, (6, 6))
    one = updates(q, [(both[0], {"web": measured})])
    two = updates(q, [(d, {"web": measured}) for d in both])
    assert two[0].after.se == one[0].after.se
    assert list(two[0].lots) == ["new@2028", "new@2029"]
    assert updated(q, two).skus["new"].worth["web"] == two[0].after


def test_periods_that_no_order_reaches_are_named() -> None:
    """With a lead time of a year, nothing can be done for the first year if its servers are slow."""
    q, _plan = growing(lead=1)
    short = replace(q, workloads={"web": replace(q.workloads["web"], point=(150.0, 110.0, 140.0, 190.0))})
    again, late = replanned(short, lambda x: solve(x, gap=0.01))
    assert isinstance(again, Plan)
    assert late == ("2027",)
    assert replanned(q, lambda x: solve(x, gap=0.01))[1] == ()


@pytest.mark.parametrize("reviews", [0, 1, 3, 12])
def test_the_plan_and_its_reviews_keep_one_promise_together(reviews: int) -> None:
    """The shares that may fail add up to what was promised; the last review has most, and the others equal parts."""
    failing = [1 - promise(0.95, reviews, done) for done in range(reviews + 1)]
    assert sum(failing) == pytest.approx(0.05)
    assert max(failing) == failing[-1]
    assert failing[:-1] == pytest.approx([failing[0]] * reviews)
    q = replace(ask([work("web", 1.0)], [sku("s", {"web": 1.0}, 1.0)], [Site("ams")]), reviews=reviews)
    assert q.promise == pytest.approx(1 - failing[0])
    assert replace(q, reviewed=reviews).promise == pytest.approx(1 - failing[-1])
