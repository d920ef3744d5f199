"""Frontiers: dominated points, what lies between measured ones, and nothing beyond them; by hand and by known ratios."""

from __future__ import annotations

import math
import random

import pytest

from fleetmark.planner.frontier import Bound, Point, dominated, equivalence, line, speeds, work_at

LINE = [Point("c64", 10, 640, 2.0), Point("c16", 40, 400, 0.5), Point("c1", 80, 80, 0.1)]


def test_a_point_is_dominated_where_another_is_better_in_all() -> None:
    worse = Point("bad", 30, 300, 0.6)
    assert dominated([*LINE, worse]) == [False, False, False, True]
    assert dominated([*LINE, Point("quick", 30, 300, 0.05)]) == [False] * 4  # its wait is the best of all
    assert [p.name for p in line([*LINE, worse])] == ["c64", "c16", "c1"]
    assert dominated([LINE[0], LINE[0]]) == [False, False]


def test_between_two_points_work_follows_speed_on_logarithmic_axes() -> None:
    assert work_at(LINE, 40) == pytest.approx(400)
    assert work_at(LINE, 20) == pytest.approx(math.sqrt(640 * 400))
    assert work_at(LINE, 10) == pytest.approx(640) and work_at(LINE, 80) == pytest.approx(80)


def test_beyond_what_was_measured_there_is_nothing() -> None:
    assert work_at(LINE, 9.9) is None and work_at(LINE, 80.1) is None
    assert work_at([], 10) is None and work_at(LINE[:1], 10) == pytest.approx(640)


def test_a_wait_that_must_be_kept_moves_along_the_line() -> None:
    """At 10/s the wait is 2 s; 1 s is kept half way to the next point, with its work."""
    assert work_at(LINE, 10, wait=1.0) == pytest.approx(math.sqrt(640 * 400))
    assert work_at(LINE, 40, wait=0.5) == pytest.approx(400)
    assert work_at(LINE, 10, wait=0.05) is None
    assert work_at([Point("a", 10, 5), Point("b", 20, 2)], 10, wait=0.1) == pytest.approx(5)  # not measured


def side(count: int, factor: float, noise: float, seed: int) -> dict[str, list[Point]]:
    pick = random.Random(seed)
    hosts = {}
    for n in range(count):
        effect = math.exp(pick.gauss(0, noise))
        hosts[f"h{n}"] = [Point(p.name, p.speed, p.work * factor * effect, p.wait) for p in LINE]
    return hosts


def test_the_ratio_of_two_sides_and_its_interval_over_hosts() -> None:
    result = equivalence(side(6, 1, 0.03, 1), side(6, 3.1, 0.03, 2), 50, wait=1.0)
    assert result.ratio and result.ratio.interval
    low, high = result.ratio.interval
    assert low < 3.1 < high and high / low < 1.2 and result.ratio.n == (6, 6)
    assert result.candidate is not None and result.baseline is not None
    assert result.ratio.value == pytest.approx(result.candidate / result.baseline)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    covered = 0
    for seed in range(400):
        ratio = equivalence(side(4, 1, 0.03, 2 * seed), side(5, 2, 0.03, 2 * seed + 1), 30).ratio
        assert ratio and ratio.interval
        covered += ratio.interval[0] <= 2 <= ratio.interval[1]
    assert 0.92 < covered / 400 < 0.98


SLOW = {"h": [Point("c1", 8, 8), Point("c4", 5, 20)]}


def test_a_service_that_neither_side_keeps_has_no_number() -> None:
    neither = equivalence(SLOW, {"h": [Point("c1", 9, 8), Point("c4", 6, 20)]}, 50)
    assert neither.ratio is None
    assert neither.reason == "not equivalent: loads of both sides are no faster than 9"
    late = equivalence(side(2, 1, 0, 1), side(2, 1, 0, 1), 20, wait=0.01)
    assert late.reason == "not equivalent: the wait there is too long on both sides"


def test_a_candidate_that_never_keeps_the_service_replaces_none() -> None:
    beyond = equivalence(side(2, 1, 0, 1), SLOW, 50)
    assert beyond.ratio is None and beyond.missed == (0, 1)
    assert beyond.reason == "not equivalent: loads of the candidate are no faster than 8"


def test_a_baseline_that_never_keeps_the_service_gives_a_lower_bound() -> None:
    """Check the bound: the baseline does at most 8, at 8/s; the candidate does sqrt(640 x 400) = 506 at 20/s."""
    beyond = equivalence(SLOW, side(2, 1, 0, 1), 20)
    assert beyond.bound is Bound.LEAST and beyond.missed == (1, 0)
    assert beyond.ratio and beyond.ratio.value == pytest.approx(math.sqrt(640 * 400) / 8)
    assert beyond.ratio.interval is None and beyond.baseline is None
    apart = equivalence(SLOW, {"h": [Point("c1", 90, 8), Point("c4", 80, 20)]}, 50)
    assert apart.bound is Bound.LEAST and apart.ratio and apart.ratio.value == pytest.approx(20 / 8)
    late = equivalence({"h": LINE}, {"h": [Point("c1", 40, 800, 0.08), Point("c4", 10, 990, 0.2)]}, 40, wait=0.09)
    assert late.bound is Bound.LEAST and late.ratio and late.ratio.value == pytest.approx(800 / 400)


def test_hosts_that_were_never_loaded_down_to_the_service_give_a_bound() -> None:
    """Check 7/s: ``side`` starts at 10/s with 640, so it does at least 640; SLOW does 8 x (20/8)^x."""
    share = math.log(7 / 5) / math.log(8 / 5)
    work = 20 ** (1 - share) * 8**share
    assert (bound := equivalence(side(2, 1, 0, 1), SLOW, 7)).bound is Bound.MOST
    assert bound.ratio and bound.ratio.value == pytest.approx(work / 640)
    assert (least := equivalence(SLOW, side(2, 1, 0, 1), 7)).bound is Bound.LEAST
    assert least.ratio and least.ratio.value == pytest.approx(640 / work)
    neither = equivalence(side(2, 1, 0, 1), side(2, 1, 0, 1), 7)
    assert neither.ratio is None
    assert neither.reason == "not measured: every load of both sides is faster (from 10)"


def test_hosts_that_cannot_keep_the_service_count_as_no_work() -> None:
    """Let two of four candidates do 5.9 times the work and two none: the mean is (5.9 + 5.9 + 0 + 0) / 4 = 2.95."""
    new = {f"n{k}": points for k, points in enumerate(side(2, 5.9, 0, 1).values())}
    new |= {"n2": SLOW["h"], "n3": SLOW["h"]}
    result = equivalence(side(3, 1, 0, 1), new, 40)
    assert result.ratio and result.ratio.value == pytest.approx(2.95) and result.ratio.interval is None
    assert result.missed == (0, 2) and result.hosts == (3, 4) and result.bound is Bound.EXACT
    turned = equivalence(new, side(3, 1, 0, 1), 40)
    assert turned.ratio and turned.ratio.value == pytest.approx(1 / 2.95) and turned.missed == (2, 0)


def test_one_host_a_side_has_a_ratio_without_an_interval() -> None:
    ratio = equivalence(side(1, 1, 0, 1), side(1, 2, 0, 1), 20).ratio
    assert ratio and ratio.value == pytest.approx(2) and ratio.interval is None


def test_a_curve_goes_where_both_sides_have_figures() -> None:
    slow = {"h": [Point("a", 5, 100), Point("b", 20, 50)]}
    ends = speeds(slow, side(1, 1, 0, 1))
    assert ends[0] == pytest.approx(10) and ends[-1] == pytest.approx(20)
    assert speeds(slow, {"h": [Point("a", 30, 1), Point("b", 40, 1)]}) == []


def test_energy_is_power_by_work() -> None:
    assert Point("a", 1, 50, power=600).energy == 12 and Point("a", 1, 50).energy is None
