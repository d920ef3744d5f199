"""Render a document as Markdown, for a ticket, a pull request or a wiki."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit import manifest
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.document import Block, Command, Document, Exhibit, Finding, Note, Section, Tile, tiles_table
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.marks import as_line, code, escaped, tabular, written
from fleetmark.reports.kit.tabular import Tabular


def render(document: Document, _: Language) -> str:
    """Return the document in the given language, without charts."""
    lines = [f"# {as_line(_(document.answer or document.title))}", ""]
    lines += [f"- {as_line(_(line))}" for line in document.facts]
    for section in document.sections_for("markdown"):
        lines += _section(section, _)
    if document.manifest:
        lines += ["", f"<!-- {manifest.written(document.manifest)} -->"]
    return written(lines)


def _section(section: Section, _: Language) -> Iterator[str]:
    yield from ("", f"## {escaped(_(section.title))}", "") if section.title else ("",)
    for kind, run in groupby(section.exhibits, type):
        exhibits = list(run)
        if kind is Finding:
            yield from _findings([e for e in exhibits if isinstance(e, Finding)], _)
        elif kind is Tile:
            yield from (line for table in section.tables_of(kind, exhibits) for line in _exhibit(table, section, _))
        else:
            yield from (line for exhibit in exhibits for line in _exhibit(exhibit, section, _))


def _exhibit(exhibit: Exhibit, section: Section, _: Language) -> Iterator[str]:
    match exhibit:
        case Note():
            yield f"- {as_line(_(exhibit.text))}"
        case Command():
            yield f"- {escaped(exhibit.lead(_))}{code(exhibit.command)}"
        case Block():
            yield from ("", f"### {escaped(_(exhibit.title))}", "")
            yield from (f"    {fmt.clean(_(line))}" for line in exhibit.lines)
            yield ""
        case Tabular():
            yield from ("", *tabular(exhibit.for_format("markdown"), _, above=section.title))
        case Chart():
            if exhibit.table:
                yield from ("", *tabular(exhibit.table.for_format("markdown"), _, above=section.title))
        case Finding():
            yield from _findings([exhibit], _)
        case Tile():
            yield from _exhibit(tiles_table(section, [exhibit]), section, _)


def _findings(findings: Sequence[Finding], _: Language) -> Iterator[str]:
    """Yield the findings, grouped by subject."""
    for subject, run in groupby(findings, lambda finding: finding.subject):
        yield from ("", f"### {escaped(_(subject))}", "") if subject else ()
        for finding in run:
            texts = [as_line(_(finding.text)), *(escaped(_(text)) for text in finding.details)]
            yield f"- {' '.join([*texts, *map(code, finding.evidence)])}"
