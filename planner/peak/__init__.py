"""Compute theoretical peaks of a machine from its facts: memory bandwidth, cores, network link and accelerators.

A measured figure relative to its peak tells how much of the machine the benchmark used. Nothing is guessed: if the
facts do not suffice, there is no peak. If the user can then provide the missing data, there is a reason that says how.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.base.facts import Dimm, Facts, Gpu, Nic
from fleetmark.base.text import Message, count, message
from fleetmark.planner.peak import compute, pcie, table

_BYTES = 8  # bytes that a channel moves in one transfer: 64 data bits, also for the two halves of a DDR5 channel
_KIND = re.compile(r"DDR[3-9]\b", re.IGNORECASE)  # other memory types have channels of other widths
# "CPU0 CH7 D1", "CPU0_CH7_D1", "P0 CHANNEL A DIMM 0": the text before the module's own number names the channel. A
# single letter is ambiguous: in DIMM_A1, some makers mean a channel and others a processor.
_CHANNEL = re.compile(r"(.*(?<![A-Z])CH(?:ANNEL)?[ _-]?[A-Z0-9]{1,2})(?![A-Z0-9]).*", re.IGNORECASE)
_OF_DEVICES = ("pcie", "gpu_link", "device_memory", "device_compute")
_BARE = ("none", "")  # values of the fact ``virtualisation`` on a physical machine
_COHERENT = re.compile(r"\bG[BH][0-9]{3}\b")  # accelerators connected to their processor by NVLink-C2C, not PCIe
_SMBIOS = "the firmware's tables (SMBIOS specification, DSP0134, type 17)"


@dataclass(frozen=True, slots=True)
class Peak:
    """A theoretical peak.

    ``rate`` is in B/s or operations per second. ``basis`` describes its calculation; ``source`` names the origin of the
    data.
    """

    rate: float
    basis: Message
    source: str


def memory(facts: Facts) -> Peak | None:
    """Return the peak bandwidth of the memory channels that have modules, or None if the facts do not suffice.

    If slot names do not identify channels, each module counts as one channel, up to the processor's channels in the
    table. For a processor that the table lacks, every module counts, and ``basis`` says so. The peak is then at most
    twice too high, as with two modules per channel.
    """
    speed = _speed(facts)
    if not speed:
        return None
    modules = [d for d in facts.dimms if d.size]
    number, maximum = _channels(modules), channels(facts)
    if not number and maximum:
        number = min(len(modules), maximum)
    if number:
        basis = message("{channels} at {speed} MT/s", channels=count(number, "channel"), speed=f"{speed:,}")
    else:
        number = len(modules)
        basis = message(
            "{modules} at {speed} MT/s, if each has its own channel",
            modules=count(number, "module"),
            speed=f"{speed:,}",
        )
    return Peak(number * speed * 1e6 * _BYTES, basis, _SMBIOS)


def full_memory(facts: Facts) -> Peak | None:
    """Return the memory peak with a module in every channel of the processors; None for those that the table lacks."""
    speed, known = _speed(facts), table.channels(facts.cpu.model or "")
    number = channels(facts)
    if not speed or known is None or not number:
        return None
    basis = message("{channels} at {speed} MT/s", channels=count(number, "channel"), speed=f"{speed:,}")
    return Peak(number * speed * 1e6 * _BYTES, basis, known.source)


def slots(facts: Facts) -> Peak | None:
    """Return the memory peak with a module in every channel that has a slot.

    If slot names do not identify channels, return the peak of the modules if no slot is empty, or else None.
    """
    number, speed = named_channels(facts), _speed(facts)
    if not number or not speed:
        return None if any(d.size == 0 for d in facts.dimms) else memory(facts)
    basis = message("{channels} at {speed} MT/s", channels=count(number, "channel"), speed=f"{speed:,}")
    return Peak(number * speed * 1e6 * _BYTES, basis, _SMBIOS)


def named_channels(facts: Facts) -> int:
    """Return the number of channels that the names of all slots identify, or 0 if a name does not identify one."""
    return _channels(facts.dimms)


def channels(facts: Facts) -> int | None:
    """Return the number of memory channels of a machine's processors, or None for processors that the table lacks."""
    known = table.channels(facts.cpu.model or "")
    return int(known.value) * facts.cpu.sockets if known and facts.cpu.sockets else None


def _speed(facts: Facts) -> int:
    """Return the speed in MT/s of the slowest module, which limits all others.

    Return 0 for virtual machines, or if the facts do not include it.
    """
    modules = [d for d in facts.dimms if d.size]
    if (facts.virtualisation or "") not in _BARE or not all(_KIND.match(d.type or "") for d in modules):
        return 0
    return min((d.configured_mts or 0 for d in modules), default=0)


def _channels(modules: Sequence[Dimm]) -> int:
    """Return the number of channels with a module, or 0 if a slot's name does not identify its channel."""
    matches = [_CHANNEL.fullmatch(d.slot) for d in modules]
    return len({m[1].casefold() for m in matches if m}) if all(matches) else 0


def why_no_memory(facts: Facts) -> Message | None:
    """Return what the user can do to get the memory's peak, or None if nothing helps."""
    if facts.dimms or facts.root or (facts.virtualisation or "") not in _BARE:
        return None
    return message("the memory's peak is not known: only root may read the modules (--become)")


def link(*ends: Facts) -> Peak | None:
    """Return the one-way rate of the fastest active link, for the slower of the ``ends``."""
    speeds = [max((n.speed or 0.0 for n in facts.nics if n.state in (None, "up")), default=0.0) for facts in ends]
    if not speeds or not all(speeds):
        return None
    slower = min(speeds)
    basis = message("a link of {speed} Gbit/s", speed=f"{slower * 8e-9:g}")
    return Peak(slower, basis, "the speed that the network driver reports")


def top_ports(facts: Facts) -> list[Nic]:
    """Return the active ports with the highest supported speed of the host, the fastest first.

    Slower ports, for example for management, are left out. So are ports whose driver reports no supported speed.
    """
    ports = [n for n in facts.nics if n.state == "up" and n.speed and n.max_speed]
    top = max((n.max_speed or 0.0 for n in ports), default=0.0)
    return sorted((n for n in ports if n.max_speed == top), key=lambda n: -(n.speed or 0.0))


def component_peak(facts: Facts, component: str, called: str = "") -> Peak | None:
    """Return the peak of one component of a machine.

    ``called`` is the precision of matrix products. Components are ``memory``, ``compute`` (double precision only, which
    is the default), ``link`` (to another machine) and those of one accelerator (see ``device``).
    """
    if component == "compute":
        top = compute.doubles(facts) if called in ("fp64", "") else None
        return Peak(*top, compute.SOURCE) if top else None
    if component == "memory":
        return memory(facts)
    if component == "link":
        return link(facts)
    return device(facts, component, called or "bf16") if component in _OF_DEVICES else None


def device(facts: Facts, component: str, precision: str = "bf16") -> Peak | None:
    """Return the peak of one of the host's accelerators, from its links or its specification.

    The component is ``pcie``, ``gpu_link``, ``device_memory`` or ``device_compute`` (dense products in ``precision``).
    Return None if the accelerators differ, or if neither source has the figure.
    """
    if len({g.name for g in facts.gpus}) != 1:
        return None
    gpu = facts.gpus[0]
    if component == "pcie":
        return _of_link(gpu, facts)
    if component == "gpu_link":
        return _between_gpus(gpu, facts)
    entry = table.memory(gpu.name) if component == "device_memory" else None
    if component == "device_compute":
        entry = table.dense(gpu.name, precision)
    return Peak(entry.value, message("the specification of {device}", device=gpu.name), entry.source) if entry else None


def between(start: str, end: str) -> str:
    """Return the kind of link between two devices of a host by their names (``cpu0``, ``gpu1``); empty if there is
    none.
    """
    kinds = sorted(name.rstrip("0123456789") for name in (start, end))
    if kinds == ["gpu", "gpu"] and start != end:
        return "gpu_link"
    return "pcie" if kinds == ["cpu", "gpu"] else ""


def _of_link(gpu: Gpu, facts: Facts) -> Peak | None:
    if _COHERENT.search(gpu.name):
        return None
    best = pcie.best(gpu, facts.pcie)
    rate = pcie.rate(*best) if best else None
    if best is None or rate is None:
        return None
    speed, width = best
    return Peak(rate, message("a PCIe link of {link}", link=f"{speed:g} GT/s x{width}"), pcie.SOURCE)


def _between_gpus(gpu: Gpu, facts: Facts) -> Peak | None:
    """Return the one-way rate of all NVLinks of a GPU, or of PCIe if its model has no NVLink.

    Return None if the table and the driver lack the figure.
    """
    if direct := table.pair_link(gpu.name):
        basis = message("one link of {rate} GB/s between each two devices", rate=f"{direct.value / 1e9:g}")
        return Peak(direct.value, basis, direct.source)
    each, number = table.nvlink(gpu.name), table.nvlinks(gpu.name)
    if number is not None and number.value == 0:
        return _of_link(gpu, facts)
    if each is None or not gpu.nvlinks:
        return None
    links = max(gpu.nvlinks, int(number.value) if number else 0)
    basis = message(
        "{n} NVLinks of {rate} GB/s, if all lead from one GPU to the other", n=links, rate=f"{each.value / 1e9:g}"
    )
    return Peak(links * each.value, basis, each.source)
