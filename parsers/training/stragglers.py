"""Find the rank that keeps the others waiting, and the time that steps lose to it, from the times of the ranks.

The ranks of a synchronous step end it together, so its length does not tell which of them was slow. The time for which
each rank worked tells it. A step loses what its slowest rank worked longer than the median rank.
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
    """Hold the seconds for which one rank worked on a step, without its waits for other ranks.

    A mean over several steps has the number of the last one.
    """

    step: int
    rank: int
    seconds: float


class Waits:
    """Hold the steps of which at least two ranks tell: the slowest rank of each, and the seconds lost to it.

    The first step is left out where there are several, because it includes compilation.
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
        """Return the mean seconds lost in a step of (``after``, ``until``].

        Steps of which no rank tells are taken for the mean of all others.
        """
        first, last = bisect_right(self.steps, after), bisect_right(self.steps, until)
        if first == last:
            first, last = 0, len(self.steps)
        return (self._sums[last] - self._sums[first]) / (last - first) if last > first else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Straggler:
    """Hold the rank that most time was lost to, in how many steps it was the slowest, and its share of the loss.

    ``seconds``: the mean loss of a step, to any rank.
    """

    rank: int
    slowest: int
    steps: int
    share: float
    seconds: float

    @property
    def note(self) -> str:
        """Return a sentence for the reader of the run."""
        return (
            f"rank {self.rank} was the slowest in {self.slowest} of {self.steps} steps that were compared: a step lost "
            f"{self.seconds:.3g} s to its slowest rank, {self.share:.0%} of it to rank {self.rank}"
        )


def straggler(waits: Waits) -> Straggler | None:
    """Return the rank that most time was lost to; None if none was, or if no rank tells."""
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
