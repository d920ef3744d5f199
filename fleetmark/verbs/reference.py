"""``fleetmark reference``: machines pinned by name, and the list of those on record."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console

from fleetmark.base.text import count
from fleetmark.record import references
from fleetmark.record.compare import kinds_on_record
from fleetmark.record.machines import machines
from fleetmark.record.select import choose
from fleetmark.record.sides import side
from reports.terminal.references import table


def pin(root: Path, name: str, selector: str) -> str:
    """Save a reference; a line that says what it holds."""
    every = machines(root)
    chosen = choose(every, selector)
    reference = references.save(root, name, side(root, selector, chosen), chosen, kinds_on_record(root, every, ()))
    holds = f"{count(len(reference.side.benchmarks), 'benchmark')} of {count(reference.hosts, 'host')}"
    return f"{reference.name}@{reference.version}: {holds} ({selector})"


def show(root: Path, console: Console, as_json: bool) -> None:
    """Print every reference on record, as a table or as JSON."""
    on_record = references.references(root)
    if as_json:
        typer.echo(json.dumps([r.as_json() for r in on_record], indent=1))
    else:
        console.print(table(on_record))
