"""Shared by the parsers of facts: numbers, sizes and CPU lists. What cannot be read is absent, not wrong."""

from __future__ import annotations

import re
from typing import Any

from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.units import parse_bytes
from parsers.kit.text import find_json

MAX_ID = 1 << 16  # no host has a CPU or node number beyond this; a longer range is damaged text
# No host has a longer number, and its first digits would be another number.
_LEADING = re.compile(r"\s*([-+]?[0-9]{1,18}(?![0-9])(?:\.[0-9]+)?)")
_NOTHING = frozenset(
    {"", "-", "n/a", "[n/a]", "none", "unknown", "other", "not specified", "not provided", "not available"}
    | {"<out of spec>", "<bad index>", "no dimm", "undefined", "not supported", "[not supported]", "null"}
    | {"to be filled by o.e.m.", "requested functionality has been deprecated", "err!", "unknown error"}
    | {"[unknown error]", "gpu is lost", "[gpu is lost]", "insufficient permissions", "[insufficient permissions]"}
)


def text_or_none(value: Any) -> str | None:
    """The text of a field, None where the tool says in words that it does not know."""
    if not isinstance(value, str) or value.strip().lower() in _NOTHING:
        return None
    return value.strip()


def leading(value: Any) -> float | None:
    """The number a field begins with (``3800.0000``, ``4800 MT/s``, ``16x``), None where it begins with none."""
    match = _LEADING.match(str(value)) if isinstance(value, str | int | float) else None
    return float(match[1]) if match else None


def integer(value: Any) -> int | None:
    """As ``leading``, for whole numbers; None for a fraction."""
    figure = leading(value)
    return int(figure) if figure is not None and figure == int(figure) else None


def size(value: Any) -> int | None:
    """Bytes of ``4.3 MiB``, ``33792K``, ``1024 MB`` or ``4096``: firmware and util-linux mean powers of 1024 by all."""
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
    """``0-5,18-23`` or ``0 1 2`` as numbers; empty text is an empty list; None for anything else."""
    spans = id_spans(text)
    return None if spans is None else tuple(n for first, last in spans for n in range(first, last + 1))


def id_spans(text: Any) -> tuple[tuple[int, int], ...] | None:
    """As ``id_list``, the first and last number of each part."""
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
    """The largest JSON object in ``text``, which may hold other text. Raises ParseError."""
    scan = find_json(text)
    if not scan.documents:
        line = scan.broken[0].error_line if scan.broken else None
        raise ParseError(tool, "a whole JSON document", line=line, got=text.strip()[:120])
    return max(scan.documents, key=lambda d: d.end - d.line).value
