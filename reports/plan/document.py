"""Build a capacity plan's document: answer, purchases, costs, capacity, sites, limits, risks and inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleetmark import __version__
from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.capacity.analysis.results import Limit
from fleetmark.planner.capacity.answer import Answer
from fleetmark.planner.capacity.question import Question
from fleetmark.planner.capacity.series import in_period
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import (
    PAGES,
    Brief,
    Command,
    Document,
    Exhibit,
    Finding,
    Note,
    Section,
    Tile,
    provenance,
)
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Kind, Tone, number
from fleetmark.reports.plan import charts, tables, terms
from fleetmark.reports.plan.brief import brief, question
from fleetmark.reports.plan.data import as_json
from fleetmark.reports.plan.front import NO_PLAN, basis, front, other_plan, singular
from fleetmark.reports.plan.model import PlanView, trades, view
from fleetmark.reports.plan.workbook import book

MOST_YEARS = 10  # maximum cards with the cost of a year
_READ: tuple[Kind, ...] = ("terminal", "markdown", "html", "pdf")  # formats that are read from top to bottom
_BY_PERIOD: tuple[Kind, ...] = ("html", "pdf", "csv", "json")  # formats with room for every period
_STATIC: tuple[Kind, ...] = ("terminal", "markdown", "html", "pdf", "csv", "json")  # a workbook has live tables instead


def document(answer: Answer, created: str, command: str, _: Language) -> Document:
    """Return the document of the plan, or of the reason why there is none.

    ``created``: ISO 8601. ``command``: the command that repeats the plan. ``_``: the language of charts.
    """
    q = answer.question
    data = as_json(answer, {"created": created, "command": command, "seconds": answer.seconds})
    title = message("Capacity plan, {first} to {last}", first=q.periods[0], last=q.periods[-1])
    prices, sites = message("prices of {date}", date=q.date), count(len(q.sites), "site")
    details = (title, prices, sites, count(len(q.workloads), "workload"))
    if answer.plan is None:
        head, sections = _refusal(answer, command)
        return Document(
            title=title,
            answer=head,
            tone="bad",
            details=details,
            sections=sections,
            created=created,
            data=data,
            brief=_brief_refusal(answer, command),
        )
    v = view(answer)
    first = front(v)
    return Document(
        title=title,
        answer=first.answer,
        details=(*details, basis(v.question), message("solved in {duration}", duration=fmt.duration(v.plan.seconds))),
        sections=tuple(_sections(v, command, _)),
        created=created,
        data=data,
        brief=brief(v, first, tables.orders(v) if v.orders else None, command),
    )


def _tone_of_target(v: PlanView) -> Tone:
    """Return ``bad`` if too few futures meet demand, ``unsure`` if that is possible, and nothing otherwise."""
    target = 1 - v.question.promise
    if v.futures is None or v.futures.shortfall.value <= target:
        return ""
    return "bad" if (v.futures.shortfall.lo or 0.0) > target else "unsure"


def _brief_refusal(answer: Answer, command: str) -> Brief:
    """Return the brief of a question that has no plan: which limits conflict."""
    assert answer.conflict is not None
    limits = tuple(_relaxation(answer.question, limit) for limit in answer.conflict.limits)
    again = Command(message("Relax one of these limits, then plan again."), command)
    return Brief(
        question=question(answer.question.periods),
        worse=limits,
        worse_title=message("Limits in conflict"),
        steps=(again,),
    )


def _sections(v: PlanView, command: str, _: Language) -> Iterator[Section]:
    by_period = (tables.capacity_by_period(v), tables.sites_by_period(v))
    first = front(v)
    yield from book.sections(v, _)
    yield Section("summary", "", tuple(_summary(v)))
    yield Section("risks", message("Largest risks"), tuple(Finding("", risk) for risk in first.risks))
    limits = tuple(Finding("", limit) for limit in first.limits)
    yield Section("tightest", message("What limits it"), limits, is_beside=bool(first.risks))
    yield Section("purchases", message("Purchases"), tuple(_purchases(v)), _STATIC)
    costs = tables.costs(v)
    margins = tables.margins(v)
    earned = (margins,) if margins.rows else ()
    spent = (costs, *charts.costs(v, _), tables.cash(v), *earned)
    yield Section("costs", costs.title, spent, _STATIC, is_beside=True)
    yield Section("capacity", message("Capacity"), tuple(_capacity(v, _)), _READ)
    yield Section("capacity_periods", by_period[0].title, by_period[:1], _BY_PERIOD, is_folded=True)
    yield Section("sites", message("Sites"), (*charts.power(v, _), tables.sites(v)), _READ)
    yield Section("sites_periods", by_period[1].title, by_period[1:], _BY_PERIOD, is_folded=True)
    yield Section("limits", message("Limits and alternatives"), tuple(_limits(v)), _STATIC)
    if v.answer.scenarios:
        compared = tables.compared(v.answer)
        yield Section("scenarios", compared.title, (compared,), _STATIC)
    yield Section("futures", message("Risks"), tuple(_risks(v, _)), _STATIC)
    yield Section("inputs", message("Inputs"), tuple(_inputs(v)), _STATIC)
    yield _provenance(v.question, command)


def _summary(v: PlanView) -> Iterator[Exhibit]:
    """Yield sentences on the first order, the costs, and the effect of buying nothing."""
    first = front(v)
    if first.now:
        yield Note(first.now, "strong")
    yield from (Note(first.cost), Note(first.nothing))
    tone = _tone_of_target(v)
    for n, sentence in enumerate(first.sure):
        yield Note(sentence, tone) if tone and n == 0 else Note(sentence, quiet=True)
    if warnings := v.question.source.get("warnings"):
        yield Note(message("Warning: {warnings}", warnings=warnings), "unsure")
    for n, year in enumerate(v.years[:MOST_YEARS]):
        title = message("Cost in {year}, {currency}", year=year, currency=v.question.currency)
        yield Tile(title, number(v.in_year(n)), message("undiscounted"))


def _purchases(v: PlanView) -> Iterator[Exhibit]:
    yield tables.orders(v) if v.orders else Note(message("Nothing is bought."))
    if v.retired:
        yield tables.retired(v)


def _capacity(v: PlanView, _: Language) -> Iterator[Exhibit]:
    yield Note(
        message(
            "Capacity: the demand that the plan's servers can serve. If a workload must survive a lost failure domain, "
            "the worst one counts as lost."
        ),
        quiet=True,
    )
    yield Note(
        message(
            "If nothing is bought: what the servers in place serve until they reach their age limit, shared as well as "
            "possible."
        ),
        quiet=True,
    )
    yield from charts.demand(v, v.futures, _)
    yield tables.capacity(v)
    if v.plan.margin:
        yield Note(_margins(v), quiet=True)


def _margins(v: PlanView) -> Message:
    listed = []
    for workload in v.question.workloads:
        first, *_, last = (v.plan.factor(workload, t) for t in (0, len(v.question.periods) - 1))
        ends = {"first": fmt.factor(first), "last": fmt.factor(last)}
        listed.append(message("{workload} {first} to {last}", workload=workload, **ends))
    return message("Planned demand over median demand, first to last period: {margins}", margins=joined(listed))


def _limits(v: PlanView) -> Iterator[Exhibit]:
    if v.bindings:
        yield tables.bindings(v)
    subject = message("Next best plans")
    for other in v.alternatives:
        figures = joined(joined(trade, " ") for trade in trades(other, v.question.currency))
        yield Finding(subject, other_plan(v, other), (figures or message("the same in purchases, power and space"),))
    if v.others_missing:
        yield Finding(subject, v.others_missing)


def _risks(v: PlanView, _: Language) -> Iterator[Exhibit]:
    if v.futures is not None:
        yield tables.needed(v, v.futures)
    effects = [effect for effect in v.tornado if effect.size > 0]
    if effects:
        yield from charts.tornado(v, effects, _)
        yield tables.drivers(v, effects)
        if any(end is None for effect in effects for end in (effect.at_low, effect.at_high)):
            yield Note(NO_PLAN, quiet=True)


def _inputs(v: PlanView) -> Iterator[Exhibit]:
    yield from (Finding(terms.TITLE, line) for line in terms.lines(v.answer.ledger))
    yield from (tables.worth(v), tables.skus(v), tables.workloads(v))


def _provenance(q: Question, command: str) -> Section:
    energy = message(
        "Energy: {price} {currency} per kWh, PUE {pue}, unless a site has its own",
        price=f"{in_period(q.energy_price, 0):g}",
        currency=q.currency,
        pue=f"{q.pue:g}",
    )
    section = provenance(command, Note(energy), Note(f"Fleetmark {__version__}"))
    exhibits = (*section.exhibits, *((tables.sources(q.source),) if q.source else ()))
    return replace(section, exhibits=exhibits, only=(*PAGES, "markdown"))


def _refusal(answer: Answer, command: str) -> tuple[Message, tuple[Section, ...]]:
    """Return why there is no plan, and which relaxations would give one."""
    conflict = answer.conflict
    assert conflict is not None
    limits = count(len(conflict.limits), "limit")
    exhibits: list[Exhibit] = [Finding("", _relaxation(answer.question, limit)) for limit in conflict.limits]
    if not conflict.smallest:
        exhibits.append(Note(message("(a smaller set of limits in conflict may exist)"), quiet=True))
    head = message("No plan is possible: {limits} cannot be met together", limits=limits)
    return head, (Section("conflict", "", tuple(exhibits)), _provenance(answer.question, command))


def _relaxation(q: Question, limit: Limit) -> Message:
    """Return by how much the limit must be relaxed, or that this does not help, and which resource is the limit."""
    change = _change(q, limit)
    for resource in dict.fromkeys(limit.scarce.values()):
        bounded = joined(fmt.clean(s) for s, other in limit.scarce.items() if other == resource)
        change = message(
            "{change}; {resource} bounds the work of {skus}", change=change, resource=resource, skus=bounded
        )
    return message("{limit}: {change}", limit=limit.name, change=change)


def _change(q: Question, limit: Limit) -> Message:
    """Return by how much the limit must be relaxed, or that relaxing it does not help."""
    if limit.relax is None:
        others = joined(limit.beside, message(" and ")) or message("the others")
        return message("changing it alone does not help: {others} still cannot be met together", others=others)
    amount, unit = (limit.relax / 1000, "kW") if limit.unit == "W" else (limit.relax, limit.unit)
    figure = fmt.amount(amount)
    unit = singular(unit) if figure == "1" else unit
    change = message("alone it must be relaxed by {by} {unit}", by=figure, unit=unit)
    if limit.cost is not None:
        cost = f"{fmt.money(limit.cost)} {q.currency}"
        change = message("{change}; the plan then costs {cost}", change=change, cost=cost)
    return change
