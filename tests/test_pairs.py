"""Rounds of pairs: every host meets every other, and none is in two pairs of a round."""

from itertools import chain, combinations

import pytest

from fleetmark.campaign.pairs import rounds, sample_rounds


@pytest.mark.parametrize("count", range(2, 34))
def test_every_pair_meets_once_and_no_round_uses_a_host_twice(count: int) -> None:
    hosts = [f"h{n}" for n in range(count)]
    all_rounds = rounds(hosts)
    assert len(all_rounds) == (count - 1 if count % 2 == 0 else count)
    for pairs in all_rounds:
        met = list(chain.from_iterable(pairs))
        assert len(met) == len(set(met))
    everyone = [frozenset(p) for pairs in all_rounds for p in pairs]
    assert sorted(map(sorted, everyone)) == sorted(map(sorted, combinations(hosts, 2)))


def test_the_sizes_that_the_method_states() -> None:
    assert [len(r) for r in rounds(list("abcdefgh"))] == [4] * 7
    assert [len(r) for r in rounds(list("abcdefghi"))] == [4] * 9


@pytest.mark.parametrize("hosts", [[], ["alone"]])
def test_nobody_to_meet(hosts: list[str]) -> None:
    assert rounds(hosts) == []


def test_a_sample_is_of_whole_rounds_and_repeats_with_its_seed() -> None:
    every = rounds([f"h{n}" for n in range(10)])
    chosen = sample_rounds(every, 3, seed=7)
    assert len(chosen) == 3
    assert set(chosen) <= set(every)
    assert chosen == sample_rounds(every, 3, seed=7)
    assert any(chosen != sample_rounds(every, 3, seed=s) for s in range(8, 20))
    assert sample_rounds(every, 99, seed=7) == every
