"""``fleetmark reference``: machines pinned by name, and the list of those on record."""

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
from fleetmark.verbs import documents
from fleetmark.verbs.documents import Documents
from reports.lists import saved as lists


def pin(root: Path, name: str, selector: str, only: Sequence[str] = ()) -> tuple[str, list[Message]]:
    """Save a reference, of headlines or of what the patterns ``only`` match; a line that says what it holds, and where
    its machines are not one thing.
    """
    chosen = choose(machines(root), selector)
    publisher = imports.publisher(chosen)  # as in a comparison with the same machines
    pinned = side(root, selector, chosen, only=only, by=publisher or "host")
    reference = references.save(root, name, pinned, chosen, kinds_of(chosen, root), publisher or "host")
    counted = count(reference.hosts, "publisher") if publisher and len(chosen) > 1 else count(reference.hosts, "host")
    holds = f"{count(len(reference.side.benchmarks), 'benchmark')} of {counted} ({selector})"
    alone = "" if reference.hosts > 1 else "; one figure, without an error: how others of its kind differ is not known"
    mixed = mixtures(selector, chosen, pinned, distinct_names(chosen))
    return f"{reference.name}@{reference.version}: {holds}{alone}", list(mixed)


def show(root: Path, form: str, console: Console, files: Documents) -> None:
    """List every reference on record, as ``form`` and as the files asked for."""
    documents.show(lists.references(references.references(root)), form, console, files)
