"""Measure the diagnosis of groups, populations, borders, heavy tails and trends: ``python -m benchmarks.diagnosis groups``.

Each row is a fault in FLEETS synthetic fleets of 32 hosts, unless it says otherwise, with 8 metrics (4 racks of 8
hosts; run noise 1%, hosts 0.3%, 5 repeats; seed SEED; SOUND fleets with heavy-tailed noise). It gives the share of
sick hosts that are named, alone or as members of a group, the share of healthy hosts that are, and the share of fleets
whose cause is named and whose exit status is 1. The result is written to
benchmarks/results/groups.json.

Beside it stands the variance rule of SuperBench (``result diagnosis``, as its documentation describes it): a host fails
if (value - baseline) / baseline of any metric is below -VARIANCE. Its baseline is the mean of a sound fleet of the same
hosts. A host's value is its mean over repeats, or over its pairs; it has no rule for pairs, places or several campaigns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring import circumstances
from fleetmark.base.facts import Cpu, Dimm
from fleetmark.planner.diagnosis import history, outliers, places, specification, traits
from fleetmark.planner.diagnosis.isolation import groups, partners
from tests.reports import sample

SEED, FLEETS, HOSTS, METRICS, REPEATS = 18, 50, 32, 8, 5
SOUND = 400  # number of sound fleets with heavy-tailed noise
RUN, HOST, LEAST = 0.01, 0.003, outliers.SMALL
RACKS = np.arange(HOSTS) // 8
VARIANCE = 0.05  # threshold of the rule in SuperBench's documentation
MACHINE = sample.facts("h", sample.OLD, 0).model_copy(update={"virtualisation": "none"})
RESULT = Path(__file__).parent / "results" / "groups.json"


@dataclass(kw_only=True, frozen=True, slots=True)
class Outcome:
    """One row: shares of hosts and fleets; ``cause`` is the share of fleets with the right cause (None: has none).

    ``peer_named`` and ``peer_blamed`` are the shares of sick and of healthy hosts that fail SuperBench's rule.
    """

    fault: str
    named: float | None
    blamed: float
    cause: float | None
    alarms: float
    peer_named: float | None
    peer_blamed: float


@dataclass
class Count:
    """Count the sick and the healthy hosts, and how many of each were named."""

    sick: int = 0
    hits: int = 0
    sound: int = 0
    blamed: int = 0

    def add(self, named: set[int], bad: set[int], hosts: int) -> None:
        self.sick, self.hits = self.sick + len(bad), self.hits + len(named & bad)
        self.sound, self.blamed = self.sound + hosts - len(bad), self.blamed + len(named - bad)

    @property
    def recall(self) -> float | None:
        return self.hits / self.sick if self.sick else None

    @property
    def false_positives(self) -> float:
        return self.blamed / max(1, self.sound)


def failing(values: np.ndarray, baseline: np.ndarray) -> set[int]:
    """Return the hosts (columns) that fail SuperBench's variance rule; values and baseline are logarithms."""
    return set(np.flatnonzero((np.expm1(values - baseline) < -VARIANCE).any(axis=0)).tolist())


def fleet(rng: np.random.Generator, loss: np.ndarray, heavy: bool = False, repeats: int = REPEATS) -> np.ndarray:
    """Return runs (metrics x hosts x repeats); ``loss`` of each host in half of the metrics."""
    shape = (METRICS, len(loss), repeats)
    runs = RUN * (rng.standard_t(3, shape) if heavy else rng.normal(size=shape))
    runs += HOST * rng.normal(size=(METRICS, len(loss), 1))
    runs[: METRICS // 2] += np.log1p(-loss)[:, None]
    return runs


def diagnosed(runs: np.ndarray, facts: dict[str, list[str]]) -> tuple[set[int], set[str], bool]:
    """Return the named hosts, the named causes, and whether anything is wrong, as ``fleetmark diagnose`` does."""
    values, repeats = runs.mean(axis=2), runs.shape[2]
    sd = runs.std(axis=2, ddof=1) if repeats > 1 else np.full(values.shape, np.nan)
    limits = np.full(len(values), LEAST)
    named, causes = set(), set()
    for group in traits.slower_groups(values, traits.traits(facts), limits):
        values[group.row, group.members] += group.shift
        named |= set(group.members.tolist())
        causes |= {f"{name} {value}" for name, value in group.traits}
    error = np.full(values.shape, np.median(sd) / repeats**0.5)
    if values.shape[1] < outliers.LEAST:
        verdicts = outliers.judge_few(values, error, limits)
    else:
        verdicts = outliers.judge(values, error, limits, outliers.Repeats(np.full(values.shape, repeats), sd))
    named |= set(verdicts.slow["column"].tolist())
    for group_of in verdicts.modes.group:
        named |= set(np.flatnonzero((group_of >= 0) & (group_of < group_of.max())).tolist())
        causes.add("populations")
    return named, causes, bool(named)


def row(
    fault: str,
    loss: Callable[[np.random.Generator], np.ndarray],
    cause: str = "",
    heavy: bool = False,
    repeats: int = REPEATS,
    fleets: int = FLEETS,
) -> Outcome:
    ours, peer, right, alarms = Count(), Count(), 0, 0
    for number in range(fleets):
        rng = np.random.default_rng([SEED, number])
        lost = loss(rng)
        hosts = len(lost)
        bios = np.where(lost > 0, "2.1", "2.0") if cause.startswith("BIOS") else np.full(hosts, "2.0")
        facts = {
            "BIOS": bios.tolist(),
            "rack": [f"r{n // 8}" for n in range(hosts)],
            "kernel": rng.choice(["6.1", "6.2"], hosts).tolist(),
        }
        runs = fleet(rng, lost, heavy, repeats)
        named, causes, alarm = diagnosed(runs, facts)
        bad = set(np.flatnonzero(lost > 0).tolist())
        ours.add(named, bad, hosts)
        baseline = fleet(rng, np.zeros(hosts), heavy, repeats).mean(axis=(1, 2))
        peer.add(failing(runs.mean(axis=2), baseline[:, None]), bad, hosts)
        right, alarms = right + (cause in causes), alarms + alarm
    return Outcome(
        fault=fault,
        named=ours.recall,
        blamed=ours.false_positives,
        cause=right / fleets if cause else None,
        alarms=alarms / fleets,
        peer_named=peer.recall,
        peer_blamed=peer.false_positives,
    )


def some(share: float, low: float, high: float, hosts: int = HOSTS) -> Callable[[np.random.Generator], np.ndarray]:
    def loss(rng: np.random.Generator) -> np.ndarray:
        lost = np.zeros(hosts)
        chosen = rng.choice(hosts, round(share * hosts), replace=False)
        lost[chosen] = rng.uniform(low, high, len(chosen))
        return lost

    return loss


def crosses(sides: np.ndarray, across: tuple[int, ...]) -> np.ndarray:
    """Return which pairs of racks (2 x pairs) cross a border between two racks, or leave the one rack ``across``."""
    inside = np.isin(sides, across)
    return np.asarray((sides[0] != sides[1]) & (inside.all(axis=0) if len(across) > 1 else inside.any(axis=0)))


def border(fault: str, across: tuple[int, ...], loss: float, isolated: bool = False, labelled: bool = True) -> Outcome:
    """Return the outcome for a border or uplink between racks; every host is measured with 5 others.

    ``isolated``: the faults are those that ``--isolate`` names with further runs of pairs. ``labelled``: it knows the
    racks; if not, the hosts of the rack must be named as a set that shares something.
    """
    a = np.repeat(np.arange(HOSTS), 5)
    b = (a + np.tile((1, 3, 7, 9, 12), HOSTS)) % HOSTS
    ours, peer, right, alarms = Count(), Count(), 0, 0
    for number in range(FLEETS):
        rng = np.random.default_rng([SEED, number])

        def rates(one: np.ndarray, other: np.ndarray, loss: float, rng: np.random.Generator = rng) -> np.ndarray:
            hit = crosses(np.stack([RACKS[one], RACKS[other]]), across) & bool(across)
            return rng.normal(0, RUN, len(one)) + np.where(hit, np.log1p(-loss), 0.0)

        values = rates(a, b, loss)
        if isolated:
            named, borders = isolated_pairs(a, b, values, lambda one, other: rates(one, other, loss), labelled)
        else:
            named, borders = set(), [f.places for f in places.slow_borders(a, b, values, RACKS)]
        ours.add(named, set(), HOSTS)
        hosts = np.array(
            [[v[(a == host) | (b == host)].mean() for host in range(HOSTS)] for v in (values, rates(a, b, 0.0))]
        )
        peer.add(failing(hosts[:1], hosts[1:].mean(axis=1, keepdims=True)), set(), HOSTS)
        right += borders == [across] and not named
        alarms += bool(borders or named)
    return without_sick_hosts(fault, ours, peer, right / FLEETS if across else None, alarms)


def without_sick_hosts(fault: str, ours: Count, peer: Count, cause: float | None, alarms: int) -> Outcome:
    """Return the outcome of a fault that is no host's."""
    return Outcome(
        fault=fault,
        named=None,
        blamed=ours.false_positives,
        cause=cause,
        alarms=alarms / FLEETS,
        peer_named=None,
        peer_blamed=peer.false_positives,
    )


def isolated_pairs(
    a: np.ndarray,
    b: np.ndarray,
    values: np.ndarray,
    rates: Callable[[np.ndarray, np.ndarray], np.ndarray],
    labelled: bool,
) -> tuple[set[int], list[tuple[int, ...]]]:
    """Return the hosts that ``--isolate`` names (alone or as a link), and the racks of borders and uplinks."""

    def together(pairs: Sequence[partners.Pair]) -> dict[partners.Pair, float]:
        ends = np.array([sorted(int(host) for host in pair) for pair in pairs]).reshape(-1, 2)
        return dict(zip(pairs, rates(ends[:, 0], ends[:, 1]).tolist(), strict=True))

    measured = {frozenset((str(i), str(j))): float(v) for i, j, v in zip(a, b, values, strict=True)}
    racks = {str(host): str(rack) for host, rack in enumerate(RACKS)}
    return _named(
        partners.isolate(
            measured,
            lambda hosts: dict.fromkeys(hosts, 0.0),
            together,
            deficit=partners.SLOW,
            noise=RUN,
            labels={"rack": racks} if labelled else {},
        )
    )


def _named(suspicion: partners.Suspicion) -> tuple[set[int], list[tuple[int, ...]]]:
    """Return the hosts that are named, and the racks: by their labels, or as the set of all their hosts."""
    borders = [tuple(int(m) for m in f.members) for f in suspicion.faults if f.kind == "border"]
    hosts = {int(m) for f in suspicion.faults if f.kind in ("node", "link") for m in f.members}
    for members in ({int(m) for m in f.members} for f in suspicion.faults if f.kind == "shared"):
        racks = {int(RACKS[m]) for m in members}
        if members == set(np.flatnonzero(np.isin(RACKS, list(racks))).tolist()):
            borders.append(tuple(sorted(racks)))
        else:
            hosts |= members
    return hosts, borders


def grouped(
    fault: str, across: tuple[int, ...], loss: float, least: float, size: int = 8, labelled: bool = True
) -> Outcome:
    """Return the outcome of ``--isolate`` for a case that groups run: slow if its hosts cross the border or uplink."""
    hosts = [str(n) for n in range(HOSTS)]
    racks = {host: str(RACKS[int(host)]) for host in hosts}
    ours, peer, right, alarms = Count(), Count(), 0, 0
    for number in range(FLEETS):
        rng = np.random.default_rng([SEED, number])

        def together(group: tuple[str, ...], rng: np.random.Generator = rng) -> list[float]:
            sides = {int(racks[host]) for host in group}
            slow = len(sides) > 1 and (sides >= set(across) if len(across) > 1 else across[0] in sides)
            return [float(rate) + (math.log1p(-loss) if slow else 0.0) for rate in rng.normal(0, RUN, 2)]

        parts = np.split(rng.permutation(hosts), HOSTS // size)
        measured = {frozenset(part.tolist()): together(tuple(part.tolist())) for part in parts}
        labels = {"rack": racks} if labelled else {}
        suspicion = groups.isolate(measured, hosts, lambda _: {}, together, deficit=least, labels=labels)
        named, borders = _named(suspicion)
        ours.add(named, set(), HOSTS)
        means = np.array([np.mean(next(r for g, r in measured.items() if host in g)) for host in hosts])
        peer.add(failing(means[None, :], np.zeros((1, HOSTS))), set(), HOSTS)
        right += borders == [across] and not named
        alarms += bool(borders or named)
    return without_sick_hosts(fault, ours, peer, right / FLEETS, alarms)


def without_cause(fault: str, ours: Count, peer: Count, alarms: int) -> Outcome:
    """Return the outcome of a fault whose hosts share no cause."""
    return Outcome(
        fault=fault,
        named=ours.recall,
        blamed=ours.false_positives,
        cause=None,
        alarms=alarms / FLEETS,
        peer_named=peer.recall,
        peer_blamed=peer.false_positives,
    )


def gate(fault: str, model: str, channel: str) -> Outcome:
    """Return the outcome for 3 hosts with 8 of 16 modules; a rule wants 60% of the memory's peak (host noise HOST).

    A host is named if it fails, or if its peak is unknown; healthy hosts have all 16 modules. ``channel``: the name of
    the slot of a channel.
    """
    ours, peer, alarms = Count(), Count(), 0
    for number in range(FLEETS):
        rng = np.random.default_rng([SEED, number])
        sick = set(rng.choice(HOSTS, 3, replace=False).tolist())
        named, values = set(), np.zeros((1, HOSTS))
        for host in range(HOSTS):
            modules = 8 if host in sick else 16
            dimms = tuple(
                Dimm(slot=channel.format(n=n), size=32 << 30 if n < modules else 0, type="DDR5", configured_mts=4800)
                for n in range(16)
            )
            facts = MACHINE.model_copy(update={"cpu": Cpu(model=model, sockets=2), "dimms": dimms})
            rate = 0.8 * modules * 4800e6 * 8 * float(np.exp(rng.normal(0, HOST)))
            values[0, host] = np.log(rate)
            full = specification.memory_rate(facts, {})
            if full is None or rate < 0.6 * full:
                named.add(host)
        ours.add(named, sick, HOSTS)
        baseline = math.log(0.8 * 16 * 4800e6 * 8)
        peer.add(failing(values, np.full((1, 1), baseline)), sick, HOSTS)
        alarms += bool(named)
    return without_cause(fault, ours, peer, alarms)


def drift(fault: str, loss: float, campaigns: int, run: float = RUN) -> Outcome:
    """Return the outcome for one of 12 hosts that loses a share in each campaign, with 3 repeats of noise ``run``."""
    ours, peer, alarms = Count(), Count(), 0
    for number in range(FLEETS):
        rng = np.random.default_rng([SEED, number])
        values = rng.normal(0, run / 3**0.5, (12, campaigns))
        values[3] += np.log1p(-loss) * np.arange(campaigns)
        relative = values - np.median(values, axis=1, keepdims=True)
        relative -= np.median(relative, axis=0)
        noise = history.usual_noise(list(relative))
        unknown = np.full(campaigns, np.nan)
        results = [history.lasting(v, unknown, LEAST, outliers.DISCOVERY / (12 * METRICS), noise) for v in relative]
        moved = {host for host, result in enumerate(results) if result.steps or result.trends}
        sick = {3} if loss else set()
        ours.add(moved, sick, 12)
        peer.add(failing(values[None, :, -1], values[:, 0].mean(keepdims=True)[None, :]), sick, 12)
        alarms += bool(moved)
    return without_cause(fault, ours, peer, alarms)


def sound(hosts: int, repeats: int) -> Outcome:
    """Return the outcome for sound fleets with heavy-tailed noise."""
    fault = f"{hosts} hosts, {repeats} run{'s' * (repeats > 1)} each, no fault, t noise of 3 degrees of freedom"
    return row(fault, lambda _: np.zeros(hosts), heavy=True, repeats=repeats, fleets=SOUND)


def generations(rng: np.random.Generator) -> np.ndarray:
    return np.array([0.0, 0.3, 0.5])[np.arange(HOSTS) % 3]


def main() -> None:
    rack = np.where(RACKS == 1, 0.12, 0.0)
    outcomes = [
        row("no fault", lambda _: np.zeros(HOSTS)),
        *(sound(hosts, REPEATS) for hosts in (8, 32, 128)),
        sound(HOSTS, 3),
        sound(HOSTS, 1),
        row("10% of hosts -5%", some(0.1, 0.05, 0.05)),
        row("BIOS on half the fleet, -30%", some(0.5, 0.3, 0.3), "BIOS 2.1"),
        row("40% of hosts -10%", some(0.4, 0.1, 0.1), "populations"),
        row("40% of hosts -5 to -25%", some(0.4, 0.05, 0.25)),
        row("20 of 32 hosts -5 to -25%", some(20 / 32, 0.05, 0.25), "populations"),
        row("28 of 32 hosts -10%", some(28 / 32, 0.1, 0.1), "populations"),
        row("3 hosts, no fault", lambda _: np.zeros(3)),
        row("3 hosts, t noise of 3 degrees of freedom", lambda _: np.zeros(3), heavy=True),
        row("1 of 3 hosts -20%", some(1 / 3, 0.2, 0.2, 3)),
        row("2 of 3 hosts -20%", some(2 / 3, 0.2, 0.2, 3), "populations"),
        row("a whole rack -12%", lambda _: rack, "rack r1"),
        row("three generations without facts", generations, "populations"),
        border("no border", (), 0.0),
        border("rack border -4%", (1, 2), 0.04),
        border("rack border -5%", (1, 2), 0.05),
        border("rack border -8%", (1, 2), 0.08),
        border("rack border -15%", (1, 2), 0.15),
        border("rack uplink -20%", (2,), 0.2),
        border("rack uplink -20%, --isolate of pairs", (2,), 0.2, isolated=True),
        grouped("rack uplink -20%, --isolate of groups", (2,), 0.2, partners.SLOW),
        border("rack uplink -20% without labels, --isolate of pairs", (2,), 0.2, isolated=True, labelled=False),
        grouped(
            "rack uplink -20% without labels, --isolate of groups of 4", (2,), 0.2, partners.SLOW, 4, labelled=False
        ),
        grouped("rack border -5%, --isolate --least 4% of groups", (1, 2), 0.05, partners.LEAST),
        drift("healthy hosts, 11 campaigns", 0.0, 11),
        drift("drift of -0.5% a campaign, 10 steps", 0.005, 11),
        drift("decline of 50% over 9 campaigns without noise", 1 - 0.5 ** (1 / 8), 9, run=0.0),
        gate("8 of 16 modules, known processor, gate", "Intel(R) Xeon(R) Platinum 8480+", "d{n}"),
        gate("8 of 16 modules, unknown processor, channels named, gate", "unknown", "CPU0_CH{n}_D0"),
        gate("8 of 16 modules, unknown processor and channels, gate", "unknown", "d{n}"),
    ]
    print(
        "fault | faulty hosts found | healthy hosts blamed | cause named | exit status 1 | SuperBench: named | blamed"
    )
    for o in outcomes:
        values = (o.named, o.blamed, o.cause, o.alarms, o.peer_named, o.peer_blamed)
        shares = [f"{v:.1%}" if v is not None else "-" for v in values]
        print(" | ".join([o.fault, *shares]))
    document = {
        **circumstances(),
        "seed": SEED,
        "fleets": FLEETS,
        "hosts": HOSTS,
        "variance": VARIANCE,
        "rows": [asdict(o) for o in outcomes],
    }
    RESULT.write_text(json.dumps(document, indent=1) + "\n")
