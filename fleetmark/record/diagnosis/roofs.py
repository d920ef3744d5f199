"""What each part of a host reached at best, beside what it could do by its facts and specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, message
from fleetmark.record import figures
from fleetmark.record.diagnosis import pairs
from fleetmark.record.diagnosis.table import Table
from planner.diagnosis.tuning import peaks
from planner.diagnosis.tuning.peaks import Peak
from workloads import declared

NETWORK = "net"  # the class of metrics that the network's peak is held against


@dataclass(frozen=True, slots=True)
class Roof:
    """The best that a ``part`` of a host measured (B/s or operations a second by ``unit``; None where nothing did)
    beside its theoretical peak.
    """

    host: str
    part: Message
    best: float | None
    peak: Peak
    unit: str = "B/s"


def roofs(facts: Mapping[str, Facts], measured: figures.Figures | None, memory: Mapping[str, float]) -> list[Roof]:
    """Every peak that facts tell, host by host. ``memory``: host to its best memory bandwidth."""
    hosts = [] if measured is None else [host for _, host in measured.machines]
    network = {} if measured is None else _between(measured, hosts)
    devices = {} if measured is None else _devices(Table(measured, hosts))
    result = []
    for host, own in facts.items():
        gpu = own.gpus[0] if len({g.name for g in own.gpus}) == 1 else None
        listed = [
            (message("memory"), memory.get(host), peaks.memory(own), "B/s"),
            (message("network"), network.get(host), peaks.network(own), "B/s"),
        ]
        if gpu is not None:
            reached = {kind: devices.get((host, kind)) for kind in ("pcie", "device_memory", "device_compute")}
            listed += [
                (message("PCIe of a GPU"), reached["pcie"], peaks.pcie(gpu, own.pcie), "B/s"),
                (message("memory of a GPU"), reached["device_memory"], peaks.device_memory(gpu), "B/s"),
                (message("16-bit floats of a GPU"), reached["device_compute"], peaks.dense16(gpu), "FLOP/s"),
            ]
        result += [Roof(host, part, best, top, unit) for part, best, top, unit in listed if top is not None]
    return result


def _between(measured: figures.Figures, hosts: list[str]) -> dict[str, float]:
    """Host to the best rate that it sent to or received from another, B/s."""
    rows = pairs.rows_of(measured, hosts)
    rows = rows[(rows["class"] == NETWORK) & (rows["unit"] == "B/s")]
    best: dict[str, float] = {}
    for a, b, value in rows[["a", "b", "value"]].itertuples(index=False, name=None):
        for host in (hosts[int(a)], hosts[int(b)]):
            best[host] = max(best.get(host, 0.0), float(np.exp(value)))
    return best


def _devices(table: Table) -> dict[tuple[str, str], float]:
    """Host and kind of peak to the best figure that its manifest holds against such a peak."""
    best: dict[tuple[str, str], float] = {}
    for row in range(len(table.keys)):
        about = table.benchmark(row)
        held = declared.peak(about["workload"], about["case"], about["metric"])
        if held is None or held.of in ("memory", "link"):
            continue
        for host, column in table.place.items():
            value = float(table.values[row, column])
            if not np.isnan(value):
                key = host, held.of
                best[key] = max(best.get(key, 0.0), float(np.exp(value)) * held.traffic)
    return best
