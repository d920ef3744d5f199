"""Assign CPUs to the instances of a network: adjacent cores, one socket and NUMA node after the other."""

from __future__ import annotations

import os
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


def cores() -> list[tuple[int, ...]]:
    """Return the physical cores that this process may use, each as its CPUs, ordered by socket, NUMA node and
    number.
    """
    cpus_by_core: dict[tuple[int, int, str], list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        here = CPUS / f"cpu{cpu}"
        package = int(_read(here / "topology" / "physical_package_id") or 0)
        node = min((int(p.name[4:]) for p in here.glob("node[0-9]*")), default=0)
        siblings = _read(here / "topology" / "thread_siblings_list") or str(cpu)
        cpus_by_core.setdefault((package, node, siblings), []).append(cpu)
    return [tuple(cpus) for _, cpus in sorted(cpus_by_core.items(), key=lambda item: (item[0][:2], item[1]))]


def place(instances: int, threads: int) -> tuple[list[frozenset[int]], str]:
    """Return the CPUs of each instance, and a sentence that describes the placement."""
    available = cores()
    if instances * threads > len(available):
        everything = frozenset(cpu for core in available for cpu in core)
        note = f"not pinned: {instances} x {threads} threads are more than the {len(available)} cores"
        return [everything] * instances, note
    sets = []
    for i in range(instances):
        mine = available[i * threads : (i + 1) * threads]
        sets.append(frozenset(cpu for core in mine for cpu in core))
    return sets, f"{instances} x {threads} of {len(available)} cores"


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""  # as in containers without it
