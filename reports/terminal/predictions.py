"""A machine's predicted benchmarks for a terminal, and how a prediction is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.measurement import Better
from fleetmark.base.units import human
from planner.predict.transfer import Prediction


@dataclass(frozen=True, slots=True)
class BenchmarkPrediction:
    """One benchmark: its prediction, and how to read it (unit, direction)."""

    prediction: Prediction
    unit: str
    better: str

    def value(self, log: float | None) -> float | None:
        """An oriented logarithm in base units."""
        return None if log is None else math.exp(-log if self.better == Better.LOWER else log)

    def ends(self) -> tuple[float | None, float | None]:
        """The interval in base units, the smaller end first."""
        log = self.prediction.log
        lo, hi = (self.value(log.lo), self.value(log.hi)) if log else (None, None)
        return (hi, lo) if self.better == Better.LOWER else (lo, hi)

    def as_json(self) -> dict[str, Any]:
        p, (lo, hi) = self.prediction, self.ends()
        return {
            "benchmark": p.target,
            "unit": self.unit,
            "better": self.better,
            "value": self.value(p.log.value if p.log else None),
            "lo": lo,
            "hi": hi,
            "level": p.level,
            "ratio": p.ratio.value if p.ratio else None,
            "ratio_lo": p.ratio.lo if p.ratio else None,
            "ratio_hi": p.ratio.hi if p.ratio else None,
            "machines": len(p.machines),
            "families": p.families,
            "why": p.why,
            "votes": dict(p.votes),
        }


def table(predictions: Sequence[BenchmarkPrediction]) -> list[RenderableType]:
    """A line per benchmark that could be predicted; then the others, each with its reason."""
    predicted = [p for p in predictions if p.prediction.log is not None]
    parts: list[RenderableType] = [_lines(predicted)] if predicted else []
    for p in predictions:
        if p.prediction.log is None:
            parts.append(Text(f"{p.prediction.target}: cannot tell: {p.prediction.why}"))
    if predicted:
        level = predicted[0].prediction.level
        parts.append(
            Text(
                f"interval: holds {level:.0%} of machines of a family that is not on record; by: machines/families",
                style="dim",
            )
        )
    return parts


def _lines(predictions: Sequence[BenchmarkPrediction]) -> Table:
    lines = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    lines.add_column("benchmark", overflow="fold", min_width=24)
    lines.add_column("predicted", justify="right", no_wrap=True)
    lines.add_column("interval", justify="right")
    lines.add_column("ratio", justify="right")
    lines.add_column("by", justify="right", no_wrap=True)
    for figure in predictions:
        p, (lo, hi) = figure.prediction, figure.ends()
        ratio = _ratio(p.ratio.value, p.ratio.lo, p.ratio.hi) if p.ratio else ""
        ends = f"{human(lo or 0, figure.unit)} to {human(hi or 0, figure.unit)}"
        value = human(figure.value(p.log.value if p.log else None) or 0, figure.unit)
        lines.add_row(Text(p.target), value, ends, Text(ratio), f"{len(p.machines)}/{p.families}")
    return lines


def _ratio(value: float, lo: float | None, hi: float | None) -> str:
    return f"{value:.3g}" if lo is None or hi is None else f"{value:.3g} [{lo:.3g}, {hi:.3g}]"
