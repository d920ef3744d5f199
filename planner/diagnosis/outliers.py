"""Which hosts of a cohort are slower than the others, by how much, and how surely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.diagnosis import modes
from planner.diagnosis.robust import Floats, lower_tail, p_value
from planner.ratio import adjusted

LEAST = 8  # hosts of a cohort; fewer say too little of what is usual
LIMIT = -5.0  # z: in spreads of the others
DISCOVERY = 0.01  # the false discovery rate of what counts as sure
FLOOR = 0.003  # of the spread: no benchmark is more repeatable than this from boot to boot
SMALL, LARGE = 0.03, 0.05  # deficits that matter: of compute and memory; of storage and network
BLOCK = 1 << 18  # values that are judged at once


@dataclass(frozen=True, slots=True)
class Verdicts:
    """``slow``: a row per host and benchmark that is slower than its peers, by ``row`` and ``column`` of the matrix:
    ``group`` (0 all hosts, 1 the slower and 2 the faster of two groups), ``n`` values of the group, the ``others``'
    median, their ``spread``, the ``deficit`` (a share), ``z``, ``p``, ``q`` (the false discovery rate at which it
    counts). ``modes``: the benchmarks in two groups. ``constant``: rows whose values are all the same.
    ``sparse``: rows with too few values to judge anyone; ``judged``: how many values were judged.
    """

    slow: pd.DataFrame
    modes: modes.Modes
    constant: list[int]
    sparse: list[int]
    judged: int


def judge(values: Floats, error: Floats, deficit: Floats) -> Verdicts:
    """``values``: oriented logarithms (higher is better), benchmarks x hosts, NaN missing. ``error``: of each the
    standard error by its repeats, NaN where unknown. ``deficit``: of each benchmark, the share that matters.

    A host is slow where it lies at least ``deficit`` below the others' median, and so far in their spread (z below
    LIMIT) or so surely (a false discovery rate below DISCOVERY) that chance does not explain it. Spreads have floors:
    the host's own error, and FLOOR.
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
    """The rows from ``first`` on: all that lie below the others by what matters, however surely, without ``q``."""
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
