"""Resolve a workload on one host: derive its parameters, needs, cases and commands from the host's facts."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Container, Facts, Torch
from fleetmark.base.redact import lacks_credentials
from fleetmark.planner import peak
from fleetmark.record.steps import Deployment, Step
from fleetmark.workloads import Choice, Manifest, case_of
from fleetmark.workloads.manifest import Case
from fleetmark.workloads.template import evaluate


@dataclass(frozen=True, slots=True)
class Resolved:
    """A workload with its parameters resolved on one host."""

    manifest: Manifest
    context: Mapping[str, Any]
    deployment: Deployment | None


def resolve(
    manifest: Manifest, settings: Mapping[str, Any], facts: Facts, campaign: str, container: str = "", entry: str = ""
) -> Resolved | str:
    """Return the workload resolved for this host, or the reason why the host cannot run it.

    ``container`` is the image in which its commands run. ``entry`` is its name in the suite, if it is a variant.
    Expressions can use ``facts``, the parameters, and ``device_peaks``: the specified dense performance of one
    accelerator in FLOP/s by precision, without unknown ones.
    """
    context: dict[str, Any] = {"facts": facts, "campaign": campaign, "container": container, "entry": entry}
    of_precision = {name: peak.device(facts, "device_compute", name) for name in ("bf16", "fp16", "tf32", "fp8")}
    context["device_peaks"] = {name: top.rate for name, top in of_precision.items() if top}
    if container:
        image = facts.containers.get(container) or Container(error="was not looked for")
        if image.error:
            return f"needs its container: {container} {image.error}"
    if manifest.torch:
        python = python_of(manifest, settings)
        context["torch"] = facts.torch.get(python) or Torch(error="was not asked about its torch")
        if error := context["torch"].error:
            return f"needs a Python with torch: {python} {error}; {_how_to_name(manifest)}"
    for key, parameter in manifest.parameters.items():
        if key in settings:
            context[key] = settings[key]
        else:
            location = f"{manifest.name}.{key}"
            context[key] = parameter.coerce(evaluate(parameter.default, context, location), location)
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
        of_image = bool(container) and "/" not in provides
        if not of_image and evaluate(deploy.when, context, f"{manifest.name}: deploy"):
            needs_root = evaluate(deploy.root, context, f"{manifest.name}: deploy")
            if needs_root and not facts.root and not is_present(provides, facts):
                return f"needs {_how_to_get(provides, deploy.packages, facts)}"
            deployment = Deployment(manifest.name, provides, str(PurePosixPath(tool).parent), params, deploy.packages)
    return Resolved(manifest, context, deployment)


def python_of(manifest: Manifest, settings: Mapping[str, Any]) -> str:
    """Return the Python interpreter with torch that the user chose for a workload."""
    return str(settings.get(manifest.torch, manifest.parameters[manifest.torch].default))


def _how_to_name(manifest: Manifest) -> str:
    return (
        f"set {manifest.name}.{manifest.torch} to an interpreter, a virtual environment, or docker:IMAGE (podman:, "
        "enroot:) on this host that has one"
    )


def is_present(provides: str, facts: Facts) -> bool:
    """Return whether the host already has everything that a deployment would add."""
    return provides in facts.cached or bool(facts.tools.get(provides))


def _how_to_get(provides: str, packages: Mapping[str, Sequence[str]], facts: Facts) -> str:
    install = {"debian": "apt-get install", "rhel": "dnf install", "suse": "zypper install", "alpine": "apk add"}
    family = facts.os_family or ""
    needed = " ".join(packages.get(family, ())) or provides
    manual = f"sudo {install[family]} {needed}" if family in install else f"install {needed}"
    return f"{needed}: {manual}, or let Fleetmark do it as root (--become)"


def cases_of(
    resolved: Resolved, choice: Choice, case_names: set[str], **more: Any
) -> list[tuple[Case, dict[str, Any]]]:
    """Return the workload's cases that the suite selects on this host, each with the context of its command.

    The function adds the names of all cases of the workload to ``case_names``.
    """
    chosen = []
    for case in resolved.manifest.cases:
        location = f"{resolved.manifest.name}: cases"
        axes = {k: evaluate(v, resolved.context, location) for k, v in case.foreach.items()}
        for point in itertools.product(*axes.values()):
            context = {**resolved.context, **more, **dict(zip(axes, point, strict=True))}
            if not evaluate(case.when, context, location):
                continue
            context["case"] = str(evaluate(case.name, context, location))
            case_names.add(context["case"])
            if not choice.cases or any(fnmatch.fnmatch(context["case"], p) for p in choice.cases):
                chosen.append((case, context))
    return chosen


def nodes_of(case: Case, context: Mapping[str, Any]) -> int:
    """Return how many hosts run the case together."""
    return int(evaluate(case.nodes, context, f"{context['case']}: nodes"))


def make_step(case: Case, context: Mapping[str, Any], manifest: Manifest, **more: Any) -> Step:
    context = {**context, "repeat": more["repeat"]}
    location = f"{manifest.name} {context['case']}"
    expect = float(evaluate(case.expect, context, location))
    timeout = evaluate(case.timeout, context, location)
    argv = words(case.argv, context, location)
    env = {k: str(evaluate(v, context, location)) for k, v in case.env.items()}
    if lacks_credentials([*argv, *env.values()]):
        raise FleetmarkError(
            f"{location}: its command contains credentials, which every user of the host could "
            "read; store them in a file on the host"
        )
    return Step(
        workload=manifest.name,
        case=case_of(context["entry"], context["case"]),
        headline=tuple(n for n, m in manifest.metrics.items() if m.headline)
        if case.headline is None
        else case.headline,
        argv=argv,
        env=env,
        expect_s=expect,
        timeout_s=float(timeout) if timeout is not None else 60 + 5 * expect,
        output=case.output,
        class_=str(evaluate(case.class_, context, location) or ""),
        files=case.files,
        exclusive=words(case.exclusive, context, location),
        container=context["container"],
        **more,
    )


def words(parts: Sequence[Any], context: Mapping[str, Any], location: str) -> tuple[str, ...]:
    """Return an argument vector.

    Parts that evaluate to nothing are omitted; a list becomes several arguments.
    """
    values = [evaluate(p, context, location) for p in parts]
    flat = [word for v in values for word in (v if isinstance(v, list) else [v])]
    return tuple(str(word) for word in flat if word is not None and word != "")
