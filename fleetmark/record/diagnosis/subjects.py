"""Collect the facts and measurements of hosts that tuning rules use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.kinds import CLASSES
from fleetmark.parsers.nccl.net import gpu_direct
from fleetmark.planner.diagnosis.cohorts import kind_of
from fleetmark.planner.diagnosis.trial import TrialChange
from fleetmark.planner.diagnosis.tuning.rule import Share, Subject
from fleetmark.record import replies
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import read
from fleetmark.record.diagnosis.table import Table, title
from fleetmark.workloads import declared

MEMORY, CORE, COLLECTIVE = "mem-bw", "core-bw", "collective"  # classes of metrics
PEERS = 3  # minimum hosts of a kind for a comparison with their median
MOST_RUNS = 300  # maximum number of runs whose telemetry is read
_LOADED = 0.9  # share of CPU time above which the clock counts as measured under load
_BUSY = 0.1  # cores used by other processes, above which they cause the waiting for a CPU
_LOG = 1 << 20  # maximum bytes to read of a log
_LOGS = 4  # maximum logs to read per host
_MTUS = range(1280, 9217)  # range of MTUs to recommend: from the minimum of IPv6 to the maximum of switches


def subjects(
    archive: Archive, facts: Mapping[str, Facts], trials: Mapping[str, Mapping[str, Sequence[TrialChange]]]
) -> dict[str, Subject]:
    """Return every host that has facts. Raise FleetmarkError if the measurements are damaged."""
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
            facts_of_host,
            memory_bandwidth=best.get(host),
            remote_bandwidth=remote.get(host),
            mtus=mtus.get(kind_of(facts_of_host)[0], {}),
            responsive=host in responsive,
            stolen=runs.get(host, _Runs()).stolen,
            waited=runs.get(host, _Runs()).waited,
            clock=runs.get(host, _Runs()).clock,
            slowed=runs.get(host, _Runs()).slowed,
            collective=collectives.get(host),
            gpu_direct=direct.get(host),
            trials=trials.get(host, {}),
        )
        for host, facts_of_host in facts.items()
    }


def headlines(archive: Archive) -> Table | None:
    """Return the headline results of single hosts, or None if nothing was measured."""
    return Table(*read(archive)) if archive.inside("measurements.parquet").exists() else None


def best_memory(table: Table) -> dict[str, float]:
    """Return the best main-memory bandwidth of each host in B/s. Accelerator memory does not count."""
    metrics = table.metrics
    chosen = (
        ((metrics["class"] == MEMORY) & (metrics["unit"] == "B/s") & (metrics["subject"] == "host"))
        .to_numpy(bool)
        .copy()
    )
    for row in np.flatnonzero(chosen):
        one = table.benchmark(int(row))
        held = declared.peak(one["workload"], one["case"], one["metric"])
        chosen[row] = held is None or held.part == "memory"
    return _extreme(table, chosen)


def _extreme(table: Table, chosen: np.ndarray) -> dict[str, float]:
    if not chosen.any():
        return {}
    best = np.fmax.reduce(table.values[chosen], axis=0)
    return {host: float(np.exp(value)) for host, value in zip(table.hosts, best, strict=True) if not np.isnan(value)}


def _remote(table: Table) -> dict[str, float]:
    """Return each host's lowest bandwidth to a remote NUMA node, as a share of the local bandwidth."""
    metrics = table.metrics
    rows = np.flatnonzero(((metrics["class"] == CORE) & (metrics["unit"] == "B/s")).to_numpy(bool))
    local: dict[tuple[str, str, str], float] = {}
    others: list[tuple[tuple[str, str, str], float]] = []
    for row in rows:
        labels = json.loads(metrics.iloc[row]["labels"])
        if not {"from", "to"} <= labels.keys():
            continue
        case = str(metrics.iloc[row]["case"])
        for host, column in table.place.items():
            key, value = (host, case, str(labels["from"])), float(table.values[row, column])
            if np.isnan(value):
                continue
            if labels["from"] == labels["to"]:
                local[key] = value
            else:
                others.append((key, value))
    shares: dict[str, float] = {}
    for key, value in others:
        if key in local:
            shares[key[0]] = min(shares.get(key[0], np.inf), float(np.exp(value - local[key])))
    return shares


def _collectives(table: Table, facts: Mapping[str, Facts]) -> dict[str, Share]:
    """Return each host's lowest share of its peers' bandwidth, over the collectives that it ran alone."""
    metrics = table.metrics
    rows = np.flatnonzero(((metrics["class"] == COLLECTIVE) & (metrics["unit"] == "B/s")).to_numpy(bool))
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
                rate, usual = float(np.exp(values[host])), float(np.exp(np.median(peers)))
                before = lowest.get(host)
                if before is None or rate / usual < before.value / before.usual:
                    lowest[host] = Share(title(table.benchmark(int(row))), rate, usual, len(peers))
    return lowest


def _responsive(table: Table) -> set[str]:
    """Return the hosts with a measured latency."""
    metrics = table.metrics
    rows = ((metrics["unit"] == "s") & metrics["class"].isin(list(CLASSES))).to_numpy(bool)
    measured = ~np.isnan(table.values[rows]).all(axis=0) if rows.any() else np.zeros(len(table.hosts), bool)
    return {host for host, n in table.place.items() if measured[n]}


@dataclass(slots=True)
class _Runs:
    """The extremes over a host's runs.

    The extremes are the highest mean steal time, the highest mean wait for a CPU while other processes were busy, and
    the highest mean clock (Hz) under load. Waiting counts only while other processes are busy, because a program with
    more threads than CPUs waits for its own threads. For accelerators, they are the highest share of throttled samples
    by reason.
    """

    stolen: float | None = None
    waited: float | None = None
    clock: float | None = None
    slowed: dict[str, float] = field(default_factory=dict)


def _runs(archive: Archive) -> dict[str, _Runs]:
    result: dict[str, _Runs] = {}
    for host, telemetry in _telemetry(archive):
        runs = result.setdefault(host, _Runs())
        means = {name: extremes.mean for name, extremes in telemetry.summary.items()}
        runs.stolen = _highest(runs.stolen, means.get("cpu_steal"))
        if (telemetry.foreign_cores or 0.0) >= _BUSY:
            runs.waited = _highest(runs.waited, means.get("psi_cpu_some"))
        if means.get("cpu_busy", 0.0) >= _LOADED:
            runs.clock = _highest(runs.clock, means.get("clock_hz_mean"))
        for device in telemetry.gpus.devices if telemetry.gpus else ():
            for reason, share in device.slowed.items():
                runs.slowed[reason] = max(runs.slowed.get(reason, 0.0), share)
    return result


def _highest(before: float | None, now: float | None) -> float | None:
    return max((v for v in (before, now) if v is not None), default=None)


def _telemetry(archive: Archive) -> Iterator[tuple[str, replies.StepTelemetry]]:
    """Yield the host and telemetry of at most MOST_RUNS evenly spread runs. Skip damaged files."""
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
    """Return whether each host's collectives use GPU-direct RDMA, for hosts whose logs show it.

    A single log without it makes the result False.
    """
    metrics = table.measured.keys
    workloads = set(metrics.loc[metrics["class"] == COLLECTIVE, "workload"])
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
    """Count the hosts by their most frequent MTU, for each kind of host and link speed.

    A host counts once, however many active interfaces it has. A host does not count if two of its MTUs are equally
    frequent.
    """
    counts_by_kind: dict[str, dict[float, Counter[int]]] = {}
    for host_facts in facts.values():
        speeds: dict[float, Counter[int]] = {}
        for nic in host_facts.nics:
            if nic.state == "up" and nic.speed and nic.mtu and nic.mtu in _MTUS:
                speeds.setdefault(nic.speed, Counter())[nic.mtu] += 1
        for speed, mtus in speeds.items():
            (mtu, count), *others = mtus.most_common(2)
            if not others or others[0][1] < count:
                counts_by_kind.setdefault(kind_of(host_facts)[0], {}).setdefault(speed, Counter())[mtu] += 1
    return counts_by_kind
