"""Export the findings of ``diagnose``, ``history`` and ``gate`` as families of OpenMetrics samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import numpy as np

from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.planner.diagnosis.gate import CheckVerdict, Severity
from fleetmark.record.diagnosis import Diagnosis
from fleetmark.record.diagnosis.gate import Acceptance
from fleetmark.record.diagnosis.history import History, Series
from fleetmark.reports.kit.openmetrics import Family

FINDING = "fleetmark_finding_deficit_ratio"


def labels_of(finding: Finding) -> dict[str, str]:
    """Return the labels that identify a finding across campaigns."""
    shared = finding.place if finding.kind in (Kind.GROUPS, Kind.BORDER) else ""
    place = {"kind": finding.kind.value, "host": finding.host, "other": finding.other, "shared": shared}
    return place | benchmark_labels(finding.benchmark)


def benchmark_labels(benchmark: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a benchmark: workload, case, metric, and the benchmark's own labels as ``series``."""
    values = json.loads(benchmark.get("labels") or "{}")
    series = ",".join(f"{name}={value}" for name, value in sorted(values.items()))
    return {name: benchmark[name] for name in ("workload", "case", "metric")} | {"series": series}


def findings(deficits: Iterable[tuple[Mapping[str, str], float]]) -> Family:
    """Return a sample for each finding: its labels and the missing share."""
    family = Family(FINDING, "The missing share, relative to the expected value.")
    for labels, deficit in deficits:
        family.add(deficit, labels)
    return family


def diagnosis(result: Diagnosis) -> list[Family]:
    """Return the findings that no repeat cleared, and how many hosts were measured and evaluated."""
    hosts = Family("fleetmark_diagnosis_hosts", "Hosts in the campaign that was diagnosed.")
    hosts.add(result.hosts)
    judged = Family("fleetmark_diagnosis_judged_hosts", "Hosts that were compared with peers.")
    judged.add(result.judged)
    healthy = Family("fleetmark_diagnosis_healthy", "1 if hosts were judged and nothing is wrong.")
    healthy.add(int(result.healthy and result.judged > 0))
    open_ = ((labels_of(f), f.deficit) for f in result.findings if not f.cleared)
    return [hosts, judged, healthy, findings(open_)]


def history(result: History) -> list[Family]:
    """Return the latest value of each series, and its permanent loss or gain."""
    value = Family("fleetmark_history_value", "The latest value of a series, in its base unit.")
    change = Family("fleetmark_history_change_ratio", "The last step and the slope of a series; below 0 is slower.")
    campaigns = Family("fleetmark_history_campaigns", "Campaigns that the history covers.")
    campaigns.add(result.campaigns)
    for series in result.series:
        labels = {"host": series.host} | benchmark_labels(series.benchmark)
        value.add(series.values[-1], labels | {"unit": series.benchmark.get("unit", "")})
        if series.changes:
            change.add(float(np.expm1(series.changes[-1].change)), labels | {"form": "step"})
        if series.trends:
            change.add(float(np.expm1(series.trends[-1].change)), labels | {"form": "slope"})
    return [campaigns, value, change]


def gate(acceptance: Acceptance) -> list[Family]:
    """Return whether each host is accepted, which rules it keeps, and what was measured."""
    accepted = Family("fleetmark_gate_accepted", "Whether a host keeps every rule that must be kept.")
    kept = Family("fleetmark_gate_kept", "Whether a rule is kept; 0 where its data is missing.")
    value = Family("fleetmark_gate_value", "What was measured, in base units.")
    bad = (r for r in acceptance.results if r.verdict is not CheckVerdict.PASSED)
    failed = {r.host for r in bad if r.severity is Severity.FAIL}
    for host in dict.fromkeys(r.host for r in acceptance.results):
        accepted.add(int(host not in failed), {"host": host})
    for r in acceptance.results:
        labels = {"host": r.host, "rule": r.rule, "benchmark": r.benchmark, "bound": "least" if r.least else "most"}
        kept.add(int(r.verdict is CheckVerdict.PASSED), labels)
        if r.value is not None:
            value.add(r.value, labels)
    return [accepted, kept, value]


def loss(series: Series) -> float:
    """Return the share that a series lost by its last step or its slopes; 0 if it lost nothing."""
    return -float(np.expm1(min(series.worst, 0.0)))
