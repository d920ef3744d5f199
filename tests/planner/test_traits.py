"""Test groups of hosts that share a fact, small fleets, heavy-tailed noise and several populations, with known faults."""

from __future__ import annotations

import numpy as np
import pytest

from fleetmark.planner.diagnosis import outliers, traits

HOSTS, METRICS, RUN, HOST = 32, 8, 0.01, 0.003


def fleet(seed: int, slow: dict[int, float], repeats: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return oriented logarithms and the standard deviation of repeats; ``slow``: the loss of hosts in half the rows."""
    rng = np.random.default_rng(seed)
    runs = rng.normal(0, RUN, (METRICS, HOSTS, repeats)) + rng.normal(0, HOST, (METRICS, HOSTS, 1))
    for host, loss in slow.items():
        runs[: METRICS // 2, host] += np.log1p(-loss)
    return runs.mean(axis=2), runs.std(axis=2, ddof=1)


def groups_of(values: np.ndarray, **named: list[str]) -> list[traits.Group]:
    return traits.slower_groups(values, traits.traits(named), np.full(len(values), 0.03))


RACKS = [f"r{host // 8}" for host in range(HOSTS)]


def test_hosts_that_share_a_firmware_are_one_group_with_its_interval() -> None:
    bios = ["2.1" if host % 5 < 2 else "2.0" for host in range(HOSTS)]
    slow = [host for host in range(HOSTS) if bios[host] == "2.1"]
    values, _ = fleet(1, dict.fromkeys(slow, 0.3))
    groups = groups_of(values, BIOS=bios, rack=RACKS)
    assert sorted(g.row for g in groups) == [0, 1, 2, 3]
    for group in groups:
        assert group.members.tolist() == slow and group.traits == (("BIOS", "2.1"),)
        assert group.low < -np.log(0.7) < group.high and group.p < 1e-9 and group.tried == 6


@pytest.mark.parametrize("seed", range(10))
def test_a_rack_is_named_and_random_hosts_are_not_given_a_rack(seed: int) -> None:
    values, _ = fleet(seed, dict.fromkeys(range(8, 16), 0.12))
    groups = groups_of(values, rack=RACKS)
    assert {(g.row, g.traits) for g in groups} == {(row, (("rack", "r1"),)) for row in range(4)}
    chosen = np.random.default_rng(seed).choice(HOSTS, 13, replace=False)
    values, _ = fleet(seed, dict.fromkeys(chosen.tolist(), 0.1))
    assert groups_of(values, rack=RACKS) == []
    assert groups_of(fleet(seed, {})[0], rack=RACKS) == []


def test_two_of_four_racks_are_one_group_and_a_worse_rack_is_another() -> None:
    values, _ = fleet(2, dict.fromkeys(range(16), 0.12))
    assert {g.traits for g in groups_of(values, rack=RACKS)} == {(("rack", "r0 or r1"),)}
    values, _ = fleet(2, dict.fromkeys(range(8), 0.3) | dict.fromkeys(range(8, 16), 0.1))
    assert {g.traits for g in groups_of(values, rack=RACKS)} >= {(("rack", "r0"),), (("rack", "r1"),)}


def test_facts_that_cannot_be_told_apart_are_named_together() -> None:
    bios = ["2.1" if rack == "r2" else "2.0" for rack in RACKS]
    values, _ = fleet(3, dict.fromkeys(range(16, 24), 0.1))
    assert {g.traits for g in groups_of(values, rack=RACKS, BIOS=bios)} in (
        {(("rack", "r2"), ("BIOS", "2.1"))},
        {(("BIOS", "2.1"), ("rack", "r2"))},
    )


def test_single_slow_hosts_share_what_no_sound_one_has() -> None:
    named = traits.traits({"kernel": ["6.2" if h in (3, 9) else "6.1" for h in range(HOSTS)], "rack": RACKS})
    sound = [h for h in range(HOSTS) if h not in (3, 9)]
    assert traits.shared(named, [3, 9], sound) == (("kernel", "6.2", "6.1"),)
    assert traits.shared(named, [3], [h for h in range(HOSTS) if h != 3]) == ()


def judged(values: np.ndarray, sd: np.ndarray | None, repeats: int) -> outliers.Verdicts:
    error = np.full(values.shape, np.median(sd) / repeats**0.5 if sd is not None else np.nan)
    each_value = outliers.Repeats(np.full(values.shape, repeats), sd) if sd is not None else None
    return outliers.judge(values, error, np.full(len(values), 0.03), each_value)


def test_heavy_tailed_noise_blames_few() -> None:
    blamed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        runs = 0.01 * rng.standard_t(3, (METRICS, HOSTS, 5)) + rng.normal(0, HOST, (METRICS, HOSTS, 1))
        blamed += len(set(judged(runs.mean(axis=2), runs.std(axis=2, ddof=1), 5).slow["column"]))
    assert blamed / (60 * HOSTS) <= 0.002


def test_a_loss_of_5_percent_is_still_named() -> None:
    named = 0
    for seed in range(20):
        values, sd = fleet(seed, dict.fromkeys((3, 17, 29), 0.05))
        columns = set(judged(values, sd, 5).slow["column"])
        named += len(columns & {3, 17, 29})
        assert columns <= {3, 17, 29}
    assert named >= 0.99 * 60


def test_a_broad_illness_does_not_hide_its_worst_hosts() -> None:
    named = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sick = rng.choice(HOSTS, 13, replace=False).tolist()
        values, sd = fleet(seed, dict(zip(sick, rng.uniform(0.05, 0.25, 13), strict=True)))
        verdicts = judged(values, sd, 5)
        columns = set(verdicts.slow["column"])
        for group in verdicts.modes.group:
            columns |= {int(c) for c in np.flatnonzero(group < group.max())}
        named += len(columns & set(sick))
        assert columns <= set(sick)
    assert named >= 0.98 * 20 * 13


@pytest.mark.parametrize("levels", [(1.0, 1.6), (1.0, 1.3, 2.0), (1.0, 1.5, 2.2, 3.1)])
def test_several_populations_are_told(levels: tuple[float, ...]) -> None:
    for seed in range(5):
        values, sd = fleet(seed, {})
        of_host = np.arange(HOSTS) % len(levels)
        verdicts = judged(values + np.log(levels)[of_host], sd, 5)
        assert verdicts.modes.rows.tolist() == list(range(METRICS)) and verdicts.slow.empty
        assert (verdicts.modes.group == of_host).all()


def test_one_of_three_hosts_is_named_and_none_of_a_sound_three() -> None:
    blamed = 0
    for seed in range(100):
        values, sd = fleet(seed, {1: 0.2})
        error = np.full((METRICS, 3), np.median(sd) / 5**0.5)
        limits = np.full(METRICS, 0.03)
        assert set(outliers.judge_few(values[:, :3], error, limits).slow["column"]) == {1}
        blamed += len(outliers.judge_few(fleet(seed, {})[0][:, :3], error, limits).slow)
    assert blamed == 0


def test_few_hosts_of_which_many_are_slow_are_two_groups() -> None:
    """Nobody can say which half is sound, but the halves are reported."""
    limits = np.full(METRICS, 0.03)
    for levels in ([1.0, 1.0, 0.8, 0.8], [1.0, 1.0, 1.0, 1.0, 0.7, 0.7, 0.7]):
        values = np.tile(np.log(levels), (METRICS, 1))
        verdicts = outliers.judge_few(values, np.full(values.shape, np.nan), limits)
        assert verdicts.slow.empty and verdicts.modes.rows.tolist() == list(range(METRICS))
        assert (verdicts.modes.group == (np.array(levels) == 1.0)).all()
    for hosts in range(3, 8):
        alarms = 0
        for seed in range(100):
            values, sd = fleet(seed, {})
            verdicts = outliers.judge_few(values[:, :hosts], sd[:, :hosts] / 5**0.5, limits)
            alarms += len(verdicts.modes.rows) + len(verdicts.slow)
        assert alarms == 0


def minority(seed: int, hosts: int, sick: int, low: float, high: float, noise: str = "normal") -> tuple[set[int], int]:
    """Return the sick hosts that are named or in a slower group, and the number of healthy ones."""
    rng = np.random.default_rng(seed)
    shape = (METRICS, hosts, 5)
    runs = RUN * (rng.normal(size=shape) if noise == "normal" else rng.standard_t(3, shape))
    runs += HOST * rng.normal(size=(METRICS, hosts, 1))
    runs[: METRICS // 2, :sick] += np.log1p(-rng.uniform(low, high, sick))[:, None]
    values, sd = runs.mean(axis=2), runs.std(axis=2, ddof=1)
    if hosts < outliers.LEAST:
        error = np.full(values.shape, np.median(sd) / 5**0.5)
        verdicts = outliers.judge_few(values, error, np.full(METRICS, 0.03))
    else:
        verdicts = judged(values, sd, 5)
    below = [np.flatnonzero((group >= 0) & (group < group.max())) for group in verdicts.modes.group]
    named = set(verdicts.slow["column"]).union(*(set(columns.tolist()) for columns in below))
    return named & set(range(sick)), len(named - set(range(sick))) + (0 if sick else len(verdicts.modes.rows))


@pytest.mark.parametrize(
    ("hosts", "sick", "low", "high"),
    [
        (32, 20, 0.05, 0.25),
        (32, 28, 0.1, 0.1),
        (32, 30, 0.1, 0.1),
        (128, 120, 0.05, 0.25),
        (8, 6, 0.1, 0.1),
        (3, 2, 0.2, 0.2),
        (3, 2, 0.15, 0.25),
        (6, 5, 0.2, 0.2),
    ],
)
def test_a_fast_minority_shows_that_the_others_are_slow(hosts: int, sick: int, low: float, high: float) -> None:
    results = [minority(seed, hosts, sick, low, high) for seed in range(20)]
    assert sum(len(named) for named, _ in results) >= 0.95 * 20 * sick and not sum(blamed for _, blamed in results)


@pytest.mark.parametrize("noise", ["normal", "t"])
@pytest.mark.parametrize("hosts", [3, 8, 32])
def test_sound_fleets_have_no_populations(hosts: int, noise: str) -> None:
    assert sum(minority(seed, hosts, 0, 0.0, 0.0, noise)[1] > 0 for seed in range(100)) <= (
        1 if noise == "normal" else 6
    )
