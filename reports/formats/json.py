"""A document as JSON: figures in base units with full precision, null for a missing number."""

from __future__ import annotations

import json
from typing import Any

from reports.kit.charts import Chart
from reports.kit.document import Command, Document, Exhibit, Finding, Note, Tile
from reports.kit.tabular import Tabular, records


def render(document: Document) -> str:
    """Return the document in English: its ``data`` if it has any, otherwise all exhibits in order."""
    exhibits = {
        "title": document.title,
        "answer": document.answer,
        "details": list(document.details),
        "sections": [
            {"key": section.key, "title": section.title, "exhibits": [_exhibit(e) for e in section.exhibits]}
            for section in document.sections_for("json")
        ],
    }
    return json.dumps(exhibits if document.data is None else document.data, indent=1) + "\n"


def _exhibit(exhibit: Exhibit) -> dict[str, Any]:
    match exhibit:
        case Note():
            return {"note": exhibit.text}
        case Command():
            return {"command": exhibit.command, "text": exhibit.text}
        case Finding():
            evidence = list(exhibit.evidence)
            return {
                "finding": exhibit.text,
                "subject": exhibit.subject,
                "details": list(exhibit.details),
                "evidence": evidence,
            }
        case Tile():
            cell = exhibit.cell
            numbers = {"value": cell.value, "unit": cell.unit, "lo": cell.lo, "hi": cell.hi}
            return {"figure": exhibit.title, "text": cell.text, "note": exhibit.note, **numbers}
        case Tabular():
            return _table(exhibit)
        case Chart():
            table = {"table": _table(exhibit.table)} if exhibit.table else {}
            return {"chart": exhibit.title, "note": exhibit.note, **table}


def _table(table: Tabular) -> dict[str, Any]:
    return {
        "table": table.key,
        "title": table.title,
        "notes": list(table.notes),
        "rows": records(table.for_format("json")),
    }
