"""Test the table of figures against manually computed values, and against a slow, simple computation."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetmark.base.measurement import Centre, Status
from fleetmark.planner.centre import Interval, ends, order_interval
from fleetmark.record import figures
from fleetmark.record.campaigns import find
from fleetmark.record.compare import Question, compare
from fleetmark.record.figures.hosts import HostFigures, merge_pairs, per_generation, per_host
from fleetmark.record.results import status_counts
from fleetmark.record.values import Values
from fleetmark.record.values.host import numbered
from fleetmark.record.view import load_results
from tests import records
from tests.records import plain
from tests.reports import sample


def figures_of_hosts(measurements: pd.DataFrame) -> HostFigures:
    return per_host(Values(measurements))


def of_hosts(measurements: pd.DataFrame) -> pd.DataFrame:
    return figures_of_hosts(measurements).frame


@pytest.mark.parametrize(
    ("n", "ranks", "coverage"),
    # Values from published tables of nonparametric intervals for a median.
    [(6, (1, 6), 0.969), (10, (2, 9), 0.979), (20, (6, 15), 0.959)],
)
def test_order_statistic_interval(n: int, ranks: tuple[int, int], coverage: float) -> None:
    interval = order_interval(n)
    assert interval is not None
    assert interval[:2] == ranks
    assert interval[2] == pytest.approx(coverage, abs=5e-4)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_no_interval_below_six(n: int) -> None:
    assert order_interval(n) is None


@pytest.mark.parametrize("n", [7, 33, 1200])
def test_interval_is_the_narrowest_that_covers(n: int) -> None:
    interval = order_interval(n)
    assert interval is not None
    rank, other, coverage = interval

    def covered(k: int) -> float:
        return 1 - 2 * sum(math.comb(n, i) for i in range(k)) / 2**n

    assert other == n + 1 - rank
    assert coverage == pytest.approx(covered(rank), abs=1e-12)
    assert covered(rank) >= 0.95 > covered(rank + 1)


def measured(values: list[float], centre: str = "", class_: str = "mem-bw", kind: str = "capacity") -> pd.Series:
    """Return the figure of one host's repeats, computed by the rule ``centre``."""
    measurements = sample.tiny({"h1": values}).values.frame.assign(**{"centre": centre, "class": class_, "kind": kind})
    return of_hosts(measurements).iloc[0]


def test_one_host_by_hand() -> None:
    row = measured([8.0, 1.0, 2.0, 4.0])
    assert row["value"] == pytest.approx(2 * math.sqrt(2))
    assert (row["n"], row["lo"], row["hi"], row["interval"]) == (4, 1.0, 8.0, Interval.RANGE)
    assert row["cv"] == pytest.approx(statistics.stdev([8, 1, 2, 4]) / 3.75)
    assert row["rule"] == Centre.GEOMEAN


def test_the_rule_of_the_metric_decides() -> None:
    assert measured([8.0, 1.0, 2.0, 4.0], "median")["value"] == 3.0
    assert measured([8.0, 1.0, 2.0, 4.0], "", "disk")["value"] == 3.0  # an earlier version's file
    assert measured([8.0, 1.0, 2.0, 4.0], "geomean", "disk")["value"] == pytest.approx(2 * math.sqrt(2))
    loss = measured([0.0, 1.0, 2.0], kind="guardrail")
    assert (loss["value"], loss["rule"]) == (1.0, Centre.MEAN)  # no logarithm: the arithmetic mean


@pytest.mark.parametrize(
    ("kind", "n", "value"),
    [("capacity", 2, math.sqrt(2)), ("responsiveness", 2, math.sqrt(2)), ("guardrail", 3, 1.0), ("", 3, 1.0)],
)
def test_a_zero_counts_only_where_it_can_be_a_result(kind: str, n: int, value: float) -> None:
    row = of_hosts(sample.tiny({"h1": [0.0, 1.0, 2.0]}).values.frame.assign(kind=kind)).iloc[0]
    assert (row["n"], row["value"]) == (n, pytest.approx(value))


def test_a_report_and_a_comparison_leave_out_the_same_values(tmp_path: Path) -> None:
    values = {"a": [0.0, 1.0, 4.0], "b": [-1.0, 9.0, 9.0]}
    archive = records.record(
        tmp_path, "c1", {h: {} for h in values}, {(h, records.TRIAD): v for h, v in values.items()}
    )
    results = load_results(archive)
    by_host = per_host(results.values).frame.set_index("host")["value"].to_dict()
    table = figures.read({"c1": archive.path / "measurements.parquet"}, numbered(("c1", h) for h in values))
    compared = {table.hosts[r.record].name: math.exp(r.log) for r in table.rows.itertuples()}
    assert by_host == pytest.approx({"a": 2.0, "b": 9.0})
    assert compared == pytest.approx(by_host)
    assert results.campaign.notes == ["stream all-cores: 2 values of triad left out: zero or negative"]


def test_a_report_lists_few_of_many_metrics_with_rejected_values(tmp_path: Path) -> None:
    benches = [replace(records.TRIAD, metric=f"m{n}") for n in range(9)]
    archive = records.record(tmp_path, "c1", {"h": {}}, {("h", b): [0.0, 1.0] for b in benches})
    notes = load_results(archive).campaign.notes
    assert notes[5:] == [
        "stream all-cores: 1 value of m5 left out: zero or negative",
        "Values of 3 more metrics left out: zero or negative.",
    ]


def test_ten_repeats_have_an_interval() -> None:
    row = measured([10.0, 9, 8, 7, 6, 5, 4, 3, 2, 1], "median")
    assert (row["value"], row["lo"], row["hi"], row["interval"]) == (5.5, 2.0, 9.0, Interval.ORDER)


def test_a_geometric_mean_has_students_interval() -> None:
    row = measured([1.0, 1.0, 1.0, math.e, math.e, math.e])
    # Mean of the logs 0.5, sd sqrt(0.3), t(0.975, 5) = 2.5706.
    half = 2.5705818 * math.sqrt(0.3 / 6)
    assert row["value"] == pytest.approx(math.exp(0.5))
    assert (row["lo"], row["hi"]) == (pytest.approx(math.exp(0.5 - half)), pytest.approx(math.exp(0.5 + half)))
    assert row["interval"] == Interval.STUDENT


def test_one_value_has_no_spread() -> None:
    row = of_hosts(sample.tiny({"h1": [5.0]}).values.frame).iloc[0]
    assert (row["n"], row["value"], row["interval"]) == (1, 5.0, Interval.NONE)
    assert math.isnan(row["lo"]) and math.isnan(row["hi"]) and math.isnan(row["cv"])


def test_mean_of_zero_has_no_cv() -> None:
    assert math.isnan(measured([0.0, 0.0], kind="guardrail")["cv"])


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.PASSED])
def test_only_what_passed_is_scored(status: Status) -> None:
    measurements = sample.tiny({"h1": [1.0, 1.0, 100.0], "h2": [3.0]}).values.frame.copy()
    measurements.loc[[2, 3], "status"] = status
    figures_of = of_hosts(measurements)
    assert figures_of["host"].tolist() == ["h1"]  # h2 is absent, not 0
    assert figures_of.iloc[0]["value"] == 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_left_out(value: float) -> None:
    assert of_hosts(sample.tiny({"h1": [value, 2.0]}).values.frame)["n"].tolist() == [1]


def test_units_never_mix() -> None:
    measurements = pd.concat(
        [sample.tiny({"h1": [1.0]}).values.frame, sample.tiny({"h1": [9.0]}, unit="1/s").values.frame]
    )
    frame = of_hosts(measurements)
    assert dict(zip(frame["unit"], frame["value"], strict=True)) == {
        "B/s": 1.0,
        "1/s": 9.0,
    }


def test_hosts_are_the_unit_of_replication() -> None:
    generations = {"h1": "old", "h2": "old", "h3": "old", "h4": "new"}
    results = sample.tiny({"h1": [1.0] * 50, "h2": [2.0], "h3": [6.0, 6.0], "h4": [9.0]}, generations=generations)
    figures_of = per_generation(figures_of_hosts(results.values.frame), generations).set_index("generation")
    old = figures_of.loc["old"]
    # 50 repeats on h1 weigh no more than the one on h2.
    assert (old["n"], old["lo"], old["hi"]) == (3, 1.0, 6.0)
    assert old["value"] == pytest.approx(12 ** (1 / 3))
    assert (old["low_host"], old["low"], old["high_host"], old["high"]) == ("h1", 1.0, "h3", 6.0)
    assert figures_of.loc["new"]["interval"] == Interval.NONE


def test_hosts_without_generation_stand_together() -> None:
    results = sample.tiny({"h1": [1.0], "h2": [3.0]})
    figures_of = per_generation(figures_of_hosts(results.values.frame), {"h1": None, "h2": None})
    assert figures_of[["generation", "n", "value"]].values.tolist() == [["", 2, pytest.approx(math.sqrt(3))]]


def _pairs(*values: tuple[str, str, float]) -> pd.DataFrame:
    base = sample.tiny({"x": [1.0]}).values.frame.iloc[0].to_dict()
    return pd.DataFrame([{**base, "host": h, "subject": s, "value": v} for h, s, v in values])


def test_pairs_come_together_by_the_peers_generation() -> None:
    generation = {"a": "old", "b": "old", "c": "new", "d": None}
    measurements = _pairs(
        *(("a", "a>b", 10.0), ("a", "a>b", 40.0), ("a", "a>c", 7.0), ("a", "a>d", 5.0), ("a", "host", 1.0)),
        *(("a", "a>a", 8.0), ("a", "a>elsewhere", 9.0)),
    )
    figures_of = merge_pairs(figures_of_hosts(measurements), generation).frame.set_index("subject")
    assert figures_of["value"].to_dict() == {
        "to old": pytest.approx(20.0),
        "to new": 7.0,
        "to others": 5.0,
        "host": 1.0,
        "a>a": 8.0,
        "a>elsewhere": 9.0,
    }
    assert figures_of.loc["to old", "n"] == 1  # one pair, regardless of its repeats
    assert figures_of.loc["to old", "over"] == "pairs" and figures_of.loc["host", "over"] == "repeats"


def test_names_with_the_pairs_sign_in_them() -> None:
    figures_of = merge_pairs(
        figures_of_hosts(_pairs(("<b>", "<b>>x>y", 3.0), ("x>y", "<b>>x>y", 4.0))), {"<b>": "one", "x>y": "two"}
    ).frame
    assert dict(zip(figures_of["host"], figures_of["subject"], strict=True)) == {"<b>": "to two", "x>y": "to one"}


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
    empty = sample.tiny({}).values.frame
    stats = figures_of_hosts(empty)
    assert stats.frame.empty and {"value", "lo", "hi", "cv", "n", "host", "over"} <= set(stats.frame.columns)
    assert merge_pairs(stats, {}).frame.empty
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
    base = sample.tiny({"x": [1.0]}).values.frame.iloc[0].to_dict() | {"kind": ""}  # descriptive: every value counts
    frame = pd.DataFrame([{**base, "host": h, "metric": m, "value": v} for h, m, v in rows])
    stats = of_hosts(frame.assign(centre=["median" if m == "m1" else "geomean" for m in frame["metric"]]))
    assert len(stats) == len({(h, m) for h, m, _ in rows})
    for row in stats.to_dict("records"):
        values = sorted(v for h, m, v in rows if (h, m) == (row["host"], row["metric"]))
        if row["metric"] == "m1":
            centre = statistics.median(values)
        elif values[0] > 0:
            centre = math.exp(statistics.fmean(map(math.log, values)))
        else:
            centre = statistics.fmean(values)
        assert row["value"] == pytest.approx(centre, rel=1e-9, abs=1e-6)
        if len(values) > 1 and (len(values) < 6 or row["metric"] == "m1"):
            rank = (order_interval(len(values)) or (1,))[0]
            assert (row["lo"], row["hi"]) == (values[rank - 1], values[-rank])
        if len(values) > 1 and abs(statistics.fmean(values)) > 1e-3 * max(map(abs, values)) > 0:
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
    began = time.process_time()
    stats = merge_pairs(figures_of_hosts(measurements), generation)
    figures_of = per_generation(stats, generation)
    took = time.process_time() - began
    assert len(stats) == hosts * metrics and len(figures_of) == 2 * metrics
    assert took < 30, f"{took:.1f} s"  # of CPU time; about 1.5 s


def test_figures_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    measurements = pd.concat(
        [sample.tiny({"h1": [1.0, 2.0, 4.0], "h2": [n + 3.0]}).values.frame.assign(metric=f"m{n}") for n in range(5)],
        ignore_index=True,
    )
    stats = figures_of_hosts(measurements)
    monkeypatch.setattr("fleetmark.record.figures.hosts._AT_ONCE", 3)
    parts = list(stats)
    assert [len(part) for part in parts] == [2] * 5
    pd.testing.assert_frame_equal(pd.concat(map(plain, parts), ignore_index=True), plain(stats.frame))
    assert len(stats.select(["metric"], {("m3",)})) == 2
    assert stats.distinct("metric") == [(f"m{n}",) for n in range(5)]
    assert stats.distinct("interval") == [(Interval.RANGE,), (Interval.NONE,)]


# --- over files ------------------------------------------------------------------------------------------------------

VALUES = {"a1": [1.0, 2.0, 4.0], "a2": [3.0, 3.0], "b1": [5.0, 7.0, 6.0, 100.0]}


def on_record(root: Path, name: str = "c1") -> dict[str, Path]:
    labels = {host: {"gen": host[0]} for host in VALUES}
    benches = (records.TRIAD, records.IOPS)
    archive = records.record(root, name, labels, {(h, b): v for h, v in VALUES.items() for b in benches})
    return {name: archive.path / "measurements.parquet"}


def test_files_give_the_figures_of_memory(tmp_path: Path) -> None:
    files = on_record(tmp_path)
    table = figures.read(files, numbered(("c1", host) for host in VALUES))
    rows = table.rows.merge(table.keys["metric"], left_on="key", right_index=True)
    over_files = {(table.hosts[r].name, m): math.exp(v) for r, m, v in rows[["record", "metric", "log"]].to_numpy()}
    stats = per_host(load_results(find(tmp_path, "c1")).values).frame
    in_memory = {(h, m): v for h, m, v in stats[["host", "metric", "value"]].to_numpy()}
    assert over_files == pytest.approx(in_memory)
    assert over_files["b1", "read_iops"] == pytest.approx(6.5) and over_files["a1", "triad"] == pytest.approx(2.0)


def test_hosts_in_parts_give_the_same_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use names with quotes, mixed case and non-ASCII letters, whose sort order may differ between libraries."""
    names = ["h10", "h9", "H1", "ß", "it's", "a b", "Z", "\U0001f600", "~", "h1"]
    rows = {name: [float(n), float(n) * 1.5, 3.0] for n, name in enumerate(names, 1)}
    measurements = sample.tiny(rows).values.frame
    file = tmp_path / "measurements.parquet"
    measurements.to_parquet(file)
    hosts = numbered(("c", name) for name in names)

    def read() -> pd.DataFrame:
        return figures.read({"c": file}, hosts, spread=True).rows.sort_values(["record", "key"], ignore_index=True)

    at_once = read()
    assert len(at_once) == len(names)
    monkeypatch.setattr("fleetmark.record.values._SIZES", ((4, 16),))
    pd.testing.assert_frame_equal(read(), at_once)


def test_a_path_is_no_pattern(tmp_path: Path) -> None:
    root = tmp_path / "gen=a [1]*?"
    root.mkdir()
    files = on_record(root, "c[1]")
    assert len(figures.read(files, numbered([("c[1]", "a1")])).rows) == 2


def test_what_is_not_scored_is_counted(tmp_path: Path) -> None:
    labels = {"h": {"gen": "x"}}
    archive = records.record(tmp_path, "c1", labels, {("h", records.TRIAD): [1.0, 0.0, -1.0, math.nan, 2.0]})
    table = figures.read({"c1": archive.path / "measurements.parquet"}, numbered([("c1", "h")]))
    assert table.rows["n"].tolist() == [2]
    assert table.left_out[["why", "n"]].to_numpy().tolist() == [["zero or negative", 3]]


def test_a_report_and_a_comparison_show_one_figure(tmp_path: Path) -> None:
    on_record(tmp_path)
    results = load_results(find(tmp_path, "c1"))
    stats = per_generation(per_host(results.values), {host: host[0] for host in VALUES})
    answer = compare(Question(root=tmp_path, baseline="gen=a", candidates=["gen=b"])).comparison
    for row in stats.to_dict("records"):
        title = f"{row['workload']} {row['case']} {row['metric']}"
        assert answer.figures[row["generation"]][title] == pytest.approx(row["value"])


def test_ends_are_those_of_the_tables() -> None:
    table = ends([1, 5, 6, 10]).set_index("n")
    assert table.loc[10, ["lo_rank", "hi_rank"]].tolist() == [2, 9]
    assert math.isnan(table.loc[5, "half"]) and table.loc[6, "half"] == pytest.approx(2.5705818 / math.sqrt(6))


@pytest.mark.parametrize("name", ["a [1] 'b' 50%", "plain"])
def test_a_path_that_goes_up_loses_no_host(tmp_path: Path, name: str) -> None:
    archive = records.record(tmp_path, name, {"h": {}}, {("h", records.TRIAD): [1.0, 2.0]})
    file = archive.path / ".." / name / "measurements.parquet"
    assert list(figures.read({name: file}, numbered([(name, "h")])).rows["n"]) == [2]
