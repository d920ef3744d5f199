"""Demand vectors: hand-worked machines, simulated fleets whose truth is known, what must be refused, bad input."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.bottleneck import (
    POWERS,
    THROTTLES,
    Profile,
    Upgrade,
    cannot_tell,
    equivalence,
    fit,
    gains,
    predicted,
    sensitivities,
    time_of,
)

A, B, C = {"cpu": 10.0, "mem": 100.0}, {"cpu": 20.0, "mem": 100.0}, {"cpu": 10.0, "mem": 200.0}
D = (50.0, 300.0)


def rates(machine: dict[str, float]) -> list[float]:
    return list(machine.values())


def test_times_by_hand() -> None:
    assert [time_of(D, rates(m), 1) for m in (A, B, C)] == pytest.approx([8, 5.5, 6.5])
    assert time_of(D, rates(A), math.inf) == 5


@pytest.mark.parametrize(("p", "ratio"), [(1, 1.4545), (math.inf, 1.6667), (2, 1.4932)])
def test_equivalence_by_hand(p: float, ratio: float) -> None:
    assert time_of(D, rates(A), p) / time_of(D, rates(B), p) == pytest.approx(ratio, abs=5e-5)


def test_sensitivities_by_hand() -> None:
    assert sensitivities(D, rates(A), 1) == pytest.approx([0.625, 0.375])
    assert sensitivities(D, rates(A), math.inf) == pytest.approx([1, 0])
    assert sensitivities((30, 300), rates(A), math.inf) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("p", POWERS)
def test_doubling_everything_is_worth_two(p: float) -> None:
    assert time_of(D, rates(A), p) / time_of(D, [20, 200], p) == pytest.approx(2)


def test_three_machines_give_back_the_demand() -> None:
    fitted = fit({"A": A, "B": B, "C": C}, {"A": 8, "B": 5.5, "C": 6.5})
    assert fitted.p == 1 and fitted.error == pytest.approx(0, abs=1e-9)
    assert (fitted.demand["cpu"], fitted.demand["mem"]) == pytest.approx(D)
    assert not fitted.refused and fitted.throttle is None
    ratio = equivalence(fitted, A, B)
    assert ratio.value == pytest.approx(1.4545, abs=5e-5)
    assert (ratio.lo, ratio.hi) == pytest.approx((ratio.value, ratio.value), rel=1e-6)


@given(
    st.lists(st.floats(0.1, 10), min_size=2, max_size=4),
    st.floats(1, 6),
    st.lists(st.floats(0.1, 10), min_size=4, max_size=4),
)
def test_a_little_more_of_each_rate_gains_its_share(demand: list[float], p: float, rates: Sequence[float]) -> None:
    point = np.array(rates[: len(demand)])
    eps = sensitivities(demand, point, p)
    assert eps.sum() == pytest.approx(1)
    for i in range(len(demand)):
        more = point.copy()
        more[i] *= 1 + 1e-6
        gain = math.log(time_of(demand, point, p) / time_of(demand, more, p)) / math.log1p(1e-6)
        assert gain == pytest.approx(eps[i], abs=1e-4)


def fleet(
    p: float, demand: Sequence[float], count: int, noise: float, seed: int = 1, apart: float = 0.5
) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    rng = np.random.default_rng(seed)
    names = ["cpu", "mem", "disk", "net"][: len(demand)]
    machines, times = {}, {}
    for n in range(count):
        rates = np.exp(rng.normal(0, apart, len(demand)))
        machines[f"h{n}"] = dict(zip(names, rates.tolist(), strict=True))
        times[f"h{n}"] = time_of(demand, rates, p) * math.exp(rng.normal(0, noise))
    return machines, times


@pytest.mark.parametrize("p", POWERS)
def test_exact_fleets_give_back_demand_and_overlap(p: float) -> None:
    machines, times = fleet(p, (3, 2.5, 2), 12, 0)
    fitted = fit(machines, times)
    assert fitted.p == p
    assert list(fitted.demand.values()) == pytest.approx([3, 2.5, 2], rel=1e-6)


def test_overlap_that_the_machines_do_not_show_is_said() -> None:
    """Two kinds of machines, three times each: any p fits them."""
    machines, times = {}, {}
    rng = np.random.default_rng(1)
    for n in range(6):
        kind = (1.0, 1.0) if n % 2 else (2.0, 1.2)
        machines[f"h{n}"] = {
            "cpu": kind[0] * math.exp(rng.normal(0, 0.02)),
            "mem": kind[1] * math.exp(rng.normal(0, 0.02)),
        }
        times[f"h{n}"] = time_of((3, 2), list(machines[f"h{n}"].values()), 2) * math.exp(rng.normal(0, 0.01))
    fitted = fit(machines, times)
    assert {1.0, 1.5, 2.0} <= {fitted.p, *fitted.alike}
    assert fit(*fleet(math.inf, (3, 3), 12, 0.001)).alike == []


def test_a_resource_that_never_binds_leaves_no_demand() -> None:
    machines, times = fleet(math.inf, (3, 3, 0.01), 12, 0)
    fitted = fit(machines, times)
    assert fitted.p == math.inf
    assert list(fitted.demand.values()) == pytest.approx([3, 3, 0])


def test_shares_hold_the_truth_in_noise() -> None:
    """12 fleets whose figures are off by 2%: the interval of the largest share, at the fleet's mean, holds the truth."""
    held = 0
    for seed in range(12):
        machines, times = fleet(1, (3, 2), 10, 0.02, seed)
        fitted = fit(machines, times)
        truth = sensitivities((3, 2), fitted.rates_of(None), 1)[0]
        low, high = fitted.shares["cpu"].interval or (0, 0)
        held += low <= truth <= high
    assert held >= 10


def test_predictions_hold_new_machines() -> None:
    held, widths = 0, []
    for seed in range(24):
        machines, times = fleet(1, (3, 2), 11, 0.02, seed, apart=0.3)
        new, took = machines.pop("h10"), times.pop("h10")
        fitted = fit(machines, times)
        rate = predicted(fitted, new)
        lo, hi = rate.interval or (0, 0)
        held += lo <= 1 / took <= hi
        widths.append(rate.log_error)
    assert held >= 20 and np.median(widths) < 0.05


def test_rates_that_move_together_are_refused_and_a_throttle_settles_it() -> None:
    rng = np.random.default_rng(2)
    machines, times = {}, {}
    for n in range(8):
        size = 1 + n / 2
        machines[f"h{n}"] = {"cpu": size * math.exp(rng.normal(0, 0.01)), "mem": size * math.exp(rng.normal(0, 0.01))}
        times[f"h{n}"] = time_of((3, 2), list(machines[f"h{n}"].values()), 1) * math.exp(rng.normal(0, 0.01))
    fitted = fit(machines, times)
    assert fitted.condition > 30 and any("rise and fall together" in w for w in fitted.refused)
    assert fitted.throttle is not None
    resource, condition = fitted.throttle
    assert condition < 30
    for part in THROTTLES:
        name = f"h0 at {part}"
        machines[name] = machines["h0"] | {resource: machines["h0"][resource] * part}
        times[name] = time_of((3, 2), list(machines[name].values()), 1) * math.exp(rng.normal(0, 0.01))
    settled = fit(machines, times)
    assert not settled.refused
    assert settled.shares["cpu"].value == pytest.approx(0.6, abs=0.05)


def test_noise_widens_a_share_until_it_is_refused() -> None:
    machines, times = fleet(1, (3, 2), 5, 0.3, seed=4)
    fitted = fit(machines, times)
    assert any("is anywhere from" in w for w in fitted.refused)
    assert "the interval is wider than" in cannot_tell(fitted, machines["h0"])


def profile() -> Profile:
    return fit(*fleet(1, (3, 2), 10, 0.01))


def test_a_machine_far_from_all_fitted_is_not_predicted() -> None:
    fitted = profile()
    centre = dict(zip(fitted.resources, fitted.rates_of(None).tolist(), strict=True))
    assert cannot_tell(fitted, centre) == ""
    assert "mem is more than 2 times beyond" in cannot_tell(fitted, centre | {"mem": fitted.rates[:, 1].max() * 2.1})


def test_upgrades_are_ranked_by_gain_per_money() -> None:
    exact = fit({"A": A, "B": B, "C": C}, {"A": 8, "B": 5.5, "C": 6.5})
    offered = [
        Upgrade("faster memory", {"mem": 1.2}, 500),
        Upgrade("more cores", {"cpu": 2.0}, 4000),
        Upgrade("both", {"cpu": 2.0, "mem": 2.0}),
    ]
    ranked = gains(exact, offered, A)
    assert [g.upgrade.name for g in ranked] == ["faster memory", "more cores", "both"]
    assert ranked[0].ratio.value == pytest.approx(8 / 7.5)
    assert ranked[0].per_money == pytest.approx((8 / 7.5 - 1) / 500)
    assert ranked[2].ratio.value == pytest.approx(2) and ranked[2].per_money is None


def test_a_mean_side_is_the_geometric_mean() -> None:
    fitted = profile()
    centre = dict(zip(fitted.resources, fitted.rates_of(None).tolist(), strict=True))
    of_itself = equivalence(fitted, None, centre)
    assert of_itself.value == pytest.approx(1) and of_itself.lo == pytest.approx(1)


@pytest.mark.parametrize(
    ("rates", "times", "expected"),
    [
        ({"A": A, "B": B}, {"A": 8.0, "B": 5.5}, "2 machines for 2 resources: a profile takes at least 3"),
        ({"A": A, "B": {"cpu": 1.0}, "C": C}, {"A": 8.0, "B": 5.5, "C": 6.5}, "B has no rate of mem"),
        ({"A": A, "B": B, "C": C | {"mem": 0.0}}, {"A": 8.0, "B": 5.5, "C": 6.5}, "a rate of 0 (mem of C)"),
        ({"A": A, "B": B, "C": C}, {"A": 8.0, "B": math.nan, "C": 6.5}, "a time of nan (B)"),
        ({}, {"A": 8.0}, "no machine has a rate"),
    ],
)
def test_bad_figures(rates: dict[str, dict[str, float]], times: dict[str, float], expected: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        fit(rates, times)
    assert expected in str(error.value)


def test_bad_machines_and_upgrades() -> None:
    fitted = profile()
    for call, expected in (
        (lambda: predicted(fitted, {"cpu": 1.0}), "no rate of mem"),
        (lambda: equivalence(fitted, None, {"cpu": 1.0, "mem": -1.0}), "a rate of -1 (mem)"),
        (lambda: gains(fitted, [Upgrade("x", {"gpu": 2.0})]), "gpu is not a resource of the profile"),
        (lambda: gains(fitted, [Upgrade("x", {"mem": 0.0})]), "a factor of 0"),
        (lambda: gains(fitted, [Upgrade("x", {"mem": 1.2}, -5)]), "a price of -5"),
    ):
        with pytest.raises(FleetmarkError) as error:
            call()
        assert expected in str(error.value)
