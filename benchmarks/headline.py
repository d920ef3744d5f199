"""How often the intervals of ``planner.equivalence`` hold what they say, on simulated fleets with missing figures.

``python -m benchmarks.headline [--trials 2000] [--jobs 2] [--hosts 3 6] [--missing 30] [--sd 3] [--scene slow]`` prints a
row per kind of fleet and says which rows are out of bounds. A class has eight benchmarks, whose ratios are drawn about
2 with a spread of 25%; hosts differ by ``sd`` as a whole and by half of it, and the noise of five runs, in each
benchmark. Missing figures are drawn at random, but for the scene that says otherwise.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from planner.equivalence import compare

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
NO_HEADLINE = 0.05  # at most, with 30% missing and 3 hosts


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of fleet; ``missing`` and ``sd`` in per cent."""

    scene: str
    hosts: int
    missing: int
    sd: int
    trials: int
    seed: int


@dataclass(frozen=True, slots=True)
class Score:
    """What came of it: headlines given; of these, the parts whose interval holds the truth, the mean error of the log
    ratio with its Monte-Carlo error, and the median half width of the fleet's interval.
    """

    answered: int
    fleet: float
    workload: float
    bias: float
    bias_error: float
    half: float


def main(arguments: Sequence[str]) -> int:
    """Every cell of the grid; 1 where one is out of bounds."""
    options = _options(arguments)
    cells = [
        Cell(scene, hosts, missing, sd, options.trials, seed)
        for seed, (scene, hosts, missing, sd) in enumerate(product(SCENES, HOSTS, MISSING, SDS), options.seed)
        if scene in options.scene and hosts in options.hosts and missing in options.missing and sd in options.sd
    ]
    print(f"{options.trials} trials a row, seeds from {options.seed} by place in the grid; ± one Monte-Carlo error")
    for scene in options.scene:
        print(f"{scene}: {SCENES[scene]}")
    print(f"\n{'scene':14}hosts miss  sd  seed  fleet workload       bias        half  no headline")
    start, out = time.perf_counter(), []
    with ProcessPoolExecutor(options.jobs) as pool:
        for cell, score in zip(cells, pool.map(simulate, cells), strict=True):
            print(_row(cell, score), flush=True)
            out += [f"{cell}: {fault}" for fault in _faults(cell, score)]
    print(
        f"\n{len(cells)} rows in {time.perf_counter() - start:,.0f} s; out of bounds by over three Monte-Carlo errors:"
    )
    print("\n".join(out) or "none")
    return int(bool(out))


def simulate(cell: Cell) -> Score:
    """``cell.trials`` pairs of fleets, compared."""
    rng = np.random.default_rng(cell.seed)
    fleet, workload, errors, halves = 0, 0, [], []
    for _ in range(cell.trials):
        gain = rng.normal(RATIO, SPREAD, len(TITLES) + 1)  # the last is a workload that nobody measured
        result = compare(*_fleets(cell, gain[:-1], rng))
        if result.ratio is None or result.ratio.interval is None:
            continue
        truth = float(np.mean([gain[TITLES.index(title)] for title in result.weights]))
        low, high = map(math.log, result.ratio.interval)
        fleet += low <= truth <= high
        errors.append(math.log(result.ratio.value) - truth)
        halves.append((high - low) / 2)
        if result.workload is None or result.workload.interval is None:
            workload += 1  # one benchmark says nothing of others, and claims nothing
        else:
            low, high = map(math.log, result.workload.interval)
            workload += low <= gain[-1] <= high
    n = len(errors)
    if n < 2:
        return Score(n, math.nan, math.nan, math.nan, math.nan, math.nan)
    error = float(np.std(errors, ddof=1)) / math.sqrt(n)
    return Score(n, fleet / n, workload / n, float(np.mean(errors)), error, float(np.median(halves)))


def _fleets(cell: Cell, gain: Floats, rng: np.random.Generator) -> Iterator[pd.DataFrame]:
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
        yield pd.DataFrame(logs, [f"{'ab'[side]}{n}" for n in range(cell.hosts)], TITLES)


def _row(cell: Cell, score: Score) -> str:
    about = f"{cell.scene:14}{cell.hosts:5}{cell.missing:4}%{cell.sd:3}%{cell.seed:6}"
    none = f"{1 - score.answered / cell.trials:8.1%}"
    if score.answered < 2:
        return f"{about}{'':42}{none}"
    bias = f"{score.bias:+.3%} ±{score.bias_error:.3%}"
    return f"{about}{score.fleet:7.1%}{score.workload:9.1%}{bias:>17}{score.half:9.2%}{none}"


def _faults(cell: Cell, score: Score) -> Iterator[str]:
    """What lies out of bounds by more than three Monte-Carlo errors: a grid of hundreds has some beyond two."""
    if cell.missing == 30 and cell.hosts == 3 and 1 - score.answered / cell.trials > NO_HEADLINE:
        yield "too few headlines"
    if score.answered < 50:
        return
    for name, part, (least, most) in (("fleet", score.fleet, FLEET), ("workload", score.workload, WORKLOAD)):
        error = 3 * math.sqrt(0.05 * 0.95 / score.answered)
        if not least - error <= part <= most + error:
            yield f"{name} {part:.1%}"
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
