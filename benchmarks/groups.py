"""Measure the diagnosis of groups, populations, borders, heavy tails and trends: ``python -m benchmarks.diagnosis groups``.

Each row is a fault in FLEETS synthetic fleets of 32 hosts with 8 metrics (4 racks of 8 hosts; run noise 1%, hosts 0.3%,
5 repeats; seed SEED). It gives the share of sick hosts that are named, alone or as members of a group, the share of
sound hosts that are, and the share of fleets whose cause is named and whose exit status is 1. The result is written to
benchmarks/results/groups.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring import circumstances
from fleetmark.planner.diagnosis import history, outliers, places, traits

SEED, FLEETS, HOSTS, METRICS, REPEATS = 18, 50, 32, 8, 5
RUN, HOST, LEAST = 0.01, 0.003, outliers.SMALL
RACKS = np.arange(HOSTS) // 8
RESULT = Path(__file__).parent / "results" / "groups.json"


@dataclass(kw_only=True, frozen=True, slots=True)
class Outcome:
    """One row: shares of hosts and fleets; ``cause`` is the share of fleets with the right cause (None: has none)."""

    fault: str
    named: float | None
    blamed: float
    cause: float | None
    alarms: float


def fleet(rng: np.random.Generator, loss: np.ndarray, heavy: bool = False) -> np.ndarray:
    """Return runs (metrics x hosts x repeats); ``loss`` of each host in half of the metrics."""
    shape = (METRICS, HOSTS, REPEATS)
    runs = RUN * (rng.standard_t(3, shape) if heavy else rng.normal(size=shape))
    runs += HOST * rng.normal(size=(METRICS, HOSTS, 1))
    runs[: METRICS // 2] += np.log1p(-loss)[:, None]
    return runs


def diagnosed(runs: np.ndarray, facts: dict[str, list[str]]) -> tuple[set[int], set[str], bool]:
    """Return the named hosts, the named causes, and whether anything is wrong, as ``fleetmark diagnose`` does."""
    values, sd = runs.mean(axis=2), runs.std(axis=2, ddof=1)
    limits = np.full(len(values), LEAST)
    groups = traits.slower_groups(values, traits.traits(facts), limits)
    named, causes = set(), set()
    for group in groups:
        values[group.row, group.members] += group.shift
        named |= set(group.members.tolist())
        causes |= {f"{name} {value}" for name, value in group.traits}
    error = np.full(values.shape, np.median(sd) / REPEATS**0.5)
    verdicts = outliers.judge(values, error, limits, outliers.Repeats(np.full(values.shape, REPEATS), sd))
    named |= set(verdicts.slow["column"].tolist())
    for group_of in verdicts.modes.group:
        named |= set(np.flatnonzero((group_of >= 0) & (group_of < group_of.max())).tolist())
        causes.add("populations")
    return named, causes, bool(named)


def row(fault: str, loss: Callable[[np.random.Generator], np.ndarray], cause: str = "", heavy: bool = False) -> Outcome:
    sick = hits = sound = blamed = right = alarms = 0
    for number in range(FLEETS):
        rng = np.random.default_rng([SEED, number])
        lost = loss(rng)
        bios = np.where(lost > 0, "2.1", "2.0") if cause.startswith("BIOS") else np.full(HOSTS, "2.0")
        facts = {
            "BIOS": bios.tolist(),
            "rack": [f"r{n}" for n in RACKS],
            "kernel": rng.choice(["6.1", "6.2"], HOSTS).tolist(),
        }
        named, causes, alarm = diagnosed(fleet(rng, lost, heavy), facts)
        bad = set(np.flatnonzero(lost > 0).tolist())
        sick, hits = sick + len(bad), hits + len(named & bad)
        sound, blamed = sound + HOSTS - len(bad), blamed + len(named - bad)
        right, alarms = right + (cause in causes), alarms + alarm
    return Outcome(
        fault=fault,
        named=hits / sick if sick else None,
        blamed=blamed / max(1, sound),
        cause=right / FLEETS if cause else None,
        alarms=alarms / FLEETS,
    )


def some(share: float, low: float, high: float) -> Callable[[np.random.Generator], np.ndarray]:
    def loss(rng: np.random.Generator) -> np.ndarray:
        lost = np.zeros(HOSTS)
        chosen = rng.choice(HOSTS, round(share * HOSTS), replace=False)
        lost[chosen] = rng.uniform(low, high, len(chosen))
        return lost

    return loss


def border(fault: str, across: tuple[int, ...], loss: float) -> Outcome:
    """Return the outcome for a border or uplink between racks; every host is measured with 5 others."""
    a = np.repeat(np.arange(HOSTS), 5)
    b = (a + np.tile((1, 3, 7, 9, 12), HOSTS)) % HOSTS
    right = alarms = 0
    for number in range(FLEETS):
        rng = np.random.default_rng([SEED, number])
        sides = np.stack([np.minimum(RACKS[a], RACKS[b]), np.maximum(RACKS[a], RACKS[b])])
        inside = np.isin(sides, across)
        hit = (sides[0] != sides[1]) & (inside.all(axis=0) if len(across) > 1 else inside.any(axis=0))
        values = rng.normal(0, RUN, len(a)) + np.where(hit & bool(across), np.log1p(-loss), 0.0)
        faults = places.slow_borders(a, b, values, RACKS)
        right += [f.places for f in faults] == [across]
        alarms += bool(faults)
    return Outcome(
        fault=fault, named=None, blamed=0.0, cause=right / FLEETS if across else None, alarms=alarms / FLEETS
    )


def drift(fault: str, loss: float, campaigns: int) -> Outcome:
    """Return the outcome for one of 12 hosts that loses a share in each campaign, with 3 repeats."""
    hits = blamed = 0
    for number in range(FLEETS):
        rng = np.random.default_rng([SEED, number])
        values = rng.normal(0, RUN / 3**0.5, (12, campaigns))
        values[3] += np.log1p(-loss) * np.arange(campaigns)
        relative = values - np.median(values, axis=1, keepdims=True)
        relative -= np.median(relative, axis=0)
        noise = history.usual_noise(list(relative))
        unknown = np.full(campaigns, np.nan)
        results = [history.lasting(v, unknown, LEAST, outliers.DISCOVERY / (12 * METRICS), noise) for v in relative]
        moved = {host for host, result in enumerate(results) if result.steps or result.trends}
        hits, blamed = hits + (3 in moved), blamed + len(moved - {3})
    return Outcome(
        fault=fault,
        named=hits / FLEETS if loss else None,
        blamed=blamed / FLEETS / 12,
        cause=None,
        alarms=hits / FLEETS,
    )


def generations(rng: np.random.Generator) -> np.ndarray:
    return np.array([0.0, 0.3, 0.5])[np.arange(HOSTS) % 3]


def main() -> None:
    rack = np.where(RACKS == 1, 0.12, 0.0)
    outcomes = [
        row("no fault", lambda _: np.zeros(HOSTS)),
        row("no fault, t noise of 3 degrees of freedom", lambda _: np.zeros(HOSTS), heavy=True),
        row("10% of hosts -5%", some(0.1, 0.05, 0.05)),
        row("BIOS on half the fleet, -30%", some(0.5, 0.3, 0.3), "BIOS 2.1"),
        row("40% of hosts -10%", some(0.4, 0.1, 0.1), "populations"),
        row("40% of hosts -5 to -25%", some(0.4, 0.05, 0.25)),
        row("a whole rack -12%", lambda _: rack, "rack r1"),
        row("three generations without facts", generations, "populations"),
        border("no border", (), 0.0),
        border("rack border -5%", (1, 2), 0.05),
        border("rack border -8%", (1, 2), 0.08),
        border("rack border -15%", (1, 2), 0.15),
        border("rack uplink -20%", (2,), 0.2),
        drift("sound hosts, 11 campaigns", 0.0, 11),
        drift("drift of -0.5% a campaign, 10 steps", 0.005, 11),
    ]
    print("fault | sick hosts named | sound hosts blamed | cause named | exit status 1")
    for o in outcomes:
        shares = [f"{v:.1%}" if v is not None else "-" for v in (o.named, o.blamed, o.cause, o.alarms)]
        print(" | ".join([o.fault, *shares]))
    document = {
        **circumstances(),
        "seed": SEED,
        "fleets": FLEETS,
        "hosts": HOSTS,
        "rows": [asdict(o) for o in outcomes],
    }
    RESULT.write_text(json.dumps(document, indent=1) + "\n")
