"""Implement ``fleetmark diagnose``: find hosts and links that are slower than their peers, and report them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.kinds import CLASSES
from fleetmark.base.runtime import pasted
from fleetmark.base.terminal import unwrapped
from fleetmark.base.units import parse_quantity
from fleetmark.record.archive import Archive, utc
from fleetmark.record.commands import command
from fleetmark.record.diagnosis import Diagnosis, diagnose
from fleetmark.record.diagnosis.baselines import Baseline
from fleetmark.record.diagnosis.gate import Acceptance, Rules, hold
from fleetmark.record.diagnosis.reruns import settled
from fleetmark.record.diagnosis.roofs import roofs_of
from fleetmark.reports.diagnosis import document as report
from fleetmark.reports.diagnosis import openmetrics
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.openmetrics import render
from fleetmark.verbs import documents
from fleetmark.verbs.confirm import Where, confirm
from fleetmark.verbs.documents import Documents
from fleetmark.verbs.gate import text_of
from fleetmark.verbs.manifest import LEAST_LOSS, MOST_LOSS, Diagnosing, stamped

if TYPE_CHECKING:
    from fleetmark.reports.kit.document import Document


@dataclass(kw_only=True, frozen=True, slots=True)
class DiagnosisQuestion:
    """The options of a diagnosis.

    ``everything``: include metrics that are not headlines. ``against``: also compare with this baseline. ``confirm``:
    how to reach the hosts that repeat suspect cases, or None for no repeats. ``least``: the smallest relevant loss by
    class of metrics ("": every class). ``rules``: acceptance rules for the hosts, from ``file``.
    """

    archive: Archive
    everything: bool
    against: Baseline | None
    confirm: Where | None = None
    least: Mapping[str, float] | None = None
    rules: Rules | None = None
    file: str = ""

    @property
    def reference(self) -> str | None:
        """Return the name and version of the reference."""
        return f"{self.against.name}@{self.against.version}" if self.against else None

    def command(self) -> str:
        """Return the command line that repeats the diagnosis."""
        words = [
            *(("--everything",) if self.everything else ()),
            *(("--reference", self.reference) if self.reference else ()),
            *(word for name, share in (self.least or {}).items() for word in ("--least", _least_text(name, share))),
            *(("--rules", self.file) if self.rules else ()),
        ]
        return fmt.typed(command(self.archive.path.parent, "diagnose", self.archive.id, *words))


def least_losses(texts: Sequence[str]) -> dict[str, float]:
    """Parse the smallest relevant losses by class of metrics, from ``3%`` (every class) or ``mem-bw=2%``.

    Raise FleetmarkError for an unknown class, and for a share that is not between 0.5% and 90%.
    """
    result = {}
    for text in texts:
        name, _, amount = text.rpartition("=")
        if name and name not in CLASSES:
            raise FleetmarkError(f"--least {text}: no class {name!r}{suggest(name, list(CLASSES))}")
        value, unit = parse_quantity(amount)
        if unit != "1" or not LEAST_LOSS <= value <= MOST_LOSS:
            raise FleetmarkError(f"--least {text}: write a share between 0.5% and 90%, such as 3% or mem-bw=2%")
        result[name] = value
    return result


def campaign(question: DiagnosisQuestion, form: str, console: Console, files: Documents) -> bool:
    """Diagnose a campaign, print the result as ``form``, and write the requested ``files``.

    With ``confirm``, repeat suspect cases first. Earlier confirmations also count. Return whether hosts were evaluated,
    by peers or by rules, without findings.
    """
    diagnosis = _diagnosed(question)
    if question.confirm is not None and confirm(question.archive, diagnosis, question.confirm, console):
        raise KeyboardInterrupt
    diagnosis = settled(question.archive, diagnosis)
    accepted = acceptance(question)
    if form == "openmetrics":
        families = openmetrics.diagnosis(diagnosis) + (openmetrics.gate(accepted) if accepted else [])
        typer.echo(render(families), nl=False)
        form = ""
    shown = diagnosis_document(question, diagnosis, files, accepted, has_roofs=bool(files.paths) or form == "csv")
    if files.paths:
        shown = _stamped(shown, question, files)
    documents.show(shown, form, console, files)
    is_judged = diagnosis.judged > 0 or accepted is not None
    return is_judged and diagnosis.healthy and (accepted is None or accepted.accepted)


def acceptance(question: DiagnosisQuestion) -> Acceptance | None:
    """Return the campaign checked against the question's rules, or None if it has none."""
    return hold(question.archive, question.rules, question.file) if question.rules else None


def diagnosed(question: DiagnosisQuestion) -> Diagnosis:
    """Return the diagnosis with the verdicts of earlier confirmations. Start no runs."""
    return settled(question.archive, _diagnosed(question))


def diagnosis_document(
    question: DiagnosisQuestion, diagnosis: Diagnosis, files: Documents, accepted: Acceptance | None, *, has_roofs: bool
) -> Document:
    """Return the diagnosis as a document. With ``has_roofs``, add measured bandwidths against hardware peaks."""
    roofs = roofs_of(question.archive) if has_roofs else None
    facts = question.archive.facts() if diagnosis.findings else {}
    created = files.date or utc()
    return report.document(diagnosis, roofs, created, question.command(), files.language, facts, accepted)


def _diagnosed(question: DiagnosisQuestion) -> Diagnosis:
    return diagnose(question.archive, everything=question.everything, against=question.against, least=question.least)


def _stamped(document: Document, question: DiagnosisQuestion, files: Documents) -> Document:
    """Return a diagnosis with its manifest."""
    archive = question.archive
    rules = text_of(question.rules) if question.rules else None
    if question.rules and rules is None:
        return document
    options = Diagnosing.model_construct(
        verb="diagnose",
        campaign=archive.id,
        everything=question.everything,
        reference=question.reference,
        least=dict(question.least or {}),
        rules=rules,
        file=question.file,
    )
    return stamped(document, options, archive.path.parent, [archive.id], files, files.paths)


def _least_text(name: str, share: float) -> str:
    return f"{name}={100 * share:g}%" if name else f"{100 * share:g}%"


def brief(archive: Archive, console: Console) -> None:
    """Print the suspects of a campaign that just ended in a few lines, or nothing if no host could be evaluated."""
    try:
        diagnosis = diagnose(archive)
    except FleetmarkError:  # the campaign's own summary reports missing results
        return
    if not diagnosis.judged and not diagnosis.findings:
        return
    console.print()
    documents.show(report.brief(diagnosis), "table", console, Documents())
    if diagnosis.findings:
        console.print(unwrapped(pasted(fmt.typed(command(archive.path.parent, "diagnose", archive.id))), "cyan"))
