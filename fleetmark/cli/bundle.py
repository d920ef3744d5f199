"""Define ``fleetmark bundle``, which writes everything to fetch for a run without a network into one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import OK, SOME_FAILED, interruptible, settings_from

BundleFile = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, help="File with sources and packages for hosts, written by `fleetmark bundle`."
    ),
]


def bundle(
    targets: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="HOSTS",
            help="Distributions (debian12,rocky9), or an inventory whose hosts report their distribution.",
        ),
    ],
    suite: Annotated[str, typer.Option("--suite", "-s", help="The suite or workload to run.")] = "standard",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="W.P=V", help="Settings of the run, such as the URL of a source."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("fleetmark-bundle.tar"),
    wheels: Annotated[bool, typer.Option(help="Also collect Fleetmark and its Python packages.")] = True,
) -> None:
    """Collect the files for a run without internet access: sources, distribution packages and Python packages.

    Use the bundle with `fleetmark run --bundle FILE`. Exit status 1: the bundle was written, but is incomplete.

    Examples: fleetmark bundle --for debian12 --suite standard -o site.tar;
    fleetmark bundle --for hosts.yml --suite server --no-wheels
    """
    from fleetmark.verbs import bundle as bundling

    with interruptible("no bundle was written"):
        collected = bundling.collect(targets, suite, settings_from(set_ or []), output, wheels, Terminal(stderr=True))
    bundling.show(collected, Terminal())
    raise typer.Exit(SOME_FAILED if collected.contents.missing else OK)
