"""Render a document as a PDF from its page for paper, laid out by WeasyPrint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fleetmark.base.errors import FleetmarkError, required
from fleetmark.reports.formats import html
from fleetmark.reports.kit import tags
from fleetmark.reports.kit.document import Document
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.manifest import attach

# Charts declare no language, so Han characters get Japanese forms unless a font is named, as in paper.css.
_FONTS = "Noto Sans, DejaVu Sans, Liberation Sans, Noto Sans CJK SC, sans-serif"
# A gradient in units of its shape (objectBoundingBox), and a rectangle at 0,0 that is filled with a gradient.
_GRADIENT = re.compile(r'<linearGradient id="([^"]+)" x1="([\d.]+)" x2="([\d.]+)" y1="([\d.]+)" y2="([\d.]+)"')
_FILLED = re.compile(r'<path d="M0,0h([\d.]+)v([\d.]+)h-[\d.]+Z" fill="url\(#([^)]+)\)"')


def render(document: Document, language: Language, *, templates: Path | None = None) -> bytes:
    """Return the PDF file. Nothing is fetched. The same document and fonts give the same bytes.

    See ``reports.formats.html.render`` for ``templates`` and the errors raised. Also raise FleetmarkError if the
    packages of the extra ``pdf`` or the libraries that WeasyPrint needs to draw text are not installed.
    """
    return of_html(html.render(document, language, templates=templates, medium="paper"), document.manifest)


def of_html(page: str, manifest: Mapping[str, Any] | None = None) -> bytes:
    """Return a page of Fleetmark as a PDF/UA-1 file. Only ``data:`` URLs are loaded; other references are omitted.

    ``manifest``: the manifest to attach as a file.
    """
    return first_that_fits([page], manifest=manifest)


def first_that_fits(pages: Iterable[str], limit: int | None = None, manifest: Mapping[str, Any] | None = None) -> bytes:
    """Return, as a PDF file, the first of these pages that fits on ``limit`` sheets, or else the last one."""

    def finish(drawn: Any, pdf: Any) -> None:
        tags.finish(drawn, pdf)
        if manifest:
            attach(pdf, manifest)

    weasyprint = _weasyprint()
    fetcher = weasyprint.urls.URLFetcher(allowed_protocols=("data",))
    for page in pages:
        drawn = _in_points(page).replace('font-family="system-ui, sans-serif"', f'font-family="{_FONTS}"')
        laid_out = weasyprint.HTML(string=drawn, url_fetcher=fetcher).render(
            pdf_identifier=True, pdf_variant="pdf/ua-1"
        )
        if limit is None or len(laid_out.pages) <= limit:
            break
    document: bytes = laid_out.write_pdf(finisher=finish, pdf_identifier=True, pdf_variant="pdf/ua-1")
    return document


def check() -> None:
    """Raise FleetmarkError, with the packages to install, if this machine cannot make a PDF."""
    _weasyprint()


def _weasyprint() -> Any:
    try:
        return required("weasyprint", "pdf", "a PDF")
    except OSError as error:
        raise FleetmarkError(
            f"a PDF needs Pango, which cannot be loaded ({str(error).splitlines()[0]}): "
            "install libpango-1.0-0 and libpangoft2-1.0-0"
        ) from error


def _in_points(page: str) -> str:
    """Convert chart gradients to chart coordinates, because Poppler draws gradients in shape units as a dot."""
    sizes = {name: (float(width), float(height)) for width, height, name in _FILLED.findall(page)}

    def scaled(match: re.Match[str]) -> str:
        if match[1] not in sizes:
            return match[0]
        width, height = sizes[match[1]]
        x1, x2 = (float(match[i]) * width for i in (2, 3))
        y1, y2 = (float(match[i]) * height for i in (4, 5))
        return (
            f'<linearGradient id="{match[1]}" gradientUnits="userSpaceOnUse" '
            f'x1="{x1:g}" x2="{x2:g}" y1="{y1:g}" y2="{y2:g}"'
        )

    return _GRADIENT.sub(scaled, page)
