"""Implement ``fleetmark parse``: parse the output of a tool."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import typer
from rich.console import Console

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Measurement, Parsed
from fleetmark.parsers import facts
from fleetmark.reports.lists.measurements import document
from fleetmark.verbs.documents import Documents, show


def files(tool: str, paths: Sequence[Path], command: str, form: str, console: Console, documents: Documents) -> int:
    """Parse every file and print the measurements. Return exit status 1 if a file cannot be parsed."""
    if not paths:
        again = f"; to parse a campaign again: fleetmark rebuild {shlex.quote(tool)}"
        known = tool in (*parsers.tools(), *facts.tools())
        raise FleetmarkError(f"parse {tool}: no file; give the tool's output, or - for stdin{'' if known else again}")
    if tool not in parsers.tools() and tool in facts.tools():
        if documents.paths or form not in ("table", "json"):
            raise FleetmarkError(f"{tool}: facts have no document; write them as JSON without --output and --format")
        return _facts(tool, paths)
    parsers.find(tool)  # report an invalid name before opening any file
    outputs: list[tuple[Path, Parsed]] = []
    failed = 0
    for path in paths:
        with _open(path) as file:
            try:
                parsed = parsers.parse_file(tool, file, shlex.split(command))
            except FleetmarkError as error:
                failed += 1
                typer.echo(f"{path}: {error}", err=True)
                continue
        footnote = parsed.standing and parsed.standing.footnote
        for remark in filter(None, [parsed.invalid and f"invalid: {parsed.invalid}", *parsed.notes, footnote]):
            typer.echo(f"{path}: {remark}", err=True)
        outputs.append((path, parsed))
    fields = [m for path, parsed in outputs for m in _as_json(path, parsed)]
    if fields or documents.paths or form != "table":
        show(document(tool, [parsed for _, parsed in outputs], fields), form, console, documents)
    return 1 if failed else 0


def _facts(tool: str, paths: Sequence[Path]) -> int:
    """Parse facts about a host and print them as JSON. Return the exit status."""
    failed = 0
    docs = []
    for path in paths:
        with _open(path) as file:
            try:
                docs.append(facts.parse(tool, parsers.read_at_most(tool, file)))
            except FleetmarkError as error:
                failed += 1
                typer.echo(f"{path}: {error}", err=True)
    typer.echo(json.dumps(docs[0] if len(docs) == 1 else docs, indent=1))
    return 1 if failed else 0


@contextlib.contextmanager
def _open(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise FleetmarkError(f"{path}: {error.strerror}") from error


def _as_json(path: Path, parsed: Parsed) -> list[dict[str, Any]]:
    context = {
        "tool_version": parsed.version,
        "invalid": parsed.invalid,
        "standing": parsed.standing,
        "file": str(path),
    }
    return [_fields(m) | context for m in parsed.measurements]


def _fields(m: Measurement) -> dict[str, Any]:
    return {
        "workload": m.workload,
        "case": m.case,
        "subject": m.subject,
        "metric": m.metric,
        "value": m.value,
        "unit": m.unit,
        "better": m.better.value,
        "labels": dict(m.labels),
    }
