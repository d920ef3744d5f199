"""Imported tables as a document: what was read, what was left out, and how to select it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.text import count, joined, message
from fleetmark.record.imports import Import
from reports.kit.document import Document, Finding, Section

_MOST_NOTES = 12


def document(imports: Sequence[Import]) -> Document:
    """Return a finding per import; for a file that was imported before it says where."""
    section = Section("imports", "", tuple(map(_finding, imports)))
    return Document(title=message("Imports"), answer="", sections=(section,), data=[i.as_json() for i in imports])


def _finding(one: Import) -> Finding:
    about = one.about
    if not one.new:
        text = message(
            "{source} is there already, imported {created} as {campaign}; to import it again, delete:",
            source=about["source"],
            created=about["created"],
            campaign=one.campaign,
        )
        return Finding("", text, evidence=(str(one.path),))
    text = message(
        "{campaign}: {figures} of {machines} from {rows}",
        campaign=one.campaign,
        figures=count(about["figures"], "figure"),
        machines=count(len(about["machines"]), "machine"),
        rows=count(about["rows"], "row"),
    )
    return Finding("", text, tuple(_details(one)))


def _details(one: Import) -> Iterator[str]:
    for why, number in one.about["left_out"].items():
        yield message("left out: {number}: {why}", number=number, why=why)
    notes = one.about["notes"]
    yield from (message("note: {note}", note=note) for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        file = str(one.path / "import.json")
        yield message("and {n} more notes, in {file}", n=len(notes) - _MOST_NOTES, file=file)
    labels = (f"{name} ({number})" for name, number in one.labels().items())
    yield message("select by {labels}", labels=joined(["host", *labels]))
