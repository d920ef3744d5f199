"""From suite, settings and facts to every command that will run, on which host, in which order. Touches no host."""

from __future__ import annotations

import fnmatch
import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from fleetmark.facts import Facts
from fleetmark.inventory import Host
from fleetmark.model import FleetmarkError
from fleetmark.pairs import rounds, sample_rounds
from workloads import Choice, Manifest, Suite, load, names
from workloads.manifest import Case
from workloads.template import evaluate

Settings = Mapping[str, Mapping[str, Any]]  # workload -> parameter -> value, as typed on the command line


@dataclass(frozen=True, slots=True)
class Step:
    """One command on one host: a repeat of a case, or (``serves``) the other end of a peer's."""

    id: str
    workload: str
    case: str
    repeat: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    expect_s: float
    timeout_s: float
    output: str = "stdout"
    headline: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    subject: str = "host"
    exclusive: tuple[str, ...] = ()
    serve: Mapping[str, Any] | None = None
    gate: bool = False
    port: int | None = None
    serves: bool = False
    ends: bool = True  # a serving step: by itself, after one client
    last: bool = False  # of its workload on this host: its scratch files go

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> Step:
        """A step as ``jobs/HOST.json`` keeps it."""
        lists = {k: tuple(doc[k]) for k in ("argv", "files", "exclusive", "headline")}
        return cls(**{**doc, **lists})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A step that serves and the step on another host that measures against it."""

    server: str
    server_step: str
    client: str
    client_step: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """How a workload's tool gets to a host, as the playbook wants it; done where ``provides`` is not there."""

    workload: str
    provides: str
    dest: str
    params: Mapping[str, Any]
    packages: Mapping[str, Sequence[str]]


@dataclass(slots=True)
class HostPlan:
    """What one host will do, and what it will not (workload to reason)."""

    host: str
    steps: list[Step] = field(default_factory=list)
    deploy: list[Deployment] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    hosts: Mapping[str, HostPlan]
    exchanges: tuple[Exchange, ...]
    settings: Mapping[str, Mapping[str, Any]]  # workload -> what suite and command line set


def settings_of(suite: Suite, given: Settings) -> dict[str, dict[str, Any]]:
    """Suite settings overlaid with the command line's, typed. Raises FleetmarkError before any host is touched."""
    chosen = suite.chosen()
    for name in given:
        if name not in chosen:
            load(name)  # an unknown workload is the likelier mistake
            raise FleetmarkError(f"--set {name}.…: suite {suite.name} does not run {name}; it runs {', '.join(chosen)}")
    merged = {}
    for name, choice in chosen.items():
        manifest = load(name)
        merged[name] = manifest.check_settings(choice.set, f"suite {suite.name}")
        merged[name] |= manifest.check_settings(given.get(name, {}), "--set")
        _refuse_early(manifest, merged[name])
    return merged


def _refuse_early(manifest: Manifest, settings: Mapping[str, Any]) -> None:
    """Settings that contradict each other whatever the host says."""
    values = {k: settings.get(k, p.default) for k, p in manifest.parameters.items()}
    for need in manifest.needs:
        if need.refuse and not evaluate(need.that, values, f"{manifest.name}: needs"):
            raise FleetmarkError(f"{manifest.name} needs {evaluate(need.say, values, f'{manifest.name}: needs')}")


def probes() -> list[str]:
    """Every command whose presence some workload asks about, for the facts to look up."""
    found: set[str] = set()
    for manifest in map(load, names()):
        found.update(manifest.probes)
        if manifest.deploy and "{" not in manifest.deploy.provides and "/" not in manifest.deploy.provides:
            found.add(manifest.deploy.provides)
    return sorted(found)


def make_plan(
    hosts: Sequence[tuple[Host, Facts]],
    suite: Suite,
    settings: Settings,
    *,
    campaign: str,
    seed: int,
    repeats: int | None,
) -> Plan:
    """Resolve every workload of ``suite`` on every host that answered.

    Raises FleetmarkError when a case pattern of the suite matches no case on any host.
    """
    merged = settings_of(suite, settings)
    plans = {host.name: HostPlan(host.name) for host, _ in hosts}
    exchanges: list[Exchange] = []
    seen: dict[str, set[str]] = {name: set() for name in merged}
    ready: dict[str, list[tuple[Host, _Resolved]]] = {}
    for name in merged:
        for host, facts in hosts:
            resolved = _resolve(load(name), merged[name], facts, campaign)
            if isinstance(resolved, str):
                plans[host.name].skipped[name] = resolved
                continue
            if resolved.deployment:
                plans[host.name].deploy.append(resolved.deployment)
            ready.setdefault(name, []).append((host, resolved))
    for name, able in ready.items():
        choice, manifest = suite.chosen()[name], load(name)
        times = repeats or choice.repeats or suite.repeats
        if manifest.scope == "pair" and len(able) > 1:
            exchanges += _plan_pairs(manifest, able, plans, choice, times, seed, seen[name])
            continue
        for host, resolved in able:
            _plan_host(resolved, plans[host.name], choice, times, f"{seed}/{host.name}/{name}", seen[name])
    for name, choice in suite.chosen().items():
        for pattern in choice.cases:
            if seen[name] and not fnmatch.filter(seen[name], pattern):
                known = ", ".join(sorted(seen[name]))
                raise FleetmarkError(f"suite {suite.name}: {name}: no case matches {pattern!r}; there are {known}")
    return Plan(plans, tuple(exchanges), merged)


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A workload with its parameters worked out on one host."""

    manifest: Manifest
    context: Mapping[str, Any]
    deployment: Deployment | None


def _resolve(manifest: Manifest, settings: Mapping[str, Any], facts: Facts, campaign: str) -> _Resolved | str:
    """The workload on this host, or why the host cannot run it."""
    context: dict[str, Any] = {"facts": facts, "campaign": campaign}
    for key, parameter in manifest.parameters.items():
        if key in settings:
            context[key] = settings[key]
        else:
            where = f"{manifest.name}.{key}"
            context[key] = parameter.coerce(evaluate(parameter.default, context, where), where)
    params = {k: context[k] for k in manifest.parameters}
    for need in manifest.needs:
        if not evaluate(need.that, context, f"{manifest.name}: needs"):
            return f"needs {evaluate(need.say, context, f'{manifest.name}: needs')}"
    deployment = None
    deploy = manifest.deploy
    if deploy:
        provides = str(evaluate(deploy.provides, context, f"{manifest.name}: deploy"))
        tools = f"{facts.work_dir}/tools"
        tool = f"{tools}/{provides}" if "/" in provides and not provides.startswith("/") else provides
        context |= {"tool": tool, "tool_dir": str(PurePosixPath(tool).parent)}
        if evaluate(deploy.when, context, f"{manifest.name}: deploy"):
            needs_root = evaluate(deploy.root, context, f"{manifest.name}: deploy")
            if needs_root and not facts.root and not is_present(provides, facts):
                return f"needs {_how_to_get(provides, deploy.packages, facts)}"
            deployment = Deployment(manifest.name, provides, str(PurePosixPath(tool).parent), params, deploy.packages)
    return _Resolved(manifest, context, deployment)


def is_present(provides: str, facts: Facts) -> bool:
    """Whether the host already has what a deployment would give it."""
    return provides in facts.cached or bool(facts.tools.get(provides))


def _how_to_get(provides: str, packages: Mapping[str, Sequence[str]], facts: Facts) -> str:
    install = {"debian": "apt-get install", "rhel": "dnf install", "suse": "zypper install", "alpine": "apk add"}
    family = facts.os_family or ""
    wanted = " ".join(packages.get(family, ())) or provides
    manual = f"sudo {install[family]} {wanted}" if family in install else f"install {wanted}"
    return f"{wanted}: {manual}, or let Fleetmark do it as root (--become)"


def _cases(resolved: _Resolved, choice: Choice, seen: set[str], **more: Any) -> list[tuple[Case, dict[str, Any]]]:
    """The workload's cases on this host that the suite chose, each with the context its command is worked out in."""
    found = []
    for case in resolved.manifest.cases:
        where = f"{resolved.manifest.name}: cases"
        axes = {k: evaluate(v, resolved.context, where) for k, v in case.foreach.items()}
        for point in itertools.product(*axes.values()):
            context = {**resolved.context, **more, **dict(zip(axes, point, strict=True))}
            if not evaluate(case.when, context, where):
                continue
            context["case"] = str(evaluate(case.name, context, where))
            seen.add(context["case"])
            if not choice.cases or any(fnmatch.fnmatch(context["case"], p) for p in choice.cases):
                found.append((case, context))
    return found


def _step(case: Case, context: Mapping[str, Any], manifest: Manifest, **more: Any) -> Step:
    where = f"{manifest.name} {context['case']}"
    expect = float(evaluate(case.expect, context, where))
    timeout = evaluate(case.timeout, context, where)
    return Step(
        workload=manifest.name,
        case=context["case"],
        headline=case.headline or tuple(name for name, m in manifest.metrics.items() if m.headline),
        argv=_words(case.argv, context, where),
        env={k: str(evaluate(v, context, where)) for k, v in case.env.items()},
        expect_s=expect,
        timeout_s=float(timeout) if timeout is not None else 60 + 5 * expect,
        output=case.output,
        files=case.files,
        exclusive=_words(case.exclusive, context, where),
        **more,
    )


def _words(parts: Sequence[Any], context: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """An argument vector; a part whose expression comes to nothing is left out."""
    values = [evaluate(p, context, where) for p in parts]
    return tuple(str(v) for v in values if v is not None and v != "")


def _plan_host(resolved: _Resolved, plan: HostPlan, choice: Choice, times: int, seed: str, seen: set[str]) -> None:
    """Randomised complete blocks: each repeat runs every case once, in an order of its own."""
    rng = random.Random(seed)
    loopback = resolved.manifest.scope == "pair"
    cases = _cases(resolved, choice, seen, peer="127.0.0.1")
    steps: list[Step] = []
    for repeat in range(times):
        for case, context in rng.sample(cases, len(cases)):
            serve = None
            if case.serve:
                where = f"{resolved.manifest.name}: serve"
                port = int(evaluate(case.serve.port, context, where))
                argv = list(_words(case.serve.argv, context, where))
                serve = {"argv": argv, "port": port, "ends": case.serve.ends}
            steps.append(
                _step(
                    case,
                    context,
                    resolved.manifest,
                    id=f"{len(plan.steps) + len(steps):05d}",
                    repeat=repeat,
                    serve=serve,
                    subject="lo" if loopback else "host",
                    last=repeat == times - 1 and len(steps) == times * len(cases) - 1,
                )
            )
    plan.steps += steps


def _plan_pairs(
    manifest: Manifest,
    able: Sequence[tuple[Host, _Resolved]],
    plans: Mapping[str, HostPlan],
    choice: Choice,
    times: int,
    seed: int,
    seen: set[str],
) -> list[Exchange]:
    """Rounds of disjoint pairs; in a pair every repeat runs every case in both directions, in an order of its own."""
    by_name = {host.name: (host, resolved) for host, resolved in able}
    wanted = str(able[0][1].context["pairs"])
    every = rounds(sorted(by_name))
    if wanted == "auto":
        chosen = every if len(by_name) <= 8 else sample_rounds(every, 4, seed)
    else:
        chosen = every if wanted == "all" else sample_rounds(every, int(wanted), seed)
    exchanges = []
    for pairs in chosen:
        for a, b in pairs:
            rng = random.Random(f"{seed}/{a}/{b}/{manifest.name}")
            work = [
                (client, server, case, context)
                for client, server in ((a, b), (b, a))
                for case, context in _cases(by_name[client][1], choice, seen, peer=by_name[server][0].peer_address)
            ]
            for repeat in range(times):
                for client, server, case, context in rng.sample(work, len(work)):
                    exchanges.append(_exchange(manifest, case, context, plans[client], plans[server], repeat))
    return exchanges


def _exchange(
    manifest: Manifest, case: Case, context: Mapping[str, Any], client: HostPlan, server: HostPlan, repeat: int
) -> Exchange:
    if case.serve is None:
        raise FleetmarkError(f"{manifest.name}: case {case.name}: a pair workload needs `serve`")
    where = f"{manifest.name}: serve"
    measure = _step(
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
        argv=_words(case.serve.argv, context, where),
        env={},
        expect_s=measure.expect_s,
        timeout_s=measure.timeout_s + 30,
        gate=True,
        port=int(evaluate(case.serve.port, context, where)),
        serves=True,
        ends=case.serve.ends,
        subject=measure.subject,
    )
    client.steps.append(measure)
    server.steps.append(serving)
    return Exchange(server.host, serving.id, client.host, measure.id)
