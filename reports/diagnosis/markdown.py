"""A diagnosis as Markdown, for a ticket."""

from __future__ import annotations

from fleetmark.record.diagnosis import Diagnosis
from planner.diagnosis.finding import Finding
from reports.diagnosis.sentences import between, certainty, headline, sentence, whose
from reports.diagnosis.steps import steps
from reports.kit.language import Language
from reports.kit.marks import code, escaped


def render(diagnosis: Diagnosis, _: Language) -> str:
    """The diagnosis in that language."""
    lines = [f"**{escaped(_(headline(diagnosis)))}**", ""]
    lines += [f"{n}. {escaped(_(s.what))}{_typed(s.command)}" for n, s in enumerate(steps(diagnosis), 1)]
    lines.append("")
    for host, findings in diagnosis.suspects().items():
        lines += [f"### {escaped(host)}", ""]
        lines += [_item(f, _) for f in findings]
        lines.append("")
    for link in diagnosis.links():
        lines += [f"### {escaped(between(link))}", "", _item(link, _), ""]
    if common := diagnosis.everywhere():
        lines += [f"### {_('Slower everywhere')}", "", *(_item(f, _) for f in common), ""]
    if groups := diagnosis.groups():
        lines += [f"### {_('Two groups of hosts')}", "", *(_item(f, _) for f in groups), ""]
    if cleared := diagnosis.cleared():
        items = [f"- {escaped(whose(f))}: {_item(f, _).removeprefix('- ')}" for f in cleared]
        lines += [f"### {_('Cleared by a repeat')}", "", *items, ""]
    if diagnosis.notes:
        lines += [f"### {_('Not judged')}", "", *(f"- {escaped(_(note))}" for note in diagnosis.notes), ""]
    return "\n".join(lines).strip() + "\n"


def _typed(command: str) -> str:
    return f" {code(command)}" if command else ""


def _item(finding: Finding, _: Language) -> str:
    text = f"- {escaped(_(sentence(finding)))} {escaped(_(certainty(finding)))}"
    return " ".join([text, *map(code, finding.evidence)])
