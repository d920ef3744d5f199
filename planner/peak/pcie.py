"""Compute what a PCIe link carries in one direction, from its generation, lanes and coding."""

from __future__ import annotations

from fleetmark.base.facts import Gpu, PcieLink

SOURCE = "PCI Express Base Specification 6.0: rate, lanes and coding"
# Bits of 8 that a transfer carries, by the speed of a lane in GT/s: 8b/10b up to 5, 128b/130b to 32; at 64, flits of
# 256 bytes have 242 of payload and 14 of checks.
_CODE = {2.5: 8 / 10, 5.0: 8 / 10, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}
_SPEED = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}  # GT/s of a generation


def rate(speed: float, width: int) -> float | None:
    """B/s over ``width`` lanes at ``speed`` GT/s; None for a speed that no generation has."""
    code = _CODE.get(speed)
    return None if code is None else speed * 1e9 * code * width / 8


def best(gpu: Gpu, links: tuple[PcieLink, ...]) -> tuple[float, int] | None:
    """Speed (GT/s) and lanes of an accelerator's link at its best: by the bus, else by the accelerator itself."""
    speed, width = _SPEED.get(gpu.max_pcie_gen or 0), gpu.max_pcie_width
    bus = _short(gpu.bus or "")
    link = next((k for k in links if bus and bus.endswith(_short(k.address))), None)
    if link is not None and link.max_speed and link.max_width:
        speed, width = link.max_speed, link.max_width
    return (speed, width) if speed and width else None


def _short(address: str) -> str:
    return address.lower().removeprefix("0000")
