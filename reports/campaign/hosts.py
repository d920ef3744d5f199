"""Describe hosts by generation: common facts, deviating hosts, and configurations side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fleetmark.base.text import Message, count, joined, message
from fleetmark.reports.campaign.front import some
from fleetmark.reports.campaign.view import View
from fleetmark.reports.hosts.columns import side_by_side
from fleetmark.reports.hosts.generations import Deviation, by_generation
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Exhibit, Note, Section
from fleetmark.reports.kit.tabular import Cell, Column, Row, Tabular

_NAMED = 6  # hosts named in a cell of a page
_NAMED_IN_WORKBOOK = 20
_ALIKE = message("Hosts with the same configuration share a column. Orange: differs from most hosts of its side.")


def section(view: View, side: Message) -> Section:
    """Return the facts of hosts for HTML pages. ``side``: the heading of generations."""
    return Section("hosts", message("Hosts"), tuple(_exhibits(view, side)), ("html", "pdf"))


def _exhibits(view: View, side: Message) -> Iterator[Exhibit]:
    known, several, sides = by_generation(view.hosts), len(view.hosts) > 1, len(view.generations) > 1
    if known.columns:
        if several:
            omitted = message("{n} generations more are not shown.", n=known.left_out) if known.left_out else None
            yield Note(joined([message("Facts of most hosts of each generation."), omitted], " "), quiet=True)
        titles = [
            Column(
                f"side{n}",
                view.title_of(generation) if several else fmt.clean(view.hosts[0].name),
                unit=count(hosts, "host") if hosts > 1 else "",
            )
            for n, (generation, hosts) in enumerate(known.columns)
        ]
        rows = tuple((Cell(row.name), *(Cell(text or "–") for text in row.cells)) for row in known.rows)
        heading = message("Facts of the hosts by generation") if several else message("Hosts")
        yield Tabular("host_facts", heading, (Column("fact", message("fact"), "name"), *titles), rows)
    if known.deviations:
        columns = (
            Column("fact", message("fact"), "name"),
            Column("hosts", message("hosts")),
            *([Column("generation", side, "side")] if sides else []),
            Column("here", message("here")),
            Column("usual", message("most of them")),
        )
        rows = tuple(_deviation(view, deviation, sides) for deviation in known.deviations)
        yield Tabular("deviations", message("Deviations"), columns, rows, limits={"html": 300, "pdf": 30})
    elif several and known.columns:
        yield Note(message("All hosts of a generation have the same configuration."))
    yield from _without_facts(known.unseen)
    if not known.columns and not known.unseen:
        yield Note(message("No host is recorded."))


def _without_facts(unseen: Iterable[tuple[str, Sequence[str]]]) -> Iterator[Note]:
    for reason, hosts in unseen:
        yield Note(message("No facts of {hosts}: {reason}", hosts=some(hosts, _NAMED), reason=reason))


def _deviation(view: View, deviation: Deviation, sides: bool) -> Row:
    return (
        Cell(deviation.name),
        Cell(some(deviation.hosts, _NAMED)),
        *([Cell(view.title_of(deviation.generation))] if sides else []),
        Cell(deviation.text or "–", tone="unsure"),
        Cell(deviation.usual or "–"),
    )


def facts_tab(view: View) -> Section:
    """Return the configurations of hosts side by side, for a workbook."""
    known = side_by_side(view.hosts)
    if not known.columns:
        return Section("facts", message("Facts"), tuple(_without_facts(by_generation(view.hosts).unseen)), ("xlsx",))
    columns = (
        Column("fact", message("fact"), "name"),
        Column("differs", message("differs")),
        *(
            Column(f"kind{n}", _named(hosts), group=view.title_of(generation))
            for n, (generation, hosts) in enumerate(known.columns)
        ),
    )
    rows: list[Row] = []
    for fact in known.rows:
        differs = Cell(message("yes"), tone="unsure") if fact.differs else Cell(message("no"))
        cells = (Cell(cell.text, tone="bad" if cell.odd else "") for cell in fact.cells)
        rows.append((Cell(fact.name), differs, *cells))
    blank = [Cell()] * (len(columns) - 3)
    rows += [(Cell(fmt.clean(host)), Cell(), Cell(reason), *blank) for host, reason in known.unseen]
    if known.further:
        rows.append((Cell(message("further configurations")), Cell(), Cell(_named(known.further)), *blank))
    heading = message("Hosts side by side")
    table = Tabular("facts", heading, columns, rows, notes=(_ALIKE,))
    return Section("facts", message("Facts"), (table,), ("xlsx",))


def _named(hosts: Sequence[str]) -> str:
    return some(hosts, _NAMED_IN_WORKBOOK)
