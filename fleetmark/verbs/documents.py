"""Write and print the documents that a command's options request.

Render all in memory before writing the first file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.text import Text

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import write_atomic
from fleetmark.base.text import message
from fleetmark.record.archive import utc
from fleetmark.reports.kit.language import ENGLISH, Language, language

if TYPE_CHECKING:
    from fleetmark.reports.kit.document import Document

EXTENSIONS = {".html": "html", ".pdf": "pdf", ".xlsx": "xlsx", ".md": "md", ".json": "json", ".csv": "csv"}


@dataclass(kw_only=True, frozen=True, slots=True)
class Documents:
    """The documents to write.

    ``paths``: kind of document (html, pdf, xlsx, ...) to file. ``templates``: the user's template folder. ``date``: the
    fixed date to print, ISO 8601, or None. ``appendix``: include all metrics in a PDF. ``raw``: include all values in a
    workbook, without a limit. ``brief``: the folder for a summary of the document as a page, a slide and drawings.
    """

    paths: Mapping[str, Path] = field(default_factory=dict)
    language: Language = field(default_factory=Language)
    templates: Path | None = None
    date: str | None = None
    appendix: bool = False
    raw: bool = False
    brief: Path | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether no file was requested."""
        return not self.paths and self.brief is None


def documents_of(
    paths: Mapping[str, Path | None],
    lang: str,
    templates: Path | None,
    date: str | None,
    appendix: bool = False,
    raw: bool = False,
    output: Sequence[Path] | None = (),
    option: str = "--output",
    brief: Path | None = None,
) -> Documents:
    """Return the documents requested by the options.

    ``output``: files given with ``option``, whose extensions determine their kinds. Raise FleetmarkError before any
    work if a kind is unknown or a file could not be written.
    """
    named = {kind: path for kind, path in paths.items() if path is not None}
    for kind, path in named.items():
        _can_be_written(f"--{kind}", path)
    for path in output or ():
        kind = _kind_of(option, path)
        _can_be_written(option, path)
        if kind in named:
            raise FleetmarkError(f"{option} {path}: {named[kind]} is already the {path.suffix} file; give only one")
        named[kind] = path
    twice = [p for p in named.values() if [q.resolve() for q in named.values()].count(p.resolve()) > 1]
    if twice:
        raise FleetmarkError(f"{twice[0]}: two documents cannot be one file; give each its own name")
    if templates is not None and not templates.is_dir():
        raise FleetmarkError(f"--templates {templates}: there is no such folder; check the path")
    if brief is not None:
        _can_be_filled(brief)
    if raw and "xlsx" not in named:
        raise FleetmarkError("--raw without --xlsx: only a workbook contains raw values; add --xlsx FILE")
    return Documents(
        paths=named,
        language=language(lang),
        templates=templates,
        date=_date(date),
        appendix=appendix,
        raw=raw,
        brief=brief,
    )


def files(output: Sequence[Path] | None, lang: str = ENGLISH) -> Documents:
    """Return the documents that ``--output`` requests. Each file's extension determines its kind."""
    return documents_of({}, lang, None, None, output=output)


def _kind_of(option: str, path: Path) -> str:
    """Return the kind of document for a file extension. Raise FleetmarkError if the extension is unknown."""
    if path.suffix not in EXTENSIONS:
        raise FleetmarkError(f"{option} {path}: unknown document type; use the extension {', '.join(EXTENSIONS)}")
    return EXTENSIONS[path.suffix]


def _can_be_written(option: str, path: Path) -> None:
    if path.is_dir():
        raise FleetmarkError(f"{option} {path}: is a folder; add a file name")
    if path.exists() and not path.is_file():
        raise FleetmarkError(f"{option} {path}: is not a plain file; choose another name")
    if not path.parent.is_dir():
        raise FleetmarkError(f"{option} {path}: there is no folder {path.parent}; create it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise FleetmarkError(f"{option} {path}: cannot write there: {error.strerror}") from error


def _can_be_filled(folder: Path) -> None:
    """Raise FleetmarkError if ``folder`` is a file, or files cannot be written there."""
    if folder.is_file():
        raise FleetmarkError(f"--brief {folder}: is a file; choose a folder for the page, the slide and the drawings")
    _can_be_written("--brief", folder / "page.pdf" if folder.is_dir() else folder)


def _date(text: str | None) -> str | None:
    """Return the time to print from a date such as ``2026-11-21`` or a time in ISO 8601.

    Without ``text``, use SOURCE_DATE_EPOCH, the convention of reproducible-builds.org, or None if it is not set.
    """
    if text is None:
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        try:
            return None if epoch is None else utc(int(epoch))
        except (ValueError, OverflowError, OSError) as error:
            raise FleetmarkError(f"SOURCE_DATE_EPOCH={epoch}: use a whole number of seconds since 1970") from error
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise FleetmarkError(f"--date {text}: write it as 2026-11-21, or 2026-11-21T08:00Z") from error
    return utc((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def show(document: Document, form: str, console: Console, documents: Documents) -> None:
    """Write the document's files, then print it as ``form``: table, json, md or csv; nothing if it is empty."""
    write(document, documents, renderers(document, documents), console)
    if not form:
        return
    printed = replace(document, manifest={})
    print_as(printed, form, console, documents.language, renderers(printed, documents))


def print_as(
    document: Document, form: str, console: Console, spoken: Language, forms: Mapping[str, Callable[[], bytes]]
) -> None:
    """Print the document as ``form``: table, or one of the ``forms`` of ``renderers``."""
    if form == "json":
        from fleetmark.reports.formats import json

        for text in json.pieces(document):
            typer.echo(text, nl=False)
        return
    if form != "table":
        typer.echo(forms[form]().decode(), nl=False)
        return
    from fleetmark.reports.formats import terminal

    for part in terminal.render(document, spoken):
        console.print(part)


def renderers(document: Document, documents: Documents) -> dict[str, Callable[[], bytes]]:
    """Return a renderer of the document by kind; each loads its libraries when it is called."""
    spoken, templates = documents.language, documents.templates

    def html() -> bytes:
        from fleetmark.reports.formats import html

        return html.render(document, spoken, templates=templates).encode()

    def pdf() -> bytes:
        from fleetmark.reports.formats import pdf

        return pdf.render(document, spoken, templates=templates)

    def xlsx() -> bytes:
        from fleetmark.reports.formats import xlsx

        return xlsx.render(document, spoken)

    def markdown() -> bytes:
        from fleetmark.reports.formats import markdown

        return markdown.render(document, spoken).encode()

    def json() -> bytes:
        from fleetmark.reports.formats import json

        return json.render(document).encode()

    def csv() -> bytes:
        from fleetmark.reports.formats import csv

        return csv.render(document).encode()

    return {"html": html, "pdf": pdf, "xlsx": xlsx, "md": markdown, "json": json, "csv": csv}


def write(
    document: Document, documents: Documents, renderers: Mapping[str, Callable[[], bytes]], console: Console
) -> None:
    """Render every document, then write the files and print their names."""
    contents, spoken = {}, documents.language
    for kind, path in documents.paths.items():
        with console.status(spoken(message("making {file}", file=path))):
            contents[path] = renderers[kind]()
    if documents.brief is not None:
        with console.status(spoken(message("making {file}", file=documents.brief))):
            contents |= {documents.brief / name: data for name, data in _brief(document, documents).items()}
        documents.brief.mkdir(exist_ok=True)
    for path, data in contents.items():
        write_atomic(path, data)
    # If the reader closes the pipe early (head), the files are already written.
    for path, data in contents.items():
        line = spoken(message("wrote {file} ({size} MB)", file=path, size=f"{len(data) / 1e6:.1f}"))
        console.print(Text(line), soft_wrap=True)


def _brief(document: Document, documents: Documents) -> dict[str, bytes]:
    """Return the files of the document's summary by name."""
    from fleetmark.reports.formats import brief

    spoken, templates = documents.language, documents.templates
    pages = {
        "page.pdf": brief.render(document, "page", spoken, templates=templates),
        "slide.pdf": brief.render(document, "slide", spoken, templates=templates),
    }
    return pages | {name: svg.encode() for name, svg in brief.drawings(document, spoken).items()}
