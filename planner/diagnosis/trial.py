"""Compute what a setting changed: pairs of runs without and with it, as a ratio with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleetmark.planner.estimate import Estimate

LEAST_PAIRS = 2
_FLOOR = 1e-9  # the least standard error of a logarithm: equal runs are no proof of no spread


class Gain(StrEnum):
    """Name the verdict that the interval gives."""

    FASTER = "faster"
    SLOWER = "slower"
    NEITHER = "neither"  # the interval holds no change


@dataclass(frozen=True, slots=True)
class TrialChange:
    """Hold a benchmark with a setting, as a ratio to the same without it; above 1 is better. ``pairs``: their
    number.
    """

    title: str
    ratio: Estimate
    pairs: int

    @property
    def gain(self) -> Gain:
        """Return whether the interval excludes zero change, and in which direction."""
        lo, hi = self.ratio.lo, self.ratio.hi
        if lo is not None and lo > 1:
            return Gain.FASTER
        return Gain.SLOWER if hi is not None and hi < 1 else Gain.NEITHER

    def exceeds(self, share: float) -> bool:
        """Return whether it changed by more than ``share`` in either direction, beyond chance."""
        return self.gain is not Gain.NEITHER and abs(self.ratio.value - 1) > share


def sides(blocks: int, seed: int) -> tuple[bool, ...]:
    """Return whether each of 2 x ``blocks`` runs has the setting. Two runs form a block, alternately without it first
    and with it first; the seed decides which comes first. A drift of the machine therefore affects both sides alike.
    """
    first = bool(seed % 2)
    order = [first, not first, not first, first]
    return tuple(order[n % 4] for n in range(2 * blocks))


def change(title: str, pairs: Sequence[tuple[float, float]], lower_is_better: bool) -> TrialChange | None:
    """Return the change over ``pairs`` of positive values without and with the setting; None below LEAST_PAIRS. The
    interval is Student's t over the differences of logarithms. A block is the unit, because its two runs see the same
    machine.
    """
    usable = [(a, b) for a, b in pairs if a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b)]
    if len(usable) < LEAST_PAIRS:
        return None
    logs = [(math.log(a / b) if lower_is_better else math.log(b / a)) for a, b in usable]
    error = max(statistics.stdev(logs) / math.sqrt(len(logs)), _FLOOR)
    ratio = Estimate.of_error(math.exp(statistics.fmean(logs)), error, len(logs) - 1, (len(logs),))
    return TrialChange(title, ratio, len(logs))
