"""Report the slow hosts of a diagnosis, each with the fact that may explain it."""

from __future__ import annotations

from collections.abc import Mapping

from fleetmark.base.facts import Facts
from fleetmark.base.text import Message, count, message
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.planner.diagnosis.likely import likely_causes
from fleetmark.record.commands import command_for
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.reports.diagnosis.sentences import amounts, benchmark, share
from fleetmark.reports.hosts.likely import Shortfall, SlowHost
from fleetmark.reports.kit import format as fmt

MOST_SLOW = 3


def slow_hosts(diagnosis: Diagnosis, facts: Mapping[str, Facts]) -> list[SlowHost]:
    """Return the suspects with the largest losses, at most MOST_SLOW. ``facts``: the facts of the campaign's hosts."""
    suspects = list(diagnosis.suspects().items())[:MOST_SLOW]
    return [_slow(diagnosis, host, findings, facts) for host, findings in suspects]


def _slow(diagnosis: Diagnosis, host: str, findings: list[Finding], facts: Mapping[str, Facts]) -> SlowHost:
    peers = next((c.peers or c.hosts for c in diagnosis.cohorts if host in c.hosts), ())
    known = [facts[name] for name in peers if name != host and name in facts]
    classes = {str(f.benchmark["class"]) for f in findings}
    words = ("diagnose", diagnosis.campaign, "--confirm")
    return SlowHost(
        host=host,
        sentence=_sentence(host, findings[0]),
        facts=facts.get(host),
        causes=likely_causes(facts[host], known, classes) if host in facts else (),
        shortfalls=[_shortfall(f) for f in findings if f.kind is not Kind.TAIL],
        command=fmt.typed(command_for(diagnosis.root, *words)),
    )


def _sentence(host: str, finding: Finding) -> Message:
    return message(
        "{host} is {deficit} worse than its {peers} in {benchmark}",
        host=fmt.clean(host),
        deficit=share(finding.deficit),
        peers=count(finding.n, "peer"),
        benchmark=benchmark(finding),
    )


def _shortfall(finding: Finding) -> Shortfall:
    value, expected = amounts(finding)
    return Shortfall(benchmark(finding), str(finding.benchmark["class"]), finding.deficit, value, expected)
