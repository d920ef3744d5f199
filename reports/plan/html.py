"""A capacity plan as one self-contained HTML page, in the style of the other reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetmark import __version__
from fleetmark.base.text import Message, message
from planner.capacity.answer import Answer
from planner.capacity.tornado import Effect
from planner.capacity.uncertainty import Futures
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.page import Medium, Section, page
from reports.plan import charts, scenarios, terms
from reports.plan.front import NO_PLAN, RANGES, SAVINGS, drawn, front, kilowatts, other_plan, servers_of, step
from reports.plan.model import PlanView, availability, kind, price_of, served, shares_with, trades, view


@dataclass(frozen=True, slots=True)
class About:
    """What reproduces the page: time, command and language."""

    created: str
    command: str
    language: Language = field(default_factory=Language)


@dataclass(frozen=True, slots=True)
class _Page:
    """The fields that ``base.html.j2`` needs of every report."""

    id: str
    created: str
    fleetmark_version: str
    language: Language


def render(
    answer: Answer,
    about: About,
    *,
    templates: Path | None = None,
    medium: Medium = "screen",
) -> str:
    """The page of an answer that has a plan; ``templates`` and errors as for ``reports.formats.html.render``."""
    v, language = view(answer), about.language
    q, futures, tornado = v.question, v.futures, v.tornado
    this = _Page(q.date, about.created, __version__, language)
    context: dict[str, Any] = {
        "title": _title(v),
        "report": this,
        "campaign": this,
        "scales": False,  # every column has one unit, in its head
        "sections": _sections(v, futures, tornado),
        "v": v,
        "q": q,
        "plan": v.plan,
        "futures": futures,
        "last": _last(v, futures),
        "tornado": [e for e in tornado if e.size > 0],
        "impossible": any(math.isinf(e.size) for e in tornado),
        "kind": kind,
        "when_lost": availability,
        "shares_with": shares_with,
        "scenarios": scenarios.rows(answer),
        "difference": scenarios.shown,
        "named": [s.name for s in answer.scenarios],
        "served": served(q),
        "front": front(v),
        "terms": (terms.TITLE, terms.lines(answer.ledger)),
        "step": step,
        "price_of": price_of,
        "kilowatts": kilowatts,
        "fmt": fmt,
        "other_plan": other_plan,
        "servers_of": servers_of,
        "drawn": drawn(v, futures) if futures else {},
        "explained": {"savings": SAVINGS, "ranges": RANGES, "no_plan": NO_PLAN},
        "trades": {a.name: trades(a, q.currency) for a in v.alternatives},
        "charts": {
            "demand": charts.demand(v, futures, language),
            "costs": charts.costs(v, language),
            "power": charts.power(v, language),
            "tornado": charts.tornado(v, tornado, language),
        },
        "command_line": about.command,
        "margins": {w: [v.plan.factor(w, t) for t in range(len(q.periods))] for w in q.workloads},
    }
    return page("plan.html.j2", context, language, templates=templates, medium=medium)


def _title(v: PlanView) -> Message:
    return message("Capacity plan, {first} to {last}", first=v.question.periods[0], last=v.question.periods[-1])


def _last(v: PlanView, futures: Futures | None) -> list[Mapping[str, Any]]:
    """The figures of the futures for each workload in the last period."""
    if futures is None:
        return []
    rows = futures.table[futures.table["period"] == len(v.question.periods) - 1]
    return [{str(k): x for k, x in row.items()} for row in rows.to_dict("records")]


def _sections(v: PlanView, futures: Futures | None, tornado: Sequence[Effect]) -> list[Section]:
    parts: list[tuple[bool, str, Message]] = [
        (True, "answer", message("Summary")),
        (True, "purchases", message("Purchases")),
        (True, "capacity", message("Capacity")),
        (True, "costs", message("Costs")),
        (True, "sites", message("Sites")),
        (bool(v.bindings or v.alternatives or v.others_missing), "limits", message("Limits and alternatives")),
        (bool(v.answer.scenarios), "scenarios", message("Scenarios")),
        (futures is not None or bool(tornado), "futures", message("Risks")),
        (True, "inputs", message("Inputs")),
        (True, "provenance", message("Provenance")),
    ]
    return [Section(id_, title) for shown, id_, title in parts if shown]
