"""Compute the effect of a setting from pairs of runs without and with it, as a ratio with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleetmark.planner.estimate import Estimate

LEAST_PAIRS = 2
_FLOOR = 1e-9  # minimum standard error of a logarithm: equal runs do not prove that there is no variation


class Gain(StrEnum):
    """The verdict that follows from the interval."""

    FASTER = "faster"
    SLOWER = "slower"
    NEITHER = "neither"  # the interval includes no change


@dataclass(frozen=True, slots=True)
class TrialChange:
    """The ratio of a benchmark with a setting to the same benchmark without it; above 1 is better.

    ``pairs`` is the number of pairs of runs.
    """

    title: str
    ratio: Estimate
    pairs: int

    @property
    def gain(self) -> Gain:
        """Return whether the interval excludes a ratio of 1, and on which side."""
        lo, hi = self.ratio.lo, self.ratio.hi
        if lo is not None and lo > 1:
            return Gain.FASTER
        return Gain.SLOWER if hi is not None and hi < 1 else Gain.NEITHER

    def exceeds(self, share: float) -> bool:
        """Return whether the benchmark changed by more than ``share`` in either direction, beyond chance."""
        return self.gain is not Gain.NEITHER and abs(self.ratio.value - 1) > share


def sides(blocks: int, seed: int) -> tuple[bool, ...]:
    """Return for each of 2 x ``blocks`` runs whether it has the setting.

    Two runs form a block, alternately without the setting first and with it first; the seed decides the order of the
    first block. A drift of the machine therefore affects both sides alike.
    """
    first = bool(seed % 2)
    order = [first, not first, not first, first]
    return tuple(order[n % 4] for n in range(2 * blocks))


def change(title: str, pairs: Sequence[tuple[float, float]], lower_is_better: bool) -> TrialChange | None:
    """Return the change over ``pairs`` of positive values without and with the setting; None below LEAST_PAIRS.

    The interval is Student's t over the differences of logarithms. A pair is the unit, because its two runs happen
    under the same conditions.
    """
    usable = [(a, b) for a, b in pairs if a > 0 and b > 0 and math.isfinite(a) and math.isfinite(b)]
    if len(usable) < LEAST_PAIRS:
        return None
    logs = [(math.log(a / b) if lower_is_better else math.log(b / a)) for a, b in usable]
    error = max(statistics.stdev(logs) / math.sqrt(len(logs)), _FLOOR)
    ratio = Estimate.of_error(math.exp(statistics.fmean(logs)), error, len(logs) - 1, (len(logs),))
    return TrialChange(title, ratio, len(logs))
