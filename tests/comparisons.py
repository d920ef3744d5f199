"""Two generations of hosts whose ratios are known, and the rows that ``fleetmark compare`` prints of them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.commands import run
from tests.records import GCC, IOPS, MCF, NULL, TRIAD, Bench

BASE = {TRIAD: 280e9, IOPS: 7e5, NULL: 120e-9, MCF: 5.2, GCC: 6.1}
SPEEDUP = {"a": dict.fromkeys(BASE, 1.0), "b": {TRIAD: 2.4, IOPS: 1.5, NULL: 1.1, MCF: 1.7, GCC: 1.6}}


def fleet(
    sides: str = "ab", count: int = 6, noise: float = 0.01, seed: int = 1
) -> dict[tuple[str, Bench], list[float]]:
    rng = np.random.default_rng(seed)
    measured = {}
    for side in sides:
        for n in range(count):
            host_effect = rng.normal(0, noise)
            for bench, value in BASE.items():
                true = value * (SPEEDUP[side][bench] if bench.better == "higher" else 1 / SPEEDUP[side][bench])
                measured[f"{side}{n}", bench] = [
                    true * math.exp(host_effect + rng.normal(0, noise / 2)) for _ in range(3)
                ]
    return measured


def labels(measured: Mapping[tuple[str, Bench], Any]) -> dict[str, dict[str, str]]:
    return {host: {"gen": {"a": "old", "b": "new"}[host[0]]} for host, _ in measured}


def compared(root: Path, *words: str) -> list[dict[str, str]]:
    arguments = words or ("--baseline", "gen=old", "--candidate", "gen=new")
    return list(csv.DictReader(io.StringIO(run(root, "compare", *arguments, "--format", "csv"))))


def row_of(rows: Sequence[dict[str, str]], class_: str, benchmark: str = "") -> dict[str, str]:
    (row,) = [r for r in rows if r["class"] == class_ and r["benchmark"] == benchmark]
    return row
