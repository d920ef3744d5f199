"""The search of goodput against exact queues: how often its ends are wrong, and how many requests it takes."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from fleetmark.parsers import parse
from tests.llm.queues import LOADS, SERVICE, deterministic, exact, searched, waits
from tests.llm.running import client, server

SEARCHES = 60


@pytest.mark.parametrize(
    ("servers", "limit", "share", "is_constant"),
    [(4, 1.0, 0.99, False), (16, 0.3, 0.99, False), (4, 1.0, 0.9, False), (1, 3.0, 0.99, True)],
)
def test_both_ends_of_the_interval_are_rarely_wrong(
    servers: int, limit: float, share: float, is_constant: bool
) -> None:
    truth = deterministic(limit, share) if is_constant else exact(servers, limit, share)
    ends = [searched(seed, servers, limit, share, is_constant, truth)[0] for seed in range(SEARCHES)]
    allowed = SERVICE.ERROR * SEARCHES + 2.6 * math.sqrt(SERVICE.ERROR * (1 - SERVICE.ERROR) * SEARCHES)  # 99.5%
    assert sum((end.kept or 0) > truth for end in ends) <= allowed
    assert sum((end.missed or math.inf) < truth for end in ends) <= allowed
    kept = sorted(end.kept / truth for end in ends if end.kept)
    assert len(kept) >= 0.95 * SEARCHES
    assert kept[len(kept) // 2] > 0.7, "and it says more than nothing"


def test_the_highest_rate_that_passed_twenty_seconds_is_luck() -> None:
    """What was reported before: the highest rate whose short run passed, each tried twice, is above the truth."""
    truth, wrong = exact(4, 1.0, 0.99), 0
    for seed in range(SEARCHES):
        rng = random.Random(seed)

        def probe(rate: float, rng: random.Random = rng) -> bool:
            source = waits(rng, rate, 4, False, 5)
            return sum(next(source) > 1.0 for _ in range(int(20 * rate))) <= 0.01 * 20 * rate

        rate = LOADS.highest(lambda rate, probe=probe: probe(rate) or probe(rate), truth / 2, 0.01, coarse=1.1)
        wrong += rate is not None and rate > truth
    assert wrong > 0.5 * SEARCHES


def test_the_fewest_requests_are_ten_beyond_the_percentile() -> None:
    assert [SERVICE.least(share) for share in (0.9, 0.95, 0.99, 0.999)] == [250, 250, 1000, 10000]
    assert SERVICE.looks(0.99) == [125, 250, 500, 1000, 2000, 4000]
    fine = [0.0] * 999
    assert SERVICE.verdict([(fine, 1.0)], 0.99, 0.05, 0.05, True) == "", "not kept before there are enough"
    assert SERVICE.verdict([([0.0] * 1000, 1.0)], 0.99, 0.05, 0.05, False) == "kept"
    assert SERVICE.verdict([([math.inf] * 125, 1.0)], 0.99, 0.05, 0.05, True) == "missed"


@pytest.mark.parametrize(("count", "mean"), [(0, 1.0), (3, 2.5), (20, 10.0), (5, 40.0), (0, 4.6)])
def test_tails_are_poissons(count: int, mean: float) -> None:
    terms = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(count + 1)]
    assert SERVICE.at_most(count, mean) == pytest.approx(sum(terms), rel=1e-9)
    assert SERVICE.at_least(count, mean) == pytest.approx(1 - sum(terms[:-1]), rel=1e-9, abs=1e-12)


def test_no_rate_is_tried_twice_and_each_climb_has_half_of_the_error_left() -> None:
    tried: list[tuple[float, float]] = []

    def trial(rate: float, kept_error: float, missed_error: float) -> tuple[str, None]:
        tried.append((round(rate, 6), kept_error))
        return ("kept" if rate < 0.6 else "missed" if rate > 0.9 else ""), None

    ends = SERVICE.climb(trial, 1.0)
    rates = [rate for rate, _ in tried]
    assert len(set(rates)) == len(rates)
    assert [error for _, error in tried][:3] == [0.025, 0.0125, 0.00625]
    assert ends.kept < 0.6 and ends.missed > 0.9


def test_goodput_has_an_interval_and_as_many_requests_as_its_percentile_asks(tmp_path: Path) -> None:
    """Eight places of 0.05 s serve 160 requests/s; the target allows a wait of about an answer."""
    with server(tmp_path, "--places=8", "--first=0.02", "--gap=0.002") as running:
        words = ["--model=tiny", "--ttft=0.3", "--tpot=0.1", "--share=0.9", "--probe=1", "--effort=90", "--warmup=0.2"]
        ran = client(running, *words)
    assert ran.returncode == 0, ran.stderr
    parsed = parse("llm_serve", ran.stdout.encode())
    assert parsed.invalid is None, parsed.invalid
    value = {m.metric: m.value for m in parsed.measurements}
    assert value["requests"] >= 250
    assert 20 < value["goodput"] < value["goodput_missed"] < 250
    assert any(note.startswith("goodput: the targets are kept at ") for note in parsed.notes)
    rates = [json.loads(line)["rate"] for line in ran.stdout.splitlines() if '"trial"' in line]
    assert len(rates) == len(set(rates)), "no second chances"


def test_a_search_without_time_says_what_it_needs(tmp_path: Path) -> None:
    with server(tmp_path) as running:
        ran = client(running, "--model=tiny", "--ttft=0.5", "--tpot=0.05", "--probe=0.5", "--effort=2")
    parsed = parse("llm_serve", ran.stdout.encode())
    assert parsed.invalid and "within effort: a rate takes 1000 requests at least; raise effort" in parsed.invalid
    assert not [m for m in parsed.measurements if m.metric == "goodput"]


def test_a_percentile_of_few_requests_is_withheld() -> None:
    head = {"llm_serve": 1, "model": "m", "here": False}

    def metrics(requests: int, answered: int) -> set[str]:
        figures = {"p50": 0.1, "p90": 0.2, "p99": 0.3, "mean": 0.1}
        run = {"run": "open", "rate": 2, "requests": requests, "answered": answered, "ttft": figures}
        text = "".join(json.dumps(line) + "\n" for line in (head, run, {"end": True}))
        return {m.metric for m in parse("llm_serve", text.encode()).measurements if m.metric.startswith("ttft")}

    everything = {"ttft_p50", "ttft_p90", "ttft_p99", "ttft_mean"}
    assert metrics(100, 100) == metrics(1000, 995) == everything
    assert metrics(99, 99) == metrics(999, 995) == everything - {"ttft_p99"}
    assert metrics(9, 9) == {"ttft_p50", "ttft_mean"}
