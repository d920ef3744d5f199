"""Present a machine's predicted benchmarks as a document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fleetmark.base.measurement import Better
from fleetmark.base.text import message
from fleetmark.planner.predict.transfer import Prediction
from fleetmark.reports.kit.document import Document, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number, quantity, times


@dataclass(frozen=True, slots=True)
class BenchmarkPrediction:
    """The prediction of one benchmark, with its unit and better direction."""

    prediction: Prediction
    unit: str
    better: str

    def value(self, log: float | None) -> float | None:
        """Convert an oriented logarithm (higher is better) to a value in base units."""
        return None if log is None else math.exp(-log if self.better == Better.LOWER else log)

    def ends(self) -> tuple[float | None, float | None]:
        """Return the interval in base units, the smaller end first."""
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
            "why": p.reason,
            "votes": dict(p.votes),
        }


def document(predictions: Sequence[BenchmarkPrediction]) -> Document:
    """Return a row per predicted benchmark, then the benchmarks without a prediction, each with the reason."""
    columns = (
        Column("benchmark", message("benchmark"), "name"),
        Column("predicted", message("predicted"), "number"),
        Column("ratio", message("ratio"), "number"),
        Column("machines", message("machines"), "number"),
        Column("families", message("families"), "number"),
    )
    predicted = [p for p in predictions if p.prediction.log is not None]
    title = message("Predictions")
    table = Tabular("predictions", title, columns, tuple(map(_row, predicted)), listing=True)
    notes = [
        Note(message("{benchmark}: cannot tell: {why}", benchmark=p.prediction.target, why=p.prediction.reason))
        for p in predictions
        if p.prediction.log is None
    ]
    if predicted:
        level = f"{predicted[0].prediction.level:.0%}"
        text = message("The interval contains {level} of the machines of a new family.", level=level)
        notes.append(Note(text, quiet=True))
    exhibits = ((table,) if predicted else ()) + tuple(notes)
    section = Section("predictions", "", exhibits)
    return Document(title=title, answer="", sections=(section,), data=[p.as_json() for p in predictions])


def _row(figure: BenchmarkPrediction) -> tuple[Cell, ...]:
    p, (lo, hi) = figure.prediction, figure.ends()
    value = figure.value(p.log.value if p.log else None)
    ratio = p.ratio
    return (
        Cell(p.target),
        quantity(value, figure.unit, lo=lo, hi=hi),
        times(ratio.value, ratio.lo, ratio.hi) if ratio else Cell(),
        number(len(p.machines)),
        number(p.families),
    )
