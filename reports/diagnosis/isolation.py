"""Who makes a case between hosts slow: for a terminal, as Markdown, and for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from fleetmark import __version__
from fleetmark.base.terminal import unwrapped
from fleetmark.base.text import Message, count, message
from fleetmark.record.diagnosis.isolations import Isolated
from planner.diagnosis.partners import Fault, Reason, Suspicion
from reports.diagnosis.html import About, Page
from reports.diagnosis.sentences import share
from reports.kit import format as fmt
from reports.kit.language import Language
from reports.kit.marks import code, escaped
from reports.kit.page import Medium, Section, page

PAIR = 2


def sentence(fault: Fault) -> Message:
    """Who it is, by how much, and why nobody else."""
    of, missing = fmt.clean(" - ".join(fault.of)), share(fault.deficit)
    if fault.deficit >= 1:
        return _failure(fault.reason, of)
    match fault.reason:
        case Reason.INTRA_HOST:
            return message("{host} is {deficit} slower than others by itself.", host=of, deficit=missing)
        case Reason.ALL_PARTNERS:
            return message(
                "{host} is {deficit} slower with every known-good partner: the host or its port.",
                host=of,
                deficit=missing,
            )
        case Reason.ONE_PAIR:
            return message("{link} is {deficit} slower; both are fast with others: the link.", link=of, deficit=missing)
        case Reason.ALL_ACROSS:
            return message(
                "{border}: every pair across is slow, by {deficit}: what joins them.", border=of, deficit=missing
            )


def _failure(reason: Reason, of: str) -> Message:
    """The same of runs that failed."""
    match reason:
        case Reason.INTRA_HOST:
            return message("{host} fails by itself.", host=of)
        case Reason.ALL_PARTNERS:
            return message("{host} fails with every known-good partner: the host or its port.", host=of)
        case Reason.ONE_PAIR:
            return message("{link} fails; both work with others: the link.", link=of)
        case Reason.ALL_ACROSS:
            return message("{border}: every pair across fails: what joins them.", border=of)


def headline(isolated: Isolated) -> Message:
    """The answer in one sentence."""
    asked = isolated.question
    case = f"{asked.workload} {asked.case}"
    if isolated.suspicion.blind:
        return message("Every run of {case} failed: nobody can be named.", case=fmt.clean(case))
    if isolated.suspicion.unclear:
        return message(
            "Who makes {case} slow cannot be told: so much do runs of the same hosts vary that only "
            "a loss beyond {share} would show.",
            case=fmt.clean(case),
            share=share(isolated.suspicion.visible),
        )
    if not isolated.suspicion.faults:
        return message("No host, link or border makes {case} slow.", case=fmt.clean(case))
    named = [fmt.clean(" - ".join(f.of)) for f in isolated.suspicion.faults]
    failing = [fault.deficit >= 1 for fault in isolated.suspicion.faults]
    if all(failing):
        return message("{case} fails because of {names}.", case=fmt.clean(case), names=", ".join(named))
    if any(failing):
        return message("{case} is slow and fails because of {names}.", case=fmt.clean(case), names=", ".join(named))
    return message("{case} is made slow by {names}.", case=fmt.clean(case), names=", ".join(named))


def cost(isolated: Isolated) -> Message:
    """How many runs it took, beside other ways."""
    s = isolated.suspicion
    if s.alone:
        return message(
            "{runs} of groups and {hosts} by themselves; all pairs are {all}, plain bisection would take {bisection}.",
            runs=count(s.runs, "run"),
            hosts=count(s.alone, "host"),
            all=f"{s.all_pairs:,}",
            bisection=f"{s.bisection:,}",
        )
    return message(
        "{runs} beyond those of the campaign; all pairs are {all}, plain bisection would take {bisection}.",
        runs=count(s.runs, "run"),
        all=f"{s.all_pairs:,}",
        bisection=f"{s.bisection:,}",
    )


def open_questions(isolated: Isolated) -> list[Message]:
    s = isolated.suspicion
    notes = [_unexplained(fmt.clean(" - ".join(sorted(hosts))), len(hosts)) for hosts in s.open]
    if s.alone_vary:
        notes.append(
            message(
                "By themselves sound hosts vary {times}-fold: what a host reaches alone names nobody here.",
                times=f"{s.alone_vary:.1f}",
            )
        )
    return notes


def _unexplained(hosts: str, number: int) -> Message:
    if number > PAIR:
        return message("{hosts} are slow together, and nobody among them could be named.", hosts=hosts)
    return message("{pair} was slow in the campaign and fast when it ran again: neither is blamed.", pair=hosts)


def table(isolated: Isolated, _: Language) -> list[RenderableType]:
    """What to print, in order."""
    faults = isolated.suspicion.faults
    parts: list[RenderableType] = [Text(_(headline(isolated)), style=_style(isolated.suspicion))]
    parts += [Padding(Text(_(sentence(f))), (0, 0, 0, 2)) for f in faults]
    parts += [Padding(Text(_(note)), (0, 0, 0, 2)) for note in open_questions(isolated)]
    parts.append(Text(_(cost(isolated)), style="dim"))
    parts += [unwrapped(f"  {fmt.clean(name)}", "dim") for name in isolated.campaigns]
    return parts


def _style(suspicion: Suspicion) -> str:
    if suspicion.faults or suspicion.blind:
        return "bold red"
    return "bold yellow" if suspicion.unclear else "bold green"


def markdown(isolated: Isolated, _: Language) -> str:
    """The same for a ticket."""
    lines = [f"**{escaped(_(headline(isolated)))}**", ""]
    lines += [
        f"- {escaped(_(text))}" for text in (*map(sentence, isolated.suspicion.faults), *open_questions(isolated))
    ]
    lines += ["", escaped(_(cost(isolated))), *(code(name) for name in isolated.campaigns)]
    return "\n".join(lines) + "\n"


def render(
    isolated: Isolated, folder: Path, about: About, *, templates: Path | None = None, medium: Medium = "screen"
) -> str:
    """The page; ``folder``: the campaign's. ``templates``, ``medium`` and errors as for ``reports.html.render``."""
    this = Page(isolated.campaign, about.created, __version__, about.language)
    s = isolated.suspicion
    context: dict[str, Any] = {
        "title": headline(isolated),
        "report": this,
        "campaign": this,
        "scales": False,
        "sections": [Section("answer", message("The answer")), Section("provenance", message("Provenance"))],
        "asked": isolated.question,
        "hosts": s.hosts,
        "faults": [
            (fault, fmt.clean(" - ".join(fault.of)), share(fault.deficit), sentence(fault), isolated.evidence(fault))
            for fault in s.faults
        ],
        "open": open_questions(isolated),
        "cost": cost(isolated),
        "ways": ways(isolated),
        "campaigns": isolated.campaigns,
        "folder": folder.resolve(),
        "command_line": about.command,
    }
    return page("isolation.html.j2", context, about.language, templates=templates, medium=medium)


def ways(isolated: Isolated) -> list[tuple[Message, int]]:
    """How many runs each way of looking takes."""
    s = isolated.suspicion
    return [
        (message("this search"), s.runs + s.alone),
        (message("plain bisection"), s.bisection),
        (message("all pairs"), s.all_pairs),
    ]


def as_json(isolated: Isolated) -> str:
    """The same for programs: ``reason`` is one of ``planner.diagnosis.partners.Reason``."""
    s = isolated.suspicion
    document = {
        "campaign": isolated.campaign,
        "question": asdict(isolated.question),
        "faults": [
            {
                "kind": f.kind,
                "of": list(f.of),
                "reason": f.reason.value,
                "deficit": f.deficit,
                "evidence": isolated.evidence(f),
            }
            for f in s.faults
        ],
        "open": [sorted(p) for p in s.open],
        "hosts": s.hosts,
        "every_run_failed": s.blind,
        "cannot_be_told": s.unclear,
        "share_that_shows": s.visible,
        "runs": {"more": s.runs, "alone": s.alone, "all_pairs": s.all_pairs, "bisection": s.bisection},
        "campaigns": list(isolated.campaigns),
    }
    return json.dumps(document, indent=1)
