"""The plan as a workbook that planners can edit: inputs, live formulas, the solver's decisions, checks.

Sizing, power, cost and checks follow a change of a price, a demand or an equivalence. The solver's decisions do not
change; ``fleetmark.demand.workbook`` reads the inputs back for another solve.
"""

from __future__ import annotations

from fleetmark import __version__
from fleetmark.base.text import message
from fleetmark.planner.capacity.answer import Answer
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.workbook import Book
from fleetmark.reports.plan.front import front as first_screen
from fleetmark.reports.plan.model import view
from fleetmark.reports.plan.xlsx import checks, front, inputs, limits, sensitivity
from fleetmark.reports.plan.xlsx import plan as plan_tabs
from fleetmark.reports.plan.xlsx.layout import TABS, Places
from fleetmark.reports.plan.xlsx.numbers import Numbers


def render(answer: Answer, *, created: str = "", command: str = "", language: Language | None = None) -> bytes:
    """The workbook of an answer that has a plan. ``created``: ISO 8601; the same arguments give the same bytes.

    The question may differ from the one that the plan was solved for, if it names the same workloads, SKUs, sites and
    periods. The workbook then shows the plan under that question.
    """
    assert answer.plan is not None
    book = Book(message("Fleetmark purchase plan"), created, language or Language())
    numbers = Numbers(answer.question, answer.plan)
    at = Places(book, numbers)
    for key, (title, _, what) in TABS.items():
        at.sheets[key].top(title, what)
    inputs.write(book, at, numbers)
    plan_tabs.write(book, at, numbers)
    limits.write(book, at, numbers)
    sensitivity.write(book, at, numbers, answer)
    broken = checks.write(at, numbers)
    front.benchmarks(book, at, numbers)
    front.charts(book, at, numbers)
    provenance = front.Provenance(created, command, __version__)
    front.readme(book, at, numbers, broken, provenance, first_screen(view(answer)))
    return book.bytes()
