"""Ratios of arithmetic means: the textbook's interval, and where it is unbounded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fleetmark.planner.fieller import fieller


def test_the_oracle() -> None:
    ratio = fieller(np.array([19.0, 20, 21]), np.array([9.0, 10, 11]))
    assert (ratio.value, ratio.lo, ratio.hi) == pytest.approx((2.0, 1.6858, 2.4197), abs=5e-5)
    assert ratio.g == pytest.approx(0.025695, abs=5e-7) and ratio.df == 4


def test_ends_are_where_the_difference_is_just_significant() -> None:
    x, y = np.array([3.0, 3.5, 4.1, 2.9]), np.array([1.1, 0.9, 1.3])
    ratio = fieller(x, y)
    assert ratio.lo is not None and ratio.hi is not None
    a, b = x.var(ddof=1) / 4, (x.mean() / y.mean()) ** 2 * y.var(ddof=1) / 3
    df = (a + b) ** 2 / (a**2 / 3 + b**2 / 2)  # by Satterthwaite, below the ceiling 2 * 2 * (1 + 3 / 4) = 7
    assert ratio.df == pytest.approx(df) and df < 7
    for end in (ratio.lo, ratio.hi):
        se = np.sqrt(x.var(ddof=1) / 4 + end**2 * y.var(ddof=1) / 3)
        assert abs(x.mean() - end * y.mean()) / se == pytest.approx(stats.t.ppf(0.975, df))


def test_a_lower_mean_that_may_be_zero_has_no_ends() -> None:
    ratio = fieller(np.array([2.0, 2.1, 1.9]), np.array([0.1, 2.0, 0.9]))
    assert ratio.value == pytest.approx(2.0) and ratio.interval is None and ratio.g is not None and ratio.g >= 1


def test_one_host_has_a_ratio_and_nothing_else() -> None:
    ratio = fieller(np.array([2.0]), np.array([1.0, 1.0]))
    assert (ratio.value, ratio.interval, ratio.g) == (2.0, None, None)


def test_three_hosts_against_twenty_have_a_ceiling() -> None:
    """Compare three hosts that hardly vary with twenty that do.

    Nearly all variance comes from the twenty, so Satterthwaite gives 19 degrees of freedom.
    The ceiling is (3 - 1) * 2 * (1 + 3 / 20) = 4.6.
    """
    few, many = np.array([1.0, 1.0001, 0.9999]), 1 + 0.1 * np.sin(np.arange(20))
    assert fieller(few, many).df == pytest.approx(4.6)
    assert fieller(many, few).df == pytest.approx(4.6)


def test_few_hosts_against_many_are_covered() -> None:
    """Check coverage for 3 hosts against 20. With n_a + n_b - 2 = 21 degrees of freedom it would be only 88%."""
    rng = np.random.default_rng(20261124)
    held = 0
    for _ in range(2000):
        ends = fieller(rng.normal(2, 0.06, 3), rng.normal(1, 0.03, 20)).interval
        held += ends is not None and ends[0] <= 2 <= ends[1]
    assert 0.93 <= held / 2000 <= 0.98
