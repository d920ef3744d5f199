"""``fleetmark diagnose``: which hosts and links are not what their peers are, shown and as documents."""

from __future__ import annotations

import json
from dataclasses import dataclass

import typer
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import unwrapped
from fleetmark.record.archive import Archive, utc
from fleetmark.record.commands import command
from fleetmark.record.diagnosis import Diagnosis, as_json, diagnose
from fleetmark.record.diagnosis.baselines import Baseline
from fleetmark.record.diagnosis.reruns import settled
from fleetmark.record.diagnosis.roofs import roofs_of
from fleetmark.verbs.confirm import Where, confirm
from fleetmark.verbs.documents import Documents, page_and_pdf, write
from reports.diagnosis import markdown, steps, terminal
from reports.diagnosis.html import About, render
from reports.kit import format as fmt
from reports.kit.page import Medium


@dataclass(frozen=True, slots=True)
class Question:
    """What to diagnose: a campaign's headlines or ``everything``, also ``against`` a baseline; by which ``command``.
    ``confirm``: measure again what is suspect, on hosts that are reached so.
    """

    archive: Archive
    everything: bool
    against: Baseline | None
    command: str
    confirm: Where | None = None


def campaign(question: Question, form: str, console: Console, documents: Documents) -> bool:
    """Diagnose a campaign, show it as ``form`` (table, json or md) and write its documents. Whether hosts were judged
    and nothing is wrong.

    With ``confirm`` what is suspect is measured again first. What earlier repeats said counts too.
    """
    diagnosis = diagnose(question.archive, everything=question.everything, against=question.against)
    if question.confirm is not None and confirm(question.archive, diagnosis, question.confirm, console):
        raise KeyboardInterrupt
    diagnosis = settled(question.archive, diagnosis)
    _write(question, diagnosis, documents, console)
    if form == "json":
        typer.echo(json.dumps(as_json(diagnosis) | {"next": steps.as_json(diagnosis)}, indent=1))
    elif form == "md":
        typer.echo(markdown.render(diagnosis, documents.language), nl=False)
    else:
        for part in terminal.show(diagnosis, documents.language):
            console.print(part)
    return diagnosis.healthy and diagnosis.judged > 0


def _write(question: Question, diagnosis: Diagnosis, documents: Documents, console: Console) -> None:
    about = About(documents.date or utc(), question.command, documents.language)
    roofs = roofs_of(question.archive) if documents.paths else []

    def html(medium: Medium) -> str:
        return render(diagnosis, about, roofs=roofs, templates=documents.templates, medium=medium)

    def workbook() -> bytes:
        from reports.diagnosis import xlsx

        return xlsx.render(diagnosis, roofs, about)

    write(documents, {**page_and_pdf(html), "xlsx": workbook}, console)


def brief(archive: Archive, console: Console) -> None:
    """The suspects of a campaign that just ended, in a few lines; nothing where nobody could be judged."""
    try:
        diagnosis = diagnose(archive)
    except FleetmarkError:  # the campaign's own summary says what is missing
        return
    if not diagnosis.judged and not diagnosis.findings:
        return
    console.print()
    for part in terminal.show(diagnosis, Documents().language, short=True):
        console.print(part)
    if diagnosis.findings:
        console.print(unwrapped(fmt.typed(command(archive.path.parent, "diagnose", archive.id)), "cyan"))
