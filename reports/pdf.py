"""A report as a PDF, made from the pages that ``reports.html`` lays out for paper."""

from __future__ import annotations

from pathlib import Path

from reports import html
from reports.formats.pdf import of_html
from reports.report import Report


def render(report: Report, *, templates: Path | None = None, appendix: bool = False) -> bytes:
    """Return the report as a PDF file. Nothing is fetched. The same report and fonts give the same bytes.

    See ``reports.html.render`` for ``templates``, ``appendix`` and the errors raised. Raise FleetmarkError also if the
    libraries that WeasyPrint needs to draw text are not installed.
    """
    return of_html(html.render(report, templates=templates, medium="paper", appendix=appendix))
