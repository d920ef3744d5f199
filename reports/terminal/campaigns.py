"""The campaigns under a results root as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fleetmark.record.campaigns import Summary
from reports.terminal.catalogue import table as plain

MANY = 1000  # campaigns above which a line is no cell of a table: laying out ten thousand takes four seconds
_HEADINGS = ("campaign", "created", "suite", "hosts", "outcomes", "")


def table(summaries: Sequence[Summary]) -> Table:
    """A line per campaign, with what is wrong where it is damaged."""
    lines = plain(*_HEADINGS)
    for s in summaries:
        lines.add_row(*map(Text, _cells(s)))
    return lines


def text(summaries: Sequence[Summary]) -> str:
    """The same as plain text, whose lines may be longer than the terminal is wide."""
    rows = [_HEADINGS, *map(_cells, summaries)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEADINGS))]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _cells(s: Summary) -> tuple[str, ...]:
    counts = ", ".join(f"{n} {status}" for status, n in s.statuses.items())
    state = "" if s.finished else "unfinished: --resume"
    if s.damaged:
        state = f"damaged: {s.damaged.removeprefix(str(s.path)).lstrip('/')}"
    hosts = "" if s.hosts is None else str(s.hosts)
    return s.campaign, s.created[:16], s.suite, hosts, counts, state
