"""What a workload's manifest makes of hosts: why one cannot run it, or the steps that it gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fleetmark.campaign.resolve import resolve
from fleetmark.campaign.schedule import make_schedule
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Step
from fleetmark.workloads import Choice, Suite, load
from tests.schedules import facts


def reason(workload: str, settings: dict[str, Any] | None = None, **host: Any) -> str:
    """Why the host cannot run it; empty where it can."""
    resolved = resolve(load(workload), settings or {}, facts(**host), "c1")
    return resolved if isinstance(resolved, str) else ""


def scheduled(
    workload: str, count: int, changes: Sequence[dict[str, Any]] = (), **settings: Any
) -> dict[str, list[Step]]:
    """The steps of ``count`` hosts, 10.0.0.1 and on; ``own``: facts in which they differ from the usual."""
    differing = [*changes, *({} for _ in range(count - len(changes)))]
    hosts = [
        (Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}"), facts(root=False, **each)) for n, each in enumerate(differing, 1)
    ]
    suite = Suite(name="s", description="x", repeats=1, workloads={workload: Choice(set=settings)})
    schedule = make_schedule(hosts, suite, {}, campaign="c1", seed=1, repeats=None)
    return {name: host.steps for name, host in schedule.hosts.items()}
