"""Implement ``fleetmark workloads new``: write a working example as a manifest, a parser and a test."""

from __future__ import annotations

import re
from pathlib import Path

from fleetmark import parsers, workloads
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import write_atomic
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.workloads.schema import text as schema_text

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VERBS = ("show", "new", "check", "schema")  # ``fleetmark workloads NAME`` runs these as commands

_MANIFEST = """\
# yaml-language-server: $schema=manifest.schema.json
schema: 1
version: "1"
title: {title}
class: app  # comparisons combine the metrics of one class into one ratio
kind: capacity  # or responsiveness, for the speed of a single operation
description: What the workload measures, in one sentence.
licence: internal
citation: none
parameters:
  rounds: {{type: int, default: 3, min: 1, description: The number of rounds to compute.}}
cases:
  - name: default
    description: The program with its usual settings.
    # Replace argv with the absolute path of your program on the hosts, and its arguments.
    argv: [sh, -c, "echo requests/s: $(({{{{ rounds }}}} * 1000)); echo p99 ms: 1.5"]
    expect: 5  # seconds
metrics:
  rate: {{unit: 1/s, better: higher, headline: true, description: Requests per second.}}
  response_p99:
    {{unit: s, better: lower, headline: true, kind: responsiveness, class: app-latency, description: 99th percentile.}}
"""
_PARSER = '''\
"""Parse the output of {name} to measurements in base units: 1/s, s, B/s, B, FLOP/s, W, J, Hz, degC or 1."""

import re

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed

LINE = re.compile(r"^(requests/s|p99 ms): ([0-9.]+)$", re.MULTILINE)


def parse(raw, command=()):
    """Return the figures in ``raw`` (bytes). Raise ParseError if one is missing."""
    figures = {{name: float(value) for name, value in LINE.findall(raw.decode(errors="replace"))}}
    if len(figures) < 2:
        raise ParseError("{name}", "lines 'requests/s:' and 'p99 ms:'")
    rate = Measurement("{name}", "default", "rate", figures["requests/s"], "1/s", Better.HIGHER)
    p99 = Measurement("{name}", "default", "response_p99", figures["p99 ms"] / 1000, "s", Better.LOWER)
    return Parsed("{name}", (rate, p99))
'''
_TEST = '''\
"""Run with: python -m pytest tests"""

from pathlib import Path

import pytest
from fleetmark import parsers
from fleetmark.base import extensions
from fleetmark.base.errors import ParseError

extensions.choose([Path(__file__).parents[1]])


def test_its_output():
    parsed = parsers.parse("{name}", b"requests/s: 3000\\np99 ms: 1.5\\n")
    assert [(m.metric, m.value) for m in parsed.measurements] == [("rate", 3000), ("response_p99", 0.0015)]


def test_output_without_figures():
    with pytest.raises(ParseError):
        parsers.parse("{name}", b"error: no such file\\n")
'''


def write(name: str, folder: Path) -> list[str]:
    """Write the workload ``name`` into ``folder``. Return the written files and the next commands to type.

    Raise FleetmarkError if the name is invalid or taken, or if a file exists.
    """
    if name in workloads.names() or name in parsers.tools():
        raise FleetmarkError(f"workloads new {name}: this name is taken; choose another")
    if problem := name_problem(name):
        raise FleetmarkError(f"workloads new {name}: {problem}")
    title = name.replace("_", " ").capitalize()
    texts = {
        folder / f"{name}.yml": _MANIFEST.format(title=title),
        folder / "parsers" / f"{name}.py": _PARSER.format(name=name),
        folder / "tests" / f"test_{name}.py": _TEST.format(name=name),
    }
    existing = next((path for path in texts if path.exists()), None)
    if existing:
        raise FleetmarkError(f"{existing}: this file exists; choose another name or folder")
    texts[folder / "manifest.schema.json"] = schema_text()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    return [
        *(f"wrote {path}" for path in texts),
        f"next: fleetmark workloads check {folder}",
        f"then: fleetmark run --workloads {folder} --suite {name}",
    ]


def name_problem(name: str) -> str:
    """Return why ``name`` is not a valid workload name, with advice; empty if it is valid."""
    if not NAME.fullmatch(name):
        return "the name must be lower-case letters, digits and _, and begin with a letter; rename it"
    if name in _VERBS:
        return f"the name {name} is a command of `fleetmark workloads`; rename it"
    if (PLAYBOOKS / "roles" / name).is_dir():
        return f"the name {name} belongs to a Fleetmark role; rename it"
    return ""
