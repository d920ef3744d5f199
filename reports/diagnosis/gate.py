"""Present the result of a gate as a document, as JUnit XML, and in the Prometheus text format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from fleetmark.base.text import Message, count, joined, message
from fleetmark.base.units import human
from fleetmark.base.visible import visible
from fleetmark.base.words import word
from fleetmark.planner.diagnosis.gate import (
    FACT,
    MACHINE,
    NOT_MEASURED,
    PEAK,
    PEERS,
    PORT,
    REPEATS,
    SPECIFICATION,
    CheckVerdict,
    Result,
    Severity,
)
from fleetmark.record.diagnosis.gate import Acceptance
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.document import PAGES, Document, Section
from fleetmark.reports.kit.tabular import Cell, Column, Tabular, quantity

NAMED = 4  # maximum number of hosts named in a row


def verdict_text(result: Result) -> Message:
    """Return the result of one check as a sentence."""
    if result.verdict is CheckVerdict.MISSING:
        return _missing(result)
    if result.texts[1]:
        return _listed(result)
    value, limit = (
        human(v or 0.0, result.unit, bits=result.bits, percent=result.percent) for v in (result.value, result.limit)
    )
    if result.reason == PORT:
        return message(
            "runs at {value}, and supports {limit}; check the cable, the transceiver and the switch port, or state the "
            "intended rate with machine: port.rate",
            value=value,
            limit=limit,
        )
    if result.verdict is CheckVerdict.PASSED:
        return message("{value} meets {limit}", value=value, limit=limit)
    return _beyond(result, value, limit)


def _beyond(result: Result, value: str, limit: str) -> Message:
    """Return the sentence for a value on the wrong side of its limit."""
    match result.least, result.is_strict:
        case True, False:
            return message("{value} is below {limit}", value=value, limit=limit)
        case True, True:
            return message("{value} is not above {limit}", value=value, limit=limit)
        case False, True:
            return message("{value} is not below {limit}", value=value, limit=limit)
    return message("{value} is above {limit}", value=value, limit=limit)


def _listed(result: Result) -> Message:
    """Return the result of a check against a list of allowed or refused values as a sentence."""
    has, allowed = map(fmt.clean, result.texts)
    if result.verdict is CheckVerdict.PASSED:
        return message("{value} is allowed", value=has)
    if result.is_refusal:
        return message("{value} is refused", value=has)
    return message("{value} is not {limit}", value=has, limit=allowed)


def _missing(result: Result) -> Message:
    have, need = result.numbers
    if result.reason == NOT_MEASURED and result.near:
        return message("not measured (did you mean {near}?)", near=fmt.clean(result.near))
    texts = {
        NOT_MEASURED: message("not measured"),
        REPEATS: message("{have} of {need} repeats passed", have=have, need=need),
        PEERS: message("{have} of {need} peers needed were measured", have=have, need=need),
        SPECIFICATION: message(
            "not judged: nothing states how many memory modules this machine should have; add machine: memory.modules "
            "and memory.channels"
        ),
        MACHINE: message("no entry of machines: selects this host; add one"),
        FACT: message("the host does not report it"),
        PEAK: message("no peak of this machine is known for it"),
    }
    other_unit = message("it is measured in {unit}, the rule is in another unit", unit=result.unit)
    return texts.get(result.reason, other_unit)


def headline(acceptance: Acceptance) -> Message:
    """Return a sentence that says whether the hosts are accepted, and which hosts are not."""
    bad = [r for r in acceptance.results if r.verdict is not CheckVerdict.PASSED and r.severity is Severity.FAIL]
    checks = count(len(acceptance.results), "check")
    if acceptance.accepted:
        return message("Accepted: {checks} passed or gave only a warning.", checks=checks)
    hosts = list(dict.fromkeys(r.host for r in bad))
    names = fmt.clean(", ".join(hosts[:NAMED]))
    if len(hosts) > NAMED:
        names = message("{hosts} and {n} more", hosts=names, n=f"{len(hosts) - NAMED:,}")
    return message("Not accepted: {n} of {checks} failed, on {hosts}.", n=len(bad), checks=checks, hosts=names)


def document(acceptance: Acceptance) -> Document:
    """Return the verdict, the rules that are not met (failures first), and every check."""
    return Document(
        title=acceptance.campaign,
        answer=headline(acceptance),
        tone="good" if acceptance.accepted else "bad",
        details=(
            message("campaign {id}", id=fmt.clean(acceptance.campaign)),
            count(len({r.host for r in acceptance.results}), "host"),
            message("rules of {file}", file=fmt.clean(acceptance.rules)),
        ),
        sections=(broken(acceptance), checks(acceptance)),
        data=as_json(acceptance),
    )


def broken(acceptance: Acceptance, heading: str = "") -> Section:
    """Return the rules that are not met, failures first."""
    exhibits = (_broken(acceptance),) if _bad(acceptance) else ()
    return Section("broken", heading, exhibits, ("terminal", "html", "pdf", "markdown"))


def checks(acceptance: Acceptance) -> Section:
    """Return every check."""
    return Section("checks", message("Checks"), (_checks(acceptance),), (*PAGES, "json", "csv"))


def _bad(acceptance: Acceptance) -> list[Result]:
    bad = [r for r in acceptance.results if r.verdict is not CheckVerdict.PASSED]
    return sorted(bad, key=lambda r: r.severity is not Severity.FAIL)


def _broken(acceptance: Acceptance) -> Tabular:
    columns = (
        Column("host", message("host"), "name"),
        Column("rule", message("rule")),
        Column("result", message("result")),
    )
    rows = []
    for (severity, rule, text), hosts in _alike(_bad(acceptance)).items():
        names = ", ".join(hosts[:NAMED])
        if len(hosts) > NAMED:
            names = message("{hosts}: {names}, …", hosts=count(len(hosts), "host"), names=names)
        result = text if severity is Severity.FAIL else message("warning: {result}", result=text)
        rows.append((Cell(names), Cell(rule), Cell(result)))
    return Tabular("broken", message("Rules not met"), columns, tuple(rows))


def _checks(acceptance: Acceptance) -> Tabular:
    columns = (
        Column("host", message("host"), "name"),
        Column("rule", message("rule")),
        Column("benchmark", message("benchmark")),
        Column("verdict", message("verdict"), "verdict"),
        Column("value", message("value"), "number"),
        Column("limit", message("limit"), "number"),
        Column("severity", message("severity")),
        Column("text", message("result")),
        Column("evidence", message("raw files"), "code"),
    )
    rows = tuple(
        (
            Cell(r.host),
            Cell(r.rule),
            Cell(r.benchmark),
            Cell(
                word(r.verdict.value),
                tone="good" if r.verdict is CheckVerdict.PASSED else "bad" if _fails(r) else "unsure",
            ),
            quantity(r.value, r.unit, bits=r.bits, percent=r.percent),
            quantity(r.limit, r.unit, bits=r.bits, percent=r.percent),
            Cell(r.severity.value),
            Cell(verdict_text(r)),
            Cell(r.evidence),
        )
        for r in acceptance.results
    )
    return Tabular("checks", message("Checks"), columns, rows)


def _alike(results: Sequence[Result]) -> dict[tuple[Severity, str, str], list[str]]:
    """Return the hosts for each (severity, rule, sentence), so that equal results share a row."""
    alike: dict[tuple[Severity, str, str], list[str]] = {}
    for r in results:
        text = joined([joined([r.benchmark, verdict_text(r)], ": "), f"({r.evidence})" if r.evidence else None], " ")
        alike.setdefault((r.severity, r.rule, text), []).append(r.host)
    return alike


def as_json(acceptance: Acceptance) -> dict[str, Any]:
    """Return every check for programs, in base units."""
    checks = [
        {
            "rule": r.rule,
            "severity": r.severity.value,
            "host": r.host,
            "benchmark": r.benchmark,
            "verdict": r.verdict.value,
            "value": r.value,
            "limit": r.limit,
            "unit": r.unit,
            "text": str(verdict_text(r)),
            "evidence": r.evidence or None,
        }
        for r in acceptance.results
    ]
    head = {"campaign": acceptance.campaign, "rules": acceptance.rules, "accepted": acceptance.accepted}
    return {**head, "checks": checks}


def junit(acceptance: Acceptance) -> str:
    """Return JUnit XML: a suite per host and a test case per check. A warning is a passed test case with a note."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={quoteattr(acceptance.campaign)}>"]
    for host in dict.fromkeys(r.host for r in acceptance.results):
        results = [r for r in acceptance.results if r.host == host]
        failed = [r for r in results if _fails(r)]
        name = _attribute(host)
        lines.append(f'<testsuite name={name} tests="{len(results)}" failures="{len(failed)}" errors="0" skipped="0">')
        for r in results:
            case = _attribute(f"{r.rule}: {r.benchmark}" if r.benchmark else r.rule)
            lines.append(f"<testcase classname={name} name={case}>")
            if _fails(r):
                kind, file = quoteattr(r.verdict.value), _attribute(r.evidence)[1:-1]
                lines.append(f"<failure type={kind} message={_attribute(verdict_text(r))}>{file}</failure>")
            elif r.verdict is not CheckVerdict.PASSED:
                lines.append(f"<system-out>{_attribute(verdict_text(r))[1:-1]}</system-out>")
            lines.append("</testcase>")
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _fails(result: Result) -> bool:
    return result.verdict is not CheckVerdict.PASSED and result.severity is Severity.FAIL


def _attribute(text: str) -> str:
    return quoteattr(visible(text))
