"""Define rules about network interfaces: drops, rings, frame sizes, interrupts, and RoCE pauses."""

from __future__ import annotations

from collections import Counter

from fleetmark.base.facts import Nic
from fleetmark.base.text import Message, message
from fleetmark.planner import peak
from fleetmark.planner.diagnosis.tuning.rule import NETWORK_AGAIN, OF_NETWORK, Rule, Subject
from fleetmark.planner.diagnosis.tuning.setting import Item, Setting, is_interface

_GBITS = 8e-9  # Gbit/s in one B/s
_LEAST_MTU = 1280  # RFC 8200; the kernel removes the IPv6 addresses of an interface with a smaller MTU
_SCALING = "https://docs.kernel.org/networking/scaling.html"


def _port_speed(s: Subject) -> Message | None:
    for port in reversed(peak.top_ports(s.facts)):  # the slowest first
        speed, highest = port.speed or 0.0, port.max_speed or 0.0
        if speed < highest:
            return message(
                "port {name} runs at {speed} of {highest} Gbit/s",
                name=port.name,
                speed=f"{speed * _GBITS:g}",
                highest=f"{highest * _GBITS:g}",
            )
    return None


def _mtu(s: Subject) -> Message | None:
    for nic in s.facts.nics:
        usual = _usual_mtu(s, nic)
        if nic.state == "up" and nic.mtu and usual and nic.mtu != usual:
            return message(
                "MTU of {name} is {mtu}, {most} on most hosts of its kind", name=nic.name, mtu=nic.mtu, most=usual
            )
    return None


def _usual_mtu(s: Subject, nic: Nic) -> int | None:
    """Return the MTU of more than half of the hosts of a kind at this speed.

    Return None if only one host has this MTU, or if it is too small for a trial.
    """
    votes = s.mtus.get(nic.speed or 0.0, Counter())
    for mtu, hosts in votes.most_common(1):
        if hosts > max(1, votes.total() / 2) and mtu >= _LEAST_MTU:
            return mtu
    return None


def _drops(s: Subject) -> Message | None:
    dropping = [n for n in s.facts.nics if n.missed]
    if not dropping:
        return None
    worst = max(dropping, key=lambda n: n.missed or 0)
    if worst.ring and worst.ring_max and worst.ring < worst.ring_max:
        return message(
            "{name} found no free buffer for {n} packets since boot; its ring has {ring} of {most} entries",
            name=worst.name,
            n=worst.missed,
            ring=worst.ring,
            most=worst.ring_max,
        )
    return message("{name} found no free buffer for {n} packets since boot", name=worst.name, n=worst.missed)


def _interrupts(s: Subject) -> Message | None:
    away = [n for n in s.facts.nics if n.state == "up" and n.irqs_remote]
    if not away:
        return None
    first = away[0]
    return message(
        "{n} of {all} interrupts of {name} go to CPUs outside its own NUMA node ({node})",
        n=first.irqs_remote,
        all=len(first.irqs),
        name=first.name,
        node=first.numa_node,
    )


def _pauses(s: Subject) -> Message | None:
    ports = [n for n in s.facts.nics if n.roce]
    storm = next((n for n in ports if n.pause_storms), None)
    if storm is not None:
        return message("{name} stalled its link by pauses {n} times since boot", name=storm.name, n=storm.pause_storms)
    off = next((n for n in ports if n.ecn is False), None)
    if off is not None:
        return message("congestion control by ECN is off on {name}", name=off.name)
    unmarked = next((n for n in ports if n.pauses and n.congestion_marks == 0), None)
    if unmarked is not None:
        return message("{name} had {n} pauses since boot and not one ECN mark", name=unmarked.name, n=unmarked.pauses)
    return None


def _of_network(s: Subject) -> list[Nic]:
    """Return active interfaces with names that are safe in a path and a command."""
    return [n for n in s.facts.nics if n.state == "up" and is_interface(n.name)]


def _set_mtu(s: Subject) -> Setting | None:
    odd = [_mtu_of(n, str(usual)) for n in _of_network(s) if (usual := _usual_mtu(s, n)) and usual != n.mtu]
    items = odd or [_mtu_of(n, "") for n in _of_network(s) if n.addresses]
    return Setting(tuple(items)) if items else None


def _mtu_of(nic: Nic, value: str) -> Item:
    return Item(
        value=value,
        read=("ip", "-o", "link", "show", "dev", nic.name),
        match=r"\bmtu (\d+)\b",
        write=("ip", "link", "set", "dev", nic.name, "mtu", "{}"),
        # The MTU of a VLAN decreases with that of its interface, and is not restored.
        unless=f"/sys/class/net/{nic.name}/upper_*",
        least=_LEAST_MTU,
    )


def _set_rings(s: Subject) -> Setting | None:
    items = tuple(
        Item(
            value=str(nic.ring_max),
            read=("ethtool", "-g", nic.name),
            match=r"(?s)Current hardware settings:.*?\nRX:\s*(\d+)",
            write=("ethtool", "-G", nic.name, "rx", "{}"),
        )
        for nic in _of_network(s)
        if nic.ring and nic.ring_max
    )
    return Setting(items) if items else None


def _set_interrupts(s: Subject) -> Setting | None:
    cpus = {n.id: n.cpus for n in s.facts.numa}
    items = tuple(
        Item(value=",".join(map(str, cpus[nic.numa_node])), path=f"/proc/irq/{number}/smp_affinity_list")
        for nic in _of_network(s)
        if nic.numa_node is not None and cpus.get(nic.numa_node)
        for number in nic.irqs
    )
    return Setting(items) if items else None


RULES = (
    Rule(
        15,
        "port-speed",
        "current and supported link speed of network ports",
        _port_speed,
        message("check the cable, the transceiver and the switch port; a switch may offer no higher speed"),
        retest=NETWORK_AGAIN,
        source="https://docs.kernel.org/networking/ethtool-netlink.html (LINKMODES_GET)",
        classes=OF_NETWORK,
    ),
    Rule(
        23,
        "mtu",
        "MTU of interfaces, of all hosts of the kind",
        _mtu,
        message("set one MTU on all hosts and switches of the network"),
        retest=NETWORK_AGAIN,
        source="RFC 1191",
        classes=OF_NETWORK,
        setting=_set_mtu,
    ),
    Rule(
        23,
        "nic-rings",
        "packets without a buffer, ring sizes",
        _drops,
        message("larger receive rings (ethtool -G); the link may reset, so move traffic away first"),
        retest=NETWORK_AGAIN,
        source="https://man7.org/linux/man-pages/man8/ethtool.8.html; "
        "many drivers restart the interface to resize rings",
        classes=OF_NETWORK,
        setting=_set_rings,
    ),
    Rule(
        23,
        "nic-interrupts",
        "CPUs of the interrupts, node of the interface",
        _interrupts,
        message("send interrupts to CPUs of the interface's node (smp_affinity_list; stop irqbalance)"),
        retest=NETWORK_AGAIN,
        source=_SCALING,
        classes=OF_NETWORK,
        setting=_set_interrupts,
    ),
    Rule(
        24,
        "roce",
        "pause, ECN and CNP counters of RoCE interfaces",
        _pauses,
        message("DCQCN on hosts, ECN and one lossless priority on switches"),
        retest=NETWORK_AGAIN,
        source="https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html",
        classes=OF_NETWORK,
    ),
)
