"""``fleetmark parse``: parse the output of a tool, or parse the raw files of a campaign again."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq
import typer
from rich.console import Console

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Measurement, Parsed
from fleetmark.base.text import count
from fleetmark.campaign.drive import fields_of
from fleetmark.campaign.outcome import Outcome, judge
from fleetmark.campaign.rebuild import rebuild
from fleetmark.parsers import facts
from fleetmark.record import documents
from fleetmark.record.campaigns import find
from fleetmark.reports.lists.measurements import document
from fleetmark.verbs.documents import Documents, show
from fleetmark.workloads.external import require


def files(tool: str, paths: Sequence[Path], command: str, form: str, console: Console, documents: Documents) -> int:
    """Parse every file and print the measurements. Return exit status 1 if a file cannot be parsed."""
    if tool not in parsers.tools() and tool in facts.tools():
        if documents.paths or form not in ("table", "json"):
            raise FleetmarkError(f"{tool}: facts have no document; write them as JSON without --output and --format")
        return _facts(tool, paths)
    parsers.find(tool)  # a wrong name is refused before any file is opened
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


def campaign(name: str, root: Path, console: Console, as_json: bool) -> int:
    """Rebuild a campaign's measurements from its raw files, and record changed outcomes. Return the exit status."""
    if name in parsers.tools() or name in facts.tools():
        raise FleetmarkError(f"fleetmark parse {name}: which file? Give the tool's output, or - for stdin")
    archive = find(root, name).writable()
    require(archive.id, archive.campaign())
    try:
        before = {documents.key_of(e): e for e in archive.journal() if e["e"] == "outcome"}
        changed = 0

        def judged(folder: Path, step: Mapping[str, Any]) -> Outcome:
            nonlocal changed
            outcome = judge(archive, folder)
            previous = before.get(documents.key_of(step))
            if previous is None or (previous["status"], previous["reason"]) != (outcome.status.value, outcome.reason):
                changed += 1
                archive.note("outcome", **{k: step[k] for k in documents.KEY}, **fields_of(outcome))
            return outcome

        path = archive.write_measurements(rebuild(archive, judged))
    finally:
        archive.close()
    rows = pq.read_metadata(path).num_rows
    if as_json:
        typer.echo(json.dumps({"campaign": archive.id, "measurements": rows, "changed": changed, "path": str(path)}))
    else:
        console.print(f"{count(rows, 'measurement')} in {path}; {count(changed, 'outcome')} changed", soft_wrap=True)
    return 0
