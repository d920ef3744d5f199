"""A report as a PDF: the pages that ``reports.html`` makes for paper."""

from __future__ import annotations

from pathlib import Path

from reports import html
from reports.formats.pdf import of_html
from reports.report import Report


def render(report: Report, *, templates: Path | None = None, appendix: bool = False) -> bytes:
    """The report as a PDF file. Nothing is fetched, and the same report gives the same bytes, given the same fonts.

    ``templates`` and ``appendix`` as ``reports.html.render`` takes them. Raises FleetmarkError as that does, and where
    the libraries that WeasyPrint draws text with are not installed.
    """
    return of_html(html.render(report, templates=templates, medium="paper", appendix=appendix))
