"""Parse ``rocm-smi --json``: AMD GPUs by card.

The spelling of keys differs between versions (Card series, Card Series).
"""

from __future__ import annotations

import re
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts._common import document, integer, leading, text_or_none
from fleetmark.parsers.kit.text import decode


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``driver`` and ``gpus``: ``{"index", "name", "memory" (bytes), "power_limit" (W)}``.

    Raise ParseError on failure.
    """
    text = decode(raw)
    output = document("rocm_smi", text)
    cards = {
        int(name[4:]): {str(key).lower(): value for key, value in fields.items()}
        for name, fields in output.items()
        if re.fullmatch(r"card\d{1,4}", name) and isinstance(fields, dict)
    }
    if not cards:
        raise ParseError("rocm_smi", "entries named card0, card1, …", got=text.strip()[:120])
    system = output.get("system")
    driver = text_or_none(system.get("Driver version")) if isinstance(system, dict) else None
    return ({"driver": driver} if driver else {}) | {"gpus": [_gpu(n, cards[n]) for n in sorted(cards)]}


def _gpu(index: int, fields: dict[str, Any]) -> dict[str, Any]:
    name = next(
        (n for key in ("card series", "card model", "device name") if (n := text_or_none(fields.get(key)))), None
    )
    facts = {
        "index": index,
        "name": name,
        "memory": integer(fields.get("vram total memory (b)")),
        "power_limit": leading(fields.get("max graphics package power (w)")),
    }
    return {key: value for key, value in facts.items() if value is not None}
