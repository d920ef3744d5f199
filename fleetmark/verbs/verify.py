"""``fleetmark verify``: compare a campaign, or the figures of a document, with the record."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fleetmark.record.archive import Archive
from fleetmark.record.archive.integrity import check
from fleetmark.reports.lists import integrity as report
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def campaign(archive: Archive, signers: Path | None, form: str, console: Console, files: Documents) -> bool:
    """Check a campaign against its hash chain and signatures. Return whether it is equal to its record."""
    with console.status(f"comparing {archive.id} with its record"):
        checked = check(archive, signers)
    documents.show(report.document(checked, str(signers or "")), form, console, files)
    return checked.is_equal
