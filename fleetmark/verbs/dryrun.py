"""``fleetmark run --dry-run``: show the plan of a run on the terminal, or write it as a test plan."""

from __future__ import annotations

from pathlib import Path

from fleetmark.base.terminal import Terminal
from fleetmark.campaign.options import Options
from fleetmark.campaign.prepare.dryrun import dry_run
from fleetmark.record.archive import utc
from fleetmark.reports.testplan.document import document
from fleetmark.verbs import documents
from fleetmark.verbs.documents import documents_of


def show(options: Options, plan: Path | None, form: str, lang: str) -> bool:
    """Print the dry run as a table, JSON or Markdown, and write it to ``plan``. Return whether every host answered."""
    files = documents_of({}, lang, None, None, output=[plan] if plan else (), option="--plan")
    console = Terminal(stderr=form != "table")
    dry = dry_run(options, console)
    documents.show(document(dry, files.date or utc()), form, console, files)
    return all(host.facts for host in dry.hosts)
