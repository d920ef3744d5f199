"""Implement ``fleetmark run --dry-run``: print the plan of a run, or write it as a test plan."""

from __future__ import annotations

from fleetmark.base.terminal import Terminal
from fleetmark.campaign.options import Options
from fleetmark.campaign.prepare.dryrun import dry_run
from fleetmark.record.archive import utc
from fleetmark.reports.testplan.document import document
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def show(options: Options, form: str, files: Documents) -> bool:
    """Print the dry run as a table, JSON or Markdown, and write the ``files``. Return whether every host answered."""
    console = Terminal(stderr=form != "table")
    dry = dry_run(options, console)
    documents.show(document(dry, files.date or utc()), form, console, files)
    return all(host.facts for host in dry.hosts)
