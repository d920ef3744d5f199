"""Queues against published values, a recursion, a simulation and their limits; targets that no load meets."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.queueing import erlang_c, mean_wait, takes_longer, utilisation_for, waits_longer


@pytest.mark.parametrize(("servers", "load", "truth"), [(2, 1, 1 / 3), (10, 8, 0.40918), (100, 90, 0.21694)])
def test_erlang_c_of_the_tables(servers: int, load: float, truth: float) -> None:
    assert erlang_c(servers, load) == pytest.approx(truth, abs=5e-6)


def recursion(servers: int, load: float) -> float:
    inverse = 1.0
    for k in range(1, servers + 1):
        inverse = 1 + k / load * inverse
    return servers / (inverse * (servers - load) + load)


@given(st.integers(1, 3000), st.floats(0.05, 0.999))
def test_erlang_c_against_its_recursion(servers: int, used: float) -> None:
    inverse = recursion(servers, used * servers)
    assert erlang_c(servers, used * servers) == pytest.approx(inverse, rel=1e-8, abs=1e-300)


def test_erlang_c_of_very_many_servers() -> None:
    assert erlang_c(1_000_000, 999_000) == pytest.approx(recursion(1_000_000, 999_000), rel=1e-6)
    assert erlang_c(1_000_000, 500_000) == 0.0
    assert erlang_c(4, 0) == 0.0


@pytest.mark.parametrize(("servers", "load"), [(0, 0), (2, 2), (2, -1), (2, math.nan)])
def test_no_queue_in_balance(servers: int, load: float) -> None:
    with pytest.raises(ValueError, match="no steady state"):
        erlang_c(servers, load)


def test_one_exponential_server_by_hand() -> None:
    """M/M/1 at 0.6: mean wait rho s / (1 - rho); P(W > t) = rho exp(-(1-rho) t/s); P(R > t) = exp(-(1-rho) t/s)."""
    assert mean_wait(1, 0.6, 0.01) == pytest.approx(0.015)
    assert waits_longer(0.05, 1, 0.6, 0.01) == pytest.approx(0.6 * math.exp(-2))
    assert takes_longer(0.05, 1, 0.6, 0.01) == pytest.approx(math.exp(-2), rel=1e-6)


def test_steady_service_halves_the_wait() -> None:
    """M/D/1: half of M/M/1, by Pollaczek and Khinchine."""
    assert mean_wait(1, 0.6, 0.01, service_cv2=0) == pytest.approx(0.0075)
    assert takes_longer(0.009, 1, 0.6, 0.01, service_cv2=0) == 1.0
    assert takes_longer(0.03, 1, 0.6, 0.01, service_cv2=0) == pytest.approx(waits_longer(0.02, 1, 0.6, 0.01, 1, 0))


def simulated(slots: int, load: float, service_cv2: float, seed: int, many: int = 200_000) -> np.ndarray:
    """Latencies of a queue with Poisson arrivals, gamma service of mean 1, first come first served."""
    rng = np.random.default_rng(seed)
    arrive = np.cumsum(rng.exponential(1 / load, many))
    serve = rng.gamma(1 / service_cv2, service_cv2, many)
    free = [0.0] * slots
    taken = np.empty(many)
    for n in range(many):
        begin = max(arrive[n], heapq.heappop(free))
        heapq.heappush(free, begin + serve[n])
        taken[n] = begin + serve[n] - arrive[n]
    return taken[many // 10 :]


@pytest.mark.parametrize(("slots", "load", "service_cv2", "off"), [(8, 6.4, 1.0, 0.05), (8, 6.4, 0.25, 0.1)])
def test_latency_against_a_simulated_queue(slots: int, load: float, service_cv2: float, off: float) -> None:
    """Exact for M/M/c up to the simulation's own noise; near for steadier service."""
    taken = simulated(slots, load, service_cv2, seed=3)
    p95 = float(np.quantile(taken, 0.95))
    assert takes_longer(p95, slots, load, 1.0, service_cv2=service_cv2) == pytest.approx(0.05, rel=4 * off)
    wait = float(taken.mean()) - 1
    assert mean_wait(slots, load, 1.0, service_cv2=service_cv2) == pytest.approx(wait, rel=2 * off)


def test_a_target_inverted_is_met_exactly() -> None:
    u, reason = utilisation_for(0.05, 0.99, 0.01, 8)
    assert 0 < u < 0.85 and "p99 latency of 50.0 ms" in reason and "8 slots" in reason
    assert takes_longer(0.05, 8, u * 8, 0.01) == pytest.approx(0.01, rel=1e-4)
    u, reason = utilisation_for(0.012, None, 0.01, 4)
    assert "mean latency" in reason
    assert mean_wait(4, 4 * u, 0.01) == pytest.approx(0.002, rel=1e-4)
    u, reason = utilisation_for(0.02, 0.99, 0.01, 8, wait=True)
    assert "p99 wait" in reason
    assert waits_longer(0.02, 8, 8 * u, 0.01) == pytest.approx(0.01, rel=1e-4)


def test_one_server_inverted_by_hand() -> None:
    """M/M/1: exp(-(1-u) t/s) = 1 - q, so u = 1 - ln(1/(1-q)) s/t."""
    u, _ = utilisation_for(0.1, 0.99, 0.01, 1)
    assert u == pytest.approx(1 - math.log(100) / 10, abs=1e-6)


def test_the_cap_binds_where_the_target_is_loose() -> None:
    assert utilisation_for(1.0, 0.99, 0.01, 64) == (0.85, "the cap of 0.85: p99 latency of 1.00 s would allow more")
    assert utilisation_for(1.0, 0.99, 0.01, 64, cap=0.7)[0] == 0.7


@given(st.integers(1, 40), st.floats(1.5, 20), st.floats(0, 2), st.floats(0, 2))
def test_more_slots_a_longer_target_or_less_variation_never_lower_it(
    slots: int, target: float, arrival: float, service: float
) -> None:
    def highest(slots: int, target: float, arrival: float, service: float) -> float:
        return utilisation_for(target, None, 1.0, slots, arrival, service)[0]

    u = highest(slots, target, arrival, service)
    assert highest(slots + 1, target, arrival, service) >= u - 1e-6
    assert highest(slots, target * 1.1, arrival, service) >= u - 1e-6
    assert highest(slots, target, arrival * 0.9, service * 0.9) >= u - 1e-6


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0.005, 0.99, 0.01, 8), "service alone takes 10.0 ms"),
        ((0.02, 0.99, 0.01, 8), "13.5% of requests take longer in service alone"),
        ((0.0, 0.99, 0.01, 8), "a target of 0 s"),
        ((0.1, 0.99, -1.0, 8), "a service time of -1 s"),
        ((0.1, 1.0, 0.01, 8), "a quantile of 1"),
        ((0.1, 0.99, 0.01, 0), "0 slots"),
        ((0.1, 0.99, 0.01, 8, -1), "variation of -1 for arrivals"),
        ((0.1, 0.99, 0.01, 8, 1, math.nan), "variation of nan for service"),
        ((0.1, 0.99, 0.01, 8, 1, 1, 1.2), "a utilisation cap of 1.2"),
        ((1.0, None, 1 - 1e-9, 1), "at any useful load"),
    ],
)
def test_what_cannot_be(arguments: tuple[float, ...], sentence: str) -> None:
    with pytest.raises(FleetmarkError, match=sentence.replace("(", r"\(")) as error:
        utilisation_for(*arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
