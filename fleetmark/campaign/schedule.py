"""Schedule a suite: derive every command, its host and its position from settings and facts. Contact no host."""

from __future__ import annotations

import fnmatch
import random
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.redact import conceal
from fleetmark.campaign.groups import schedule_gangs
from fleetmark.campaign.pairs import schedule_pairs
from fleetmark.campaign.resolve import Resolved, cases_of, make_step, nodes_of, python_of, resolve, words
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Exchange, HostSchedule, Schedule, Step
from fleetmark.workloads import Choice, Manifest, Suite, condition, load, workload_of
from fleetmark.workloads.manifest import Case
from fleetmark.workloads.template import evaluate, names_in

Settings = Mapping[str, Mapping[str, Any]]  # suite entry -> parameter -> value, as typed on the command line


def settings_of(suite: Suite, overrides: Settings) -> dict[str, dict[str, Any]]:
    """Return the typed settings of the suite, overridden by those of the command line.

    They contain no credentials, because a schedule needs none and is stored. Raise FleetmarkError before contacting
    any host if a setting is invalid.
    """
    return _settings(suite, overrides)[0]


def secrets_of(suite: Suite, overrides: Settings) -> dict[str, str]:
    """Return the credentials that ``settings_of`` omits, by their redacted values (``redact.conceal``)."""
    return _settings(suite, overrides)[1]


def _settings(suite: Suite, overrides: Settings) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    chosen = suite.chosen()
    for name in overrides:
        if name not in chosen:
            load(workload_of(name))  # report an unknown workload first, because it is the likelier mistake
            raise FleetmarkError(f"--set {name}.…: suite {suite.name} does not run {name}; it runs {', '.join(chosen)}")
    merged = {}
    for name, choice in chosen.items():
        manifest = load(workload_of(name))
        merged[name] = manifest.check_settings(choice.set, f"suite {suite.name}")
        merged[name] |= manifest.check_settings(overrides.get(name, {}), "--set")
    concealed, secrets = conceal(merged)
    for name, settings in concealed.items():
        manifest = load(workload_of(name))
        _refuse_early(manifest, settings, alone=len(chosen) == 1)
        if chosen[name].in_container and (key := manifest.torch):
            raise FleetmarkError(
                f"suite {suite.name}: {name} cannot use in_container; set its container with {name}.{key} "
                "(docker:IMAGE)"
            )
        if suite.shares and _has_engine(manifest, chosen[name], settings):
            raise FleetmarkError(
                f"suite {suite.name}: shares cannot limit {name}, because a container engine starts its "
                "processes; run it without a container, or remove shares"
            )
        if past := [kind for kind in manifest.unshared if suite.shares and getattr(suite.shares, kind)]:
            raise FleetmarkError(
                f"suite {suite.name}: shares cannot limit {name}, because its {past[0]} transfers bypass the kernel; "
                f"remove the workload, or remove {past[0]} from shares"
            )
    return concealed, secrets


def _has_engine(manifest: Manifest, choice: Choice, settings: Mapping[str, Any]) -> bool:
    """Return whether a workload's processes belong to a container engine instead of the job."""
    return bool(choice.in_container) or (
        bool(manifest.torch) and python_of(manifest, settings).startswith(("docker:", "podman:"))
    )


def _refuse_early(manifest: Manifest, settings: Mapping[str, Any], alone: bool) -> None:
    """Raise FleetmarkError for settings that conflict on every host, and for a source other than the default without
    its checksum.

    If the suite has other workloads, a workload without a required setting (a medium, a path) is skipped later.
    """
    defaults = {k: p.default for k, p in manifest.parameters.items()}
    values = {**defaults, **settings}
    location = f"{manifest.name}: needs"
    for need in manifest.needs:
        if not need.refuse or evaluate(need.that, values, location):
            continue
        given = any(settings[k] != defaults[k] for k in names_in(need.that) if k in settings)
        if alone or given or evaluate(need.that, defaults, location):
            raise FleetmarkError(f"{manifest.name} needs {evaluate(need.say, values, location)}")
    for key, value in settings.items():
        pin = f"{key}_sha256"
        if defaults.get(pin) and value != defaults[key] and values[pin] == defaults[pin]:
            raise FleetmarkError(f"{manifest.name}.{key}: {value} needs a checksum; also set {manifest.name}.{pin}")


def probes(entries: Iterable[str]) -> list[str]:
    """Return all commands that suite entries may need; facts report which of them are present."""
    commands: set[str] = set()
    for manifest in map(load, map(workload_of, entries)):
        commands.update(manifest.probes)
        if manifest.deploy and "{" not in manifest.deploy.provides and "/" not in manifest.deploy.provides:
            commands.add(manifest.deploy.provides)
    return sorted(commands)


def pythons(settings: Settings) -> list[str]:
    """Return the Python interpreters with torch that appear in ``settings``."""
    asking = [(load(workload_of(name)), values) for name, values in settings.items()]
    return sorted({python_of(manifest, values) for manifest, values in asking if manifest.torch})


def containers(suite: Suite | None) -> list[str]:
    """Return the container images in which the workloads of ``suite`` run."""
    return sorted({choice.in_container for choice in suite.chosen().values()} - {""}) if suite else []


def has_groups(workloads: Iterable[str]) -> bool:
    """Return whether ``workloads`` has cases that run on several hosts together; late hosts do not run these."""
    return any(case.nodes != 1 for name in workloads for case in load(workload_of(name)).cases)


def make_schedule(
    hosts: Sequence[tuple[Host, Facts]],
    suite: Suite,
    settings: Settings,
    *,
    campaign: str,
    seed: int,
    repeats: int | None,
    onto: Schedule | None = None,
) -> Schedule:
    """Resolve every workload of ``suite`` on every host that answered.

    ``onto`` is an existing schedule of some of the ``hosts``, which stays unchanged. The steps of the other hosts,
    alone and in pairs with all hosts, follow it. Existing groups do not change. Raise FleetmarkError if a case pattern
    of the suite matches no case on any host.
    """
    merged = settings_of(suite, settings)
    before = onto.hosts if onto else {}
    schedules = {host.name: _continued(before.get(host.name)) or HostSchedule(host=host.name) for host, _ in hosts}
    new = {host.name for host, _ in hosts if host.name not in before}
    exchanges: list[Exchange] = list(onto.exchanges) if onto else []
    case_names: dict[str, set[str]] = {name: set() for name in merged}
    ready = _ready(hosts, suite, merged, schedules, new, campaign)
    for name, able in ready.items():
        choice, manifest = suite.chosen()[name], load(workload_of(name))
        times = repeats or choice.repeats or suite.repeats
        paired = manifest.scope == "pair" and len(able) > 1 and not _is_single(manifest, able[0][1].context)
        if paired:
            exchanges += schedule_pairs(manifest, able, schedules, choice, times, seed, case_names[name], new)
        if not paired or choice.hosts:
            for host, resolved in able:
                if host.name not in new:
                    continue
                context = {"peer": "127.0.0.1", "hosts": len(able)}
                all_cases = cases_of(resolved, choice, case_names[name], **context)
                cases = [c for c in all_cases if nodes_of(*c) == 1 and choice.is_for(c[1]["case"], host.name)]
                _schedule_host(manifest, cases, schedules[host.name], times, f"{seed}/{host.name}/{name}")
            if not onto:
                exchanges += schedule_gangs(manifest, able, schedules, choice, times, seed, case_names[name])
        for schedule in schedules.values():
            _mark_last(schedule.steps, manifest.name)
    if suite.shares:
        _refuse_spread(suite, schedules)
        _allow_for_disks(suite, schedules, new)
    if not onto:
        _all_match(suite, case_names)
    return Schedule(schedules, tuple(exchanges), merged)


def _refuse_spread(suite: Suite, schedules: Mapping[str, HostSchedule]) -> None:
    """Raise FleetmarkError if a case starts processes on other hosts, where the job cannot restrict them to shares."""
    spread = next((step for job in schedules.values() for step in job.steps if len(step.members) > 1), None)
    if spread:
        raise FleetmarkError(
            f"suite {suite.name}: shares cannot limit {spread.workload} {spread.case}, whose processes start over SSH "
            f"on {', '.join(spread.members[:3])}; remove this case, or remove shares"
        )


def _allow_for_disks(suite: Suite, schedules: Mapping[str, HostSchedule], new: Set[str]) -> None:
    """Extend the timeouts of steps by the time in which a share of a disk writes and reads the workload's files."""
    rate = suite.shares.as_job().get("disk") if suite.shares else None
    if not rate:
        return
    for schedule in (schedules[name] for name in new):
        schedule.steps[:] = [
            replace(s, timeout_s=s.timeout_s + 2 * schedule.disk.get(s.workload, 0) / rate) for s in schedule.steps
        ]


def _is_single(manifest: Manifest, context: Mapping[str, Any]) -> bool:
    """Return whether the user provides the other end of each pair."""
    return bool(evaluate(manifest.single, context, f"{manifest.name}: single"))


def _ready(
    hosts: Sequence[tuple[Host, Facts]],
    suite: Suite,
    settings: Settings,
    schedules: Mapping[str, HostSchedule],
    new: Set[str],
    campaign: str,
) -> dict[str, list[tuple[Host, Resolved]]]:
    """Return the hosts that can run each workload. Record skips and deployments in the schedules of ``new`` hosts."""
    ready: dict[str, list[tuple[Host, Resolved]]] = {}
    for name, choice in suite.chosen().items():
        for host, facts in hosts:
            if not condition.holds(choice.where, facts, f"suite {suite.name}: {name}"):
                schedules[host.name].unmet[name] = choice.where
                continue
            manifest = load(workload_of(name))
            room = suite.shares.left_of(facts) if suite.shares else facts
            resolved = resolve(manifest, settings[name], room, campaign, choice.in_container, entry=name)
            if not isinstance(resolved, str):
                ready.setdefault(name, []).append((host, resolved))
            if host.name not in new:
                continue
            if isinstance(resolved, str):
                schedules[host.name].skipped[name] = resolved
                continue
            schedules[host.name].disk[name] = int(evaluate(manifest.disk, resolved.context, f"{name}: disk"))
            if resolved.deployment:
                schedules[host.name].deploy.append(resolved.deployment)
    return ready


def _all_match(suite: Suite, case_names: Mapping[str, set[str]]) -> None:
    """Raise FleetmarkError if a pattern of the suite matches no case."""
    for name, choice in suite.chosen().items():
        for pattern in choice.cases:
            if case_names[name] and not fnmatch.filter(case_names[name], pattern):
                listed = ", ".join(sorted(case_names[name]))
                raise FleetmarkError(f"suite {suite.name}: {name}: no case matches {pattern!r}; there are {listed}")


def refuse_nothing(suite: Suite, schedule: Schedule) -> None:
    """Raise FleetmarkError if the suite's conditions leave nothing to run or to skip on any host."""
    conditions = sorted({choice.where for choice in suite.chosen().values() if choice.where})
    if (
        conditions
        and schedule.hosts
        and not any(job.steps or job.skipped or job.refused for job in schedule.hosts.values())
    ):
        raise FleetmarkError(
            f"suite {suite.name}: no host meets its conditions ({'; '.join(conditions)}); "
            "choose another suite, or other hosts with -i and --limit"
        )


def _continued(schedule: HostSchedule | None) -> HostSchedule | None:
    """Return a copy of ``schedule`` that can be extended."""
    if schedule is None:
        return None
    steps, deploy = list(schedule.steps), list(schedule.deploy)
    return replace(schedule, steps=steps, deploy=deploy, skipped=dict(schedule.skipped))


def _schedule_host(
    manifest: Manifest, cases: Sequence[tuple[Case, Mapping[str, Any]]], schedule: HostSchedule, times: int, seed: str
) -> None:
    """Schedule randomised complete blocks.

    Each repeat runs every case once, in a random order of its own.
    """
    rng = random.Random(seed)
    for repeat in range(times):
        for case, context in rng.sample(cases, len(cases)):
            serve = None
            if case.serve:
                location = f"{manifest.name}: serve"
                port = int(evaluate(case.serve.port, context, location))
                serve = {"argv": list(words(case.serve.argv, context, location)), "port": port, "ends": case.serve.ends}
            schedule.steps.append(
                make_step(
                    case,
                    context,
                    manifest,
                    id=f"{len(schedule.steps):05d}",
                    repeat=repeat,
                    serve=serve,
                    subject="lo" if manifest.scope == "pair" and case.serve else "host",
                )
            )


def _mark_last(steps: list[Step], workload: str) -> None:
    """Mark the workload's last step on a host, after which its scratch files are removed."""
    for position in range(len(steps) - 1, -1, -1):
        if steps[position].workload == workload:
            steps[position] = replace(steps[position], last=True)
            return
