"""Totals of mixed fleets: sums over hosts, by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from planner.contrast import Pairing
from planner.equivalence import Basis, compare
from planner.ratio import Verdict
from planner.totals import totalled


def side(name: str, **benchmarks: list[float]) -> pd.DataFrame:
    """Hosts by benchmarks, as logarithms."""
    frame = pd.DataFrame(benchmarks, dtype=float)
    frame.index = pd.Index([f"{name}{n}" for n in range(len(frame))])
    return np.log(frame)


def test_a_mixed_baseline_is_replaced_by_its_sum() -> None:
    """Ten hosts of 100 and ten of 400 do 250 each on average: one of 400 replaces 1.6 of them, not 400 / 200.

    Their standard deviation is 153.9, the error of the mean 34.4, and t of 19 degrees 2.093: 400 / (250 -+ 72.0).
    """
    old, new = side("a", x=[100.0] * 10 + [400.0] * 10), side("b", x=[400.0] * 10)
    e = compare(old, new)
    assert e.headline and e.headline.value == pytest.approx(2.0)  # sqrt(100 x 400) = 200
    total = totalled(e, old, new, Pairing.APART)
    assert total.headline and total.headline.value == pytest.approx(400 / 250)
    assert total.basis is Basis.TOTALS and total.geometric is e.headline
    lo, hi = total.headline.interval or (0, 0)
    assert (lo, hi) == pytest.approx((400 / 322.03, 400 / 177.97), rel=1e-3) and total.headline.n == (20, 10)


def test_a_fleet_that_is_one_thing_keeps_its_geometric_mean() -> None:
    """Hosts 3% apart: the arithmetic mean lies 0.05% above the geometric one."""
    old, new = side("a", x=[97.0, 100.0, 103.0]), side("b", x=[194.0, 200.0, 206.0])
    e = compare(old, new)
    assert totalled(e, old, new, Pairing.APART) is e


def test_totals_can_turn_the_verdict() -> None:
    """Five hosts of 10 and five of 190: 100 each, geometric 43.6. Ten of 90 are more by the one, less by the other."""
    old, new = side("a", x=[10.0] * 5 + [190.0] * 5), side("b", x=[90.0, 90.1] * 5)
    e = compare(old, new)
    assert e.headline and e.headline.value > 2
    total = totalled(e, old, new, Pairing.APART).headline
    assert total and total.value == pytest.approx(0.9005) and total.verdict is Verdict.CANNOT_TELL


def test_of_several_benchmarks_a_host_has_one_score() -> None:
    """Small hosts do 1 and 4, large ones 4 and 16: scores 2 and 8, mean 5. Candidates do 10 and 10: 10 / 5 = 2."""
    old = side("a", x=[1.0, 1.0, 4.0, 4.0], y=[4.0, 4.0, 16.0, 16.0])
    new = side("b", x=[10.0, 10.0], y=[10.0, 10.0])
    total = totalled(compare(old, new), old, new, Pairing.APART).headline
    assert total and total.value == pytest.approx(2.0)
    gaps = old.copy()
    gaps.iloc[0, 1] = gaps.iloc[3, 0] = math.nan  # what they lack follows from what they have
    filled = totalled(compare(gaps, new), gaps, new, Pairing.APART).headline
    assert filled and filled.value == pytest.approx(2.0, rel=1e-3)


def test_a_mix_is_of_jobs_that_are_finished_in_a_time() -> None:
    """Half of the hours each. Baseline hosts: (1, 1) and (3, 3), mean (2, 2). One finishes the mix 1/2 and 3/2 times as
    often as the mean host, 1 on average. A candidate of (4, 8) needs 0.5 x 2/4 + 0.5 x 2/8 = 0.375 of the time.
    """
    old, new = side("a", x=[1.0, 3.0], y=[1.0, 3.0]), side("b", x=[4.0, 4.0], y=[8.0, 8.0])
    e = compare(old, new, mix={"x": 0.5, "y": 0.5})
    total = totalled(e, old, new, Pairing.APART)
    assert total.work and total.work.value == pytest.approx(1 / 0.375) and total.ratio is e.ratio
    geometric = math.sqrt(3)
    assert e.work and e.work.value == pytest.approx(1 / (0.5 * geometric / 4 + 0.5 * geometric / 8))
    assert total.mix_sensitive == e.mix_sensitive
