"""Define ``fleetmark workloads``, which shows workloads, and creates or checks your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetmark.cli.common import OK, USAGE, AsDocument, DocumentFormat, Output, WorkloadFolders, message_console
from fleetmark.cli.help import App

app = App(
    default="show",
    help="Show workloads, or create your own. `fleetmark workloads NAME` is `fleetmark workloads show NAME`.",
)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of workloads.")]


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="The workload to show in detail.")] = None,
    folders: WorkloadFolders = None,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Show all workloads and suites, or one workload with its cases, parameters and metrics.

    Examples: fleetmark workloads; fleetmark workloads fio
    """
    from fleetmark.verbs import catalogue
    from fleetmark.verbs.documents import files

    catalogue.show_workloads(name, as_.value, message_console(as_), files(output))


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The name: lower-case letters, digits and _.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder to write to (default: NAME).")
    ] = None,
) -> None:
    """Write a working example workload that you can adapt: a manifest, a parser and a test.

    Examples: fleetmark workloads new acme_bench acme; fleetmark run --workloads acme -s acme_bench
    """
    from fleetmark.verbs import skeleton

    for line in skeleton.write(name, folder or Path(name)):
        typer.echo(line)


@app.command()
def check(folder: Folder) -> None:
    """Report every error in a folder of workloads, with file and line. The exit status is 2 if there are errors.

    Examples: fleetmark workloads check acme; fleetmark workloads check acme && fleetmark run --workloads acme -s quick
    """
    from fleetmark.verbs import checking

    faults, summary = checking.check(folder)
    for fault in faults:
        typer.echo(fault)
    typer.echo(summary, err=bool(faults))
    raise typer.Exit(USAGE if faults else OK)


@app.command()
def schema() -> None:
    """Print the JSON Schema of manifests, which editors use to complete and check them.

    Examples: fleetmark workloads schema > manifest.schema.json; fleetmark workloads schema | head
    """
    from fleetmark.workloads.schema import text

    typer.echo(text(), nl=False)
