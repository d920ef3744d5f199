"""A document as one self-contained HTML page, for the screen or for a PDF."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from fleetmark import __version__
from reports.kit.document import Document, Section
from reports.kit.language import Language
from reports.kit.page import Medium, page
from reports.kit.page import Section as Heading
from reports.kit.tabular import Kind

MOST_LINKS = 12  # to sections, at the top of the page


def render(document: Document, language: Language, *, templates: Path | None = None, medium: Medium = "screen") -> str:
    """Return the page. See ``reports.html.render`` for ``templates``, ``medium`` and the errors raised."""
    kind: Kind = "html" if medium == "screen" else "pdf"
    sections = document.sections_for(kind)
    seen = (document, *(document.alternatives if medium == "screen" else ()))
    context: dict[str, Any] = {
        "title": document.answer or document.title,
        "report": {"language": language},
        "campaign": {"id": document.title, "fleetmark_version": __version__},
        "document": document,
        "sections": [Heading(section.key, section.title) for section in sections if section.title][:MOST_LINKS],
        "kind": kind,
        "content": [_Content(section) for section in sections],
        "faces": [
            {"number": n, "baseline": d.viewpoint, "content": [_Content(s) for s in d.sections_for(kind)]}
            for n, d in enumerate(seen)
        ]
        if len(seen) > 1
        else [],
        "varying": {s.key for d in seen[1:] for s in d.sections},
        "titles": [f"{language(d.answer or d.title)} · {d.title}" for d in seen],
        "link": lambda path: _link(document.folder, path),
    }
    return page("document.html.j2", context, language, templates=templates, medium=medium)


class _Content:
    """A section and its runs of consecutive exhibits of one kind."""

    def __init__(self, section: Section) -> None:
        self.section = section

    @property
    def runs(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield each run with the name of its kind. Runs of findings are grouped by subject."""
        for kind, run in groupby(self.section.exhibits, lambda exhibit: type(exhibit).__name__.lower()):
            if kind == "finding":
                subjects = groupby(run, lambda finding: finding.subject)  # type: ignore[union-attr]
                yield kind, [(subject, list(findings)) for subject, findings in subjects]
            else:
                yield kind, list(run)


def _link(folder: Path | None, path: str) -> str:
    """Return the address of a file below ``folder``; empty for a path that leads out of it."""
    inside = not Path(path).is_absolute() and ".." not in Path(path).parts
    return (folder.resolve() / path).as_uri() if folder and inside else ""
