"""``fleetmark tuning``: suggest settings for the hosts of a campaign."""

from __future__ import annotations

from rich.console import Console

from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis.tuning import tune
from fleetmark.reports.diagnosis.tuning import document
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def show(archive: Archive, form: str, console: Console, files: Documents) -> None:
    """Print the advice on a campaign's hosts as ``form``, and write the requested ``files``."""
    documents.show(document(tune(archive)), form, console, files)
