"""``fleetmark history``: metrics of hosts over their campaigns, and when they changed for good."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from fleetmark.record.archive import utc
from fleetmark.record.diagnosis.history import as_json, history
from fleetmark.verbs.documents import Documents, write
from reports.diagnosis import history as report
from reports.diagnosis.html import About


def show(
    root: Path,
    metrics: Sequence[str],
    hosts: Sequence[str],
    everything: bool,
    programs: bool,
    command: str,
    console: Console,
    documents: Documents,
) -> bool:
    """Show the series that fit, for ``programs`` as JSON, and write the page. Whether no host became worse for good."""
    result = history(root, metrics, hosts, everything=everything)
    about = About(documents.date or utc(), command, documents.language)
    write(documents, {"html": lambda: report.render(result, about, templates=documents.templates).encode()}, console)
    if programs:
        typer.echo(json.dumps(as_json(result), indent=1))
    else:
        for part in report.table(result, documents.language):
            console.print(part)
    return not any(s.slower for s in result.series)
