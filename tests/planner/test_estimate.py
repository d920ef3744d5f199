"""Test estimates: intervals from standard errors and back, by Student's t or the normal distribution."""

from __future__ import annotations

import math

import pytest

from fleetmark.planner.estimate import Estimate, deviate


def test_deviates_are_those_of_tables() -> None:
    assert deviate(0.95, 1) == pytest.approx(12.7062, abs=5e-5)
    assert deviate(0.95, 4) == pytest.approx(2.7764, abs=5e-5)
    assert deviate(0.95, None) == deviate(0.95, math.inf) == pytest.approx(1.95996, abs=5e-6)
    assert deviate(0.9, 10) == pytest.approx(1.8125, abs=5e-5)
    assert deviate(0.99, 30) == pytest.approx(2.7500, abs=5e-5)
    assert deviate(0.999, 1000) == pytest.approx(3.3003, abs=5e-5)


@pytest.mark.parametrize("df", [1.0, 2.94, 30.0, math.inf, None])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_standard_error_gives_an_interval_and_comes_back(df: float | None, level: float) -> None:
    estimate = Estimate.of_error(1.83, 0.02, df, (3, 4), level)
    assert estimate.interval is not None
    assert math.prod(estimate.interval) == pytest.approx(1.83**2)  # the same factor down and up
    assert estimate.log_error == pytest.approx(0.02)


def test_no_interval_gives_no_error() -> None:
    assert Estimate(1.5).interval is None and Estimate(1.5).log_error is None


def test_a_huge_error_has_ends_that_a_float_can_hold() -> None:
    assert Estimate.of_error(1.0, 1e4, 1.0).interval == pytest.approx((1e-300, 1e300))
