"""A comparison as data for programs: the first screen as text, and every row with every digit."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from fleetmark.planner.estimate import CONFIDENCE
from fleetmark.reports.comparison import headline
from fleetmark.reports.comparison.cell import Cell as Result
from fleetmark.reports.comparison.compared import Compared
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.front import Front
from fleetmark.reports.comparison.model import RatioRow, footnotes
from fleetmark.reports.comparison.titles import titled
from fleetmark.reports.kit.document import in_json
from fleetmark.reports.kit.tabular import Cell, Column, Tabular


def record(face: Face, compared: Compared) -> dict[str, Any]:
    """Return the JSON form, seen from one baseline."""
    comparison, frontiers = face.comparison, in_json([block.section for block in compared.frontiers])
    return {
        "answer": _front(face.front),
        "baseline": comparison.baseline,
        "candidates": [candidate.title for candidate in comparison.candidates],
        "selectors": dict(compared.selectors),
        "per": comparison.per,
        "pairing": comparison.pairing.value,
        "confidence": CONFIDENCE,
        "panel": None if comparison.panel is None else list(comparison.panel),
        "intervals": {"lo, hi": headline.FLEET, "your_workload_lo, your_workload_hi": headline.WORKLOAD},
        "rows": [{key.rstrip("_"): value for key, value in asdict(row).items()} for row in face.rows],
        **({"frontiers": frontiers} if frontiers else {}),
        "outliers": [asdict(outlier) for outlier in compared.around.outliers],
        "warnings": [titled(warning) for warning in comparison.warnings],
        "notes": list(comparison.notes),
        "footnotes": footnotes(comparison),
    }


def table(face: Face) -> Tabular:
    """Return every row with every field, for CSV."""
    columns = tuple(
        Column(field.name.rstrip("_"), field.name, "number" if field.type in ("int", "float | None") else "text")
        for field in fields(RatioRow)
    )
    rows = tuple(tuple(map(_cell, asdict(row).values())) for row in face.rows)
    return Tabular("rows", headline.FLEET, columns, rows)


def _cell(value: float | str | None) -> Cell:
    if value is None:
        return Cell()
    return Cell(str(value)) if isinstance(value, str | bool) else Cell(str(value), value)


def _front(first: Front) -> dict[str, Any]:
    return {
        "sentence": first.answer,
        "sides": first.sides,
        "basis": first.basis,
        "bought": first.bought,
        "totals": list(first.totals),
        "gets_worse": list(first.worse),
        "may_get_worse": first.unsure,
        "guardrails": first.guardrails,
        "not_measured": first.not_measured,
        "becomes": first.becomes,
        "classes": [
            {
                "class": line.class_,
                "title": line.title,
                "kind": line.kind,
                "benchmarks": line.benchmarks,
                "remark": line.remark,
                "candidates": {c: _result(x) for c, x in zip(first.candidates, line.cells, strict=True)},
            }
            for line in first.lines
        ],
        "before_you_rely_on_this": [remark.text for remark in first.before],
        "legend": list(first.legend),
    }


def _result(cell: Result) -> dict[str, str]:
    shown = {
        "ratio": cell.ratio,
        "bound": cell.bound,
        "remark": cell.remark,
        "interval": cell.interval,
        "own_program": cell.workload,
        "own_program_unknown": cell.workload_why,
        "benchmarks": cell.spread,
        "servers": cell.servers,
        "servers_interval": cell.servers_range,
        "verdict": cell.verdict,
        "why": cell.reason,
    }
    return {name: str(text) for name, text in shown.items() if text}
