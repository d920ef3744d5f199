"""Render the tables of a document as CSV: figures in base units with full precision, with the same keys as in JSON."""

from __future__ import annotations

import csv
import io

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.inert import inert
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.tabular import records


def render(document: Document) -> str:
    """Return all tables, separated by empty lines. Text that a spreadsheet would run as a formula is escaped.

    Raise FleetmarkError for a document without tables.
    """
    tables = list(document.tables_for("csv"))
    if not tables:
        raise FleetmarkError(f"{document.title}: it has no table; choose another format than CSV")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, (_, table) in enumerate(tables):
        if number:
            writer.writerow([])
        rows = records(table)
        writer.writerow(rows[0] if rows else [column.key for column in table.columns])
        writer.writerows([inert("" if value is None else value) for value in row.values()] for row in rows)
    return out.getvalue()
