"""Adaptive repeats: what the drive gets after each repeat."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from fleetmark.base.measurement import Status
from fleetmark.campaign.adaptive import Adaptive, Rejected, Settled, Until
from fleetmark.campaign.outcome import Outcome
from fleetmark.record.steps import Step


def step(repeat: int, case: str = "c", subject: str = "host") -> Step:
    measuring = Step(
        id=f"{repeat:05d}", workload="w", case=case, repeat=repeat, argv=("x",), env={}, expect_s=1, timeout_s=1
    )
    return replace(measuring, subject=subject)


def outcome(value: float, foreign: float = 0.0, case: str = "c", headline: bool = True, **labels: str) -> Outcome:
    row = {"headline": headline, "subject": "host", "case": case, "metric": "m", "labels": json.dumps(labels)}
    return Outcome(status=Status.PASSED, reason="", rows=({**row, "value": value},), foreign_cores=foreign)


def feed(adaptive: Adaptive, values: Sequence[float], first: int = 0) -> list[object]:
    return [e for n, v in enumerate(values, first) for e in adaptive.heard("h1", step(n), outcome(v))]


def test_narrow_enough_at_the_first_look() -> None:
    (event,) = feed(Adaptive(Until(0.02, 10, 50), {}), [100, 101] * 6)
    assert isinstance(event, Settled) and event.enough
    assert event.repeats == 10 and event.half_width is not None and event.half_width <= 0.01


def test_the_next_look_is_five_repeats_later() -> None:
    values = [100, 120, 90, 110, 95, 105, 85, 115, 100, 130] + [100] * 20
    (event,) = feed(Adaptive(Until(0.04, 10, 50), {}), values)
    assert isinstance(event, Settled) and event.enough and event.repeats in (15, 20, 25)


def test_what_stays_wide_is_unstable_at_the_cap() -> None:
    (event,) = feed(Adaptive(Until(0.01, 10, 20), {}), [100, 150] * 15)
    assert isinstance(event, Settled) and not event.enough
    assert event.repeats == 20 and event.half_width is not None and event.half_width > 0.01


def test_what_is_narrow_at_the_cap_is_enough() -> None:
    (event,) = feed(Adaptive(Until(0.02, 10, 12), {}), [100, 150] * 1 + [100] * 12)
    assert isinstance(event, Settled) and event.repeats == 12 and event.enough


def test_a_case_that_never_passes_ends_at_the_least() -> None:
    adaptive = Adaptive(Until(0.01, 6, 50), {})
    failed = Outcome(status=Status.FAILED, reason="broken")
    events = [e for n in range(9) for e in adaptive.heard("h1", step(n), failed)]
    assert events == [Settled(6, None, (), False)]


def test_what_is_always_the_same_is_narrow_even_at_zero() -> None:
    (event,) = feed(Adaptive(Until(0.02, 10, 50), {}), [0.0] * 10)
    assert isinstance(event, Settled) and event.enough


def test_without_headlines_all_figures_decide() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {})
    events = [e for n in range(6) for e in adaptive.heard("h1", step(n), outcome(5.0, headline=False))]
    assert len(events) == 1 and isinstance(events[0], Settled) and events[0].enough


def test_repeats_that_failed_do_not_count_towards_the_least() -> None:
    adaptive = Adaptive(Until(0.02, 10, 50), {})
    for n in range(4):
        assert not list(adaptive.heard("h1", step(n), Outcome(status=Status.FAILED, reason="broken")))
    (event,) = feed(adaptive, [100.0] * 12, first=4)
    assert isinstance(event, Settled) and event.repeats == 14


def test_a_warm_up_is_told_by_repeat() -> None:
    (event,) = feed(Adaptive(Until(0.02, 10, 50), {}), [50.0] * 4 + [100.0] * 12)
    assert isinstance(event, Settled) and event.enough
    assert event.warm_up == (0, 1, 2, 3) and event.repeats == 15


def test_the_cases_within_a_step_are_told_apart() -> None:
    adaptive = Adaptive(Until(0.02, 6, 8), {})
    events: list[object] = []
    for n in range(8):
        rows = outcome(1.0 if n % 2 else 9.0, case="suite/a").rows + outcome(5.0, case="suite/b").rows
        events += adaptive.heard("h1", step(n), Outcome(status=Status.PASSED, reason="", rows=rows))
    (event,) = events
    assert isinstance(event, Settled) and not event.enough


def test_a_disturbed_block_does_not_count() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {"h1": 8})
    events: list[object] = []
    for n in range(8):
        events += adaptive.heard("h1", step(n), outcome(100 if n != 3 else 60, 0.0 if n != 3 else 2.0))
    rejected, enough = events
    assert rejected == Rejected(3, "disturbed: 2.00 cores used by other processes above the usual level during c")
    assert isinstance(enough, Settled) and enough.repeats == 7 and enough.half_width == 0


def test_time_stolen_from_a_virtual_machine_is_interference_too() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {"h1": 8})
    events: list[object] = []
    for n in range(5):
        events += adaptive.heard("h1", step(n), replace(outcome(100), stolen_cores=0.1 if n != 3 else 0.9))
    assert events == [Rejected(3, "disturbed: 0.80 cores taken by the hypervisor above the usual level during c")]


def test_a_disturbed_pair_does_not_touch_other_pairs() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {"h1": 8})
    for n in range(5):
        for subject in ("h1>h2", "h1>h3"):
            foreign = 2.0 if (n, subject) == (2, "h1>h3") else 0.0
            list(adaptive.heard("h1", step(n, subject=subject), outcome(100, foreign)))
    assert adaptive.rejected == {("h1", "w", "h1>h3", 2)}


def test_of_a_curve_the_largest_size_decides() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {})
    events: list[object] = []
    for n in range(6):
        rows = [outcome(v, size=s).rows[0] for s, v in (("1", 1 + n), ("2", 2 + n), ("4", 5), ("8", 100 + n / 10))]
        events += adaptive.heard("h1", step(n), Outcome(status=Status.PASSED, reason="", rows=tuple(rows)))
    assert len(events) == 1 and isinstance(events[0], Settled)


def test_a_resumed_campaign_knows_what_was_decided() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {})
    adaptive.remember(
        [
            {"e": "enough", "host": "h1", "workload": "w", "case": "c", "subject": "host"},
            {"e": "rejected", "host": "h1", "workload": "w", "subject": "host", "repeat": 2},
        ]
    )
    assert feed(adaptive, [100.0] * 8) == []
    assert ("h1", "w", "host", 2) in adaptive.rejected
