"""A document as one self-contained HTML page, for the screen or for a PDF."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from fleetmark import __version__
from reports.kit.document import Document, Exhibit
from reports.kit.language import Language
from reports.kit.page import Medium, page
from reports.kit.page import Section as Heading

MOST_LINKS = 12  # to sections, at the top of the page


def render(document: Document, language: Language, *, templates: Path | None = None, medium: Medium = "screen") -> str:
    """Return the page. See ``reports.html.render`` for ``templates``, ``medium`` and the errors raised."""
    sections = document.sections_for("html" if medium == "screen" else "pdf")
    context: dict[str, Any] = {
        "title": document.answer or document.title,
        "report": {"language": language},
        "campaign": {"id": document.title, "fleetmark_version": __version__},
        "scales": False,
        "document": document,
        "sections": [Heading(section.key, section.title) for section in sections if section.title][:MOST_LINKS],
        "content": [(section, _runs(section.exhibits, document.folder)) for section in sections],
        "link": lambda path: _link(document.folder, path),
    }
    return page("document.html.j2", context, language, templates=templates, medium=medium)


def _runs(exhibits: tuple[Exhibit, ...], folder: Path | None) -> list[tuple[str, list[Any]]]:
    """Return runs of consecutive exhibits with their kind. Runs of findings are grouped by subject."""
    runs: list[tuple[str, list[Any]]] = []
    for kind, run in groupby(exhibits, lambda exhibit: type(exhibit).__name__.lower()):
        if kind == "finding":
            subjects = groupby(run, lambda finding: finding.subject)  # type: ignore[union-attr]
            runs.append((kind, [(subject, list(findings)) for subject, findings in subjects]))
        else:
            runs.append((kind, list(run)))
    return runs


def _link(folder: Path | None, path: str) -> str:
    """Return the address of a file below ``folder``; empty for a path that leads out of it."""
    inside = not Path(path).is_absolute() and ".." not in Path(path).parts
    return (folder.resolve() / path).as_uri() if folder and inside else ""
