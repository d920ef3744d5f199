"""``fleetmark diagnose``: which hosts and links are not what their peers are, shown and as documents."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.terminal import unwrapped
from fleetmark.record.archive import Archive, utc
from fleetmark.record.commands import command
from fleetmark.record.diagnosis import diagnose
from fleetmark.record.diagnosis.baselines import Baseline
from fleetmark.record.diagnosis.reruns import settled
from fleetmark.record.diagnosis.roofs import roofs_of
from fleetmark.verbs import documents
from fleetmark.verbs.confirm import Where, confirm
from fleetmark.verbs.documents import Documents
from reports.diagnosis import document as report
from reports.kit import format as fmt


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


def campaign(question: Question, form: str, console: Console, files: Documents) -> bool:
    """Diagnose a campaign, show it as ``form`` and write the files asked for. Whether hosts were judged and nothing is
    wrong.

    With ``confirm`` what is suspect is measured again first. What earlier repeats said counts too.
    """
    diagnosis = diagnose(question.archive, everything=question.everything, against=question.against)
    if question.confirm is not None and confirm(question.archive, diagnosis, question.confirm, console):
        raise KeyboardInterrupt
    diagnosis = settled(question.archive, diagnosis)
    roofs = roofs_of(question.archive) if files.paths or form == "csv" else None
    created = files.date or utc()
    documents.show(report.document(diagnosis, roofs, created, question.command, files.language), form, console, files)
    return diagnosis.healthy and diagnosis.judged > 0


def brief(archive: Archive, console: Console) -> None:
    """The suspects of a campaign that just ended, in a few lines; nothing where nobody could be judged."""
    try:
        diagnosis = diagnose(archive)
    except FleetmarkError:  # the campaign's own summary says what is missing
        return
    if not diagnosis.judged and not diagnosis.findings:
        return
    console.print()
    documents.show(report.brief(diagnosis), "table", console, Documents())
    if diagnosis.findings:
        console.print(unwrapped(fmt.typed(command(archive.path.parent, "diagnose", archive.id)), "cyan"))
