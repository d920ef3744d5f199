"""``fleetmark diagnose``: which hosts are not what their peers are."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from fleetmark.base.runtime import keep_memory
from fleetmark.base.terminal import Terminal
from fleetmark.cli.common import OK, ROOT, SOME_FAILED, Root, interruptible
from fleetmark.cli.reports import Campaign, Date, Html, Lang, ReportFormat, Templates


def diagnose(
    campaign: Campaign = "last",
    everything: Annotated[bool, typer.Option("--all", help="Every metric, not only the headlines.")] = False,
    html: Html = None,
    lang: Lang = "en",
    templates: Templates = None,
    date: Date = None,
    root: Root = ROOT,
    as_: Annotated[ReportFormat, typer.Option("--format", help="table, json or md.")] = ReportFormat.TABLE,
) -> None:
    """Name the hosts and links that are slower than their peers, with evidence; exit status 1 where there are any.

    Examples: fleetmark diagnose last; fleetmark diagnose last --all --html diagnosis.html
    """
    from fleetmark.record.campaigns import find
    from fleetmark.verbs import diagnose as diagnosing
    from fleetmark.verbs.documents import documents_of

    with interruptible("no document was written"), keep_memory():
        documents = documents_of({"html": html}, lang, templates, date)
        console = Terminal(stderr=as_ is not ReportFormat.TABLE)
        command = shlex.join(["fleetmark", *sys.argv[1:]])
        healthy = diagnosing.campaign(find(root, campaign), as_.value, console, documents, everything, command)
    raise typer.Exit(OK if healthy else SOME_FAILED)
