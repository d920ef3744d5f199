"""Schedule cases that several hosts run together (MPI): choose hosts, order and dependencies."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.campaign.resolve import Resolved, cases_of, make_step, nodes_of, words
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Exchange, HostSchedule, Refusal, Step
from fleetmark.workloads import Choice, Manifest, case_of
from fleetmark.workloads.template import evaluate

Able = tuple[Host, Resolved]

_LACKS = "refused: the settings derived from the facts of {} do not include this case"
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

    Groups follow the inventory's order. If the number of hosts is not a multiple of the group size, the last group
    overlaps the previous one, so that every host takes part. The first host that has the case leads. The other hosts
    also run the command if the case declares ``each``. Otherwise, steps without a command keep them free for a
    launcher. All hosts have the same order of steps, so that no two hosts wait for each other.
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
            if reason := _why_not(manifest, group, size):
                lead.refused += [_refusal(manifest, context, reason) for _, context in cases]
                continue
            members = [{"name": h.name, "address": h.peer_address, "facts": r.context["facts"]} for h, r in group]
            rng = random.Random(f"{seed}/{lead.host}/{manifest.name}/{size}")
            for repeat in range(times):
                for case, context in rng.sample(cases, len(cases)):
                    contexts = [_own(cases_of_size[h.name], context["case"]) for h, _ in group] if case.each else []
                    if None in contexts:
                        if not repeat:
                            without = ", ".join(h.name for (h, _), c in zip(group, contexts, strict=True) if c is None)
                            lead.refused.append(_refusal(manifest, context, _LACKS.format(without)))
                        continue
                    step = make_step(
                        case,
                        {**context, "members": members, "node": 0},
                        manifest,
                        id=f"{len(lead.steps):05d}",
                        repeat=repeat,
                        gate=True,
                        subject=f"{size} nodes",
                        members=tuple(h.name for h, _ in group),
                    )
                    lead.steps.append(step)
                    for node, (host, _) in enumerate(group[1:], 1):
                        argv: tuple[str, ...] = ()
                        env = step.env if case.each else {}
                        if context_of_host := contexts[node] if contexts else None:
                            location = f"{manifest.name} {step.case}"
                            argv = words(case.argv, {**context_of_host, "members": members, "node": node}, location)
                        exchanges.append(_join(step, lead.host, schedules[host.name], argv, env))
    return exchanges


def _refusal(manifest: Manifest, context: Mapping[str, Any], reason: str) -> Refusal:
    return Refusal(manifest.name, case_of(context["entry"], context["case"]), reason)


def _cases(host: Able, choice: Choice, hosts: int, case_names: set[str]) -> list[Any]:
    return cases_of(host[1], choice, case_names, hosts=hosts)


def _groups(able: Sequence[Able], size: int) -> list[Sequence[Able]]:
    starts = [*range(0, len(able) - size + 1, size)] or [0]
    if starts[-1] + size < len(able):
        starts.append(len(able) - size)
    return [able[s : s + size] for s in starts]


def _why_not(manifest: Manifest, group: Sequence[Able], size: int) -> str:
    """Return why these hosts cannot run together; empty if they can."""
    if group[0][1].context["container"]:
        return "refused: cases on several hosts cannot run in containers; remove in_container"
    if len(group) < size:
        able = ", ".join(h.name for h, _ in group)
        return f"refused: {size} hosts are requested, but only {len(group)} can run it ({able})"
    for host, resolved in group:  # the lead's launcher uses these names to address the other hosts
        if not _NODE.fullmatch(resolved.context["facts"].hostname):
            hostname = resolved.context["facts"].hostname
            return f"refused: {host.name} calls itself {hostname!r}, which is not a valid host name"
    for alike in manifest.alike:
        having: dict[str, list[str]] = {}
        for host, resolved in group:
            value = evaluate(alike.value, resolved.context, f"{manifest.name}: alike")
            having.setdefault(str(value or "unknown"), []).append(host.name)
        if len(having) > 1:
            listed = "; ".join(f"{value} on {', '.join(names)}" for value, names in sorted(having.items()))
            return f"refused: {alike.name} differs among the nodes: {listed}"
    return ""


def _own(cases: Sequence[Any], name: str) -> dict[str, Any] | None:
    """Return a host's own context of the case ``name``, or None if it lacks the case."""
    return next((context for _, context in cases if context["case"] == name), None)


def _join(step: Step, lead: str, schedule: HostSchedule, argv: tuple[str, ...], env: Mapping[str, str]) -> Exchange:
    """Schedule another host to run ``argv``, or to stay idle, while ``step`` runs.

    Return the exchange between the two hosts.
    """
    joined = Step(
        id=f"{len(schedule.steps):05d}",
        workload=step.workload,
        case=step.case,
        repeat=step.repeat,
        argv=argv,
        env=env,
        expect_s=step.expect_s,
        timeout_s=step.timeout_s + 60,
        gate=True,
        serves=True,
        ends=bool(argv),
        subject=f"{step.subject} of {lead}",
    )
    schedule.steps.append(joined)
    return Exchange(schedule.host, joined.id, lead, step.id)
