"""Read the idle states of CPUs: their wake-up times, and the time that CPUs spent in them."""

from __future__ import annotations

import re

from fleetmark.base.facts import IdleState
from fleetmark.parsers.facts._common import leading
from fleetmark.parsers.facts._raw import Raw


def idle_states(raw: Raw) -> tuple[IdleState, ...]:
    """Return the idle states in the order of their numbers; empty if the host reports none, like a virtual machine."""
    words = (raw.file("/proc/uptime") or "").split()
    uptime = leading(words[0]) if words else None
    states = []
    for number, state in raw.table("idle_states").items():
        if not re.fullmatch(r"\d{1,2}", number):
            continue
        span = (uptime or 0.0) * state["cpus"]
        values = {
            "number": int(number),
            "name": state["name"],
            "latency_s": state["latency_us"] * 1e-6,
            "share": min(1.0, state["us"] * 1e-6 / span) if span else None,
            "disabled": state["disabled"] >= state["cpus"],
        }
        states.append(raw.fact(IdleState, f"The idle state {number}", values))
    return tuple(sorted((s for s in states if s), key=lambda s: s.number))
