"""What hardware could do at most, from facts and a small table with its sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fleetmark.base.facts import Facts, Gpu, PcieLink
from fleetmark.base.yaml import read_yaml

BUS = 8  # bytes that a memory channel moves at once
_TABLE = Path(__file__).with_name("peaks.yml")
# Bits of 8 that a transfer carries, by the speed of a lane in GT/s: 8b/10b up to 5, 128b/130b to 32; at 64, flits of
# 256 bytes have 242 of 8b payload and 14 of checks (PCI Express Base Specification 6.0).
_CODE = {2.5: 8 / 10, 5.0: 8 / 10, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}
_LANES_OF = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}  # generation to GT/s


@dataclass(frozen=True, slots=True)
class Peak:
    """A theoretical bandwidth in B/s (or operations a second), what it was worked out from, and the ``source`` of what
    facts do not say."""

    value: float
    worked_out: str
    source: str


@cache
def _table(part: str) -> list[tuple[re.Pattern[str], Mapping[str, Any]]]:
    return [(re.compile(row["model"]), row) for row in read_yaml(_TABLE)[part]]


def _row(part: str, model: str) -> Mapping[str, Any]:
    return next((row for pattern, row in _table(part) if pattern.search(model)), {})


def channels(model: str) -> tuple[int, str] | None:
    """The memory channels of one socket and the source that says so; None for a processor that is not in the table."""
    row = _row("memory", model)
    return (int(row["channels"]), str(row["source"])) if row else None


def nvlinks(model: str) -> int | None:
    """The NVLinks of an accelerator; None for one that is not in the table, or whose source does not say."""
    number = _row("devices", model).get("nvlinks")
    return None if number is None else int(number)


def nvlink(gpu: Gpu) -> Peak | None:
    """All NVLinks of an accelerator in one direction; None where it has none that are active, or their rate is not in
    the table."""
    row = _row("devices", gpu.name)
    if not gpu.nvlinks or "nvlink" not in row:
        return None
    number, each = max(gpu.nvlinks, int(row.get("nvlinks", 0))), float(row["nvlink"])
    return Peak(number * each, f"{number} NVLinks of {each / 1e9:g} GB/s", str(row["source"]))


def memory(facts: Facts) -> Peak | None:
    """Sockets x channels x transfers a second x 8 bytes, at the speed that the modules are set to; None where any of
    these is not known."""
    known = channels(facts.cpu.model or "")
    speeds = [d.configured_mts for d in facts.dimms if d.size and d.configured_mts]
    if known is None or not speeds or not facts.cpu.sockets:
        return None
    number, source = known
    rate = min(speeds)
    peak = facts.cpu.sockets * number * rate * 1e6 * BUS
    return Peak(peak, f"{facts.cpu.sockets} x {number} x {rate} MT/s x {BUS} B", source)


def device_memory(gpu: Gpu) -> Peak | None:
    """The memory bandwidth of an accelerator by its specification."""
    row = _row("devices", gpu.name)
    return Peak(float(row["memory"]), gpu.name, str(row["source"])) if "memory" in row else None


def dense16(gpu: Gpu) -> Peak | None:
    """Operations a second of an accelerator on 16-bit floats, none of them zeros that it skips."""
    row = _row("devices", gpu.name)
    return Peak(float(row["dense16"]), gpu.name, str(row["source"])) if "dense16" in row else None


def network(facts: Facts) -> Peak | None:
    """The fastest active interface, one direction. Bonds and virtual interfaces report sums of their own."""
    fast = max((n for n in facts.nics if n.state == "up" and n.speed), key=lambda n: n.speed or 0.0, default=None)
    if fast is None or not fast.speed:
        return None
    return Peak(fast.speed, f"{fast.name}: {fast.speed * 8 / 1e9:g} Gbit/s", "speed that the driver reports")


def lanes(speed: float, width: int) -> float | None:
    """B/s in one direction over ``width`` lanes at ``speed`` GT/s, their coding taken off; None for another speed."""
    code = _CODE.get(speed)
    return None if code is None else speed * 1e9 * code * width / 8


def pcie(gpu: Gpu, links: tuple[PcieLink, ...] = ()) -> Peak | None:
    """The link of an accelerator at its best, one direction, by its generation and width."""
    speed, width = _LANES_OF.get(gpu.max_pcie_gen or 0), gpu.max_pcie_width
    bus = (gpu.bus or "").lower().removeprefix("0000")
    link = next((k for k in links if bus and bus.endswith(k.address.lower().removeprefix("0000"))), None)
    if link is not None and link.max_speed and link.max_width:
        speed, width = link.max_speed, link.max_width
    value = lanes(speed, width) if speed and width else None
    if value is None:
        return None
    return Peak(value, f"{speed:g} GT/s x{width}", "PCI Express Base Specification: rate, lanes and coding")
