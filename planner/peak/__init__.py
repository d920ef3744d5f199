"""What a machine could do at most by its own facts: its memory's bandwidth, its network link's, its accelerators'.

A figure held against that says how much of the machine it got. Nothing is guessed: where facts do not tell, there is
no peak, and a reason where the user can do something about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.base.facts import Dimm, Facts, Gpu
from fleetmark.base.text import Message, count, message
from planner.peak import pcie, table

_BYTES = 8  # that a channel moves at once: 64 data bits; DDR5's two halves together
_KIND = re.compile(r"DDR[3-9]\b", re.IGNORECASE)  # others have channels of other widths
# "CPU0 CH7 D1", "CPU0_CH7_D1", "P0 CHANNEL A DIMM 0": what stands before the module's own number names the channel. A
# bare letter does not tell: in DIMM_A1 it is a channel with some makers, a processor with others.
_CHANNEL = re.compile(r"(.*(?<![A-Z])CH(?:ANNEL)?[ _-]?[A-Z0-9]{1,2})(?![A-Z0-9]).*", re.IGNORECASE)
_OF_DEVICES = ("pcie", "device_memory", "device_compute")
_BARE = ("none", "")  # what facts call a machine that is not virtual
_SMBIOS = "the firmware's tables (SMBIOS specification, DSP0134, type 17)"


@dataclass(frozen=True, slots=True)
class Peak:
    """``rate``: B/s, or operations a second. ``basis``: what it follows from, in words; ``source``: what says that."""

    rate: float
    basis: Message
    source: str


def memory(facts: Facts) -> Peak | None:
    """What the memory channels that have modules move at most; None where facts do not say.

    Where slots do not name their channels, there are as many as modules, at most those that the processor has by the
    table; of a processor that it lacks each module counts as a channel, and ``basis`` says so: the peak is at most
    twice too high then, as with two modules in each channel.
    """
    speed = _speed(facts)
    if not speed:
        return None
    modules = [d for d in facts.dimms if d.size]
    number, most = _channels(modules), channels(facts)
    if not number and most:
        number = min(len(modules), most)
    if number:
        basis = message("{channels} at {speed} MT/s", channels=count(number, "channel"), speed=f"{speed:,}")
    else:
        number = len(modules)
        basis = message(
            "{modules} at {speed} MT/s, if each has a channel of its own",
            modules=count(number, "module"),
            speed=f"{speed:,}",
        )
    return Peak(number * speed * 1e6 * _BYTES, basis, _SMBIOS)


def full_memory(facts: Facts) -> Peak | None:
    """The same with a module in every channel that the processors have by the table; None for those that it lacks."""
    speed, known = _speed(facts), table.channels(facts.cpu.model or "")
    number = channels(facts)
    if not speed or known is None or not number:
        return None
    basis = message("{channels} at {speed} MT/s", channels=count(number, "channel"), speed=f"{speed:,}")
    return Peak(number * speed * 1e6 * _BYTES, basis, known.source)


def channels(facts: Facts) -> int | None:
    """How many memory channels the processors of a machine have by the table; None for those that it lacks."""
    known = table.channels(facts.cpu.model or "")
    return int(known.value) * facts.cpu.sockets if known and facts.cpu.sockets else None


def _speed(facts: Facts) -> int:
    """MT/s of the slowest module, which all run at; 0 where facts do not tell, and of virtual machines."""
    modules = [d for d in facts.dimms if d.size]
    if (facts.virtualisation or "") not in _BARE or not all(_KIND.match(d.type or "") for d in modules):
        return 0
    return min((d.configured_mts or 0 for d in modules), default=0)


def _channels(modules: Sequence[Dimm]) -> int:
    """How many channels have a module; 0 where a slot's name does not say."""
    matches = [_CHANNEL.fullmatch(d.slot) for d in modules]
    return len({m[1].casefold() for m in matches if m}) if all(matches) else 0


def why_no_memory(facts: Facts) -> Message | None:
    """What the user could do to have the memory's peak; None where there is nothing to be done."""
    if facts.dimms or facts.root or (facts.virtualisation or "") not in _BARE:
        return None
    return message("the memory's peak is not known: only root may read the modules (--become)")


def link(*ends: Facts) -> Peak | None:
    """What the fastest link that is up carries in one direction, of the slower of the ``ends``."""
    speeds = [max((n.speed or 0.0 for n in facts.nics if n.state in (None, "up")), default=0.0) for facts in ends]
    if not speeds or not all(speeds):
        return None
    slower = min(speeds)
    basis = message("a link of {speed} Gbit/s", speed=f"{slower * 8e-9:g}")
    return Peak(slower, basis, "the speed that the network driver reports")


def own(facts: Facts, of: str) -> Peak | None:
    """What a machine by itself reaches of a kind of rate: ``memory``, ``link`` (to another machine), or that of one of
    its accelerators (``pcie``, ``device_memory``, ``device_compute``). None of others (``cache``, ``compute``)."""
    if of == "memory":
        return memory(facts)
    if of == "link":
        return link(facts)
    return device(facts, of) if of in _OF_DEVICES else None


def device(facts: Facts, of: str) -> Peak | None:
    """What one of the host's accelerators does at most (``pcie``, ``device_memory``, ``device_compute``), by its link
    or its specification; None where they differ, or where neither says it.
    """
    if len({g.name for g in facts.gpus}) != 1:
        return None
    gpu = facts.gpus[0]
    if of == "pcie":
        return _of_link(gpu, facts)
    entry = table.memory(gpu.name) if of == "device_memory" else table.dense16(gpu.name)
    return Peak(entry.value, message("the specification of {device}", device=gpu.name), entry.source) if entry else None


def _of_link(gpu: Gpu, facts: Facts) -> Peak | None:
    best = pcie.best(gpu, facts.pcie)
    rate = pcie.rate(*best) if best else None
    if best is None or rate is None:
        return None
    speed, width = best
    return Peak(rate, message("a PCIe link of {link}", link=f"{speed:g} GT/s x{width}"), pcie.SOURCE)
