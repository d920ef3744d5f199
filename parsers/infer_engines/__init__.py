"""Parse the output of Fleetmark's program that times inference engines side by side.

Cases: ``ENGINE-bN``; in a campaign, they are parts of the network's case. Metrics: ``samples_per_second`` (higher),
``latency_p50`` and ``latency_p99`` (s, lower; ``latency_p99`` only with at least 200 calls), ``build_time`` (s),
``output_error`` (largest difference from the reference in fp64 over the largest output), ``parameters``. A case whose
outputs differ by more than the printed tolerance is ``invalid``. Notes name the engines that are not installed or fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit import json_lines as lines
from fleetmark.parsers.kit.text import number

_TOOL = "infer_engines"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one network. Raise ParseError if no engine ran it."""
    report = lines.read(_TOOL, raw)
    network, tolerance = lines.word(report.head, "network"), lines.positive(report.head, "tolerance")
    rows = [row for _, row in report.rows if lines.word(row, "engine") and lines.integer(row, "batch", 1)]
    notes = tuple(dict.fromkeys(filter(None, (_note(row) for _, row in report.rows))))
    measurements = [m for row in rows for m in _figures(row, report.head)] if network and tolerance else []
    if not measurements or tolerance is None:
        raise ParseError(
            _TOOL, "the time of a network on an engine", got="; ".join(notes)[:300] or str(report.head)[:120]
        )
    wrong = {case: reason for row in rows if (reason := _wrong(row, tolerance)) and (case := _case(row))}
    versions = dict.fromkeys(f"{row['engine']} {lines.word(row, 'version')}".strip() for row in rows)
    version = ", ".join(versions)[:200]
    if report.cut:
        return Parsed(_TOOL, tuple(measurements), version, invalid=report.cut, notes=notes)
    invalid = "; ".join(f"{case}: {reason}" for case, reason in list(wrong.items())[:5]) or None
    return Parsed(_TOOL, tuple(measurements), version, invalid=invalid, notes=notes, invalid_cases=tuple(wrong))


def _case(row: dict[str, Any]) -> str:
    return f"{lines.word(row, 'engine')}-b{row['batch']}"


def _figures(row: dict[str, Any], head: dict[str, Any]) -> Iterator[Measurement]:
    mean = lines.positive(row, "mean")
    if mean is None:
        return
    case = _case(row)
    figures: list[tuple[str, float | None, str, Better]] = [
        ("samples_per_second", row["batch"] / mean, "1/s", Better.HIGHER),
        ("latency_p50", lines.positive(row, "p50"), "s", Better.LOWER),
        ("latency_p99", lines.positive(row, "p99"), "s", Better.LOWER),
        ("build_time", lines.positive(row, "build"), "s", Better.NONE),
        ("output_error", number(row.get("error")), "1", Better.NONE),
        ("parameters", lines.positive(head, "parameters"), "1", Better.NONE),
    ]
    for name, value, unit, better in figures:
        if value is not None and 0 <= value < float("inf"):
            yield Measurement(_TOOL, case, name, value, unit, better=better)


def _wrong(row: dict[str, Any], tolerance: float) -> str | None:
    """Return why the outputs of an engine are not valid; None if they are."""
    error = number(row.get("error"))
    if error is None:
        return "wrong outputs: they have another shape, or are not numbers"
    if error > tolerance:
        return (
            f"wrong outputs: they differ from the reference by {error:.2g} of the largest, and {tolerance:g} is allowed"
        )
    return None


def _note(row: dict[str, Any]) -> str | None:
    name, reason = lines.word(row, "missing"), row.get("why")
    if not name or not isinstance(reason, str):
        return None
    state = "is not installed" if row.get("is_absent") is True else "failed"
    return f"{name} {state}: {' '.join(reason.split())[:200]}"
