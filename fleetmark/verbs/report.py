"""``fleetmark report`` and the documents of ``fleetmark compare``: made in memory, all of them, then written whole."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.files import write_atomic
from fleetmark.base.terminal import Terminal
from fleetmark.record.archive import Archive, utc
from fleetmark.record.results import Results
from fleetmark.record.view import load_results
from reports import report
from reports.kit.language import Language, language
from reports.report import Report

if TYPE_CHECKING:
    from fleetmark.record.compare import Answer, Question


@dataclass(frozen=True, slots=True)
class Documents:
    """What is to be written: kind (html, pdf, xlsx) to its path. ``templates``: the user's folder. ``date``: the one to
    print, ISO 8601; None where none was fixed."""

    paths: Mapping[str, Path] = field(default_factory=dict)
    language: Language = field(default_factory=Language)
    templates: Path | None = None
    date: str | None = None


def asked(paths: Mapping[str, Path | None], lang: str, templates: Path | None, date: str | None) -> Documents:
    """What the options ask for. Raises FleetmarkError, before any work, for what could not be written or is unknown."""
    wanted = {kind: path for kind, path in paths.items() if path is not None}
    for kind, path in wanted.items():
        _can_be_written(kind, path)
    twice = [p for p in wanted.values() if [q.resolve() for q in wanted.values()].count(p.resolve()) > 1]
    if twice:
        raise FleetmarkError(f"{twice[0]}: two documents cannot be one file; give each a name of its own")
    if templates is not None and not templates.is_dir():
        raise FleetmarkError(f"--templates {templates}: there is no such folder")
    return Documents(wanted, language(lang), templates, _date(date))


def _can_be_written(kind: str, path: Path) -> None:
    if path.is_dir():
        raise FleetmarkError(f"--{kind} {path}: is a folder; give the file a name")
    if path.exists() and not path.is_file():
        raise FleetmarkError(f"--{kind} {path}: is no plain file; give another name")
    if not path.parent.is_dir():
        raise FleetmarkError(f"--{kind} {path}: there is no folder {path.parent}; make it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise FleetmarkError(f"--{kind} {path}: cannot write there: {error.strerror}") from error


def _date(text: str | None) -> str | None:
    """``2026-11-21``, or ISO 8601, as the moment to print; without, that of SOURCE_DATE_EPOCH, as builds that shall be
    the same byte for byte set it (reproducible-builds.org)."""
    if text is None:
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        try:
            return None if epoch is None else utc(int(epoch))
        except (ValueError, OverflowError, OSError) as error:
            raise FleetmarkError(f"SOURCE_DATE_EPOCH={epoch}: it is seconds since 1970, a whole number") from error
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise FleetmarkError(f"--date {text}: write it as 2026-11-21, or 2026-11-21T08:00Z") from error
    return utc((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _ahead(documents: Documents) -> None:
    """Start the chart engine, which takes half a second, beside the reading of figures."""
    if documents.paths.keys() & {"html", "pdf"}:
        from reports.kit import charts

        threading.Thread(target=charts.warm, daemon=True).start()


def write(of: Report, documents: Documents, console: Console) -> None:
    """Make every document, then write them, and say so."""
    made = {}
    for kind, path in documents.paths.items():
        with console.status(f"making {path}"):
            made[path] = _RENDER[kind](of, documents.templates)
    for path, data in made.items():
        write_atomic(path, data)
        console.print(Text(f"wrote {path} ({len(data) / 1e6:.1f} MB)"), soft_wrap=True)


def _html(of: Report, templates: Path | None) -> bytes:
    from reports import html

    return html.render(of, templates=templates).encode()


def _pdf(of: Report, templates: Path | None) -> bytes:
    from reports import pdf

    return pdf.render(of, templates=templates)


def _xlsx(of: Report, _templates: Path | None) -> bytes:
    from reports import xlsx

    return xlsx.render(of)


_RENDER: Mapping[str, Callable[[Report, Path | None], bytes]] = {"html": _html, "pdf": _pdf, "xlsx": _xlsx}


# --- a campaign ------------------------------------------------------------------------------------------------------


def campaign(archive: Archive, form: str, console: Console, documents: Documents | None = None) -> Results:
    """Show a campaign as ``form`` (table, json or md) says, and write its documents: the page beside its files where no
    other is asked for."""
    from reports import html, markdown
    from reports.campaign import terminal

    wanted = documents or Documents()
    _ahead(wanted)
    results = load_results(archive)
    of = report.of_campaign(results, wanted.language, wanted.date)
    page = wanted.paths.get("html")
    if wanted.paths:
        write(of, wanted, console)
    else:
        page = archive.write_page(html.render(of, templates=wanted.templates))
    if form == "json":
        typer.echo(json.dumps(_as_json(results, page), indent=1))
    elif form == "md":
        typer.echo(markdown.render(of), nl=False)
    else:
        for part in terminal.summary(of, page and page.resolve()):
            console.print(part)
    return results


def _as_json(results: Results, page: Path | None) -> dict[str, Any]:
    from reports.campaign.view import footnotes

    return {
        "campaign": results.campaign.id,
        "path": str(results.campaign.path),
        "page": page and str(page.resolve()),
        "finished": results.campaign.finished,
        "notes": list(results.campaign.notes),
        "footnotes": footnotes(results.measurements),
        "outcomes": _records(results.outcomes),
        "measurements": _records(results.measurements),
    }


def _records(frame: Any) -> list[dict[str, Any]]:
    """Rows with every digit; a value that is missing is null."""
    rows: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


# --- a comparison ----------------------------------------------------------------------------------------------------


def comparison(question: Question, form: str, console: Console, documents: Documents) -> None:
    """Show a comparison as ``form`` (table, json, csv or md) says, and write its documents."""
    from fleetmark.record.compare import compare  # with scipy, which a campaign's report has no use for
    from reports import markdown
    from reports.comparison import model as flat
    from reports.comparison import terminal as comparison_terminal

    _ahead(documents)
    answer = compare(question, turn="html" in documents.paths, values="xlsx" in documents.paths)
    document = _report(question, answer, documents) if documents.paths or form == "md" else None
    if document is not None:
        write(document, documents, console)
    shown = answer.comparison
    if form == "md" and document is not None:
        typer.echo(markdown.render(document), nl=False)
    elif form == "table":
        for part in comparison_terminal.show(shown):
            Terminal().print(part)
    elif form == "json":
        typer.echo(flat.to_json(shown, answer.selectors))
    else:
        typer.echo(flat.to_csv(shown), nl=False)
    if form == "csv":  # which has no place for them
        for sentence in [*(f"warning: {w}" for w in shown.warnings), *shown.notes, *flat.footnotes(shown)]:
            typer.echo(f"fleetmark: {sentence}", err=True)


def _report(question: Question, answer: Answer, documents: Documents) -> Report:
    from fleetmark.record import evidence

    together, parts = evidence.gather(question.root, answer, question.command(), documents.date or utc())
    if question.reference is not None:
        parts = (*parts, evidence.pinned(question.root, question.reference))
    return report.of_comparison(answer, together, parts, documents.language)
