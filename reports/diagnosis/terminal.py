"""A diagnosis for a terminal: the suspects, worst first, what was not judged, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import Message, count
from fleetmark.record.diagnosis import Diagnosis
from planner.diagnosis.finding import Finding
from reports.diagnosis.sentences import between, certainty, headline, sentence, whose
from reports.diagnosis.steps import steps
from reports.kit import format as fmt
from reports.kit.language import Language

MOST_HOSTS, MOST_EACH, MOST_NOTES = 20, 4, 12


def show(diagnosis: Diagnosis, _: Language, *, short: bool = False) -> list[RenderableType]:
    """What to print, in order. ``short``: for the end of a run, without what was not judged."""
    suspects = diagnosis.suspects()
    style = "bold red" if not diagnosis.healthy else "bold green" if diagnosis.judged else "bold"
    parts: list[RenderableType] = [Text(_(headline(diagnosis)), style=style)]
    most = 6 if short else MOST_HOSTS
    for host, findings in list(suspects.items())[:most]:
        parts += _host(host, findings, _, 1 if short else MOST_EACH)
    if len(suspects) > most:
        parts.append(Text(f"  {_(count(len(suspects) - most, 'further host'))}"))
    for link in diagnosis.links()[:most]:
        parts += _host(between(link), [link], _, 1)
    for finding in [*diagnosis.everywhere(), *diagnosis.groups()][: 2 if short else MOST_NOTES]:
        parts.append(_part(_(sentence(finding)), 0))
        parts.append(_part(_(certainty(finding)), 2, "dim"))
    if not short:
        parts += _cleared(diagnosis.cleared(), _)
        parts += _notes(diagnosis.notes, _)
        parts += _next(diagnosis, _)
    return parts


def _next(diagnosis: Diagnosis, _: Language) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(), Text(_("What to do next"), style="bold")]
    for step in steps(diagnosis):
        lines.append(_part(_(step.what), 2))
        lines += [unwrapped(f"    {step.command}", "cyan")] if step.command else []
    return lines


def _host(host: str, findings: Sequence[Finding], _: Language, most: int) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(f"  {fmt.clean(host)}", style="bold")]
    for finding in findings[:most]:
        lines.append(_part(_(sentence(finding)), 4))
        lines.append(_part(_(certainty(finding)), 6, "dim"))
        lines += [unwrapped(f"      {fmt.clean(path)}", "dim") for path in finding.evidence[:1]]
    if len(findings) > most:
        lines.append(_part(_(count(len(findings) - most, "further benchmark")), 4, "dim"))
    return lines


def _cleared(findings: Sequence[Finding], _: Language) -> list[RenderableType]:
    if not findings:
        return []
    lines: list[RenderableType] = [Text(), Text(_("Cleared by a repeat"), style="bold")]
    for finding in findings[:MOST_NOTES]:
        lines.append(_part(f"{whose(finding)}: {_(sentence(finding))}", 2))
        lines.append(_part(_(certainty(finding)), 4, "dim"))
    if len(findings) > MOST_NOTES:
        lines.append(_part(_(count(len(findings) - MOST_NOTES, "further finding")), 2))
    return lines


def _notes(notes: Sequence[Message], _: Language) -> list[RenderableType]:
    if not notes:
        return []
    lines: list[RenderableType] = [Text(), Text(_("Not judged"), style="bold")]
    lines += [_part(_(note), 2) for note in notes[:MOST_NOTES]]
    if len(notes) > MOST_NOTES:
        lines.append(_part(_(count(len(notes) - MOST_NOTES, "further note")), 2))
    return lines


def _part(text: str, indent: int, style: str = "") -> RenderableType:
    return Padding(Text(fmt.clean(text), style=style), (0, 0, 0, indent))
