"""Compute guardrails from the congestion and loss that network devices counted during a step.

``parsers.kit.congestion`` defines the meaning of each counter. Unknown counters are only in ``result.json``.
"""

from __future__ import annotations

from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.kit.congestion import totals
from fleetmark.record.replies import StepTelemetry


def counted(telemetry: StepTelemetry | None) -> list[Measurement]:
    """Return the number of events of each kind on the host's devices.

    Kinds that no device counts are omitted.
    """
    events = totals(telemetry.counters if telemetry else {})
    return [Measurement("telemetry", "", event, float(n), "1", better=Better.LOWER) for event, n in events.items()]
