"""A diagnosis as a workbook: the answer, findings with their evidence, what was not judged, hosts under their roofs."""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.text import Message, count, message
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.record.diagnosis.roofs import Roof
from planner.diagnosis.finding import Finding
from reports.diagnosis import bottleneck
from reports.diagnosis.html import About, kinds
from reports.diagnosis.sentences import benchmark, certainty, headline, sentence, whose
from reports.diagnosis.steps import steps
from reports.kit.workbook import COLOURS, INTEGER, PERCENT, Book, Head, Sheet, form_for
from reports.sheets import Prose
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
        of_parts = bottleneck.lines(roofs, kinds(diagnosis))
        tabs[_parts(book, of_parts)] = message("What each kind of host reached beside its theoretical peak.")
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
    heads = [
        Head(message("host"), "", 18),
        Head(message("kind"), "", 12),
        Head(message("benchmark"), "", 34),
        Head(message("worse by"), "", 9),
        Head(message("value"), "", 14),
        Head(message("expected"), "", 14),
        Head(message("peers"), "", 8),
        Head("z", "", 8),
        Head(message("cleared"), "", 9),
        Head(message("what"), "", 60),
        Head(message("how sure"), "", 50),
        Head(message("raw files"), "", 60),
    ]
    at = row
    for at, finding in enumerate(diagnosis.findings, row + 1):
        _finding(sheet, at, finding)
    if at == row:
        sheet.text(row + 1, 0, message("Nothing is slower than expected."), "note")
    sheet.heads(row, heads)
    sheet.filtered(row, at, len(heads), frozen_columns=1)
    return sheet


def _finding(sheet: Sheet, row: int, finding: Finding) -> None:
    about = finding.benchmark
    percent = declared.in_percent(about["workload"], about["metric"])
    form = form_for((finding.value, finding.expected), about["unit"], percent=percent)
    sheet.text(row, 0, whose(finding) or ", ".join(finding.members), "strong")
    sheet.text(row, 1, finding.kind.value)
    sheet.text(row, 2, benchmark(finding), "wrap")
    sheet.number(row, 3, finding.deficit, _SHARE, "value")
    sheet.number(row, 4, finding.value, form, "value")
    sheet.number(row, 5, finding.expected, form, "value")
    sheet.number(row, 6, finding.n, INTEGER, "value")
    sheet.number(row, 7, finding.z, "0.0", "value")
    sheet.text(row, 8, message("yes") if finding.cleared else "")
    sheet.text(row, 9, sentence(finding), "wrap")
    sheet.text(row, 10, certainty(finding), "wrap")
    sheet.text(row, 11, "; ".join(finding.evidence), "code")


def _cohorts(book: Book, diagnosis: Diagnosis) -> Sheet:
    sheet = book.sheet(message("Cohorts"), COLOURS[5])
    row = sheet.top(message("Who was compared with whom"))
    heads = [
        Head(message("kind of host"), "", 50),
        Head(message("firmware"), "", 40),
        Head(message("hosts"), "", 9),
        Head(message("compared with"), "", 14),
        Head(message("names"), "", 80),
    ]
    at = row
    for at, cohort in enumerate(diagnosis.cohorts, row + 1):
        sheet.text(at, 0, cohort.kind, "wrap")
        sheet.text(at, 1, cohort.firmware, "wrap")
        sheet.number(at, 2, len(cohort.hosts), INTEGER, "value")
        sheet.number(at, 3, len(cohort.peers), INTEGER, "value")
        sheet.text(at, 4, ", ".join(cohort.hosts), "wrap")
    sheet.heads(row, heads)
    sheet.filtered(row, at, len(heads))
    return sheet


def _parts(book: Book, of_parts: Sequence[bottleneck.Line]) -> Sheet:
    sheet = book.sheet(message("Roofs"), COLOURS[0])
    row = sheet.top(message("Hosts under their own roofs"))
    for note in bottleneck.notes(of_parts):
        sheet.text(row, 0, note, "note")
        row += 1
    row += 1
    heads = [
        Head(message("kind of host"), "", 40),
        Head(message("part"), "", 28),
        Head(message("measured"), "", 14),
        Head(message("peak"), "", 14),
        Head(message("% of peak"), "", 9),
        Head(message("operations a byte"), "", 11),
        Head(message("hosts"), "", 8),
        Head(message("lowest"), "", 14),
        Head(message("lowest on"), "", 16),
        Head(message("measured by"), "", 36),
        Head(message("peak from"), "", 40),
    ]
    at = row
    for at, line in enumerate(of_parts, row + 1):
        top = line.roof.peak
        form = form_for((line.rate,), line.roof.unit)
        sheet.text(at, 0, line.kind, "wrap")
        sheet.text(at, 1, line.name, "strong")
        sheet.number(at, 2, line.rate, form, "value")
        sheet.number(at, 3, top.rate if top else None, form, "value")
        sheet.number(at, 4, line.share, PERCENT, "value")
        sheet.number(at, 5, line.balance, "0.00", "value")
        sheet.number(at, 6, line.hosts, INTEGER, "value")
        sheet.number(at, 7, line.lowest.best, form, "value")
        sheet.text(at, 8, line.lowest.host)
        sheet.text(at, 9, line.roof.benchmark, "wrap")
        sheet.text(at, 10, top.basis if top else "", "wrap")
    sheet.heads(row, heads)
    sheet.filtered(row, at, len(heads), frozen_columns=2)
    return sheet


def _hosts(book: Book, roofs: Sequence[Roof]) -> Sheet:
    sheet = book.sheet(message("Roofs of hosts"), COLOURS[0])
    row = sheet.top(message("Hosts under their own roofs"))
    heads = [
        Head(message("host"), "", 18),
        Head(message("part"), "", 28),
        Head(message("measured"), "", 14),
        Head(message("peak"), "", 14),
        Head(message("% of peak"), message("measured / peak"), 10),
        Head(message("measured by"), "", 36),
        Head(message("peak from"), "", 40),
        Head(message("source"), "", 60),
    ]
    at = row
    for at, roof in enumerate(roofs, row + 1):
        top = roof.peak
        form = form_for([v for v in (roof.best, top.rate if top else None) if v], roof.unit)
        sheet.text(at, 0, roof.host, "strong")
        sheet.text(at, 1, bottleneck.part_name(roof.of, roof.called))
        sheet.number(at, 2, roof.best, form, "value")
        sheet.number(at, 3, top.rate if top else None, form, "value")
        if roof.share is not None:
            sheet.formula(at, 4, f"=C{at + 1}/D{at + 1}", roof.share, PERCENT)
        sheet.text(at, 5, roof.benchmark, "wrap")
        sheet.text(at, 6, top.basis if top else "", "wrap")
        sheet.text(at, 7, top.source if top else "", "wrap")
    sheet.heads(row, heads)
    sheet.filtered(row, at, len(heads), frozen_columns=2)
    return sheet
