"""Read output of Fleetmark's own programs on hosts: one JSON document per line, the first of which names the tool."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, number, numbered

_LONGEST = 20_000  # maximum characters of a line
MOST_ROWS = 10_000


@dataclass(frozen=True)
class Lines:
    """A run.

    ``head``: the document that names the tool. ``rows``: (line, document). ``end``: the last document, None if the
    output is truncated.
    """

    head: dict[str, Any]
    rows: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    end: dict[str, Any] | None = None

    @property
    def cut(self) -> str | None:
        """Return why the output is incomplete, or None if it is complete."""
        return None if self.end is not None else cut("its end line is missing")


def read(tool: str, raw: bytes) -> Lines:
    """Return the documents of the first run of ``tool`` in ``raw``; other text between them is skipped.

    Raise ParseError, with the end of the output, if there is no run of ``tool``.
    """
    report: Lines | None = None
    last = (1, "no output")
    for n, line in numbered(decode(raw)):
        if line.strip():
            last = (n, line.strip()[:200])
        document = _document(line) if line.startswith("{") and len(line) <= _LONGEST else None
        if document is None:
            continue
        if document.get("tool") == tool and report is None:
            report = Lines(document)
        elif report and document.get("end") is True:
            return Lines(report.head, report.rows, document)
        elif report and len(report.rows) < MOST_ROWS:
            report.rows.append((n, document))
    if report is None:
        raise ParseError(tool, "its report, one JSON document per line", line=last[0], got=last[1])
    return report


def _document(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def positive(document: dict[str, Any], name: str) -> float | None:
    """Return a number above zero; None for anything else."""
    value = number(document.get(name))
    return value if value is not None and value > 0 else None


def word(document: dict[str, Any], name: str) -> str:
    """Return a short text of letters, digits and ``._+-``; empty for anything else."""
    value = document.get(name)
    if not isinstance(value, str) or len(value) > 60:
        return ""
    return value if all(c.isalnum() or c in "._+- " for c in value) else ""


def integer(document: dict[str, Any], name: str, minimum: int, maximum: int = 1 << 50) -> int | None:
    """Return an integer from ``minimum`` to ``maximum``; None for anything else."""
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if minimum <= value <= maximum else None
