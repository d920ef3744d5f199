"""Evaluate a campaign of the watch with ``diagnose``, ``history`` and ``gate``, and compare with the earlier open
findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.planner.diagnosis.gate import CheckVerdict, Severity
from fleetmark.record.archive import Archive
from fleetmark.record.diagnosis import diagnose
from fleetmark.record.diagnosis import history as histories
from fleetmark.record.diagnosis.baselines import load as load_baseline
from fleetmark.record.diagnosis.gate import hold, read_rules
from fleetmark.record.watched import OpenFinding
from fleetmark.reports.diagnosis import gate as gate_texts
from fleetmark.reports.diagnosis import openmetrics, sentences
from fleetmark.reports.kit.openmetrics import Family

TOGETHER = (Kind.GROUPS, Kind.BORDER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdicts.

    ``judged``: the sources (diagnose, history, gate) with a verdict. ``problems``: why the others have none.
    """

    findings: tuple[OpenFinding, ...]
    judged: frozenset[str]
    families: tuple[Family, ...]
    problems: tuple[str, ...]


def judge(
    archive: Archive,
    root: Path,
    rules: Path | None,
    reference: str | None,
    least: Mapping[str, float] | None = None,
) -> Judgement:
    """Return the verdicts of ``diagnose``, ``history`` and ``gate`` on a campaign.

    If the data do not suffice for one of them, report a problem instead of failing.

    ``least``: the smallest loss for ``diagnose`` to report, by class of metrics ("": every class).
    """
    findings: list[OpenFinding] = []
    families: list[Family] = []
    judged: set[str] = set()
    problems: list[str] = []

    def diagnosis() -> bool:
        result = diagnose(archive, against=load_baseline(root, reference) if reference else None, least=least)
        findings.extend(_slow(f) for f in result.findings if not f.cleared)
        families.extend(f for f in openmetrics.diagnosis(result) if f.name != openmetrics.FINDING)
        return result.judged > 0 or bool(result.findings)

    def history() -> bool:
        result = histories.history(root, ())
        findings.extend(_changed(series) for series in result.series if series.slower)
        families.extend(openmetrics.history(result))
        return True

    def gate() -> bool:
        if rules is None:
            return False
        acceptance = hold(archive, read_rules(rules), str(rules), None)
        families.extend(openmetrics.gate(acceptance))
        for r in acceptance.results:
            if r.verdict is not CheckVerdict.PASSED and r.severity is Severity.FAIL:
                labels = {"host": r.host, "rule": r.rule, "benchmark": r.benchmark}
                text = f"{r.host}: {r.rule}: {r.benchmark} {gate_texts.verdict_text(r)}"
                findings.append(OpenFinding(source="gate", hosts=(r.host,), labels=labels, text=text))
        return True

    for name, step in (("diagnose", diagnosis), ("history", history), ("gate", gate)):
        try:
            if step():
                judged.add(name)
        except FleetmarkError as error:
            problems.append(f"{name}: {error}")
    return Judgement(
        findings=tuple(findings), judged=frozenset(judged), families=tuple(families), problems=tuple(problems)
    )


def _slow(finding: Finding) -> OpenFinding:
    hosts = tuple(h for h in (finding.host, finding.other) if h)
    return OpenFinding(
        source="diagnose",
        hosts=finding.members if finding.kind in TOGETHER else hosts or finding.members,
        labels={name: value for name, value in openmetrics.labels_of(finding).items() if value},
        text=f"{sentences.owner(finding)}: {sentences.sentence(finding)}",
        deficit=finding.deficit,
        needs_all=finding.kind not in TOGETHER,
    )


def _changed(series: histories.Series) -> OpenFinding:
    labels = {"host": series.host} | openmetrics.benchmark_labels(series.benchmark)
    loss = openmetrics.loss(series)
    title = " ".join(labels[name] for name in ("workload", "case", "metric"))
    text = f"{series.host or 'all hosts'}: {title} became permanently slower by {loss:.1%}"
    named = {name: value for name, value in labels.items() if value}
    return OpenFinding(source="history", hosts=(series.host,), labels=named, text=text, deficit=loss)


def merged(before: Iterable[OpenFinding], judgement: Judgement, measured: set[str]) -> list[OpenFinding]:
    """Return the findings that are open after a round over the ``measured`` hosts.

    ``history`` always covers all hosts. Other findings stay open until their hosts are measured again without the
    finding.
    """

    def stays(finding: OpenFinding) -> bool:
        is_decided = finding.source == "history" or finding.ends_with(measured)
        return not (finding.source in judgement.judged and is_decided)

    kept = {f.key: f for f in before if stays(f)}
    return list((kept | {f.key: f for f in judgement.findings}).values())


def news(before: Sequence[OpenFinding], after: Sequence[OpenFinding]) -> list[str]:
    """Return a line for each new finding and for each resolved one."""
    old, new = {f.key: f for f in before}, {f.key: f for f in after}
    return [
        *(f"New: {f.text}" for key, f in new.items() if key not in old),
        *(f"Recovered: {f.text}" for key, f in old.items() if key not in new),
    ]
