"""How likely each host and link is what makes a group slow, and what to run next, by runs that are made up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.diagnosis.posterior import Posterior
from planner.diagnosis.search import Search, apart, between

DROP, NOISE = math.log1p(-0.1), 0.02
HOSTS = [f"n{i:03d}" for i in range(64)]


@pytest.mark.parametrize(
    "fault", [("n000",), ("n063",), ("n040",), ("n003", "n020"), ("n010", "n040"), ("n062", "n063")]
)
def test_a_fault_is_named_in_about_as_many_runs_as_it_has_bits(fault: tuple[str, ...]) -> None:
    rng, right = np.random.default_rng(18), 0
    for _ in range(5):
        posterior, runs = Posterior(HOSTS, 0.0, DROP, NOISE), 0
        while posterior.likeliest()[1] < math.log(20):
            group = posterior.next()
            posterior.learn(group, DROP * (set(fault) <= set(group)) + float(rng.normal(0, NOISE)))
            runs += 1
        right += posterior.likeliest()[0] == fault
        assert runs <= math.log2(64 * 65 / 2) + 5  # 11 bits, what tells a host from a link, and what noise costs
    assert right >= 4  # at odds of 20 to 1


def test_what_is_refuted_is_named_no_more_and_its_slow_runs_do_not_count() -> None:
    posterior = Posterior(HOSTS[:4], 0.0, DROP, NOISE)
    posterior.learn(HOSTS[:2], DROP)
    posterior.learn(HOSTS[:1], 0.0)
    posterior.learn(HOSTS[1:2], 0.0)
    of, odds = posterior.likeliest()
    assert of == ("n000", "n001") and odds > 3 and posterior.open() == {"n000", "n001"}
    posterior.refute(of)
    assert posterior.likeliest()[0] in (("n002",), ("n003",))
    assert not {"n000", "n001"} <= posterior.open() or posterior.likeliest()[0] != of


def test_a_run_that_fails_is_slow_and_the_level_follows_the_sound_runs() -> None:
    posterior = Posterior(HOSTS[:8], 0.03, DROP, NOISE)
    for _ in range(6):
        posterior.learn(HOSTS[4:], 0.0)
    posterior.learn(HOSTS[:4], -math.inf)
    assert abs(posterior.level) < NOISE / 2 and posterior.open() <= set(HOSTS[:4])


def test_verdicts_on_groups_repeat_what_is_unclear_and_no_more() -> None:
    rates = iter([DROP / 2, DROP, 0.0])
    search = Search(lambda _: next(rates), NOISE, DROP, 10, math.log(50))
    assert search.slow(["a", "b"]) and len(search.rates) == 2
    assert search.slow(["a", "b", "c"]) and not search.slow([])  # known without a run
    assert not search.slow(["a"]) and search.shortest(["b"], ["a"]) == 1 and len(search.rates) == 3


def test_groups_apart_have_every_member_and_no_known_fault() -> None:
    racks = {"a": "r1", "b": "r1", "c": "r2", "d": "r3"}
    groups = apart("abcd", [("a", "b")], [("r1", "r2")], racks)
    assert set().union(*groups) == set("abcd")
    for group in groups:
        assert not any(between(x, y, [("a", "b")], [("r1", "r2")], racks) for x in group for y in group if x != y)
