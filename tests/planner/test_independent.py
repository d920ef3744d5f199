"""Plans against an independent programme for HiGHS: servers by order and age, and work by failure.

The planner's programme has one stock per SKU and site. This one follows every order on its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy import optimize, sparse

from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.question import Cohort, Plan, Question, Site
from fleetmark.planner.capacity.solve import solve
from tests.planner.questions import ask, sku, work

HOURS = 8766
GAP = 5e-5


@dataclass
class Programme:
    """Collect variables and rows by name, and minimise the cost."""

    costs: list[float] = field(default_factory=list)
    maxima: list[float] = field(default_factory=list)
    integral: list[int] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)

    def variable(self, cost: float = 0.0, maximum: float = math.inf, integral: bool = False) -> int:
        self.costs.append(cost)
        self.maxima.append(maximum)
        self.integral.append(int(integral))
        return len(self.costs) - 1

    def row(self, terms: list[tuple[int, float]], low: float = -math.inf, high: float = math.inf) -> None:
        by_variable: dict[int, float] = {}
        for variable, factor in terms:
            by_variable[variable] = by_variable.get(variable, 0.0) + factor
        self.rows.append((by_variable, low, high))

    def least(self) -> float:
        matrix = sparse.lil_array((len(self.rows), len(self.costs)))
        for n, (terms, _, _) in enumerate(self.rows):
            for variable, factor in terms.items():
                matrix[n, variable] = factor
        limits = optimize.LinearConstraint(
            matrix.tocsr(), [low for _, low, _ in self.rows], [high for _, _, high in self.rows]
        )
        bounds = optimize.Bounds(np.zeros(len(self.costs)), np.array(self.maxima))
        answer = optimize.milp(
            self.costs, constraints=limits, bounds=bounds, integrality=self.integral, options={"mip_rel_gap": GAP}
        )
        assert answer.status == 0, answer.message
        return float(answer.fun)


def least(q: Question) -> float:
    """Return the least present value of a question without lead times, lots, price breaks and pools."""
    p, span = Programme(), range(len(q.periods))
    discount = [(1 + q.discount) ** (-q.years * t) for t in span]
    carbon: dict[str, list[tuple[int, float]]] = {}
    year = [name[:4] for name in q.periods]

    def emits(t: int, variable: int, kg: float) -> None:
        carbon.setdefault(year[t], []).append((variable, kg))
        p.costs[variable] += discount[t] * kg * q.carbon_price / 1000

    running: dict[tuple[str, int], list[tuple[int, float]]] = {(w, t): [] for w in q.workloads for t in span}
    ready: dict[tuple[str, int, str], list[tuple[int, float]]] = {}
    for s, k in itertools.product(q.skus.values(), q.sites.values()):
        installed: list[list[int]] = [[] for _ in span]
        every_year = q.years * (s.rent + s.support + s.space)
        orders = [(c.count, -c.age) for c in q.fleet if (c.sku, c.site) == (s.name, k.name)]
        orders += [(None, t) for t in span] if s.price is not None else []
        for count, begin in orders:  # the servers of one order that remain in each period
            maximum, before = math.inf if count is None else float(count), None
            for t in range(max(begin, 0), len(span)):
                if s.age_limit is not None and t - begin >= s.age_limit:
                    break
                left = p.variable(discount[t] * every_year, maximum, integral=True)
                installed[t].append(left)
                if before is not None:
                    p.row([(left, 1.0), (before, -1.0)], high=0.0)
                    if t - begin < s.term:
                        p.row([(left, 1.0), (before, -1.0)], low=0.0)
                elif count is None:
                    p.costs[left] += discount[t] * (s.price or 0.0)
                    emits(t, left, s.embodied)
                before = left
        for t in span:
            withheld = k.spare_share + (k.maintenance[t] if isinstance(k.maintenance, tuple) else k.maintenance)
            energy = HOURS * q.years * q.pue / 1000
            money = energy * float(np.atleast_1d(q.energy_price)[min(t, np.size(q.energy_price) - 1)])
            active = p.variable(discount[t] * money * s.idle_w, integral=True)
            emits(t, active, energy * s.idle_w * q.grid)
            in_use = p.variable(maximum=1.0, integral=True)
            p.row([(active, 1.0), (in_use, -10_000.0)], high=0.0)
            p.row([(active, 1.0), (in_use, float(k.spares)), *((n, withheld - 1) for n in installed[t])], high=0.0)
            shares = []
            for w, worth in s.worth.items():
                used = q.workloads[w].utilisation
                works = p.variable(discount[t] * money * (s.peak_w - s.idle_w) * used)
                emits(t, works, energy * (s.peak_w - s.idle_w) * used * q.grid)
                share = p.variable()
                p.row([(works, 1.0), (share, -1.0)], high=0.0)
                shares.append((share, 1.0))
                running[w, t].append((works, worth.value * used))
                ready.setdefault((w, t, k.name), []).append((share, worth.value * used))
            p.row([*shares, (active, -1.0)], high=0.0)
    for (w, t), terms in running.items():
        demand = q.workloads[w].point[t]
        p.row(terms, low=demand)
        if q.survive and not q.workloads[w].availability:
            for lost in itertools.combinations(sorted({k.domain or k.name for k in q.sites.values()}), int(q.survive)):
                left = [k.name for k in q.sites.values() if (k.domain or k.name) not in lost]
                p.row([term for k in left for term in ready[w, t, k]], low=demand)
    for name, limit in q.carbon_by_year.items():
        p.row(carbon[name], high=limit)
    return p.least()


def two_domains_lost() -> Question:
    """Three sites of which any two may be lost, a count of spares at one and 3% at another, and servers that age."""
    skus = [
        sku("fast", {"web": 2.1, "db": 1.7}, 31.0, idle_w=100.0, peak_w=320.0, support=2.0),
        sku("slow", {"web": 1.0, "db": 1.0}, idle_w=80.0, peak_w=200.0, support=1.0, age_limit=3),
    ]
    sites = [Site("ams", spares=1), Site("fra", spare_share=0.03), Site("par", spare_share=0.1)]
    works = [work("web", 17.0, 23.0, utilisation=0.65), work("db", 9.0, 10.0, utilisation=0.5, availability="normal")]
    fleet = [Cohort("slow", "ams", 14, 2), Cohort("slow", "fra", 9, 1)]
    return ask(works, skus, sites, survive=2, fleet=fleet, energy_price=0.002, pue=1.3, discount=0.08)


def carbon_of_years() -> Question:
    """Two years of quarters with a limit each, a price of carbon, and dearer energy in winter."""
    skus = [
        sku("dirty", {"web": 1.4, "db": 1.0}, 90.0, idle_w=120.0, peak_w=420.0, embodied=500.0),
        sku("clean", {"web": 1.3, "db": 1.2}, 260.0, idle_w=40.0, peak_w=180.0, embodied=700.0, support=8.0),
        sku("old", {"web": 0.7, "db": 0.6}, idle_w=150.0, peak_w=400.0, age_limit=12),
    ]
    growing = [8 * 1.06**t for t in range(8)]
    works = [work("web", *growing, utilisation=0.6), work("db", *(0.4 * g for g in growing), utilisation=0.7)]
    q = ask(works, skus, [Site("ams", spare_share=0.03)], fleet=[Cohort("old", "ams", 20, 8)])
    periods = [f"{year}-Q{quarter}" for year in (2027, 2028) for quarter in (1, 2, 3, 4)]
    prices = (0.03, 0.02, 0.02, 0.03) * 2
    return replace(
        q, periods=periods, years=0.25, carbon_by_year={"2027": 26e3, "2028": 20e3}, grid=0.3,
        carbon_price=10.0, pue=1.2, energy_price=prices, discount=0.06,
    )  # fmt: skip


def peaks_of_rent() -> Question:
    """Peaks of one period for which servers may be rented for at least two, beside maintenance and spares in percent."""
    skus = [
        sku("own", {"web": 1.5}, 95.0, idle_w=60.0, peak_w=250.0, support=6.0),
        sku("hired", {"web": 1.2}, 1.0, idle_w=90.0, peak_w=300.0, rent=30.0, term=2),
        sku("burst", {"web": 1.2}, 0.0, rent=70.0, term=1),
    ]
    sites = [Site("ams", spare_share=0.03, maintenance=(0.0, 0.05, 0.0, 0.05, 0.0)), Site("fra", spares=2)]
    works = [work("web", 15.0, 21.0, 16.0, 26.0, 19.0, utilisation=0.7)]
    return ask(works, skus, sites, fleet=[Cohort("own", "ams", 6)], energy_price=0.004, discount=0.1)


@pytest.mark.parametrize("make", [two_domains_lost, carbon_of_years, peaks_of_rent])
def test_an_independent_programme_finds_the_same_cost(make: Callable[[], Question]) -> None:
    q = make()
    plan = solve(q, gap=GAP)
    assert isinstance(plan, Plan)
    assert check(q, plan) == []
    assert plan.objective == pytest.approx(least(q), rel=1e-4)


def test_what_the_questions_add_changes_their_plans() -> None:
    """Each new part costs something: otherwise the agreement would say nothing about it."""
    lost, years, rent = two_domains_lost(), carbon_of_years(), peaks_of_rent()
    hired = replace(rent.skus["hired"], price=None)
    changes = [
        (lost, replace(lost, survive=1)),
        (lost, replace(lost, sites={k: replace(site, spare_share=0.0) for k, site in lost.sites.items()})),
        (years, replace(years, carbon_by_year={})),
        (rent, replace(rent, skus={**rent.skus, "hired": replace(rent.skus["hired"], term=0)})),
        (replace(rent, skus={**rent.skus, "hired": hired}), rent),
    ]
    for dear, cheap in changes:
        dear_plan, cheap_plan = solve(dear, gap=GAP), solve(cheap, gap=GAP)
        assert isinstance(dear_plan, Plan) and isinstance(cheap_plan, Plan)
        assert dear_plan.objective > cheap_plan.objective * (1 + 1e-3)
