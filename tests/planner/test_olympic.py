"""MLPerf's olympic mean against sums done by hand, and what makes none."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest

from fleetmark.planner import olympic
from fleetmark.planner.olympic import Olympic
from fleetmark.workloads import load

RULES = load("mlperf_training").scores["olympic_mean"]
RUNS = RULES.runs


def olympic_mean(benchmark: str, times: Sequence[float | None]) -> Olympic:
    return olympic.olympic_mean(benchmark, times, RULES.runs, RULES.dropped)


def test_the_fastest_and_the_slowest_are_dropped() -> None:
    result = olympic_mean("retinanet", [310.0, 290.0, 400.0, 305.0, 300.0])
    assert result.mean == 305.0  # (310 + 305 + 300) / 3
    assert (result.required, result.count, result.scored) == (5, 5, (0, 1, 2, 3, 4))
    assert result.dropped == (1, 2)  # 290 and 400
    assert result.reason == ""


def test_of_three_runs_the_middle_one_is_left() -> None:
    result = olympic_mean("llama31_405b", [7300.5, 7100.25, 7200.0])
    assert (result.mean, result.dropped) == (7200.0, (0, 1))


def test_ten_runs() -> None:
    # 60 and 71 go; 61+62+63+64+65+66+67+68 = 516, over 8.
    result = olympic_mean("bert", [61, 62, 71, 63, 64, 60, 65, 66, 67, 68])
    assert (result.mean, result.dropped) == (64.5, (2, 5))


def test_one_run_that_did_not_converge_is_the_slowest() -> None:
    # 100 is the fastest, the lost run the slowest; (110 + 130 + 120) / 3.
    result = olympic_mean("resnet", [110.0, None, 100.0, 130.0, 120.0])
    assert (result.mean, result.dropped) == (120.0, (1, 2))


def test_two_runs_that_did_not_converge_make_no_result() -> None:
    result = olympic_mean("resnet", [110.0, None, 100.0, None, 120.0])
    assert result.mean is None
    assert result.reason == "2 runs did not converge, at most 1 may"


def test_unet3d_drops_four_at_each_end() -> None:
    # 1 to 40: 5 to 36 are left, 32 of them, (5 + 36) / 2 on average.
    result = olympic_mean("unet3d", [float(n) for n in range(1, 41)])
    assert (result.mean, result.dropped) == (20.5, (0, 1, 2, 3, 36, 37, 38, 39))


def test_unet3d_may_have_four_runs_that_did_not_converge() -> None:
    times: list[float | None] = [float(n) for n in range(1, 37)]
    assert olympic_mean("unet3d", [*times, None, None, None, None]).mean == 20.5
    lost = olympic_mean("unet3d", [None, *times[:35], None, None, None, None])
    assert (lost.mean, lost.reason) == (None, "5 runs did not converge, at most 4 may")


@pytest.mark.parametrize(("count", "words"), [(0, "0 were given"), (1, "1 was given"), (9, "9 were given")])
def test_too_few_runs_make_no_mean(count: int, words: str) -> None:
    result = olympic_mean("bert", [60.0] * count)
    assert (result.mean, result.required, result.count) == (None, 10, count)
    assert result.reason == f"10 runs are needed, {words}"
    assert result.scored == result.dropped == ()


def test_of_more_runs_than_needed_the_middle_set_counts() -> None:
    # Sets of three: (1, 9, 5) -> 5, (9, 5, 7) -> 7, (5, 7, 6) -> 6. The middle of 5, 6, 7 is the third set.
    result = olympic_mean("gpt3", [1.0, 9.0, 5.0, 7.0, 6.0])
    assert (result.mean, result.scored, result.dropped) == (6.0, (2, 3, 4), (2, 3))
    assert result.reason == "runs 3 to 5 of 5: the middle set"


def test_of_two_middle_sets_the_slower_counts() -> None:
    # Sets of three: (4, 2, 3) -> 3, (2, 3, 9) -> 3 ... with 8 behind: (3, 9, 8) -> 8 and (9, 8, 5) -> 8.
    result = olympic_mean("gpt3", [4.0, 2.0, 3.0, 9.0, 8.0, 5.0])
    assert (result.mean, result.scored) == (8.0, (2, 3, 4))


def test_a_set_with_too_many_lost_runs_is_infinitely_slow() -> None:
    # Sets of three: (5, None, None) -> none, (None, None, 7) -> none, (None, 7, 6) -> 7: the middle one is none.
    result = olympic_mean("gpt3", [5.0, None, None, 7.0, 6.0])
    assert result.mean is None
    assert result.reason == "of the 3 sets of 3 consecutive runs, the middle one has more than 1 that did not converge"
    # With one more good run two of four sets are good; the slower of the two middle ones is none.
    assert olympic_mean("gpt3", [5.0, None, None, 7.0, 6.0, 8.0]).mean is None
    # (None, 7, 6) -> 7, (7, 6, 8) -> 7, (6, 8, 5) -> 6.
    assert olympic_mean("gpt3", [None, 7.0, 6.0, 8.0, 5.0]).mean == 7.0


@pytest.mark.parametrize("wrong", [0.0, -1.0, 1e308, math.nan, math.inf])
def test_what_is_no_time_is_not_averaged(wrong: float) -> None:
    result = olympic_mean("gpt3", [5.0, wrong, 6.0])
    assert result.mean is None
    assert result.reason == f"{wrong!r} s (run 2) is not a time to train"


@pytest.mark.parametrize("name", ["", "training", "BERT!", "ncf"])
def test_a_benchmark_the_rules_do_not_name(name: str) -> None:
    result = olympic_mean(name, [1.0] * 50)
    assert (result.mean, result.required, result.count) == (None, None, 50)
    assert result.reason == f"the training rules do not specify a number of runs for {name!r}"


def test_the_numbers_of_runs() -> None:
    assert {n: sum(r == n for r in RUNS.values()) for n in set(RUNS.values())} == {3: 4, 5: 7, 10: 15, 40: 1}
    named = {"bert": 10, "resnet": 5, "retinanet": 5, "unet3d": 40, "gpt3": 3, "llama2_70b_lora": 10, "rgat": 10}
    named |= {"dlrm_dcnv2": 10, "stable_diffusion": 10, "llama31_405b": 3, "llama31_8b": 10, "flux1": 10}
    assert named.items() <= RUNS.items()


def test_the_order_of_exactly_as_many_runs_as_needed_does_not_matter() -> None:
    means = {olympic_mean("ssd", list(order)).mean for order in itertools.permutations([1.0, 2.0, 4.0, 8.0, 16.0])}
    assert means == {14.0 / 3}
