"""Reads files from outside, with a bound on their size: a file can be larger than the memory, or have no end."""

from __future__ import annotations

from pathlib import Path

from fleetmark.base.errors import FleetmarkError


def read_bytes(path: Path, limit: int, advice: str) -> bytes:
    """Return the content of ``path``, at most ``limit`` bytes (whole MiB).

    Raises FleetmarkError, which ends in ``advice``, for a larger file, and OSError for one that cannot be read.
    """
    with path.open("rb") as source:
        raw = source.read(limit + 1)
    if len(raw) > limit:
        raise FleetmarkError(f"{path}: larger than {limit >> 20} MiB; {advice}")
    return raw
