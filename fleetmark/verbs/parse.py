"""``fleetmark parse``: output from anywhere to measurements, and a campaign's measurements again from its raw files."""

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
from rich.table import Table
from rich.text import Text

import parsers
import parsers.facts
import workloads
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Measurement
from fleetmark.base.text import count
from fleetmark.base.units import human
from fleetmark.campaign.drive import fields_of
from fleetmark.campaign.outcome import Outcome, judge, rebuild
from fleetmark.record import documents
from fleetmark.record.campaigns import find


def files(tool: str, paths: Sequence[Path], command: str, console: Console, as_json: bool) -> int:
    """Parse every file; the exit status is 1 when one of them held nothing, and the others are still shown."""
    if tool not in parsers.tools() and tool in parsers.facts.tools():
        return _facts(tool, paths)
    parsers.find(tool)  # a wrong name is the first thing to say
    found: list[dict[str, Any]] = []
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
        more = {
            "tool_version": parsed.version,
            "invalid": parsed.invalid,
            "standing": parsed.standing,
            "file": str(path),
        }
        found += [{**_as_dict(m), **more} for m in parsed.measurements]
    if as_json:
        typer.echo(json.dumps(found, indent=1))
    elif found:
        console.print(_table(tool, found))
    return 1 if failed else 0


def _facts(tool: str, paths: Sequence[Path]) -> int:
    """What a fact tool's output says of a host is no measurement: it is printed as JSON either way."""
    failed = 0
    docs = []
    for path in paths:
        with _open(path) as file:
            try:
                docs.append(parsers.facts.parse(tool, parsers.read_at_most(tool, file)))
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


def _as_dict(m: Measurement) -> dict[str, Any]:
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


def _table(tool: str, found: Sequence[dict[str, Any]]) -> Table:
    metrics = workloads.load(tool).metrics if tool in workloads.names() else {}
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("case", "subject", "metric", "labels"):
        table.add_column(name, overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    for row in found:
        labels = ", ".join(f"{k}={v}" for k, v in row["labels"].items())
        bits = row["metric"] in metrics and metrics[row["metric"]].bits
        value = human(row["value"], row["unit"], bits=bits, digits=4) + (
            f" {row['standing']}" if row["standing"] else ""
        )
        table.add_row(*map(Text, (row["case"], row["subject"], row["metric"], labels, value)))
    return table


def campaign(name: str, root: Path, console: Console, as_json: bool) -> int:
    """Rebuild a campaign's measurements from raw, with the parsers of today; an outcome that changed is journaled."""
    if name in parsers.tools() or name in parsers.facts.tools():
        raise FleetmarkError(f"fleetmark parse {name}: which file? Give the tool's output, or - for stdin")
    archive = find(root, name).writable()
    try:
        before = {documents.key_of(e): e for e in archive.journal() if e["e"] == "outcome"}
        changed = 0

        def judged(folder: Path, step: Mapping[str, Any]) -> Outcome:
            nonlocal changed
            outcome = judge(archive, folder)
            was = before.get(documents.key_of(step))
            if was is None or (was["status"], was["reason"]) != (outcome.status.value, outcome.reason):
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
