"""Build a diagnosis's document: the answer, the next steps, suspects with evidence, and what was not evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from fleetmark.base.facts import Facts
from fleetmark.base.text import count, joined, message
from fleetmark.planner.diagnosis.finding import Finding as Found
from fleetmark.planner.diagnosis.finding import Kind
from fleetmark.record.diagnosis import Diagnosis, as_json
from fleetmark.record.diagnosis.gate import Acceptance
from fleetmark.record.roofs import Roof
from fleetmark.reports.comparison.areas import NO_COST, gaps
from fleetmark.reports.diagnosis import gate, steps
from fleetmark.reports.diagnosis.sentences import (
    benchmark,
    certainty,
    headline,
    lost,
    owner,
    sentence,
    share,
    sure,
)
from fleetmark.reports.diagnosis.slow import slow_hosts
from fleetmark.reports.hosts import roofs as under_roofs
from fleetmark.reports.hosts.likely import SlowHost, ticket
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit import tabular
from fleetmark.reports.kit.document import PAGES, Brief, Command, Document, Exhibit, Finding, Note, Section, provenance
from fleetmark.reports.kit.language import Language
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, Tone, number, quantity
from fleetmark.reports.kit.tabular import Kind as Format
from fleetmark.workloads import declared

HEAT_HOSTS, HEAT_BENCHMARKS = 40, 12  # maximum size of the heat map
_READ: tuple[Format, ...] = ("terminal", "html", "pdf", "markdown")  # formats that are read from top to bottom


def document(
    diagnosis: Diagnosis,
    roofs: Sequence[Roof] | None,
    created: str,
    command: str,
    _: Language,
    facts: Mapping[str, Facts] | None = None,
    acceptance: Acceptance | None = None,
) -> Document:
    """Return the document of the whole diagnosis.

    ``roofs``: the measured share of each theoretical peak. None omits roofs and the table of findings, for a terminal,
    a ticket or JSON. ``_``: the language of charts. ``facts``: the facts of the hosts, which may explain why a host is
    slow. ``acceptance``: the campaign checked against rules.
    """
    slow = slow_hosts(diagnosis, facts or {})
    tickets = tuple(ticket(host, diagnosis.campaign) for host in slow)
    raw = message("Raw files are named relative to {path}.", path=str(diagnosis.path))
    sections = (
        Section("cost", "", tuple(_first_notes(diagnosis))),
        *((gate.broken(acceptance, message("Rules not met")),) if acceptance else ()),
        Section("next", message("What to do next"), tuple(_next(diagnosis, slow))),
        Section("heat", message("Suspects and benchmarks"), tuple(_heat(diagnosis)), ("html", "pdf")),
        Section("unjudged", message("Not judged"), tuple(map(Note, diagnosis.notes))),
        Section("power", message("Smallest losses that are found"), tuple(map(Note, diagnosis.power))),
        *_findings(diagnosis),
        Section("tickets", message("Text for a ticket"), tickets, _READ, is_folded=True),
        Section(
            "findings", message("Findings"), tuple(_table(diagnosis)) if roofs is not None else (), ("xlsx", "csv")
        ),
        *((gate.checks(acceptance),) if acceptance else ()),
        *_roofs(roofs or (), diagnosis, _),
        Section("cohorts", message("Peer groups"), (_cohorts(diagnosis),), ("html", "pdf")),
        Section("named_cohorts", message("Cohorts"), (_cohorts(diagnosis, named=True),), ("xlsx", "csv")),
        provenance(command, Note(raw)),
    )
    return Document(
        title=diagnosis.campaign,
        answer=_answer(diagnosis, acceptance),
        tone="bad" if acceptance and not acceptance.accepted else _tone(diagnosis),
        details=(
            count(diagnosis.hosts, "host"),
            count(diagnosis.benchmarks, "benchmark"),
            message("{n} values compared with those of peers", n=f"{diagnosis.judged:,}"),
        ),
        sections=sections,
        folder=diagnosis.path,
        created=created,
        data=as_json(diagnosis)
        | {"next": steps.as_json(diagnosis, slow)}
        | ({"acceptance": gate.as_json(acceptance)} if acceptance else {}),
        brief=_in_brief(diagnosis, slow, _answer(diagnosis, acceptance)),
    )


def _answer(diagnosis: Diagnosis, acceptance: Acceptance | None) -> str:
    return joined([headline(diagnosis), gate.headline(acceptance) if acceptance else None], " ")


def _in_brief(diagnosis: Diagnosis, slow: Sequence[SlowHost], answer: str) -> Brief:
    """Return the brief of the diagnosis: suspects, what could not be evaluated, and what to do next."""
    listed = [*diagnosis.groups(), *diagnosis.borders()]
    listed += [findings[0] for findings in diagnosis.suspects().values()] + diagnosis.links()
    shown = [message("{name}: {what}", name=fmt.clean(owner(f) or f.place), what=sentence(f)) for f in listed]
    judged = message("{n} values compared with those of peers", n=f"{diagnosis.judged:,}")
    sure = tuple(dict.fromkeys(certainty(f) for f in listed))
    return Brief(
        question=message(
            "Which of {hosts} are slower than their peers, and why?", hosts=count(diagnosis.hosts, "host")
        ),
        worse=tuple(shown) or (answer,),
        worse_title=message("What is slow"),
        missing=diagnosis.notes or (message("Every host could be judged in every benchmark that it ran."),),
        certainty=(judged, *sure, *diagnosis.power),
        steps=tuple(_next(diagnosis, slow)),
    )


def brief(diagnosis: Diagnosis) -> Document:
    """Return the answer and the first suspects, for the end of a run."""
    hosts = [findings[0] for findings in list(diagnosis.suspects().values())[:6]]
    groups = [_said(f, f.place) for f in [*diagnosis.groups(), *diagnosis.borders()][:3]]
    listed = [*groups, *(_said(f, owner(f)) for f in [*hosts, *diagnosis.links()[:6]])]
    listed += [_said(f, "") for f in diagnosis.everywhere()[:2]]
    sections = (Section("suspects", "", tuple(listed)),)
    return Document(title=diagnosis.campaign, answer=headline(diagnosis), tone=_tone(diagnosis), sections=sections)


def _tone(diagnosis: Diagnosis) -> Tone:
    if not diagnosis.healthy:
        return "bad"
    return "good" if diagnosis.judged else ""


def _first_notes(diagnosis: Diagnosis) -> Iterator[Note]:
    """Yield the cost of the slow hosts, the certainty of the findings, and what was not measured."""
    yield from map(Note, lost(diagnosis))
    certain = joined(list(sure(diagnosis)), " ")
    missing = gaps(diagnosis.classes, None if diagnosis.prices else NO_COST) if diagnosis.classes else ""
    for text in (certain, missing):
        if text:
            yield Note(text, quiet=True)


def _next(diagnosis: Diagnosis, slow: Sequence[SlowHost]) -> Iterator[Command | Note]:
    for step in steps.steps(diagnosis, slow):
        yield Command(step.action, step.command) if step.command else Note(step.action)


def _findings(diagnosis: Diagnosis) -> Iterator[Section]:
    suspects = [f for findings in diagnosis.suspects().values() for f in findings]
    kinds = (
        ("groups", message("Groups of hosts"), [_said(f, f.place) for f in diagnosis.groups()]),
        ("borders", message("Borders between places"), [_said(f, f.place) for f in diagnosis.borders()]),
        ("suspects", message("Suspects"), [_said(f, owner(f)) for f in [*suspects, *diagnosis.links()]]),
        ("everywhere", message("Slower everywhere"), [_said(f, "") for f in diagnosis.everywhere()]),
        ("cleared", message("Cleared by a repeat"), [_said(f, owner(f)) for f in diagnosis.cleared()]),
    )
    for key, title, listed in kinds:
        yield Section(key, title, tuple(listed), _READ)


def _said(finding: Found, subject: str) -> Finding:
    return Finding(subject, sentence(finding), (certainty(finding),), tuple(finding.evidence))


def _heat(diagnosis: Diagnosis) -> Iterator[Exhibit]:
    """Yield the deficits of suspects as a table of hosts by benchmarks. Findings that do not fit are only counted."""
    by_cell: dict[tuple[str, str], Found] = {}
    for finding in diagnosis.findings:
        if finding.host and finding.kind is not Kind.LINK and not finding.cleared:
            by_cell.setdefault((finding.host, benchmark(finding)), finding)
    if not by_cell:
        return
    hosts = tuple(dict.fromkeys(host for host, _ in by_cell))[:HEAT_HOSTS]
    names = [name for _, name in by_cell]
    order = sorted(dict.fromkeys(names), key=lambda name: -names.count(name))[:HEAT_BENCHMARKS]
    columns = (Column("host", message("host"), "name"), *(Column(name, name, "number") for name in order))
    rows = tuple((Cell(host), *(_hot(by_cell.get((host, name))) for name in order)) for host in hosts)
    yield Note(
        message("How much worse than its peers' median; darker is worse. A dash marks values within the usual range."),
        quiet=True,
    )
    yield Tabular("heat", message("Suspects and benchmarks"), columns, rows)
    left_out = sum(host not in hosts or name not in order for host, name in by_cell)
    if left_out:
        yield Note(count(left_out, "further finding"), quiet=True)


def _hot(finding: Found | None) -> Cell:
    if finding is None:
        return Cell()
    tone: Tone = "hot3" if finding.deficit >= 0.2 else "hot2" if finding.deficit >= 0.1 else "hot1"
    return Cell(f"−{share(finding.deficit)}", -finding.deficit, tone=tone)


def _table(diagnosis: Diagnosis) -> Iterator[Tabular]:
    """Yield a table with a row per finding."""
    columns = (
        Column("host", message("host"), "name"),
        Column("kind", message("kind")),
        Column("benchmark", message("benchmark")),
        Column("worse_by", message("worse by"), "number"),
        Column("value", message("value"), "number"),
        Column("expected", message("expected"), "number"),
        Column("peers", message("peers"), "number"),
        Column("z", "z", "number"),
        Column("cleared", message("cleared"), "verdict"),
        Column("finding", message("what"), "note"),
        Column("certainty", message("how sure"), "note"),
        Column("evidence", message("raw files"), "file"),
    )
    if diagnosis.findings:
        yield Tabular("findings", message("Findings"), columns, tuple(map(_row, diagnosis.findings)))


def _row(finding: Found) -> tuple[Cell, ...]:
    keys = finding.benchmark
    bits, percent = (is_shown(keys["workload"], keys["metric"]) for is_shown in (declared.in_bits, declared.in_percent))
    counted = declared.counted(keys["workload"], keys["metric"])
    value, expected = (
        quantity(amount, keys["unit"], bits=bits, percent=percent, counted=counted)
        for amount in (finding.value, finding.expected)
    )
    return (
        Cell(owner(finding) or ", ".join(finding.members)),
        Cell(finding.kind.value),
        Cell(benchmark(finding)),
        tabular.share(finding.deficit),
        value,
        expected,
        number(finding.n),
        Cell(fmt.z_score(finding.z), finding.z),
        Cell(message("yes") if finding.cleared else ""),
        Cell(sentence(finding)),
        Cell(certainty(finding)),
        Cell("; ".join(finding.evidence)),
    )


def _roofs(roofs: Sequence[Roof], diagnosis: Diagnosis, _: Language) -> Iterable[Section]:
    kinds = {host: cohort.kind for cohort in diagnosis.cohorts for host in cohort.hosts}
    lines = under_roofs.lines(roofs, kinds)
    if lines:
        section = under_roofs.section(lines)
        yield replace(section, exhibits=(*section.exhibits, *under_roofs.pictures(lines, _)), only=PAGES)
        title = message("Roofs of hosts")
        yield Section("host_roofs", title, (under_roofs.by_host(roofs, "host_roofs", title),), ("xlsx", "csv"))


def _cohorts(diagnosis: Diagnosis, *, named: bool = False) -> Tabular:
    """Return a table of the groups of hosts that were compared. ``named``: add a column with the host names."""
    columns = (
        Column("kind", message("kind of host"), "name"),
        Column("firmware", message("firmware")),
        Column("hosts", message("hosts"), "number"),
        Column("peers", message("compared with"), "number"),
        *((Column("names", message("names")),) if named else ()),
    )
    rows = tuple(
        (
            Cell(c.kind),
            Cell(fmt.clean(c.firmware) or "–"),
            number(len(c.hosts)),
            number(len(c.peers)),
            *((Cell(", ".join(c.hosts)),) if named else ()),
        )
        for c in diagnosis.cohorts
    )
    return Tabular("cohorts", message("Peer groups"), columns, rows)
