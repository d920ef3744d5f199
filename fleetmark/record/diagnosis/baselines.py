"""Compare a campaign with the measurements of a saved reference's hosts, the baseline of a diagnosis.

A reference contains its hosts' runs (``references/NAME.VERSION.json``). Earlier versions saved runs separately in
``baselines/NAME.VERSION.json``; such files are still read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import Message, count, message
from fleetmark.planner.diagnosis import changes
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.record.diagnosis.table import BENCHMARK, Table, some, title
from fleetmark.record.figures import Figures
from fleetmark.record.pinned import BASELINES, REFERENCES


@dataclass(frozen=True, slots=True)
class Baseline:
    """Earlier measurements of ``hosts``.

    ``benchmarks``: the BENCHMARK columns of each row. The matrices are benchmarks x hosts, NaN if missing: ``values``
    (oriented logarithms), ``spread`` (standard deviation of the runs' logarithms), and ``runs`` (their number).
    """

    name: str
    version: int
    created: str
    campaign: str
    hosts: tuple[str, ...]
    _: KW_ONLY
    benchmarks: tuple[Mapping[str, str], ...]
    values: np.ndarray
    spread: np.ndarray
    runs: np.ndarray

    def as_json(self) -> dict[str, Any]:
        """Return this baseline's entry in the list of baselines."""
        return {
            "name": self.name,
            "version": self.version,
            "created": self.created,
            "from": self.campaign,
            "hosts": len(self.hosts),
            "benchmarks": len(self.benchmarks),
            "compare": False,
            "diagnose": True,
        }


def as_text(measured: Figures, hosts: list[str]) -> dict[str, Any] | None:
    """Return the measurements of ``hosts`` as part of a reference's document; None if no later comparison would be
    possible.
    """
    table = Table(measured, hosts)
    if not len(table.keys):
        return None
    return {
        "hosts": hosts,
        "benchmarks": [table.benchmark(row) for row in range(len(table.keys))],
        "values": [[_number(v) for v in row] for row in table.values],
        "spread": [[_number(v, 4) for v in row] for row in table.sd],
        "runs": table.runs.tolist(),
    }


def _number(value: float, digits: int = 9) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{digits}g}")


def load(root: Path, name: str) -> Baseline:
    """Return the runs of the reference ``name`` (its latest version) or ``name@2``.

    Raise FleetmarkError if it does not exist, is damaged, or contains no runs of hosts.
    """
    base, _, number = name.partition("@")
    older = {str(v) for n, v in BASELINES.versions(root) if n == base}
    newer = {str(v) for n, v in REFERENCES.versions(root) if n == base}
    version = number or max(older | newer, key=int, default="")
    if version in older - newer:
        return BASELINES.read(BASELINES.find(root, f"{base}@{version}"), _of_baseline)
    return REFERENCES.read(REFERENCES.find(root, name), _of_reference)


def baselines(root: Path) -> list[Baseline]:
    """Return every version of every baseline that earlier versions saved, by name."""
    return [BASELINES.read(BASELINES.path(root, n, v), _of_baseline) for n, v in sorted(BASELINES.versions(root))]


def _of_baseline(doc: Mapping[str, Any]) -> Baseline:
    return _baseline(doc, doc, doc["campaign"])


def _of_reference(doc: Mapping[str, Any]) -> Baseline:
    if doc.get("measured") is None:
        raise FleetmarkError(
            f"{doc['name']}@{doc['version']} has no runs of single hosts, which a diagnosis needs; save one "
            f"from a campaign: {REFERENCES.made_by}"
        )
    return _baseline(doc, doc["measured"], doc["selector"])


def _baseline(doc: Mapping[str, Any], measured: Mapping[str, Any], campaign: str) -> Baseline:
    hosts = tuple(map(str, measured["hosts"]))
    benchmarks = tuple({name: str(b[name]) for name in BENCHMARK} for b in measured["benchmarks"])
    shape = (len(benchmarks), len(hosts))
    matrices = {
        name: np.array(measured[name], dtype=np.float64).reshape(shape) for name in ("values", "spread", "runs")
    }
    return Baseline(doc["name"], doc["version"], doc["created"], campaign, hosts, benchmarks=benchmarks, **matrices)


_SAME = tuple(name for name in BENCHMARK if name not in ("unit", "class"))


def since(table: Table, baseline: Baseline) -> tuple[list[Finding], list[Message], int]:
    """Return findings for values that are slower than in ``baseline``, notes on parts that cannot be compared, and the
    number of compared values.
    """
    rows = {tuple(b[name] for name in _SAME): row for row, b in enumerate(baseline.benchmarks)}
    notes = _new_hosts(table, baseline)
    findings, unknown, compared = [], [], 0
    for row in range(len(table.keys)):
        benchmark = table.benchmark(row)
        old = rows.get(tuple(benchmark[name] for name in _SAME))
        if old is None:
            unknown.append(title(benchmark))
        elif (unit := baseline.benchmarks[old]["unit"]) != benchmark["unit"]:
            notes.append(
                message(
                    "{benchmark} is in {unit} here and in {other} in the reference {name}: not compared.",
                    benchmark=title(benchmark),
                    unit=benchmark["unit"],
                    other=unit,
                    name=titled(baseline),
                )
            )
        else:
            changed, note, number = _benchmark(table, row, baseline, old)
            findings += changed
            notes += note
            compared += number
    if unknown:
        notes.append(
            message("The reference {name} lacks {benchmarks}.", name=titled(baseline), benchmarks=some(unknown))
        )
    return findings, notes, compared


def titled(baseline: Baseline) -> str:
    """Return a baseline with its version: ``genoa-2026@2``."""
    return f"{baseline.name}@{baseline.version}"


def _new_hosts(table: Table, baseline: Baseline) -> list[Message]:
    new = [host for host in table.hosts if host not in baseline.hosts]
    if not new:
        return []
    return [
        message(
            "Not in the reference {name}: {hosts} ({names}).",
            name=titled(baseline),
            hosts=count(len(new), "host"),
            names=some(new),
        )
    ]


def _benchmark(table: Table, row: int, baseline: Baseline, old: int) -> tuple[list[Finding], list[Message], int]:
    columns = {host: column for column, host in enumerate(baseline.hosts)}
    shared = [host for host in table.hosts if host in columns]
    places, old_places = [table.place[host] for host in shared], [columns[host] for host in shared]
    before = changes.Runs(
        baseline.values[old, old_places], baseline.spread[old, old_places], baseline.runs[old, old_places]
    )
    after = changes.Runs(
        table.values[row, places], table.sd[row, places].astype(np.float64), table.runs[row, places].astype(np.float64)
    )
    judged = changes.judge(before, after, float(table.deficit[row]))
    benchmark = table.benchmark(row)
    findings = [
        Finding(
            Kind.REGRESSION,
            "" if judged.everywhere else shared[column],
            benchmark,
            deficit=float(-np.expm1(change)),
            value=table.value(row, float(after.values[column])),
            expected=table.value(row, float(before.values[column])),
            n=int(after.runs[column]),
            z=float(z),
            cohort=titled(baseline),
            members=tuple(shared[c] for c in judged.columns) if judged.everywhere else (),
        )
        for column, change, z in judged.slower
    ]
    if not judged.too_few:
        return findings, [], judged.compared
    few = message(
        "{benchmark}: fewer than {least} repeats then or now on {hosts}, so a change may be chance.",
        benchmark=title(benchmark),
        least=changes.LEAST_RUNS,
        hosts=count(judged.too_few, "host"),
    )
    return findings, [few], judged.compared
