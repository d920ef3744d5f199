"""Render a document in brief: one page of paper, one slide, and their parts as drawings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from fleetmark import __version__
from fleetmark.base.text import message
from fleetmark.reports.formats import pdf
from fleetmark.reports.kit import drawing
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import Brief, Command, Document, Note
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.page import page
from fleetmark.reports.kit.tabular import Tabular

Sheet = Literal["page", "slide"]
_TITLES = {
    "cost": message("Cost"),
    "worse": "",  # the document provides this title
    "missing": message("Not measured"),
    "certainty": message("How sure"),
    "steps": message("Next step"),
}
_FILES = {"cost": "cost", "worse": "worse", "missing": "not-measured", "certainty": "how-sure", "steps": "next-step"}


@dataclass(frozen=True, slots=True)
class Size:
    """Limit how much a sheet shows.

    ``items``: per part. ``characters``: per item. ``rows``, ``columns``: of the table. ``scale``: of the font size.
    """

    items: int
    characters: int
    rows: int
    columns: int
    scale: float


# Use the first limits that fit on the sheet. Sentences are dropped before rows, because a row may be a regression.
_SIZES = (
    Size(4, 320, 12, 9, 1.0),
    Size(3, 260, 12, 9, 0.9),
    Size(2, 200, 12, 9, 0.85),
    Size(2, 140, 10, 9, 0.75),
    Size(1, 140, 9, 9, 0.7),
    Size(1, 90, 4, 5, 0.6),
)
_DRAWN = _SIZES[0]
_FOOT = 60  # characters of the title below the page


@dataclass(frozen=True, slots=True)
class Part:
    """The sentences of a part under its title, each with a command or "". ``omitted``: how many are omitted."""

    key: str
    title: str
    items: tuple[tuple[str, str], ...]
    omitted: int = 0


def render(document: Document, sheet: Sheet, language: Language, *, templates: Path | None = None) -> bytes:
    """Return the brief of a document as a PDF file with one page: A4, or a slide of 16:9.

    The least important details are omitted until everything fits. See ``formats.html.render`` for ``templates``.
    """
    pages = (
        page("brief.html.j2", _context(document, sheet, size, language), language, templates=templates, medium="paper")
        for size in _SIZES
    )
    return pdf.first_that_fits(pages, limit=1)


def drawings(document: Document, language: Language) -> Mapping[str, str]:
    """Return the parts of the brief as SVG, by the name of the file."""
    brief, size = _brief(document), _DRAWN
    tone = {"good": "good", "bad": "bad"}.get(document.tone, "")
    answer = [(_short(document.answer, 2 * size.characters, language), "")]
    svgs = {"answer.svg": drawing.text(_short(brief.question, size.characters, language), answer, tone=tone)}
    if brief.table is not None:
        svgs["figures.svg"] = drawing.table(_cropped(brief.table, size), language)
    for part in _parts(brief, size, language):
        items = [*part.items, *([(language("and {n} more", n=part.omitted), "")] if part.omitted else [])]
        svgs[f"{_FILES[part.key]}.svg"] = drawing.text(part.title, items)
    return svgs


def _context(document: Document, sheet: Sheet, size: Size, language: Language) -> dict[str, Any]:
    brief = _brief(document)
    return {
        "title": document.answer,
        "report": {"language": language},
        "campaign": {"id": _short(document.title, _FOOT, language), "fleetmark_version": __version__},
        "document": document,
        "sheet": sheet,
        "size": size,
        "question": _short(brief.question, size.characters, language),
        "answer": _short(document.answer, 2 * size.characters, language),
        "facts": _cut(" · ".join(fmt.clean(language(fact)) for fact in document.facts), size.characters),
        "table": None if brief.table is None else _cropped(brief.table, size),
        "omitted": 0 if brief.table is None else max(0, len(brief.table.rows) - size.rows),
        "parts": _parts(brief, size, language),
    }


def _brief(document: Document) -> Brief:
    """Return the brief of a document, which is its answer alone if it has no other."""
    return document.brief or Brief(question=document.title)


def _cropped(table: Tabular, size: Size) -> Tabular:
    """Return the rows and columns of a table that fit."""
    shown = table.for_format("pdf")
    places = [n for n, column in enumerate(shown.columns) if not column.plot or column.role == "number"]
    chosen = shown.columns_at(places[: size.columns])
    return replace(chosen, rows=tuple(islice(chosen.rows, size.rows)))


def _parts(brief: Brief, size: Size, language: Language) -> list[Part]:
    """Return the parts that are not empty."""
    lists = {key: getattr(brief, key) for key in _TITLES}
    return [
        Part(
            key,
            language(_TITLES[key] or brief.worse_title),
            tuple(_item(item, size, language) for item in items[: size.items]),
            len(items[size.items :]),
        )
        for key, items in lists.items()
        if items
    ]


def _item(item: str | Command | Note, size: Size, language: Language) -> tuple[str, str]:
    if isinstance(item, str):
        return _short(item, size.characters, language), ""
    command = fmt.clean(item.command) if isinstance(item, Command) else ""
    is_short = len(command) <= 3 * size.characters  # a shortened command would be wrong
    return _short(item.text, size.characters, language), command if is_short else ""


def _short(text: str, longest: int, language: Language) -> str:
    return _cut(fmt.clean(language(text)), longest)


def _cut(text: str, longest: int) -> str:
    """Return a text of at most ``longest`` characters, cut between words if possible."""
    if len(text) <= longest:
        return text
    kept = text[: longest - 1]
    head, space, _ = kept.rpartition(" ")
    return f"{head if space and len(head) > longest // 2 else kept}…"
