"""``fleetmark baseline``: save what hosts measured, and list what is saved."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console

from fleetmark.record.campaigns import find
from fleetmark.record.diagnosis import baselines, read
from reports.terminal import baselines as terminal


def save(root: Path, name: str, campaign: str, everything: bool) -> str:
    """Save a campaign as the next version of baseline ``name``; what to print."""
    archive = find(root, campaign)
    measured, hosts = read(archive, everything=everything)
    saved = baselines.save(root, name, archive.id, measured, hosts)
    sizes = f"{len(saved.hosts)} hosts, {len(saved.benchmarks)} benchmarks of {archive.id}"
    return f"saved {saved.name}@{saved.version}: {sizes}; `fleetmark diagnose --against {saved.name}` compares with it"


def show(root: Path, console: Console, as_json: bool) -> None:
    """List every version of every baseline."""
    listed = baselines.baselines(root)
    if as_json:
        typer.echo(json.dumps([b.as_json() for b in listed], indent=1))
    else:
        console.print(terminal.table(listed))
