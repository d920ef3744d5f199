"""A diagnosis as one self-contained HTML page, in the style of the other reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetmark import __version__
from fleetmark.base.text import message
from fleetmark.record.diagnosis import Diagnosis
from planner.diagnosis.finding import Finding
from reports.campaign.embedded import Embedded
from reports.diagnosis import heat
from reports.diagnosis.sentences import amounts, benchmark, between, certainty, headline, sentence, share, whose
from reports.kit.language import Language
from reports.kit.page import Section, page


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


def render(diagnosis: Diagnosis, about: About, *, templates: Path | None = None) -> str:
    """The page; ``templates`` and errors as for ``reports.html.render``."""
    this = Page(diagnosis.campaign, about.created, __version__, about.language)
    groups = diagnosis.groups()
    suspects = [*diagnosis.suspects().items(), *((between(link), [link]) for link in diagnosis.links())]
    parts = [
        (True, "answer", message("The answer")),
        (bool(suspects), "suspects", message("Suspects")),
        (bool(diagnosis.everywhere()), "everywhere", message("Slower everywhere")),
        (bool(groups), "groups", message("Two groups of hosts")),
        (bool(diagnosis.cleared()), "cleared", message("Cleared by a repeat")),
        (bool(diagnosis.notes), "unjudged", message("Not judged")),
        (True, "cohorts", message("Who was compared with whom")),
        (True, "provenance", message("Provenance")),
    ]
    context: dict[str, Any] = {
        "title": headline(diagnosis),
        "report": this,
        "campaign": this,
        "faces": [],
        "scales": False,
        "embedded": Embedded("", {}, 0),
        "sections": [Section(id_, title) for shown, id_, title in parts if shown],
        "diagnosis": diagnosis,
        "suspects": [(host, [_line(f) for f in findings]) for host, findings in suspects],
        "heat": heat.table(diagnosis),
        "share": share,
        "everywhere": [_line(f) for f in diagnosis.everywhere()],
        "groups": [_line(f) for f in groups],
        "cleared": [(whose(f), _line(f)) for f in diagnosis.cleared()],
        "command_line": about.command,
    }
    return page("diagnosis.html.j2", context, about.language, templates=templates)


def _line(finding: Finding) -> dict[str, Any]:
    value, expected = amounts(finding)
    return {
        "finding": finding,
        "benchmark": benchmark(finding),
        "sentence": sentence(finding),
        "certainty": certainty(finding),
        "value": value,
        "expected": expected,
        "share": share(finding.deficit),
    }
