"""Find hosts of a cohort that are slower than the others, with the size and certainty of the difference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.planner.diagnosis import modes
from fleetmark.planner.diagnosis.robust import NORMAL, Floats, freedoms, lower_tail, p_value, tail_share, uncertain
from fleetmark.planner.ratio import adjusted

LEAST = 8  # minimum number of hosts in a cohort; fewer do not show the usual variation
LIMIT = -5.0  # maximum z, in spreads of the other hosts
DISCOVERY = 0.01  # false discovery rate below which a result counts as certain
FLOOR = 0.003  # minimum spread: no benchmark repeats more precisely than this after a reboot
SMALL, LARGE = 0.03, 0.05  # minimum relevant deficits: for compute and memory, and for storage and network
HEAVY = 1e-4  # maximum share of heavy-tailed noise beyond a slow host
REPEATS = 3  # minimum number of repeats for detecting that one run alone makes a host slow
DETECTED = 0.95  # probability that z finds a loss of ``detectable``; the test of own repeats leaves about 0.9
OWN = 0.01  # maximum p value of a host's own repeats, and twice that with REPEATS of them
BROAD = 0.1  # share of slow hosts above which they distort the median and the spread of the other hosts
WORST = 0.4  # maximum share of hosts that are excluded from the median and the spread
ROUNDS = 3
BLOCK = 1 << 18  # number of values that are evaluated together
FEW = 3  # minimum number of hosts of a small cohort
FEW_DEFICIT = 0.1  # minimum relevant deficit in a small cohort
FEW_SPREAD = 0.01  # minimum spread between hosts that is assumed in a small cohort


@dataclass(frozen=True, slots=True)
class Repeats:
    """The number of repeats ``n`` and the standard deviation ``sd`` of each value's repeats (NaN: unknown)."""

    n: npt.NDArray[np.int64]
    sd: Floats


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The slow hosts of a cohort.

    ``slow`` has one row per host and benchmark that is slower than its peers:

    - ``row``, ``column``: the position in the matrix
    - ``group``: 0 for all hosts, 1 for the slower and 2 for the faster of two groups
    - ``n``: the number of values in the group
    - ``others``, ``spread``: the median and spread of the others
    - ``deficit``: the missing share
    - ``z``, ``p``, ``q``: the score, its p value, and the false discovery rate at which it counts

    ``modes`` has the benchmarks with two groups, ``constant`` the rows with equal values, ``sparse`` the rows with too
    few values. ``judged`` is the number of evaluated values.
    """

    slow: pd.DataFrame
    modes: modes.Modes
    constant: list[int]
    sparse: list[int]
    judged: int


def judge(values: Floats, error: Floats, deficit: Floats, repeats: Repeats | None = None) -> Verdicts:
    """Return the verdicts on a matrix of oriented logarithms (higher is better; benchmarks x hosts; NaN if missing).

    ``error`` has the standard error of each value from the usual spread of repeats, or NaN if unknown. ``deficit`` has
    the relevant share of each benchmark. ``repeats`` describes each value's own repeats.

    A host is slow if these conditions hold:

    - The host lies at least ``deficit`` below the median of the other hosts.
    - Chance does not explain this: its z is below LIMIT, or its false discovery rate is below DISCOVERY. The spread is
      at least FLOOR and at least the host's error.
    - The tail of the noise does not explain it. If the benchmark's noise has heavier tails than normal, p comes from
      Student's t, and at most a share of HEAVY of the noise lies as low.
    - A single run does not explain it: the p value of the host's own repeats, against the others' median, is at most
      OWN, or twice that with only REPEATS of them.
    """
    step = max(1, BLOCK // max(1, values.shape[1]))
    noise = freedoms(values)
    blocks = [
        _block(
            values[start : start + step],
            error[start : start + step],
            deficit[start : start + step],
            noise[start : start + step],
            start,
        )
        for start in range(0, max(1, len(values)), step)
    ]
    tested = pd.concat([b.slow for b in blocks], ignore_index=True)
    judged = sum(b.judged for b in blocks)
    tested["q"] = adjusted(tested["p"].to_numpy(), judged)
    far = (tested["z"] < LIMIT) & (np.isinf(tested["noise"]) | (tested["tail"] <= HEAVY))
    slow = tested[(far | (tested["q"] <= DISCOVERY)).to_numpy() & ~_one_run(tested, repeats)]
    return Verdicts(
        slow.drop(columns=["noise", "tail"]).sort_values(["column", "z"], ignore_index=True),
        modes.joined([b.modes for b in blocks]),
        [row for b in blocks for row in b.constant],
        [row for b in blocks for row in b.sparse],
        judged,
    )


def detectable(values: Floats, error: Floats, deficit: Floats) -> Floats:
    """Return the share that a single host must lose in each row to be found in about 9 of 10 cases.

    The arguments are those of ``judge``. The share is NaN in rows with fewer than LEAST values.
    """
    from scipy import special

    result = np.full(len(values), np.nan)
    rows = np.flatnonzero(np.sum(~np.isnan(values), axis=1) >= LEAST)
    if not len(rows):
        return result
    known, freedom = values[rows], freedoms(values[rows])
    noise = np.fmin(freedom, 1e9)
    deviation = np.nanmedian(np.abs(known - np.nanmedian(known, axis=1, keepdims=True)), axis=1)
    spread = np.fmax(np.fmax(NORMAL * deviation, np.nanmax(np.nan_to_num(error[rows]), axis=1)), FLOOR)
    scale = NORMAL * special.stdtrit(noise, 0.75)  # one spread in scales of Student's t
    margin = special.stdtrit(uncertain(np.sum(~np.isnan(known), axis=1), freedom), DETECTED) / scale * spread
    limit = np.where(np.isinf(freedom), -LIMIT, np.fmax(-LIMIT, -special.stdtrit(noise, HEAVY) / scale))
    loss = np.fmax(-np.log1p(-deficit[rows]), limit * spread) + margin
    result[rows] = -np.expm1(-loss)
    return result


def _one_run(tested: pd.DataFrame, repeats: Repeats | None) -> npt.NDArray[np.bool_]:
    """Return which values may be low because of a single run: their own repeats do not rule out the others' median."""
    from scipy import special

    if repeats is None:
        return np.zeros(len(tested), dtype=bool)
    row, column = tested["row"].to_numpy(int), tested["column"].to_numpy(int)
    n, sd = repeats.n[row, column], repeats.sd[row, column]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.log1p(-tested["deficit"].to_numpy()) / (sd / np.sqrt(n))
    return np.asarray((n >= REPEATS) & (special.stdtr(np.maximum(n - 1, 1), t) > np.where(n > REPEATS, OWN, 2 * OWN)))


def _block(values: Floats, error: Floats, deficit: Floats, noise: Floats, first: int) -> Verdicts:
    """Return all values that lie relevantly below the others, without ``q``, for the rows from ``first`` on."""
    ordered = np.sort(values, axis=1)
    n = np.sum(~np.isnan(ordered), axis=1)
    groups = modes.split(values, ordered, -np.log1p(-deficit), _noise(error, FLOOR))
    single = np.setdiff1d(np.arange(len(values)), groups.rows)
    cells = values[groups.rows]
    parts: list[tuple[int, npt.NDArray[np.int64], Floats, Floats | None]]
    parts = [(0, single, values[single], ordered[single])]
    for group in range(int(groups.group.max(initial=-1)) + 1):
        parts.append((group + 1, groups.rows, np.where(groups.group == group, cells, np.nan), None))
    frames, judged = [], 0
    for group, rows, chosen, in_order in parts:
        sizes = np.sum(~np.isnan(chosen), axis=1)
        judged += int(sizes[sizes >= LEAST].sum())
        frame = _slow(chosen, in_order, error[rows], deficit[rows], noise[rows]).assign(group=group)
        frames.append(frame.assign(row=rows[frame["row"].to_numpy(int)] + first))
    full = n >= LEAST
    is_constant = full & (ordered[:, 0] == ordered[np.arange(len(n)), np.maximum(n - 1, 0)])
    return Verdicts(
        pd.concat(frames, ignore_index=True),
        modes.Modes(groups.rows + first, groups.group, groups.low, groups.high),
        (np.flatnonzero(is_constant) + first).tolist(),
        (np.flatnonzero((n > 0) & ~full) + first).tolist(),
        judged,
    )


def _noise(error: Floats, floor: float) -> Floats:
    """Return the standard deviation of each row that repeats and restarts explain, or NaN if ``error`` is unknown."""
    known = ~np.isnan(error).all(axis=1)
    noise = np.full(len(error), np.nan)
    noise[known] = np.hypot(np.nanmax(error[known], axis=1), floor)
    return noise


def _slow(values: Floats, ordered: Floats | None, error: Floats, deficit: Floats, noise: Floats) -> pd.DataFrame:
    """Return the values that lie relevantly below the others of their row, with z and p."""
    slow_values = _below(values, ordered, error, deficit, noise)
    n = np.sum(~np.isnan(values), axis=1)
    for _ in range(ROUNDS):
        # Many slow hosts widen the spread of the others: evaluate again without the hosts that are certainly slow.
        certain = slow_values[
            (slow_values["z"] < LIMIT) | (slow_values["p"] < DISCOVERY / np.maximum(slow_values["n"], 1))
        ]
        count = np.bincount(certain["row"].to_numpy(int), minlength=len(values))
        rows = np.flatnonzero((count >= BROAD * n) & (count <= WORST * n) & (n - count >= LEAST))
        if not len(rows):
            break
        again = _without(values, rows, certain, error, deficit, noise)
        if len(again) <= np.isin(slow_values["row"], rows).sum():
            break
        slow_values = pd.concat([slow_values[~np.isin(slow_values["row"], rows)], again], ignore_index=True)
    return slow_values


def _without(
    values: Floats, rows: npt.NDArray[np.int64], certain: pd.DataFrame, error: Floats, deficit: Floats, noise: Floats
) -> pd.DataFrame:
    """Return the slow values of ``rows``, compared with hosts that are not ``certain`` to be slow."""
    rest = values.copy()
    rest[certain["row"].to_numpy(int), certain["column"].to_numpy(int)] = np.nan
    rest = rest[rows]
    middle = np.nanmedian(rest, axis=1)
    spread = NORMAL * np.nanmedian(np.abs(rest - middle[:, None]), axis=1)
    row, column = np.nonzero(middle[:, None] - values[rows] >= -np.log1p(-deficit[rows])[:, None])
    n = np.sum(~np.isnan(rest), axis=1)[row]
    return _frame(rows[row], column, n, middle[row] - values[rows][row, column], middle[row], spread[row], error, noise)


def _below(values: Floats, ordered: Floats | None, error: Floats, deficit: Floats, noise: Floats) -> pd.DataFrame:
    least = float(np.min(deficit)) if len(deficit) else SMALL
    tail = lower_tail(values, -float(np.log1p(-least)), ordered)
    counts = np.flatnonzero((tail.n >= LEAST) & (-np.expm1(-tail.below) >= deficit[tail.row]))
    row, column, n = tail.row[counts], tail.column[counts], tail.n[counts]
    return _frame(row, column, n, tail.below[counts], tail.median[counts], tail.spread[counts], error, noise)


def _frame(
    row: npt.NDArray[np.int64],
    column: npt.NDArray[np.int64],
    n: npt.NDArray[np.int64],
    below: Floats,
    median: Floats,
    spread: Floats,
    error: Floats,
    noise: Floats,
) -> pd.DataFrame:
    spread = np.fmax(np.fmax(spread, error[row, column]), FLOOR)
    z = -below / spread
    return pd.DataFrame(
        {
            "row": row,
            "column": column,
            "n": n,
            "others": median,
            "spread": spread,
            "deficit": -np.expm1(-below),
            "z": z,
            "p": p_value(z, n, noise[row]),
            "noise": noise[row],
            "tail": tail_share(z, noise[row]),
        }
    )


def judge_few(values: Floats, error: Floats, deficit: Floats) -> Verdicts:
    """Return the verdicts on a cohort with FEW to LEAST - 1 hosts.

    So few hosts do not show the usual variation in one benchmark. The spread between hosts is therefore taken over all
    benchmarks: the median over rows of the distance between the best two, but at least FEW_SPREAD and the errors. A
    deficit must be at least FEW_DEFICIT, with a z below LIMIT. The p value is not computed (NaN). If more than one host
    in three is that slow in a benchmark, or slower than a fast minority (``modes.fastest``), the healthy hosts are
    unknown, and the hosts form two groups (``modes``).
    """
    n = np.sum(~np.isnan(values), axis=1)
    ordered = np.sort(values, axis=1)
    rows = np.flatnonzero((n >= FEW) & (n < LEAST))
    top, next_best = ordered[rows, n[rows] - 1], ordered[rows, n[rows] - 2]
    usual = max(float(np.median(top - next_best)), FEW_SPREAD) if len(rows) else FEW_SPREAD
    limits = -np.log1p(-np.maximum(FEW_DEFICIT, deficit[rows]))
    noise = np.fmax(
        _noise(error[rows], FEW_SPREAD), np.where(np.isnan(error[rows]).all(axis=1), _near(ordered[rows]), 0)
    )
    minorities = modes.fastest(ordered[rows], limits, noise, np.ones(len(rows)), 1 - 1 / FEW - 1e-9)
    slow_values, borders = [], {}
    for position, (row, own_gap) in enumerate(zip(rows.tolist(), top - next_best, strict=True)):
        if position in minorities:
            borders[row] = [minorities[position]]
            continue
        known = np.flatnonzero(~np.isnan(values[row]))
        spread = max(usual, float(own_gap), float(np.nanmax(np.append(error[row, known], 0.0))))
        slow = []
        for column in known:
            others = float(np.median(values[row, known[known != column]]))
            below = others - float(values[row, column])
            if below >= limits[position] and -below / spread < LIMIT:
                slow.append((row, int(column), len(known), others, spread, -np.expm1(-below), -below / spread))
        if len(slow) <= len(known) // FEW:
            slow_values += slow
        else:
            borders[row] = [float(np.mean(ordered[row, len(slow) - 1 : len(slow) + 1]))]
    judged = int(np.sum(~np.isnan(values)))
    return Verdicts(_few(slow_values), modes.grouped(values, borders), [], [], judged)


def _near(ordered: Floats) -> Floats:
    """Return the noise of rows of few hosts without repeats: twice the distance between neighbours.

    ``ordered`` has each row sorted. The lower median of a row's distances counts, or the median over rows if larger.
    """
    gaps = np.sort(np.diff(ordered, axis=1), axis=1)
    number = np.sum(~np.isnan(gaps), axis=1)
    if not len(gaps):
        return np.array([])
    distances = gaps[np.arange(len(gaps)), (number - 1) // 2]
    return np.asarray(2 * np.hypot(np.maximum(distances, np.median(distances)), FEW_SPREAD / 2))


def _few(slow_values: list[tuple[int, int, int, float, float, float, float]]) -> pd.DataFrame:
    frame = pd.DataFrame(slow_values, columns=["row", "column", "n", "others", "spread", "deficit", "z"])
    return frame.assign(p=np.nan, q=np.nan, group=0)
