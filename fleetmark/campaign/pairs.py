"""Schedule pairs of hosts in rounds of disjoint pairs, so that no host is in two pairs at the same time."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.resolve import Resolved, cases_of, make_step, words
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Exchange, HostSchedule, Step
from fleetmark.workloads import Choice, Manifest
from fleetmark.workloads.manifest import Case
from fleetmark.workloads.template import evaluate

Round = tuple[tuple[str, str], ...]


def rounds(hosts: Sequence[str]) -> list[Round]:
    """Return every pair of ``hosts`` exactly once, by the circle method: N - 1 rounds if N is even, N if it is odd.

    Each round's pairs share no host (Kirkman's round-robin tournament).
    """
    if len(hosts) < 2:
        return []
    ring: list[str | None] = [*hosts] if len(hosts) % 2 == 0 else [*hosts, None]
    result = []
    for _ in range(len(ring) - 1):
        half = len(ring) // 2
        met = zip(ring[:half], reversed(ring[half:]), strict=True)
        result.append(tuple((a, b) for a, b in met if a is not None and b is not None))
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return result


def sample_rounds(every: Sequence[Round], count: int, seed: int) -> list[Round]:
    """Return ``count`` of the rounds, chosen by ``seed``, so that each host meets about ``count`` other hosts."""
    if count >= len(every):
        return list(every)
    return random.Random(f"{seed}/rounds").sample(list(every), count)


def schedule_pairs(
    manifest: Manifest,
    able: Sequence[tuple[Host, Resolved]],
    schedules: Mapping[str, HostSchedule],
    choice: Choice,
    times: int,
    seed: int,
    case_names: set[str],
    new: Set[str],
) -> list[Exchange]:
    """Schedule rounds of disjoint pairs.

    Each repeat of a pair runs every case in both directions, in random order. Pairs without a ``new`` host were
    scheduled earlier.
    """
    by_name = {host.name: (host, resolved) for host, resolved in able}
    mode = str(able[0][1].context["pairs"])
    every = rounds(sorted(by_name))
    if choice.hosts:
        chosen = every
    elif mode == "auto":
        chosen = every if len(by_name) <= 8 else sample_rounds(every, 4, seed)
    else:
        chosen = every if mode == "all" else sample_rounds(every, int(mode), seed)
    exchanges = []
    for pairs in chosen:
        for a, b in pairs:
            if not new & {a, b}:
                continue
            rng = random.Random(f"{seed}/{a}/{b}/{manifest.name}")
            work = [
                (client, server, case, context)
                for client, server in ((a, b), (b, a))
                for case, context in cases_of(
                    by_name[client][1], choice, case_names, peer=by_name[server][0].peer_address
                )
                if choice.is_for(context["case"], a, b)
            ]
            for repeat in range(times):
                for client, server, case, context in rng.sample(work, len(work)):
                    # The server's command uses only its own facts and paths, never those of its peer.
                    axes = {name: context[name] for name in case.foreach}
                    serving = {**context, **by_name[server][1].context, **axes}
                    pair = schedules[client], schedules[server]
                    exchanges.append(_exchange(manifest, case, context, serving, *pair, repeat))
    return exchanges


def _exchange(
    manifest: Manifest,
    case: Case,
    context: Mapping[str, Any],
    serving_context: Mapping[str, Any],
    client: HostSchedule,
    server: HostSchedule,
    repeat: int,
) -> Exchange:
    if case.serve is None:
        raise FleetmarkError(f"{manifest.name}: case {case.name}: a pair workload needs `serve`")
    location = f"{manifest.name}: serve"
    measure = make_step(
        case,
        context,
        manifest,
        id=f"{len(client.steps):05d}",
        repeat=repeat,
        gate=True,
        subject=f"{client.host}>{server.host}",
    )
    serving = Step(
        id=f"{len(server.steps):05d}",
        workload=manifest.name,
        case=measure.case,
        repeat=repeat,
        argv=words(case.serve.argv, serving_context, location),
        env={},
        expect_s=measure.expect_s,
        timeout_s=measure.timeout_s + 30,
        gate=True,
        port=int(evaluate(case.serve.port, serving_context, location)),
        serves=True,
        ends=case.serve.ends,
        subject=measure.subject,
        container=measure.container,
    )
    client.steps.append(measure)
    server.steps.append(serving)
    return Exchange(server.host, serving.id, client.host, measure.id)
