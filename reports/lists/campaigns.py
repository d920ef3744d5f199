"""Present the campaigns under a results root as a document."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.text import joined, message
from fleetmark.base.words import word
from fleetmark.record.campaigns import Summary
from fleetmark.reports.kit.document import Document, listing
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number


def document(summaries: Sequence[Summary], root: str) -> Document:
    """Return a row per campaign, with the damage if there is any. ``root``: the results root as the user gave it."""
    columns = (
        Column("campaign", message("campaign"), "name"),
        Column("created", message("created")),
        Column("suite", message("suite")),
        Column("hosts", message("hosts"), "number"),
        Column("outcomes", message("outcomes")),
        Column("state", message("state"), "verdict"),
    )
    title = message("Campaigns")
    table = Tabular("campaigns", title, columns, tuple(map(_row, summaries)), listing=True)
    nothing = message("no campaigns under {root}; `fleetmark run` makes one, --results looks elsewhere", root=root)
    return listing(title, table, nothing, [s.as_json() for s in summaries])


def _row(s: Summary) -> tuple[Cell, ...]:
    outcomes = joined([message("{n} {status}", n=f"{n:,}", status=word(status)) for status, n in s.statuses.items()])
    state = Cell() if s.finished else Cell(message("unfinished: --resume"), tone="unsure")
    if s.damaged:
        damage = s.damaged.removeprefix(str(s.path)).lstrip("/")
        state = Cell(message("damaged: {damage}", damage=damage), tone="bad")
    return (
        Cell(s.campaign),
        Cell(s.created[:16]),  # without a space, because a terminal would break the text at it
        Cell(s.suite),
        number(s.hosts),
        Cell(outcomes),
        state,
    )
