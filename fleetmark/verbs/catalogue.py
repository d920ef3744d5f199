"""``fleetmark workloads`` and ``fleetmark campaigns``: what can be run, and what was."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console

import workloads
from fleetmark.base.terminal import unwrapped
from fleetmark.record import listing
from fleetmark.record.store.place import name_of
from reports.terminal import campaigns as campaign_list
from reports.terminal import catalogue


def show_workloads(name: str | None, console: Console, as_json: bool) -> None:
    """Print the workload ``name`` in full, or all workloads and suites, a line each; as JSON the manifests."""
    manifests = [workloads.load(n) for n in ([name] if name else workloads.names())]
    if as_json:
        documents = [m.model_dump(mode="json", by_alias=True) for m in manifests]
        typer.echo(json.dumps(documents[0] if name else documents, indent=1))
        return
    suites = [] if name else [workloads.load_suite(s) for s in workloads.suite_names()]
    for part in catalogue.workload(manifests[0]) if name else catalogue.overview(manifests, suites):
        console.print(part)


def show_campaigns(root: Path, console: Console, as_json: bool) -> None:
    """Print a line per campaign under ``root``, damaged ones among them."""
    summaries = listing.summaries(root)
    if as_json:
        typer.echo(json.dumps([s.as_json() for s in summaries], indent=1))
    elif len(summaries) > campaign_list.MANY:
        typer.echo(campaign_list.text(summaries))
    elif summaries:
        console.print(campaign_list.table(summaries))
    else:
        console.print(
            unwrapped(f"no campaigns under {name_of(root)}; `fleetmark run` makes one, --results looks elsewhere")
        )
