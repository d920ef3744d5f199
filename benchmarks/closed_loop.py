"""Simulate procurements whose lots are measured on delivery, beside the same procurements planned once.

``python -m benchmarks.closed_loop [--procurements 1000] [--seed 1] [--jobs 4]``. A comparison of a few hosts gives
the worth of a new server with its interval. The true worth of each procurement is drawn from that interval.

- Open loop: the plan is made once, with the margin that keeps its promise under the interval, and bought as planned.
- Closed loop: the lot of each period is measured on some of its hosts with the same baseline, the worth is updated, and
  the rest is planned again. The share of procurements that may fall short is divided among the plan and its reviews as
  ``reviews`` of a question does, so that together they keep the same promise.
- Open loop as careful: planned once for the least share of futures at which no more procurements fall short than in the
  closed loop. Its cost is the fair comparison, because the closed loop keeps more than it promised.

A procurement falls short if in any period the servers in place do not serve the demand at their utilisation. Its cost
is the present value of purchases and support. Demand is known, so only the worth is uncertain.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from fleetmark.planner.capacity.question import Cohort, Plan, Question, Site, Workload
from fleetmark.planner.capacity.sku import Sku, Worth
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.estimate import Estimate, deviate
from fleetmark.planner.review.later import question_from
from fleetmark.planner.review.origin import Origin
from fleetmark.planner.review.posterior import Measurement, posterior

PROMISE = 0.95
STEPS = 20  # of the search for a plan as careful
COVERED = 0.9  # level of the intervals whose coverage is counted
NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class Setting:
    """``hosts`` of the baseline and of the evaluated servers, ``lot_hosts`` measured of each lot; ``spread``: the
    standard deviation of hosts as the comparison estimated it.
    """

    name: str
    hosts: tuple[int, int]
    lot_hosts: int
    spread: float

    @property
    def worth(self) -> Worth:
        """Return the worth from the comparison, one new server for 1.83 old ones."""
        a, b = self.hosts
        se, df = self.spread * math.sqrt(1 / a + 1 / b), a + b - 2.0
        return Worth(
            1.83, se, df, origin=Origin("gen=new", "gen=old", class_="cpu-int", se=se, df=df, hosts=self.hosts)
        )


SETTINGS = (
    Setting("20 old, 3 new; 8 of each lot", (20, 3), 8, 0.03),
    Setting("6 old, 6 new; 6 of each lot", (6, 6), 6, 0.03),
)


def question(worth: Worth) -> Question:
    """Return four half-years of growing demand, 1,500 old servers in place, and one new SKU."""
    periods = ("2027-H1", "2027-H2", "2028-H1", "2028-H2")
    web = Workload("web", "old servers", (1100.0, 1300.0, 1550.0, 1800.0), (0.0,) * 4, 0.65)
    old = Sku("old", {"web": Worth(1.0)}, None, 0.0, 0.0, rack_units=0.0, support=900)
    new = Sku("new", {"web": worth}, 11_800, 0.0, 0.0, rack_units=0.0, support=700)
    fleet = (Cohort("old", "ams", 1500),)
    return Question(
        "EUR", "2026-12-01", periods, 0.5, {"web": web}, skus={"old": old, "new": new}, sites={"ams": Site("ams")}, fleet=fleet, discount=0.07,
        quantile=PROMISE, reviews=len(periods) - 1,
    )  # fmt: skip


def planned(q: Question, quantile: float) -> Plan:
    """Return the cheapest plan that meets demand in this share of futures.

    Only one worth is uncertain, so these are the futures in which it is at least its quantile: no search for a margin is
    needed.
    """
    worth = q.skus["new"].worth["web"]
    low = worth.value * math.exp(-worth.se * deviate(2 * quantile - 1, worth.df))
    careful = replace(q.skus["new"], worth={"web": Worth(low)})
    plan = solve(replace(q, skus={**q.skus, "new": careful}), gap=0.001)
    assert isinstance(plan, Plan)
    return plan


def bought(plan: Plan, period: int) -> int:
    """Return the new servers ordered in a period."""
    stock = plan.stock
    return int(stock.loc[(stock["sku"] == "new") & (stock["period"] == period), "buy"].sum())


def cost(q: Question, lots: list[int]) -> float:
    """Return the present value of purchases and support of these lots, and of the servers in place."""
    total, installed = 0.0, 0
    for t, count in enumerate(lots):
        installed += count
        place = sum(c.count for c in q.fleet) * q.skus["old"].support + installed * q.skus["new"].support
        total += q.weight(t) * (count * (q.skus["new"].price or 0.0) + q.years * place)
    return total


def short(q: Question, lots: list[int], worth: float) -> list[bool]:
    """Return for each period whether the servers in place serve less than the demand."""
    web = q.workloads["web"]
    place = sum(c.count for c in q.fleet)
    work = [(place + worth * n) * web.utilisation for n in np.cumsum(lots)]
    return [w < d * (1 - NEAR) for w, d in zip(work, web.point, strict=True)]


@dataclass(frozen=True, slots=True)
class Procurement:
    """The lots of one procurement by period in both loops, the true worth, and the worths after each review."""

    worth: float
    open_lots: list[int]
    closed_lots: list[int]
    worths: list[Worth]


def procure(setting: Setting, opened: list[int], first: Plan, rng: np.random.Generator) -> Procurement:
    """Return one procurement with a true worth from the comparison's interval. ``first``: the closed loop's first plan."""
    prior = setting.worth
    a, b = setting.hosts
    sigma = setting.spread * math.sqrt((a + b - 2) / rng.chisquare(a + b - 2))
    of_baseline = rng.normal(0, sigma / math.sqrt(a))  # the error of the baseline's mean, in every comparison with it
    truth = math.log(prior.value) + of_baseline - rng.normal(0, sigma / math.sqrt(b))
    q, plan = question(prior), first
    periods = len(q.periods)
    lots, worths, seen = [bought(plan, 0)], [], list[Measurement]()
    for _ in range(1, periods):
        if lots[-1]:
            seen.append(measure(setting, truth - of_baseline, min(setting.lot_hosts, lots[-1]), sigma, rng))
        worths.append(posterior(prior, seen))
        new = replace(q.skus["new"], worth={"web": worths[-1]})
        q = question_from(replace(q, skus={**q.skus, "new": new}, reviewed=q.reviewed + 1), plan, 1)
        plan = planned(q, q.promise)
        lots.append(bought(plan, 0))
    return Procurement(math.exp(truth), opened, lots, worths)


def measure(setting: Setting, mean: float, hosts: int, sigma: float, rng: np.random.Generator) -> Measurement:
    """Return a lot's worth, measured on some of its hosts; ``mean`` is the logarithm of its ratio to the baseline."""
    logs = rng.normal(mean, sigma, hosts)
    a, b = setting.hosts
    parts = (setting.spread**2 / a, float(logs.var(ddof=1)) / hosts)
    df = sum(parts) ** 2 / (parts[0] ** 2 / (a + b - 2) + parts[1] ** 2 / (hosts - 1))
    return Measurement(math.exp(float(logs.mean())), math.sqrt(sum(parts)), df, (a, hosts))


def covers(worth: Worth, truth: float) -> bool:
    """Return whether the interval of level ``COVERED`` has the true worth."""
    estimate = Estimate.of_error(worth.value, worth.se, worth.df, level=COVERED)
    assert estimate.lo is not None and estimate.hi is not None
    return estimate.lo <= truth <= estimate.hi


@dataclass(kw_only=True, frozen=True, slots=True)
class Summary:
    """The results of a setting: mean costs, procurements that fall short, and the coverage of intervals."""

    setting: Setting
    procurements: int
    open_cost: float
    careful_cost: float  # of the open loop that falls short no more often than the closed one
    careful: float  # the share of futures for which that one is planned
    closed_cost: float
    saved_error: float  # standard error of the mean saving, as a share of the open loop's cost
    open_short: int
    careful_short: int
    closed_short: int
    prior_covered: float
    covered: float
    narrower: float  # standard error of the worth after the first lot over that of the comparison
    seconds: float


def several(setting: Setting, opened: list[int], first: Plan, count: int, seeds: tuple[int, int]) -> list[Procurement]:
    """Return ``count`` procurements with random numbers of their own."""
    rng = np.random.default_rng(seeds)
    return [procure(setting, opened, first, rng) for _ in range(count)]


def simulate(setting: Setting, procurements: int, seed: int, jobs: int) -> Summary:
    """Return the results of a setting, from as many processes as ``jobs``."""
    began = time.perf_counter()
    q = question(setting.worth)
    opened = lots_once(q, PROMISE)
    first = planned(q, q.promise)
    counts = [len(part) for part in np.array_split(range(procurements), jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        parts = [pool.submit(several, setting, opened, first, n, (seed, j)) for j, n in enumerate(counts)]
        done = [procurement for part in parts for procurement in part.result()]
    closed_short = sum(any(short(q, p.closed_lots, p.worth)) for p in done)
    careful = as_careful(q, [p.worth for p in done], closed_short)
    once = lots_once(q, careful)
    costs = [(cost(q, p.open_lots), cost(q, p.closed_lots)) for p in done]
    open_cost, closed_cost = (statistics.mean(column) for column in zip(*costs, strict=True))
    return Summary(
        setting=setting,
        procurements=procurements,
        open_cost=open_cost,
        careful_cost=cost(q, once),
        careful=careful,
        closed_cost=closed_cost,
        saved_error=statistics.stdev(a - b for a, b in costs) / math.sqrt(procurements) / open_cost,
        open_short=sum(any(short(q, p.open_lots, p.worth)) for p in done),
        careful_short=sum(any(short(q, once, p.worth)) for p in done),
        closed_short=closed_short,
        prior_covered=statistics.mean(covers(setting.worth, p.worth) for p in done),
        covered=statistics.mean(covers(w, p.worth) for p in done for w in p.worths[:1]),
        narrower=statistics.mean(p.worths[0].se for p in done) / setting.worth.se,
        seconds=time.perf_counter() - began,
    )


def lots_once(q: Question, quantile: float) -> list[int]:
    """Return the new servers ordered in each period by a plan made once."""
    plan = planned(q, quantile)
    return [bought(plan, t) for t in range(len(q.periods))]


def as_careful(q: Question, worths: Sequence[float], limit: int) -> float:
    """Return the least share of futures for which a plan made once falls short in at most ``limit`` procurements."""
    low, high = 0.5, 0.9999
    for _ in range(STEPS):
        middle = (low + high) / 2
        lots = lots_once(q, middle)
        low, high = (low, middle) if sum(any(short(q, lots, w)) for w in worths) <= limit else (middle, high)
    return high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--procurements", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    for setting in SETTINGS:
        s = simulate(setting, options.procurements, options.seed, options.jobs)
        print(
            f"{setting.name}: cost {s.open_cost:,.0f} open, {s.closed_cost:,.0f} closed "
            f"({s.closed_cost / s.open_cost - 1:+.2%} ± {1.96 * s.saved_error:.2%}); short {s.open_short} open, "
            f"{s.closed_short} closed of {s.procurements}; as careful ({s.careful:.2%}, {s.careful_short} short) "
            f"{s.careful_cost:,.0f}, closed {s.closed_cost / s.careful_cost - 1:+.2%}; {COVERED:.0%} intervals cover {s.prior_covered:.1%} before, "
            f"{s.covered:.1%} after; errors {s.narrower:.2f} as wide; {s.seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
