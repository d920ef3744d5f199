"""Group hosts that can be compared with each other: hosts of the same kind with the same firmware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fleetmark.base.facts import Facts, Identity


@dataclass(frozen=True, slots=True)
class Cohort:
    """A group of comparable hosts of one ``kind``.

    ``hosts`` are evaluated against ``peers``: the same hosts, or all hosts of the kind if too few share a firmware.
    ``firmware`` is the firmware of ``hosts``; ``mixed`` is True if their peers have other firmware.
    """

    kind: str
    firmware: str
    hosts: tuple[str, ...]
    peers: tuple[str, ...] = field(default=())
    mixed: bool = False


def kind_of(facts: Facts | Identity | None, label: str = "") -> tuple[str, str]:
    """Return the kind of a host (product, processors, accelerators) and its firmware.

    ``label`` is the host's generation. Memory is not part of the kind, so a host that lost a module stays with its
    peers.
    """
    if facts is None:
        return label or "hosts without facts", ""
    gpus = Counter(g.name for g in facts.gpus)
    parts = [
        label,
        facts.product or facts.vendor or "",
        f"{facts.cpu.sockets or 1} x {facts.cpu.model}" if facts.cpu.model else f"{facts.cpu.threads or '?'} CPUs",
        *(sorted(gpus)),
    ]
    firmware = [
        f"BIOS {facts.bios}" if facts.bios else "",
        f"microcode {facts.cpu.microcode}" if facts.cpu.microcode else "",
    ]
    return ", ".join(p for p in parts if p), ", ".join(f for f in firmware if f)


def cohorts(kinds: Mapping[str, tuple[str, str]], least: int) -> list[Cohort]:
    """Return the cohorts of hosts; ``kinds`` maps each host to its kind and firmware.

    A firmware with fewer than ``least`` hosts is compared with all hosts of its kind.
    """
    of_kind: dict[str, dict[str, list[str]]] = {}
    for host, (kind, firmware) in kinds.items():
        of_kind.setdefault(kind, {}).setdefault(firmware, []).append(host)
    result = []
    for kind, by_firmware in of_kind.items():
        everyone = tuple(host for hosts in by_firmware.values() for host in hosts)
        for firmware, hosts in by_firmware.items():
            alone = len(hosts) < least and len(by_firmware) > 1
            result.append(Cohort(kind, firmware, tuple(hosts), everyone if alone else tuple(hosts), alone))
    return result


def _several(values: Iterable[object]) -> str:
    return ", ".join(sorted({str(v) for v in values if v is not None}))


# Facts that can explain why hosts of one kind form two groups of performance.
TELLING: Mapping[str, Callable[[Facts], str]] = {
    "governor": lambda f: f.governor or "",
    "energy_performance_preference": lambda f: f.epp or "",
    "boost": lambda f: str(f.boost),
    "SMT": lambda f: str(f.smt),
    "transparent hugepages": lambda f: f.thp or "",
    "NUMA balancing": lambda f: str(f.numa_balancing),
    "NUMA nodes": lambda f: str(len(f.numa)),
    "clocksource": lambda f: f.clocksource or "",
    "memory modules": lambda f: str(sum(1 for d in f.dimms if d.size)) if f.dimms else "",
    "memory speed in MT/s": lambda f: _several(d.configured_mts for d in f.dimms),
    "BIOS": lambda f: f.bios or "",
    "microcode": lambda f: f.cpu.microcode or "",
    "kernel": lambda f: f.kernel or "",
    "kernel command line": lambda f: f.cmdline or "",
    "IOMMU": lambda f: f.iommu or "",
    "virtualisation": lambda f: f.virtualisation or "",
    "GPU driver": lambda f: _several(g.driver for g in f.gpus),
    "disk model": lambda f: _several(d.model for d in f.disks),
    "network speed in Gbit/s": lambda f: _several(f"{n.speed * 8 / 1e9:g}" for n in f.nics if n.speed),
}
CHEAP: Mapping[str, Callable[[Facts | Identity], str]] = {  # facts that an Identity also has
    "BIOS": lambda f: f.bios or "",
    "microcode": lambda f: f.cpu.microcode or "",
    "kernel": lambda f: f.kernel or "",
    "GPU driver": lambda f: _several(g.driver for g in f.gpus),
}
_FEW = 2  # maximum number of values of a fact in one group; with more, the fact explains nothing


def difference(slower: Iterable[Facts], faster: Iterable[Facts]) -> list[tuple[str, str, str]]:
    """Return the facts that separate two groups of hosts without exception: each fact's name, and its values in each
    group.
    """
    ours, theirs = list(slower), list(faster)
    result = []
    for name, value_of in TELLING.items():
        here, others = {value_of(f) for f in ours}, {value_of(f) for f in theirs}
        if here and others and not here & others and "" not in here | others and max(len(here), len(others)) <= _FEW:
            result.append((name, " or ".join(sorted(here)), " or ".join(sorted(others))))
    return result
