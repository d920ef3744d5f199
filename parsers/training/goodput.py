"""Compute the goodput of a training run from the times at which its steps were logged.

Goodput is the share of the run's time that steps take at their usual speed, without repeated steps. The rest is lost to
one of five causes, and the shares add up to 1:

- ``startup``: until the first step of the first attempt, and from the last step to the end of the run
- ``restarts``: the same around each further attempt, the time between attempts, and repeated steps
- ``checkpoints``: the printed times of saves
- ``stragglers``: waits for the slowest rank, if the log has the times of several ranks
  (``parsers/training/stragglers``)
- ``slow_steps``: other time of steps beyond the median (input, evaluation, garbage collection)

The definition follows the "ML productivity goodput" of Google Cloud, 2024, without its model-specific part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median_low

from fleetmark.parsers.training import TrainingLog
from fleetmark.parsers.training.stragglers import Waits

CAUSES = ("startup", "restarts", "checkpoints", "stragglers", "slow_steps")


@dataclass(kw_only=True, slots=True)
class Attempt:
    """One start of the command: begin and end (s from the start of the run), the log, and each line's time."""

    begin: float
    end: float
    log: TrainingLog
    times: Sequence[float]
    waits: Waits = field(init=False)

    def __post_init__(self) -> None:
        self.waits = Waits(self.log.ranks)


@dataclass(kw_only=True, slots=True)
class Goodput:
    """Shares of a run's time (0 to 1): useful steps, and losses by cause. ``kept``: the number of useful steps."""

    share: float
    lost: dict[str, float] = field(default_factory=dict)
    kept: int = 0
    redone: int = 0


@dataclass(frozen=True, slots=True)
class _Interval:
    """The time between two lines: its steps (kept and repeated), and its seconds of saves and waits."""

    seconds: float
    kept: int
    redone: int
    saving: float
    waiting: float


def goodput(attempts: Sequence[Attempt], end: float) -> Goodput | None:
    """Return the goodput of a run of ``end`` seconds; None if the log does not show how long a step takes."""
    usual = usual_step(attempts)
    if usual is None or end <= 0:
        return None
    lost = dict.fromkeys(CAUSES, 0.0)
    useful, kept, redone, done, previous = 0.0, 0, 0, 0, 0.0
    for number, attempt in enumerate(attempts):
        around = "restarts" if number else "startup"
        lost[around] += max(0.0, attempt.begin - previous)
        intervals, outside = _intervals(attempt, usual, done)
        lost[around] += outside[0]
        lost["restarts" if number + 1 < len(attempts) else "startup"] += outside[1]
        lost["checkpoints"] += outside[2]
        for part in intervals:
            saving = min(part.saving, part.seconds)
            waiting = min(part.waiting, part.seconds - saving)
            steps = part.kept + part.redone
            working = min(part.seconds - saving - waiting, steps * usual)
            useful += working * part.kept / steps
            lost["restarts"] += working * part.redone / steps
            lost["checkpoints"] += saving
            lost["stragglers"] += waiting
            lost["slow_steps"] += part.seconds - saving - waiting - working
            kept, redone = kept + part.kept, redone + part.redone
        done = max([done, *(s.step for s in attempt.log.steps)])
        previous = attempt.end
    lost["startup"] += max(0.0, end - previous)
    if not any(attempt.waits.steps for attempt in attempts):
        del lost["stragglers"]  # the log does not show it
    return Goodput(share=useful / end, lost={k: v / end for k, v in lost.items()}, kept=kept, redone=redone)


def usual_step(attempts: Sequence[Attempt]) -> float | None:
    """Return the median seconds of a step without waits for a slow rank: as printed, or else between lines."""
    printed = [
        max(0.0, step.seconds - a.waits.mean(before.step, step.step))
        for a in attempts
        for before, step in pairwise(a.log.steps)
        if step.seconds
    ]
    if any(printed):
        return median_low(printed)
    between = [seconds for a in attempts for seconds in _between(a)]
    return median_low(between) if between else None


def _between(attempt: Attempt) -> Iterator[float]:
    steps = attempt.log.steps
    for before, after in pairwise(steps):
        seconds = attempt.times[after.position] - attempt.times[before.position]
        seconds -= _saving(attempt, before.position, after.position)
        if after.step > before.step and seconds > 0:
            yield max(0.0, seconds / (after.step - before.step) - attempt.waits.mean(before.step, after.step))


def _saving(attempt: Attempt, after: int, until: int) -> float:
    return sum(c.seconds for c in attempt.log.checkpoints if not c.is_load and after < c.position <= until)


def _intervals(attempt: Attempt, usual: float, done: int) -> tuple[list[_Interval], tuple[float, float, float]]:
    """Return the intervals of steps, and the seconds before them, after them, and of saves after them.

    ``done``: the last step of earlier attempts. The first line counts as many steps as the next line, because the log
    does not say at which step an attempt resumes.
    """
    steps, length = attempt.log.steps, attempt.end - attempt.begin
    if not steps:
        return [], (max(0.0, length), 0.0, 0.0)
    intervals: list[_Interval] = []
    first = min(max(1, steps[1].step - steps[0].step if len(steps) > 1 else 1), max(1, steps[0].step))
    time, step, position = attempt.times[steps[0].position], steps[0].step, steps[0].position
    waiting = first * attempt.waits.mean(step - first, step)
    if time > attempt.begin:
        redone = min(first, max(0, done - (step - first)))
        seconds = min(time - attempt.begin, first * usual + waiting)
        intervals.append(_Interval(seconds, first - redone, redone, 0.0, waiting))
    before = max(0.0, time - attempt.begin - first * usual - waiting)
    for entry in steps[1:]:
        now = attempt.times[entry.position]
        count = entry.step - step
        if count <= 0 or now <= time:
            continue
        redone = min(count, max(0, done - step))
        saving = _saving(attempt, position, entry.position)
        waiting = count * attempt.waits.mean(step, entry.step)
        intervals.append(_Interval(now - time, count - redone, redone, saving, waiting))
        time, step, position = now, entry.step, entry.position
    rest = max(0.0, attempt.end - time)
    saving = min(rest, _saving(attempt, position, len(attempt.times)))
    return intervals, (before, rest - saving, saving)
