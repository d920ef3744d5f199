"""Parse ``npu-smi info``: Ascend NPUs by chip, from its table with two rows per chip.

Tested with versions 23.0 to 25.5. The first row of a chip has device, name, health, power and temperature. The second
row has bus address, load and memory. HBM is the last pair of used and total memory in the second row; cards without HBM
(310) have only the pair before it.
"""

from __future__ import annotations

import re
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.kit.text import decode

_LONGEST = 400  # maximum characters of a row; about 110 are usual
_MIB = 1 << 20
_VERSION = re.compile(r"\|\s*npu-smi\s+\S+\s+Version:\s*([A-Za-z0-9.]{1,40})")
_DEVICE = re.compile(
    r"\|\s*(\d{1,4})\s+([A-Za-z0-9][\w.-]{0,40})\s*\|\s*([A-Za-z]\w{0,20})\s*\|\s*(?:-|NA|[\d.]{1,8})\s"
)
_CHIP = re.compile(
    r"\|\s*\d{1,4}(?:\s+(?:\d{1,4}|NA))?\s*\|\s*([0-9A-Fa-f]{4,8}(?::[0-9A-Fa-f]{2}){1,2}\.\d|NA)\s*\|(.*)\|"
)
_PAIR = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``driver`` and ``gpus``: ``{"index", "name", "memory" (bytes), "bus", "slowdown"}``.

    Raise ParseError on failure.

    ``slowdown`` has the health of a chip that is not OK (``health_warning``, ``health_alarm``).
    """
    text = decode(raw)
    lines = [line for line in text.splitlines() if len(line) < _LONGEST]
    chips: list[dict[str, Any]] = []
    device: re.Match[str] | None = None
    for line in lines:
        if match := _DEVICE.match(line):
            device = match
        elif device and (match := _CHIP.match(line)):
            chips.append(_chip(len(chips), device, match))
    if not chips:
        words = next((line for line in lines if line.strip() and not line.startswith(("+", "|"))), text.strip())
        raise ParseError("npu_smi", "rows of NPUs and their chips", got=words[:120])
    version = _VERSION.search(text)
    return ({"driver": version[1]} if version else {}) | {"gpus": chips}


def _chip(index: int, device: re.Match[str], chip: re.Match[str]) -> dict[str, Any]:
    totals = [int(total) for _, total in _PAIR.findall(chip[2])]
    health = device[3].lower()
    values = {
        "index": index,
        "name": device[2] if device[2].startswith("Ascend") else f"Ascend {device[2]}",
        "memory": next((total * _MIB for total in reversed(totals) if total), None),
        "bus": chip[1].lower() if chip[1] != "NA" else None,
        "slowdown": () if health == "ok" else (f"health_{health}",),
    }
    return {key: value for key, value in values.items() if value is not None}
