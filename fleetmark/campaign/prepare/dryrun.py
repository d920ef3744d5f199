"""Plan a run without starting it: the cases on each host, their duration and their requirements."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.campaign import prepare
from fleetmark.campaign.adaptive import Until
from fleetmark.campaign.options import Options, command_of
from fleetmark.campaign.prepare import past
from fleetmark.campaign.prepare.makespan import finish_times
from fleetmark.campaign.prepare.past import Kind, Past, kind_of
from fleetmark.campaign.resolve import is_present
from fleetmark.campaign.schedule import containers, settings_of
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked
from fleetmark.planner.estimate import deviate
from fleetmark.record.steps import HostSchedule, Refusal, Schedule, Step
from fleetmark.workloads import Suite, load, load_suite

RECORD, MANIFEST = "record", "manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase:
    """The planned runs of a case on one host.

    ``runs`` is the number of repeats over all partners. ``seconds`` is the duration of one run according to ``source``.
    ``half_width`` is the relative half-width of the 95% interval of the host's mean according to ``spread_source``, or
    None if it is unknown.
    """

    workload: str
    case: str
    repeats: int
    runs: int
    seconds: float
    source: str
    half_width: float | None
    spread_source: str


@dataclass(frozen=True, slots=True)
class Install:
    """A tool that a workload installs: distribution packages, and a path below the work directory."""

    workload: str
    provides: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedHost:
    """A host and the runs planned on it.

    - ``seconds``: when the host finishes, including waits for partners
    - ``skipped``: by suite entry, the input that the user must provide
    - ``unmet``: by suite entry, the condition that the host does not meet
    - ``disk``: the maximum size of its files in bytes
    - ``network_s``: the time in which it exchanges data with other hosts; ``link``: the speed of its link in B/s
    """

    host: Host
    facts: Facts | None
    reason: str | None
    cases: tuple[PlannedCase, ...] = ()
    skipped: Mapping[str, str] | None = None
    unmet: Mapping[str, str] | None = None
    refused: tuple[Refusal, ...] = ()
    installs: tuple[Install, ...] = ()
    seconds: float = 0.0
    seconds_least: float = 0.0
    disk: int = 0
    network_s: float = 0.0
    link: float | None = None

    @property
    def kind(self) -> Kind:
        return kind_of(self.facts) if self.facts else ()

    @property
    def network(self) -> float | None:
        """Return the maximum number of bytes that cross the host's link; None if the driver reports no speed."""
        return self.network_s * self.link if self.link is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The plan of a run.

    - ``command``: the command that starts it
    - ``seconds``: when the last host finishes, an upper bound with ``until``
    - ``seconds_least``: the lower bound
    """

    suite: Suite
    command: Sequence[str]
    settings: Mapping[str, Mapping[str, Any]]
    hosts: tuple[PlannedHost, ...]
    until: Until | None
    seed: int
    seconds: float
    seconds_least: float


def dry_run(options: Options, console: Console) -> DryRun:
    """Schedule the suite as ``run`` does, with the facts of all hosts, but create no campaign.

    Raise FleetmarkError if ``run`` would raise it, and with Slurm, because its nodes answer only within a job.
    """
    if options.slurm:
        raise FleetmarkError("--dry-run with --slurm: nodes answer only within a job; see `fleetmark hosts --slurm`")
    options.check_turns()
    suite = load_suite(options.suite)
    settings = settings_of(suite, options.settings or {})
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    hosts = prepare.load_hosts(options)
    options.turns.refuse_unknown([host.labels for host in hosts])
    checked = prepare.check(hosts, settings, containers(suite), options, console, stay=False)
    prepare.hang_up(checked)
    schedule = prepare.schedule(checked, suite, options, "dry-run", seed, console)
    with console.status("reading earlier campaigns"):
        before = past.read(options.root, {c.host.name: c.facts for c in checked if c.facts})
    return plan(options, suite, checked, schedule, before, seed)


def plan(
    options: Options, suite: Suite, checked: Sequence[Checked], schedule: Schedule, before: Past, seed: int
) -> DryRun:
    """Return the plan for a schedule on the checked hosts. The function contacts no host."""
    kinds = {c.host.name: kind_of(c.facts) for c in checked if c.facts}
    turns = options.turns.with_labels({c.host.name: c.host.labels for c in checked})

    def seconds(host: str, step: Step) -> float:
        known = before.seconds(host, kinds[host], (step.workload, step.case, step.expect_s))
        return step.expect_s if known is None else known

    def finished(scheduled: Schedule) -> dict[str, float]:
        return finish_times(scheduled.hosts, scheduled.exchanges, seconds, turns)

    ends = finished(schedule)
    least = finished(_first_repeats(schedule, options.until.minimum)) if options.until else ends
    linked = _seconds_linked(schedule, seconds)
    planned = []
    for c in checked:
        host = PlannedHost(host=c.host, facts=c.facts, reason=c.reason)
        if c.facts:
            host_schedule = schedule.hosts[c.host.name]
            host = replace(
                host,
                cases=tuple(_cases(host_schedule, kinds[c.host.name], before, options.until)),
                skipped=host_schedule.skipped,
                unmet=host_schedule.unmet,
                refused=tuple(host_schedule.refused),
                installs=tuple(_installs(host_schedule, c.facts)),
                seconds=ends[c.host.name] if host_schedule.steps else 0.0,
                seconds_least=least[c.host.name] if host_schedule.steps else 0.0,
                disk=max(host_schedule.disk.values(), default=0),
                network_s=linked[c.host.name],
                link=max((nic.speed for nic in c.facts.nics if nic.speed), default=None),
            )
        planned.append(host)
    return DryRun(
        suite=suite,
        command=command_of(options, seed),
        settings=schedule.settings,
        hosts=tuple(planned),
        until=options.until,
        seed=seed,
        seconds=max((h.seconds for h in planned), default=0.0),
        seconds_least=max((h.seconds_least for h in planned), default=0.0),
    )


def _first_repeats(schedule: Schedule, number: int) -> Schedule:
    """Return the schedule with only the first ``number`` repeats of every case."""
    hosts = {n: replace(job, steps=[s for s in job.steps if s.repeat < number]) for n, job in schedule.hosts.items()}
    kept = {(name, step.id) for name, job in hosts.items() for step in job.steps}
    return replace(
        schedule, hosts=hosts, exchanges=tuple(e for e in schedule.exchanges if (e.client, e.client_step) in kept)
    )


def _cases(schedule: HostSchedule, kind: Kind, before: Past, until: Until | None) -> Iterator[PlannedCase]:
    """Yield the cases of a host, by workload in execution order, then by name."""
    steps = [step for step in schedule.steps if not step.serves]
    runs = Counter((step.workload, step.case) for step in steps)
    repeats: dict[tuple[str, str], set[int]] = defaultdict(set)
    for step in steps:
        repeats[step.workload, step.case].add(step.repeat)
    first = {(step.workload, step.case): step for step in reversed(steps)}
    order = {workload: n for n, workload in enumerate(dict.fromkeys(step.workload for step in steps))}
    for (workload, case), number in sorted(runs.items(), key=lambda run: (order[run[0][0]], run[0][1])):
        expect_s = first[workload, case].expect_s
        known = before.seconds(schedule.host, kind, (workload, case, expect_s))
        width, source = _half_width(workload, case, len(repeats[workload, case]), kind, before)
        yield PlannedCase(
            workload=workload,
            case=case,
            repeats=len(repeats[workload, case]),
            runs=number,
            seconds=expect_s if known is None else known,
            source=MANIFEST if known is None else RECORD,
            half_width=until.ci if until else width,
            spread_source="" if until else source,
        )


def _half_width(workload: str, case: str, repeats: int, kind: Kind, before: Past) -> tuple[float | None, str]:
    """Return the expected relative half-width of the 95% interval of a mean, and the source of its spread."""
    spread, source = before.spread(kind, workload, case), RECORD
    if spread is None:
        spread, source = load(workload).spread, MANIFEST
    if spread is None or repeats < 2:
        return None, ""
    return deviate(0.95, repeats - 1) * spread / repeats**0.5, source


def _installs(schedule: HostSchedule, facts: Facts) -> Iterator[Install]:
    """Yield what Fleetmark deploys on the host before its first step. A tool whose ``path`` is set needs no package."""
    for d in schedule.deploy:
        if not is_present(d.provides, facts):
            packages = () if d.params.get("path") else d.packages.get(facts.os_family or "", ())
            yield Install(d.workload, d.provides, tuple(packages))


def _seconds_linked(schedule: Schedule, seconds: Any) -> dict[str, float]:
    """Return how long each host exchanges data with other hosts, in seconds."""
    steps = {(name, step.id): step for name, job in schedule.hosts.items() for step in job.steps}
    linked: dict[str, float] = dict.fromkeys(schedule.hosts, 0.0)
    measured = set()
    for e in schedule.exchanges:
        lasts = seconds(e.client, steps[e.client, e.client_step])
        linked[e.server] += lasts
        if (e.client, e.client_step) not in measured:
            measured.add((e.client, e.client_step))
            linked[e.client] += lasts
    return linked
