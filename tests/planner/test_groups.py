"""Simulate the search for hosts that slow down a case over several hosts; the rate of a healthy group is unknown."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from fleetmark.planner.diagnosis.isolation.groups import isolate
from fleetmark.planner.diagnosis.isolation.partners import Reason, Suspicion

SLOW = 0.15


def names(n: int) -> list[str]:
    return [f"n{i:03d}" for i in range(n)]


def cluster(bad: Callable[[set[str]], float], seed: int, noise: float = 0.02) -> Callable[[Sequence[str]], list[float]]:
    """Return groups whose rate falls with their size and with the losses (ln) in ``bad``."""
    rng = np.random.default_rng(seed)
    return lambda group: [-0.1 * math.log(len(group)) - bad(set(group)) + float(rng.normal(0, noise))]


def lost(*parts: set[str], deficit: float = SLOW) -> Callable[[set[str]], float]:
    return lambda group: -math.log1p(-deficit) if any(part <= group for part in parts) else 0.0


def alone_not(_: Sequence[str]) -> Mapping[str, float]:
    return {}


def solve(n: int, bad: Callable[[set[str]], float], seed: int = 1, **more: object) -> Suspicion:
    options = {"noise": 0.02, "deficit": 0.1, **more}
    return isolate({}, names(n), alone_not, cluster(bad, seed, options["noise"]), **options)  # type: ignore[arg-type]


def members_of(suspicion: Suspicion, kind: str) -> list[tuple[str, ...]]:
    return sorted(f.members for f in suspicion.faults if f.kind == kind)


@pytest.mark.parametrize(("n", "host"), [(4, "n003"), (5, "n000"), (8, "n005"), (10, "n009"), (64, "n017")])
def test_a_slow_node_is_named_in_fewer_runs_than_there_are_pairs(n: int, host: str) -> None:
    right = 0
    for seed in range(3):
        result = solve(n, lost({host}), seed)
        assert set(members_of(result, "node")) <= {(host,)}
        right += [(f.kind, f.members, f.reason) for f in result.faults] == [("node", (host,), Reason.ALL_PARTNERS)]
        assert n < 10 or result.runs < result.all_pairs
    assert right == 3


@pytest.mark.parametrize("ends", [("n001", "n005"), ("n012", "n050")])
def test_a_slow_link_is_named_within_a_half_and_across(ends: tuple[str, str]) -> None:
    assert all(members_of(solve(64, lost(set(ends)), seed), "link") == [ends] for seed in range(2))


@pytest.mark.parametrize("faults", [[{"n003", "n040"}, {"n041", "n044"}], [{"n020"}, {"n007", "n055"}, {"n033"}]])
def test_several_faults_are_named_within_two_log2_n_groups_each_and_four(faults: list[set[str]]) -> None:
    result = solve(64, lost(*faults, deficit=0.1))
    assert sorted(f.members for f in result.faults) == sorted(tuple(sorted(fault)) for fault in faults)
    assert result.named_after <= 2 * math.log2(64) * len(faults) + 4


def test_two_nodes_of_which_one_is_far_slower() -> None:
    bad = lambda group: max(lost({"n003"}, deficit=0.95)(group), lost({"n040"})(group))  # noqa: E731
    for seed in range(1):
        result = solve(64, bad, seed)
        assert members_of(result, "node") == [("n003",), ("n040",)]
        assert result.faults[0].members == ("n003",) and result.faults[0].deficit > 0.9


def test_a_sound_fleet_blames_nobody() -> None:
    assert not any(solve(n, lost(), seed).faults for n in (8, 32) for seed in range(2))


@pytest.mark.parametrize("racks", [2, 4])
def test_a_border_between_racks_is_named_as_one(racks: int) -> None:
    labels = {m: f"r{i % racks}" for i, m in enumerate(names(16))}

    def bad(group: set[str]) -> float:
        return 0.5 if {"r0", "r1"} <= {labels[m] for m in group} else 0.0

    result = solve(16, bad, labels={"rack": labels})
    assert (
        members_of(result, "border") == [("r0", "r1")]
        and not members_of(result, "node")
        and not members_of(result, "link")
    )


def uplinks(
    racks: int, place: str, loss: float, rows: int = 1
) -> tuple[dict[str, dict[str, str]], Callable[[set[str]], float]]:
    """Return labels of 32 hosts, and the loss of groups that leave the rack or row ``place``."""
    hosts = names(32)
    labels = {"rack": {h: f"r{n * racks // 32}" for n, h in enumerate(hosts)}}
    labels["row"] = {h: f"w{n * rows // 32}" for n, h in enumerate(hosts)}
    kind = "rack" if place.startswith("r") else "row"

    def bad(group: set[str]) -> float:
        sides = {labels[kind][host] for host in group}
        return -math.log1p(-loss) if len(sides) > 1 and place in sides else 0.0

    return labels, bad


@pytest.mark.parametrize(("place", "loss", "rows"), [("r2", 0.2, 1), ("r2", 0.05, 1), ("w1", 0.2, 4), ("r5", 0.2, 4)])
def test_an_uplink_is_named_and_no_node_behind_it(place: str, loss: float, rows: int) -> None:
    labels, bad = uplinks(4 if rows == 1 else 8, place, loss, rows)
    for seed in range(4):
        result = solve(32, bad, seed, labels=labels, deficit=min(0.1, loss * 0.8), noise=0.01)
        assert [(f.kind, f.members, f.reason) for f in result.faults] == [("border", (place,), Reason.UPLINK)], seed


def test_an_uplink_that_slows_all_groups_of_the_campaign_is_named() -> None:
    labels, bad = uplinks(4, "r2", 0.2)
    for seed in range(4):
        run = cluster(bad, seed, noise=0.01)
        mixed = [[h for n, h in enumerate(names(32)) if n % 4 == part] for part in range(4)]
        measured = {frozenset(group): run(group) for group in mixed}
        result = isolate(measured, names(32), alone_not, run, deficit=0.1, labels=labels)
        assert [(f.members, f.reason) for f in result.faults] == [(("r2",), Reason.UPLINK)]


def test_hosts_behind_an_uplink_without_a_label_are_not_blamed() -> None:
    _, bad = uplinks(4, "r2", 0.2)
    for seed in range(4):
        run = cluster(lambda group: max(bad(group), lost({"n003"})(group)), seed, noise=0.01)
        parts = [frozenset(names(32)[n : n + 6]) for n in range(0, 30, 6)]
        result = isolate({group: run(tuple(group)) for group in parts}, names(32), alone_not, run, deficit=0.1)
        named = {f.members: f.reason for f in result.faults}
        assert named == {("n003",): Reason.ALL_PARTNERS, tuple(names(32)[16:24]): Reason.UNLABELLED}, seed


def test_groups_that_are_equally_slow_say_nothing_without_labels() -> None:
    _, bad = uplinks(4, "r2", 0.2)
    run = cluster(bad, 1, noise=0.01)
    mixed = [frozenset(h for n, h in enumerate(names(32)) if n % 4 == part) for part in range(4)]
    result = isolate({group: run(tuple(group)) for group in mixed}, names(32), alone_not, run, deficit=0.1)
    assert result.alike and not result.faults
    assert not solve(32, lost({"n003"})).alike


def test_a_node_beside_a_slow_uplink_is_named_too() -> None:
    labels, bad = uplinks(4, "r2", 0.2)
    result = solve(32, lambda group: max(bad(group), lost({"n003"})(group)), labels=labels, noise=0.01)
    assert members_of(result, "border") == [("r2",)] and members_of(result, "node") == [("n003",)]


def test_runs_that_fail() -> None:
    result = solve(8, lambda group: math.inf if "n002" in group else 0.0)
    assert members_of(result, "node") == [("n002",)] and result.faults[0].deficit == 1
    blind = solve(8, lambda _: math.inf)
    assert blind.blind and not blind.faults


def test_groups_of_the_campaign_are_where_the_search_begins() -> None:
    members = names(16)
    run = cluster(lost({"n006"}), 3)
    measured = {frozenset(members[s : s + 4]): run(members[s : s + 4]) for s in range(0, 16, 4)}
    result = isolate(measured, members, alone_not, run, deficit=0.1, noise=0.02)
    assert members_of(result, "node") == [("n006",)] and result.runs <= 10
    sound = {group: [0.0] for group in measured}
    assert isolate(sound, members, alone_not, run, deficit=0.1, noise=0.02).runs == 0


def test_a_host_that_is_slow_alone_is_named_where_that_explains_its_groups() -> None:
    def alone(hosts: Sequence[str]) -> dict[str, float]:
        return {h: -0.7 if h == "n001" else -0.3 if h == "n007" else 0.0 for h in hosts}

    result = isolate({}, names(8), alone, cluster(lost({"n001"}, deficit=0.5), 1), deficit=0.1, noise=0.02)
    assert [(f.members, f.reason) for f in result.faults] == [(("n001",), Reason.INTRA_HOST)] and result.alone == 8
    slower = isolate({}, names(8), alone, cluster(lost({"n001"}, deficit=0.95), 1), deficit=0.1, noise=0.02)
    assert [(f.members, f.reason) for f in slower.faults] == [(("n001",), Reason.ALL_PARTNERS)]


def test_noise_comes_from_repeats_where_it_is_not_known() -> None:
    rng = np.random.default_rng(5)

    def run(group: Sequence[str]) -> list[float]:
        return [(-3.0 if "n005" in group else 0.0) + float(rng.normal(0, 0.2)) for _ in range(2)]

    result = isolate({}, names(8), alone_not, run, deficit=0.1)
    assert members_of(result, "node") == [("n005",)] and len(result.faults) == 1 and not result.unclear


def test_a_pair_that_was_slow_once_is_no_link() -> None:
    once = {frozenset(("n000", "n001")): 1.5}

    def run(group: Sequence[str]) -> list[float]:
        return [math.log(5) - once.pop(frozenset(group), 0.0)]

    result = isolate({}, names(4), alone_not, run, deficit=0.1)
    assert not result.faults and not once


def test_runs_that_vary_several_fold_tell_nothing() -> None:
    rng = np.random.default_rng(5)
    result = isolate({}, names(8), alone_not, lambda _: rng.normal(0, 0.7, 2).tolist(), deficit=0.1)
    assert result.unclear and not result.faults and result.visible > 0.5
    assert not solve(8, lost()).unclear


def test_a_host_is_not_named_by_what_sound_hosts_reach_alone_as_well() -> None:
    def alone(hosts: Sequence[str]) -> dict[str, float]:
        return {h: -0.9 if h in ("n001", "n006") else 0.1 * int(h[1:]) for h in hosts}

    result = isolate({}, names(8), alone, cluster(lost({"n001"}, deficit=0.5), 1), deficit=0.1, noise=0.02)
    assert [(f.members, f.reason) for f in result.faults] == [(("n001",), Reason.ALL_PARTNERS)]
    assert result.alone_vary == pytest.approx(math.exp(0.9 + 0.7))


def test_too_few_hosts_to_compare_name_nobody() -> None:
    assert solve(2, lost({"n001"})).faults == () and solve(1, lost()).runs == 0


@pytest.mark.parametrize(("n", "maximum"), [(4, 20), (8, 30)])
def test_who_makes_a_case_fail_is_not_hidden_by_runs_that_vary(n: int, maximum: int) -> None:
    rng = np.random.default_rng(0)

    def together(group: Sequence[str]) -> list[float]:
        return [-math.inf] * 3 if "n002" in group else [float(rate) for rate in rng.normal(0, 0.5, 3)]

    everybody = {frozenset(names(n)): [-math.inf] * 3}
    for _ in range(5):
        result = isolate(everybody, names(n), alone_not, together, deficit=0.1)
        assert [(f.kind, f.members) for f in result.faults] == [("node", ("n002",))]
        assert result.runs <= maximum and not result.open
