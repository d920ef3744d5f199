"""A diagnosis as a workbook: the answer, findings with their evidence, what was not judged, hosts under their roofs."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.text import Message, count, message
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.record.roofs import Roof
from planner.diagnosis.finding import Finding
from reports.diagnosis.html import About, kinds
from reports.diagnosis.sentences import benchmark, certainty, headline, sentence, whose
from reports.diagnosis.steps import steps
from reports.diagnosis.tables import Figure, Row, table
from reports.hosts import roofs as under_roofs
from reports.kit.prose import Prose
from reports.kit.workbook import COLOURS, INTEGER, PERCENT, Book, Head, Sheet, form_for
from reports.sheets import PARTS, tab
from workloads import declared

_SHARE = "0.0%"


def render(diagnosis: Diagnosis, roofs: Sequence[Roof], about: About) -> bytes:
    """The workbook; the same diagnosis gives the same bytes. Figures are in base units."""
    book = Book(headline(diagnosis), about.created, about.language)
    readme = book.sheet(message("Readme"), "#1F3A5F")
    tabs = {
        _findings(book, diagnosis): message("A row for each finding: what is slow, by how much, and its raw files."),
        _cohorts(book, diagnosis): message("Which hosts were held against which."),
    }
    if roofs:
        if of_parts := under_roofs.lines(roofs, kinds(diagnosis)):
            tabs[tab(book, "roofs", [under_roofs.part(of_parts)])] = PARTS["roofs"][1]
        tabs[_hosts(book, roofs)] = message("The same host by host.")
    _readme(readme, diagnosis, about, tabs)
    return book.bytes()


def _readme(sheet: Sheet, diagnosis: Diagnosis, about: About, tabs: dict[Sheet, Message]) -> None:
    prose = Prose(sheet, sheet.top(headline(diagnosis)))
    prose.heading(message("What to do next"))
    for step in steps(diagnosis):
        prose.sentences([step.what])
        prose.sentences([step.command] if step.command else [], "code")
    prose.tabs({sheet.name: text for sheet, text in tabs.items()})
    if diagnosis.notes:
        prose.heading(message("Not judged"))
        prose.sentences(diagnosis.notes)
    prose.heading(message("Provenance"))
    prose.pair(message("Compared"), count(diagnosis.judged, "value"))
    prose.pair(message("Make this report again"), about.command, "code")
    prose.pair(message("Raw files below"), str(diagnosis.path), "code")


def _findings(book: Book, diagnosis: Diagnosis) -> Sheet:
    sheet = book.sheet(message("Findings"), COLOURS[5])
    row = sheet.top(message("Findings"), headline(diagnosis))
    heads = (
        Head(message("host"), "", 18, "strong"),
        Head(message("kind"), "", 12),
        Head(message("benchmark"), "", 34, "wrap"),
        Head(message("worse by"), "", 9),
        Head(message("value"), "", 14),
        Head(message("expected"), "", 14),
        Head(message("peers"), "", 8),
        Head("z", "", 8),
        Head(message("cleared"), "", 9),
        Head(message("what"), "", 60, "wrap"),
        Head(message("how sure"), "", 50, "wrap"),
        Head(message("raw files"), "", 60, "code"),
    )
    if not diagnosis.findings:
        sheet.text(row + 1, 0, message("Nothing is slower than expected."), "note")
    table(sheet, row, heads, [_finding(f) for f in diagnosis.findings], frozen=1)
    return sheet


def _finding(finding: Finding) -> Row:
    about = finding.benchmark
    percent = declared.in_percent(about["workload"], about["metric"])
    form = form_for((finding.value, finding.expected), about["unit"], percent=percent)
    return (
        whose(finding) or ", ".join(finding.members),
        finding.kind.value,
        benchmark(finding),
        Figure(finding.deficit, _SHARE),
        Figure(finding.value, form),
        Figure(finding.expected, form),
        Figure(finding.n, INTEGER),
        Figure(finding.z, "0.0"),
        message("yes") if finding.cleared else "",
        sentence(finding),
        certainty(finding),
        "; ".join(finding.evidence),
    )


def _cohorts(book: Book, diagnosis: Diagnosis) -> Sheet:
    sheet = book.sheet(message("Cohorts"), COLOURS[5])
    heads = (
        Head(message("kind of host"), "", 50, "wrap"),
        Head(message("firmware"), "", 40, "wrap"),
        Head(message("hosts"), "", 9),
        Head(message("compared with"), "", 14),
        Head(message("names"), "", 80, "wrap"),
    )
    rows = [
        (c.kind, c.firmware, Figure(len(c.hosts), INTEGER), Figure(len(c.peers), INTEGER), ", ".join(c.hosts))
        for c in diagnosis.cohorts
    ]
    table(sheet, sheet.top(message("Who was compared with whom")), heads, rows)
    return sheet


def _hosts(book: Book, roofs: Sequence[Roof]) -> Sheet:
    sheet = book.sheet(message("Roofs of hosts"), COLOURS[0])
    heads = (
        Head(message("host"), "", 18, "strong"),
        Head(message("part"), "", 28),
        Head(message("measured"), "", 14),
        Head(message("peak"), "", 14),
        Head(message("% of peak"), message("measured / peak"), 10),
        Head(message("measured by"), "", 36, "wrap"),
        Head(message("peak from"), "", 40, "wrap"),
        Head(message("source"), "", 60, "wrap"),
    )
    table(sheet, sheet.top(message("Hosts under their own roofs")), heads, [_roof(r) for r in roofs], frozen=2)
    return sheet


def _roof(roof: Roof) -> Row:
    top = roof.peak
    form = form_for([v for v in (roof.best, top.rate if top else None) if v], roof.unit)
    return (
        roof.host,
        under_roofs.part_name(roof.of, roof.called),
        Figure(roof.best, form),
        Figure(top.rate if top else None, form),
        Figure(roof.share, PERCENT, "=C{line}/D{line}"),
        roof.benchmark,
        top.basis if top else "",
        top.source if top else "",
    )
