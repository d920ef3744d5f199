"""Define rules about memory: its bandwidth, modules, nodes, pages and errors."""

from __future__ import annotations

from collections import Counter

from fleetmark.base.text import Message, count, message
from fleetmark.planner import peak
from fleetmark.planner.diagnosis.tuning.rule import AGAIN, KERNEL, MEMORY_AGAIN, OF_MEMORY, Rule, Subject
from fleetmark.planner.diagnosis.tuning.setting import Setting, file
from fleetmark.planner.peak import table

ENOUGH = 0.75  # minimum share of the theoretical memory bandwidth
WRITE_ALLOCATE = 4 / 3  # bytes moved per byte counted, if stores read the line first
REMOTE = 0.10  # share of pages on a remote node above which their placement deserves a check
POOR = 0.5  # minimum share of the local node's bandwidth


def _bandwidth(s: Subject) -> Message | None:
    top = peak.full_memory(s.facts) or peak.memory(s.facts)
    if top is None or s.memory_bandwidth is None or s.memory_bandwidth * WRITE_ALLOCATE >= ENOUGH * top.rate:
        return None
    return message(
        "memory bandwidth is {share} of the theoretical {peak} ({how}), at most {moved} if stores read first",
        share=f"{s.memory_bandwidth / top.rate:.0%}",
        moved=f"{s.memory_bandwidth * WRITE_ALLOCATE / top.rate:.0%}",
        peak=f"{top.rate / 1e9:.1f} GB/s",
        how=top.basis,
    )


def _modules(s: Subject) -> Message | None:
    sizes = Counter(d.size for d in s.facts.dimms if d.size)
    sockets = s.facts.cpu.sockets or 1
    populated = sum(sizes.values())
    channels = peak.channels(s.facts)
    if len(sizes) > 1:
        return message("memory modules differ in size ({n} sizes)", n=len(sizes))
    if channels and populated and populated < channels:
        return message("{n} memory modules for {channels}", n=populated, channels=count(channels, "channel"))
    if populated and populated % sockets:
        return message("{n} memory modules on {sockets} sockets: unequal", n=populated, sockets=sockets)
    return None


def _memory_speed(s: Subject) -> Message | None:
    """Find modules that run below their rating and below the speed that the processor supports.

    Two modules per channel are expected to run slower. Processors that the table lacks are skipped.
    """
    supported, channels = table.memory_mts(s.facts.cpu.model or ""), peak.channels(s.facts)
    modules = [d for d in s.facts.dimms if d.size]
    if supported is None or (channels and len(modules) > channels):
        return None
    slower = [d for d in modules if 0 < (d.configured_mts or 0) < min(d.rated_mts or 0, supported.value)]
    if not slower:
        return None
    return message(
        "memory runs at {configured} MT/s, rated for {rated}; the processor supports {supported}",
        configured=min(d.configured_mts or 0 for d in slower),
        rated=max(d.rated_mts or 0 for d in slower),
        supported=f"{supported.value:.0f}",
    )


def _remote(s: Subject) -> Message | None:
    nodes = [n for n in s.facts.numa if n.local_pages is not None and n.remote_pages is not None]
    pages = sum((n.local_pages or 0) + (n.remote_pages or 0) for n in nodes)
    remote = sum(n.remote_pages or 0 for n in nodes)
    if s.remote_bandwidth is not None and s.remote_bandwidth < POOR:
        return message(
            "the memory of another node gives {share} of the bandwidth of a node's own",
            share=f"{s.remote_bandwidth:.0%}",
        )
    if len(nodes) > 1 and pages and remote > REMOTE * pages:
        return message("{share} of the pages since boot were taken on another node", share=f"{remote / pages:.0%}")
    return None


def _numa_balancing(s: Subject) -> Message | None:
    if s.facts.numa_balancing and s.facts.gpus:
        return message("automatic NUMA balancing is on, on a host with GPUs")
    return None


def _hugepages(s: Subject) -> Message | None:
    return message("transparent hugepages are off") if s.facts.thp == "never" else None


def _corrected(s: Subject) -> Message | None:
    wrong, fixed = s.facts.edac_uncorrected or 0, s.facts.edac_corrected or 0
    if fixed and not wrong:
        return message("memory errors since boot: {fixed} corrected, {wrong} uncorrected", fixed=fixed, wrong=wrong)
    return None


def _uncorrected(s: Subject) -> Message | None:
    wrong, fixed = s.facts.edac_uncorrected or 0, s.facts.edac_corrected or 0
    if wrong:
        return message("memory errors since boot: {fixed} corrected, {wrong} uncorrected", fixed=fixed, wrong=wrong)
    return None


def _set_numa_balancing(s: Subject) -> Setting | None:
    if s.facts.numa_balancing is None:
        return None
    return file("/proc/sys/kernel/numa_balancing", "0")


def _set_hugepages(s: Subject) -> Setting | None:
    if not s.facts.thp:
        return None
    return file("/sys/kernel/mm/transparent_hugepage/enabled", "madvise")


RULES = (
    Rule(
        1,
        "memory-bandwidth",
        "best memory bandwidth; processor, memory speed",
        _bandwidth,
        message("fill every channel; try NUMA per socket (NPS4, SNC) and pinned threads"),
        retest=MEMORY_AGAIN,
        source=message("McCalpin 1995: stores that read the cache line first move 4/3 of the bytes counted"),
        measured=True,
        classes=OF_MEMORY,
    ),
    Rule(
        2,
        "memory-modules",
        "memory slots",
        _modules,
        message("put modules of one size into every channel"),
        retest=MEMORY_AGAIN,
        source="the processor vendor's memory population rules",
    ),
    Rule(
        3,
        "memory-speed",
        "rated and configured speed of modules, processor",
        _memory_speed,
        message("the speed setting of the BIOS"),
        retest=MEMORY_AGAIN,
        source="SMBIOS specification, type 17, DSP0134; speeds of processors: planner/peak/peaks.yml",
    ),
    Rule(
        7,
        "numa-remote",
        "numastat of the nodes; bandwidth between nodes",
        _remote,
        message("bind processes and their memory to one node"),
        retest=MEMORY_AGAIN,
        source=f"{KERNEL}/numastat.html",
        classes=OF_MEMORY,
    ),
    Rule(
        8,
        "numa-balancing",
        "kernel.numa_balancing, GPUs",
        _numa_balancing,
        message("sysctl kernel.numa_balancing=0 for pinned or GPU jobs"),
        retest=AGAIN,
        source=f"{KERNEL}/sysctl/kernel.html",
        setting=_set_numa_balancing,
    ),
    Rule(
        9,
        "hugepages",
        "transparent_hugepage/enabled",
        _hugepages,
        message("madvise, where dTLB misses cost more than 2% of cycles"),
        retest=AGAIN,
        source=f"{KERNEL}/mm/transhuge.html",
        setting=_set_hugepages,
    ),
    Rule(
        14,
        "memory-errors",
        "EDAC counters",
        _corrected,
        message("find the module by EDAC; replace it if the count rises"),
        retest=message("the facts again after a day of load"),
        source="https://docs.kernel.org/driver-api/edac.html",
    ),
    Rule(
        14,
        "memory-uncorrected",
        "EDAC counters",
        _uncorrected,
        message("take the host out of work (drain it), find the module by EDAC, and replace it"),
        retest=message("the facts again after a day of load"),
        source="https://docs.kernel.org/admin-guide/RAS/main.html: an uncorrected error may be fatal",
    ),
)
