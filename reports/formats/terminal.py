"""Render a document for a terminal of 80 columns or more: the answer, then the exhibits of each section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile, groupby

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from fleetmark.base.runtime import pasted
from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import count
from fleetmark.reports.kit import console
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.charts import Chart
from fleetmark.reports.kit.console import STYLES
from fleetmark.reports.kit.document import Block, Command, Document, Exhibit, Finding, Note, Section, Tile
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Tabular

SUBJECTS, FINDINGS, NOTES = 20, 4, 12  # shown per section: subjects, findings about each, notes in a row


def render(document: Document, _: Language) -> Iterator[RenderableType]:
    """Yield the parts to print, in order.

    Charts without a text drawing are omitted. Long lists end with the number of omitted items.
    """
    yield from dropwhile(lambda part: isinstance(part, Text) and not part, _parts(document, _))


def _parts(document: Document, _: Language) -> Iterator[RenderableType]:
    if document.answer:
        yield Text(fmt.clean(_(document.answer)), style=f"bold {STYLES[document.tone]}".strip())
    if document.details:
        yield Text(" · ".join(fmt.clean(_(line)) for line in document.details), style="dim")
    for number, section in enumerate(document.sections_for("terminal")):
        if section.title:
            if number or document.answer:
                yield Text()
            yield Text(fmt.clean(_(section.title)), style="bold")
        yield from _section(section, _)


def _section(section: Section, _: Language) -> Iterator[RenderableType]:
    for kind, run in groupby(section.exhibits, type):
        exhibits = list(run)
        if kind is Finding:
            yield from _findings([e for e in exhibits if isinstance(e, Finding)], _)
        elif kind is Tile and not any(e.note for e in exhibits if isinstance(e, Tile)):
            yield Text(" · ", style="dim").join(_tile(e, _) for e in exhibits if isinstance(e, Tile))
        elif kind is Note and len(exhibits) > NOTES and not any(e.is_unbroken for e in exhibits if isinstance(e, Note)):
            yield from (part for e in exhibits[:NOTES] for part in _exhibit(e, section, _))
            yield Text(_(count(len(exhibits) - NOTES, "further note")), style="dim")
        else:
            yield from (part for e in exhibits for part in _exhibit(e, section, _))


def _exhibit(exhibit: Exhibit, section: Section, _: Language) -> Iterator[RenderableType]:
    match exhibit:
        case Note() if exhibit.is_unbroken:
            yield unwrapped(f"  {fmt.clean(_(exhibit.text))}", STYLES[exhibit.tone])
        case Note():
            yield Text(fmt.clean(_(exhibit.text)), style="dim" if exhibit.quiet else STYLES[exhibit.tone])
        case Command():
            yield Text(fmt.clean(_(exhibit.text)))
            yield unwrapped(f"  {fmt.clean(pasted(exhibit.command))}", "cyan")
        case Block():
            yield Text(fmt.clean(_(exhibit.title)), style="bold")
            yield from (unwrapped(f"  {fmt.clean(_(line))}") for line in exhibit.lines)
        case Tabular():
            yield from console.tabular(exhibit.for_format("terminal"), _, above=section.title)
        case Finding():
            yield from _findings([exhibit], _)
        case Tile():
            yield _tile(exhibit, _)
        case Chart():
            if exhibit.lines:
                yield Text()
                yield Text(fmt.clean(_(exhibit.title)), style="bold")
                yield from (unwrapped(line) for line in exhibit.lines)


def _tile(tile: Tile, _: Language) -> Text:
    text = Text(f"{fmt.clean(_(tile.title))}: ")
    text.append(fmt.clean(_(tile.cell.shown)) or "–", style=f"bold {STYLES[tile.cell.tone]}".strip())
    return text.append(f"  {fmt.clean(_(tile.note))}", style="dim") if tile.note else text


def _findings(findings: Sequence[Finding], _: Language) -> Iterator[RenderableType]:
    """Yield the findings, grouped by subject."""
    subjects = [(subject, list(run)) for subject, run in groupby(findings, lambda finding: finding.subject)]
    for subject, run in subjects[:SUBJECTS]:
        indent = 2 if subject else 0
        if subject:
            yield Text(fmt.clean(_(subject)), style="bold")
        for finding in run[:FINDINGS] if subject else run[: FINDINGS * SUBJECTS]:
            yield _indented(_(finding.text), indent, STYLES[finding.tone])
            yield from (_indented(_(detail), indent + 2, "dim") for detail in finding.details)
            yield from (unwrapped(f"{' ' * (indent + 2)}{fmt.clean(p)}", "dim") for p in finding.evidence[:1])
        if subject and len(run) > FINDINGS:
            yield _indented(_(count(len(run) - FINDINGS, "further finding")), indent, "dim")
    if len(subjects) > SUBJECTS:
        yield Text(_(count(sum(len(run) for __, run in subjects[SUBJECTS:]), "further finding")), style="dim")


def _indented(text: str, indent: int, style: str = "") -> RenderableType:
    return Padding(Text(fmt.clean(text), style=style), (0, 0, 0, indent))
