"""Compute guardrails from the congestion and loss that network devices counted during a step. Pure.

What each counter counts says ``parsers.kit.congestion``; what that does not know is in ``result.json`` only.
"""

from __future__ import annotations

from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.kit.congestion import totals
from fleetmark.record.replies import StepTelemetry


def counted(telemetry: StepTelemetry | None) -> list[Measurement]:
    """Return the number of events of each kind on the host's devices. Omit kinds that no device counts."""
    events = totals(telemetry.counters if telemetry else {})
    return [Measurement("telemetry", "", event, float(n), "1", Better.LOWER) for event, n in events.items()]
