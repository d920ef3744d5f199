"""rocm-smi --json: AMD GPUs by card; the spelling of its keys moves with the version (Card series, Card Series)."""

from __future__ import annotations

import re
from typing import Any

from fleetmark.base.errors import ParseError
from parsers._text import decode
from parsers.facts._common import document, integer, known, leading


def parse(raw: bytes) -> dict[str, Any]:
    """``driver`` and ``gpus``: ``{"index", "name", "memory" (bytes), "power_limit" (W)}``. Raises ParseError."""
    text = decode(raw)
    found = document("rocm_smi", text)
    cards = {
        int(name[4:]): {str(key).lower(): value for key, value in fields.items()}
        for name, fields in found.items()
        if re.fullmatch(r"card\d{1,4}", name) and isinstance(fields, dict)
    }
    if not cards:
        raise ParseError("rocm_smi", "entries named card0, card1, …", got=text.strip()[:120])
    system = found.get("system")
    driver = known(system.get("Driver version")) if isinstance(system, dict) else None
    return ({"driver": driver} if driver else {}) | {"gpus": [_gpu(n, cards[n]) for n in sorted(cards)]}


def _gpu(index: int, fields: dict[str, Any]) -> dict[str, Any]:
    name = next((n for key in ("card series", "card model", "device name") if (n := known(fields.get(key)))), None)
    found = {
        "index": index,
        "name": name,
        "memory": integer(fields.get("vram total memory (b)")),
        "power_limit": leading(fields.get("max graphics package power (w)")),
    }
    return {key: value for key, value in found.items() if value is not None}
