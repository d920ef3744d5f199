"""Read numbers, sizes and CPU lists for the parsers of facts; unreadable values are absent instead of wrong."""

from __future__ import annotations

import re
from typing import Any

from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.units import parse_bytes
from fleetmark.parsers.kit.text import find_json

MAX_ID = 1 << 16  # maximum CPU or node number; a larger one is damaged text
# Longer numbers are invalid. They are not truncated, because that would change the value.
_LEADING = re.compile(r"\s*([-+]?[0-9]{1,18}(?![0-9])(?:\.[0-9]+)?)")
_NOTHING = frozenset(
    {"", "-", "n/a", "[n/a]", "none", "unknown", "other", "not specified", "not provided", "not available"}
    | {"<out of spec>", "<bad index>", "no dimm", "undefined", "not supported", "[not supported]", "null"}
    | {"to be filled by o.e.m.", "requested functionality has been deprecated", "err!", "unknown error"}
    | {"[unknown error]", "gpu is lost", "[gpu is lost]", "insufficient permissions", "[insufficient permissions]"}
)


def text_or_none(value: Any) -> str | None:
    """Return the text of a field, or None if the tool prints that the value is unknown."""
    if not isinstance(value, str) or value.strip().lower() in _NOTHING:
        return None
    return value.strip()


def leading(value: Any) -> float | None:
    """Return the number at the start of a field (``3800.0000``, ``4800 MT/s``, ``16x``), or None if there is none."""
    match = _LEADING.match(str(value)) if isinstance(value, str | int | float) else None
    return float(match[1]) if match else None


def integer(value: Any) -> int | None:
    """Return the integer at the start of a field; None for a fraction."""
    figure = leading(value)
    return int(figure) if figure is not None and figure == int(figure) else None


def size(value: Any) -> int | None:
    """Return ``4.3 MiB``, ``33792K``, ``1024 MB`` or ``4096`` in bytes.

    Firmware and util-linux always use powers of 1024.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 1 << 63 else None
    text = str(value).strip()
    if not isinstance(value, str) or len(text) > 24:
        return None
    try:
        return parse_bytes(re.sub(r"(?i)(?<=[kmgtp])b$", "iB", text.removesuffix(" bytes")))
    except FleetmarkError:
        return None


def id_list(text: Any) -> tuple[int, ...] | None:
    """Return ``0-5,18-23`` or ``0 1 2`` as numbers: an empty list for empty text, None for any other text."""
    spans = id_spans(text)
    return None if spans is None else tuple(n for first, last in spans for n in range(first, last + 1))


def id_spans(text: Any) -> tuple[tuple[int, int], ...] | None:
    """Return the first and last number of each part of a list in the format that ``id_list`` reads."""
    if not isinstance(text, str):
        return None
    spans, count = [], 0
    for part in re.split(r"[,\s]+", text.strip()) if text.strip() else []:
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if not match:
            return None
        first, last = int(match[1]), int(match[2] or match[1])
        if last > MAX_ID or first > last or count > MAX_ID:
            return None
        spans.append((first, last))
        count += last + 1 - first
    return tuple(spans)


def document(tool: str, text: str) -> dict[str, Any]:
    """Return the largest JSON object in ``text``, which may contain other text. Raise ParseError if there is none."""
    scan = find_json(text)
    if not scan.documents:
        line = scan.broken[0].error_line if scan.broken else None
        raise ParseError(tool, "a whole JSON document", line=line, got=text.strip()[:120])
    return max(scan.documents, key=lambda d: d.end - d.line).value
