"""The second interval: where there is one, what it covers, and that it is the same each time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.bootstrap import LEAST_HOSTS, paired_percentiles, percentiles
from planner.ratio import welch


def test_small_fleets_have_none() -> None:
    few, many = [0.0] * (LEAST_HOSTS - 1), [0.1] * LEAST_HOSTS
    assert percentiles(few, many, 0.95) is None
    assert percentiles(many, few, 0.95) is None
    assert paired_percentiles(few, 0.95) is None


def test_it_is_the_same_each_time_and_lies_near_welch() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 0.03, 40), rng.normal(math.log(1.83), 0.03, 40)
    lo, hi = percentiles(a.tolist(), b.tolist(), 0.95) or (0, 0)
    assert (lo, hi) == percentiles(a.tolist(), b.tolist(), 0.95)
    plain = welch(a.tolist(), b.tolist())
    assert plain.lo is not None and plain.hi is not None
    assert (lo, hi) == pytest.approx((plain.lo, plain.hi), rel=0.005)


def test_coverage_with_twenty_hosts() -> None:
    """Nominal 95% over 20 hosts a side covers about 93%, as methodology's table has it; less would be a fault."""
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        a, b = rng.normal(0, 0.03, 20), rng.normal(math.log(1.83), 0.03, 20)
        lo, hi = percentiles(a.tolist(), b.tolist(), 0.95) or (0, 0)
        covered += lo <= 1.83 <= hi
    assert 0.89 <= covered / 300 <= 0.98


def test_pairs_are_resampled_together() -> None:
    rng = np.random.default_rng(7)
    d = rng.normal(math.log(1.1), 0.001, 12)
    lo, hi = paired_percentiles(d.tolist(), 0.95) or (0, 0)
    assert 1.098 < lo < 1.1 < hi < 1.102
