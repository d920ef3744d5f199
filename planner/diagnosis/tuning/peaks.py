"""What hardware could do at most, from facts and a small table with its sources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fleetmark.base.facts import Facts
from fleetmark.base.yaml import read_yaml

BUS = 8  # bytes that a memory channel moves at once
_TABLE = Path(__file__).with_name("peaks.yml")


@dataclass(frozen=True, slots=True)
class Peak:
    """A theoretical bandwidth in B/s, what it was worked out ``from``, and the ``source`` of what facts do not say."""

    value: float
    worked_out: str
    source: str


@cache
def _channels() -> list[tuple[re.Pattern[str], int, str]]:
    return [(re.compile(r["model"]), int(r["channels"]), str(r["source"])) for r in read_yaml(_TABLE)["memory"]]


def channels(model: str) -> tuple[int, str] | None:
    """The memory channels of one socket and the source that says so; None for a processor that is not in the table."""
    return next(((n, source) for pattern, n, source in _channels() if pattern.search(model)), None)


def memory(facts: Facts) -> Peak | None:
    """Sockets x channels x transfers a second x 8 bytes, at the speed that the modules are set to; None where any of
    these is not known."""
    known = channels(facts.cpu.model or "")
    speeds = [d.configured_mts for d in facts.dimms if d.size and d.configured_mts]
    if known is None or not speeds or not facts.cpu.sockets:
        return None
    number, source = known
    rate = min(speeds)
    peak = facts.cpu.sockets * number * rate * 1e6 * BUS
    return Peak(peak, f"{facts.cpu.sockets} x {number} x {rate} MT/s x {BUS} B", source)
