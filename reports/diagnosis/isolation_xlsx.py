"""Who makes a case between hosts slow, as a workbook: the answer, a row for each fault, what was run."""

from __future__ import annotations

from pathlib import Path

from fleetmark.base.text import message
from fleetmark.base.words import word
from fleetmark.record.diagnosis.isolations import Isolated
from reports.diagnosis.html import About
from reports.diagnosis.isolation import cost, headline, open_questions, sentence, ways
from reports.diagnosis.tables import Figure, table
from reports.kit.prose import Prose
from reports.kit.workbook import COLOURS, INTEGER, Book, Head, Sheet


def render(isolated: Isolated, folder: Path, about: About) -> bytes:
    """The workbook; ``folder``: the campaign's. The same answer gives the same bytes."""
    book = Book(headline(isolated), about.created, about.language)
    readme = book.sheet(message("Readme"), "#1F3A5F")
    tabs = {
        _faults(book, isolated).name: message("A row for each fault: who it is, by how much, why, and its raw files."),
        _runs(book, isolated).name: message("How many runs it took beside other ways, and where they are."),
    }
    asked = isolated.question
    prose = Prose(readme, readme.top(headline(isolated)))
    prose.pair(message("benchmark"), f"{asked.workload} {asked.case}, {asked.metric}")
    prose.pair(message("Runs"), cost(isolated))
    prose.sentences(open_questions(isolated))
    prose.tabs(tabs)
    prose.heading(message("Provenance"))
    prose.pair(message("Make this report again"), about.command, "code")
    prose.pair(message("Raw files below"), str(folder), "code")
    return book.bytes()


def _faults(book: Book, isolated: Isolated) -> Sheet:
    sheet = book.sheet(message("Faults"), COLOURS[5])
    heads = (
        Head(message("who"), "", 24, "strong"),
        Head(message("kind"), "", 10),
        Head(message("worse by"), "", 10),
        Head(message("why"), "", 60, "wrap"),
        Head(message("reason, for programs"), "", 50, "code"),
        Head(message("raw files"), "", 60, "code"),
    )
    faults = isolated.suspicion.faults
    rows = [
        (
            " - ".join(f.of),
            word(f.kind),
            Figure(f.deficit, "0.0%"),
            sentence(f),
            f.reason.value,
            "; ".join(isolated.evidence(f)),
        )
        for f in faults
    ]
    row = sheet.top(message("Faults"), headline(isolated))
    if not faults:
        sheet.text(row + 1, 0, message("Nobody is named."), "note")
    table(sheet, row, heads, rows, frozen=1)
    return sheet


def _runs(book: Book, isolated: Isolated) -> Sheet:
    sheet = book.sheet(message("Runs"), COLOURS[0])
    row = sheet.top(message("Runs"), cost(isolated))
    heads = (Head(message("way of looking"), "", 44), Head(message("runs"), "", 10))
    listed = ways(isolated)
    table(sheet, row, heads, [(way, Figure(runs, INTEGER)) for way, runs in listed])
    row += len(listed) + 2
    for name in isolated.campaigns:
        sheet.text(row, 0, name, "code")
        row += 1
    return sheet
