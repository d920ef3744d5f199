"""Load the efficiencies of serving software, fitted to InferenceX's public points, and the widths of intervals.

``python -m benchmarks.predict.serving`` writes ``efficiencies.yml``; ``fit`` describes the method.
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
    """Efficiencies, paces and the errors of predictions.

    A pace is a factor on times, for one software on one generation of chips: ``launch`` on those that no peak explains,
    ``prompt`` on the fixed time of a prompt, and ``step`` on a whole decode step.

    - ``efficiencies``: the efficiencies by name; ``paces``: the paces by group
    - ``widths``: half the widths of intervals as logarithms, by ``known`` or ``new`` software on the generation, then
      by metric
    - ``errors``: by metric, the median error on chips left out of the fit
    - ``coverage``: the share of points on those chips that lie in their intervals
    """

    efficiencies: Mapping[str, float]
    paces: Mapping[str, Mapping[str, float]]
    widths: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    coverage: Mapping[str, float] = field(default_factory=dict)

    def pace(self, name: str) -> Mapping[str, float]:
        """Return the paces of a group, or 1 for a group without points."""
        return self.paces.get(name, _SAME)

    def engines(self) -> list[str]:
        """Return the names of the serving software that has points."""
        return sorted({name.partition(" on ")[0] for name in self.paces})

    def known_groups(self) -> list[str]:
        """Return the names of the groups that have points."""
        return sorted(self.paces)

    def efficiency(self, name: str) -> Efficiency:
        """Return the efficiencies of a group."""
        return efficiency(self.efficiencies, self.pace(name))

    def width(self, name: str) -> Mapping[str, float]:
        """Return half the widths of a group's intervals as logarithms, by metric."""
        return self.widths["known" if self.is_known(name) else "new"]

    def is_known(self, name: str) -> bool:
        """Return whether a group has points."""
        return name in self.paces


def group(software: str, chip: Chip) -> str:
    """Return the group name of a software on a generation of chips."""
    return f"{software} on {chip.generation}"


def efficiency(values: Mapping[str, float], paces: Mapping[str, Any]) -> Efficiency:
    """Return the efficiencies by name, including the paces of a group."""
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
