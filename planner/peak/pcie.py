"""Compute the rate of a PCIe link in one direction, from its generation, lanes and coding."""

from __future__ import annotations

from fleetmark.base.facts import Gpu, PcieLink

SOURCE = "PCI Express Base Specification 6.0: rate, lanes and coding"
# Payload as a share of the transferred bits, by the lane speed in GT/s: 8b/10b coding up to 5, 128b/130b up to 32. At
# 64, flits of 256 bytes have 242 bytes of payload and 14 bytes of checks.
_CODE = {2.5: 8 / 10, 5.0: 8 / 10, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}
_SPEED = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}  # GT/s by generation


def rate(speed: float, width: int) -> float | None:
    """Return the B/s over ``width`` lanes at ``speed`` GT/s, or None if no generation has this speed."""
    code = _CODE.get(speed)
    return None if code is None else speed * 1e9 * code * width / 8


def best(gpu: Gpu, links: tuple[PcieLink, ...]) -> tuple[float, int] | None:
    """Return the highest speed (GT/s) and lanes of an accelerator's link.

    The values come from the bus, or else from the accelerator itself.
    """
    speed, width = _SPEED.get(gpu.max_pcie_gen or 0), gpu.max_pcie_width
    bus = _short(gpu.bus or "")
    link = next((k for k in links if bus and bus.endswith(_short(k.address))), None)
    if link is not None and link.max_speed and link.max_width:
        speed, width = link.max_speed, link.max_width
    return (speed, width) if speed and width else None


def _short(address: str) -> str:
    return address.lower().removeprefix("0000")
