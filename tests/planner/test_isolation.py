"""Who makes a group slow, in simulation: all faults are named in few runs, and nobody who is sound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.diagnosis.isolation import Probe, isolate

NOISE, SLOW = 0.02, 0.15


def names(n: int) -> list[str]:
    return [f"n{i:03d}" for i in range(n)]


def cluster(nodes: set[str], links: set[frozenset[str]], rng: np.random.Generator) -> Probe:
    def probe(group: tuple[str, ...]) -> float:
        here = set(group)
        bad = bool(here & nodes) or any(link <= here for link in links)
        return (math.log1p(-SLOW) if bad else 0.0) + float(rng.normal(0, NOISE))

    return probe


def planted(n: int, nodes: int, links: int, seed: int) -> tuple[set[str], set[frozenset[str]], Probe]:
    rng = np.random.default_rng([seed, n, nodes, links])
    chosen = [str(c) for c in rng.choice(names(n), nodes + 2 * links, replace=False)]
    pairs = {frozenset(chosen[nodes + 2 * i : nodes + 2 * i + 2]) for i in range(links)}
    return set(chosen[:nodes]), pairs, cluster(set(chosen[:nodes]), pairs, rng)


def limit(n: int, nodes: int, links: int) -> float:
    return 2 * math.log2(n) * (nodes + links) + 4


@pytest.mark.parametrize("n", [64, 512])
@pytest.mark.parametrize(("nodes", "links"), [(1, 0), (0, 1), (2, 0), (1, 1), (4, 0), (2, 2)])
def test_faults_are_named_in_few_runs(n: int, nodes: int, links: int) -> None:
    trials, right, blamed = (20 if n < 100 else 10), 0, 0
    for seed in range(trials):
        bad, pairs, probe = planted(n, nodes, links, seed)
        result = isolate(names(n), probe, noise=NOISE)
        named = {frozenset(link) for link in result.links}
        all_named = set(result.nodes) == bad and named == pairs and result.complete
        right += all_named and result.named_after <= limit(n, nodes, links)
        blamed += bool(set(result.nodes) - bad)
    assert right >= 0.95 * trials and blamed == 0


def test_a_sound_group_takes_one_run_or_few() -> None:
    for seed in range(20):
        result = isolate(names(64), cluster(set(), set(), np.random.default_rng(seed)), noise=NOISE)
        assert (result.nodes, result.links, result.complete) == ((), (), True) and len(result.runs) <= 3


def test_a_border_between_racks_is_named_as_one() -> None:
    members = names(32)
    racks = {m: f"r{i // 8}" for i, m in enumerate(members)}
    rng = np.random.default_rng(3)

    def probe(group: tuple[str, ...]) -> float:
        here = {racks[m] for m in group}
        return (math.log1p(-SLOW) if {"r1", "r2"} <= here else 0.0) + float(rng.normal(0, NOISE))

    result = isolate(members, probe, noise=NOISE, labels=racks)
    assert result.borders == (("r1", "r2"),) and result.nodes == () and result.links == () and result.complete
    assert result.as_json()["faults"] == [{"kind": "border", "of": ["r1", "r2"]}]


def test_the_first_two_and_tiny_groups() -> None:
    for bad, pairs in (({"n000"}, set()), ({"n001"}, set()), (set(), {frozenset(("n000", "n001"))})):
        result = isolate(names(8), cluster(bad, pairs, np.random.default_rng(1)), noise=NOISE)
        assert set(result.nodes) == bad and {frozenset(p) for p in result.links} == pairs
    assert isolate(["a"], cluster(set(), set(), np.random.default_rng(1))).runs == ()


def test_it_gives_up_where_nothing_can_be_told() -> None:
    rng = np.random.default_rng(1)
    result = isolate(names(64), lambda _group: float(rng.normal(-0.05, 0.2)), noise=NOISE, most_runs=60)
    assert len(result.runs) <= 60
