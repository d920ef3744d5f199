"""A comparison as JSON: the first screen as text, and every row with every digit; a missing value is null."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from planner.comparison import Comparison
from planner.estimate import CONFIDENCE
from reports.comparison import headline
from reports.comparison.cell import Cell
from reports.comparison.front import Around, Front, front
from reports.comparison.model import RatioRow, footnotes
from reports.comparison.titles import titled
from reports.kit.tabular import Part, documents


def render(
    comparison: Comparison,
    rows: Sequence[RatioRow],
    around: Around | None,
    selectors: Mapping[str, str],
    parts: Sequence[Part] = (),
) -> str:
    """The document. ``selectors``: a side's name to what chose it; ``parts``: what is made of tables."""
    doc: dict[str, Any] = {
        "answer": _front(front(comparison, rows, around)),
        "baseline": comparison.baseline,
        "candidates": [c.title for c in comparison.candidates],
        "selectors": dict(selectors),
        "per": comparison.per,
        "pairing": comparison.pairing.value,
        "confidence": CONFIDENCE,
        "panel": None if comparison.panel is None else list(comparison.panel),
        "intervals": {"lo, hi": headline.FLEET, "your_workload_lo, your_workload_hi": headline.WORKLOAD},
        "rows": [{k.rstrip("_"): v for k, v in asdict(row).items()} for row in rows],
        **documents(parts),
        "outliers": [asdict(o) for o in around.outliers] if around else [],
        "warnings": [titled(warning) for warning in comparison.warnings],
        "notes": list(comparison.notes),
        "footnotes": footnotes(comparison),
    }
    return json.dumps(doc, indent=1, allow_nan=False)


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
                "candidates": {c: _cell(x) for c, x in zip(first.candidates, line.cells, strict=True)},
            }
            for line in first.lines
        ],
        "before_you_rely_on_this": [remark.text for remark in first.before],
        "legend": list(first.legend),
    }


def _cell(cell: Cell) -> dict[str, str]:
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
        "why": cell.why,
    }
    return {name: str(text) for name, text in shown.items() if text}
