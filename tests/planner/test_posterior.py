"""The odds of sets of faults, against every set counted one by one; groups that say most by them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from fleetmark.planner.diagnosis.isolation.design import choose
from fleetmark.planner.diagnosis.isolation.posterior import FAULTS, Posterior

HOSTS = ["a", "b", "c", "d", "e"]
DROP, NOISE = 0.1, 0.04
RUNS = [("abc", -0.02), ("ade", -0.11), ("bce", 0.01), ("cde", -0.06), ("abd", -0.13), ("ae", -0.3), ("bc", -0.31)]
BEFORE = (0.04, 0.43, 0.25, 0.16, 0.12)  # that there are so many faults


def counted(runs: list[tuple[str, float]]) -> dict[tuple[str, ...], float]:
    """How likely each host and link has a fault, by all sets of them."""
    faults = [(h,) for h in HOSTS] + list(combinations(HOSTS, 2))
    total, each = 0.0, dict.fromkeys(faults, 0.0)
    for number in range(FAULTS + 1):
        for chosen in combinations(faults, number):
            nodes = sum(len(fault) == 1 for fault in chosen)
            ways = math.comb(len(HOSTS), nodes) * math.comb(len(faults) - len(HOSTS), number - nodes)
            weight = BEFORE[number] * 2 ** (number - nodes) / (2 ** (number + 1) - 1) / ways
            for size in {len(group) for group, _ in runs}:
                sound = [
                    rate + DROP * any(set(fault) <= set(group) for fault in chosen)
                    for group, rate in runs
                    if len(group) == size
                ]
                weight *= math.exp(-sum((s - np.mean(sound)) ** 2 for s in sound) / (2 * NOISE**2))
            total += weight
            for fault in chosen:
                each[fault] += weight
    return {fault: weight / total for fault, weight in each.items()}


def learnt(runs: list[tuple[str, float]]) -> Posterior:
    posterior = Posterior(HOSTS, HOSTS, DROP, NOISE)
    for group, rate in runs:
        posterior.learn(frozenset(group), rate)
    return posterior


@pytest.mark.parametrize("known", [5, 7])
def test_odds_are_those_of_all_sets_counted_one_by_one(known: int) -> None:
    expected = counted(RUNS[:known])
    fault, odds = learnt(RUNS[:known]).likeliest([])
    assert isinstance(fault, tuple) and set(fault) == set(max(expected, key=expected.__getitem__))
    assert 1 / (1 + math.exp(-odds)) == pytest.approx(expected[tuple(sorted(fault))], rel=0.02)


def test_what_two_hosts_showed_settles_a_fault() -> None:
    posterior = learnt(RUNS)
    fault, _ = posterior.likeliest([])
    posterior.settle(fault, fault=False)
    other, _ = posterior.likeliest([])
    assert isinstance(fault, tuple) and isinstance(other, tuple) and set(other) != set(fault)
    posterior = learnt(RUNS)
    posterior.settle(fault, fault=True)
    assert posterior.likeliest([])[1] > 10 and posterior.more([fault]) < posterior.more([])


def test_hosts_of_the_same_runs_are_one_class_so_that_thousands_cost_no_more() -> None:
    hosts = [f"n{i}" for i in range(5000)]
    posterior = Posterior(hosts, hosts, DROP, NOISE)
    posterior.learn(frozenset(hosts[:2500]), 0.0)
    posterior.learn(frozenset(hosts[1250:3750]), -DROP)
    assert len(posterior.sizes) <= 6 and len(posterior.cells) < 5000
    assert posterior.likeliest([])[0] == ()


def test_more_runs_than_it_can_tell_hosts_apart_by_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetmark.planner.diagnosis.isolation.posterior._CLASSES", 6)
    hosts = [f"n{i:02d}" for i in range(24)]
    posterior = Posterior(hosts, hosts, DROP, 0.02)
    for start in range(0, 24, 2):
        posterior.learn(frozenset(hosts[start : start + 2]), 0.0 if start else -DROP)
    assert len(posterior.sizes) == 6 and len(posterior.sizes_run()) == 1
    assert posterior.more([]) > 0.5  # the first run was slow


def test_sets_that_were_dropped_come_back_when_runs_tell_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetmark.planner.diagnosis.isolation.posterior._ROWS", 50)
    hosts = [f"n{i:02d}" for i in range(32)]
    links = [{"n03", "n17"}, {"n08", "n30"}, {"n11", "n12"}]
    posterior = Posterior(hosts, hosts, DROP, 0.02)
    rng = np.random.default_rng(3)
    for _ in range(60):
        group = {str(h) for h in rng.choice(hosts, 16, replace=False)}
        posterior.learn(group, -DROP if any(link <= group for link in links) else 0.0)
    named: list[tuple[str, ...]] = []
    for _ in links:
        fault, odds = posterior.likeliest(named)
        assert isinstance(fault, tuple) and set(fault) in links and odds > math.log(5)
        posterior.settle(fault, fault=True)
        named.append(fault)
    assert posterior.more(named) < 0.05


def test_a_group_says_most_and_has_none_that_is_barred() -> None:
    hosts = [f"n{i:02d}" for i in range(16)]
    posterior = Posterior(hosts, hosts, DROP, 0.02)
    posterior.learn(frozenset(hosts[:8]), 0.0)
    posterior.learn(frozenset(hosts[8:]), -DROP)
    posterior.learn(frozenset(hosts[4:12]), 0.0)
    members, bits = choose(posterior, 8, [{"n00", "n01"}])
    assert len(members) == len(set(members)) == 8 and not {"n00", "n01"} & set(members)
    assert 0.8 < bits <= math.log2(3)
    assert set(members) & set(hosts[12:])  # the others ran in a healthy group
