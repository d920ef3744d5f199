"""Apply the tuning rules to every host of a campaign."""

from __future__ import annotations

from dataclasses import dataclass

from fleetmark.base.text import Message
from fleetmark.planner.diagnosis.tuning.rule import Rule
from fleetmark.planner.diagnosis.tuning.rules import RULES
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.roofs import roofs_of
from fleetmark.record.diagnosis.subjects import subjects
from fleetmark.record.diagnosis.trials import Tried, tried
from fleetmark.record.roofs import Roof


@dataclass(frozen=True, slots=True)
class Advice:
    """A rule and its evidence, the ``hosts`` to which it applies, and the results of trials on these hosts."""

    rule: Rule
    evidence: Message
    hosts: tuple[str, ...]
    trials: tuple[Tried, ...] = ()


@dataclass(frozen=True, slots=True)
class Tuning:
    """The results of the rules for a campaign. ``without_facts``: hosts that the rules cannot evaluate."""

    campaign: str
    hosts: int
    advice: tuple[Advice, ...]
    roofs: tuple[Roof, ...]
    without_facts: tuple[str, ...]


def tune(archive: Archive) -> Tuning:
    """Return the result of every rule on every host. Raise FleetmarkError if facts or measurements are damaged."""
    names = archive.host_names()
    facts = archive.facts()
    newest = tried(archive)
    changes = {host: {rule: t.changes for rule, t in trials_by_rule.items()} for host, trials_by_rule in newest.items()}
    seen = subjects(archive, facts, changes)
    hosts_by_advice: dict[tuple[str, str], tuple[Rule, Message, list[str]]] = {}
    for host, subject in seen.items():
        for rule in RULES:
            evidence = rule.evidence(subject)
            if evidence is not None:
                hosts_by_advice.setdefault((rule.name, evidence), (rule, evidence, []))[2].append(host)
    advice = [
        Advice(rule, evidence, tuple(hosts), tuple(t for h in hosts if (t := newest.get(h, {}).get(rule.name))))
        for rule, evidence, hosts in hosts_by_advice.values()
    ]
    advice.sort(key=lambda a: (not a.rule.measured, a.rule.number, -len(a.hosts)))
    without = tuple(n for n in names if n not in facts)
    return Tuning(archive.id, len(names), tuple(advice), tuple(roofs_of(archive)), without)
