"""Find hosts that became slower between two campaigns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetmark.planner.diagnosis.outliers import FLOOR, LIMIT
from fleetmark.planner.diagnosis.robust import Floats

LEAST_RUNS = 3  # minimum repeats in each campaign; with fewer, a change cannot be distinguished from chance
MAJORITY = 0.5  # share of slower hosts above which the change has a common cause


@dataclass(frozen=True, slots=True)
class Runs:
    """A benchmark on several hosts: ``values`` (oriented logarithms), the ``spread`` of single runs, and their
    number.
    """

    values: Floats
    spread: Floats
    runs: Floats


@dataclass(frozen=True, slots=True)
class Changes:
    """The hosts that became slower.

    - ``slower``: (column, change of the logarithm, z) of each slower host; if the change happened ``everywhere``, only
      those of the median host
    - ``columns``: the columns of all slower hosts
    - ``compared``: the number of hosts with enough repeats in both campaigns
    - ``too_few``: the number of hosts with values in both campaigns but too few repeats
    """

    slower: tuple[tuple[int, float, float], ...]
    columns: tuple[int, ...]
    everywhere: bool
    compared: int
    too_few: int


def judge(before: Runs, after: Runs, deficit: float) -> Changes:
    """Return the hosts that became slower.

    They lost at least ``deficit`` (a share), and z, the change in standard errors, is below LIMIT. The errors follow
    from the usual spread of runs in each campaign and from the number of repeats, and are at least FLOOR.
    """
    change = after.values - before.values
    known = ~np.isnan(change)
    enough = known & (before.runs >= LEAST_RUNS) & (after.runs >= LEAST_RUNS)
    columns = np.flatnonzero(enough)
    if not len(columns):
        return Changes((), (), False, 0, int(known.sum()))
    variance = sum(_usual(side) ** 2 / side.runs[columns] for side in (before, after))
    z = change[columns] / np.sqrt(variance + 2 * FLOOR**2)
    slower = np.flatnonzero((change[columns] <= np.log1p(-deficit)) & (z < LIMIT))
    everywhere = len(columns) > 1 and len(slower) > MAJORITY * len(columns)
    chosen = slower
    if everywhere:
        chosen = slower[np.argsort(change[columns][slower])[len(slower) // 2 : len(slower) // 2 + 1]]
    return Changes(
        tuple((int(columns[i]), float(change[columns[i]]), float(z[i])) for i in chosen),
        tuple(int(columns[i]) for i in slower),
        everywhere,
        len(columns),
        int((known & ~enough).sum()),
    )


def _usual(side: Runs) -> float:
    """Return the median of the hosts' standard deviations of single runs, or 0 if none is known."""
    known = side.spread[~np.isnan(side.spread)]
    return float(np.median(known)) if len(known) else 0.0
