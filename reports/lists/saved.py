"""Present all versions of saved references as a document."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.text import message
from fleetmark.record.diagnosis.baselines import Baseline
from fleetmark.record.references import Reference
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Document, listing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number


def references(saved: Sequence[Reference | Baseline]) -> Document:
    """Return a row per version of every reference, with the verbs that can use it."""
    nothing = message("no references; `fleetmark reference save NAME --from last` saves one")
    title, versions = message("References"), [r.as_json() for r in saved]
    columns = (
        Column("name", message("name"), "name"),
        Column("version", message("version"), "number"),
        Column("created", message("created")),
        Column("from", message("from")),
        Column("hosts", message("hosts"), "number"),
        Column("benchmarks", message("benchmarks"), "number"),
        Column("verbs", message("verbs")),
    )
    rows = tuple(
        (
            Cell(v["name"]),
            number(v["version"]),
            Cell(fmt.clean(v["created"][:16])),
            Cell(v["from"]),
            number(v["hosts"]),
            number(v["benchmarks"]),
            Cell(", ".join(verb for verb in ("compare", "diagnose") if v[verb])),
        )
        for v in versions
    )
    return listing(title, Tabular("references", title, columns, rows, listing=True), nothing, versions)
