"""The campaigns under a results root as a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fleetmark.record.campaigns import Summary
from reports.terminal.catalogue import table as plain


def table(summaries: Sequence[Summary]) -> Table:
    """A line per campaign, with what is wrong where it is damaged."""
    lines = plain("campaign", "created", "suite", "hosts", "outcomes", "")
    for s in summaries:
        counts = ", ".join(f"{n} {status}" for status, n in s.statuses.items())
        state = "" if s.finished else "unfinished: --resume"
        if s.damaged:
            state = f"damaged: {s.damaged.removeprefix(str(s.path)).lstrip('/')}"
        hosts = "" if s.hosts is None else str(s.hosts)
        lines.add_row(*map(Text, (s.campaign, s.created[:16], s.suite, hosts, counts, state)))
    return lines
