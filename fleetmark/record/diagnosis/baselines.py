"""What hosts measured, saved under a name, and what changed since.

``baselines/NAME.VERSION.json`` under the results root. A new version never touches an old one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import Message, count, message
from fleetmark.planner.diagnosis import changes
from fleetmark.planner.diagnosis.finding import Finding, Kind
from fleetmark.record.diagnosis.table import BENCHMARK, Table, some, title
from fleetmark.record.figures import Figures
from fleetmark.record.pinned import Shelf

SHELF = Shelf("baseline", "genoa-2026", "fleetmark baseline save NAME --from CAMPAIGN", "save the baseline again")


@dataclass(frozen=True, slots=True)
class Baseline:
    """What ``hosts`` measured once. ``benchmarks``: BENCHMARK columns of each. Benchmarks x hosts, NaN where missing:
    ``values``, oriented logarithms; ``spread``, the standard deviation of the runs' logarithms; ``runs``.
    """

    name: str
    version: int
    created: str
    campaign: str
    hosts: tuple[str, ...]
    benchmarks: tuple[Mapping[str, str], ...]
    values: np.ndarray
    spread: np.ndarray
    runs: np.ndarray

    def as_json(self) -> dict[str, Any]:
        """What the list of baselines shows of it."""
        return {
            "name": self.name,
            "version": self.version,
            "created": self.created,
            "from": self.campaign,
            "hosts": len(self.hosts),
            "benchmarks": len(self.benchmarks),
        }


def save(root: Path, name: str, campaign: str, measured: Figures, hosts: list[str]) -> Baseline:
    """Save what ``hosts`` measured as the next version of ``name``.

    Raises FleetmarkError for a bad name, and where there is nothing to save.
    """
    table = Table(measured, hosts)
    if not len(table.keys):
        raise FleetmarkError(f"{campaign}: no host measured anything that could be compared later; nothing is saved")
    content = {
        "campaign": campaign,
        "hosts": hosts,
        "benchmarks": [table.benchmark(row) for row in range(len(table.keys))],
        "values": [[_number(v) for v in row] for row in table.values],
        "spread": [[_number(v, 4) for v in row] for row in table.sd],
        "runs": table.runs.tolist(),
    }
    return _baseline(SHELF.save(root, name, content))


def _number(value: float, digits: int = 9) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{digits}g}")


def load(root: Path, name: str) -> Baseline:
    """The baseline ``name`` (its latest version) or ``name@2``.

    Raises FleetmarkError where there is none, or where it is damaged or of another schema.
    """
    return SHELF.read(SHELF.find(root, name), _baseline)


def baselines(root: Path) -> list[Baseline]:
    """Every version of every baseline, by name."""
    return [SHELF.read(SHELF.path(root, n, v), _baseline) for n, v in sorted(SHELF.versions(root))]


def _baseline(doc: Mapping[str, Any]) -> Baseline:
    hosts = tuple(map(str, doc["hosts"]))
    benchmarks = tuple({name: str(b[name]) for name in BENCHMARK} for b in doc["benchmarks"])
    shape = (len(benchmarks), len(hosts))
    matrices = [np.array(doc[name], dtype=np.float64).reshape(shape) for name in ("values", "spread", "runs")]
    return Baseline(doc["name"], doc["version"], doc["created"], doc["campaign"], hosts, benchmarks, *matrices)


_SAME = tuple(name for name in BENCHMARK if name not in ("unit", "class"))


def since(table: Table, baseline: Baseline) -> tuple[list[Finding], list[Message], int]:
    """What is slower than in ``baseline``: findings, notes on what cannot be compared, and how many values were."""
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
                    "{benchmark} is in {unit} here and in {other} in the baseline {name}: not compared.",
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
            message("The baseline {name} lacks {benchmarks}.", name=titled(baseline), benchmarks=some(unknown))
        )
    return findings, notes, compared


def titled(baseline: Baseline) -> str:
    """A baseline and its version: ``genoa-2026@2``."""
    return f"{baseline.name}@{baseline.version}"


def _new_hosts(table: Table, baseline: Baseline) -> list[Message]:
    new = [host for host in table.hosts if host not in baseline.hosts]
    if not new:
        return []
    return [
        message(
            "Not in the baseline {name}: {hosts} ({names}).",
            name=titled(baseline),
            hosts=count(len(new), "host"),
            names=some(new),
        )
    ]


def _benchmark(table: Table, row: int, baseline: Baseline, old: int) -> tuple[list[Finding], list[Message], int]:
    columns = {host: column for column, host in enumerate(baseline.hosts)}
    shared = [host for host in table.hosts if host in columns]
    here, then = [table.place[host] for host in shared], [columns[host] for host in shared]
    before = changes.Runs(baseline.values[old, then], baseline.spread[old, then], baseline.runs[old, then])
    after = changes.Runs(
        table.values[row, here], table.sd[row, here].astype(np.float64), table.runs[row, here].astype(np.float64)
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
        "{benchmark}: fewer than {least} repeats then or now on {hosts}, so no change can be told from chance.",
        benchmark=title(benchmark),
        least=changes.LEAST_RUNS,
        hosts=count(judged.too_few, "host"),
    )
    return findings, [few], judged.compared
