"""Define ``fleetmark reference``, which saves machines under a name to compare and diagnose others against them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetmark.cli.common import ROOT, AsDocument, DocumentFormat, Output, Root, message_console
from fleetmark.cli.help import App
from fleetmark.cli.roots import results

app = App(
    help="Save the results of machines under a name, as a reference for `compare` and `diagnose`.",
    no_args_is_help=True,
)


@app.command()
def save(
    name: Annotated[str, typer.Argument(help="The name of the reference.")],
    source: Annotated[
        str, typer.Option("--from", help="A campaign (its id, a prefix, a path, or last), or machines: gen=icelake.")
    ] = "last",
    only: Annotated[
        list[str] | None, typer.Option(help="Only metrics that match a pattern over workload/case/metric.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Save all metrics, not only headline metrics, for `diagnose --everything`."),
    ] = False,
    as_specification: Annotated[
        Path | None,
        typer.Option(
            "--as-specification", metavar="FILE", help="Also write the configuration of the best hosts as a rule file."
        ),
    ] = None,
    root: Root = ROOT,
) -> None:
    """Save the results of machines and the benchmark weights under a name. Saving again adds a version.

    Examples: fleetmark reference save icelake-2026 --from gen=icelake;
    fleetmark reference save golden --from last --only "stream/*"
    """
    from fleetmark.verbs import reference

    with results(root, writes=True) as here:
        lines, mixed = reference.pin(here, name, source, tuple(only or ()), everything=everything)
        if as_specification is not None:
            lines.append(reference.save_specification(here, source, as_specification))
    for line in lines:
        typer.echo(line)
    for sentence in mixed:
        typer.echo(f"fleetmark: warning: {sentence}", err=True)


@app.command("list")
def list_(root: Root = ROOT, output: Output = None, as_: AsDocument = DocumentFormat.TABLE) -> None:
    """List all versions of all references.

    Examples: fleetmark reference list; fleetmark reference list --format json
    """
    from fleetmark.verbs import reference
    from fleetmark.verbs.documents import files

    documents_to_write = files(output)
    with results(root, "shelves") as here:
        reference.show(here, as_.value, message_console(as_), documents_to_write)
