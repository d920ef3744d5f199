"""Generations of made-up stored machines whose workload has a known demand, and the command that fits it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from tests.records import MCF, NULL, TRIAD, Bench, record

RPS = Bench("nginx", "tls", "rps", "1/s", "higher", "os")
BUILD = Bench("kernel", "build", "elapsed", "s", "lower", "os")
GENS = {
    "icelake": (200, 180e9),
    "rome": (180, 240e9),
    "milan": (300, 200e9),
    "sapphire": (260, 400e9),
    "genoa": (380, 420e9),
    "turin": (560, 520e9),
}
FIT = ("profile", "-t", "nginx/*/rps", "-r", "cpu=spec_cpu2017/*/base_ratio", "-r", "mem=stream/*/triad")


def time(cpu: float, mem: float) -> float:
    return 3e-3 / cpu + 2e6 / mem


def record_generations(root: Path) -> None:
    """Three hosts of each generation; the workload was not run on the newest."""
    rng, logs = np.random.default_rng(3), {}
    for gen, (cpu, mem) in GENS.items():
        measured = {}
        for n in range(3):
            c, b = cpu * math.exp(rng.normal(0, 0.03)), mem * math.exp(rng.normal(0, 0.03))
            truth = {MCF: c, TRIAD: b, BUILD: 1e6 * time(c, b), NULL: 1e-7}
            logs.setdefault(gen, []).append(math.log(time(c, b)))
            truth |= {RPS: 1 / time(c, b)} if gen != "turin" else {}
            for bench, value in truth.items():
                measured[f"{gen}{n}", bench] = [value * math.exp(rng.normal(0, 0.005)) for _ in range(3)]
        record(root, f"c-{gen}", {host: {"gen": gen} for host, _ in measured}, measured)
    (root / "truth.json").write_text(json.dumps({gen: math.exp(np.mean(each)) for gen, each in logs.items()}))


def truth_of(root: Path, gen: str) -> float:
    """Seconds an operation takes on the machines of a generation, as they were made."""
    return float(json.loads((root / "truth.json").read_text())[gen])
