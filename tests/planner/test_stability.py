"""When repeats suffice: intervals by hand, warm-ups, disturbed repeats."""

from __future__ import annotations

import numpy as np
import pytest

from fleetmark.planner.stability import disturbed, half_width, warm_up


def test_half_width_by_hand() -> None:
    """Ten values: ranks 2 and 9 are 97.9%."""
    assert half_width([100, 101, 99, 102, 98, 103, 97, 104, 96, 105]) == pytest.approx((104 - 97) / 2 / 100.5)


def test_below_six_there_is_none() -> None:
    assert half_width([1.0] * 5) is None
    assert half_width([1.0] * 6) == 0.0
    assert half_width([0.0] * 8) == 0.0
    assert half_width([-1.0, 1.0, 0.0] * 4) is None


def test_warm_up_is_what_comes_before_five_that_agree() -> None:
    assert warm_up([50, 80, 95, 100, 100.2, 99.9, 100.1, 100, 100, 100.1]) == 3
    assert warm_up([100.0, 100.1, 99.9, 100, 100.1, 99.9]) == 0


def test_what_never_settles_has_no_warm_up() -> None:
    rng = np.random.default_rng(1)
    assert warm_up(rng.normal(100, 10, 20).tolist()) == 0
    assert warm_up([100, 110, 121, 133, 146, 161, 177, 195]) == 0  # it rises to the end


def test_a_repeat_that_stands_out_is_disturbed() -> None:
    assert disturbed({0: 0.01, 1: 0.02, 2: 1.5, 3: 0.0}, 8) == pytest.approx({2: 1.485})
    assert disturbed({0: 0.9, 1: 0.95, 2: 1.0, 3: 1.05}, 8) == {}  # kernel threads of its own
    assert disturbed({0: 0.0, 1: 5.0}, 8) == {}  # too few to know what is usual
    assert disturbed({0: 0.0, 1: 0.0, 2: 0.9}, 128) == {}  # less than 1% of the machine


def test_stopping_when_narrow_keeps_its_promise() -> None:
    """Looked at every five repeats, the interval at the stop covers the true median in nearly 95% of runs."""
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        values = rng.normal(100, 3, 10).tolist()
        while (half_width(values) or 1) > 0.015 and len(values) < 60:
            values += rng.normal(100, 3, 5).tolist()
        middle, half = float(np.median(values)), half_width(values) or 0
        covered += abs(middle - 100) / middle <= half * 1.25  # the interval is not symmetric about the median
    assert covered / 400 >= 0.92
