"""Compute how long a schedule takes: hosts run in parallel, and steps with partners wait for all of them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from fleetmark.campaign.turns import Turns
from fleetmark.record.steps import Exchange, HostSchedule, Step

START_S = 2.0  # delay from the command to a host's first step
GAP_S = 0.02  # delay between consecutive steps of a host
MEETING_S = 0.5  # additional delay when hosts wait for each other
Seconds = Callable[[str, Step], float]


def finish_times(
    hosts: Mapping[str, HostSchedule], exchanges: Sequence[Exchange], seconds: Seconds, turns: Turns
) -> dict[str, float]:
    """Return when each host finishes, in seconds from the start.

    ``seconds`` gives the duration of a step on a host, without gaps. ``turns`` is the limit on concurrent hosts; with a
    limit, no host waits for another (``Turns.refuse_together``).
    """
    if turns.bounded:
        return _in_turn({name: START_S + _alone(job, seconds) for name, job in hosts.items()}, turns)
    return _together(hosts, exchanges, seconds)


def _alone(schedule: HostSchedule, seconds: Seconds) -> float:
    return sum(seconds(schedule.host, step) + GAP_S for step in schedule.steps if not step.serves)


def _in_turn(durations: Mapping[str, float], turns: Turns) -> dict[str, float]:
    """Return finish times when each host starts as soon as the limits allow."""
    waiting, done = list(durations), dict[str, float]()
    busy: list[tuple[float, str]] = []
    now = 0.0
    while waiting or busy:
        for host in turns.next(waiting, [name for _, name in busy]):
            heapq.heappush(busy, (now + durations[host], host))
            waiting.remove(host)
        now, host = heapq.heappop(busy)
        done[host] = now
    return done


def _together(hosts: Mapping[str, HostSchedule], exchanges: Sequence[Exchange], seconds: Seconds) -> dict[str, float]:
    """Return finish times when a step with partners starts only after all partners have reached it."""
    partners: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for e in exchanges:
        partners[e.client, e.client_step].append((e.server, e.server_step))
    client_of = {(e.server, e.server_step): (e.client, e.client_step) for e in exchanges}
    place = dict.fromkeys(hosts, 0)
    clock = dict.fromkeys(hosts, START_S)

    def next_step(host: str) -> Step | None:
        steps = hosts[host].steps
        return steps[place[host]] if place[host] < len(steps) else None

    def stands_at(key: tuple[str, str]) -> bool:
        step = next_step(key[0])
        return step is not None and step.id == key[1]

    ready = list(hosts)
    while ready:
        host = ready.pop()
        step = next_step(host)
        if step is None:
            continue
        key = client_of.get((host, step.id), (host, step.id))
        group = [key, *partners.get(key, ())]
        if not all(map(stands_at, group)):
            continue  # the last host to arrive starts the step
        client = next_step(key[0])
        assert client is not None
        names = [name for name, _ in group]
        wait = MEETING_S if len(group) > 1 else 0.0
        end = max(clock[name] for name in names) + seconds(key[0], client) + GAP_S + wait
        for name in names:
            clock[name] = end
            place[name] += 1
        ready += names
    return clock
