"""All versions of saved baselines and references as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.base.text import Message, message
from fleetmark.record.diagnosis.baselines import Baseline
from fleetmark.record.references import Reference
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Document, listing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number


def baselines(saved: Sequence[Baseline]) -> Document:
    """Return a row per version of every baseline."""
    nothing = message("no baselines; `fleetmark baseline save NAME --from CAMPAIGN` saves one")
    return _document("baselines", message("Baselines"), [b.as_json() for b in saved], nothing)


def references(saved: Sequence[Reference]) -> Document:
    """Return a row per version of every pinned reference."""
    nothing = message("no references; `fleetmark reference save NAME --from gen=…` pins one")
    return _document("references", message("References"), [r.as_json() for r in saved], nothing)


def _document(key: str, title: Message, versions: Sequence[Mapping[str, Any]], nothing: Message) -> Document:
    columns = (
        Column("name", message("name"), "name"),
        Column("version", message("version"), "number"),
        Column("created", message("created")),
        Column("from", message("from")),
        Column("hosts", message("hosts"), "number"),
        Column("benchmarks", message("benchmarks"), "number"),
    )
    rows = tuple(
        (
            Cell(v["name"]),
            number(v["version"]),
            Cell(fmt.moment(v["created"])),
            Cell(v["from"]),
            number(v["hosts"]),
            number(v["benchmarks"]),
        )
        for v in versions
    )
    return listing(title, Tabular(key, title, columns, rows, listing=True), nothing, list(versions))
