"""Define ``fleetmark doctor``, which lists what this machine lacks to control a fleet."""

from __future__ import annotations

import typer

from fleetmark.cli.common import OK, ROOT, SOME_FAILED, AsDocument, DocumentFormat, Output, Root, message_console
from fleetmark.cli.reports import Lang


def doctor(
    lang: Lang = "en",
    root: Root = ROOT,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """List programs and packages that this machine lacks, and how to install them. Exit status 1 if a run needs them.

    Examples: fleetmark doctor; fleetmark doctor --format json
    """
    from fleetmark.verbs import doctor as examining
    from fleetmark.verbs.documents import files

    good = examining.show(str(root), as_.value, message_console(as_), files(output, lang))
    raise typer.Exit(OK if good else SOME_FAILED)
