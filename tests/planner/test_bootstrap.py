"""The second interval: if there is one, what it covers, and that it is the same each time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fleetmark.planner.bootstrap import LEAST_HOSTS, paired_percentiles, percentiles
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import welch


def interval(estimate: Estimate | None) -> tuple[float, float]:
    assert estimate is not None and estimate.interval is not None
    return estimate.interval


def test_small_fleets_have_none() -> None:
    few, many = [0.0] * (LEAST_HOSTS - 1), [0.1] * LEAST_HOSTS
    assert percentiles(few, many) is None
    assert percentiles(many, few) is None
    assert paired_percentiles(few) is None


def test_it_is_the_same_each_time_and_lies_near_welch() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 0.03, 40), rng.normal(math.log(1.83), 0.03, 40)
    resampled = percentiles(a.tolist(), b.tolist())
    assert resampled == percentiles(a.tolist(), b.tolist())
    plain = welch(a.tolist(), b.tolist())
    assert resampled is not None and (resampled.value, resampled.n) == (pytest.approx(plain.value), (40, 40))
    assert resampled.interval == pytest.approx(plain.interval, rel=0.005)


def test_coverage_with_twenty_hosts() -> None:
    """Nominal 95% over 20 hosts per side covers about 93%, as methodology's table has it; less would be a fault."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        a, b = rng.normal(0, 0.03, 20), rng.normal(math.log(1.83), 0.03, 20)
        lo, hi = interval(percentiles(a.tolist(), b.tolist()))
        covered += lo <= 1.83 <= hi
    assert 0.89 <= covered / 300 <= 0.98


def test_pairs_are_resampled_together() -> None:
    rng = np.random.default_rng(7)
    d = rng.normal(math.log(1.1), 0.001, 12)
    lo, hi = interval(paired_percentiles(d.tolist()))
    assert 1.098 < lo < 1.1 < hi < 1.102
