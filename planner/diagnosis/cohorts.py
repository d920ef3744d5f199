"""Which hosts may be held against each other: those of one kind and one firmware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fleetmark.base.facts import Facts, Identity


@dataclass(frozen=True, slots=True)
class Cohort:
    """Hosts of one ``kind``. ``hosts`` are judged against ``peers``: the same hosts, or all of the kind where too few
    share a firmware. ``firmware``: of ``hosts``; ``mixed``: their peers have others.
    """

    kind: str
    firmware: str
    hosts: tuple[str, ...]
    peers: tuple[str, ...] = field(default=())
    mixed: bool = False


def kind_of(facts: Facts | Identity | None, label: str = "") -> tuple[str, str]:
    """The kind of a host (product, processors, accelerators; ``label``: its generation) and its firmware. Memory is
    no part of it: a host that lost a module stays with its peers.
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
    """``kinds``: host to kind and firmware. Firmwares of fewer than ``least`` hosts are held against the kind."""
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


# What may explain that hosts of one kind perform in two groups.
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
    "disk model": lambda f: _several(d.model for d in f.disks),
    "network speed in Gbit/s": lambda f: _several(f"{n.speed * 8 / 1e9:g}" for n in f.nics if n.speed),
}
_FEW = 2  # values of a fact on one side: more are no explanation


def difference(slower: Iterable[Facts], faster: Iterable[Facts]) -> list[tuple[str, str, str]]:
    """The facts that tell two groups of hosts apart without exception: the name, and each group's values."""
    ours, theirs = list(slower), list(faster)
    result = []
    for name, value_of in TELLING.items():
        here, others = {value_of(f) for f in ours}, {value_of(f) for f in theirs}
        if here and others and not here & others and "" not in here | others and max(len(here), len(others)) <= _FEW:
            result.append((name, " or ".join(sorted(here)), " or ".join(sorted(others))))
    return result
