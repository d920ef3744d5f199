"""Acceptance as documents: a table, JSON, JUnit XML, and Prometheus' text format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fleetmark.base.text import Message, count, message
from fleetmark.base.units import human
from fleetmark.base.visible import visible
from fleetmark.record.diagnosis.gate import Acceptance
from planner.diagnosis.gate import NOT_MEASURED, PEAK, PEERS, REPEATS, Result, Severity, Verdict
from reports.kit import format as fmt
from reports.kit.language import Language

MOST = 60  # results of a table
NAMED = 4  # hosts that one of them names


def why(result: Result) -> Message:
    """The result in one sentence."""
    if result.verdict is Verdict.MISSING:
        return _missing(result)
    value, limit = (
        human(v or 0.0, result.unit, bits=result.bits, percent=result.percent) for v in (result.value, result.limit)
    )
    if result.verdict is Verdict.KEPT:
        return message("{value} keeps {limit}", value=value, limit=limit)
    if result.least:
        return message("{value} is below {limit}", value=value, limit=limit)
    return message("{value} is above {limit}", value=value, limit=limit)


def _missing(result: Result) -> Message:
    have, need = result.numbers
    if result.why == NOT_MEASURED and result.near:
        return message("not measured (did you mean {near}?)", near=fmt.clean(result.near))
    if result.why == NOT_MEASURED:
        return message("not measured")
    if result.why == REPEATS:
        return message("{have} of {need} repeats passed", have=have, need=need)
    if result.why == PEERS:
        return message("{have} of {need} peers needed were measured", have=have, need=need)
    if result.why == PEAK:
        return message("no peak of this machine is known for it")
    return message("it is measured in {unit}, the rule is in another unit", unit=result.unit)


def headline(acceptance: Acceptance) -> Message:
    """Whether the hosts are accepted, and which are not."""
    bad = [r for r in acceptance.results if r.verdict is not Verdict.KEPT and r.severity is Severity.FAIL]
    checks = count(len(acceptance.results), "check")
    if acceptance.accepted:
        return message("Accepted: {checks} kept or only warned of.", checks=checks)
    hosts = list(dict.fromkeys(r.host for r in bad))
    names = fmt.clean(", ".join(hosts[:4])) + (", …" if len(hosts) > 4 else "")
    return message("Not accepted: {n} of {checks} failed, on {hosts}.", n=len(bad), checks=checks, hosts=names)


def table(acceptance: Acceptance, _: Language) -> list[RenderableType]:
    """What is not kept, the failures first."""
    style = "bold green" if acceptance.accepted else "bold red"
    parts: list[RenderableType] = [Text(_(headline(acceptance)), style=style)]
    bad = [r for r in acceptance.results if r.verdict is not Verdict.KEPT]
    bad.sort(key=lambda r: r.severity is not Severity.FAIL)
    if bad:
        lines = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
        for name in (_("host"), _("rule"), _("result")):
            lines.add_column(name, overflow="fold")
        alike = _alike(bad, _)
        for (severity, rule, text), hosts in list(alike.items())[:MOST]:
            names = fmt.clean(", ".join(hosts[:NAMED]))
            names = names if len(hosts) <= NAMED else f"{_(count(len(hosts), 'host'))}: {names}, …"
            mark = _("warning") if severity is Severity.WARN else ""
            lines.add_row(Text(names), Text(rule), Text(f"{mark} {text}".strip()))
        parts.append(lines)
        if len(alike) > MOST:
            further = sum(len(hosts) for hosts in list(alike.values())[MOST:])
            parts.append(Text(_(count(further, "further check"))))
    return parts


def _alike(results: Sequence[Result], _: Language) -> dict[tuple[Severity, str, str], list[str]]:
    """What one rule says of several hosts in the same words, to these hosts."""
    alike: dict[tuple[Severity, str, str], list[str]] = {}
    for r in results:
        text = f"{fmt.clean(r.benchmark)}: {_(why(r))}" if r.benchmark else _(why(r))
        text += f" ({fmt.clean(r.evidence)})" if r.evidence else ""
        alike.setdefault((r.severity, fmt.clean(r.rule), text), []).append(r.host)
    return alike


def as_json(acceptance: Acceptance) -> str:
    """Every check, in base units."""
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
            "text": str(why(r)),
            "evidence": r.evidence or None,
        }
        for r in acceptance.results
    ]
    of = {"campaign": acceptance.campaign, "rules": acceptance.rules, "accepted": acceptance.accepted}
    return json.dumps({**of, "checks": checks}, indent=1)


def junit(acceptance: Acceptance) -> str:
    """JUnit XML: a suite per host, a test case per check; what only warns is passed, with a note."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={quoteattr(acceptance.campaign)}>"]
    for host in dict.fromkeys(r.host for r in acceptance.results):
        own = [r for r in acceptance.results if r.host == host]
        failed = [r for r in own if _fails(r)]
        name = _attribute(host)
        lines.append(f'<testsuite name={name} tests="{len(own)}" failures="{len(failed)}" errors="0" skipped="0">')
        for r in own:
            case = _attribute(f"{r.rule}: {r.benchmark}" if r.benchmark else r.rule)
            lines.append(f"<testcase classname={name} name={case}>")
            if _fails(r):
                kind, file = quoteattr(r.verdict.value), _attribute(r.evidence)[1:-1]
                lines.append(f"<failure type={kind} message={_attribute(why(r))}>{file}</failure>")
            elif r.verdict is not Verdict.KEPT:
                lines.append(f"<system-out>{_attribute(why(r))[1:-1]}</system-out>")
            lines.append("</testcase>")
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _fails(result: Result) -> bool:
    return result.verdict is not Verdict.KEPT and result.severity is Severity.FAIL


def _attribute(text: str) -> str:
    return quoteattr(visible(text))


def prometheus(acceptance: Acceptance) -> str:
    """Prometheus' text format, for node_exporter's textfile collector."""
    hosts = list(dict.fromkeys(r.host for r in acceptance.results))
    lines = [
        "# HELP fleetmark_gate_accepted Whether a host keeps every rule that must be kept.",
        "# TYPE fleetmark_gate_accepted gauge",
    ]
    lines += [
        f"fleetmark_gate_accepted{_labels(host=h)} {int(not any(_fails(r) for r in acceptance.results if r.host == h))}"
        for h in hosts
    ]
    lines += [
        "# HELP fleetmark_gate_kept Whether a rule is kept; 0 where its data is missing.",
        "# TYPE fleetmark_gate_kept gauge",
    ]
    lines += _gauges("fleetmark_gate_kept", [(r, int(r.verdict is Verdict.KEPT)) for r in acceptance.results])
    lines += ["# HELP fleetmark_gate_value What was measured, in base units.", "# TYPE fleetmark_gate_value gauge"]
    measured = [(r, r.value) for r in acceptance.results if r.value is not None]
    return "\n".join([*lines, *_gauges("fleetmark_gate_value", measured), ""])


def _gauges(name: str, results: Sequence[tuple[Result, float]]) -> list[str]:
    rows = {
        _labels(host=r.host, rule=r.rule, benchmark=r.benchmark, bound="least" if r.least else "most"): v
        for r, v in results
    }
    return [f"{name}{labels} {value!r}" for labels, value in rows.items()]


def _labels(**values: str) -> str:
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for k, v in values.items()}
    return "{" + ",".join(f'{k}="{v}"' for k, v in quoted.items()) + "}"
