"""Implement ``fleetmark history``: show metrics of hosts over their campaigns, and lasting changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from fleetmark.record.archive import utc
from fleetmark.record.diagnosis.history import history
from fleetmark.reports.diagnosis import openmetrics
from fleetmark.reports.diagnosis.history import document
from fleetmark.reports.kit.openmetrics import render
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def show(
    root: Path,
    metrics: Sequence[str],
    limit: str | None,
    everything: bool,
    form: str,
    command: str,
    console: Console,
    files: Documents,
) -> bool:
    """Print the matching series, and write the requested ``files``.

    Return whether no host has a lasting deterioration.
    """
    result = history(root, metrics, limit, everything=everything)
    if form == "openmetrics":
        typer.echo(render(openmetrics.history(result)), nl=False)
        form = ""
    documents.show(document(result, files.date or utc(), command), form, console, files)
    return not any(s.slower for s in result.series)
