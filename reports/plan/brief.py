"""Summarise a plan: what to buy, its cost, the effect of buying nothing, risks, limits, and what to order first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.text import Message, joined, message
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Brief, Command, Note
from fleetmark.reports.kit.tabular import Tabular
from fleetmark.reports.plan.front import Front, basis
from fleetmark.reports.plan.model import PlanView, left_out


def brief(v: PlanView, first: Front, orders: Tabular | None, command: str) -> Brief:
    """Return the brief of a plan. ``first``: its first screen. ``orders``: the table of purchases."""
    q = v.question
    years = [message("{year}: {money} {currency}", year=y, money=m, currency=q.currency) for y, m in first.years]
    return Brief(
        question=question(q.periods),
        table=orders,
        cost=tuple(filter(None, (first.cost, message("By year, undiscounted: {years}", years=joined(years, "; "))))),
        worse=(first.nothing, *first.risks),
        worse_title=message("What can go wrong"),
        missing=tuple(_missing(v)),
        certainty=(*first.sure, *first.limits),
        steps=tuple(_steps(first, command)),
    )


def question(periods: Sequence[str]) -> Message:
    """Return the question that every plan answers."""
    ends = {"first": fmt.clean(periods[0]), "last": fmt.clean(periods[-1])}
    return message(
        "What must be bought and retired from {first} to {last} so that demand is met within every limit?", **ends
    )


def _missing(v: PlanView) -> Iterator[str]:
    if any(worth.origin is None for sku in v.question.skus.values() for worth in sku.worth.values()):
        yield basis(v.question)
    yield from left_out(v.question)
    if v.others_missing:
        yield v.others_missing
    if warnings := v.question.source.get("warnings"):
        yield message("Warning: {warnings}", warnings=warnings)


def _steps(first: Front, command: str) -> Iterator[Command | Note]:
    if first.now:
        yield Note(first.now)
    yield Command(message("Make this report again"), command)
