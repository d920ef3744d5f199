"""Test ratios and their intervals against hand-worked and published figures, and for symmetry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fleetmark.planner.ratio import Ratio, Verdict, adjusted, welch

LOGS = st.lists(st.floats(-5, 5), min_size=2, max_size=8)


def test_welch_by_hand() -> None:
    """Use means 0 and ln 2 and variances 1e-4 and 4e-4 of three hosts each: df = 25/17 * 2 = 2.941."""
    a, b = np.array([-0.01, 0, 0.01]), math.log(2) + np.array([-0.02, 0, 0.02])
    ratio = welch(a.tolist(), b.tolist())
    se, df = math.sqrt(5e-4 / 3), 25 / 17 * 2
    assert ratio.value == pytest.approx(2)
    assert ratio.df == pytest.approx(df)
    t = 3.2188  # quantile 0.975 of Student's t with 2.941 degrees of freedom
    assert math.log(ratio.hi or 0) == pytest.approx(math.log(2) + t * se, abs=2e-4)


@given(LOGS, LOGS)
def test_a_against_b_is_the_inverse_of_b_against_a(a: list[float], b: list[float]) -> None:
    forth, back = welch(a, b), welch(b, a)
    assert forth.value * back.value == pytest.approx(1)
    assert forth.lo is not None and back.hi is not None
    assert forth.lo * back.hi == pytest.approx(1)
    assert forth.p == pytest.approx(back.p)


@given(LOGS, LOGS, st.floats(-3, 3))
def test_a_change_of_unit_changes_nothing(a: list[float], b: list[float], shift: float) -> None:
    moved = welch([x + shift for x in a], [x + shift for x in b])
    assert moved.value == pytest.approx(welch(a, b).value, rel=1e-9)


def test_few_hosts_against_many_by_hand() -> None:
    """Compare three hosts that hardly vary with four that do.

    The variances of the means are 1e-6 / 3 and 4e-4 / 4 (hosts at ±0.01 sqrt 3). Satterthwaite gives 3.02.
    That is below both ceilings: 2 * 2 * (1 + 3 / 4) = 7 for the interval, 2 * (1 + 3 / 4) = 3.5 for the adjusted p.
    Against 20 hosts whose mean has the variance 1e-4, it gives 19.1, above both ceilings (4.6 and 2.3).
    """
    few = [-0.001, 0.0, 0.001]
    four = welch(few, (0.02 * math.sqrt(0.75) * np.array([-1, -1, 1, 1])).tolist())
    a, b = 1e-6 / 3, 4e-4 / 4
    satterthwaite = (a + b) ** 2 / (a**2 / 2 + b**2 / 3)
    assert (four.df, four.df_many) == pytest.approx((satterthwaite, satterthwaite)) and satterthwaite < 3.5
    many = (math.sqrt(20e-4 * 19 / 20) * np.tile([-1.0, 1.0], 10)).tolist()
    assert np.var(many, ddof=1) / 20 == pytest.approx(1e-4)
    for ratio in (welch(few, many), welch(many, few)):
        assert (ratio.df, ratio.df_many) == pytest.approx((4.6, 2.3))


def test_equal_sides_have_welchs_degrees_of_freedom() -> None:
    """Compare five hosts that hardly vary with five that do: there are 4 degrees of freedom, not fewer."""
    ratio = welch([0.0, 1e-6, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.2, 0.1])
    assert ratio.df == ratio.df_many == pytest.approx(4)


def test_a_pick_among_many_has_a_wider_interval() -> None:
    """Check both extremes of 50 ratios: level 1 - 0.05 * 2 / 50 = 0.998 and, with five hosts per side, 8 df."""
    x = np.array([-0.02, -0.01, 0, 0.01, 0.02])
    ratio = welch(x.tolist(), (0.3 + x).tolist())
    half = float(stats.t.ppf(0.999, 8)) * math.sqrt(2 * 2.5e-4 / 5)
    assert ratio.selected(2, 50) == pytest.approx((math.exp(0.3 - half), math.exp(0.3 + half)))
    assert ratio.selected(2, 2) == ratio.interval


@pytest.mark.parametrize(("few", "many"), [(2, 20), (3, 20), (5, 20), (4, 5)])
def test_tables_of_equal_benchmarks_have_few_false_verdicts(few: int, many: int) -> None:
    """Simulate fifty equal benchmarks on hosts that differ by 3% overall and by half as much in each benchmark."""
    rng = np.random.default_rng(20261124)
    false = 0
    for _ in range(300):
        a, b = (rng.normal(0, 0.03, (n, 1)) + rng.normal(0, 0.015, (n, 50)) for n in (few, many))
        ratios = [welch(x, y) for x, y in zip(a.T.tolist(), b.T.tolist(), strict=True)]
        false += min(adjusted([r.p_of_many or 0.0 for r in ratios])) <= 0.05
    assert false / 300 <= 0.05


def test_one_host_a_side_gives_no_interval() -> None:
    ratio = welch([0.0], [1.0, 1.1])
    assert (ratio.lo, ratio.hi, ratio.p) == (None, None, None)
    assert ratio.verdict is Verdict.CANNOT_TELL


def test_hosts_that_differ_wildly_have_ends_that_a_sheet_can_hold() -> None:
    """Use two hosts e^300 apart: the interval reaches e^900 either way, beyond any float."""
    ratio = welch([0, 300], [5, 305])
    assert (ratio.value, ratio.lo, ratio.hi) == pytest.approx((math.exp(5), 1e-300, 1e300))
    assert ratio.verdict is Verdict.CANNOT_TELL


def test_hosts_that_agree_exactly() -> None:
    assert welch([0.0, 0.0], [1.0, 1.0]).lo == pytest.approx(math.e)
    assert welch([0.0, 0.0], [0.0, 0.0]).p == 1.0


@pytest.mark.parametrize(
    ("lo", "hi", "verdict"),
    [
        (1.02, 1.05, Verdict.BETTER),
        (0.9, 0.95, Verdict.WORSE),
        (0.995, 1.004, Verdict.SAME),
        (1.002, 1.006, Verdict.SAME),
        (0.9, 1.2, Verdict.CANNOT_TELL),
        (0.999, 1.2, Verdict.CANNOT_TELL),
    ],
)
def test_verdicts(lo: float, hi: float, verdict: Verdict) -> None:
    assert Ratio(1.0, lo, hi, n=(3, 3), p=0.5).verdict is verdict


def test_adjusted_ps_are_those_of_benjamini_and_hochberg() -> None:
    """Use the authors' own example (1995, section 3.2): of 15 p values, four stay below 5%."""
    ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344]
    ps += [0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    result = adjusted(ps).tolist()
    assert sum(p <= 0.05 for p in result) == 4
    assert result[:4] == pytest.approx([0.0015, 0.003, 0.0095, 0.035625])
    assert result == sorted(result) and max(result) == 1.0
    assert adjusted(ps[::-1]).tolist() == result[::-1]
    assert adjusted([]).tolist() == [] and adjusted([0.03]).tolist() == [0.03]


def test_the_smallest_ps_of_more_tests_are_adjusted_for_all() -> None:
    ps = [0.01, 0.02, 0.03, 0.5]
    assert adjusted(ps, 4) == pytest.approx([0.04, 0.04, 0.04, 0.5])
    assert adjusted(ps[:2], 4) == pytest.approx([0.04, 0.04])
    assert len(adjusted([], 4)) == 0


def test_one_of_many_is_judged_by_its_adjusted_p() -> None:
    assert Ratio(1.1, 1.02, 1.2, n=(3, 3), p=0.02).verdict is Verdict.BETTER
    assert Ratio(1.1, 1.02, 1.2, n=(3, 3), p=0.02, p_adjusted=0.2).verdict is Verdict.CANNOT_TELL
    assert Ratio(1.0, 0.995, 1.004, n=(3, 3), p=0.8, p_adjusted=0.9).verdict is Verdict.SAME


def test_what_repeats_of_single_hosts_say_is_no_verdict() -> None:
    assert Ratio(2.0, 1.9, 2.1, n=(1, 1), of_repeats=True).verdict is Verdict.CANNOT_TELL
