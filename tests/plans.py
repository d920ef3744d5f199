"""Questions of plans from their text, their plans, and the same questions by way of sheets and of a workbook."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fleetmark.base.yaml import read_yaml
from fleetmark.demand import csv as demand_csv
from fleetmark.demand import question as demand
from fleetmark.demand import workbook
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.checks import check
from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.capacity.solve import solve
from tests.reports import plan_sample


def question_of(folder: Path, written: str) -> Question:
    """Return the question of a YAML text, which stays in ``folder`` as demand.yml."""
    file = folder / "demand.yml"
    file.write_text(written)
    return demand.read(file, folder)


def solved(q: Question, gap: float = 0.0005) -> Plan:
    """Return the plan of a question. It keeps every limit."""
    plan = solve(q, gap=gap)
    assert isinstance(plan, Plan)
    assert check(q, plan) == []
    return plan


def other_forms(folder: Path, q: Question) -> Iterator[Question]:
    """Yield the question of ``folder`` read back from its sheets and from the workbook of its plan, without sources."""
    sheets = folder / "sheets"
    sheets.mkdir()
    for name, written in demand_csv.sheets(read_yaml(folder / "demand.yml"), q.periods).items():
        (sheets / name).write_text(written)
    yield replace(demand.read(sheets, folder), source={})
    book = folder / "plan.xlsx"
    book.write_bytes(plan_sample.workbook(Answer(q, solved(q)), created=""))
    yield replace(workbook.read(book), source={})
