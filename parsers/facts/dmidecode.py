"""Parse dmidecode's text: BIOS, system, CPUs and memory slots.

Tested with dmidecode 2.12 to 3.6. Size units are powers of 1024, regardless of their spelling (SMBIOS 3, 7.18.5). Up to
3.1, speeds are in MT/s but labelled MHz. Serial numbers, UUIDs and asset tags are never returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.facts._common import integer, leading, size, text_or_none
from fleetmark.parsers.kit.text import decode

_EMPTY = ("No Module Installed", "Not Installed", "0", "0 bytes", "0 MB", "0 kB")


def parse(raw: bytes) -> dict[str, Any]:
    """Return ``version``, ``bios``, ``system``, ``processors`` and ``memory``.

    ``memory`` has one dict per slot, and empty slots have size 0. A slot is ``{"slot", "bank", "size", "type", "form",
    "rated_mts", "configured_mts", "manufacturer", "part", …}``. Raise ParseError if the text has no structure, as
    happens without root.
    """
    text = decode(raw)
    structures = list(_structures(text))
    if not structures:
        raise ParseError(
            "dmidecode", "the SMBIOS tables, which need root and may be missing from the firmware", got=_last(text)
        )
    bios = next((s for title, s in structures if title == "BIOS Information"), {})
    system = next((s for title, s in structures if title == "System Information"), {})
    arrays = {s["_handle"]: s for title, s in structures if title == "Physical Memory Array" and "_handle" in s}
    version = re.search(r"^# dmidecode (\S+)", text, re.MULTILINE)
    facts = {
        "version": version[1] if version else None,
        "bios": _picked(bios, vendor="Vendor", version="Version", date="Release Date"),
        "system": _picked(system, vendor="Manufacturer", product="Product Name"),
        "processors": [_processor(s) for title, s in structures if title == "Processor Information"],
        "memory": [_slot(s) for title, s in structures if title == "Memory Device" and _of_system(s, arrays)],
    }
    return {key: value for key, value in facts.items() if value is not None}


def _structures(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (title, fields) of each structure.

    Titles are not indented, fields are indented once, and lists (left out) twice.
    """
    title, handle, margin = "", "", 0
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if match := re.match(r"Handle (0x[0-9A-Fa-f]+), DMI type \d+", line):
            handle = match[1]
        elif re.match(r"\S", line):
            if fields:
                yield title, fields
            title, margin = line.strip(), 0
            fields = {}
        elif match := re.match(r"(\s+)([^:\s][^:]*):(?:\s+(.*))?$", line.expandtabs()):
            if not fields and handle:
                fields["_handle"], handle = handle, ""
            margin = margin or len(match[1])
            if len(match[1]) == margin:
                fields[match[2].strip()] = (match[3] or "").strip()
    if fields:
        yield title, fields


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _picked(fields: dict[str, str], **names: str) -> dict[str, str]:
    return {ours: value for ours, theirs in names.items() if (value := text_or_none(fields.get(theirs)))}


def _of_system(slot: dict[str, str], arrays: dict[str, dict[str, str]]) -> bool:
    """Return whether the slot holds main memory. Flash and video memory have separate arrays."""
    use = arrays.get(slot.get("Array Handle", ""), {}).get("Use", "Unknown")
    return use in ("System Memory", "Unknown", "Other")


def _processor(fields: dict[str, str]) -> dict[str, Any]:
    facts: dict[str, Any] = dict(
        _picked(fields, socket="Socket Designation", model="Version", manufacturer="Manufacturer")
    )
    facts["populated"] = not fields.get("Status", "").startswith("Unpopulated")
    numbers = {"cores": "Core Count", "cores_enabled": "Core Enabled", "threads": "Thread Count"}
    facts |= {ours: value for ours, theirs in numbers.items() if (value := integer(fields.get(theirs))) is not None}
    for ours, theirs in (("max_hz", "Max Speed"), ("current_hz", "Current Speed")):
        mhz = leading(fields.get(theirs))
        if mhz:
            facts[ours] = mhz * 1e6
    return facts


def _slot(fields: dict[str, str]) -> dict[str, Any]:
    facts: dict[str, Any] = dict(
        _picked(fields, slot="Locator", bank="Bank Locator", type="Type", form="Form Factor", part="Part Number")
        | _picked(fields, manufacturer="Manufacturer", technology="Memory Technology")
    )
    facts["size"] = 0 if fields.get("Size") in _EMPTY else size(fields.get("Size"))
    configured = fields.get("Configured Memory Speed", fields.get("Configured Clock Speed"))
    facts |= {"rated_mts": _rate(fields.get("Speed")), "configured_mts": _rate(configured)}
    facts["rank"] = integer(fields.get("Rank"))
    return {key: value for key, value in facts.items() if value is not None}


def _rate(text: str | None) -> int | None:
    match = re.match(r"(\d{1,6}) (?:MT/s|MHz)", text or "")
    return int(match[1]) if match and int(match[1]) else None
