"""Define how much of a host the tools of a suite may take: shares of its CPU time, memory, disks and network."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, SerializerFunctionWrapHandler, model_serializer, model_validator

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.units import parse_bytes, parse_quantity
from fleetmark.workloads.manifest import _Part

LEAST_MEMORY = 64 << 20  # bytes; Fleetmark's own program on the host needs a third
LEAST_DISK, LEAST_NETWORK = 1e6, 125e3  # bytes/s
MAXIMUM_RATE = 1e13  # bytes/s; the program that limits a network counts in ns
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


def _rate(text: str) -> float:
    """Return a rate in bytes/s; 0 if ``text`` is not one."""
    try:
        value, unit = parse_quantity(text)
    except FleetmarkError:
        return 0.0
    return value if unit == "B/s" and value <= MAXIMUM_RATE else 0.0


def _disk(text: str) -> str:
    if text and _rate(text) < LEAST_DISK:
        raise ValueError(f"must be a rate of at least 1 MB/s such as 200 MB/s, got {text!r}")
    return text


def _network(text: str) -> str:
    if text and _rate(text) < LEAST_NETWORK:
        raise ValueError(f"must be a rate of at least 1 Mbit/s such as 500 Mbit/s, got {text!r}")
    return text


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class Shares(_Part):
    """Limit the tools of a suite on each host. ``cpu``: a percentage; ``memory``: a percentage or a size.

    ``disk``: a rate, for the reads and the writes of each disk; ``network``: a rate, for each direction of all links.
    """

    cpu: Annotated[str, BeforeValidator(_text), AfterValidator(_cpu)] = ""
    memory: Annotated[str, BeforeValidator(_text), AfterValidator(_memory)] = ""
    disk: Annotated[str, BeforeValidator(_text), AfterValidator(_disk)] = ""
    network: Annotated[str, BeforeValidator(_text), AfterValidator(_network)] = ""

    @model_validator(mode="after")
    def _is_any(self) -> Shares:
        if not (self.cpu or self.memory or self.disk or self.network):
            raise ValueError("names no share; add cpu, memory, disk or network, or remove it")
        return self

    @model_serializer(mode="wrap")
    def _present(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return only the shares that are set, so that earlier versions read a suite without the newer ones."""
        return {kind: text for kind, text in dump(self).items() if text}

    def as_job(self) -> dict[str, float]:
        """Return the part of a job: shares from 0 to 1, the memory in bytes, disks and the network in bytes/s."""
        values = {"cpu": _fraction(self.cpu), "memory": _fraction(self.memory)}
        if self.memory and values["memory"] is None:
            values["memory"] = parse_bytes(self.memory)
        values |= {kind: _rate(text) for kind, text in (("disk", self.disk), ("network", self.network)) if text}
        return {kind: value for kind, value in values.items() if value is not None}

    def left_of(self, facts: Facts) -> Facts:
        """Return the facts of a host with no more memory than the share, from which sizes of working sets follow."""
        memory = self.as_job().get("memory")
        if memory is None:
            return facts
        limit = int(memory if memory > 1 else memory * (facts.memory or 0))
        reduced = {k: min(v, limit) for k in ("memory", "memory_available") if (v := getattr(facts, k)) is not None}
        return facts.model_copy(update=reduced)
