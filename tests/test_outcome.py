"""A step's telemetry beside its tool: the power, from the best source available."""

from __future__ import annotations

import pytest

from fleetmark.campaign.outcome import _power
from fleetmark.record.replies import Extremes


def drew(watts: float) -> Extremes:
    return Extremes(min=watts, mean=watts, max=watts)


RAPL = {"power_w:package-0": drew(180.0), "power_w:package-1": drew(170.0), "power_w:package-0_dram": drew(20.0)}


@pytest.mark.parametrize(
    ("summary", "watts", "source"),
    [
        (RAPL, 370.0, "rapl"),
        ({**RAPL, "power_w:psys": drew(420.0)}, 420.0, "psys"),
        ({**RAPL, "power_w:psys": drew(420.0), "power_w:power_meter": drew(510.0)}, 510.0, "meter"),
    ],
)
def test_the_best_source_counts(summary: dict[str, Extremes], watts: float, source: str) -> None:
    power = _power(summary)
    assert power and (power.value, power.unit, dict(power.labels)) == (watts, "W", {"source": source})


def test_no_sensor_no_power() -> None:
    assert _power({"cpu_busy": drew(0.5)}) is None
    assert _power({"power_w:package-0": drew(0.0)}) is None
