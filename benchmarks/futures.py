"""Test whether a plan for a quantile of futures meets its demand there, and what the uncertainty costs.

``python -m benchmarks.futures [--futures 200] [--seeds 3] [--quantile 0.95] [--survive] [--slips] [--share]``; with
``--slips`` orders come late in some futures, with ``--share`` only the share of futures met is told. For each seed a question with
growing, uncertain demand is planned with margins; then futures are drawn that the planning did not see. In each the
plan either meets every demand in every quarter at the utilisation that its latency target allows, or not. And each
future is planned again with its demands and the worth of servers known. The plan's cost is set against
the mean of those.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.futures import Draws, Fleet, allowance, sample
from fleetmark.planner.capacity.question import Cohort, Plan, Question, Site, Workload
from fleetmark.planner.capacity.queueing import utilisation_for
from fleetmark.planner.capacity.sku import Sku, Worth
from fleetmark.planner.capacity.solve import solve
from fleetmark.planner.capacity.uncertainty import margined

HOSTS, HOST_SD = 6, 0.02  # a side, and how much hosts of one kind differ
SE = HOST_SD * math.sqrt(2 / HOSTS)  # of ln E, with 2 x HOSTS - 2 degrees of freedom
FIRST, LAST = 0.01, 0.03  # standard deviation of the log of demand, in the first quarter and the eighth
UNSEEN = 1000  # added to the seed of futures that planning did not see


def question(seed: int, *, quarters: int = 8, survive: bool = False, size: float = 1.0) -> Question:
    """Four services that grow, two kinds of servers on sale, a fleet in place of which a part ages out.

    ``size`` scales demand and fleet. Growth, prices and power differ by ``seed`` a little.
    """
    rng = np.random.default_rng(seed)
    cv2 = 1.0
    targets = {
        "web": (0.042, 0.008, 8),
        "search": (0.075, 0.015, 16),
        "store": (0.0145, 0.003, 12),
        "batch": (5.0, 1.0, 32),
    }
    base = {"web": 160, "search": 120, "store": 90, "batch": 140}
    sigma = tuple(FIRST + (LAST - FIRST) * t / 7 for t in range(quarters))
    workloads = {}
    for name, (target, service, slots) in targets.items():
        growth = float(rng.uniform(0.04, 0.08))
        point = tuple(size * base[name] * (1 + growth) ** t for t in range(quarters))
        utilisation, reason = utilisation_for(target, 0.99, service, slots, cv2, cv2)
        workloads[name] = Workload(name, "old servers", point, sigma, utilisation, reason=reason)

    def worths(least: float, maximum: float) -> dict[str, Worth]:
        return {w: Worth(float(rng.uniform(least, maximum)), SE, 2.0 * HOSTS - 2) for w in workloads}

    price = float(rng.uniform(0.95, 1.05))
    skus = {
        "old": Sku(
            "old", dict.fromkeys(workloads, Worth(1.0)), None, 210, 560, rack_units=1, support=900, age_limit=20
        ),
        "new": Sku("new", worths(1.7, 2.0), 11_800 * price, 230, 720, rack_units=1, lead=1, support=700, space=300),
        "newer": Sku("newer", worths(2.6, 3.1), 17_900 * price, 260, 950, rack_units=1, lead=1, support=800, space=300),
    }
    sites = {k: Site(k, power_w=4e6 * size, rack_units=4000 * size) for k in ("ams", "fra", "sto")}
    more = 1.7 if survive else 1.15
    total = more * sum(w.point[0] / w.utilisation for w in workloads.values())
    share = [0.6, 0.4]
    fleet = [
        Cohort("old", k, math.ceil(total / 3 * part), age)
        for k in sites
        for part, age in zip(share, (6, 15), strict=True)
    ]
    periods = [f"{2027 + t // 4}-Q{t % 4 + 1}" for t in range(quarters)]
    return Question(
        "EUR",
        "2026-12-01",
        periods,
        0.25,
        workloads,
        skus=skus,
        sites=sites,
        fleet=fleet,
        discount=0.07,
        energy_price=0.16,
        pue=1.35,
        survive=survive,
    )


def slipping(q: Question, quantile: float) -> Question:
    """Return the question with late deliveries: one quarter with 15%, two with 1%."""
    slips = (0.84, 0.15, 0.01)
    late = [name for name, sku in q.skus.items() if sku.price is not None]
    more = allowance(slips, quantile, len(late))
    skus = {s: replace(sku, slips=slips, allowance=more) if s in late else sku for s, sku in q.skus.items()}
    return replace(q, skus=skus, quantile=quantile)


def foreseen(q: Question, draws: Draws, one: int) -> Question:
    """Return the question with the demand and worth of this future, without uncertainty."""
    workloads = {
        name: replace(w, point=tuple(draws.demand[one, i].tolist()), sigma=(0.0,) * len(q.periods))
        for i, (name, w) in enumerate(q.workloads.items())
    }
    order = list(q.workloads)
    skus = {
        name: replace(s, worth={w: Worth(float(draws.worth[one, j, order.index(w)])) for w in s.worth})
        for j, (name, s) in enumerate(q.skus.items())
    }
    return replace(q, workloads=workloads, skus=skus)


@dataclass(frozen=True, slots=True)
class Proof:
    """``met``: in how many futures; ``dearer``: the plan's cost over the mean cost with the future known, less 1; ``naive``:
    how many the plan without margins meets.
    """

    met: int
    futures: int
    dearer: float
    naive: int
    planning_s: float


def prove(
    q: Question,
    seed: int,
    futures: int,
    quantile: float,
    gap: float,
    progress: Callable[[str], None],
    n: int = 2000,
    known: bool = True,
) -> Proof:
    """Plan it with margins found on ``n`` draws, and hold the plan against ``futures`` that it has not seen."""
    solved = functools.partial(solve, gap=gap)
    begin = time.perf_counter()
    plan = margined(q, solved, quantile, n=n, seed=seed, say=progress)
    planning = time.perf_counter() - begin
    plain = solved(q)
    if isinstance(plan, Conflict) or isinstance(plain, Conflict):
        raise SystemExit(f"seed {seed}: no plan")
    draws = sample(q, futures, seed + UNSEEN)
    costs = []
    for one in range(futures if known else 0):
        best = solved(foreseen(q, draws, one))
        assert isinstance(best, Plan)
        costs.append(best.objective)
        if one % 25 == 24:
            progress(f"{one + 1} futures known, mean cost {statistics.mean(costs):,.0f}")
    met, naive = (futures - int(Fleet(q, p).short(draws)[0].any(axis=1).sum()) for p in (plan, plain))
    dearer = plan.objective / statistics.mean(costs) - 1 if costs else math.nan
    return Proof(met, futures, dearer, naive, planning)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--futures", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quantile", type=float, default=0.95)
    parser.add_argument("--survive", action="store_true")
    parser.add_argument("--slips", action="store_true", help="orders of new SKUs come a quarter or two late")
    parser.add_argument("--share", action="store_true", help="do not solve each future on its own")
    parser.add_argument("--gap", type=float, default=0.002)
    options = parser.parse_args()
    for seed in range(1, options.seeds + 1):
        q = question(seed, survive=options.survive)
        if options.slips:
            q = slipping(q, options.quantile)
        proof = prove(
            q,
            seed,
            options.futures,
            options.quantile,
            options.gap,
            functools.partial(print, " ", flush=True),
            known=not options.share,
        )
        print(
            f"seed {seed}: met in {proof.met}/{proof.futures} futures (without margins {proof.naive}), "
            + ("" if options.share else f"{proof.dearer:+.2%} dearer than knowing; ")
            + f"planned in {proof.planning_s:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
