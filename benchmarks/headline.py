"""Measure the coverage of the intervals of ``planner.equivalence`` on simulated fleets with missing figures.

``python -m benchmarks.headline [--trials 2000] [--jobs 2] [--hosts 3 6] [--missing 30] [--sd 3] [--scene slow]`` prints
a row per kind of fleet. Rows that are out of bounds are simulated again with ten times as many trials, and the rows
still out of bounds are named.

A class has eight benchmarks, whose true ratios are drawn about 2 with a spread of 25%. Hosts differ by ``sd`` overall,
and in each benchmark by half of it and by the noise of five runs. Figures are missing at random, except in scenes that
define otherwise.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.planner.contrast import Contrast, Figures, Pairing, TooFewFiguresError, another_workload
from fleetmark.planner.equivalence import compare
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import Ratio

Floats = npt.NDArray[np.float64]

HOSTS, MISSING, SDS = (2, 3, 6, 12, 20), (0, 10, 30, 50, 70), (1, 3, 6)
SCENES = {
    "alike": "both fleets vary alike",
    "unequal": "the candidate's hosts vary three times as much",
    "slow": "one host in ten is 10% slower, on both sides",
    "not at random": "hosts slower than their fleet lack half as many figures again, the others half as many",
}
TITLES = list("abcdefgh")
RATIO, SPREAD = math.log(2), 0.25
RUN_SD, RUNS = 0.01, 5
FLEET, WORKLOAD = (0.93, 0.98), (0.90, 0.98)
MOST_PAIRS = 50
CHECKED = 3  # trials of a row that are compared with the whole of compare
SETTLE = 1_000_000  # distance of the second seed
SETTLED = 10  # factor on the number of trials, with another seed, for a row that may be out of bounds by chance
NO_HEADLINE = 0.05  # maximum, with 30% missing and 3 hosts


@dataclass(kw_only=True, frozen=True, slots=True)
class Cell:
    """One kind of fleet; ``missing`` and ``sd`` are in per cent."""

    scene: str
    hosts: int
    missing: int
    sd: int
    trials: int
    seed: int


@dataclass(kw_only=True, frozen=True, slots=True)
class Score:
    """The results of one kind of fleet.

    They are the number of pairs of fleets, the number of headlines, the shares of headlines whose intervals contain the
    truth, the mean error of the log ratio with its Monte-Carlo error, and the median half-width of the fleet's
    interval.
    """

    pairs: int
    answered: int
    fleet: float
    workload: float
    bias: float
    bias_error: float
    half: float


def main(arguments: Sequence[str]) -> int:
    """Run every cell of the grid; return 1 if one is out of bounds."""
    options = _options(arguments)
    cells = [
        Cell(scene=scene, hosts=hosts, missing=missing, sd=sd, trials=options.trials, seed=seed)
        for seed, (scene, hosts, missing, sd) in enumerate(product(SCENES, HOSTS, MISSING, SDS), options.seed)
        if scene in options.scene and hosts in options.hosts and missing in options.missing and sd in options.sd
    ]
    print(f"{options.trials} headlines a row, seeds from {options.seed} by place in the grid; ± one Monte-Carlo error")
    for scene in options.scene:
        print(f"{scene}: {SCENES[scene]}")
    print(f"\n{'scene':14}hosts miss  sd  seed  fleet workload       bias        half  no headline")
    start, out, done = time.perf_counter(), [], []
    with ProcessPoolExecutor(options.jobs) as pool:
        for cell, score in zip(cells, pool.map(simulate, cells), strict=True):
            print(_row(cell, score), flush=True)
            done.append((cell, score))
        print(f"\n{len(cells)} rows in {time.perf_counter() - start:,.0f} s")
        doubtful = [replace(c, trials=c.trials * SETTLED, seed=c.seed + SETTLE) for c, s in done if list(_faults(c, s))]
        print(f"{len(doubtful)} rows out of bounds; each again, with {SETTLED} times the trials and a new seed:")
        for cell, score in zip(doubtful, pool.map(simulate, doubtful), strict=True):
            print(_row(cell, score), flush=True)
            out += [f"{cell}: {fault}" for fault in _faults(cell, score)]
    print(f"\nout of bounds in the end, after {time.perf_counter() - start:,.0f} s:")
    print("\n".join(out) or "none")
    return int(bool(out))


def simulate(cell: Cell) -> Score:
    """Simulate ``cell.trials`` pairs of fleets.

    If some give no headline, simulate more until there are that many headlines, but at most MOST_PAIRS times as many
    pairs.
    """
    rng = np.random.default_rng(cell.seed)
    pairs, fleet, workload, errors, halves = 0, 0, 0, [], []
    while len(errors) < cell.trials and pairs < MOST_PAIRS * cell.trials:
        gain = rng.normal(RATIO, SPREAD, len(TITLES) + 1)  # the last one is a workload that nobody measured
        a, b = _fleets(cell, gain[:-1], rng)
        pairs += 1
        ratio, other, both = _headline(a, b)
        if pairs <= CHECKED:
            _check(a, b, ratio, other)
        if ratio is None or ratio.interval is None:
            continue
        truth = float(gain[both].mean())
        low, high = map(math.log, ratio.interval)
        fleet += low <= truth <= high
        errors.append(math.log(ratio.value) - truth)
        halves.append((high - low) / 2)
        if other is None or other.interval is None:
            workload += 1  # a single benchmark gives no interval of other workloads
        else:
            low, high = map(math.log, other.interval)
            workload += low <= gain[-1] <= high
    n = len(errors)
    if n < 2:
        return Score(
            pairs=pairs,
            answered=n,
            fleet=math.nan,
            workload=math.nan,
            bias=math.nan,
            bias_error=math.nan,
            half=math.nan,
        )
    error = float(np.std(errors, ddof=1)) / math.sqrt(n)
    return Score(
        pairs=pairs,
        answered=n,
        fleet=fleet / n,
        workload=workload / n,
        bias=float(np.mean(errors)),
        bias_error=error,
        half=float(np.median(halves)),
    )


def _headline(a: Floats, b: Floats) -> tuple[Ratio | None, Estimate | None, list[int]]:
    """Return both intervals over the common benchmarks, as ``planner.equivalence.compare`` computes them.

    Data frames are avoided, because they take most of the time of a small comparison.
    """
    both = np.flatnonzero(~np.isnan(a).all(axis=0) & ~np.isnan(b).all(axis=0)).tolist()
    if not both:
        return None, None, both
    sides = [Figures(y, np.full_like(y, np.nan), np.full_like(y, np.nan)) for y in (a, b)]
    try:
        contrast = Contrast.from_sides((sides[0], sides[1]), both, Pairing.APART)
    except TooFewFiguresError:
        return None, None, both
    w = np.full(len(both), 1 / len(both))
    return contrast.ratio(w), another_workload(contrast, w, [[n] for n in range(len(both))])[0], both


def _check(a: Floats, b: Floats, ratio: Ratio | None, other: Estimate | None) -> None:
    """Raise RuntimeError if ``compare`` itself gives another result."""
    frames = (pd.DataFrame(y, [f"{side}{n}" for n in range(len(y))], TITLES) for side, y in (("a", a), ("b", b)))
    result = compare(*frames)
    if (result.ratio, result.workload) != (ratio, other):
        raise RuntimeError(f"compare has {result.ratio} and {result.workload}, not {ratio} and {other}")


def _fleets(cell: Cell, gain: Floats, rng: np.random.Generator) -> list[Floats]:
    fleets = []
    for side, means in enumerate((np.zeros(len(TITLES)), gain)):
        sd = cell.sd / 100 * (3 if side and cell.scene == "unequal" else 1)
        effect = rng.normal(0, sd, cell.hosts)
        if cell.scene == "slow":
            effect += math.log(0.9) * (rng.random(cell.hosts) < 0.1)
        noise = math.hypot(sd / 2, RUN_SD / math.sqrt(RUNS))
        logs = means + effect[:, None] + rng.normal(0, noise, (cell.hosts, len(TITLES)))
        part = np.full(cell.hosts, cell.missing / 100)
        if cell.scene == "not at random":
            part = np.minimum(part * np.where(effect < effect.mean(), 1.5, 0.5), 0.95)
        logs[rng.random(logs.shape) < part[:, None]] = np.nan
        fleets.append(logs)
    return fleets


def _row(cell: Cell, score: Score) -> str:
    prefix = f"{cell.scene:14}{cell.hosts:5}{cell.missing:4}%{cell.sd:3}%{cell.seed:6}"
    none = f"{1 - score.answered / score.pairs:8.1%}"
    if score.answered < 2:
        return f"{prefix}{'':46}{none}"
    bias = f"{score.bias:+.3%} ±{score.bias_error:.3%}"
    return f"{prefix}{score.fleet:7.1%}{score.workload:9.1%}{bias:>17}{score.half:9.2%}{none}"


def _faults(cell: Cell, score: Score) -> Iterator[str]:
    """Return what is out of bounds; the bias may be up to three Monte-Carlo errors, as rows are many."""
    if cell.missing == 30 and cell.hosts == 3 and 1 - score.answered / score.pairs > NO_HEADLINE:
        yield "too few headlines"
    if score.answered < 2:
        return
    for name, part, (least, maximum) in (("fleet", score.fleet, FLEET), ("workload", score.workload, WORKLOAD)):
        if not least <= part <= maximum:
            yield f"{name} {part:.2%}"
    if abs(score.bias) > 3 * score.bias_error:
        yield f"bias {score.bias:+.3%} ±{score.bias_error:.3%}"


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--hosts", type=int, nargs="+", default=HOSTS)
    parser.add_argument("--missing", type=int, nargs="+", default=MISSING)
    parser.add_argument("--sd", type=int, nargs="+", default=SDS)
    parser.add_argument("--scene", nargs="+", choices=SCENES, default=list(SCENES))
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
