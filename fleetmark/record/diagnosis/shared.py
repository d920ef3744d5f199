"""Find facts and labels that slow hosts of one kind share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fleetmark.base.facts import Facts, Identity
from fleetmark.planner.diagnosis import traits
from fleetmark.planner.diagnosis.cohorts import CHEAP, TELLING
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.record.diagnosis.table import Table

MOST_READ = 500  # maximum hosts of a kind whose facts are read in full; more are compared by CHEAP facts and labels
_KIND = "gen"  # the label that distinguishes kinds of hosts


@dataclass(frozen=True, slots=True)
class Known:
    """The ``labels`` and ``identity`` of hosts, and a function that reads all their ``facts``."""

    labels: Mapping[str, Mapping[str, str]]
    identity: Mapping[str, Identity | None]
    facts: Callable[[str], Facts | None]

    def traits(self, hosts: Sequence[str]) -> list[traits.Trait]:
        """Return the facts and labels in which ``hosts`` differ."""
        names = sorted({name for host in hosts for name in self.labels.get(host, {})} - {_KIND})
        values = {name: [str(self.labels.get(host, {}).get(name, "")) for host in hosts] for name in names}
        if len(hosts) <= MOST_READ:
            facts = [self.facts(host) for host in hosts]
            values |= {name: [read(f) if f is not None else "" for f in facts] for name, read in TELLING.items()}
        else:
            known = [self.identity.get(host) for host in hosts]
            values |= {name: [read(i) if i is not None else "" for i in known] for name, read in CHEAP.items()}
        return traits.traits(values)


def groups(
    table: Table, kind: str, hosts: Sequence[str], candidates: Sequence[traits.Trait]
) -> tuple[list[Finding], np.ndarray | None]:
    """Return the groups of slower ``hosts`` that share a fact or label, and their losses.

    The losses are a matrix of benchmarks x hosts to add to the oriented logarithms, or None if there is no group.
    """
    columns = np.array([table.place[host] for host in hosts])
    values = table.values[:, columns]
    slower = traits.slower_groups(values, candidates, table.deficit)
    if not slower:
        return [], None
    lost = np.zeros(values.shape)
    for group in slower:
        lost[group.row, group.members] += group.shift
    return [
        finding(
            group,
            values[group.row],
            partial(table.value, group.row),
            table.benchmark(group.row),
            kind,
            hosts,
            candidates,
        )
        for group in slower
    ], lost


def finding(
    group: traits.Group,
    levels: np.ndarray,
    value: Callable[[float], float],
    benchmark: dict[str, str],
    kind: str,
    hosts: Sequence[str],
    candidates: Sequence[traits.Trait],
) -> Finding:
    """Return the finding for a slower group.

    ``levels`` are oriented logarithms; ``value`` converts one to the base unit.
    """
    slow, fast = levels[group.members], levels[group.others]
    by_name = {trait.name: trait for trait in candidates}
    because = tuple(
        (name, text, " or ".join(sorted({by_name[name].values[c] for c in by_name[name].codes[group.others]})[:3]))
        for name, text in group.traits
    )
    expected = float(np.median(fast))
    return Finding(
        Kind.GROUPS,
        "",
        benchmark,
        deficit=float(-np.expm1(-group.shift)),
        value=value(expected - group.shift),
        expected=value(expected),
        n=len(group.others),
        q=group.p,
        cohort=kind,
        members=tuple(hosts[int(m)] for m in group.members[np.argsort(slow)]),
        because=because,
        interval=(float(-np.expm1(-group.low)), float(-np.expm1(-group.high))),
        tried=group.tried,
    )


def explained(findings: Sequence[Finding], hosts: Sequence[str], candidates: Sequence[traits.Trait]) -> list[Finding]:
    """Return the findings, each with the facts and labels that all slow hosts of its benchmark and no healthy host
    have.
    """
    place = {host: number for number, host in enumerate(hosts)}
    slow_by_benchmark: dict[tuple[str, ...], set[int]] = {}
    for slow_host in findings:
        slow_by_benchmark.setdefault(tuple(slow_host.benchmark.values()), set()).add(place[slow_host.host])
    because = {
        benchmark: traits.shared(candidates, sorted(slow), [n for n in range(len(hosts)) if n not in slow])
        for benchmark, slow in slow_by_benchmark.items()
    }
    return [replace(f, because=because[tuple(f.benchmark.values())]) for f in findings]
