"""``fleetmark tuning``: what could be set differently on the hosts of a campaign."""

from __future__ import annotations

import typer
from rich.console import Console

from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.tuning import tune
from reports.diagnosis import tuning
from reports.kit.language import language


def show(archive: Archive, form: str, lang: str, console: Console) -> None:
    """The advice on a campaign's hosts as ``form``: table, json or md."""
    spoken = language(lang)
    result = tune(archive)
    if form == "json":
        typer.echo(tuning.as_json(result))
    elif form == "md":
        typer.echo(tuning.markdown(result, spoken), nl=False)
    else:
        for part in tuning.table(result, spoken):
            console.print(part)
