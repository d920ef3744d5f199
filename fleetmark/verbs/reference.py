"""``fleetmark reference``: pin machines as a named reference, and list the references."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fleetmark.base.text import Message, count
from fleetmark.record import imports, references
from fleetmark.record.compare import kinds_of
from fleetmark.record.machines import machines
from fleetmark.record.select import choose, distinct_names
from fleetmark.record.sides import side
from fleetmark.record.sides.mixtures import mixtures
from fleetmark.reports.lists import saved as lists
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents


def pin(root: Path, name: str, selector: str, only: Sequence[str] = ()) -> tuple[str, list[Message]]:
    """Save a reference, and return a line that describes it, and warnings if its machines differ.

    ``only``: patterns over workload/case/metric; without patterns, the reference has the headline metrics.
    """
    chosen = choose(machines(root), selector)
    publisher = imports.publisher(chosen)  # as in a comparison with the same machines
    pinned = side(root, selector, chosen, only=only, host_label=publisher or "host")
    reference = references.save(root, name, pinned, chosen, kinds_of(chosen, root), publisher or "host")
    counted = count(reference.hosts, "publisher") if publisher and len(chosen) > 1 else count(reference.hosts, "host")
    holds = f"{count(len(reference.side.benchmarks), 'benchmark')} of {counted} ({selector})"
    alone = "" if reference.hosts > 1 else "; one figure, without an error: how others of its kind differ is not known"
    mixed = mixtures(selector, chosen, pinned, distinct_names(chosen))
    return f"{reference.name}@{reference.version}: {holds}{alone}", list(mixed)


def show(root: Path, form: str, console: Console, files: Documents) -> None:
    """Print all stored references in the format ``form``, and write the requested ``files``."""
    documents.show(lists.references(references.references(root)), form, console, files)
