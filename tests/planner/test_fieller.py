"""Ratios of arithmetic means: the textbook's interval, and where it is unbounded."""

from __future__ import annotations

import numpy as np
import pytest

from planner.fieller import fieller


def test_the_oracle() -> None:
    ratio = fieller(np.array([19.0, 20, 21]), np.array([9.0, 10, 11]))
    assert (ratio.value, ratio.lo, ratio.hi) == pytest.approx((2.0, 1.6858, 2.4197), abs=5e-5)
    assert ratio.g == pytest.approx(0.025695, abs=5e-7) and ratio.df == 4


def test_ends_are_where_the_difference_is_just_significant() -> None:
    x, y = np.array([3.0, 3.5, 4.1, 2.9]), np.array([1.1, 0.9, 1.3])
    ratio = fieller(x, y)
    assert ratio.lo is not None and ratio.hi is not None
    for end in (ratio.lo, ratio.hi):
        se = np.sqrt(x.var(ddof=1) / 4 + end**2 * y.var(ddof=1) / 3)
        assert abs(x.mean() - end * y.mean()) / se == pytest.approx(2.570582, abs=1e-6)  # Student's t, 5 degrees


def test_a_lower_mean_that_may_be_zero_has_no_ends() -> None:
    ratio = fieller(np.array([2.0, 2.1, 1.9]), np.array([0.1, 2.0, 0.9]))
    assert ratio.value == pytest.approx(2.0) and ratio.interval is None and ratio.g is not None and ratio.g >= 1


def test_one_host_has_a_ratio_and_nothing_else() -> None:
    ratio = fieller(np.array([2.0]), np.array([1.0, 1.0]))
    assert (ratio.value, ratio.interval, ratio.g) == (2.0, None, None)
