"""Export a comparison for programs: the first screen as text, and every row with full precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

from fleetmark.planner.estimate import CONFIDENCE
from fleetmark.reports.comparison import headline
from fleetmark.reports.comparison.cell import Cell as Result
from fleetmark.reports.comparison.compared import Compared
from fleetmark.reports.comparison.coverage import Coverage
from fleetmark.reports.comparison.face import Face
from fleetmark.reports.comparison.front import Front
from fleetmark.reports.comparison.model import RatioRow, footnotes
from fleetmark.reports.comparison.purchase import bills
from fleetmark.reports.comparison.purchase.costs import Bill
from fleetmark.reports.comparison.titles import titled
from fleetmark.reports.kit.document import in_json
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, records

_COSTS = (
    *("price", "servers_needed", "cost_total", "cost_yearly"),
    *("break_even_price", "break_even_price_lo", "break_even_price_hi"),
)


def record(face: Face, compared: Compared) -> dict[str, Any]:
    """Return the JSON form, seen from one baseline."""
    comparison, frontiers = face.comparison, in_json([block.section for block in compared.frontiers])
    table_of_costs = bills.table(face.front.costs, comparison.baseline)
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
        "costs": [] if table_of_costs is None else records(table_of_costs),
        "outliers": [asdict(outlier) for outlier in compared.around.outliers],
        "warnings": [titled(warning) for warning in comparison.warnings],
        "notes": list(comparison.notes),
        "footnotes": footnotes(comparison),
    }


def table(face: Face, covered: Coverage) -> Tabular:
    """Return every row with every field, for CSV, with the coverage of its class and its costs if prices are known."""
    columns = tuple(
        Column(field.name.rstrip("_"), field.name, "number" if field.type in ("int", "float | None") else "text")
        for field in fields(RatioRow)
    )
    more = [
        Column("coverage_baseline", "coverage_baseline"),
        Column("coverage_candidate", "coverage_candidate"),
    ]
    bill_of = {(bill.side, bill.class_): bill for bill in face.front.costs.bills}
    if bill_of:
        more += [Column(key, key, "number", has_interval=False) for key in _COSTS]
        more.append(Column("cost_unit", "cost_unit"))
    rows = tuple((*map(_cell, asdict(row).values()), *_more(face, covered, row, bill_of)) for row in face.rows)
    return Tabular("rows", headline.FLEET, (*columns, *more), rows)


def _more(face: Face, covered: Coverage, row: RatioRow, bill_of: Mapping[tuple[str, str], Bill]) -> Iterator[Cell]:
    states = covered.cells.get(row.class_, {})
    for side in (face.comparison.baseline, row.candidate):
        yield Cell(states[side].state.value if side in states else "")
    if not bill_of:
        return
    bill = None if row.benchmark else bill_of.get((row.candidate, row.class_))
    if bill is None:
        yield from (Cell() for _ in (*_COSTS, "cost_unit"))
        return
    even = bill.break_even
    figures = (
        *(bill.offer.price, bill.cost.servers, bill.cost.total, bill.cost.yearly),
        *((even.value, even.lo, even.hi) if even else (None, None, None)),
    )
    yield from map(_cell, figures)
    yield Cell(bill.unit)


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
        "totals": list(first.costs.totals),
        "costs": list(first.costs.more),
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
