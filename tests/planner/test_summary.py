"""The statistics of a summary, against hand-worked figures and against a slow, plain computation."""

from __future__ import annotations

import math
import statistics
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetmark.base.measurement import Status
from planner.summary import Interval, merge_pairs, order_interval, per_generation, per_host, status_counts
from tests import records
from tests.reports import sample


@pytest.mark.parametrize(
    ("n", "ranks", "coverage"),
    # Published tables of nonparametric intervals for a median; the design's methodology lists the same.
    [(6, (1, 6), 0.969), (10, (2, 9), 0.979), (20, (6, 15), 0.959)],
)
def test_order_statistic_interval(n: int, ranks: tuple[int, int], coverage: float) -> None:
    found = order_interval(n)
    assert found is not None
    assert found[:2] == ranks
    assert found[2] == pytest.approx(coverage, abs=5e-4)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_no_interval_below_six(n: int) -> None:
    assert order_interval(n) is None


@pytest.mark.parametrize("n", [7, 33, 1200])
def test_interval_is_the_narrowest_that_covers(n: int) -> None:
    found = order_interval(n)
    assert found is not None
    rank, other, coverage = found

    def covered(k: int) -> float:
        return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n

    assert other == n + 1 - rank
    assert coverage == pytest.approx(covered(rank), abs=1e-12)
    assert covered(rank) >= 0.95 > covered(rank + 1)


def test_one_host_by_hand() -> None:
    row = per_host(sample.tiny({"h1": [4.0, 1.0, 2.0, 3.0]}).measurements).iloc[0]
    assert (row["n"], row["median"], row["lo"], row["hi"]) == (4, 2.5, 1.0, 4.0)
    assert row["interval"] == Interval.RANGE
    assert math.isnan(row["coverage"])
    assert row["cv"] == pytest.approx(math.sqrt(5 / 3) / 2.5)


def test_ten_repeats_have_an_interval() -> None:
    row = per_host(sample.tiny({"h1": [10.0, 9, 8, 7, 6, 5, 4, 3, 2, 1]}).measurements).iloc[0]
    assert (row["lo"], row["hi"], row["interval"]) == (2.0, 9.0, Interval.ORDER)
    assert row["coverage"] == pytest.approx(0.979, abs=5e-4)


def test_one_value_has_no_spread() -> None:
    row = per_host(sample.tiny({"h1": [5.0]}).measurements).iloc[0]
    assert (row["n"], row["median"], row["interval"]) == (1, 5.0, Interval.NONE)
    assert math.isnan(row["lo"]) and math.isnan(row["hi"]) and math.isnan(row["cv"])


def test_mean_of_zero_has_no_cv() -> None:
    assert math.isnan(per_host(sample.tiny({"h1": [0.0, 0.0]}).measurements).iloc[0]["cv"])


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PASSED])
def test_only_what_passed_is_scored(status: Status) -> None:
    measurements = sample.tiny({"h1": [1.0, 1.0, 100.0], "h2": [3.0]}).measurements.copy()
    measurements.loc[[2, 3], "status"] = status
    found = per_host(measurements)
    assert found["host"].tolist() == ["h1"]  # h2 is absent, not 0
    assert found.iloc[0]["median"] == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_left_out(value: float) -> None:
    assert per_host(sample.tiny({"h1": [value, 2.0]}).measurements)["n"].tolist() == [1]


def test_units_never_mix() -> None:
    measurements = pd.concat(
        [sample.tiny({"h1": [1.0]}).measurements, sample.tiny({"h1": [9.0]}, unit="1/s").measurements]
    )
    assert dict(zip(per_host(measurements)["unit"], per_host(measurements)["median"], strict=True)) == {
        "B/s": 1.0,
        "1/s": 9.0,
    }


def test_hosts_are_the_unit_of_replication() -> None:
    generations = {"h1": "old", "h2": "old", "h3": "old", "h4": "new"}
    results = sample.tiny({"h1": [1.0] * 50, "h2": [2.0], "h3": [6.0, 6.0], "h4": [9.0]}, generations=generations)
    found = per_generation(per_host(results.measurements), generations).set_index("generation")
    old = found.loc["old"]
    # 50 repeats on h1 weigh no more than the one on h2.
    assert (old["n"], old["median"], old["lo"], old["hi"]) == (3, 2.0, 1.0, 6.0)
    assert (old["low_host"], old["low"], old["high_host"], old["high"]) == ("h1", 1.0, "h3", 6.0)
    assert found.loc["new"]["interval"] == Interval.NONE


def test_hosts_without_generation_stand_together() -> None:
    results = sample.tiny({"h1": [1.0], "h2": [3.0]})
    found = per_generation(per_host(results.measurements), {"h1": None, "h2": None})
    assert found[["generation", "n", "median"]].values.tolist() == [["", 2, 2.0]]


def _pairs(*given: tuple[str, str, float]) -> pd.DataFrame:
    base = sample.tiny({"x": [1.0]}).measurements.iloc[0].to_dict()
    return pd.DataFrame([{**base, "host": h, "subject": s, "value": v} for h, s, v in given])


def test_pairs_come_together_by_the_peers_generation() -> None:
    generation = {"a": "old", "b": "old", "c": "new", "d": None}
    measurements = _pairs(
        *(("a", "a>b", 10.0), ("a", "a>b", 30.0), ("a", "a>c", 7.0), ("a", "a>d", 5.0), ("a", "host", 1.0)),
        *(("a", "a>a", 8.0), ("a", "a>elsewhere", 9.0)),
    )
    found = merge_pairs(per_host(measurements), generation).set_index("subject")
    assert found["median"].to_dict() == {
        "to old": 20.0,
        "to new": 7.0,
        "to others": 5.0,
        "host": 1.0,
        "a>a": 8.0,
        "a>elsewhere": 9.0,
    }
    assert found.loc["to old", "n"] == 1  # one pair, whatever its repeats
    assert found.loc["to old", "over"] == "pairs" and found.loc["host", "over"] == "repeats"


def test_names_with_the_pairs_sign_in_them() -> None:
    found = merge_pairs(
        per_host(_pairs(("<b>", "<b>>x>y", 3.0), ("x>y", "<b>>x>y", 4.0))), {"<b>": "one", "x>y": "two"}
    )
    assert dict(zip(found["host"], found["subject"], strict=True)) == {"<b>": "to two", "x>y": "to one"}


def test_every_status_is_counted() -> None:
    results = sample.tiny({"h1": [1.0, 2.0]}, ended=[("h1", Status.LOST, "gone")])
    assert status_counts(results.outcomes) == {
        Status.PASSED: 2,
        Status.FAILED: 0,
        Status.INVALID: 0,
        Status.SKIPPED: 0,
        Status.LOST: 1,
    }


def test_nothing_gives_nothing() -> None:
    empty = sample.tiny({}).measurements
    stats = per_host(empty)
    assert stats.empty and {"median", "lo", "hi", "cv", "n", "host", "over"} <= set(stats.columns)
    assert merge_pairs(stats, {}).empty
    assert per_generation(stats, {}).empty


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from(["m1", "m2"]), st.integers(-(10**9), 10**9).map(lambda i: i / 7)
        ),
        min_size=1,
        max_size=60,
    )
)
def test_agrees_with_a_plain_computation(rows: list[tuple[str, str, float]]) -> None:
    base = sample.tiny({"x": [1.0]}).measurements.iloc[0].to_dict()
    found = per_host(pd.DataFrame([{**base, "host": h, "metric": m, "value": v} for h, m, v in rows]))
    assert len(found) == len({(h, m) for h, m, _ in rows})
    for row in found.to_dict("records"):
        values = sorted(v for h, m, v in rows if (h, m) == (row["host"], row["metric"]))
        assert row["median"] == pytest.approx(statistics.median(values), rel=1e-12, abs=1e-12)
        if len(values) > 1:
            rank = (order_interval(len(values)) or (1,))[0]
            assert (row["lo"], row["hi"]) == (values[rank - 1], values[-rank])
            if abs(statistics.fmean(values)) > 1e-3 * max(map(abs, values)) > 0:
                assert row["cv"] == pytest.approx(
                    statistics.stdev(values) / abs(statistics.fmean(values)), rel=1e-6, abs=1e-9
                )


def test_a_thousand_hosts_take_seconds() -> None:
    hosts, metrics, repeats = 1000, 200, 5
    number = np.arange(hosts * metrics * repeats)
    metric = number // repeats % metrics
    measurements = pd.DataFrame(
        {
            "host": np.array([f"h{i}" for i in range(hosts)])[number // (metrics * repeats)],
            "workload": np.array([f"w{i}" for i in range(10)])[metric // 20],
            "case": np.array([f"c{i}" for i in range(4)])[metric % 20 // 5],
            "metric": np.array([f"m{i}" for i in range(5)])[metric % 5],
            "value": np.random.default_rng(1).normal(100, 3, len(number)),
        }
    )
    measurements = measurements.assign(**{k: v for k, v in records.row().items() if k not in measurements})
    generation: dict[str, str | None] = {f"h{i}": "ab"[i % 2] for i in range(hosts)}
    began = time.perf_counter()
    stats = merge_pairs(per_host(measurements), generation)
    found = per_generation(stats, generation)
    took = time.perf_counter() - began
    assert len(stats) == hosts * metrics and len(found) == 2 * metrics
    assert took < 30, f"{took:.1f} s"  # about 1.5 s on an idle core
