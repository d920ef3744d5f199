"""Schedules cases that several hosts run together (MPI): which hosts, in which order, who waits for whom. Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.campaign.resolve import Resolved, cases_of, make_step, nodes_of
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Exchange, HostSchedule, Refusal, Step
from workloads import Choice, Manifest
from workloads.template import evaluate

Able = tuple[Host, Resolved]

_NODE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?", re.ASCII)


def schedule_gangs(
    manifest: Manifest,
    able: Sequence[Able],
    schedules: Mapping[str, HostSchedule],
    choice: Choice,
    times: int,
    seed: int,
    case_names: set[str],
) -> list[Exchange]:
    """Schedule every group's cases in randomised complete blocks; the first host of a group leads.

    Groups follow the inventory's order. Where the number of hosts does not divide, the last group overlaps the one
    before, so that every host takes part. The first host that has the case leads; steps without a command keep the
    other hosts free. The steps have one order on all hosts, so no two hosts wait for each other.
    """
    if all(case.nodes == 1 for case in manifest.cases):
        return []
    of_host = {h.name: _cases((h, r), choice, len(able), case_names) for h, r in able}
    sizes = {nodes_of(*c) for cases in of_host.values() for c in cases} - {1}
    exchanges: list[Exchange] = []
    for size in sorted(sizes):
        cases_of_size = {name: [c for c in cases if nodes_of(*c) == size] for name, cases in of_host.items()}
        for cut in _groups(able, size):
            # A host without a launcher cannot lead, but can take part.
            group = sorted(cut, key=lambda able: not cases_of_size[able[0].name])
            lead = schedules[group[0][0].name]
            cases = cases_of_size[lead.host]
            if why := _why_not(manifest, group, size):
                lead.refused += [Refusal(manifest.name, context["case"], why) for _, context in cases]
                continue
            members = [{"name": h.name, "address": h.peer_address, "facts": r.context["facts"]} for h, r in group]
            rng = random.Random(f"{seed}/{lead.host}/{manifest.name}/{size}")
            for repeat in range(times):
                for case, context in rng.sample(cases, len(cases)):
                    step = make_step(
                        case,
                        {**context, "members": members},
                        manifest,
                        id=f"{len(lead.steps):05d}",
                        repeat=repeat,
                        gate=True,
                        subject=f"{size} nodes",
                        members=tuple(h.name for h, _ in group),
                    )
                    lead.steps.append(step)
                    exchanges += [_hold(step, lead.host, schedules[h.name]) for h, _ in group[1:]]
    return exchanges


def _cases(host: Able, choice: Choice, hosts: int, case_names: set[str]) -> list[Any]:
    return cases_of(host[1], choice, case_names, hosts=hosts)


def _groups(able: Sequence[Able], size: int) -> list[Sequence[Able]]:
    starts = [*range(0, len(able) - size + 1, size)] or [0]
    if starts[-1] + size < len(able):
        starts.append(len(able) - size)
    return [able[s : s + size] for s in starts]


def _why_not(manifest: Manifest, group: Sequence[Able], size: int) -> str:
    """Why these hosts cannot run together; empty where they can."""
    if len(group) < size:
        able = ", ".join(h.name for h, _ in group)
        return f"refused: {size} hosts are asked for and {len(group)} can run it ({able})"
    for host, resolved in group:  # the lead's launcher addresses the others by these names
        if not _NODE.fullmatch(resolved.context["facts"].hostname):
            return f"refused: {host.name} calls itself {resolved.context['facts'].hostname!r}, which is no host's name"
    for alike in manifest.alike:
        having: dict[str, list[str]] = {}
        for host, resolved in group:
            value = evaluate(alike.of, resolved.context, f"{manifest.name}: alike")
            having.setdefault(str(value or "unknown"), []).append(host.name)
        if len(having) > 1:
            listed = "; ".join(f"{value} on {', '.join(names)}" for value, names in sorted(having.items()))
            return f"refused: {alike.what} differs among the nodes: {listed}"
    return ""


def _hold(step: Step, lead: str, schedule: HostSchedule) -> Exchange:
    """Schedule a step that keeps one more host free while ``step`` runs. Returns the exchange of the two."""
    held = Step(
        id=f"{len(schedule.steps):05d}",
        workload=step.workload,
        case=step.case,
        repeat=step.repeat,
        argv=(),
        env={},
        expect_s=step.expect_s,
        timeout_s=step.timeout_s + 60,
        gate=True,
        serves=True,
        ends=False,
        subject=f"{step.subject} of {lead}",
    )
    schedule.steps.append(held)
    return Exchange(schedule.host, held.id, lead, step.id)
