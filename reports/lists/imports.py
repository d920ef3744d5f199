"""Present imported tables as a document: what was read, what was left out, and how to select it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleetmark.base.text import count, joined, message
from fleetmark.record.imports import Import
from fleetmark.reports.kit.document import FILES, Document, Finding, Section
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Tabular, number

_MOST_NOTES = 12


def document(imports: Sequence[Import]) -> Document:
    """Return a finding per import, or a table of them in CSV. A file that was imported before names its import."""
    columns = (
        Column("campaign", message("campaign"), "name"),
        Column("source", message("source"), "file"),
        Column("created", message("created")),
        Column("machines", message("machines"), "number"),
        Column("figures", message("figures"), "number"),
        Column("rows", message("rows"), "number"),
    )
    table = Tabular("imports", message("Imports"), columns, tuple(map(_row, imports)))
    shown: tuple[Kind, ...] = ("terminal", *(kind for kind in FILES if kind != "csv"))
    sections = (
        Section("imports", "", tuple(map(_finding, imports)), shown),
        Section("table", "", (table,), ("csv",)),
    )
    return Document(title=message("Imports"), answer="", sections=sections, data=[i.as_json() for i in imports])


def _row(one: Import) -> tuple[Cell, ...]:
    document = one.metadata
    counts = (len(document["machines"]), document["figures"], document["rows"])
    return (Cell(one.campaign), Cell(document["source"]), Cell(document["created"]), *map(number, counts))


def _finding(one: Import) -> Finding:
    document = one.metadata
    if not one.new:
        text = message(
            "{source} is already imported ({created}, as {campaign}); to import it again, delete:",
            source=document["source"],
            created=document["created"],
            campaign=one.campaign,
        )
        return Finding("", text, evidence=(str(one.path),))
    text = message(
        "{campaign}: {figures} of {machines} from {rows}",
        campaign=one.campaign,
        figures=count(document["figures"], "figure"),
        machines=count(len(document["machines"]), "machine"),
        rows=count(document["rows"], "row"),
    )
    return Finding("", text, tuple(_details(one)))


def _details(one: Import) -> Iterator[str]:
    for reason, times in one.metadata["left_out"].items():
        yield message("left out: {number}: {why}", number=times, why=reason)
    notes = one.metadata["notes"]
    yield from (message("note: {note}", note=note) for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        file = str(one.path / "import.json")
        yield message("and {n} more notes, in {file}", n=len(notes) - _MOST_NOTES, file=file)
    labels = (f"{name} ({values})" for name, values in one.labels().items())
    yield message("select by {labels}", labels=joined(["host", *labels]))
