"""Hosts as tuning rules see them: their facts, and what their campaign measured."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.kinds import CLASSES
from fleetmark.record import replies
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import read
from fleetmark.record.diagnosis.table import Table, title
from parsers.nccl.net import gpu_direct
from planner.diagnosis.cohorts import kind_of
from planner.diagnosis.trial import Change
from planner.diagnosis.tuning.rule import Share, Subject
from workloads import declared

MEMORY, CORE, COLLECTIVE = "mem-bw", "core-bw", "collective"  # classes of metrics
PEERS = 3  # hosts of a kind whose median a figure is held against
MOST_RUNS = 300  # whose telemetry is read
_LOADED = 0.9  # of the CPUs' time, from which on their clock is that under load
_BUSY = 0.1  # cores of others, from which on waiting for a CPU is theirs
_LOG = 1 << 20  # bytes of a log
_LOGS = 4  # of a host
_MTUS = range(1280, 9217)  # from the least of IPv6 to the largest of switches: what a host may be told to try


def subjects(
    archive: Archive, facts: Mapping[str, Facts], trials: Mapping[str, Mapping[str, Sequence[Change]]]
) -> dict[str, Subject]:
    """Every host with facts. Raises FleetmarkError for measurements that are damaged."""
    table = headlines(archive)
    best = {} if table is None else best_memory(table)
    remote = {} if table is None else _remote(Table(*read(archive, everything=True)))
    collectives = {} if table is None else _collectives(table, facts)
    responsive = set() if table is None else _responsive(table)
    runs = _runs(archive)
    direct = {} if table is None else _direct(archive, table)
    mtus = _mtus(facts)
    return {
        host: Subject(
            own,
            memory_bandwidth=best.get(host),
            remote_bandwidth=remote.get(host),
            mtus=mtus.get(kind_of(own)[0], {}),
            responsive=host in responsive,
            stolen=runs.get(host, _Runs()).stolen,
            waited=runs.get(host, _Runs()).waited,
            clock=runs.get(host, _Runs()).clock,
            slowed=runs.get(host, _Runs()).slowed,
            collective=collectives.get(host),
            gpu_direct=direct.get(host),
            trials=trials.get(host, {}),
        )
        for host, own in facts.items()
    }


def headlines(archive: Archive) -> Table | None:
    """The headlines of single hosts, None where nothing was measured."""
    return Table(*read(archive)) if archive.inside("measurements.parquet").exists() else None


def best_memory(table: Table) -> dict[str, float]:
    """Host to the best bandwidth of its own memory among its headlines, in B/s; that of accelerators is another's."""
    about = table.about
    chosen = (
        ((about["class"] == MEMORY) & (about["unit"] == "B/s") & (about["subject"] == "host")).to_numpy(bool).copy()
    )
    for row in np.flatnonzero(chosen):
        one = table.benchmark(int(row))
        held = declared.peak(one["workload"], one["case"], one["metric"])
        chosen[row] = held is None or held.of == "memory"
    return _extreme(table, chosen)


def _extreme(table: Table, chosen: np.ndarray) -> dict[str, float]:
    if not chosen.any():
        return {}
    best = np.fmax.reduce(table.values[chosen], axis=0)
    return {host: float(np.exp(value)) for host, value in zip(table.hosts, best, strict=True) if not np.isnan(value)}


def _remote(table: Table) -> dict[str, float]:
    """Host to the lowest share of its own node's bandwidth that a node reaches in another's memory."""
    about = table.about
    rows = np.flatnonzero(((about["class"] == CORE) & (about["unit"] == "B/s")).to_numpy(bool))
    own: dict[tuple[str, str, str], float] = {}
    others: list[tuple[tuple[str, str, str], float]] = []
    for row in rows:
        labels = json.loads(about.iloc[row]["labels"])
        if not {"from", "to"} <= labels.keys():
            continue
        case = str(about.iloc[row]["case"])
        for host, column in table.place.items():
            key, value = (host, case, str(labels["from"])), float(table.values[row, column])
            if np.isnan(value):
                continue
            if labels["from"] == labels["to"]:
                own[key] = value
            else:
                others.append((key, value))
    shares: dict[str, float] = {}
    for key, value in others:
        if key in own:
            shares[key[0]] = min(shares.get(key[0], np.inf), float(np.exp(value - own[key])))
    return shares


def _collectives(table: Table, facts: Mapping[str, Facts]) -> dict[str, Share]:
    """Host to its lowest share of its peers' bandwidth in a collective that it ran by itself."""
    about = table.about
    rows = np.flatnonzero(((about["class"] == COLLECTIVE) & (about["unit"] == "B/s")).to_numpy(bool))
    of_kind: dict[str, list[str]] = {}
    for host, own_facts in facts.items():
        of_kind.setdefault(kind_of(own_facts)[0], []).append(host)
    lowest: dict[str, Share] = {}
    for row in rows:
        values = {h: float(table.values[row, n]) for h, n in table.place.items() if not np.isnan(table.values[row, n])}
        for hosts in of_kind.values():
            for host in (h for h in hosts if h in values):
                peers = [values[p] for p in hosts if p != host and p in values]
                if len(peers) < PEERS:
                    continue
                own, usual = float(np.exp(values[host])), float(np.exp(np.median(peers)))
                before = lowest.get(host)
                if before is None or own / usual < before.value / before.usual:
                    lowest[host] = Share(title(table.benchmark(int(row))), own, usual, len(peers))
    return lowest


def _responsive(table: Table) -> set[str]:
    """The hosts of which a latency was measured."""
    about = table.about
    rows = ((about["unit"] == "s") & about["class"].isin(list(CLASSES))).to_numpy(bool)
    measured = ~np.isnan(table.values[rows]).all(axis=0) if rows.any() else np.zeros(len(table.hosts), bool)
    return {host for host, n in table.place.items() if measured[n]}


@dataclass(slots=True)
class _Runs:
    """The extremes of a host's runs: the highest mean of steal, and of waiting for a CPU where others kept CPUs busy
    meanwhile (a program that has more threads than CPUs waits for itself); the highest mean clock of a run that kept
    the CPUs busy, Hz; and by reason the highest share of samples in which an accelerator was slowed down.
    """

    stolen: float | None = None
    waited: float | None = None
    clock: float | None = None
    slowed: dict[str, float] = field(default_factory=dict)


def _runs(archive: Archive) -> dict[str, _Runs]:
    result: dict[str, _Runs] = {}
    for host, telemetry in _telemetry(archive):
        own = result.setdefault(host, _Runs())
        means = {name: extremes.mean for name, extremes in telemetry.summary.items()}
        own.stolen = _highest(own.stolen, means.get("cpu_steal"))
        if (telemetry.foreign_cores or 0.0) >= _BUSY:
            own.waited = _highest(own.waited, means.get("psi_cpu_some"))
        if means.get("cpu_busy", 0.0) >= _LOADED:
            own.clock = _highest(own.clock, means.get("clock_hz_mean"))
        for device in telemetry.gpus.devices if telemetry.gpus else ():
            for reason, share in device.slowed.items():
                own.slowed[reason] = max(own.slowed.get(reason, 0.0), share)
    return result


def _highest(before: float | None, now: float | None) -> float | None:
    return max((v for v in (before, now) if v is not None), default=None)


def _telemetry(archive: Archive) -> Iterator[tuple[str, replies.Telemetry]]:
    """Host and telemetry of at most MOST_RUNS runs, evenly spread; damaged ones left out."""
    if not (archive.path / "raw").is_dir():
        return
    runs = list(archive.steps())
    for folder, step in runs[:: max(1, -(-len(runs) // MOST_RUNS))]:
        try:
            telemetry = archive.telemetry(folder)
        except FleetmarkError:
            continue
        if telemetry is not None:
            yield str(step["host"]), telemetry


def _direct(archive: Archive, table: Table) -> dict[str, bool]:
    """Whether the logs of a host's collectives show GPU-direct RDMA, where they say; one that does not decides."""
    about = table.measured.keys
    workloads = set(about.loc[about["class"] == COLLECTIVE, "workload"])
    if not workloads or not (archive.path / "raw").is_dir():
        return {}
    result: dict[str, bool] = {}
    read_of: Counter[str] = Counter()
    for folder, step in archive.steps():
        host = str(step["host"])
        if step["workload"] not in workloads or read_of[host] >= _LOGS:
            continue
        log = archive.open_raw(folder, "stdout")
        if log is None:
            continue
        read_of[host] += 1
        with log:
            direct = gpu_direct(log.read(_LOG))
        if direct is not None:
            result[host] = result.get(host, True) and direct
    return result


def _mtus(facts: Mapping[str, Facts]) -> dict[str, dict[float, Counter[int]]]:
    """By kind of host and link speed, how many hosts have which MTU on most of their active interfaces.

    A host has one vote, however many interfaces it lists; none where two of its MTUs are as frequent.
    """
    of: dict[str, dict[float, Counter[int]]] = {}
    for own in facts.values():
        speeds: dict[float, Counter[int]] = {}
        for nic in own.nics:
            if nic.state == "up" and nic.speed and nic.mtu and nic.mtu in _MTUS:
                speeds.setdefault(nic.speed, Counter())[nic.mtu] += 1
        for speed, mtus in speeds.items():
            (mtu, count), *others = mtus.most_common(2)
            if not others or others[0][1] < count:
                of.setdefault(kind_of(own)[0], {}).setdefault(speed, Counter())[mtu] += 1
    return of
