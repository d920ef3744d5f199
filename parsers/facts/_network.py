"""Read the network interfaces and RDMA devices of a host: links, rings, interrupts, and RoCE pauses."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.base.facts import MOST_IRQS, Nic, NumaNode
from fleetmark.parsers.facts._common import id_spans, integer, text_or_none
from fleetmark.parsers.facts._raw import Raw
from fleetmark.parsers.kit import congestion

_RDMA = re.compile(r"/sys/class/infiniband/([A-Za-z0-9][A-Za-z0-9_.-]{0,63})/node_type")
_OF_DEVICE = re.compile(r"/sys/class/infiniband/([A-Za-z0-9][A-Za-z0-9_.-]{0,63})/device/net/[^/]{1,15}")
# Link modes by their speed in Mbit/s: numbers of bits in linux/ethtool.h, enum ethtool_link_mode_bit_indices.
_MODES: Mapping[int, tuple[int, ...]] = {
    10: (0, 1, 92, *range(99, 103)),
    100: (2, 3, 67, 90, 91),
    1_000: (4, 5, 17, 41, 68),
    2_500: (15, 47),
    5_000: (48,),
    10_000: (12, 18, 19, 20, *range(42, 47)),
    20_000: (21, 22),
    25_000: (31, 32, 33),
    40_000: (23, 24, 25, 26),
    50_000: (34, 35, 40, *range(52, 57)),
    56_000: (27, 28, 29, 30),
    100_000: (*range(36, 40), *range(57, 62), *range(75, 80)),
    200_000: (*range(62, 67), *range(80, 85), *range(103, 109)),
    400_000: (*range(69, 74), *range(85, 90), *range(109, 115)),
    800_000: (*range(93, 99), *range(115, 121)),
    1_600_000: (*range(121, 125),),
}
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def nics(raw: Raw, nodes: Sequence[NumaNode]) -> tuple[Nic, ...]:
    """Return the network interfaces except loopback, in the kernel's order of names."""
    addresses: dict[str, list[str]] = {}
    if raw.error("ip") is not None:
        raw.parsed("ip", lambda _: {})  # run only for its note
    for line in (raw.out("ip") or "").splitlines():
        if match := re.match(r"\d+: ([^\s@]+)(?:@\S+)?\s+inet6? (\S+)", line):
            addresses.setdefault(match[1], []).append(match[2])
    cpus = {node.id: frozenset(node.cpus) for node in nodes}
    devices = _roce(raw)
    result = (
        _nic(raw, name, tuple(addresses.get(name, ())), cpus, devices.get(name))
        for name in raw.doc.get("nics", ())
        if name != "lo"
    )
    return tuple(nic for nic in result if nic)


def rdma(raw: Raw) -> tuple[str, ...]:
    """Return the sorted names of RDMA devices (InfiniBand, RoCE, iWARP).

    Invalid names are omitted, because names become parts of commands.
    """
    matches = (_RDMA.fullmatch(path) for path in raw.files())
    return tuple(sorted(match[1] for match in matches if match))


def _pci(links: Mapping[str, Any], device: str) -> str | None:
    """Return the PCI address of a device, or of a virtio device's parent.

    Return None for other devices, such as USB and the buses of virtual machines.
    """
    target = str(links.get(device))
    if target.startswith("virtio"):
        target = str(links.get(f"{device}/.."))
    return target if _PCI.fullmatch(target) else None


def _nic(
    raw: Raw, name: str, addresses: tuple[str, ...], cpus: Mapping[int, frozenset[int]], device: str | None
) -> Nic | None:
    base = f"/sys/class/net/{name}/"
    megabits, node = integer(raw.file(base + "speed")), integer(raw.file(base + "device/numa_node"))
    values = {
        "name": name,
        "bus": _pci(raw.table("links"), base + "device"),
        "driver": text_or_none(raw.table("links").get(base + "device/driver")),
        # -1, 0 and 2^32-1 mean that the driver does not know the speed
        "speed": megabits * 1e6 / 8 if megabits is not None and 0 < megabits < 0xFFFFFFFF else None,
        "max_speed": _max_speed(raw.table("link_modes").get(name)),
        "mtu": integer(raw.file(base + "mtu")),
        "state": text_or_none(raw.file(base + "operstate")),
        "numa_node": node if node is not None and node >= 0 else None,
        "addresses": addresses,
        "missed": integer(raw.file(base + "statistics/rx_missed_errors")),
        **_ring(raw.table("ethtool", name, "rings")),
        **_interrupts(raw.table("interrupts", name), cpus.get(node) if node is not None else None),
        **(_congestion(raw, name, device) if device else {}),
    }
    return raw.fact(Nic, f"The interface {name}", values)


def _max_speed(mask: str | None) -> float | None:
    """Return the highest speed in B/s of a hexadecimal mask of supported link modes."""
    modes = int(mask, 16) if mask else 0
    speeds = [speed for speed, bits in _MODES.items() if any(modes >> bit & 1 for bit in bits)]
    return max(speeds) * 1e6 / 8 if speeds else None


def _ring(answer: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the number of entries of the receive ring and its limit, from ``ethtool -g``."""
    limit, _, now = str(answer.get("out") or "").partition("Current hardware settings:")
    maximum, entries = (re.search(r"(?m)^RX:\s+(\d{1,7})\b", text) for text in (limit, now))
    if answer.get("rc") != 0 or not maximum or not entries:
        return {}
    return {"ring": int(entries[1]), "ring_max": int(maximum[1])}


def _interrupts(affinity: Mapping[str, Any], numbers: frozenset[int] | None) -> dict[str, Any]:
    """Return an interface's interrupts, and how many of them are routed to CPUs outside its NUMA node (``numbers``)."""
    keys = {int(key): key for key in affinity if re.fullmatch(r"[0-9]{1,5}", key)}
    if not keys:
        return {}
    irqs = tuple(sorted(keys))[:MOST_IRQS]
    if not numbers:
        return {"irqs": irqs}
    cpus = sorted(numbers)
    return {"irqs": irqs, "irqs_remote": sum(_is_away(affinity[keys[n]], cpus) for n in irqs)}


def _is_away(text: Any, cpus: Sequence[int]) -> bool:
    """Return whether a list of CPUs has entries but none of ``cpus``, which are sorted.

    The list is not expanded, because a short text may name many CPUs.
    """
    spans = id_spans(text) or ()
    return bool(spans) and all(bisect_left(cpus, first) == bisect_left(cpus, last + 1) for first, last in spans)


def _roce(raw: Raw) -> dict[str, str]:
    """Return the RDMA device that uses each Ethernet interface, by interface."""
    result = {}
    for path, interface in raw.table("links").items():
        match = _OF_DEVICE.fullmatch(path)
        if match and raw.file(f"/sys/class/infiniband/{match[1]}/ports/1/link_layer") == "Ethernet":
            result[str(interface)] = match[1]
    return result


def _congestion(raw: Raw, name: str, device: str) -> dict[str, Any]:
    """Return a RoCE interface's figures about pauses and congestion; counters that the driver lacks are absent."""
    folder = f"/sys/class/infiniband/{device}/ports/1/hw_counters/"
    files = raw.files().items()
    of_rdma = {path.removeprefix(folder): integer(text) for path, text in files if path.startswith(folder)}
    lines = re.findall(
        r"(?m)^[ \t]*(\w{1,60}): ([0-9]{1,18})$", raw.table("ethtool", name, "counters").get("out") or ""
    )
    events = congestion.totals(
        {"net": {key: int(n) for key, n in lines}, "rdma": {key: n for key, n in of_rdma.items() if n is not None}}
    )
    enabled = [text.strip() for path, text in files if path.startswith(f"/sys/class/net/{name}/ecn/")]
    return {
        "roce": True,
        "congestion_marks": _sum(events, "ecn_marked", "cnp_sent", "cnp_received"),
        "ecn": any(text == "1" for text in enabled) if enabled else None,
        "pauses": _sum(events, "pause_received", "pause_sent"),
        "pause_storms": events.get("pause_storms"),
    }


def _sum(events: Mapping[str, int], *names: str) -> int | None:
    """Return the total count of these events, or None if no counter counts any."""
    known = [events[name] for name in names if name in events]
    return sum(known) if known else None
