"""Test the totals of mixed fleets, as sums over hosts worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fleetmark.planner.contrast import Pairing, Repeats
from fleetmark.planner.equivalence import Basis, compare
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import Mean, Verdict, satterthwaite
from fleetmark.planner.totals import total, totalled


def side(name: str, **benchmarks: list[float]) -> pd.DataFrame:
    """Return a table of hosts by benchmarks, as logarithms."""
    frame = pd.DataFrame(benchmarks, dtype=float)
    frame.index = pd.Index([f"{name}{n}" for n in range(len(frame))])
    return np.log(frame)


def test_a_mixed_baseline_is_replaced_by_its_sum() -> None:
    """Check ten hosts of 100 and ten of 400: their mean is 250, so one host of 400 replaces 1.6, not 400 / 200.

    Their standard deviation is 153.9, the standard error 34.4, and t with 19 degrees of freedom 2.093.
    The interval is 400 / (250 -+ 72.0).
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
    """Check hosts 3% apart: the arithmetic mean is only 0.05% above the geometric mean."""
    old, new = side("a", x=[97.0, 100.0, 103.0]), side("b", x=[194.0, 200.0, 206.0])
    e = compare(old, new)
    assert totalled(e, old, new, Pairing.APART) is e


def test_totals_can_turn_the_verdict() -> None:
    """Compare five hosts of 10 and five of 190 with ten of 90: they win by totals (100), not geometrically."""
    old, new = side("a", x=[10.0] * 5 + [190.0] * 5), side("b", x=[90.0, 90.1] * 5)
    e = compare(old, new)
    assert e.headline and e.headline.value > 2
    total = totalled(e, old, new, Pairing.APART).headline
    assert total and total.value == pytest.approx(0.9005) and total.verdict is Verdict.CANNOT_TELL


def test_of_several_benchmarks_a_host_has_one_score() -> None:
    """Check small hosts (1, 4) and large ones (4, 16): scores 2 and 8, mean 5. Candidates score 10: 10 / 5 = 2."""
    old = side("a", x=[1.0, 1.0, 4.0, 4.0], y=[4.0, 4.0, 16.0, 16.0])
    new = side("b", x=[10.0, 10.0], y=[10.0, 10.0])
    total = totalled(compare(old, new), old, new, Pairing.APART).headline
    assert total and total.value == pytest.approx(2.0)
    gaps = old.copy()
    gaps.iloc[0, 1] = gaps.iloc[3, 0] = math.nan  # missing values are estimated from the others
    filled = totalled(compare(gaps, new), gaps, new, Pairing.APART).headline
    assert filled and filled.value == pytest.approx(2.0, rel=1e-3)


def test_a_mix_is_of_jobs_that_are_finished_in_a_time() -> None:
    """Weight both benchmarks by half. Baseline hosts are at (1, 1) and (3, 3), so their mean is (2, 2).

    They finish the mix 1/2 and 3/2 times as often as the mean host, 1 on average.
    A candidate at (4, 8) needs 0.5 x 2/4 + 0.5 x 2/8 = 0.375 of the time.
    """
    old, new = side("a", x=[1.0, 3.0], y=[1.0, 3.0]), side("b", x=[4.0, 4.0], y=[8.0, 8.0])
    e = compare(old, new, mix={"x": 0.5, "y": 0.5})
    total = totalled(e, old, new, Pairing.APART)
    assert total.work and total.work.value == pytest.approx(1 / 0.375) and total.ratio is e.ratio
    geometric = math.sqrt(3)
    assert e.work and e.work.value == pytest.approx(1 / (0.5 * geometric / 4 + 0.5 * geometric / 8))
    assert total.mix_sensitive == e.mix_sensitive


def batches(frame: pd.DataFrame, *batch: str) -> pd.DataFrame:
    return pd.DataFrame({"batch": batch}, index=frame.index)


def test_totals_of_clustered_hosts_have_an_interval_by_clusters() -> None:
    """Batches of the baseline do 100, 200, 300, 400 on average, 250 in all. CR2 of four equal clusters is their
    variance 16,667 / 4, so an error of 64.55 with 3 degrees; over 12 hosts it would be 33.8 with 11.

    Nine hosts of 1,000 have no error: 1000 / (250 -+ 3.182 x 64.55) = 1000 / 455.4 and 1000 / 44.6.
    """
    old = side("a", x=[m + d for m in (100.0, 200.0, 300.0, 400.0) for d in (-1.0, 0.0, 1.0)])
    new = side("b", x=[1000.0] * 9)
    groups = batches(old, *(b for b in "pqrs" for _ in range(3)))
    e = compare(old, new, groups=(groups, None))
    assert e.clusters[0] and e.clusters[0].number == 4 and e.clusters[1] is None
    total = totalled(e, old, new, Pairing.APART).headline
    assert total and total.value == pytest.approx(4.0) and total.clusters and total.n == (12, 9)
    assert total.interval == pytest.approx((1000 / 455.43, 1000 / 44.57), rel=1e-3)
    assert totalled(compare(old, new), old, new, Pairing.APART).headline != total


def test_totals_of_two_batches_have_no_interval() -> None:
    """Batches of 100 and 400: an error of 150 with one degree of freedom, t 12.7, so that the mean of 250 may be 0."""
    old, new = side("a", x=[99.0, 100.0, 101.0, 399.0, 400.0, 401.0]), side("b", x=[1000.0] * 4)
    e = compare(old, new, groups=(batches(old, *"pppqqq"), None))
    total = totalled(e, old, new, Pairing.APART)
    assert total.basis is Basis.TOTALS and total.headline
    assert total.headline.interval is None and total.headline.verdict is Verdict.CANNOT_TELL


def test_a_single_host_with_an_interval_keeps_it() -> None:
    """One host of 250 against 100 and 400: 0.8 by the geometric mean, 1.0 by totals, which one host gives no end."""
    old, new = side("a", x=[250.0]), side("b", x=[99.0, 100.0, 101.0, 399.0, 400.0, 401.0])
    pinned = compare(old, new, pairing=Pairing.PINNED)
    assert pinned.headline and pinned.headline.interval and pinned.headline.value == pytest.approx(0.8, rel=1e-3)
    assert totalled(pinned, old, new, Pairing.PINNED) is pinned
    known = Repeats(pd.DataFrame({"x": [0.01]}, old.index), pd.DataFrame({"x": [4.0]}, old.index))
    by_repeats = compare(old, new, repeats=(known, None))
    assert by_repeats.headline and by_repeats.headline.of_repeats
    assert totalled(by_repeats, old, new, Pairing.APART) is by_repeats
    without = totalled(compare(old, new), old, new, Pairing.APART)
    assert without.basis is Basis.TOTALS and without.headline and without.headline.single


def test_totals_among_many_have_the_ceiling_of_unequal_sides() -> None:
    """Three hosts that vary face 12 that hardly do: two degrees, at most 2 (1 + 3 / 12) = 2.5 among many tests."""
    few, many = np.array([90.0, 100.0, 110.0]), np.array([200.0, 180.0, 220.0] * 4)
    ratio = total(few, many)
    x, y = Mean(0, 100 / 3 * 4, 2, 3), Mean(0, many.var(ddof=1) / 12, 11, 12)
    assert ratio.df == pytest.approx(satterthwaite([x, y])) and ratio.df_many == pytest.approx(2.5)


def test_an_own_workload_is_never_narrower_than_the_totals() -> None:
    """The totals are 1.6 from 1.242 to 2.248 and the geometric mean 2: of 1.9 to 2.1 the totals make 1.52 to 1.68."""
    old, new = side("a", x=[100.0] * 10 + [400.0] * 10), side("b", x=[400.0] * 10)
    e = compare(old, new)
    narrow = totalled(replace(e, workload=Estimate(2.0, 1.9, 2.1)), old, new, Pairing.APART)
    assert narrow.workload and narrow.headline and narrow.workload.interval == narrow.headline.interval
    wide = totalled(replace(e, workload=Estimate(2.0, 1.0, 4.0)), old, new, Pairing.APART).workload
    assert wide and wide.interval == pytest.approx((0.8, 3.2))
    few = totalled(replace(e, workload=Estimate(2.0, 1.9, 2.1)), old, new.iloc[:1], Pairing.APART)
    assert few.workload is None and few.workload_why.startswith("the totals have no interval")
