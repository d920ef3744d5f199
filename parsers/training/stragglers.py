"""Find the rank that keeps the others waiting, and the time lost to it, from the working times of the ranks.

The ranks of a synchronous step end it together, so the length of a step does not show which rank was slow. The working
times of the ranks show it. The loss of a step is the working time of its slowest rank minus that of the median rank.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from statistics import median_low


@dataclass(frozen=True, slots=True)
class RankTime:
    """The seconds that one rank worked on a step, without its waits for other ranks.

    A mean over several steps has the number of the last one.
    """

    step: int
    rank: int
    seconds: float


class Waits:
    """The steps reported by at least two ranks, with the slowest rank of each step and the seconds lost to it.

    If there are several steps, the first one is omitted, because it includes compilation.
    """

    def __init__(self, times: Iterable[RankTime]) -> None:
        by_step: dict[int, dict[int, float]] = defaultdict(dict)
        for time in times:
            by_step[time.step][time.rank] = time.seconds
        self.steps = sorted(step for step, seconds in by_step.items() if len(seconds) > 1)
        self.steps = self.steps[1:] or self.steps
        self.ranks = [max(by_step[step].items(), key=itemgetter(1))[0] for step in self.steps]
        self.seconds = [max(by_step[step].values()) - median_low(by_step[step].values()) for step in self.steps]
        self._sums = [0.0, *accumulate(self.seconds)]

    def mean(self, after: int, until: int) -> float:
        """Return the mean seconds lost per step in (``after``, ``until``].

        Steps that no rank reports count with the mean of all other steps.
        """
        first, last = bisect_right(self.steps, after), bisect_right(self.steps, until)
        if first == last:
            first, last = 0, len(self.steps)
        return (self._sums[last] - self._sums[first]) / (last - first) if last > first else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Straggler:
    """The rank with the largest loss, the number of steps in which it was the slowest, and its share of the loss.

    ``seconds``: the mean loss per step, to any rank.
    """

    rank: int
    slowest: int
    steps: int
    share: float
    seconds: float

    @property
    def note(self) -> str:
        """Return a sentence about the straggler."""
        return (
            f"rank {self.rank} was the slowest in {self.slowest} of {self.steps} steps that were compared: a step lost "
            f"{self.seconds:.3g} s to its slowest rank, {self.share:.0%} of it to rank {self.rank}"
        )


def straggler(waits: Waits) -> Straggler | None:
    """Return the rank to which most time was lost; None if no time was lost or no rank reports times."""
    lost: dict[int, list[float]] = defaultdict(list)
    for rank, seconds in zip(waits.ranks, waits.seconds, strict=True):
        lost[rank].append(seconds)
    total = sum(waits.seconds)
    if not total > 0:
        return None
    rank = max(lost, key=lambda rank: sum(lost[rank]))
    return Straggler(
        rank=rank,
        slowest=len(lost[rank]),
        steps=len(waits.steps),
        share=sum(lost[rank]) / total,
        seconds=total / len(waits.steps),
    )
