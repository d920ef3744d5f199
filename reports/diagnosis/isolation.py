"""Present the hosts or links that slow a multi-host case as a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fleetmark.base.text import Message, count, folded, joined, message
from fleetmark.base.words import word
from fleetmark.planner.diagnosis.isolation.partners import Fault, Reason
from fleetmark.record.diagnosis.isolations import Isolated
from fleetmark.reports.diagnosis.sentences import share
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import PAGES, Document, Finding, Note, Section, provenance
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, number

PAIR = 2


def _who(fault: Fault) -> str:
    if fault.reason is Reason.UNLABELLED:
        return fmt.clean(", ".join(name for name, _ in folded(fault.members)))
    names = [fmt.clean(name) for name in fault.members]
    ends = message("{host} to {other}", host=names[0], other=names[1]) if len(names) == PAIR else joined(names)
    return joined([fmt.clean(fault.label), ends], " ")


def sentence(fault: Fault) -> Message:
    """Return the host or link at fault, its slowdown and the reason, as a sentence."""
    if fault.deficit >= 1:
        return _failure(fault.reason, _who(fault))
    return _slowness(fault.reason, _who(fault), share(fault.deficit))


def _slowness(reason: Reason, members: str, missing: str) -> Message:
    match reason:
        case Reason.INTRA_HOST:
            return message("{host} is {deficit} slower than others when it runs alone.", host=members, deficit=missing)
        case Reason.ALL_PARTNERS:
            return message(
                "{host} is {deficit} slower with every known-good partner, so the host or its port is at fault.",
                host=members,
                deficit=missing,
            )
        case Reason.ONE_PAIR:
            return message(
                "{link} is {deficit} slower; both are fast with others, so the link is at fault.",
                link=members,
                deficit=missing,
            )
        case Reason.UPLINK:
            return message(
                "{place}: every pair over its uplink is {deficit} slower, so the uplink is at fault.",
                place=members,
                deficit=missing,
            )
        case Reason.ALL_ACROSS:
            return message(
                "{border}: every pair across it is {deficit} slower, so the connection is at fault.",
                border=members,
                deficit=missing,
            )
        case Reason.UNLABELLED:
            return message(
                "{hosts} are {deficit} slower with all other hosts but not with each other: they share a component "
                "without a label, such as a switch or an uplink.",
                hosts=members,
                deficit=missing,
            )


def _failure(reason: Reason, members: str) -> Message:
    """Return the sentence for runs that failed instead of being slow."""
    match reason:
        case Reason.INTRA_HOST:
            return message("{host} fails when it runs alone.", host=members)
        case Reason.ALL_PARTNERS:
            return message(
                "{host} fails with every known-good partner, so the host or its port is at fault.", host=members
            )
        case Reason.ONE_PAIR:
            return message("{link} fails; both work with others, so the link is at fault.", link=members)
        case Reason.UPLINK:
            return message("{place}: every pair over its uplink fails, so the uplink is at fault.", place=members)
        case Reason.ALL_ACROSS:
            return message("{border}: every pair across it fails, so the connection is at fault.", border=members)
        case Reason.UNLABELLED:
            return message(
                "{hosts} fail with all other hosts but not with each other: they share a component without a label, "
                "such as a switch or an uplink.",
                hosts=members,
            )


def headline(isolated: Isolated) -> Message:
    """Return the answer in one sentence."""
    question = isolated.question
    case = f"{question.workload} {question.case}"
    if isolated.suspicion.blind:
        return message("Every run of {case} failed, so no host or link can be named.", case=fmt.clean(case))
    if isolated.suspicion.unclear:
        return message(
            "The cause of slow runs of {case} cannot be determined: runs of the same hosts vary so much that only "
            "a loss beyond {share} would show.",
            case=fmt.clean(case),
            share=share(isolated.suspicion.visible),
        )
    if not isolated.suspicion.faults:
        return message("No host, link or border makes {case} slow.", case=fmt.clean(case))
    named = [
        message("something that {hosts} share", hosts=_who(f)) if f.reason is Reason.UNLABELLED else _who(f)
        for f in isolated.suspicion.faults
    ]
    failing = [fault.deficit >= 1 for fault in isolated.suspicion.faults]
    if all(failing):
        return message("{case} fails because of {names}.", case=fmt.clean(case), names=joined(named))
    if any(failing):
        return message("{case} is slow and fails because of {names}.", case=fmt.clean(case), names=joined(named))
    return message("{case} is slowed down by {names}.", case=fmt.clean(case), names=joined(named))


def cost(isolated: Isolated) -> Message:
    """Return the number of runs of the search, compared with other strategies."""
    s = isolated.suspicion
    if s.alone:
        return message(
            "{runs} of groups and {hosts} alone. Testing all pairs takes {all} runs, and plain bisection {bisection}.",
            runs=count(s.runs, "run"),
            hosts=count(s.alone, "host"),
            all=f"{s.all_pairs:,}",
            bisection=f"{s.bisection:,}",
        )
    return message(
        "{runs} in addition to those of the campaign. Testing all pairs takes {all} runs, and plain bisection "
        "{bisection}.",
        runs=count(s.runs, "run"),
        all=f"{s.all_pairs:,}",
        bisection=f"{s.bisection:,}",
    )


def open_questions(isolated: Isolated) -> list[Message]:
    s = isolated.suspicion
    notes = [_unexplained(sorted(hosts)) for hosts in s.open]
    if s.alike:
        notes.append(
            message(
                "All groups were equally fast. A fault that slows every group, such as an uplink that all of them use, "
                "does not show without labels of places."
            )
        )
    if s.alone_vary:
        notes.append(
            message(
                "Healthy hosts vary {times}-fold on their own, so single-host results name no host here.",
                times=f"{s.alone_vary:.1f}",
            )
        )
    return notes


def _unexplained(hosts: Sequence[str]) -> Message:
    names = [fmt.clean(host) for host in hosts]
    if len(names) > PAIR:
        return message("{hosts} are slow together, but no single one could be named.", hosts=joined(names))
    pair = message("{host} to {other}", host=names[0], other=names[1])
    return message("{pair} was slow in the campaign and fast when it ran again: neither is blamed.", pair=pair)


def document(isolated: Isolated, folder: Path, created: str, command: str) -> Document:
    """Return the hosts or links at fault, the number of runs, and their raw files in the campaign's ``folder``."""
    question, s = isolated.question, isolated.suspicion
    runs = tuple(Note(name, quiet=True) for name in isolated.campaigns)
    return Document(
        title=isolated.campaign,
        answer=headline(isolated),
        tone="bad" if s.faults or s.blind else "unsure" if s.unclear else "good",
        details=(f"{question.workload} {question.case}, {question.metric}", count(s.hosts, "host")),
        sections=(
            Section("found", "", tuple(_said(fault, isolated) for fault in s.faults), ("terminal", "markdown")),
            Section("faults", message("Faults"), (_faults(isolated),), (*PAGES, "csv")),
            Section("open", message("Open questions"), tuple(map(Note, open_questions(isolated)))),
            Section("cost", "", (Note(cost(isolated), quiet=True),)),
            Section("runs", message("Runs"), (_ways(isolated),), (*PAGES, "csv")),
            Section("campaigns", message("The runs and their raw files"), runs),
            provenance(command, Note(message("Raw files are named relative to {path}.", path=str(folder)))),
        ),
        folder=folder,
        created=created,
        data=as_json(isolated),
    )


def _said(fault: Fault, isolated: Isolated) -> Finding:
    return Finding("", sentence(fault), evidence=tuple(isolated.evidence(fault)))


def _faults(isolated: Isolated) -> Tabular | Note:
    columns = (
        Column("who", message("who"), "name"),
        Column("kind", message("kind")),
        Column("worse_by", message("worse by"), "number"),
        Column("why", message("why"), "note"),
        Column("reason", message("reason, for programs"), "code"),
        Column("evidence", message("raw files"), "file"),
    )
    rows = tuple(
        (
            Cell(_who(f)),
            Cell(word(f.kind)),
            Cell(share(f.deficit), f.deficit),
            Cell(sentence(f)),
            Cell(f.reason.value),
            Cell("; ".join(isolated.evidence(f))),
        )
        for f in isolated.suspicion.faults
    )
    return Tabular("faults", message("Faults"), columns, rows) if rows else Note(message("Nobody is named."))


def _ways(isolated: Isolated) -> Tabular:
    columns = (Column("way", message("way of looking"), "name"), Column("runs", message("runs"), "number"))
    rows = tuple((Cell(way), number(runs)) for way, runs in ways(isolated))
    return Tabular("ways", message("Runs"), columns, rows)


def ways(isolated: Isolated) -> list[tuple[Message, int]]:
    """Return the number of runs that each search strategy takes."""
    s = isolated.suspicion
    return [
        (message("this search"), s.runs + s.alone),
        (message("plain bisection"), s.bisection),
        (message("all pairs"), s.all_pairs),
    ]


def as_json(isolated: Isolated) -> dict[str, Any]:
    """Return the result for programs. ``reason`` is one of ``planner.diagnosis.isolation.partners.Reason``."""
    s = isolated.suspicion
    return {
        "campaign": isolated.campaign,
        "question": asdict(isolated.question),
        "faults": [
            {
                "kind": f.kind,
                "of": list(f.members),
                "label": f.label,
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
