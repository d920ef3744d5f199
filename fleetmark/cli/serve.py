"""Define ``fleetmark serve``, which shows the record in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetmark.cli.common import ROOT, Root
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results


def serve(
    root: Root = ROOT,
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Address to listen on. Addresses other than loopback require a token."),
    ] = "127.0.0.1:8300",
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that browsers must send."),
    ] = None,
    lang: Lang = "en",
) -> None:
    """Show stored results in a web browser (read-only): campaigns, hosts with their history, findings, comparisons.

    Examples: fleetmark serve; fleetmark serve --listen 0.0.0.0:8300 --token-file token.txt
    """
    from fleetmark.reports.kit.language import language
    from fleetmark.verbs import serve as serving

    with results(root) as here:
        serving.show(here, listen, token_file, language(lang))
