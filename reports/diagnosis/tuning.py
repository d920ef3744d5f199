"""Present the advice of the tuning rules as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.diagnosis.tuning.rules import RULES
from fleetmark.record.diagnosis.tuning import Advice, Tuning
from fleetmark.record.roofs import Roof
from fleetmark.reports.diagnosis import trial
from fleetmark.reports.hosts import roofs as under_roofs
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Document, Finding, Note, Section
from fleetmark.reports.kit.tabular import Tabular

MANY = 4  # maximum number of hosts named in a line


def evidence(advice: Advice) -> Message:
    """Return the evidence for the advice and the hosts to which it applies."""
    names = fmt.clean(", ".join(advice.hosts[:MANY])) + (", …" if len(advice.hosts) > MANY else "")
    hosts = count(len(advice.hosts), "host")
    return message("{evidence}: {hosts} ({names})", evidence=advice.evidence, hosts=hosts, names=names)


def standing(advice: Advice) -> Message:
    """Return whether a measurement, a trial or only a fact supports the advice."""
    if advice.rule.measured:
        return message("measured")
    return message("tried") if advice.trials else message("fact only: no gain was measured")


def tried(advice: Advice) -> list[Message]:
    """Return a sentence for each change that trials of the setting measured."""
    return [
        message("{host}: {change}", host=t.host, change=trial.sentence(change))
        for t in advice.trials[:MANY]
        for change in t.changes[:MANY]
    ]


def document(tuning: Tuning) -> Document:
    """Return all advice, the measurements compared with their peaks, and what could not be examined."""
    advice = tuple(map(_finding, tuning.advice))
    untold = tuple(Note(note, quiet=True) for note in notes(tuning))
    roofs = (_roofs(tuning.roofs),) if any(roof.best and roof.peak for roof in tuning.roofs) else ()
    return Document(
        title=tuning.campaign,
        answer=headline(tuning),
        sections=(Section("advice", "", advice), Section("roofs", "", roofs), Section("notes", "", untold)),
        data=as_json(tuning),
    )


def headline(tuning: Tuning) -> Message:
    """Return how many hosts receive advice, and from which rules."""
    hosts = count(tuning.hosts, "host")
    if not tuning.advice:
        return message("No tuning advice for {hosts}.", hosts=hosts)
    advised = {host for advice in tuning.advice for host in advice.hosts}
    rules = dict.fromkeys(advice.rule.name for advice in tuning.advice)
    return message(
        "{n} of {hosts} have settings to check: {rules}. Nothing was changed.",
        n=f"{len(advised):,}",
        hosts=hosts,
        rules=joined(rules),
    )


def _finding(advice: Advice) -> Finding:
    text = message("{evidence}; {standing}.", evidence=evidence(advice), standing=standing(advice))
    details = (
        *tried(advice),
        suggestion(advice),
        retest(advice),
        message("Source: {source}", source=advice.rule.source),
    )
    return Finding(f"{advice.rule.number} {advice.rule.name}", text, details)


def suggestion(advice: Advice) -> Message:
    """Return what to do."""
    return message("Suggestion: {what}.", what=advice.rule.suggestion)


def retest(advice: Advice) -> Message:
    """Return how to check whether the change helped."""
    return message("Retest: {what}.", what=advice.rule.retest)


def _roofs(roofs: Sequence[Roof]) -> Tabular:
    """Return a table of measurements and their theoretical peaks, the lowest share first."""
    measured = sorted((roof for roof in roofs if roof.best and roof.peak), key=lambda roof: roof.share or 0.0)
    return under_roofs.by_host(measured, "roofs", message("Measurements and their theoretical peaks"))


def notes(tuning: Tuning) -> list[Message]:
    """Return sentences about what could not be examined."""
    listed: list[Message] = []
    if tuning.without_facts:
        names = fmt.clean(", ".join(tuning.without_facts[:MANY]))
        listed.append(
            message("No facts about {hosts} ({names}).", hosts=count(len(tuning.without_facts), "host"), names=names)
        )
    return listed


def as_json(tuning: Tuning) -> dict[str, Any]:
    """Return the advice for programs, with all hosts. ``rules`` lists the rules that were checked."""
    return {
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
    }
