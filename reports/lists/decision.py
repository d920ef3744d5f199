"""Present whether the record is enough to decide between machines, and which runs would be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fleetmark.base.text import Message, count, message
from fleetmark.planner.predict.decision import Level, Panel, TestPlan
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Command, Document, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number, times

MOST_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A machine: its mean over the panel, the panel's benchmarks that it has run, and its number of hosts."""

    name: str
    level: Level
    titles: tuple[str, ...]
    hosts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to a question: does the candidate reach ``at_least`` of the baseline, or which is best?

    ``leader``: the position of the best contender. ``doubt``: the probability that the decision is wrong. ``plan``:
    what to run next on ``next_machine``. ``workload``: the workload of the first step, or "" if Fleetmark has none.
    ``is_imported``: the results of the next machine come from an imported table.
    """

    baseline: str | None
    at_least: float | None
    error: float
    contenders: tuple[Contender, ...]
    reference: Contender | None
    leader: int
    doubt: float
    is_decided: bool
    panel: Panel
    next_machine: str
    plan: TestPlan
    workload: str
    is_imported: bool

    def ratio(self, contender: Contender) -> tuple[float, float, float]:
        """Return a contender's ratio to the baseline (or to the best contender), and the bounds of the 95% interval."""
        against = self.reference or self.contenders[self.leader]
        if against is contender:
            return 1.0, 1.0, 1.0
        difference = contender.level.minus(against.level)
        lo, hi = difference.interval()
        return math.exp(difference.log), math.exp(lo), math.exp(hi)


def document(decision: Decision) -> Document:
    """Return the decision, the machines, and the next runs."""
    exhibits: list[Tabular | Note | Command] = [_machines(decision)]
    exhibits += [] if decision.is_decided else list(_next(decision))
    panel = decision.panel
    exhibits.append(
        Note(
            message(
                "The correlation between the {n} benchmarks is estimated from {machines} recorded machines of "
                "{families} families.",
                machines=f"{panel.machines:,}",
                families=panel.families,
                n=len(panel.titles),
            ),
            quiet=True,
        )
    )
    return Document(
        title=message("Decision"),
        answer=_answer(decision),
        sections=(Section("decision", "", tuple(exhibits)),),
        tone="good" if decision.is_decided else "",
        data=_data(decision),
    )


def _answer(decision: Decision) -> Message:
    leader = decision.contenders[decision.leader]
    value, lo, hi = decision.ratio(leader)
    doubt = _chance(decision.doubt)
    if decision.at_least is None:
        if decision.is_decided:
            return message(
                "{best} is the best; the chance that another one is better is {doubt}.", best=leader.name, doubt=doubt
            )
        return message(
            "Not decided: {best} leads, but the chance that another one is better is {doubt}.",
            best=leader.name,
            doubt=doubt,
        )
    interval = fmt.interval(lo, hi) if lo < hi else ""
    figures = {
        "candidate": leader.name,
        "baseline": decision.baseline,
        "ratio": f"{fmt.ratio(value)} {interval}".strip(),
        "least": fmt.ratio(decision.at_least),
        "doubt": doubt,
    }
    if not decision.is_decided:
        return message(
            "Not decided: one {candidate} replaces {ratio} {baseline}; the probability that it is on the other "
            "side of {least} is {doubt}.",
            **figures,
        )
    if value >= decision.at_least:
        return message(
            "Yes: one {candidate} replaces {ratio} {baseline}; the chance that it is less than {least} is {doubt}.",
            **figures,
        )
    return message(
        "No: one {candidate} replaces {ratio} {baseline}; the chance that it is {least} or more is {doubt}.", **figures
    )


def _chance(value: float) -> str:
    return message("below 0.1%") if value < 0.001 else fmt.share(value)


def _machines(decision: Decision) -> Tabular:
    against = decision.baseline or decision.contenders[decision.leader].name
    columns = (
        Column("machine", message("machine"), "name"),
        Column("ratio", message("against {baseline}", baseline=against), "number"),
        Column("run", message("benchmarks run"), "number"),
        Column("hosts", message("hosts"), "number"),
    )
    rows = []
    for contender in (*decision.contenders, *([decision.reference] if decision.reference else [])):
        value, lo, hi = decision.ratio(contender)
        shown = times(value, lo, hi) if lo < hi else times(value, None, None)
        rows.append((Cell(contender.name), shown, number(len(contender.titles)), number(contender.hosts)))
    return Tabular("machines", message("What is known"), columns, tuple(rows))


def _next(decision: Decision) -> list[Tabular | Note | Command]:
    plan = decision.plan
    if not plan.steps:
        return [
            Note(
                message(
                    "All benchmarks have run; only the variation between hosts remains. Measure more hosts of each "
                    "machine."
                )
            )
        ]
    columns = (
        Column("step", message("step"), "number"),
        Column("benchmark", message("benchmark"), "name"),
        Column("error", message("standard error after it"), "number"),
    )
    rows = tuple(
        (number(n), Cell(title), Cell(f"{math.expm1(se):.1%}", se)) for n, (title, se) in enumerate(plan.steps, 1)
    )
    title = message("Run next on {machine}", machine=decision.next_machine)
    exhibits: list[Tabular | Note | Command] = [Tabular("next", title, columns, rows[:MOST_STEPS])]
    figures = {
        "benchmarks": count(len(plan.steps), "benchmark"),
        "hosts": count(plan.hosts, "host"),
        "runs": count(plan.runs, "run"),
        "error": fmt.share(decision.error),
    }
    if plan.is_enough:
        text = message(
            "If the estimate does not change, {benchmarks} on {hosts} ({runs}) will reduce the error to {error} or "
            "less. Run `design` again after each run: fewer runs may be enough.",
            **figures,
        )
    else:
        text = message(
            "The difference is so small that the error may exceed {error} even after {benchmarks} on {hosts} ({runs}).",
            **figures,
        )
    return [*exhibits, Note(text), _how(decision)]


def _how(decision: Decision) -> Note | Command:
    """Return how to obtain the result of the first step."""
    title = decision.plan.steps[0][0]
    if decision.workload and not decision.is_imported:
        return Command(f"fleetmark run -s {decision.workload}", message("Measure the first benchmark on that machine"))
    if decision.workload:
        return Note(
            message(
                "The results of {machine} come from an imported table, so Fleetmark cannot run {benchmark} on it. "
                "Import this result, or run `fleetmark run -s {workload}` on a machine of this type.",
                machine=decision.next_machine,
                benchmark=title,
                workload=decision.workload,
            )
        )
    return Note(
        message(
            "Fleetmark has no workload that measures {benchmark}. Import this result of {machine}: fleetmark import",
            benchmark=title,
            machine=decision.next_machine,
        )
    )


def _data(decision: Decision) -> dict[str, object]:
    def side(contender: Contender) -> dict[str, object]:
        value, lo, hi = decision.ratio(contender)
        return {
            "machine": contender.name,
            "ratio": value,
            "lo": lo,
            "hi": hi,
            "benchmarks": list(contender.titles),
            "hosts": contender.hosts,
        }

    return {
        "baseline": decision.baseline,
        "at_least": decision.at_least,
        "error": decision.error,
        "decided": decision.is_decided,
        "best": decision.contenders[decision.leader].name,
        "doubt": decision.doubt,
        "candidates": [side(contender) for contender in decision.contenders],
        "panel": {
            "benchmarks": list(decision.panel.titles),
            "machines": decision.panel.machines,
            "families": decision.panel.families,
        },
        "next": {
            "machine": decision.next_machine,
            "hosts": decision.plan.hosts,
            "enough": decision.plan.is_enough,
            "steps": [{"benchmark": title, "standard_error": se} for title, se in decision.plan.steps],
        },
    }
