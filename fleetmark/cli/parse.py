"""Define ``fleetmark parse`` and ``fleetmark rebuild``, which read measurements from raw output of a tool or a
campaign.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetmark.cli.common import ROOT, AsDocument, DocumentFormat, Output, Root, WorkloadFolders, message_console
from fleetmark.cli.reports import Campaign, ListFormat
from fleetmark.cli.roots import results


def parse(
    tool: Annotated[str, typer.Argument(help="A tool: fio, stream, lscpu, ...")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="The tool's output; - is stdin.")
    ] = None,
    command: Annotated[str, typer.Option(help="The tool's command line, if the output does not contain it.")] = "",
    folders: WorkloadFolders = None,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Parse the output of a tool into measurements in base units.

    Examples: fleetmark parse fio out.json --format json; fleetmark parse stream */stdout -o stream.csv
    """
    from fleetmark.verbs import parse as reading
    from fleetmark.verbs.documents import files as files_to_write

    raise typer.Exit(reading.files(tool, files or (), command, as_.value, message_console(as_), files_to_write(output)))


def rebuild(
    campaign: Campaign = "last",
    folders: WorkloadFolders = None,
    root: Root = ROOT,
    as_: Annotated[ListFormat, typer.Option("--format", help="table or json.")] = ListFormat.TABLE,
) -> None:
    """Parse the raw files of a campaign again, and rewrite its measurements.

    Examples: fleetmark rebuild last; fleetmark rebuild last --format json
    """
    from fleetmark.verbs import rebuild as again

    with results(root, campaign=campaign, writes=True) as here:
        again.campaign(campaign, here, as_.value == "json")
