"""Scores over several runs: SPEC's geometric mean against published rows, and what is missing makes none."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from fleetmark.base import schema
from fleetmark.planner.scores import Rule, scores
from tests.records import row

# Peak ratios of a published 256-copy SPECrate2017_int result; their mean was published as 812.
PEAK = (587, 710, 982, 362, 981, 1800, 748, 748, 1750, 486)
CASES = tuple(f"b{i}" for i in range(10))
RULES = {"spec": [Rule("rate", "base_ratio", "geometric", CASES)]}


def frame(values: dict[tuple[str, str, int], float], **over: str) -> pd.DataFrame:
    """(host, case, repeat) to value, as measurements."""
    fields = {"workload": "spec", "metric": "base_ratio", "class": "cpu-int", **over}
    return schema.frame(row(**fields, host=h, case=c, repeat=r, value=v) for (h, c, r), v in values.items())


def test_geometric_mean_of_a_published_result() -> None:
    measured = frame({("h1", c, 0): float(v) for c, v in zip(CASES, PEAK, strict=True)})
    (row,) = scores(measured, RULES).to_dict("records")
    assert row["value"] == pytest.approx(811.9, abs=0.05)
    assert (row["case"], row["metric"], row["raw"], row["headline"]) == ("rate", "score", "", True)


def test_each_benchmark_counts_by_its_median_run_on_each_host() -> None:
    runs = {"b0": (1.0, 9.0, 9.0), "b1": (9.0, 1.0, 9.0), "b2": (9.0, 9.0, 1.0)}
    values = {(h, c, r): v for h in ("h1", "h2") for c in CASES for r, v in enumerate(runs.get(c, (9.0, 9.0, 9.0)))}
    scored = scores(frame(values), RULES)
    assert scored["host"].tolist() == ["h1", "h2"]
    assert scored["value"].tolist() == pytest.approx([9.0, 9.0])


def test_of_two_runs_the_slower_counts() -> None:
    scored = scores(frame({("h1", c, r): 8.0 - 6 * r for c in CASES for r in (0, 1)}), RULES)
    assert scored["value"].tolist() == pytest.approx([2.0])


@pytest.mark.parametrize("spoil", ["absent", "failed", "zero"])
def test_a_missing_part_makes_no_score(spoil: str) -> None:
    measured = frame({("h1", c, 0): 2.0 for c in CASES})
    if spoil == "absent":
        measured = measured[measured["case"] != "b3"]
    elif spoil == "failed":
        measured.loc[measured["case"] == "b3", "status"] = "failed"
    else:
        measured.loc[measured["case"] == "b3", "value"] = 0.0
    assert scores(measured, RULES).empty


def test_one_estimate_makes_the_score_one() -> None:
    measured = frame({("h1", c, 0): 2.0 for c in CASES})
    measured.loc[measured["case"] == "b3", "standing"] = "estimate"
    assert scores(measured, RULES)["standing"].tolist() == ["estimate"]


def test_nothing_measured_gives_nothing() -> None:
    scored = scores(frame({}), RULES)
    assert scored.empty and list(scored.columns) == list(schema.NAMES)


def test_the_olympic_mean_drops_the_fastest_and_the_slowest() -> None:
    rule = {"train": [Rule("olympic_mean", "time_to_train", "olympic", runs={"retinanet": 5})]}
    times = [10.0, 50.0, 30.0, 20.0, 40.0]
    measured = frame({("h1", "retinanet", r): t for r, t in enumerate(times)}, workload="train", metric="time_to_train")
    (row,) = scores(measured, rule).to_dict("records")
    assert (row["case"], row["metric"]) == ("retinanet", "olympic_mean")
    assert math.isclose(row["value"], 30.0)
    assert scores(measured.head(4), rule).empty


def test_one_run_that_did_not_converge_counts_as_the_slowest() -> None:
    rule = {"train": [Rule("olympic_mean", "time_to_train", "olympic", runs={"retinanet": 5})]}
    times = {("h1", "retinanet", r): t for r, t in enumerate([10.0, 50.0, 30.0, 20.0])}
    measured = frame(times, workload="train", metric="time_to_train")
    aborted = frame({("h1", "retinanet", 4): 0.3}, workload="train", metric="eval_accuracy", status="invalid")
    (row,) = scores(pd.concat([measured, aborted]), rule).to_dict("records")
    assert math.isclose(row["value"], (20 + 30 + 50) / 3)
    more = frame({("h1", "retinanet", 3): 0.3}, workload="train", metric="eval_accuracy", status="invalid")
    assert scores(pd.concat([measured.head(3), aborted, more]), rule).empty


def test_several_runs_of_one_repeat_make_no_olympic_mean() -> None:
    rule = {"train": [Rule("olympic_mean", "time_to_train", "olympic", runs={"retinanet": 5})]}
    times = {("h1", "retinanet", r): 10.0 + r for r in range(5)}
    first, second = (frame(times, workload="train", metric="time_to_train", labels=f'{{"run":"{n}"}}') for n in (0, 1))
    assert len(scores(first, rule)) == 1
    assert scores(pd.concat([first, second]), rule).empty
