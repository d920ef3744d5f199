"""Look up hardware data that facts do not contain, in ``peaks.yml``: memory channels, specifications of
accelerators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fleetmark.base.yaml import read_yaml

# Keys of the table by precision. Products of unrounded fp32 have no rate of their own in the table.
_DENSE = {"bf16": "dense16", "fp16": "dense16"} | {name: name for name in ("tf32", "fp8", "fp4", "int8", "fp64")}
_FILE = Path(__file__).with_name("peaks.yml")


@dataclass(frozen=True, slots=True)
class Entry:
    """A number of the table in its base unit, with its ``source``."""

    value: float
    source: str


def channels(model: str) -> Entry | None:
    """Return the memory channels of one socket of a processor."""
    return _entry("processors", model, "channels")


def memory_mts(model: str) -> Entry | None:
    """Return the memory speed in MT/s that a CPU supports with one module per channel; a lower bound if the row covers
    several models.
    """
    return _entry("memory_speeds", model, "mts")


def watts(model: str) -> Entry | None:
    """Return the manufacturer's default power limit of an accelerator in W."""
    return _entry("power_limits", model, "watts")


def nvlinks(model: str) -> Entry | None:
    """Return the NVLinks of an accelerator."""
    return _entry("devices", model, "nvlinks")


def nvlink(model: str) -> Entry | None:
    """Return the rate of one NVLink of an accelerator in one direction, in B/s."""
    return _entry("devices", model, "nvlink")


def memory(model: str) -> Entry | None:
    """Return the memory bandwidth of an accelerator in B/s."""
    return _entry("devices", model, "memory")


def memory_size(model: str) -> Entry | None:
    """Return the memory of an accelerator in B."""
    entry = _entry("memory_sizes", model, "size")
    return Entry(entry.value * 1e9, entry.source) if entry else None


def pair_link(model: str) -> Entry | None:
    """Return the rate of the single link between two accelerators in one direction, in B/s."""
    return _entry("devices", model, "pair_link")


def dense(model: str, precision: str) -> Entry | None:
    """Return the operations per second of an accelerator in dense products of a precision, without sparsity."""
    return _entry("devices", model, _DENSE[precision]) if precision in _DENSE else None


def _entry(part: str, model: str, key: str) -> Entry | None:
    """Return the model's entry; None if the table lacks the model or this figure."""
    row = next((row for pattern, row in _rows(part) if pattern.search(model)), {})
    return Entry(float(row[key]), str(row["source"])) if key in row else None


@cache
def _rows(part: str) -> list[tuple[re.Pattern[str], Mapping[str, Any]]]:
    return [(re.compile(row["model"], re.IGNORECASE), row) for row in read_yaml(_FILE)[part]]
