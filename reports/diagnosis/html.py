"""A diagnosis as one self-contained HTML page, in the style of the other reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetmark import __version__
from fleetmark.base.text import message
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.record.roofs import Roof
from planner.diagnosis.finding import Finding
from reports.diagnosis import heat
from reports.diagnosis.sentences import amounts, benchmark, between, certainty, headline, sentence, share, whose
from reports.diagnosis.steps import steps
from reports.hosts import roofs as under_roofs
from reports.kit.language import Language
from reports.kit.page import Medium, Section, page


@dataclass(frozen=True, slots=True)
class About:
    """What reproduces the page: time, command and language."""

    created: str
    command: str
    language: Language = field(default_factory=Language)


@dataclass(frozen=True, slots=True)
class Page:
    """The fields that ``base.html.j2`` needs of every report."""

    id: str
    created: str
    fleetmark_version: str
    language: Language


def render(
    diagnosis: Diagnosis,
    about: About,
    *,
    roofs: Sequence[Roof] = (),
    templates: Path | None = None,
    medium: Medium = "screen",
) -> str:
    """The page; ``templates``, ``medium`` and errors as for ``reports.html.render``. ``roofs``: what parts of the hosts
    reached."""
    this = Page(diagnosis.campaign, about.created, __version__, about.language)
    groups = diagnosis.groups()
    suspects = [*diagnosis.suspects().items(), *((between(link), [link]) for link in diagnosis.links())]
    lines = under_roofs.lines(roofs, kinds(diagnosis))
    parts = [
        (True, "answer", message("The answer")),
        (bool(suspects), "suspects", message("Suspects")),
        (bool(diagnosis.everywhere()), "everywhere", message("Slower everywhere")),
        (bool(groups), "groups", message("Two groups of hosts")),
        (bool(diagnosis.cleared()), "cleared", message("Cleared by a repeat")),
        (bool(diagnosis.notes), "unjudged", message("Not judged")),
        (bool(lines), "roofs", message("Hosts under their own roofs")),
        (True, "cohorts", message("Who was compared with whom")),
        (True, "provenance", message("Provenance")),
    ]

    def line(finding: Finding) -> dict[str, Any]:
        return _line(finding, diagnosis.path)

    context: dict[str, Any] = {
        "title": headline(diagnosis),
        "report": this,
        "campaign": this,
        "scales": False,
        "sections": [Section(id_, title) for shown, id_, title in parts if shown],
        "diagnosis": diagnosis,
        "steps": steps(diagnosis),
        "suspects": [(host, [line(f) for f in findings]) for host, findings in suspects],
        "heat": heat.table(diagnosis),
        "share": share,
        "everywhere": [line(f) for f in diagnosis.everywhere()],
        "groups": [line(f) for f in groups],
        "cleared": [(whose(f), line(f)) for f in diagnosis.cleared()],
        "roofs": under_roofs.part(lines, narrow=medium == "paper") if lines else None,
        "roof_pictures": under_roofs.pictures(lines, about.language),
        "command_line": about.command,
    }
    return page("diagnosis.html.j2", context, about.language, templates=templates, medium=medium)


def kinds(diagnosis: Diagnosis) -> dict[str, str]:
    """Host to its kind."""
    return {host: cohort.kind for cohort in diagnosis.cohorts for host in cohort.hosts}


def _line(finding: Finding, folder: Path) -> dict[str, Any]:
    value, expected = amounts(finding)
    return {
        "finding": finding,
        "benchmark": benchmark(finding),
        "sentence": sentence(finding),
        "certainty": certainty(finding),
        "value": value,
        "expected": expected,
        "share": share(finding.deficit),
        "evidence": [(path, _uri(folder, path)) for path in finding.evidence],
    }


def _uri(folder: Path, path: str) -> str:
    """Where a raw file of the campaign lies, for a link; empty for a path that leads out of it."""
    inside = not Path(path).is_absolute() and ".." not in Path(path).parts
    return (folder / path).as_uri() if inside else ""
