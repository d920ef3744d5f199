"""The tuning rules on every host of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import read
from fleetmark.record.diagnosis.table import Table
from planner.diagnosis.cohorts import kind_of
from planner.diagnosis.tuning.peaks import Peak, memory
from planner.diagnosis.tuning.rules import RULES, Rule, Subject

MEMORY = "mem-bw"  # the class of metrics that memory's peak is held against


@dataclass(frozen=True, slots=True)
class Advice:
    """One rule and one evidence, with the ``hosts`` where it is so."""

    rule: Rule
    evidence: Message
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """The best memory bandwidth of a host (B/s, None where it was not measured) beside its theoretical peak."""

    host: str
    best: float | None
    peak: Peak | None


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the rules say of a campaign. ``without_facts``: hosts that nothing can be said of."""

    campaign: str
    hosts: int
    advice: tuple[Advice, ...]
    memory: tuple[Memory, ...]
    without_facts: tuple[str, ...]


def tune(archive: Archive) -> Tuning:
    """Every rule on every host. Raises FleetmarkError for facts or measurements that are damaged."""
    names = archive.host_names()
    facts = archive.facts()
    best = _best(archive)
    mtus = _mtus(facts)
    of: dict[tuple[int, str], tuple[Rule, Message, list[str]]] = {}
    for host, own in facts.items():
        subject = Subject(own, best.get(host), mtus.get(kind_of(own)[0], {}))
        for rule in RULES:
            evidence = rule.evidence(subject)
            if evidence is not None:
                of.setdefault((rule.number, evidence), (rule, evidence, []))[2].append(host)
    advice = [Advice(rule, evidence, tuple(hosts)) for rule, evidence, hosts in of.values()]
    advice.sort(key=lambda a: (not a.rule.measured, a.rule.number, -len(a.hosts)))
    roofs = tuple(Memory(host, best.get(host), memory(own)) for host, own in facts.items())
    return Tuning(archive.id, len(names), tuple(advice), roofs, tuple(n for n in names if n not in facts))


def _best(archive: Archive) -> dict[str, float]:
    """Host to the best bandwidth of memory among its headlines, in B/s; empty where nothing was measured."""
    if not archive.inside("measurements.parquet").exists():
        return {}
    table = Table(*read(archive))
    about = table.about
    chosen = ((about["class"] == MEMORY) & (about["unit"] == "B/s") & (about["subject"] == "host")).to_numpy(bool)
    if not chosen.any():
        return {}
    best = np.fmax.reduce(table.values[chosen], axis=0)
    return {host: float(np.exp(value)) for host, value in zip(table.hosts, best, strict=True) if not np.isnan(value)}


def _mtus(facts: Mapping[str, Facts]) -> dict[str, dict[float, Counter[int]]]:
    """By kind of host and link speed, how many active interfaces have which MTU."""
    of: dict[str, dict[float, Counter[int]]] = {}
    for own in facts.values():
        for nic in own.nics:
            if nic.state == "up" and nic.speed and nic.mtu:
                of.setdefault(kind_of(own)[0], {}).setdefault(nic.speed, Counter())[nic.mtu] += 1
    return of
