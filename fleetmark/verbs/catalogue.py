"""Implement ``fleetmark workloads`` and ``fleetmark campaigns``: list workloads, suites and campaigns."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from fleetmark import workloads
from fleetmark.record import listing
from fleetmark.record.store.place import name_of
from fleetmark.reports.lists import campaigns as campaign_list
from fleetmark.reports.lists import catalogue
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def show_workloads(name: str | None, form: str, console: Console, files: Documents) -> None:
    """Print the workload ``name`` in full, or a row for each workload and suite. JSON contains the manifests."""
    if name:
        document = catalogue.workload(workloads.load(name))
    else:
        manifests = [workloads.load(n) for n in workloads.names()]
        document = catalogue.overview(manifests, [workloads.load_suite(s) for s in workloads.suite_names()])
    documents.show(document, form, console, files)


def show_campaigns(root: Path, form: str, console: Console, files: Documents) -> None:
    """Print a row per campaign under ``root``, including damaged ones."""
    documents.show(campaign_list.document(listing.summaries(root), name_of(root)), form, console, files)
