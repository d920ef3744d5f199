"""``fleetmark workloads``: show workloads, and create or check your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from fleetmark.cli.common import OK, USAGE, AsDocument, DocumentFormat, Output, WorkloadFolders, beside


class _Workloads(TyperGroup):
    """A command group that reads ``workloads NAME`` as ``workloads show NAME``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Workloads,
    help="Show workloads, create your own. `fleetmark workloads NAME` is `fleetmark workloads show NAME`.",
    rich_markup_mode=None,
)
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of workloads.")]


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="The workload to show in full.")] = None,
    folders: WorkloadFolders = None,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Show all workloads and suites, or one workload with its cases, parameters and metrics.

    Example: fleetmark workloads fio
    """
    from fleetmark.verbs import catalogue
    from fleetmark.verbs.documents import files

    catalogue.show_workloads(name, as_.value, beside(as_), files(output))


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="The name: lower-case letters, digits and _.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder to write to (default: NAME).")
    ] = None,
) -> None:
    """Write a working example workload for you to adapt: a manifest, a parser and a test.

    Example: fleetmark workloads new acme_bench acme
    """
    from fleetmark.verbs import skeleton

    for line in skeleton.write(name, folder or Path(name)):
        typer.echo(line)


@app.command()
def check(folder: Folder) -> None:
    """Report every error in a folder of workloads, with file and line. The exit status is 2 if there is one.

    Example: fleetmark workloads check acme
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

    Example: fleetmark workloads schema > manifest.schema.json
    """
    from workloads.schema import text

    typer.echo(text(), nl=False)
