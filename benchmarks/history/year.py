"""Count the false alarms of ``history`` over a year of nightly campaigns on healthy hosts: ``python -m benchmarks.history.year``.

The fleet has HOSTS hosts with one metric, whose figure varies by NOISE from night to night. ``history`` judges it after
each night, as a watch does; a series counts once, when it is named first. The last rows judge METRICS metrics at the end
of the year, and a fleet with one host that drifts. The result is written to benchmarks/results/year.json.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from benchmarks.measuring import RESULTS, circumstances
from fleetmark.planner.diagnosis import history
from fleetmark.planner.diagnosis.outliers import DISCOVERY, SMALL

SEED, HOSTS, NIGHTS, NOISE, METRICS = 18, 1000, 365, 0.01, 8
DRIFT = 0.06  # share that the drifting host loses over the year


def named(values: np.ndarray, metrics: int = 1) -> set[int]:
    """Return the hosts with a step or slope, and HOSTS for what all have in common, as ``history`` judges them.

    ``values`` are oriented logarithms (hosts x campaigns); ``metrics`` is the number of such tables that are judged.
    """
    hosts, nights = values.shape
    common = np.median(values - np.median(values, axis=1, keepdims=True), axis=0)
    noise = history.usual_noise(list(values - common))
    unknown, level = np.full(nights, np.nan), DISCOVERY / (metrics * (hosts + 1))
    results = [history.lasting(series, unknown, SMALL, level, noise) for series in values - common]
    results.append(history.lasting(common, unknown, SMALL, level))
    return {number for number, result in enumerate(results) if result.steps or result.trends}


def nights(values: np.ndarray) -> list[int]:
    """Return the night on which each series is named first; each night judges all campaigns so far."""
    first: dict[int, int] = {}
    for night in range(history.LEAST_SERIES, values.shape[1] + 1):
        for host in named(values[:, :night]):
            first.setdefault(host, night)
    return sorted(first.values())


def noise(rng: np.random.Generator, hosts: int, tails: float | None = None) -> np.ndarray:
    """Return a sound year; ``tails``: the degrees of freedom of t-distributed noise with the same spread."""
    shape = (hosts, NIGHTS)
    if tails is None:
        return np.asarray(rng.normal(0, NOISE, shape))
    return np.asarray(NOISE * rng.standard_t(tails, shape) / np.sqrt(tails / (tails - 2)))


def main() -> None:
    hosts = int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS
    rows: list[list[str]] = []

    def add(fleet: str, calls: int, alarms: int, detail: str = "") -> None:
        rows.append([fleet, f"{hosts:,}", f"{calls}", f"{alarms}", detail])
        print(rows[-1], flush=True)

    rng = np.random.default_rng(SEED)
    ends = [named(noise(rng, hosts), METRICS) for _ in range(METRICS)]
    add(f"sound, {METRICS} metrics, at the end", 1, sum(map(len, ends)))
    heavy = [named(noise(rng, hosts, tails=4), METRICS) for _ in range(METRICS)]
    add(f"sound, t noise of 4 degrees of freedom, {METRICS} metrics, at the end", 1, sum(map(len, heavy)))
    drifting = noise(rng, hosts)
    drifting[0] += np.log1p(-DRIFT) * np.arange(NIGHTS) / NIGHTS
    moved = named(drifting)
    detail = "named" if 0 in moved else "not named"
    add(f"one host drifts by {DRIFT:.0%} over the year, at the end", 1, len(moved - {0}), f"drifting host {detail}")
    alarms = nights(noise(rng, hosts))
    add("sound, judged every night", NIGHTS, len(alarms), ", ".join(f"night {night}" for night in alarms))
    document = {
        "section": "How accurate it is",
        "title": "A year of nightly campaigns",
        "description": f"Simulated: figures vary by {NOISE:.0%} from night to night, without repeats; a change of {SMALL:.0%} counts.",
        "command": f"python -m benchmarks.history.year {hosts}",
        **circumstances(),
        "machine": f"simulation, seed {SEED}",
        "load": "",
        "columns": ["fleet", "hosts", "judged, times", "false alarms", "remarks"],
        "rows": rows,
    }
    (RESULTS / "year.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
