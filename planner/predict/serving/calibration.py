"""Efficiencies of serving software, as fitted to InferenceX's public points, and the widths of intervals.

``efficiencies.yml`` is written by ``python -m benchmarks.predict.serving``; ``fit`` has the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from fleetmark.base.yaml import read_yaml
from fleetmark.planner.predict.serving.roofline import OPERATORS, Chip, Efficiency

FILE = Path(__file__).with_name("efficiencies.yml")
METRICS = ("ttft", "tpot", "rate")
LEVEL = 0.9
_SAME: Mapping[str, float] = {"launch": 1.0, "prompt": 1.0, "step": 1.0}


@dataclass(frozen=True, slots=True)
class Calibration:
    """``efficiencies`` by name, the ``paces`` of software on generations of chips, and how far predictions may be off.

    A pace multiplies times: ``launch`` those that no peak explains, ``prompt`` the fixed time of a prompt, and ``step``
    a whole decode step.
    ``widths``: half the widths of intervals as logarithms, by ``known`` or ``new`` software on the generation, then by
    metric. ``errors``: the median errors on chips that were left out, by metric; ``coverage``: the share of points in
    their intervals there.
    """

    efficiencies: Mapping[str, float]
    paces: Mapping[str, Mapping[str, float]]
    widths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    coverage: Mapping[str, float] = field(default_factory=dict)

    def pace(self, name: str) -> Mapping[str, float]:
        """Return the paces of a group; 1 for one without points."""
        return self.paces.get(name, _SAME)

    def engines(self) -> list[str]:
        """Return the names of the serving software with points."""
        return sorted({name.partition(" on ")[0] for name in self.paces})

    def known_groups(self) -> list[str]:
        """Return the names of the groups with points."""
        return sorted(self.paces)

    def efficiency(self, name: str) -> Efficiency:
        """Return the efficiencies of a group."""
        return efficiency(self.efficiencies, self.pace(name))

    def width(self, name: str) -> Mapping[str, float]:
        """Return the half widths of a group's intervals as logarithms, by metric."""
        return self.widths["known" if self.is_known(name) else "new"]

    def is_known(self, name: str) -> bool:
        """Return whether a group has points."""
        return name in self.paces


def group(software: str, chip: Chip) -> str:
    """Return the name of a software on a generation of chips."""
    return f"{software} on {chip.generation}"


def efficiency(values: Mapping[str, float], paces: Mapping[str, Any]) -> Efficiency:
    """Return efficiencies by name, with the paces of a group."""
    alike = {"head": "projections"}
    compute = {k: values[f"compute {alike.get(k, k)}"] for k in OPERATORS}
    traffic = {k: values[f"traffic {alike.get(k, k)}"] for k in OPERATORS}
    return Efficiency(
        compute=compute,
        traffic=traffic,
        wire=values["wire"],
        launch=values["launch"] * paces["launch"],
        collective=values["collective"] * paces["launch"],
        step=values["step"] * paces["launch"],
        overlap=values["overlap"],
        waiting=values["waiting"],
        prefill=values["prefill"] * paces["prompt"],
        step_pace=paces["step"],
    )


@cache
def shipped() -> Calibration:
    """Return the calibration that Fleetmark ships."""
    document = read_yaml(FILE)
    return Calibration(**document)
