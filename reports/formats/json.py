"""Render a document as JSON: figures in base units with full precision, null for a missing number."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Block, Command, Document, Exhibit, Finding, Note, Tile
from fleetmark.reports.kit.manifest import KEY, VERSION
from fleetmark.reports.kit.tabular import Tabular, records

_AT_ONCE = 1000  # rows in a piece of text


def render(document: Document) -> str:
    """Return the document in English: its ``data`` if it has any, otherwise all exhibits in order."""
    return "".join(pieces(document))


def pieces(document: Document) -> Iterator[str]:
    """Yield the text of the document in pieces, so that rows computed on demand are never all in memory."""
    content = _exhibits(document) if document.data is None else document.data
    if not content or not isinstance(content, dict):
        yield json.dumps(content, indent=1) + "\n"
        return
    between = "{"
    for key, value in (content | ({KEY: {VERSION: 1, **document.manifest}} if document.manifest else {})).items():
        yield f"{between}\n {json.dumps(key)}: "
        if isinstance(value, Iterable) and not isinstance(value, str | Sequence | Mapping):
            yield from _rows(value)
        else:
            yield json.dumps(value, indent=1).replace("\n", "\n ")
        between = ","
    yield "\n}\n"


def _rows(rows: Iterable[Any]) -> Iterator[str]:
    """Yield a list with a line for each row."""
    lines, between = map(json.dumps, rows), "["
    while some := list(islice(lines, _AT_ONCE)):
        yield between + ",".join(f"\n  {line}" for line in some)
        between = ","
    yield "[]" if between == "[" else "\n ]"


def exhibits(document: Document, kinds: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every exhibit with figures of these formats, and its name. Very large tables are omitted."""
    for section in document.sections:
        if section.only and not {*section.only} & {*kinds}:
            continue
        for number, exhibit in enumerate(section.exhibits, 1):
            if isinstance(exhibit, Command) or (isinstance(exhibit, Tabular) and exhibit.is_large):
                continue
            name = exhibit.title if isinstance(exhibit, Tabular | Chart) else type(exhibit).__name__.lower()
            yield f"{section.key} {number}: {name}"[:200], _exhibit(exhibit)


def _exhibits(document: Document) -> dict[str, Any]:
    return {
        "title": document.title,
        "answer": document.answer,
        "details": list(document.details),
        "sections": [
            {"key": section.key, "title": section.title, "exhibits": [_exhibit(e) for e in section.exhibits]}
            for section in document.sections_for("json")
        ],
    }


def _exhibit(exhibit: Exhibit) -> dict[str, Any]:
    match exhibit:
        case Note() | Block():
            return {"note": exhibit.text if isinstance(exhibit, Note) else "\n".join(exhibit.lines)}
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
