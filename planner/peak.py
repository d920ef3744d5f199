"""What a machine could do at most by its own facts: its memory's bandwidth, its network link's, its accelerators'.

A figure held against that says how much of the machine it got. Nothing is guessed: where facts do not tell, there is
no peak, and a reason where the user can do something about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.base.facts import Dimm, Facts
from fleetmark.base.text import Message, count, message
from planner import peak_compute
from planner.diagnosis.tuning import peaks

_BYTES = 8  # that a channel moves at once: 64 data bits; DDR5's two halves together
_KIND = re.compile(r"DDR[3-9]\b", re.IGNORECASE)  # others have channels of other widths
# "CPU0 CH7 D1", "CPU0_CH7_D1", "P0 CHANNEL A DIMM 0": what stands before the module's own number names the channel. A
# bare letter does not tell: in DIMM_A1 it is a channel with some makers, a processor with others.
_CHANNEL = re.compile(r"(.*(?<![A-Z])CH(?:ANNEL)?[ _-]?[A-Z0-9]{1,2})(?![A-Z0-9]).*", re.IGNORECASE)
_BARE = ("none", "")  # what facts call a machine that is not virtual
_COHERENT = re.compile(r"\bG[BH][0-9]{3}\b")  # accelerators that reach their processor by NVLink-C2C, not by PCIe


@dataclass(frozen=True, slots=True)
class Peak:
    """``rate``: B/s. ``basis``: what it follows from, in words."""

    rate: float
    basis: Message


def memory(facts: Facts) -> Peak | None:
    """What the populated memory channels move at most; None where facts do not say.

    Where slots do not name their channels, each module is taken to have one of its own, and ``basis`` says so: the
    peak is at most twice too high then, as with two modules in each channel.
    """
    modules = [d for d in facts.dimms if d.size]
    speeds = {d.configured_mts for d in modules}
    if not modules or (facts.virtualisation or "") not in _BARE or not all(_KIND.match(d.type or "") for d in modules):
        return None
    slowest = min((s for s in speeds if s), default=0)
    if not slowest or None in speeds or 0 in speeds:
        return None
    channels = _channels(modules)
    if channels:
        basis = message("{channels} at {speed} MT/s", channels=count(channels, "channel"), speed=f"{slowest:,}")
    else:
        basis = message(
            "{modules} at {speed} MT/s, if each has a channel of its own",
            modules=count(len(modules), "module"),
            speed=f"{slowest:,}",
        )
    return Peak((channels or len(modules)) * slowest * 1e6 * _BYTES, basis)


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
    return Peak(min(speeds), message("a link of {speed} Gbit/s", speed=f"{min(speeds) * 8e-9:g}"))


def own(facts: Facts, of: str) -> Peak | None:
    """What a machine by itself reaches of a kind of rate (``memory``, ``compute``, or one of its accelerators')."""
    if of == "compute":
        top = peak_compute.doubles(facts)
        return Peak(*top) if top else None
    return memory(facts) if of == "memory" else device(facts, of)


def device(facts: Facts, of: str) -> Peak | None:
    """What one of the host's accelerators does at most (``pcie``, ``gpu_link``, ``device_memory``, ``device_compute``),
    by its links or its specification; None where they differ, or where neither says it.
    """
    if len({g.name for g in facts.gpus}) != 1:
        return None
    gpu = facts.gpus[0]
    if of == "pcie":
        if _COHERENT.search(gpu.name):
            return None
        link = peaks.pcie(gpu, facts.pcie)
        return Peak(link.value, message("a PCIe link of {link}", link=link.worked_out)) if link else None
    if of == "gpu_link":
        links = peaks.nvlink(gpu)
        if links is None:
            return device(facts, "pcie") if peaks.nvlinks(gpu.name) == 0 else None
        return Peak(links.value, message("{links}, if all lead from one GPU to the other", links=links.worked_out))
    specified = {"device_memory": peaks.device_memory, "device_compute": peaks.dense16}.get(of)
    top = specified(gpu) if specified else None
    return Peak(top.value, message("the specification of {device}", device=top.worked_out)) if top else None


def between(start: str, end: str) -> str:
    """The kind of link between two devices of a host, by their names (``cpu0``, ``gpu1``); empty where it is none."""
    kinds = sorted(name.rstrip("0123456789") for name in (start, end))
    if kinds == ["gpu", "gpu"] and start != end:
        return "gpu_link"
    return "pcie" if kinds == ["cpu", "gpu"] else ""
