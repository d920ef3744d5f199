"""Define rules about PCIe: links, redirection, translation, and drives."""

from __future__ import annotations

from fleetmark.base.text import Message, message
from fleetmark.planner.diagnosis.tuning.rule import KERNEL, OF_NETWORK, OF_STORAGE, STORAGE_AGAIN, Rule, Subject
from fleetmark.planner.diagnosis.tuning.setting import Item, Setting, is_interface

ACCELERATORS = {"VGA compatible controller", "3D controller", "Processing accelerators"}


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
    return kind in ACCELERATORS  # the link of an idle accelerator slows down


def _pcie(s: Subject) -> Message | None:
    return _slow_links(s, disks=False)


def _disk_links(s: Subject) -> Message | None:
    return _slow_links(s, disks=True)


def _acs(s: Subject) -> Message | None:
    if s.facts.acs_redirect and len(s.facts.gpus) > 1 and s.physical:
        return message(
            "PCIe bridges that send peer-to-peer traffic up to the root (ACS): {n}", n=len(s.facts.acs_redirect)
        )
    return None


def _iommu(s: Subject) -> Message | None:
    if s.facts.iommu and "DMA" in s.facts.iommu and s.physical:
        return message("the IOMMU translates DMA ({types})", types=s.facts.iommu)
    return None


def _queued(s: Subject) -> list[str]:
    """Return NVMe drives with an active I/O scheduler, if their names are safe in a path."""
    return [
        d.name
        for d in s.facts.disks
        if d.name.startswith("nvme") and d.scheduler not in (None, "none") and is_interface(d.name)
    ]


def _scheduler(s: Subject) -> Message | None:
    queued = _queued(s)
    if not queued:
        return None
    kind = next(d.scheduler for d in s.facts.disks if d.name == queued[0])
    return message("the I/O scheduler of {name} is {kind} ({n} such)", name=queued[0], kind=kind, n=len(queued))


def _set_scheduler(s: Subject) -> Setting | None:
    names = _queued(s) or [d.name for d in s.facts.disks if d.scheduler and is_interface(d.name)]
    items = tuple(Item(value="none", path=f"/sys/block/{name}/queue/scheduler") for name in names)
    return Setting(items) if items else None


RULES = (
    Rule(
        15,
        "pcie-links",
        "PCIe link status and capability",
        _pcie,
        message("reseat the card, look at riser and BIOS; confirm under load"),
        retest=message("the facts again while the card works"),
        source="PCI Express Base Specification, Link Status register",
    ),
    Rule(
        16,
        "acs",
        "ACS control of bridges, GPUs",
        _acs,
        message("disable ACS redirection on bare metal; never where virtual machines share the host"),
        retest=message("the collective suite again"),
        source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    ),
    Rule(
        17,
        "iommu",
        "types of IOMMU domains",
        _iommu,
        message("iommu=pt on bare metal"),
        retest=message("the storage and network suites again"),
        source=f"{KERNEL}/kernel-parameters.html",
        classes=(*OF_STORAGE, *OF_NETWORK),
    ),
    Rule(
        25,
        "disk-links",
        "PCIe link status of storage",
        _disk_links,
        message("reseat the drive, look at backplane and cables"),
        retest=STORAGE_AGAIN,
        source="PCI Express Base Specification, Link Status register",
    ),
    Rule(
        25,
        "disk-scheduler",
        "I/O scheduler of NVMe drives",
        _scheduler,
        message("no scheduler for NVMe drives (none), where a trial shows that it is faster"),
        retest=STORAGE_AGAIN,
        source="https://docs.kernel.org/block/switching-sched.html",
        classes=OF_STORAGE,
        setting=_set_scheduler,
    ),
)
