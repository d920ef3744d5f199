"""Implement ``fleetmark workloads check``: report all errors of the workloads in a folder, with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fleetmark import parsers, workloads
from fleetmark.base import extensions
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.text import count
from fleetmark.base.yaml import read_yaml
from fleetmark.parsers.kit.foreign import Foreign
from fleetmark.verbs.skeleton import name_problem
from fleetmark.workloads.manifest import Manifest, read_manifest
from fleetmark.workloads.misfit import misfits
from fleetmark.workloads.places import Places
from fleetmark.workloads.suite import Suite
from fleetmark.workloads.template import syntax_problem

_OUTPUTS = (b"", b"\xff\xfe garbage: \x00 1e999\n" * 3)  # tool outputs without a result


def check(folder: Path) -> tuple[list[str], str]:
    """Return the errors as ``FILE:LINE: problem; advice``, and a summary.

    Raise FleetmarkError if ``folder`` is not a folder.
    """
    extensions.choose([folder])
    root = folder.expanduser().resolve()
    manifests = [path for path in sorted(root.glob("*.yml")) if not path.name.startswith(("_", "."))]
    faults = [] if manifests else [f"{folder}: no manifest NAME.yml; write one: fleetmark workloads new NAME {folder}"]
    for collect in (workloads.names, parsers.tools, workloads.suite_names):
        try:
            collect()
        except FleetmarkError as error:  # two files have the same name
            faults.append(str(error))
    suites = sorted(root.glob("suites/*.yml"))
    if not faults:
        for path in manifests:
            faults += _of_manifest(path)
        for path in suites:
            faults += _of_suite(path)
    counted = f"{count(len(manifests), 'workload')}, {count(len(suites), 'suite')}"
    shown = [fault.replace(f"{root}/", f"{folder}/") for fault in dict.fromkeys(faults)]
    return shown, f"{folder}: {counted}, {count(len(faults), 'fault')}"


def _of_manifest(path: Path) -> Iterator[str]:
    name = path.stem
    if problem := name_problem(name):
        yield f"{path}:1: {problem}"
    yield from _of_model(path, Manifest, lambda: {**read_manifest(path), "name": name})
    try:
        manifest = workloads.load(name)
    except FleetmarkError:
        return  # already reported above
    if manifest.deploy and not (path.parent / "roles" / name / "tasks" / "deploy.yml").is_file():
        yield (
            f"{path}:{Places(path).line(['deploy'])}: deploy needs the role roles/{name}/tasks/deploy.yml; write it, "
            "or remove deploy"
        )
    yield from _of_parser(path, manifest)


def _of_model(path: Path, model: type[BaseModel], read: Any) -> Iterator[str]:
    """Yield the errors in the syntax, the keys and the expressions of a YAML file."""
    try:
        read_yaml(path)
        places = Places(path)
        raw: Mapping[str, Any] = read()
    except FleetmarkError as error:
        yield re.sub(rf"^({re.escape(str(path))}) line (\d+): ", r"\1:\2: ", str(error))
        return
    try:
        model.model_validate(raw)
    except ValidationError as error:
        for place, text in misfits(error, model):
            yield f"{path}:{places.line(place)}: {'.'.join(map(str, place))}: {text}"
    for line, text in places.texts():
        if problem := syntax_problem(text):
            yield f"{path}:{line}: {text!r} is not a valid expression: {problem}"


def _of_parser(path: Path, manifest: Manifest) -> Iterator[str]:
    try:
        parser = parsers.find(manifest.tool)
    except FleetmarkError:
        line = Places(path).line(["parser"])
        yield f"{path}:{line}: no parser reads its output; write parsers/{manifest.tool}.py, or name one with parser:"
        return
    if not isinstance(parser, Foreign):
        return
    for output in _OUTPUTS:
        content = "empty output" if not output else "output without figures"
        try:
            parsed = parser.parse(output)
        except ParseError:
            continue
        except FleetmarkError as error:
            yield _of_code(parser, str(error), content)
            return
        if parsed.measurements:
            yield f"{parser.path}:1: it returns measurements of {content}; raise ParseError if a figure is missing"
            return


def _of_code(parser: Foreign, sentence: str, content: str) -> str:
    """Return the error of a failed parser as ``FILE:LINE: raised ValueError for empty output: message``."""
    problem = sentence.partition(f"{parser.shown} ")[2].partition("; correct it")[0] or sentence
    line = re.search(r" on line (\d+)", problem)
    problem = problem.replace(line[0], "", 1) if line else problem
    return (
        f"{parser.path}:{line[1] if line else 1}: for {content} it {problem}; raise ParseError if a figure is missing"
    )


def _of_suite(path: Path) -> Iterator[str]:
    before = list(_of_model(path, Suite, lambda: {"name": path.stem, **read_yaml(path)}))
    yield from before
    if before:
        return
    try:
        workloads.load_suite(path.stem)
    except FleetmarkError as error:
        text = str(error).removeprefix(f"{path}: ")
        chosen = read_yaml(path).get("workloads") or {}
        named = next((name for name in chosen if re.search(rf"\b{re.escape(str(name))}\b", text)), None)
        yield f"{path}:{Places(path).line(['workloads', *([str(named)] if named else [])])}: {text}"
