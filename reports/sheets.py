"""Tabs that the workbooks of results share: contents and provenance, exclusions and failures, and facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.record.results import CampaignInfo
from reports.hosts.columns import side_by_side
from reports.kit import format as fmt
from reports.kit.prose import Prose
from reports.kit.tabular import Cell, Part
from reports.kit.workbook import COLOURS, Book, Head, Sheet, cell, form_for
from reports.report import Report

MOST_NAMED = 20  # maximum hosts named in one cell
ALIKE = message("Hosts with the same configuration share a column. Orange: differs from most hosts of its side.")


def named(hosts: Sequence[str]) -> str:
    """Return the first host names, and how many more there are."""
    more = len(hosts) - MOST_NAMED
    listed = ", ".join(hosts[:MOST_NAMED])
    return message("{hosts} and {n} more", hosts=listed, n=f"{more:,}") if more > 0 else listed


def provenance(prose: Prose, report: Report) -> None:
    """Write the commands, versions and hashes that are needed to reproduce the results."""
    prose.heading(message("Provenance"))
    prose.pair(message("Make this report again"), fmt.typed(report.campaign.command), "code")
    stamp = f"{fmt.moment(report.campaign.created)}, Fleetmark {report.campaign.fleetmark_version}"
    prose.pair(message("Made"), stamp)
    prose.pair(message("Results in"), str(report.campaign.path), "code")
    for campaign in report.campaigns:
        _campaign(prose, campaign)


def _campaign(prose: Prose, c: CampaignInfo) -> None:
    prose.heading(message("Campaign {id}", id=c.id))
    prose.pair(message("Run it again"), fmt.typed(c.command), "code")
    prose.pair(message("Files"), str(c.path), "code")
    if c.suite:
        prose.pair(message("Suite, seed"), f"{c.suite}, {c.seed}")
    begun = joined([fmt.moment(c.created), fmt.duration(c.wall_s), None if c.finished else message("not finished")])
    prose.pair(message("Begun, took"), begun)
    prose.pair("Fleetmark", c.fleetmark_version)
    prose.pair(message("Versions"), ", ".join(f"{k} {v}" for k, v in sorted(c.tool_versions.items())))
    for note in c.notes:
        prose.pair(message("Note"), note)
    for file, digest in sorted(c.hashes.items()):
        prose.pair(message("SHA-256"), f"{digest}  {file}", "code")


PARTS: Mapping[str, tuple[Message, Message]] = {
    "frontiers": (message("Frontiers"), message("Work against speed for each load, and what replaces what.")),
}


def parts(book: Book, report: Report) -> dict[Sheet, Message]:
    """Write a tab for each kind of part with tables. Return the tabs with their descriptions.

    The cells are values instead of formulas, because they are interpolated or their sources are in the tab Raw.
    """
    tabs: dict[Sheet, Message] = {}
    for key, (_, about) in PARTS.items():
        mine = [part for part in report.parts if part.key == key]
        if mine:
            tabs[tab(book, key, mine)] = about
    return tabs


def tab(book: Book, key: str, parts_of_it: Sequence[Part]) -> Sheet:
    """Write the tab for the parts of one kind."""
    title, about = PARTS[key]
    sheet = book.sheet(title, COLOURS[0])
    row = sheet.top(title, about)
    for part in parts_of_it:
        row = _part(sheet, row, part)
    return sheet


def _part(sheet: Sheet, row: int, part: Part) -> int:
    """Write the part, starting at ``row``. Return the next free row."""
    sheet.text(row, 0, part.title, "heading")
    for n, note in enumerate(part.notes, row + 1):
        sheet.text(n, 0, note, "note")
    row += len(part.notes) + 2
    for table in part.tables:
        sheet.text(row, 0, table.title, "note")
        for n, cells in enumerate(table.rows, row + 2):
            for column, cell_ in enumerate(cells):
                if form := _form(cell_):
                    sheet.number(n, column, cell_.value, form, "value")
                else:
                    sheet.text(n, column, cell_.text, "strong" if column == 0 else "text")
        sheet.heads(row + 1, [Head(c.title) for c in table.columns])
        row += len(table.rows) + 3
    return row


def _form(shown: Cell) -> str:
    """Return the number format of a cell; empty for text."""
    return form_for((shown.value,), shown.unit) if shown.unit and shown.value is not None else shown.form


def excluded(sheet: Sheet, report: Report, row: int) -> None:
    """Write a row for each benchmark, host, value or run that is not in the figures, with the reason."""
    heads = [
        Head(message("kind"), "", 14),
        Head(message("of"), "", 22),
        Head(message("what"), "", 40),
        Head(message("why"), "", 60),
        Head(message("runs"), "", 8),
        Head(message("what to do"), "", 34),
        Head(message("command"), "", 60),
    ]
    first = row + 1
    at = first
    for kind, of, what, why in _left_out(report):
        for column, text in enumerate((kind, of, what, why)):
            sheet.text(at, column, text, "text" if column < 2 else "wrap")
        at += 1
    for problem in report.problems:
        texts = (word(problem.status), named(problem.hosts), ", ".join(problem.workloads), problem.reason)
        for column, text in enumerate(texts):
            sheet.text(at, column, text, "text" if column < 1 else "wrap")
        sheet.number(at, 4, problem.runs, "#,##0")
        sheet.text(at, 5, problem.advice, "wrap")
        sheet.text(at, 6, problem.command, "code")
        at += 1
    if at == first:
        sheet.text(at, 0, message("nothing was left out, and every run passed"), "note")
    sheet.heads(row, heads)
    sheet.filtered(row, at - 1, len(heads), frozen_columns=0)


def _left_out(report: Report) -> Iterable[tuple[str, str, str, str]]:
    """Yield (kind, candidate, name, reason) for everything that a comparison leaves out."""
    for candidate in report.comparison.candidates:
        for title, why in candidate.excluded.items():
            yield message("benchmark"), candidate.title, title, why
        for class_, e in candidate.classes.items():
            if not e.ratio:
                yield message("class"), candidate.title, word(class_), e.why
            for title, why in e.left_out.items():
                yield message("benchmark"), f"{candidate.title}, {word(class_)}", title, why
            for host, why in e.hosts_out.items():
                yield message("host"), f"{candidate.title}, {word(class_)}", host, why
    for note in report.comparison.notes:
        yield message("note"), "", "", note


def facts(sheet: Sheet, report: Report, row: int) -> None:
    """Write the facts of hosts side by side. Identical hosts share a column, and differences are coloured."""
    shown = side_by_side(report.view.hosts)
    heads = [Head(message("fact"), "", 24), Head(message("differs"), "", 10)]
    titles = [report.view.title_of(generation) for generation, _ in shown.columns]
    heads += [Head(title, "", 36) for title in titles]
    at = row + 1
    sheet.text(at, 0, message("hosts"), "strong")
    for column, (_, members) in enumerate(shown.columns, 2):
        sheet.text(at, column, named(members), "wrap")
    for fact in shown.rows:
        at += 1
        sheet.text(at, 0, fact.name, "strong")
        sheet.text(at, 1, message("yes") if fact.differs else message("no"))
        for column, of in enumerate(fact.cells, 2):
            sheet.text(at, column, of.text, "odd" if of.odd else "wrap")
    last = at
    for host, why in shown.unseen:
        at += 1
        sheet.text(at, 0, host, "strong")
        sheet.text(at, 2, why, "wrap")
    if shown.further:
        at += 1
        sheet.text(at, 0, message("further configurations"), "strong")
        sheet.text(at, 2, named(shown.further), "wrap")
    sheet.paint(f"{cell(row + 1, 1)}:{cell(last, 1)}", {sheet.book.words(message("yes")): "differs"})
    sheet.heads(row, heads)
    sheet.filtered(row, at, len(heads), frozen_columns=2)
