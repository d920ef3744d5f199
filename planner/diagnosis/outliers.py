"""Find hosts of a cohort that are slower than the others, with the size and certainty of the difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fleetmark.planner.diagnosis import modes
from fleetmark.planner.diagnosis.robust import Floats, lower_tail, p_value
from fleetmark.planner.ratio import adjusted

LEAST = 8  # minimum number of hosts in a cohort; fewer do not show what is usual
LIMIT = -5.0  # maximum z, in spreads of the other hosts
DISCOVERY = 0.01  # false discovery rate below which a result counts as certain
FLOOR = 0.003  # minimum spread: no benchmark repeats more precisely than this after a reboot
SMALL, LARGE = 0.03, 0.05  # minimum relevant deficits: for compute and memory, and for storage and network
BLOCK = 1 << 18  # number of values that are judged at once


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Hold the slow hosts of a cohort.

    ``slow`` has one row per host and benchmark that is slower than its peers:

    - ``row``, ``column``: the position in the matrix
    - ``group``: 0 for all hosts, 1 for the slower and 2 for the faster of two groups
    - ``n``: the number of values in the group
    - ``others``, ``spread``: the median and spread of the others
    - ``deficit``: the missing share
    - ``z``, ``p``, ``q``: the score, its p value, and the false discovery rate at which it counts

    ``modes`` has the benchmarks with two groups, ``constant`` the rows with equal values, ``sparse`` the rows with too
    few values. ``judged`` is the number of judged values.
    """

    slow: pd.DataFrame
    modes: modes.Modes
    constant: list[int]
    sparse: list[int]
    judged: int


def judge(values: Floats, error: Floats, deficit: Floats) -> Verdicts:
    """Return the verdicts on a matrix of oriented logarithms (higher is better; benchmarks x hosts; NaN if missing).

    ``error`` has the standard error of each value from its repeats, or NaN if unknown. ``deficit`` has the relevant
    share of each benchmark.

    A host is slow if two conditions hold. It lies at least ``deficit`` below the median of the others. Chance does not
    explain this: its z is below LIMIT, or its false discovery rate is below DISCOVERY. The spread is at least FLOOR and
    at least the host's own error.
    """
    step = max(1, BLOCK // max(1, values.shape[1]))
    blocks = [
        _block(values[start : start + step], error[start : start + step], deficit[start : start + step], start)
        for start in range(0, max(1, len(values)), step)
    ]
    tested = pd.concat([b.slow for b in blocks], ignore_index=True)
    judged = sum(b.judged for b in blocks)
    tested["q"] = adjusted(tested["p"].to_numpy(), judged)
    slow = tested[((tested["z"] < LIMIT) | (tested["q"] <= DISCOVERY)).to_numpy()]
    return Verdicts(
        slow.sort_values(["column", "z"], ignore_index=True),
        modes.joined([b.modes for b in blocks]),
        [row for b in blocks for row in b.constant],
        [row for b in blocks for row in b.sparse],
        judged,
    )


def _block(values: Floats, error: Floats, deficit: Floats, first: int) -> Verdicts:
    """Return all values of the rows from ``first`` on that lie relevantly below the others, without ``q``."""
    ordered = np.sort(values, axis=1)
    n = np.sum(~np.isnan(ordered), axis=1)
    groups = modes.split(values, ordered, -np.log1p(-deficit))
    single = np.setdiff1d(np.arange(len(values)), groups.rows)
    cells = values[groups.rows]
    parts = [
        (0, single, values[single], ordered[single]),
        (1, groups.rows, np.where(groups.upper, np.nan, cells), None),
        (2, groups.rows, np.where(groups.upper, cells, np.nan), None),
    ]
    frames, judged = [], 0
    for group, rows, chosen, in_order in parts:
        sizes = np.sum(~np.isnan(chosen), axis=1)
        judged += int(sizes[sizes >= LEAST].sum())
        frame = _slow(chosen, in_order, error[rows], deficit[rows]).assign(group=group)
        frames.append(frame.assign(row=rows[frame["row"].to_numpy(int)] + first))
    full = n >= LEAST
    same = full & (ordered[:, 0] == ordered[np.arange(len(n)), np.maximum(n - 1, 0)])
    return Verdicts(
        pd.concat(frames, ignore_index=True),
        modes.Modes(groups.rows + first, groups.upper, groups.low, groups.high),
        (np.flatnonzero(same) + first).tolist(),
        (np.flatnonzero((n > 0) & ~full) + first).tolist(),
        judged,
    )


def _slow(values: Floats, ordered: Floats | None, error: Floats, deficit: Floats) -> pd.DataFrame:
    tail = lower_tail(values, -float(np.log1p(-SMALL)), ordered)
    short = -np.expm1(-tail.below)
    counts = np.flatnonzero((tail.n >= LEAST) & (short >= deficit[tail.row]))
    row, column, n = tail.row[counts], tail.column[counts], tail.n[counts]
    spread = np.fmax(np.fmax(tail.spread[counts], error[row, column]), FLOOR)
    z = -tail.below[counts] / spread
    return pd.DataFrame(
        {
            "row": row,
            "column": column,
            "n": n,
            "others": tail.median[counts],
            "spread": spread,
            "deficit": short[counts],
            "z": z,
            "p": p_value(z, n),
        }
    )
