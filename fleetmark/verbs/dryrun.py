"""``fleetmark run --dry-run``: show the plan of a run on the terminal, or write it as a test plan."""

from __future__ import annotations

from pathlib import Path

import typer

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import Terminal
from fleetmark.campaign.options import Options
from fleetmark.campaign.prepare.dryrun import dry_run
from fleetmark.record.archive import utc
from fleetmark.verbs.documents import documents_of, page_and_pdf, write
from reports.kit.page import Medium
from reports.testplan import document

KINDS = {".md": "md", ".html": "html", ".pdf": "pdf"}


def show(options: Options, plan: Path | None, form: str, lang: str) -> bool:
    """Print the dry run as a table, JSON or Markdown, and write it to ``plan``. Return whether every host answered."""
    kind = _kind(plan) if plan else "md"
    documents = documents_of({"plan": plan}, lang, None, None)
    created, spoken = documents.date or utc(), documents.language
    console = Terminal(stderr=form != "table")
    dry = dry_run(options, console)

    def page(medium: Medium) -> str:
        return document.render(dry, created, spoken, medium)

    def markdown() -> bytes:
        return document.markdown(dry, created, spoken).encode()

    write(documents, {"plan": {**page_and_pdf(page), "md": markdown}[kind]}, console)
    if form == "json":
        typer.echo(document.as_json(dry))
    elif form == "md":
        typer.echo(document.markdown(dry, created, spoken), nl=False)
    else:
        for part in document.show(dry, spoken):
            console.print(part)
    return all(host.facts for host in dry.hosts)


def _kind(plan: Path) -> str:
    """Return the document type from the extension of the file name."""
    if plan.suffix not in KINDS:
        raise FleetmarkError(f"--plan {plan}: unknown document type; use the extension .md, .pdf or .html")
    return KINDS[plan.suffix]
