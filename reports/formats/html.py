"""Render a document as one self-contained HTML page, for the screen or for a PDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from html import escape
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from fleetmark import __version__
from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.base.units import parse_quantity
from fleetmark.reports.formats import strip
from fleetmark.reports.formats.breakdown import embedded, origins
from fleetmark.reports.kit.axes import with_log_axes
from fleetmark.reports.kit.charts import Chart, can_draw, to_svg
from fleetmark.reports.kit.document import Document, Exhibit, Section
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.manifest import written
from fleetmark.reports.kit.page import Medium, page
from fleetmark.reports.kit.paper import is_wide, pieces
from fleetmark.reports.kit.site import Site
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Tabular

MOST_LINKS = 18  # links to sections, at the top of the page


def render(
    document: Document,
    language: Language,
    *,
    templates: Path | None = None,
    medium: Medium = "screen",
    site: Site | None = None,
) -> str:
    """Return the page. Nothing is fetched; the caller writes it in UTF-8.

    ``templates``: a user's folder that is searched first. The folder may contain ``logo.svg``, ``colours.css`` (after
    all other styles), ``extra.html.j2`` (further sections), a template named after the key of a section, and any of
    Fleetmark's templates, replaced or extended (``{% extends "fleetmark/document.html.j2" %}``). Pages for paper have
    no script and no folded parts. ``site``: the other pages, if a server shows this one. Raise FleetmarkError, with
    file and line, for a template that has an error.
    """
    kind: Kind = "html" if medium == "screen" else "pdf"
    sections = document.sections_for(kind)
    seen = (document, *(document.alternatives if medium == "screen" else ()))
    link = site.file if site else partial(_link, document.folder)
    context: dict[str, Any] = {
        "title": document.answer or document.title,
        "report": {"language": language},
        "campaign": {"id": document.title, "fleetmark_version": __version__},
        "scales": any(
            unit_scale(cell, column) is not None
            for section in sections
            for exhibit in section.exhibits
            if isinstance(exhibit, Tabular)
            for row in exhibit.rows[:4]
            for cell, column in zip(row, exhibit.columns, strict=True)
        ),
        "unit_scale": unit_scale,
        "svg": drawing([section for shown in seen for section in shown.sections_for(kind)], language),
        "embedded": embedded(document.breakdown, language) if document.breakdown and medium == "screen" else "",
        "manifest": written(document.manifest) if document.manifest and medium == "screen" else "",
        "strip": strip.embedded(document.strip, language) if document.strip and medium == "screen" else "",
        "origins": origins(document.origins, link, language) if medium == "screen" else "",
        "document": document,
        "sections": [section for section in sections if section.title][:MOST_LINKS],
        "keys": {section.key for section in sections},
        "kind": kind,
        "content": contents(sections, kind),
        "faces": [
            {"number": n, "baseline": d.viewpoint, "content": [Content(s, kind) for s in d.sections_for(kind)]}
            for n, d in enumerate(seen)
        ]
        if len(seen) > 1
        else [],
        "varying": {s.key for d in seen[1:] for s in d.sections},
        "titles": [f"{language(d.answer or d.title)} · {d.title}" for d in seen],
        "link": link,
        "site": site,
    }
    return page("document.html.j2", context, language, templates=templates, medium=medium)


@lru_cache
def _factor(unit: str) -> float | None:
    """Return the size of a display unit, such as 1e9 for GB/s; None if it is not known."""
    try:
        return parse_quantity(f"1 {unit}")[0]
    except FleetmarkError:
        return None


def unit_scale(cell: Cell, column: Column) -> tuple[float, str] | None:
    """Return the factor from the figures of a cell to the base unit, and the unit shown; None without a unit.

    The unit is in the text of the cell, or else in its column.
    """
    unit = column.unit or cell.text.rpartition(" ")[2]
    factor = _factor(unit) if cell.unit not in ("", "1") and unit != cell.text else None
    return None if factor is None else (factor, unit)


def drawing(sections: Sequence[Section], language: Language) -> Callable[[Chart], str]:
    """Return a function that returns the SVG of a chart. All charts of ``sections`` are drawn in parallel.

    If vl-convert is not installed, the function returns a sentence in place of each chart that needs drawing.
    """
    charts = [e for section in sections for e in section.exhibits if isinstance(e, Chart) and e.spec and not e.svg]
    if charts and not can_draw():
        missing = language(message("This chart needs vl-convert: pip install 'fleetmark[charts]'"))
        return lambda chart: chart.svg or f'<p class="note">{escape(missing)}</p>'
    with ThreadPoolExecutor(4) as pool:  # the engine releases the GIL
        specs = [with_log_axes(c.spec(), partial(_log_title, language)) for c in charts if c.spec]
        drawn = list(pool.map(to_svg, specs, range(len(charts))))
    by_id = {id(chart): svg for chart, svg in zip(charts, drawn, strict=True)}
    return lambda chart: chart.svg or by_id[id(chart)]


def _log_title(_: Language, title: str) -> str:
    return _(message("{title} (log)", title=title))


class Content:
    """A section and its runs of consecutive exhibits of one kind. On paper, tables fit on their pages.

    ``wide``: whether the section's pages are in landscape format.
    """

    def __init__(self, section: Section, kind: Kind) -> None:
        self.section = section
        self.wide = kind == "pdf" and any(
            isinstance(e, Tabular) and is_wide(e.for_format("pdf")) for e in section.exhibits
        )
        if kind == "pdf":
            self.section = replace(section, exhibits=tuple(p for e in section.exhibits for p in _pieces(e)))

    @property
    def runs(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield each run with the name of its kind. Runs of findings are grouped by subject."""
        for kind, run in groupby(self.section.exhibits, lambda exhibit: type(exhibit).__name__.lower()):
            if kind == "finding":
                subjects = groupby(run, lambda finding: finding.subject)  # type: ignore[union-attr]
                yield kind, [(subject, list(findings)) for subject, findings in subjects]
            else:
                yield kind, list(run)


def contents(sections: Sequence[Section], kind: Kind) -> list[Content]:
    """Return the contents of sections. The section on provenance continues the page before it, whatever its format."""
    listed = [Content(section, kind) for section in sections]
    for before, content in pairwise(listed):
        if content.section.key == "provenance":
            content.wide = before.wide
    return listed


def _pieces(exhibit: Exhibit) -> Iterator[Exhibit]:
    """Yield the exhibit, or the parts of a table that is wider than a page."""
    if isinstance(exhibit, Tabular):
        yield from pieces(exhibit.for_format("pdf"))
    else:
        yield exhibit


def _link(folder: Path | None, path: str) -> str:
    """Return the address of a file below ``folder``; empty for a path outside it."""
    inside = not Path(path).is_absolute() and ".." not in Path(path).parts
    return (folder.resolve() / path).as_uri() if folder and inside else ""
