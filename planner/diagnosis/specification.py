"""Compare the facts of machines with their specification, and compute the peaks of a fully populated machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from fleetmark.base.facts import Facts
from fleetmark.planner import peak

Scalar = str | float
Specification = Mapping[str, Scalar]  # the expected values of a machine, by the names of FACTS
RATE = "B/s"
_BYTES = 8  # bytes that a memory channel moves in one transfer


def _numbers(values: Iterable[float | int | None]) -> tuple[Scalar, ...]:
    return tuple(float(v) for v in values if v is not None)


def _texts(values: Iterable[str | None]) -> tuple[Scalar, ...]:
    return tuple(v for v in values if v)


def _modules(f: Facts) -> tuple[Scalar, ...]:
    return _numbers([sum(1 for d in f.dimms if d.size)] if f.dimms else [])


# The unit of each fact ("" for texts) and its values: one, or one per device. Empty if the host does not report it.
FACTS: Mapping[str, tuple[str, Callable[[Facts], tuple[Scalar, ...]]]] = {
    "cpu.model": ("", lambda f: _texts([f.cpu.model])),
    "cpu.sockets": ("1", lambda f: _numbers([f.cpu.sockets])),
    "cpu.cores": ("1", lambda f: _numbers([f.cpu.cores])),
    "cpu.microcode": ("", lambda f: _texts([f.cpu.microcode])),
    "bios": ("", lambda f: _texts([f.bios])),
    "kernel": ("", lambda f: _texts([f.kernel])),
    "os": ("", lambda f: _texts([f.os])),
    "product": ("", lambda f: _texts([f.product])),
    "load": ("1", lambda f: _numbers([f.load1])),
    "swap": ("B", lambda f: _numbers([f.swap])),
    "work.free": ("B", lambda f: _numbers([f.work_free])),
    "governor": ("", lambda f: _texts([f.governor])),
    "memory.modules": ("1", _modules),
    "memory.channels": ("1", lambda f: _numbers([peak.channels(f)])),
    "memory.mts": ("1", lambda f: _numbers(d.configured_mts for d in f.dimms if d.size)),
    "memory.total": ("B", lambda f: _numbers([f.memory])),
    "memory.size": ("B", lambda f: _numbers([sum(d.size or 0 for d in f.dimms)] if f.dimms else [])),
    "memory.corrected": ("1", lambda f: _numbers([f.edac_corrected])),
    "memory.uncorrected": ("1", lambda f: _numbers([f.edac_uncorrected])),
    "ports": ("1", lambda f: _numbers([sum(1 for n in f.nics if n.state == "up" and n.speed)])),
    "port.rate": (RATE, lambda f: _numbers(n.speed for n in f.nics if n.state == "up" and n.speed)),
    "port.max_rate": (RATE, lambda f: _numbers(n.max_speed for n in f.nics if n.state == "up" and n.speed)),
    "port.driver": ("", lambda f: _texts(n.driver for n in f.nics if n.state == "up" and n.speed)),
    "rdma": ("1", lambda f: _numbers([len(f.rdma)])),
    "pcie.width": ("1", lambda f: _numbers(_cards(f))),
    "gpus": ("1", lambda f: _numbers([len(f.gpus)])),
    "gpu.model": ("", lambda f: _texts(g.name for g in f.gpus)),
    "gpu.memory": ("B", lambda f: _numbers(g.memory for g in f.gpus)),
    "gpu.persistence": ("1", lambda f: _numbers(g.persistence for g in f.gpus)),
    "gpu.ecc": ("1", lambda f: _numbers(g.ecc for g in f.gpus)),
    "gpu.remap_pending": ("1", lambda f: _numbers(g.remap_pending for g in f.gpus)),
    "gpu.nvlink_errors": ("1", lambda f: _numbers(g.nvlink_errors for g in f.gpus)),
    "gpu.driver": ("", lambda f: _texts(g.driver for g in f.gpus)),
    "gpu.nvlinks": ("1", lambda f: _numbers(g.nvlinks for g in f.gpus)),
    "gpu.pcie_width": ("1", lambda f: _numbers(g.pcie_width for g in f.gpus)),
    "gpu.power_limit": ("W", lambda f: _numbers(g.power_limit for g in f.gpus)),
    "gpu.ecc_uncorrectable": ("1", lambda f: _numbers(g.ecc_uncorrected for g in f.gpus)),
    "driver": ("", lambda f: _texts(g.driver for g in f.gpus)),  # the same as gpu.driver
    "xid": ("1", lambda f: _numbers([sum(f.xids.values())] if f.xids is not None else [])),
    "xid.code": ("", lambda f: _texts((sorted(f.xids) or ["none"]) if f.xids is not None else [])),
}
# Facts from which a specification is learned. Error counters and software settings are excluded.
LEARNED = (
    *("cpu.model", "cpu.sockets", "cpu.cores", "memory.modules", "memory.channels", "memory.mts", "memory.size"),
    *("ports", "port.rate", "pcie.width", "gpus", "gpu.model", "gpu.nvlinks", "gpu.pcie_width", "gpu.power_limit"),
)


def _cards(f: Facts) -> list[int | None]:
    """Return the link widths of network controllers and accelerators."""
    return [
        link.width for link in f.pcie if any(word in (link.kind or "") for word in ("Ethernet", "3D", "Infiniband"))
    ]


def states_memory(facts: Facts, machine: Specification) -> bool:
    """Return whether ``machine``, the processor or the names of slots state which modules a full machine has."""
    given = any(name in machine for name in ("memory.modules", "memory.channels", "memory.size"))
    return given or peak.channels(facts) is not None or peak.named_channels(facts) > 0


def learned(hosts: Sequence[Facts]) -> dict[str, Scalar]:
    """Return the values of the best of these hosts.

    A number is the highest over the hosts, where the lowest device of each host counts. A text is the most frequent
    one. Facts that no host reports, and zeros, are omitted.
    """
    result: dict[str, Scalar] = {}
    for name in LEARNED:
        unit, read = FACTS[name]
        values = [read(f) for f in hosts]
        if unit:
            lowest = [min(float(v) for v in each) for each in values if each]
            if lowest and max(lowest) > 0:
                result[name] = max(lowest)
        elif texts := Counter(str(v) for each in values for v in each):
            result[name] = texts.most_common(1)[0][0]
    return result


def memory_rate(facts: Facts, machine: Specification) -> float | None:
    """Return the memory bandwidth in B/s with a module in every channel.

    The number of channels comes from ``machine``, or else from the processor, or else from the names of all slots,
    including empty ones. The speed comes from ``machine``, or else from the modules. Return None if they are unknown:
    for an unknown processor with empty slots whose names do not identify channels, too.
    """
    channels, mts = machine.get("memory.channels"), machine.get("memory.mts")
    if channels is None and mts is None:
        full = peak.full_memory(facts) or peak.slots(facts)
        return full.rate if full else None
    number = float(channels) if channels is not None else float(peak.channels(facts) or 0)
    configured = [d.configured_mts for d in facts.dimms if d.size and d.configured_mts]
    speed = float(mts) if mts is not None else float(min(configured, default=0))
    return number * speed * 1e6 * _BYTES or None
