"""Generate small random capacity questions and find their least cost by brute force, without the solver.

Servers are tracked one by one with their ages; the oldest are retired first. Every order and retirement is tried. For
each period, every number of active servers is tried, and every number for each separate pool. A linear programme
distributes the work among them.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.optimize import milp

from fleetmark.planner.capacity.question import Cohort, Question, Site, Supply, Workload
from fleetmark.planner.capacity.series import Series
from fleetmark.planner.capacity.sku import Sku, Worth

HOURS = 8766
LARGEST = 10**5


def small(seed: int) -> Question:
    """Return a question of 1-2 SKUs, sites and workloads and 1-3 periods, with a random choice of all features.

    It has so few possible orders that all can be tried.
    """
    question = _with_resources(_over_time(_random(seed), random.Random(seed + 7)), random.Random(seed + 8))
    buffered = _with_buffers(question, random.Random(seed + 9))
    few = (one for one in (buffered, question) if _orders(one) <= LARGEST)
    return next(few, None) or small(seed + 100_000)


def pooled(seed: int) -> Question:
    """Return a question of three workloads in pools of one, two or all, on one SKU at two sites or two SKUs at one."""
    r, q = random.Random(seed), small(seed + 50_000)
    sku, sites = next(iter(q.skus.values())), r.choice([["x"], ["x", "y"]])
    names = ["web", "db", "log"]
    workloads = {
        w: Workload(
            name=w,
            unit="units",
            point=[round(r.uniform(0.05, 0.8), 2)],
            sigma=[0.0],
            utilisation=r.choice([0.5, 0.65, 0.8]),
            pool=r.choice(["", "front", "front", "back"]),
            availability=r.choice(["", "", "preemptible"]) if w == "log" else "",
        )
        for w in names
    }
    skus = {
        s: replace(
            sku, name=s, worth={w: Worth(r.choice([1.0, 1.5, 2.0])) for w in names}, price=float(r.randint(1, 9))
        )
        for s in (["a"] if len(sites) == 2 else ["a", "b"])
    }
    skus = {s: replace(k, gpus=0, lead=0, allowance=0, minimum_order=0, prices=()) for s, k in skus.items()}
    question = replace(
        q,
        periods=["P0"],
        energy_price=0.1,
        workloads=workloads,
        skus=skus,
        sites={k: Site(k, spares=r.choice([0, 0, 1]), liquid_racks=None) for k in sites},
        fleet=[Cohort("a", "x", r.randint(0, 2))],
        survive=len(sites) == 2 and r.random() < 0.5,
        budget=[],
        supply=[],
        domains_w={},
    )
    return question if _orders(question) <= LARGEST else pooled(seed + 100_000)


def carbon_limited(seed: int) -> Question:
    """Return a question of two SKUs at one site, one cheap and one that emits less, and limits on carbon by year."""
    r, q = random.Random(seed), small(seed + 70_000)
    site = next(iter(q.sites.values()))
    dirty = replace(
        next(iter(q.skus.values())), name="dirty", price=float(r.randint(1, 9)), prices=(), breaks=(), gpus=0, lead=0
    )
    dirty = replace(dirty, worth={w: Worth(r.choice([1.0, 1.5, 2.0])) for w in q.workloads}, allowance=0, vendor="")
    clean = replace(
        dirty,
        name="clean",
        price=float(r.randint(9, 20)),
        embodied=float(r.randint(0, 50)),
        idle_w=0.0,
        rent=float(r.choice([0, 2])),
        worth={w: replace(worth, value=r.choice([1.0, 1.5])) for w, worth in dirty.worth.items()},
    )
    question = replace(
        q,
        years=1.0,
        skus={"dirty": replace(dirty, embodied=float(r.randint(100, 300))), "clean": clean},
        sites={site.name: replace(site, liquid_racks=None, racks=None)},
        workloads={w: replace(v, gpus=0, sites=frozenset()) for w, v in q.workloads.items()},
        fleet=[Cohort("dirty", site.name, r.randint(0, 1))],
        supply=[],
        survive=0,
    )
    limits = {year: float(r.randint(60, 500)) for year in question.year_names if r.random() < 0.8}
    question = replace(question, carbon_by_year=limits)
    return question if _orders(question) <= LARGEST else carbon_limited(seed + 100_000)


def _orders(q: Question) -> int:
    """Return about the number of possible orders and retirements."""
    in_place = sum(c.count for c in q.fleet)
    each = [(n + 1) * (n + in_place + 1) for n in _most(q)]
    return math.prod(each) ** len(q.periods)


def _random(seed: int) -> Question:
    r = random.Random(seed)
    periods = r.choice([1, 2, 2, 3])
    works = ["web", "db"][: r.choice([1, 1, 2])]
    kinds = ["a", "b"][: r.choice([1, 2])]
    places = ["x", "y"][: 1 if len(kinds) == 2 and periods > 1 else r.choice([1, 2])]
    skus = {
        s: Sku(
            name=s,
            worth={w: Worth(r.choice([1.0, 1.5, 1.83, 2.0])) for w in works if r.random() < 0.9},
            price=None if r.random() < 0.12 else float(r.randint(1, 20)),
            idle_w=float(r.randint(0, 3)),
            peak_w=float(r.randint(3, 9)),
            rack_units=float(r.randint(1, 2)),
            ports=r.randint(1, 2),
            lead=r.choice([0, 0, 0, 1]),
            support=float(r.randint(0, 4)),
            space=float(r.randint(0, 2)),
            migration=float(r.randint(0, 3)),
            minimum_order=r.choice([0, 0, 0, 2]),
            age_limit=r.choice([None, None, 1, 2]),
            embodied=float(r.randint(0, 500)),
        )
        for s in kinds
    }
    if r.random() < 0.3:  # a measured power that counts against limits, and separate utilisations
        skus = {s: replace(sku, provisioned_w=r.uniform(sku.idle_w, sku.peak_w)) for s, sku in skus.items()}
        skus = {
            s: replace(k, worth={w: replace(e, utilisation=0.7) for w, e in k.worth.items()}) for s, k in skus.items()
        }
    workloads = {
        w: Workload(
            name=w,
            unit="units",
            point=[round(r.uniform(0, 2.4 / len(works)), 2) for _ in range(periods)],
            sigma=[0.0] * periods,
            utilisation=r.choice([0.5, 0.65, 0.8]),
            sites=frozenset(places[:1]) if r.random() < 0.1 else frozenset(),
            dedicated=len(kinds) * len(places) <= 2 and r.random() < 0.2,
        )
        for w in works
    }
    if r.random() < 0.3:
        guest = works[-1]
        workloads[guest] = replace(workloads[guest], availability="preemptible", dedicated=False)
    if r.random() < 0.2:
        workloads, skus = _with_gpus(workloads, skus, works[0], r)
    skus = {s: _sold(sku, r, periods) for s, sku in skus.items()}
    survive = len(places) == 2 and periods < 3 and r.random() < 0.5
    sites = {
        k: Site(
            name=k,
            power_w=float(r.randint(10, 40)) if r.random() < 0.4 else None,
            rack_units=float(r.randint(3, 9)) if r.random() < 0.3 else None,
            ports=float(r.randint(3, 9)) if r.random() < 0.2 else None,
            budget=float(r.randint(10, 60)) if r.random() < 0.25 else None,
            domain=r.choice(["z", f"{k}, feed", f"{k}, row {k}"]) if r.random() < 0.15 else "",
            spares=1 if r.random() < 0.25 else 0,
            energy_price=0.2 if r.random() < 0.3 else None,
            pue=1.5 if r.random() < 0.3 else None,
            racks=float(r.randint(1, 6)) if r.random() < 0.1 else None,
            liquid_racks=float(r.randint(0, 4)) if r.random() < 0.3 else None,
            rack_w=float(r.randint(8, 20)) if r.random() < 0.15 else None,
            windows=frozenset(t for t in range(periods) if r.random() < 0.6) if r.random() < 0.15 else None,
        )
        for k in places
    }
    return Question(
        currency="EUR",
        date="2027-01-01",
        periods=[f"P{t}" for t in range(periods)],
        years=r.choice([0.25, 1.0]),
        workloads=workloads,
        skus=skus,
        sites=sites,
        fleet=[
            Cohort(s, k, r.randint(1, 2), arrives=r.randint(0, periods - 1))
            if r.random() < 0.25
            else Cohort(s, k, r.randint(1, 2), r.randint(0, 2))
            for s in kinds
            for k in places
            if r.random() < 0.35
        ],
        discount=r.choice([0.0, 0.1]),
        energy_price=0.1,
        energy_price_change=r.choice([0.0, 0.0, 0.5]),
        pue=1.2,
        carbon_price=r.choice([0.0, 50.0]),
        grid=0.4,
        survive=survive,
        budget=[float(r.randint(10, 40)) if r.random() < 0.5 else None for _ in range(periods)]
        if r.random() < 0.25
        else [],
        supply=[
            Supply(item, r.randint(1, 4), r.choice([None, r.randrange(periods)]))
            for item in r.sample([*kinds, "acme"], r.choice([0, 0, 0, 0, 1, 2]))
        ],
        domains_w={r.choice(["z", "feed"]): float(r.randint(5, 30))} if r.random() < 0.15 else {},
    )


def _over_time(q: Question, r: random.Random) -> Question:
    """Return the question in which some limits and prices change from period to period, or none do."""
    span, none = range(len(q.periods)), r.random() < 0.6
    if none or len(span) == 1:
        return q

    def series(low: int, high: int) -> tuple[float, ...]:
        return tuple(float(r.randint(low, high)) * (r.random() < 0.8) for _ in span)

    changed = [
        replace(
            site,
            power_w=series(10, 40) if r.random() < 0.5 else site.power_w,
            ports=series(3, 9) if r.random() < 0.2 else site.ports,
            energy_price=tuple(r.choice([0.05, 0.3]) for _ in span) if r.random() < 0.3 else site.energy_price,
        )
        for site in q.sites.values()
    ]
    skus = {}
    for s, sku in q.skus.items():
        prices = tuple(None if r.random() < 0.3 else float(r.randint(1, 20)) for _ in span)
        first = next((price for price in prices if price is not None), None)
        priced = r.random() < 0.5 and sku.price is not None and first is not None
        skus[s] = replace(sku, price=first, prices=prices, price_change=0.0) if priced else sku
    energy = tuple(r.choice([0.05, 0.2]) for _ in span) if r.random() < 0.4 else q.energy_price
    return replace(q, sites={site.name: site for site in changed}, skus=skus, energy_price=energy)


def _with_resources(q: Question, r: random.Random) -> Question:
    """Return the question in which units of demand need memory and disk of servers, or none do."""
    if r.random() < 0.7:
        return q
    skus = {s: replace(sku, has={"memory": r.choice([4.0, 8.0]), "disk": 10.0}) for s, sku in q.skus.items()}
    needs = {w: {"memory": r.choice([3.0, 6.0, 9.0]), "disk": r.choice([1.0, 12.0])} for w in q.workloads}
    return replace(q, skus=skus, workloads={w: replace(v, needs=needs[w]) for w, v in q.workloads.items()})


def _with_buffers(q: Question, r: random.Random) -> Question:
    """Return the question with rented servers, spares as a share and maintenance, or without them."""
    if r.random() < 0.6:
        return q
    skus = {}
    for s, sku in q.skus.items():
        term = min(r.choice([0, 1, 2]), 2 if sku.age_limit is None else sku.age_limit)
        skus[s] = replace(sku, rent=float(r.randint(1, 9)), term=term) if r.random() < 0.6 else sku
    sites = {
        k: replace(
            site,
            spares=r.choice([site.spares, 0, 2]),
            spare_share=r.choice([0.0, 0.1, 0.4]),
            maintenance=tuple(r.choice([0.0, 0.3]) for _ in q.periods) if r.random() < 0.5 else r.choice([0.0, 0.2]),
        )
        for k, site in q.sites.items()
    }
    return replace(q, skus=skus, sites=sites)


def _withheld(q: Question, k: str, t: int) -> float:
    """Return the share of installed servers that may not be active."""
    return q.sites[k].spare_share + _in(q.sites[k].maintenance, t)


def _in(series: Series, t: int) -> float:
    """Return the figure of a constant or a series in that period."""
    return series[t] if isinstance(series, tuple) else series


def _with_gpus(
    workloads: dict[str, Workload], skus: dict[str, Sku], workload: str, r: random.Random
) -> tuple[dict[str, Workload], dict[str, Sku]]:
    """Make one unit of a workload need two GPUs of one server, so its worth is at most half their number."""
    changed = {}
    for s, sku in skus.items():
        gpus, rest = r.choice([0, 2, 4, 4]), {w: e for w, e in sku.worth.items() if w != workload}
        served = (
            {workload: replace(sku.worth[workload], value=min(sku.worth[workload].value, gpus // 2))}
            if workload in sku.worth
            else {}
        )
        changed[s] = replace(sku, gpus=gpus, gpu_memory=80e9, worth=rest | (served if gpus else {}))
    return {**workloads, workload: replace(workloads[workload], gpus=2, gpu_memory=80e9)}, changed


def _sold(sku: Sku, r: random.Random, periods: int) -> Sku:
    """Return the SKU with contract terms: racks or chassis, price breaks, a residual value, prices that change."""
    if r.random() < 0.25:
        sku = replace(sku, vendor="acme")
    if r.random() < 0.15:
        sku = replace(sku, lot=2)
    if r.random() < 0.2:
        sku = replace(sku, racks=r.choice([0.5, 1.0]), liquid=r.random() < 0.5)
    if r.random() < 0.2 and sku.price:
        first = r.randint(2, 3)
        breaks = [(first, sku.price * r.choice([0.7, 0.9, 1.3])), (first + 1, sku.price * r.choice([0.6, 1.1]))]
        sku = replace(sku, breaks=tuple(breaks[: r.randint(1, 2)]))
    if r.random() < 0.2:
        sku = replace(sku, residual=r.choice([0.5, 0.8]))
    if r.random() < 0.1 and periods > 1:
        sku = replace(sku, lead=0, allowance=1)
    if r.random() < 0.25:
        sku = replace(sku, price_change=r.choice([-0.4, -0.1, 0.3]))
    return sku


def _most(q: Question) -> list[int]:
    """Return the largest useful number of each (SKU, site)."""
    need = sum(
        math.ceil(max(work.point) / min(q.rate(s, w) for s, x in q.skus.items() if w in x.worth))
        for w, work in q.workloads.items()
        if any(w in x.worth for x in q.skus.values())
    )
    return [
        0
        if sku.price is None
        else max(
            math.ceil((need + site.spares) / (1 - max(_withheld(q, k, t) for t in range(len(q.periods)))) - 1e-9),
            sku.minimum_order,
            *(n for n, _ in sku.breaks),
        )
        + sku.lot
        - 1
        for sku in q.skus.values()
        for k, site in q.sites.items()
    ]


def least(q: Question) -> float:
    """Return the least present value; it is infinite if no plan meets the demand."""
    periods = len(q.periods)
    pairs = [(s, k) for s in q.skus for k in q.sites]
    maxima = _most(q)
    running = functools.cache(lambda t, installed, kg: _running(q, pairs, t, installed, kg))
    carbon_limits = [q.carbon_by_year.get(year, math.inf) for year in q.year_names]

    def orders(t: int, spent: tuple[float, ...]) -> Iterator[tuple[tuple[int, ...], tuple[float, ...]]]:
        ranges = []
        for (s, k), n in zip(pairs, maxima, strict=True):
            sku, rack = q.skus[s], q.sites[k].rack_w
            first = max(sku.minimum_order, 1)
            narrow = rack is not None and not sku.liquid and (sku.provisioned_w or sku.peak_w) > rack
            late = t + sku.lead + sku.allowance >= periods
            unsold = bool(sku.prices) and sku.prices[t] is None
            ranges.append(
                [0] if late or narrow or unsold else [0, *(m for m in range(first, n + 1) if m % sku.lot == 0)]
            )
        for x in itertools.product(*ranges):
            if not _to_be_had(q, pairs, t, x):
                continue
            money = [n * price for n, price in zip(x, _prices(q, pairs, t, x), strict=True)]
            if q.budget and q.budget[t] is not None and sum(money) > q.budget[t] + 1e-9:
                continue
            after = [
                had + sum(m for m, (_, place) in zip(money, pairs, strict=True) if place == k)
                for had, k in zip(spent, q.sites, strict=True)
            ]
            if all(
                v is None or a <= v + 1e-9 for a, v in zip(after, (z.budget for z in q.sites.values()), strict=True)
            ):
                yield x, tuple(after)

    @functools.cache
    def onward(
        t: int,
        ages: tuple[tuple[int, ...], ...],
        coming: tuple[tuple[int, ...], ...],
        spent: tuple[float, ...],
        ages_of_pairs: tuple[tuple[int, ...], ...],
    ) -> float:
        """Return the least cost from period t on.

        ``ages`` are those of each pair's servers, oldest first; ``coming`` are later arrivals; ``own`` are the arrival
        periods of purchases, for their residual value.
        """
        if t == periods:
            return -q.weight(periods - 1) * sum(
                _left(q, s, ages_of_pairs[j], len(ages[j])) for j, (s, _) in enumerate(pairs)
            )
        least_cost = math.inf
        for x, after in orders(t, spent):
            present, later, bought = [], [], 0.0
            for j, ((s, _), price) in enumerate(zip(pairs, _prices(q, pairs, t, x), strict=True)):
                sku = q.skus[s]
                delay = sku.lead + sku.allowance
                line = [*coming[j], *[0] * (delay + 1 - len(coming[j]))]
                line[delay] += x[j]
                present.append(ages[j] + (0,) * line[0])
                later.append(tuple(line[1:]))
                bought += x[j] * (price + q.carbon_price / 1000 * sku.embodied)
            kg = carbon_limits[t] - sum(n * q.skus[s].embodied for n, (s, _) in zip(x, pairs, strict=True))
            if kg < -1e-9:
                continue
            worth = any(sku.residual for sku in q.skus.values())
            if bought * q.weight(t) >= least_cost and not worth:
                continue
            mine = tuple(
                ages_of_pairs[j] + (t + q.skus[s].lead + q.skus[s].allowance,) * x[j] if q.skus[s].residual else ()
                for j, (s, _) in enumerate(pairs)
            )
            gone = []
            for servers, (s, k) in zip(present, pairs, strict=True):
                limit, windows = q.skus[s].age_limit, q.sites[k].windows
                forced = 0 if limit is None else sum(age >= limit for age in servers)
                most_gone = 0 if windows is not None and t not in windows else len(servers)
                most_gone = min(most_gone, sum(age >= q.skus[s].term for age in servers))
                gone.append(range(forced, most_gone + 1))
            for d in itertools.product(*gone):
                installed = tuple(len(servers) - n for servers, n in zip(present, d, strict=True))
                now = bought + sum(n * q.skus[s].migration for n, (s, _) in zip(d, pairs, strict=True))
                if now * q.weight(t) >= least_cost and not worth:
                    continue
                now += running(t, installed, kg)
                if now == math.inf or (now * q.weight(t) >= least_cost and not worth):
                    continue
                older = tuple(tuple(age + 1 for age in servers[n:]) for servers, n in zip(present, d, strict=True))
                least_cost = min(least_cost, now * q.weight(t) + onward(t + 1, older, tuple(later), after, mine))
        return least_cost

    ages = tuple(
        tuple(
            sorted(
                (c.age for c in q.fleet if (c.sku, c.site) == p and c.arrives is None for _ in range(c.count)),
                reverse=True,
            )
        )
        for p in pairs
    )
    placed = tuple(
        tuple(sum(c.count for c in q.fleet if (c.sku, c.site) == p and c.arrives == t) for t in range(periods))
        for p in pairs
    )
    return onward(0, ages, placed, (0.0,) * len(q.sites), ((),) * len(pairs))


def _to_be_had(q: Question, pairs: list[tuple[str, str]], t: int, x: tuple[int, ...]) -> bool:
    """Return whether vendors sell that many in that period."""
    return all(
        sum(n for n, (s, _) in zip(x, pairs, strict=True) if limit.item in (s, q.skus[s].vendor)) <= limit.maximum
        for limit in q.supply
        if limit.period in (None, t)
    )


def _prices(q: Question, pairs: list[tuple[str, str]], t: int, x: tuple[int, ...]) -> list[float]:
    """Return the price of one server of each pair, given how many of its SKU are ordered in that period."""
    prices = []
    for s, _ in pairs:
        ordered, price = sum(n for n, (name, _) in zip(x, pairs, strict=True) if name == s), q.skus[s].price or 0.0
        for least, other in q.skus[s].breaks:
            price = other if ordered >= least else price
        prices.append(price * _price_level(q, s, t))
    return prices


def _price_level(q: Question, name: str, t: int) -> float:
    """Return the price of an order in that period over the first price."""
    sku = q.skus[name]
    if sku.prices:
        assert sku.price is not None
        return (sku.prices[t] or 0.0) / sku.price
    return float((1 + sku.price_change) ** (q.years * t))


def _left(q: Question, name: str, bought: tuple[int, ...], installed: int) -> float:
    """Return the residual value of bought servers, the newest first; ``bought``: the period of each arrival."""
    sku, periods, years = q.skus[name], len(q.periods), q.years
    ages = sorted(periods - t for t in bought)
    some = [age for age in ages if sku.age_limit is None or age <= sku.age_limit][:installed]
    least_price = min([sku.price or 0.0, *(price for _, price in sku.breaks)])
    paid = [least_price * _price_level(q, name, periods - age - sku.lead - sku.allowance) for age in some]
    return sum(each * sku.residual ** (years * age) for each, age in zip(paid, some, strict=True))


def _room(q: Question, pairs: list[tuple[str, str]], t: int, installed: tuple[int, ...]) -> bool:
    """Return whether sites have power, rack units, ports and positions for these servers, and failure domains the
    power.
    """
    for name, watts_limit in q.domains_w.items():
        inside = {k for k, z in q.sites.items() if name in {d.strip() for d in (z.domain or k).split(",")}}
        watts = [n * (q.skus[s].provisioned_w or q.skus[s].peak_w) for (s, k), n in zip(pairs, installed, strict=True)]
        if sum(w for w, (_, k) in zip(watts, pairs, strict=True) if k in inside) > watts_limit + 1e-9:
            return False
    for k, site in q.sites.items():
        here = [(q.skus[s], n) for (s, place), n in zip(pairs, installed, strict=True) if place == k]
        for limit, load in (
            (site.power_w, sum(n * (sku.provisioned_w or sku.peak_w) for sku, n in here)),
            (site.rack_units, sum(n * sku.rack_units for sku, n in here)),
            (site.ports, sum(n * sku.ports for sku, n in here)),
            (site.racks, sum(n * _racks(sku, site) for sku, n in here if not sku.liquid)),
            (site.liquid_racks, sum(n * _racks(sku, site) for sku, n in here if sku.liquid)),
        ):
            if limit is not None and load > _in(limit, t) + 1e-9:
                return False
    return True


def _racks(sku: Sku, site: Site) -> float:
    """Return the rack positions that one server takes."""
    watts = sku.provisioned_w or sku.peak_w
    return sku.racks or (1 / max(int(site.rack_w / watts), 1) if site.rack_w and watts else 0.0)


def _running(q: Question, pairs: list[tuple[str, str]], t: int, installed: tuple[int, ...], kg_limit: float) -> float:
    """Return the cost of a period with these servers: rent, support, space and the cheapest energy that meets the
    demand and emits at most ``kg_limit``.
    """
    if not _room(q, pairs, t, installed):
        return math.inf
    fixed_cost = sum(
        n * (q.skus[s].rent + q.skus[s].support + q.skus[s].space) * q.years
        for n, (s, _) in zip(installed, pairs, strict=True)
    )
    watt, kg = [], []
    for _, k in pairs:
        site = q.sites[k]
        price = _in(q.energy_price if site.energy_price is None else site.energy_price, t)
        price *= (1 + q.energy_price_change) ** (q.years * t)
        pue = q.pue if site.pue is None else site.pue
        watt.append(HOURS * q.years * pue / 1000 * (price + q.carbon_price / 1000 * q.grid))
        kg.append(HOURS * q.years * pue / 1000 * q.grid)
    combos = [
        (p, w)
        for p, (s, k) in enumerate(pairs)
        for w, work in q.workloads.items()
        if w in q.skus[s].worth and (not work.sites or k in work.sites)
    ]
    used = [_used(q, pairs[p][0], w) for p, w in combos]
    full_w = [
        (q.skus[pairs[p][0]].peak_w - q.skus[pairs[p][0]].idle_w) * u for (p, _), u in zip(combos, used, strict=True)
    ]
    swing = [watt[p] * full for (p, _), full in zip(combos, full_w, strict=True)]
    gives = [q.skus[pairs[p][0]].worth[w].value * u for (p, w), u in zip(combos, used, strict=True)]
    many, domains = len(combos), {k: {d.strip() for d in (z.domain or k).split(",")} for k, z in q.sites.items()}
    # Variables: servers that work with everything up, then servers that are assigned to each combination.
    rows, high = [], []

    def row(weights: dict[int, float], maximum: float) -> None:
        rows.append([weights.get(j, 0.0) for j in range(2 * many)])
        high.append(maximum)

    for w, work in q.workloads.items():
        mine = [j for j, (_, v) in enumerate(combos) if v == w]
        row({j: -gives[j] for j in mine}, -work.point[t])
        if work.availability == "survives" or (q.survive and not work.availability):
            every = sorted(set().union(*domains.values()))
            for lost in itertools.combinations(every, min(max(q.survive, 1), len(every))):
                left = [j for j in mine if domains[pairs[combos[j][0]][1]].isdisjoint(lost)]
                row({many + j: -gives[j] for j in left}, -work.point[t])
    for j in range(many):
        row({j: 1.0, many + j: -1.0}, 0.0)
    limited = kg_limit < math.inf
    if limited:
        row({j: kg[p] * full for j, ((p, _), full) in enumerate(zip(combos, full_w, strict=True))}, kg_limit)
    caps = len(rows)
    guest = [q.workloads[w].availability == "preemptible" for _, w in combos]
    pool = [f"{w} alone" if q.workloads[w].dedicated else q.workloads[w].pool for _, w in combos]
    pooled = sorted({(p, name) for (p, _), name in zip(combos, pool, strict=True) if name})
    for p, name in [*((p, "") for p in range(len(pairs))), *pooled]:
        here = [j for j, (pair, _) in enumerate(combos) if (pair, pool[j]) == (p, name)]
        row({many + j: 1.0 for j in here if not guest[j]}, 0.0)
        row(dict.fromkeys(here, 1.0), 0.0)
    ready = [
        max(math.floor(n * (1 - _withheld(q, k, t)) - q.sites[k].spares + 1e-9), 0)
        for n, (_, k) in zip(installed, pairs, strict=True)
    ]
    works = {w: [c / g for (_, v), c, g in zip(combos, swing, gives, strict=True) if v == w] for w in q.workloads}
    least_work = sum(q.workloads[w].point[t] * min(each, default=0.0) for w, each in works.items())
    matrix = np.array(rows).reshape(len(rows), 2 * many)
    cheapest = math.inf
    for active in sorted(
        itertools.product(*(range(n + 1) for n in ready)),
        key=lambda a: sum(n * w for n, w in zip(a, watt, strict=True)),
    ):
        rest = sum(n * w * q.skus[s].idle_w for n, w, (s, _) in zip(active, watt, pairs, strict=True))
        if fixed_cost + rest + least_work >= cheapest:
            continue
        if limited:
            idle_w = [n * q.skus[s].idle_w for n, (s, _) in zip(active, pairs, strict=True)]
            high[caps - 1] = kg_limit - sum(each * w for each, w in zip(kg, idle_w, strict=True))
            if high[caps - 1] < 0:
                continue
        if not combos:
            if not any(work.point[t] for work in q.workloads.values()):
                cheapest = fixed_cost + rest
            continue
        alone = [sum(g * active[p] for (p, v), g in zip(combos, gives, strict=True) if v == w) for w in q.workloads]
        if any(capacity < work.point[t] - 1e-9 for capacity, work in zip(alone, q.workloads.values(), strict=True)):
            continue  # infeasible even if each server did all its workloads at once
        cost, tried, bound = [*swing, *[0.0] * many], itertools.product(*(range(active[p] + 1) for p, _ in pooled)), 0.0
        if pooled:  # separate pools need at least as much as all workloads together
            joined = np.zeros((2 * len(pairs), 2 * many))
            for k, (p, _) in enumerate([*((p, "") for p in range(len(pairs))), *pooled]):
                joined[2 * p : 2 * p + 2] += matrix[caps + 2 * k : caps + 2 * k + 2]
            together = np.vstack([matrix[:caps], joined])
            bound = _energy(cost, together, [*high[:caps], *(n for n in active for _ in range(2))])
        for sizes in tried:
            if fixed_cost + rest + bound >= cheapest - 1e-9:
                break
            common = list(active)
            for (p, _), n in zip(pooled, sizes, strict=True):
                common[p] -= n
            if min(common, default=0) >= 0:
                limit = [*high[:caps], *(n for n in (*common, *sizes) for _ in range(2))]
                cheapest = min(cheapest, fixed_cost + rest + _energy(cost, matrix, limit))
    return cheapest


def _used(q: Question, name: str, w: str) -> float:
    """Return the utilisation of a server at which its speed is used up, or one of its resources."""
    sku, work = q.skus[name], q.workloads[w]
    limits = [sku.worth[w].utilisation or work.utilisation]
    limits += [sku.has[each] / (need * sku.worth[w].value) for each, need in work.needs.items()]
    return min(limits)


def _energy(cost: list[float], matrix: np.ndarray, maxima: list[float]) -> float:
    """Return the least energy cost that meets the demand; infinite if these servers cannot."""
    return _solved(tuple(cost), matrix.tobytes(), tuple(maxima))


@functools.lru_cache(maxsize=100_000)  # other orders lead to the same servers, three times out of four
def _solved(cost: tuple[float, ...], matrix: bytes, maxima: tuple[float, ...]) -> float:
    rows = np.frombuffer(matrix).reshape(len(maxima), len(cost))
    result = milp(cost, constraints=(rows, -math.inf, maxima))  # without whole numbers: linprog takes twice as long
    return float(result.fun) if result.status == 0 else math.inf
