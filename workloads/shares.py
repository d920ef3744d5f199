"""Define how much of a host the tools of a suite may take: shares of its CPU time and memory."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, model_validator

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.units import parse_bytes
from fleetmark.workloads.manifest import _Part

LEAST_MEMORY = 64 << 20  # bytes; Fleetmark's own program on the host needs a third
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) ?%", re.ASCII)


def _fraction(text: str) -> float | None:
    match = _PERCENT.fullmatch(text)
    return float(match[1]) / 100 if match and 0 < float(match[1]) <= 100 else None


def _cpu(text: str) -> str:
    if text and _fraction(text) is None:
        raise ValueError(f"must be a share of the CPU time such as 25%, got {text!r}")
    return text


def _memory(text: str) -> str:
    if text and _fraction(text) is None:
        try:
            size = parse_bytes(text)
        except FleetmarkError:
            size = 0
        if size < LEAST_MEMORY:
            raise ValueError(f"must be a share such as 25% or a size of at least 64MiB, got {text!r}")
    return text


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class Shares(_Part):
    """Limit the tools of a suite on each host. ``cpu``: a percentage; ``memory``: a percentage or a size."""

    cpu: Annotated[str, BeforeValidator(_text), AfterValidator(_cpu)] = ""
    memory: Annotated[str, BeforeValidator(_text), AfterValidator(_memory)] = ""

    @model_validator(mode="after")
    def _is_any(self) -> Shares:
        if not (self.cpu or self.memory):
            raise ValueError("names no share; add cpu or memory, or remove it")
        return self

    def as_job(self) -> dict[str, float]:
        """Return the part of a job: shares from 0 to 1, or the memory in bytes."""
        values = {"cpu": _fraction(self.cpu), "memory": _fraction(self.memory)}
        if self.memory and values["memory"] is None:
            values["memory"] = parse_bytes(self.memory)
        return {kind: value for kind, value in values.items() if value is not None}

    def left_of(self, facts: Facts) -> Facts:
        """Return the facts of a host with no more memory than the share, from which sizes of working sets follow."""
        memory = self.as_job().get("memory")
        if memory is None:
            return facts
        limit = int(memory if memory > 1 else memory * (facts.memory or 0))
        reduced = {k: min(v, limit) for k in ("memory", "memory_available") if (v := getattr(facts, k)) is not None}
        return facts.model_copy(update=reduced)
