"""Utilisation by SKU from an objective, against a simulation of the queue; SKUs that cannot keep it; availability; GPUs."""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.demand import question as demand
from fleetmark.demand.keys.workload import Slo
from fleetmark.demand.objective import of_objective
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.question import Plan, Question, Site
from fleetmark.planner.capacity.solve import solve
from tests.demands import SMALL, changed
from tests.planner.questions import ask, sku, work

SLO = "slo: {p99: 50ms, service_time: 8ms, service_cv: 1.3, arrival_cv: 1.1, slots: 8}"


def read(folder: Path, text: str) -> Question:
    file = folder / "demand.yml"
    file.write_text(text)
    return demand.read(file, folder / "results")


def refused(folder: Path, text: str) -> str:
    with pytest.raises(FleetmarkError) as error:
        read(folder, text)
    return str(error.value)


def simulated(used: float, slots: int, service_s: float, arrival_cv: float, service_cv: float, seed: int) -> np.ndarray:
    """Latencies of 150,000 requests to one queue over ``slots``, gamma arrivals and service; first come, first served."""
    rng, n = np.random.default_rng(seed), 150_000
    gap = service_s / (used * slots)
    arrivals = np.cumsum(rng.gamma(arrival_cv**-2, gap * arrival_cv**2, n))
    service = rng.gamma(service_cv**-2, service_s * service_cv**2, n)
    free = [0.0] * slots
    took = np.empty(n)
    for j, (arrival, lasts) in enumerate(zip(arrivals.tolist(), service.tolist(), strict=True)):
        done = max(heapq.heappop(free), arrival) + lasts
        heapq.heappush(free, done)
        took[j] = done - arrival
    return took[n // 10 :]


@pytest.mark.parametrize(
    ("slots", "speed", "target"), [(8, 1.0, 0.050), (5, 1.2, 0.046), (6, 0.9, 0.060)], ids=["old", "fast", "slow"]
)
def test_the_utilisation_of_a_sku_keeps_the_objective_in_a_simulation(slots: int, speed: float, target: float) -> None:
    slo = Slo.model_validate({"p99": target, "service_time": 0.008, "service_cv": 1.3, "arrival_cv": 1.1, "slots": 8})
    used, _ = of_objective(slo, slots, speed)
    assert 0.3 < used < 0.85  # the objective decides, not the cap
    took = [np.quantile(simulated(used, slots, 0.008 / speed, 1.1, 1.3, seed), 0.99) for seed in range(3)]
    assert float(np.mean(took)) == pytest.approx(target, rel=0.10)


def test_each_sku_has_the_utilisation_of_its_own_slots(tmp_path: Path) -> None:
    """Of the example of the docs: 8 slots, and by their worth 15 and 23."""
    worth = demand.read(demand.EXAMPLE, tmp_path)
    used = {s: worth.utilisation(s, "web") for s in worth.skus}
    assert used == pytest.approx({"icelake": 0.675, "genoa": 0.793, "turin": 0.85}, abs=5e-4)
    assert "15 slots" in worth.skus["genoa"].worth["web"].reason
    text = changed("utilisation: 65%", SLO)
    given = read(tmp_path, changed("web: 1.83", "web: {value: 1.83, slots: 12, speed: 1.05}", text))
    slow = read(tmp_path, changed("web: 1.83", "web: {value: 1.83, speed: 1.02}", text))
    assert "12 slots" in given.skus["genoa"].worth["web"].reason
    assert "14 slots" in slow.skus["genoa"].worth["web"].reason  # 8 x 1.83 / 1.02
    fixed = read(tmp_path, changed("web: 1.83", "web: {value: 1.83, utilisation: 55%}", text))
    assert fixed.utilisation("genoa", "web") == 0.55
    assert "either these two or the utilisation" in refused(
        tmp_path, changed("web: 1.83", "web: {value: 1.83, utilisation: 55%, slots: 4}", text)
    )


def test_a_sku_that_cannot_keep_the_objective_is_out(tmp_path: Path) -> None:
    text = changed("utilisation: 65%", SLO)
    q = read(tmp_path, changed("web: 1.83", "web: {value: 1.83, speed: 0.1}", text))
    assert "web" not in q.skus["genoa"].worth
    assert "cannot be met" in q.skus["genoa"].out["web"]
    none = refused(tmp_path, changed("web: 1.83", "web: {value: 1.83, speed: 0.1}", changed("50ms", "6ms", text)))
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "slo:" in row)
    assert none.startswith(f"demand.yml line {line}: workloads.web.slo: no SKU can run it: icelake: ")
    assert "genoa: " in none and len(none.splitlines()) == 1


def two_sites() -> Question:
    web = work("web", 10.0, availability="survives")
    skus = [sku("s", {"web": 1.0, "batch": 1.0}, 10.0)]
    return ask([web, work("batch", 8.0, availability="preemptible")], skus, [Site("a"), Site("b")])


def test_what_may_be_pre_empted_runs_in_the_headroom_of_others() -> None:
    plan = solve(two_sites(), gap=0)
    assert isinstance(plan, Plan) and check(two_sites(), plan) == []
    assert plan.objective == 200  # 20 servers: 10 survive for web, 10 idle with all up, of which batch takes 8
    ledger = Answer(two_sites(), plan).ledger
    assert 0.998 <= ledger.expected(1)[0] < 1  # each site is down for 0.1% of the time


def test_pre_emption_needs_a_host(tmp_path: Path) -> None:
    text = changed("utilisation: 65%", "utilisation: 65%\n    availability: preemptible")
    assert "workloads.web: may be pre-empted, but no workload that survives a failure shares its SKUs" in refused(
        tmp_path, text
    )


def test_a_workload_with_gpus_runs_where_enough_of_them_are(tmp_path: Path) -> None:
    text = changed("utilisation: 65%", "utilisation: 65%\n    gpus: 2\n    gpu_memory: 80 GB")
    assert "workloads.web.gpus: no SKU can run it: icelake, genoa: it has 0 GPUs" in refused(tmp_path, text)
    equipped = changed("price: 12000", "price: 12000\n    gpus: 4\n    gpu_memory: 96 GB", text)
    q = read(tmp_path, equipped)
    assert list(q.skus["genoa"].worth) == ["web"] and "2 GPUs of 80 GB" in q.skus["icelake"].out["web"]
    more = refused(tmp_path, changed("web: 1.83", "web: 2.5", equipped))
    assert "worth.web: is 2.5, more than its 4 GPUs give (2)" in more


def test_orders_that_are_placed_already_arrive(tmp_path: Path) -> None:
    placed = "  - {sku: genoa, site: fra, count: 60, arrives: 2027-Q2}\n"
    q = read(tmp_path, SMALL + placed)
    assert (q.fleet[1].age, q.fleet[1].arrives) == (0, 1)
    plan = solve(q, gap=0.001)
    assert isinstance(plan, Plan) and check(q, plan) == []
    rows = plan.stock[(plan.stock["sku"] == "genoa") & (plan.stock["site"] == "fra")].sort_values("period")
    assert list(rows["arrive"])[:2] == [0, 60] and list(rows["installed"])[:2] == [0, 60]
    line = len(SMALL.splitlines()) + 1
    unsold = refused(tmp_path, SMALL + placed.replace("genoa", "icelake"))
    assert unsold == f"demand.yml line {line}: fleet[2].sku: icelake is on order, but it is not sold: give it a price"
    late = refused(tmp_path, SMALL + placed.replace("2027-Q2", "2031-Q2"))
    assert f"demand.yml line {line}: fleet[2].arrives: no period '2031-Q2'" in late
