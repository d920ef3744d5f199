"""What the tuning rules say, for a terminal, a ticket or a program."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import Message, count, message
from fleetmark.record.diagnosis.tuning import Advice, Tuning
from fleetmark.record.roofs import Roof
from planner.diagnosis.tuning.rules import RULES
from reports.diagnosis import trial
from reports.hosts import roofs as under_roofs
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.marks import escaped

MANY = 4  # hosts that a line names
MOST_ROOFS = 20  # hosts with their peak, the lowest share first


def evidence(advice: Advice) -> Message:
    """What is so, and where."""
    names = fmt.clean(", ".join(advice.hosts[:MANY])) + (", …" if len(advice.hosts) > MANY else "")
    hosts = count(len(advice.hosts), "host")
    return message("{evidence}: {hosts} ({names})", evidence=advice.evidence, hosts=hosts, names=names)


def standing(advice: Advice) -> Message:
    """Whether a measurement supports it."""
    if advice.rule.measured:
        return message("measured")
    return message("tried") if advice.trials else message("fact only: no gain was measured")


def tried(advice: Advice) -> list[Message]:
    """What trials of its setting changed, a sentence each."""
    return [
        message("{host}: {change}", host=t.host, change=trial.sentence(change))
        for t in advice.trials[:MANY]
        for change in t.changes[:MANY]
    ]


def table(tuning: Tuning, _: Language) -> list[RenderableType]:
    """Every advice with what to do, and what was not looked at."""
    parts: list[RenderableType] = []
    for advice in tuning.advice:
        parts.append(Text(f"{advice.rule.number:>2} {advice.rule.name}", style="bold"))
        parts.append(_part(f"{_(evidence(advice))} ({_(standing(advice))})"))
        parts += [_part(_(text)) for text in tried(advice)]
        parts.append(_part(_(suggestion(advice))))
        parts.append(_part(_(retest(advice)), "dim"))
    if not tuning.advice:
        parts.append(Text(_(message("No rule has anything to say of {hosts}.", hosts=count(tuning.hosts, "host")))))
    if any(roof.best and roof.peak for roof in tuning.roofs):
        parts += [Text(), Text(_("What was measured and its theoretical peak"), style="bold"), _roofs(tuning.roofs, _)]
    return [*parts, Text(), *(_part(_(note), "dim", 0) for note in notes(tuning))]


def suggestion(advice: Advice) -> Message:
    """What to do."""
    return message("suggestion: {what}", what=advice.rule.suggestion)


def retest(advice: Advice) -> Message:
    """How to see whether it helped."""
    return message("retest: {what}", what=advice.rule.retest)


def _roofs(roofs: Sequence[Roof], _: Language) -> RenderableType:
    measured = [(roof.best / roof.peak.rate, roof.best, roof.peak, roof) for roof in roofs if roof.best and roof.peak]
    lines = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in (_("host"), _("part")):
        lines.add_column(name, overflow="fold")
    for name in (_("measured"), _("peak"), "%"):
        lines.add_column(name, justify="right", no_wrap=True)
    lines.add_column("", overflow="fold")
    for share, best, top, roof in sorted(measured, key=lambda m: m[0])[:MOST_ROOFS]:
        numbers = (under_roofs.rate(best, roof.unit), under_roofs.rate(top.rate, roof.unit), f"{share:.0%}")
        part = _(under_roofs.part_name(roof.of, roof.called))
        lines.add_row(Text(fmt.clean(roof.host)), part, *numbers, fmt.clean(_(top.basis)))
    return lines


def notes(tuning: Tuning) -> list[Message]:
    """What could not be looked at."""
    listed: list[Message] = []
    if tuning.without_facts:
        names = fmt.clean(", ".join(tuning.without_facts[:MANY]))
        listed.append(
            message("No facts of {hosts} ({names}).", hosts=count(len(tuning.without_facts), "host"), names=names)
        )
    return listed


def markdown(tuning: Tuning, _: Language) -> str:
    """The advice as a list."""
    lines = []
    for advice in tuning.advice:
        what = f"{escaped(_(evidence(advice)))} ({escaped(_(standing(advice)))})"
        lines.append(f"- **{advice.rule.number} {advice.rule.name}**: {what}")
        lines += [f"  - {escaped(_(text))}" for text in (*tried(advice), suggestion(advice), retest(advice))]
        lines.append(f"  - {escaped(advice.rule.source)}")
    return "\n".join([*lines, "", *(escaped(_(n)) for n in notes(tuning))]).strip() + "\n"


def as_json(tuning: Tuning) -> str:
    """Everything, hosts in full; ``rules`` names what was looked at."""
    return json.dumps(
        {
            "campaign": tuning.campaign,
            "advice": [
                {
                    "rule": a.rule.number,
                    "name": a.rule.name,
                    "evidence": a.evidence,
                    "hosts": list(a.hosts),
                    "measured": a.rule.measured,
                    "suggestion": a.rule.suggestion,
                    "retest": a.rule.retest,
                    "reversible": a.rule.reversible,
                    "trials": [t.campaign for t in a.trials],
                    "source": a.rule.source,
                }
                for a in tuning.advice
            ],
            "roofs": under_roofs.as_json(tuning.roofs),
            "rules": [{"rule": r.number, "name": r.name} for r in RULES],
            "without_facts": list(tuning.without_facts),
        },
        indent=1,
    )


def _part(text: str, style: str = "", indent: int = 3) -> RenderableType:
    return Padding(Text(fmt.clean(text), style=style), (0, 0, 0, indent))
