"""The rules, one small unit each: what it looks at, when it speaks, what it suggests, how to retest, and why.

Numbers are those of the methodology. A rule sees one host at a time and says what is so there; whether that costs
anything only a measurement can say, so a rule from facts alone claims no gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, count, message
from planner.diagnosis.tuning import peaks

KERNEL = "https://docs.kernel.org/admin-guide"
ENOUGH = 0.75  # of the theoretical memory bandwidth
WRITE_ALLOCATE = 4 / 3  # bytes moved per byte counted, where stores read the line first
ACCELERATORS = {"VGA compatible controller", "3D controller", "Processing accelerators"}


@dataclass(frozen=True, slots=True)
class Subject:
    """A host as rules see it. ``memory_bandwidth``: the best it measured with all cores, B/s. ``mtus``: frame sizes of
    active interfaces, by link speed, over all hosts of its kind."""

    facts: Facts
    memory_bandwidth: float | None = None
    mtus: Mapping[float, Counter[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """``inputs``: what it needs; ``evidence``: what it says of a host, None where it has nothing to say. ``measured``:
    whether a measurement supports a loss, else it is a fact only. ``reversible``: can be set and put back at run time.
    """

    number: int
    name: str
    inputs: str
    evidence: Callable[[Subject], Message | None]
    suggestion: Message
    retest: Message
    source: str
    measured: bool = False
    reversible: bool = False


def _bandwidth(s: Subject) -> Message | None:
    peak = peaks.memory(s.facts)
    if peak is None or s.memory_bandwidth is None or s.memory_bandwidth * WRITE_ALLOCATE >= ENOUGH * peak.value:
        return None
    return message(
        "memory bandwidth is {share} of the theoretical {peak} ({how}), at most {moved} if stores read first",
        share=f"{s.memory_bandwidth / peak.value:.0%}",
        moved=f"{s.memory_bandwidth * WRITE_ALLOCATE / peak.value:.0%}",
        peak=f"{peak.value / 1e9:.1f} GB/s",
        how=peak.worked_out,
    )


def _modules(s: Subject) -> Message | None:
    sizes = Counter(d.size for d in s.facts.dimms if d.size)
    sockets = s.facts.cpu.sockets or 1
    populated = sum(sizes.values())
    known = peaks.channels(s.facts.cpu.model or "")
    if len(sizes) > 1:
        return message("memory modules differ in size ({n} sizes)", n=len(sizes))
    if known and populated and populated < sockets * known[0]:
        return message("{n} memory modules for {channels} channels", n=populated, channels=f"{sockets} x {known[0]}")
    if populated and populated % sockets:
        return message("{n} memory modules on {sockets} sockets: unequal", n=populated, sockets=sockets)
    return None


def _memory_speed(s: Subject) -> Message | None:
    slower = [d for d in s.facts.dimms if d.rated_mts and d.configured_mts and d.configured_mts < d.rated_mts]
    if not slower:
        return None
    return message(
        "memory runs at {configured} MT/s, rated for {rated}",
        configured=min(d.configured_mts or 0 for d in slower),
        rated=max(d.rated_mts or 0 for d in slower),
    )


def _governor(s: Subject) -> Message | None:
    if s.facts.governor and "powersave" in s.facts.governor and "performance" not in (s.facts.epp or ""):
        return message("CPU frequency governor is {governor}", governor=s.facts.governor)
    return None


def _boost(s: Subject) -> Message | None:
    return message("CPU boost is off") if s.facts.boost is False else None


def _numa_balancing(s: Subject) -> Message | None:
    if s.facts.numa_balancing and s.facts.gpus:
        return message("automatic NUMA balancing is on, on a host with GPUs")
    return None


def _hugepages(s: Subject) -> Message | None:
    return message("transparent hugepages are off") if s.facts.thp == "never" else None


def _clocksource(s: Subject) -> Message | None:
    physical = s.facts.virtualisation in (None, "none") and s.facts.cpu.arch in (None, "x86_64")
    if physical and s.facts.clocksource and s.facts.clocksource != "tsc":
        return message("clocksource is {name}", name=s.facts.clocksource)
    return None


def _mitigations(s: Subject) -> Message | None:
    active = [n for n, how in s.facts.mitigations.items() if how.startswith("Mitigation")]
    return message("active mitigations: {n}", n=len(active)) if active else None


def _corrected(s: Subject) -> Message | None:
    wrong, fixed = s.facts.edac_uncorrected or 0, s.facts.edac_corrected or 0
    if wrong or fixed:
        return message("memory errors since boot: {fixed} corrected, {wrong} uncorrected", fixed=fixed, wrong=wrong)
    return None


def _is_disk(kind: str | None) -> bool:
    return "Non-Volatile" in (kind or "") or "storage" in (kind or "").lower()


def _slow_links(s: Subject, disks: bool) -> Message | None:
    slow = [
        link
        for link in s.facts.pcie
        if "bridge" not in (link.kind or "").lower()
        and _is_disk(link.kind) is disks
        and (
            (link.width and link.max_width and link.width < link.max_width)
            or (not _saves_power(link.kind) and link.speed and link.max_speed and link.speed < link.max_speed)
        )
    ]
    if not slow:
        return None
    first = slow[0]
    return message(
        "PCIe link of {name} runs at {speed:g} GT/s x{width}, at best {most:g} GT/s x{lanes} ({n} such)",
        name=first.name,
        speed=first.speed or 0.0,
        width=first.width or 0,
        most=first.max_speed or 0.0,
        lanes=first.max_width or 0,
        n=len(slow),
    )


def _saves_power(kind: str | None) -> bool:
    return kind in ACCELERATORS  # an idle accelerator lowers its link's speed


def _pcie(s: Subject) -> Message | None:
    return _slow_links(s, disks=False)


def _disk_links(s: Subject) -> Message | None:
    return _slow_links(s, disks=True)


def _acs(s: Subject) -> Message | None:
    if s.facts.acs_redirect and len(s.facts.gpus) > 1 and s.facts.virtualisation in (None, "none"):
        return message(
            "PCIe bridges that send peer-to-peer traffic up to the root (ACS): {n}", n=len(s.facts.acs_redirect)
        )
    return None


def _iommu(s: Subject) -> Message | None:
    if s.facts.iommu and "DMA" in s.facts.iommu and s.facts.virtualisation in (None, "none"):
        return message("the IOMMU translates DMA ({types})", types=s.facts.iommu)
    return None


def _gpu_throttle(s: Subject) -> Message | None:
    reasons = sorted({r for g in s.facts.gpus for r in g.slowdown})
    return message("GPUs are slowed down: {reasons}", reasons=", ".join(reasons)) if reasons else None


def _persistence(s: Subject) -> Message | None:
    off = [g for g in s.facts.gpus if g.persistence is False]
    return message("persistence mode is off on {gpus}", gpus=count(len(off), "GPU")) if off else None


def _gpu_errors(s: Subject) -> Message | None:
    bad = [g for g in s.facts.gpus if g.ecc_uncorrected or g.remap_pending]
    if bad:
        return message("uncorrectable memory errors or a pending row remap on {gpus}", gpus=count(len(bad), "GPU"))
    return None


def _mtu(s: Subject) -> Message | None:
    for nic in s.facts.nics:
        usual = s.mtus.get(nic.speed or 0.0, Counter())
        if nic.state == "up" and nic.mtu and nic.speed and len(usual) > 1:
            most, hosts = usual.most_common(1)[0]
            if nic.mtu != most and hosts > sum(usual.values()) / 2:
                return message(
                    "MTU of {name} is {mtu}, {most} on most hosts of its kind", name=nic.name, mtu=nic.mtu, most=most
                )
    return None


_AGAIN = message("the same suite before and after, in turns")

RULES = (
    Rule(
        1,
        "memory-bandwidth",
        "best memory bandwidth; processor, memory speed",
        _bandwidth,
        message("fill every channel; try NUMA per socket (NPS4, SNC) and pinned threads"),
        message("the memory suite again"),
        "McCalpin 1995: stores that read the line first move 4/3 of what is counted",
        measured=True,
    ),
    Rule(
        2,
        "memory-modules",
        "memory slots",
        _modules,
        message("put modules of one size into every channel"),
        message("the memory suite again"),
        "the processor vendor's memory population rules",
    ),
    Rule(
        3,
        "memory-speed",
        "rated and configured speed of modules",
        _memory_speed,
        message("one module per channel, or the speed setting of the BIOS"),
        message("the memory suite again"),
        "SMBIOS specification, type 17, DSP0134",
    ),
    Rule(
        4,
        "governor",
        "cpufreq governor, energy_performance_preference",
        _governor,
        message("set the governor to performance (cpupower frequency-set -g performance)"),
        _AGAIN,
        f"{KERNEL}/pm/cpufreq.html",
        reversible=True,
    ),
    Rule(
        5,
        "boost",
        "cpufreq boost",
        _boost,
        message("enable boost, or note that it is off on purpose"),
        _AGAIN,
        f"{KERNEL}/pm/cpufreq.html",
        reversible=True,
    ),
    Rule(
        8,
        "numa-balancing",
        "kernel.numa_balancing, GPUs",
        _numa_balancing,
        message("sysctl kernel.numa_balancing=0 for pinned or GPU jobs"),
        _AGAIN,
        f"{KERNEL}/sysctl/kernel.html",
        reversible=True,
    ),
    Rule(
        9,
        "hugepages",
        "transparent_hugepage/enabled",
        _hugepages,
        message("madvise, where dTLB misses cost more than 2% of cycles"),
        _AGAIN,
        f"{KERNEL}/mm/transhuge.html",
        reversible=True,
    ),
    Rule(
        10,
        "clocksource",
        "current clocksource",
        _clocksource,
        message("find out why the kernel rejected the TSC (dmesg), usually firmware"),
        message("the operating system suite again"),
        f"{KERNEL}/kernel-parameters.html",
    ),
    Rule(
        11,
        "mitigations",
        "vulnerabilities of the processor",
        _mitigations,
        message("nothing: whether to keep them is for the owner of security to decide"),
        _AGAIN,
        f"{KERNEL}/hw-vuln/index.html",
    ),
    Rule(
        14,
        "memory-errors",
        "EDAC counters",
        _corrected,
        message("find the module by EDAC; replace it if the count rises"),
        message("the facts again after a day of load"),
        "https://docs.kernel.org/driver-api/edac.html",
    ),
    Rule(
        15,
        "pcie-links",
        "PCIe link status and capability",
        _pcie,
        message("reseat the card, look at riser and BIOS; confirm under load"),
        message("the facts again while the card works"),
        "PCI Express Base Specification, Link Status register",
    ),
    Rule(
        16,
        "acs",
        "ACS control of bridges, GPUs",
        _acs,
        message("disable ACS redirection on bare metal; never where virtual machines share the host"),
        message("the collective suite again"),
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    ),
    Rule(
        17,
        "iommu",
        "types of IOMMU domains",
        _iommu,
        message("iommu=pt on bare metal"),
        message("the storage and network suites again"),
        f"{KERNEL}/kernel-parameters.html",
    ),
    Rule(
        18,
        "gpu-throttle",
        "clock event reasons of GPUs",
        _gpu_throttle,
        message("look at cooling and power supply"),
        message("the facts again under load"),
        "nvidia-smi manual, clocks_event_reasons",
    ),
    Rule(
        19,
        "gpu-persistence",
        "persistence mode",
        _persistence,
        message("nvidia-smi -pm 1, or the persistence daemon"),
        _AGAIN,
        "nvidia-smi manual, persistence mode",
        reversible=True,
    ),
    Rule(
        20,
        "gpu-errors",
        "ECC counters, row remapping",
        _gpu_errors,
        message("drain the host and reset the GPU; replace it if it comes back"),
        message("the facts again after the reset"),
        "NVIDIA, GPU memory error management: row remapping",
    ),
    Rule(
        23,
        "mtu",
        "MTU of interfaces, of all hosts of the kind",
        _mtu,
        message("set one MTU on all hosts and switches of the network"),
        message("the network suite again"),
        "RFC 1191",
        reversible=True,
    ),
    Rule(
        25,
        "disk-links",
        "PCIe link status of storage",
        _disk_links,
        message("reseat the drive, look at backplane and cables"),
        message("the storage suite again"),
        "PCI Express Base Specification, Link Status register",
    ),
)

# Rules of the methodology whose inputs no campaign records yet: they are never silently passed.
WITHOUT_INPUTS = {
    6: "residency of C-states",
    7: "numastat",
    12: "an A/B run with SMT off",
    13: "steal and pressure of the run",
    21: "NVLink counters",
    22: "the NET log of collectives",
    24: "RoCE counters",
}
