"""Implement ``fleetmark design``: plan the minimum number of runs that decides between machines, and say after each run
whether to stop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Kind
from fleetmark.planner.comparison import Side
from fleetmark.planner.predict.decision import (
    LEAST_BENCHMARKS,
    LEAST_FAMILIES,
    Level,
    Panel,
    best_of,
    is_decided,
    learned,
    level,
    planned,
)
from fleetmark.record import imports as importing
from fleetmark.record.machines import machines
from fleetmark.record.select import Machine, choose, distinct_names
from fleetmark.record.sides import sides as sides_of
from fleetmark.reports.lists.decision import Contender, Decision
from fleetmark.workloads import manifest

OTHERS = "all other recorded machines"
COMMON = 0.5  # share of families that ran a benchmark that no candidate has run
CLOSEST = 0.005  # smallest distance from the threshold that a plan can detect, as a logarithm


def decide(
    root: Path,
    baseline: str | None,
    candidates: Sequence[str],
    *,
    at_least: float | None,
    error: float,
    only: Sequence[str],
    family: str,
) -> Decision:
    """Return whether the recorded results are sufficient for a decision, and the next runs if not.

    ``at_least``: decide whether one candidate replaces at least this many baseline machines; None: find the best
    candidate. ``error``: the allowed probability of a wrong decision. ``only``: patterns for benchmarks; default: the
    headlines. ``family``: the label that identifies a machine family.

    Raise FleetmarkError if options are missing, or if too few machines are recorded to estimate the correlation of
    benchmarks.
    """
    _refuse(baseline, candidates, at_least)
    every = machines(root)
    named = {name: choose(every, name) for name in [*candidates, *([baseline] if baseline else [])]}
    others = _others(every, {id(m) for chosen in named.values() for m in chosen}, family)
    names = distinct_names([*others, *(m for chosen in named.values() for m in chosen)])
    recorded = sides_of(root, {**named, OTHERS: others}, only=tuple(only), names=names)
    kinds = pd.DataFrame(
        [(names[m.campaign, m.host], _kind(m, family), m.labels[family]) for m in others],
        columns=["row", "kind", "family"],
    ).drop_duplicates("row")
    means = recorded[OTHERS].means
    groups = means.groupby(kinds.set_index("row")["kind"].reindex(means.index), sort=False)
    families = dict(zip(kinds["kind"], kinds["family"], strict=True))
    history, titles = groups.mean(), _capacity(recorded[baseline or OTHERS])
    if baseline is None and not only:
        run = {str(title) for name in candidates for title in recorded[name].means}
        titles = [title for title in titles if title in run or _is_common(history[title], families)]
    panel = learned(_complete(history, families, titles), families)
    replicas = [recorded[name].means for name, chosen in named.items() if not any(map(_is_imported, chosen))]
    noise, host = _variances([*replicas, *(group for _, group in groups)], panel.titles)
    sides = {name: _contender(name, recorded[name], panel, noise, host) for name in named}
    levels = [sides[name].level for name in candidates]
    if baseline is not None and at_least is not None:
        lead, leader = levels[0].minus(sides[baseline].level), 0
        distance = abs(lead.log - math.log(at_least))
        doubt = min(chance := lead.above(math.log(at_least)), 1 - chance)
    else:
        leader, doubt = best_of(levels)
        distance = min(levels[leader].log - each.log for n, each in enumerate(levels) if n != leader)
    vaguest = max(sides.values(), key=lambda side: side.level.se)
    plan = planned(
        panel,
        max(distance, CLOSEST),
        error,
        known=vaguest.titles,
        noise=noise,
        host=host,
    )
    return Decision(
        baseline=baseline,
        at_least=at_least,
        error=error,
        contenders=tuple(sides[c] for c in candidates),
        reference=sides[baseline] if baseline else None,
        leader=leader,
        doubt=doubt,
        is_decided=is_decided(doubt, error),
        panel=panel,
        next_machine=vaguest.name,
        plan=plan,
        workload=_workload(recorded.values(), plan.steps[0][0]) if plan.steps else "",
        is_imported=all(map(_is_imported, named[vaguest.name])),
    )


def _workload(sides: Iterable[Side], title: str) -> str:
    """Return the workload that measures a benchmark, or "" if Fleetmark has none."""
    names = {str(side.benchmarks.loc[title, "workload"]) for side in sides if title in side.benchmarks.index}
    return min(names.intersection(manifest.names()), default="")


def _refuse(baseline: str | None, candidates: Sequence[str], at_least: float | None) -> None:
    if (baseline is None) != (at_least is None):
        raise FleetmarkError(
            "--baseline and --at-least: give both; a candidate must replace at least that many baseline machines"
        )
    if at_least is not None and not (math.isfinite(at_least) and at_least > 0):
        raise FleetmarkError(f"--at-least {at_least:g}: give a number above 0, such as 1.3")
    if at_least is not None and len(candidates) != 1:
        raise FleetmarkError("--at-least: needs exactly one candidate; give one --candidate")
    if at_least is None and len({*candidates}) < 2:
        raise FleetmarkError(
            "design: too few options; give --baseline and --at-least, or two or more candidates to find the best"
        )


def _others(every: Sequence[Machine], taken: set[int], family: str) -> list[Machine]:
    """Return the other recorded machines that have a family. Raise FleetmarkError if there are none."""
    others = [m for m in every if id(m) not in taken and family in m.labels]
    if not others:
        raise FleetmarkError(
            f"no other recorded machine has the label {family!r}, which identifies families; choose a label with "
            "--family, or import published results: fleetmark import"
        )
    return others


def _kind(machine: Machine, family: str) -> str:
    """Return a machine's kind.

    Hosts with the same family and processor are one kind; each machine of a table is its own kind.
    """
    if _is_imported(machine):
        return f"{machine.labels[family]}, {machine.campaign} {machine.host}"
    facts = machine.facts()
    return f"{machine.labels[family]}, {(facts.cpu.model if facts else None) or 'processor unknown'}"


def _is_imported(machine: Machine) -> bool:
    return machine.campaign.startswith(f"{importing.FOLDER}/")


def _capacity(side: Side) -> list[str]:
    """Return the capacity benchmarks of a side."""
    rows = side.benchmarks
    return [str(title) for title in rows.index[rows["kind"] == Kind.CAPACITY]]


def _is_common(figures: pd.Series, families: Mapping[str, str]) -> bool:
    """Return whether at least ``COMMON`` of the families ran a benchmark; others may need hardware that few have."""
    ran = {families[str(machine)] for machine in figures.dropna().index}
    return len(ran) >= COMMON * len({*families.values()})


def _complete(history: pd.DataFrame, families: Mapping[str, str], titles: Sequence[str]) -> pd.DataFrame:
    """Return a set of machines and benchmarks without missing values, by dropping benchmarks of few families one by
    one.
    """
    left = history.reindex(columns=[title for title in titles if title in history.columns])
    while left.shape[1] > LEAST_BENCHMARKS:
        if len({families[str(m)] for m in left.dropna().index}) >= LEAST_FAMILIES:
            break
        left = left.drop(columns=left.notna().sum().idxmin())
    return left.dropna()


def _variances(groups: Sequence[pd.DataFrame], titles: Sequence[str]) -> tuple[dict[str, float], float]:
    """Return the variance of a benchmark on one host, by title, and the variance that all benchmarks of a host share.

    ``groups``: oriented logarithms of similar hosts, with a row per host. Both variances are pooled over the groups of
    at least two hosts, and are 0 without such groups.
    """
    residuals, shared, degrees = [], 0.0, 0
    for group in groups:
        logs = group.reindex(columns=list(titles)).dropna() if len(group) > 1 else group[:0]
        if len(logs) < 2:
            continue
        centred = logs - logs.mean()
        shared += float((centred.mean(axis=1) ** 2).sum())
        residuals.append(centred.sub(centred.mean(axis=1), axis=0))
        degrees += len(logs) - 1
    if not residuals:
        return {}, 0.0
    squares = (pd.concat(residuals) ** 2).sum() / degrees
    return {str(title): float(value) for title, value in squares.items()}, shared / degrees


def _contender(name: str, side: Side, panel: Panel, noise: Mapping[str, float], host: float) -> Contender:
    logs = side.means.reindex(columns=list(panel.titles)).mean().dropna()
    count = len(side.means)
    if logs.empty:
        raise FleetmarkError(
            f"{name} has run none of the {len(panel.titles)} benchmarks that the record compares; run one of them: "
            f"{', '.join(panel.titles[:3])}"
        )
    of_hosts = {title: variance / count for title, variance in noise.items()}
    known: Level = level(panel, {str(t): float(v) for t, v in logs.items()}, of_hosts, host / count)
    return Contender(name=name, level=known, titles=tuple(map(str, logs.index)), hosts=count)
