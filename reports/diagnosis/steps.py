"""Recommend the next steps after a diagnosis: a sentence each, with its command if there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, joined, message
from fleetmark.planner.diagnosis.confirm import Verdict
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.planner.diagnosis.isolation.partners import LEAST, SLOW
from fleetmark.record.commands import command_for
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.reports.diagnosis.sentences import MANY, between
from fleetmark.reports.hosts.likely import SlowHost, advice
from fleetmark.reports.kit import format as fmt


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``what`` to do, and the ``command`` that does it; empty if no command does."""

    action: Message
    command: str = ""


def steps(diagnosis: Diagnosis, slow: Sequence[SlowHost] = ()) -> list[Step]:
    """Return at least one step, in the order to take them. ``slow``: suspects with the facts that may explain them."""
    return list(_steps(diagnosis, slow)) or [
        Step(
            message("Nothing to do. Save it as a reference, to see later what became slower."),
            _command(diagnosis, "reference", "save", "NAME", "--from", diagnosis.campaign),
        )
    ]


def as_json(diagnosis: Diagnosis, slow: Sequence[SlowHost] = ()) -> list[dict[str, str | None]]:
    """Return the steps for programs."""
    return [{"what": step.action, "command": step.command or None} for step in steps(diagnosis, slow)]


def _steps(diagnosis: Diagnosis, slow_hosts: Sequence[SlowHost]) -> Iterator[Step]:
    slow = [f for f in diagnosis.findings if f.kind is not Kind.GROUPS and not f.members and not f.cleared]
    confirmed = [f for f in slow if f.settled is not None and f.settled.verdict is Verdict.CONFIRMED]
    if confirmed:
        yield Step(
            message(
                "Take {hosts} out of service and look for the cause: a repeat confirmed the finding.",
                hosts=_named(confirmed),
            )
        )
    open_ = [f for f in slow if f not in confirmed]
    explained = [host for host in slow_hosts if host.causes and any(f.host == host.host for f in open_)]
    is_one = len(explained) == 1 and {f.host for f in open_} == {explained[0].host}
    for host in explained:
        yield Step(advice(host), host.command if is_one else "")
    if open_ and not is_one:
        yield Step(
            message("Measure {hosts} again, next to healthy hosts.", hosts=_named(open_)),
            _command(diagnosis, "diagnose", diagnosis.campaign, "--confirm"),
        )
    yield from _isolations(diagnosis, slow)
    if slow:
        yield Step(
            message("See which settings of these hosts could be the cause."),
            _command(diagnosis, "tune", "--campaign", diagnosis.campaign),
        )
    for place in dict.fromkeys(f.place for f in diagnosis.groups()):
        yield Step(
            message(
                "Check what these hosts share ({place}), and configure them like the others. If the difference is "
                "intended, give the hosts different labels (gen).",
                place=fmt.clean(place),
            )
            if place
            else message(
                "Find out what differs between the groups of hosts, or compare them with a reference (--reference). If "
                "the difference is intended, give the hosts different labels (gen)."
            )
        )
    if diagnosis.everywhere():
        yield Step(message("Find out what changed on all hosts since the reference: firmware, kernel, settings."))
    if not diagnosis.judged and not diagnosis.findings:
        yield Step(
            message(
                "Too few hosts to compare with each other: check them against a specification, or compare them with a "
                "reference of healthy hosts (--reference)."
            ),
            _command(diagnosis, "gate", "acceptance", diagnosis.campaign),
        )


def _isolations(diagnosis: Diagnosis, slow: Sequence[Finding]) -> Iterator[Step]:
    """Yield a step for each multi-host case in which the slow host is unknown."""
    for border in diagnosis.borders():
        keys, (label, _, _) = border.benchmark, border.because[0]
        yield Step(
            message("Run {case} a few times more to confirm the border.", case=fmt.clean(keys["case"])),
            _command(
                diagnosis,
                "diagnose",
                diagnosis.campaign,
                "--isolate",
                f"{keys['workload']}/{keys['case']}",
                "--border",
                label,
                *_least(border.deficit),
            ),
        )
    unclear = [f for f in slow if f.kind is Kind.LINK and f.either]
    for workload, case in dict.fromkeys((f.benchmark["workload"], f.benchmark["case"]) for f in unclear):
        yield Step(
            message("Run {case} a few times more to find which host or link makes it slow.", case=fmt.clean(case)),
            _command(diagnosis, "diagnose", diagnosis.campaign, "--isolate", f"{workload}/{case}"),
        )


def _least(deficit: float) -> tuple[str, ...]:
    """Return the option that lets ``--isolate`` find a loss below SLOW."""
    return ("--least", f"{max(LEAST, 0.8 * deficit):.0%}") if deficit < SLOW else ()


def _named(findings: Sequence[Finding]) -> str:
    links_last = sorted(findings, key=lambda f: f.kind is Kind.LINK)
    names = list(dict.fromkeys(_link(f) if f.kind is Kind.LINK else f.host for f in links_last))
    return joined([*map(fmt.clean, names[:MANY]), "…" if len(names) > MANY else None])


def _link(finding: Finding) -> str:
    return message("the link {ends}", ends=between(finding))


def _command(diagnosis: Diagnosis, *words: str) -> str:
    return fmt.typed(command_for(diagnosis.root, *words))
