"""Define ``fleetmark verify``, which compares a campaign, or the figures of a document, with the record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetmark.base.runtime import keep_memory
from fleetmark.cli.common import (
    OK,
    ROOT,
    SOME_FAILED,
    AsDocument,
    DocumentFormat,
    Output,
    Root,
    interruptible,
    message_console,
)
from fleetmark.cli.reports import Lang
from fleetmark.cli.roots import results


def verify(
    subject: Annotated[
        str,
        typer.Argument(metavar="DOCUMENT|CAMPAIGN", help="A file that Fleetmark wrote, or a campaign: id, path, last."),
    ] = "last",
    signers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Allowed signers file (ssh-keygen(1)); exit status 1 if the signature is missing."
        ),
    ] = None,
    lang: Lang = "en",
    root: Root = ROOT,
    output: Output = None,
    as_: AsDocument = DocumentFormat.TABLE,
) -> None:
    """Verify a campaign against its hash chain, or a document against stored results. Exit status 1 if they differ.

    Examples: fleetmark verify last; fleetmark verify last --signers allowed_signers; fleetmark verify genoa.html
    """
    with interruptible("nothing was changed"), keep_memory():
        from fleetmark.record.campaigns import find
        from fleetmark.verbs import verify as verifying
        from fleetmark.verbs.documents import files

        documents_to_write, console = files(output, lang), message_console(as_)
        if Path(subject).is_file():
            with results(root) as here:
                is_equal = verifying.document(Path(subject), here, signers, as_.value, console, documents_to_write)
        else:
            with results(root, campaign=subject) as here:
                is_equal = verifying.campaign(find(here, subject), signers, as_.value, console, documents_to_write)
    raise typer.Exit(OK if is_equal else SOME_FAILED)
