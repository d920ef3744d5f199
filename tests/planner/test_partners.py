"""Test the search for slow pairs in simulated fleets: every kind of fault is named by its reason, and no healthy host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from fleetmark.planner.diagnosis.isolation.partners import Pair, Reason, Suspicion, isolate

HOSTS = [f"n{i}" for i in range(8)]
RACK = {host: "r1" if i < 4 else "r2" for i, host in enumerate(HOSTS)}


class Fleet:
    """Simulate pairs with 2% of noise; pairs with a faulty host, slow link or slow border have a fifth of the rate."""

    def __init__(self, nodes: set[str], links: set[Pair], inside: set[str], border: bool, seed: int) -> None:
        self.nodes, self.links, self.inside, self.border = nodes, links, inside, border
        self.rng = np.random.default_rng(seed)
        self.ran: list[Pair] = []

    def rate(self, pair: Pair) -> float:
        slow = pair & (self.nodes | self.inside) or pair in self.links
        slow = slow or (self.border and len({RACK[h] for h in pair}) == 2)
        return (np.log(0.2) if slow else 0.0) + float(self.rng.normal(0, 0.02))

    def together(self, pairs: Sequence[Pair]) -> Mapping[Pair, float]:
        self.ran += pairs
        return {p: self.rate(p) for p in pairs}

    def alone(self, hosts: Sequence[str]) -> Mapping[str, float]:
        return {h: (np.log(0.2) if h in self.inside else 0.0) + float(self.rng.normal(0, 0.02)) for h in hosts}


def suspicion(
    nodes: Sequence[str] = (),
    links: Sequence[tuple[str, str]] = (),
    inside: Sequence[str] = (),
    border: bool = False,
    rounds: int = 3,
    seed: int = 1,
) -> tuple[Suspicion, Fleet]:
    fleet = Fleet(set(nodes), {frozenset(p) for p in links}, set(inside), border, seed)
    pairs = [frozenset((HOSTS[i], HOSTS[(i + step) % 8])) for step in range(1, rounds + 1) for i in range(8)]
    result = isolate({p: fleet.rate(p) for p in pairs}, fleet.alone, fleet.together, deficit=0.1, labels={"rack": RACK})
    return result, fleet


@pytest.mark.parametrize("seed", range(10))
def test_each_kind_of_fault_is_named_with_its_reason(seed: int) -> None:
    node, _ = suspicion(nodes=["n3"], seed=seed)
    assert [(f.kind, f.members, f.reason) for f in node.faults] == [("node", ("n3",), Reason.ALL_PARTNERS)]
    assert node.faults[0].deficit == pytest.approx(0.8, abs=0.03)
    inside, _ = suspicion(inside=["n3"], seed=seed)
    assert [(f.kind, f.members, f.reason) for f in inside.faults] == [("node", ("n3",), Reason.INTRA_HOST)]
    link, _ = suspicion(links=[("n2", "n3")], seed=seed)
    assert [(f.kind, f.members, f.reason) for f in link.faults] == [("link", ("n2", "n3"), Reason.ONE_PAIR)]
    border, _ = suspicion(border=True, seed=seed)
    assert [(f.kind, f.members, f.reason) for f in border.faults] == [("border", ("r1", "r2"), Reason.ALL_ACROSS)]


def test_two_nodes_that_met_and_a_link() -> None:
    result, fleet = suspicion(nodes=["n0", "n1"], links=[("n4", "n5")])
    assert {f.members for f in result.faults} == {("n0",), ("n1",), ("n4", "n5")}
    assert sum(p <= {"n0", "n1"} for p in fleet.ran) == 1  # they run with known-good partners, then once together
    assert result.runs < result.all_pairs == 28 and result.bisection == 24


def test_a_host_that_met_one_other_only() -> None:
    result, _ = suspicion(nodes=["n3"], rounds=1)
    assert [(f.kind, f.members) for f in result.faults] == [("node", ("n3",))]


def test_a_pair_that_is_fast_again_is_left_open() -> None:
    fleet = Fleet(set(), set(), set(), False, 1)
    measured = {frozenset((a, b)): 0.0 for a in HOSTS for b in HOSTS if a < b}
    measured[frozenset(("n1", "n2"))] = -1.0
    result = isolate(measured, fleet.alone, fleet.together, deficit=0.1)
    assert result.faults == () and result.open == (frozenset(("n1", "n2")),) and result.runs == 1


def test_a_sound_fleet_takes_no_run() -> None:
    result, _ = suspicion()
    assert (result.faults, result.runs, result.open) == ((), 0, ())


def test_what_is_within_the_noise_is_not_slow() -> None:
    fleet = Fleet({"n3"}, set(), set(), False, 1)
    pairs = [frozenset((a, b)) for a in HOSTS for b in HOSTS if a < b]
    measured = {p: fleet.rate(p) - (0.3 if i % 3 == 0 else 0.0) for i, p in enumerate(pairs)}
    result = isolate(measured, fleet.alone, fleet.together, deficit=0.1, noise=0.1)
    assert [f.members for f in result.faults] == [("n3",)]


def rack_of_four(
    seed: int, nodes: Sequence[str] = (), links: Sequence[Pair] = (), rounds: int = 3, labels: bool = False
) -> Suspicion:
    """Return the answer for 12 hosts of which the last four have a slow uplink that no label names."""
    hosts = [f"n{i:02}" for i in range(12)]
    behind = set(hosts[8:])
    rng = np.random.default_rng(seed)

    def rate(pair: Pair) -> float:
        slow = len(pair & behind) == 1 or pair & set(nodes) or pair in links
        return (np.log(0.8) if slow else 0.0) + float(rng.normal(0, 0.01))

    def together(pairs: Sequence[Pair]) -> Mapping[Pair, float]:
        return {pair: rate(pair) for pair in pairs}

    pairs = [frozenset((hosts[i], hosts[(i + step) % 12])) for step in (5, 3, 1)[:rounds] for i in range(12)]
    known = {"site": dict.fromkeys(hosts, "a")} if labels else {}
    alone = lambda hosts: dict.fromkeys(hosts, 0.0)  # noqa: E731
    return isolate(together(pairs), alone, together, deficit=0.1, noise=0.01, labels=known)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("labels", [False, True])
def test_hosts_behind_an_uplink_without_a_label_are_not_blamed(seed: int, rounds: int, labels: bool) -> None:
    answer = rack_of_four(seed, rounds=rounds, labels=labels)
    named = [(f.kind, f.members, f.reason) for f in answer.faults]
    assert named == [("shared", ("n08", "n09", "n10", "n11"), Reason.UNLABELLED)]
    assert answer.faults[0].deficit == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_a_host_and_a_link_beside_an_uplink_without_a_label_are_named(seed: int) -> None:
    answer = rack_of_four(seed, nodes=["n02"], links=[frozenset(("n04", "n05"))])
    named = {f.members: f.reason for f in answer.faults}
    assert named == {
        ("n02",): Reason.ALL_PARTNERS,
        ("n04", "n05"): Reason.ONE_PAIR,
        ("n08", "n09", "n10", "n11"): Reason.UNLABELLED,
    }
