"""Measure how long a plan takes, how close to the optimum it is proven to be, and its memory.

``python -m benchmarks.planning [--size 20x15x10x12] [--servers 12000] [--seeds 1 2 3] [--gap 0.01] [--seconds 60]``:
workloads x SKUs x sites x periods, and how many servers there are about. Time is that of the clock, beside that of this process's
CPU: they differ where others use the machine. Memory is the most of the whole process, Python and libraries too.

``--command`` times all of ``fleetmark plan`` instead: margins for 95% of futures, alternatives, shadow prices, effects of
inputs, 2,000 futures, and the document as JSON. Beside it stands the CPU time of the relaxation, solved once by HiGHS in
the same run: the ratio of both depends little on the machine.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace

import numpy as np
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.best import best
from fleetmark.planner.capacity.model import build
from fleetmark.planner.capacity.question import Cohort, Question, Site, Workload
from fleetmark.planner.capacity.search import highs
from fleetmark.planner.capacity.sku import Sku, Worth
from fleetmark.reports.kit.language import Language
from fleetmark.verbs import plan as planning
from fleetmark.verbs.documents import Documents, renderers

QUARTERS = 12  # the horizon of the benchmark, whatever the number of periods


def question(
    workloads: int, skus: int, sites: int, periods: int, servers: float, seed: int = 1, quarters: float = 1.0
) -> Question:
    """Return a question of this size: three generations of servers, the oldest no longer sold, GPU servers that run
    only a few workloads, growing demand with seasons, failure domains that must be survived, spares, and budgets.

    A period lasts this number of quarters; demand grows by the quarter.
    """
    rng = np.random.default_rng(seed)
    works = [f"work{j:02d}" for j in range(workloads)]
    places = [f"site{j:02d}" for j in range(sites)]
    shares = rng.dirichlet(np.full(workloads, 1.5))
    hungry = set(works[::7]) if skus > 4 else set()  # they run on GPU servers only
    kinds = {}
    for j in range(skus):
        generation = j % 3
        gpu = j >= 3 and j % 5 == 4
        speed = 1.35**generation * rng.uniform(0.85, 1.2) * (4 if gpu else 1)
        peak = (450 + 150 * generation) * rng.uniform(0.85, 1.2) * (6 if gpu else 1)
        kinds[f"sku{j:02d}"] = Sku(
            name=f"sku{j:02d}",
            worth={
                w: Worth(float(speed * rng.uniform(0.75, 1.25)))
                for w in works
                if (w in hungry) <= gpu and (w in hungry or rng.random() < 0.95)
            },
            price=None if generation == 0 and j > 0 else float(round(9000 * speed * rng.uniform(0.85, 1.2), -2)),
            idle_w=float(round(peak * rng.uniform(0.25, 0.4))),
            peak_w=float(round(peak)),
            rack_units=float(rng.choice([1, 2])) * (3 if gpu else 1),
            gpus=8 if gpu else 0,
            ports=2,
            lead=int(rng.integers(0, 3)),
            support=float(round(300 * speed)),
            space=60.0,
            migration=200.0,
            minimum_order=int(rng.choice([0, 0, 4, 8])),
            age_limit=int(rng.integers(16, 24)),
            embodied=1300.0 * (3 if gpu else 1),
        )
    demand, fleet = {}, []
    domains = max(sites // 2, 3)
    for w, share in zip(works, shares, strict=True):
        growth = rng.uniform(1.02, 1.08)
        season = 1 + 0.06 * np.sin(np.arange(periods) * np.pi / 2 + rng.uniform(0, 6))
        able = [s for s, kind in kinds.items() if w in kind.worth]
        per_server = float(np.mean([kinds[s].worth[w].value for s in able]))
        use = float(np.round(rng.uniform(0.5, 0.8), 2))
        points = (
            share * servers * use * per_server * (1 - 1 / domains) * growth ** (np.arange(periods) * quarters) * season
        )
        here = places if rng.random() < 0.8 else places[: max(sites * 2 // 3, 3)]
        demand[w] = Workload(
            w, "units", tuple(map(float, points)), (0.0,) * periods, use, sites=frozenset(map(str, here))
        )
        lost = max(sum(j % domains == d for j in range(len(here))) for d in range(domains))  # sites of one domain
        for s in able[:2]:  # what is there serves today's demand, with one domain gone
            each = 1.15 * points[0] / use / kinds[s].worth[w].value / len(able[:2]) / (len(here) - lost)
            limit = kinds[s].age_limit or 0
            fleet += [
                Cohort(s, str(k), int(np.ceil(each)) + int(j % 2), int(rng.integers(0, limit - 4)))
                for j, k in enumerate(here)
            ]
    room = servers * 4.5 / sites
    return Question(
        currency="EUR",
        date="2027-01-01",
        periods=[f"{2027 + t // 4}-Q{t % 4 + 1}" for t in range(periods)],
        years=quarters / 4,
        workloads=demand,
        skus=kinds,
        sites={
            k: Site(
                k,
                power_w=float(round(room * 900, -3)),
                rack_units=float(round(room * 2.5)),
                ports=float(round(room * 4)),
                domain=f"domain{j % domains}",
                spares=int(j % 2),
                energy_price=float(round(rng.uniform(0.06, 0.2), 3)),
                pue=float(round(rng.uniform(1.1, 1.5), 2)),
            )
            for j, k in enumerate(places)
        },
        fleet=fleet,
        discount=0.08,
        energy_price=0.12,
        pue=1.3,
        carbon_price=80.0,
        grid=0.35,
        survive=True,
        budget=[servers * 3000.0] * periods,
    )


def uncertain(problem: Question) -> Question:
    """Return the question with demands and worths that are not certain: 8% after a year, and 3% with 8 degrees."""
    sigma = tuple(0.08 * float(np.sqrt(problem.years * (t + 1))) for t in range(len(problem.periods)))
    skus = {
        s: replace(k, worth={w: replace(e, se=0.03, df=8.0) for w, e in k.worth.items()})
        for s, k in problem.skus.items()
    }
    return replace(problem, workloads={w: replace(v, sigma=sigma) for w, v in problem.workloads.items()}, skus=skus)


def command_row(problem: Question, gap: float, seconds: float) -> str:
    """Run all of ``fleetmark plan`` and return its row of the table."""
    cpu = time.process_time()
    relaxed = build(problem, {})
    highs(relaxed, integer=np.zeros_like(relaxed.integer))
    reference = time.process_time() - cpu
    clock, cpu = time.monotonic(), time.process_time()
    answer = planning.answer(problem, planning.Effort(gap, seconds), Console(quiet=True))
    shown = planning.document(answer, planning.Provenance("2026-12-01", command="fleetmark plan"), Language())
    size = len(renderers(shown, Documents())["json"]())
    clock, cpu = time.monotonic() - clock, time.process_time() - cpu
    plan = answer.plan
    result = "none exists | |" if plan is None else f"{plan.objective:,.0f} | {plan.gap:.3%} |"
    return f"{result} {clock:.1f} | {cpu:.1f} | {reference:.2f} | {cpu / reference:.0f} | {size / 1e6:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", action="store_true")
    parser.add_argument("--size", default="20x15x10x12")
    parser.add_argument("--servers", type=float, nargs="+", default=[12000.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--gap", type=float, default=0.01)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    workloads, skus, sites, periods = (int(n) for n in options.size.split("x"))
    if options.command:
        print("| servers | seed | present value | gap | seconds | CPU s | CPU s of one relaxation | ratio | JSON, MB |")
        print("|-|-|-|-|-|-|-|-|-|")
        for servers in options.servers:
            for seed in options.seeds:
                problem = uncertain(question(workloads, skus, sites, periods, servers, seed, QUARTERS / periods))
                row = command_row(problem, options.gap, options.seconds)
                print(f"| {servers:,.0f} | {seed} | {row}", flush=True)
        return
    print("| servers | seed | variables | rows | integers | present value | gap | seconds | CPU s | MB |")
    print("|-|-|-|-|-|-|-|-|-|-|")
    for servers in options.servers:
        for seed in options.seeds:
            problem = question(workloads, skus, sites, periods, servers, seed, QUARTERS / periods)
            model = build(problem, {})
            size = f"{model.rows.shape[1]:,} | {model.rows.shape[0]:,} | {int(model.integer.sum()):,}"
            clock, cpu = time.monotonic(), time.process_time()
            try:
                plan = best(problem, gap=options.gap, seconds=options.seconds, margin={})
                result = "none exists |" if plan is None else f"{plan.objective:,.0f} | {plan.gap:.3%}"
            except FleetmarkError:
                result = "none in time |"
            clock, cpu = time.monotonic() - clock, time.process_time() - cpu
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"| {servers:,.0f} | {seed} | {size} | {result} | {clock:.1f} | {cpu:.1f} | {memory:.0f} |", flush=True
            )


if __name__ == "__main__":
    main()
