"""Repeats until they suffice: what the drive is told after each of them."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.adaptive import Adaptive, Enough, Rejected, Unstable, Until
from fleetmark.model import Status
from fleetmark.outcome import Outcome
from fleetmark.steps import Step


def step(repeat: int, case: str = "c") -> Step:
    return Step(
        id=f"{repeat:05d}", workload="w", case=case, repeat=repeat, argv=("x",), env={}, expect_s=1, timeout_s=1
    )


def outcome(value: float, foreign: float = 0.0, status: Status = Status.PASSED, **labels: str) -> Outcome:
    import json

    row = {"headline": True, "subject": "host", "metric": "m", "labels": json.dumps(labels), "value": value}
    return Outcome(status, "", (row,), foreign_cores=foreign)


def feed(adaptive: Adaptive, values: Sequence[float]) -> list[object]:
    return [e for n, v in enumerate(values) for e in adaptive.heard("h1", step(n), outcome(v))]


def test_narrow_enough_at_the_first_look() -> None:
    (event,) = feed(Adaptive(Until(0.02, 10, 50), {}), [100, 101] * 6)
    assert isinstance(event, Enough)
    assert event.repeats == 10 and event.half_width <= 0.01


def test_the_next_look_is_five_repeats_later() -> None:
    values = [100, 120, 90, 110, 95, 105, 85, 115, 100, 130] + [100] * 20
    (event,) = feed(Adaptive(Until(0.04, 10, 50), {}), values)
    assert isinstance(event, Enough) and event.repeats in (15, 20, 25)


def test_what_stays_wide_is_unstable_at_the_cap() -> None:
    (event,) = feed(Adaptive(Until(0.01, 10, 20), {}), [100, 150] * 15)
    assert event == Unstable(20, event.half_width) and (event.half_width or 0) > 0.01  # type: ignore[attr-defined]


def test_a_case_that_never_passes_is_unstable() -> None:
    adaptive = Adaptive(Until(0.01, 6, 8), {})
    failed = Outcome(Status.FAILED, "broken")
    events = [e for n in range(8) for e in adaptive.heard("h1", step(n), failed)]
    assert events == [Unstable(8, None)]


def test_a_disturbed_block_does_not_count() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {"h1": 8})
    events: list[object] = []
    for n in range(8):
        events += adaptive.heard("h1", step(n), outcome(100 if n != 3 else 60, 0.0 if n != 3 else 2.0))
    rejected, enough = events
    assert rejected == Rejected(3, "disturbed: 2.00 cores of others' work above the usual during c")
    assert isinstance(enough, Enough) and enough.repeats == 7 and enough.half_width == 0


def test_of_a_curve_the_largest_size_decides() -> None:
    adaptive = Adaptive(Until(0.02, 6, 50), {})
    events: list[object] = []
    for n in range(6):
        rows = [outcome(v, size=s).rows[0] for s, v in (("1", 1 + n), ("2", 2 + n), ("4", 5), ("8", 100 + n / 10))]
        events += adaptive.heard("h1", step(n), Outcome(Status.PASSED, "", tuple(rows)))
    assert len(events) == 1 and isinstance(events[0], Enough)
