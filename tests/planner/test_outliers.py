"""Test the detection of slow hosts, groups of hosts, heavy tails and slow links in synthetic fleets of known faults."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fleetmark.planner.diagnosis import links, modes, outliers, tails
from fleetmark.planner.diagnosis.robust import NORMAL, lower_tail, p_value

METRICS, RUN, HOST, REPEATS = 12, 0.01, 0.003, 3


def fleet(hosts: int, slow: float, sick: int, seed: int) -> tuple[np.ndarray, set[int]]:
    """Return oriented logarithms of a fleet; its first hosts are slower in the first half of the metrics."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, HOST, (METRICS, hosts)) + rng.normal(0, RUN / REPEATS**0.5, (METRICS, hosts))
    values[: METRICS // 2, :sick] += np.log1p(-slow)
    return values, set(range(sick))


def judged(values: np.ndarray) -> outliers.Verdicts:
    return outliers.judge(values, np.full(values.shape, RUN / REPEATS**0.5), np.full(len(values), outliers.SMALL))


@pytest.mark.parametrize("hosts", [8, 64, 1000])
@pytest.mark.parametrize("slow", [0.05, 0.1, 0.2])
def test_sick_hosts_are_named_and_no_sound_one(hosts: int, slow: float) -> None:
    for seed in range(3):
        values, sick = fleet(hosts, slow, max(1, hosts // 8), seed)
        named = set(judged(values).slow["column"])
        assert sick <= named and len(named - sick) <= 0.01 * hosts


def test_a_sound_fleet_has_no_suspects() -> None:
    for seed in range(20):
        assert judged(fleet(64, 0.0, 0, seed)[0]).slow.empty


def test_a_small_deficit_is_no_finding_however_sure() -> None:
    values = np.zeros((1, 64)) + np.linspace(-1e-5, 1e-5, 64)
    values[0, 0] = np.log1p(-0.025)
    assert judged(values).slow.empty
    values[0, 0] = np.log1p(-0.031)
    (row,) = judged(values).slow.to_dict("records")
    assert row["column"] == 0 and row["deficit"] == pytest.approx(0.031, abs=1e-4) and row["q"] < 1e-3
    assert row["spread"] >= outliers.FLOOR  # constant peers do not have infinite precision


def test_few_hosts_constant_and_missing_values() -> None:
    values = np.full((3, 10), np.nan)
    values[0] = 1.0
    values[1, :7] = 1.0
    verdicts = judged(values)
    assert verdicts.constant == [0] and verdicts.sparse == [1] and verdicts.judged == 10 and verdicts.slow.empty


def test_what_lies_below_the_others_is_as_by_hand() -> None:
    rng = np.random.default_rng(2)
    for hosts in (8, 9, 20):
        values = rng.normal(size=(60, hosts))
        values[rng.random(values.shape) < 0.2] = np.nan
        tail = lower_tail(values, 0.01)
        assert len(tail.row) > 50
        for row, column, below, spread in zip(tail.row, tail.column, tail.below, tail.spread, strict=True):
            rest = np.delete(values[row], column)
            rest = rest[~np.isnan(rest)]
            mad = np.median(np.abs(rest - np.median(rest)))
            assert below == pytest.approx(np.median(rest) - values[row, column])
            if below > 2 * mad:
                assert spread == pytest.approx(NORMAL * mad)


@pytest.mark.parametrize("hosts", [8, 16, 64])
def test_p_is_how_often_chance_goes_as_far(hosts: int) -> None:
    values = np.random.default_rng(3).normal(size=(400_000 // hosts, hosts))
    tail = lower_tail(values, 0.01)
    z = -tail.below / tail.spread
    for p in (1e-2, 1e-3):
        share = np.sum(p_value(z, tail.n) < p) / values.size
        assert 0.7 * p < share < 1.4 * p


@pytest.mark.parametrize("run", [0.002, 0.01, 0.04])
def test_a_detectable_loss_is_found_in_about_nine_of_ten_cases(run: float) -> None:
    values = np.random.default_rng(7).normal(0, run, (400, 32))
    unknown, limits = np.full(values.shape, np.nan), np.full(len(values), outliers.SMALL)
    loss = outliers.detectable(values, unknown, limits)
    assert np.all(loss > outliers.SMALL) and np.all(
        np.isnan(outliers.detectable(values[:, :7], unknown[:, :7], limits))
    )
    values[:, 0] += np.log1p(-loss)
    assert 0.85 < len(outliers.judge(values, unknown, limits).slow.query("column == 0")) / len(values) <= 1.0
    half = np.random.default_rng(8).normal(0, run, (400, 32))
    half[:, 0] += np.log1p(-loss) / 2
    assert len(outliers.judge(half, unknown, limits).slow.query("column == 0")) < 0.2 * len(half)


@pytest.mark.parametrize("repeats", [3, 5])
def test_heavy_tails_blame_a_host_in_few_fleets(repeats: int) -> None:
    """All hosts are sound, and single runs vary with Student's t of 3 degrees of freedom."""
    fleets, named, hosts = 200, 0, 32
    for seed in range(fleets):
        runs = 0.01 * np.random.default_rng([9, seed]).standard_t(3, (8, hosts, repeats))
        sd = runs.std(axis=2, ddof=1)
        error = np.full(sd.shape, float(np.median(sd)) / repeats**0.5)
        counts = outliers.Repeats(np.full(sd.shape, repeats), sd)
        named += not outliers.judge(runs.mean(axis=2), error, np.full(8, outliers.SMALL), counts).slow.empty
    assert named <= 4  # 1% are expected; the binomial tail above 4 is 5%


def test_two_groups_are_split_and_nobody_is_blamed() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(0, 0.01, (2, 64))
    values[0, :20] -= 0.2
    values[0, 3] -= 0.2  # slow even within the slower group
    verdicts = judged(values)
    assert verdicts.modes.rows.tolist() == [0]
    assert np.flatnonzero(~verdicts.modes.upper[0]).tolist() == list(range(20))
    assert [(r["column"], r["group"]) for r in verdicts.slow.to_dict("records")] == [(3, 1)]


def test_one_group_is_seldom_split() -> None:
    for hosts in (8, 16, 64):
        values = np.random.default_rng(5).normal(0, 0.02, (2000, hosts))
        limits, unknown = np.full(len(values), outliers.SMALL), np.full(len(values), np.nan)
        assert len(modes.split(values, np.sort(values, axis=1), limits, unknown).rows) < 0.01 * len(values)


def runs(hosts: int, repeats: int, heavy: set[int], seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 0.01, (hosts, repeats))
    for host in heavy:
        values[host, ::4] -= 0.15
    host, _ = np.indices(values.shape)
    return pd.DataFrame({"row": 0, "column": host.ravel(), "value": values.ravel() + 0.1 * host.ravel()})


def test_several_sick_hosts_do_not_hide_each_others_tails() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(0, 0.01, (64, 10))
    values[[4, 20, 50], :2] += np.log(0.8)  # two of ten runs, so that the median is normal
    flat = pd.DataFrame({"row": 0, "column": np.repeat(np.arange(64), 10), "value": values.ravel()})
    assert {*tails.judge(flat)["column"]} == {4, 20, 50}


def test_a_heavy_tail_is_seen_where_the_median_is_as_usual() -> None:
    for seed in range(3):
        result = tails.judge(runs(32, 10, {5, 9}, seed))
        assert set(result["column"]) == {5, 9}
        assert (result["worst"] > 0.1).all() and (result["usual"] < 0.04).all()
        assert tails.judge(runs(32, 10, set(), seed)).empty
    assert tails.judge(runs(7, 10, {1}, 1)).empty  # too few hosts
    assert tails.judge(runs(32, 4, {1}, 1)).empty  # too few runs


def pairs(hosts: int, each: int, slow_node: int, slow_link: tuple[int, int], seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ends = [(i, (i + d) % hosts) for i in range(hosts) for d in range(1, each + 1)]
    values = [
        22
        + rng.normal(0, 0.02)
        + (np.log(0.85) if slow_node in pair else 0)
        + (np.log(0.6) if pair == slow_link else 0)
        for pair in ends
    ]
    return pd.DataFrame({"a": [a for a, _ in ends], "b": [b for _, b in ends], "value": values})


@pytest.mark.parametrize(("hosts", "each"), [(10, 4), (64, 5), (300, 8)])
def test_a_slow_node_and_a_slow_link_are_told_apart(hosts: int, each: int) -> None:
    for seed in range(3):
        nodes, slow = links.judge(pairs(hosts, each, 3, (5, 6), seed), hosts, outliers.LARGE)
        assert nodes["host"].tolist() == [3]
        assert [*zip(slow["a"], slow["b"], strict=True)] == [(5, 6)]


def test_a_host_with_one_partner_is_not_told_from_its_link() -> None:
    frame = pairs(10, 4, 99, (0, 0), 1)
    frame = pd.concat([frame, pd.DataFrame({"a": [10], "b": [0], "value": [21.0]})])
    nodes, slow = links.judge(frame, 11, outliers.LARGE)
    assert nodes.empty and slow[["a", "b", "either"]].to_dict("records") == [{"a": 10, "b": 0, "either": True}]
