"""Read cases that several hosts ran together: the groups, their rates, and the failed runs."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Status
from fleetmark.planner.diagnosis.isolation.panel import Group
from fleetmark.record.archive import Archive
from fleetmark.record.values import PASSED
from fleetmark.record.values.engine import literal
from fleetmark.record.view import read_values
from fleetmark.workloads import load

FAILED = float("-inf")
BROKEN = (Status.FAILED.value, Status.LOST.value, Status.INVALID.value)


def groups(archive: Archive) -> dict[tuple[str, str], dict[tuple[str, str], tuple[str, ...]]]:
    """Return the groups of each (workload, case): the first host and the subject of its steps, with all members."""
    cases: dict[tuple[str, str], dict[tuple[str, str], tuple[str, ...]]] = {}
    for host in archive.host_names():
        for step in (archive.job(host) or {"steps": []})["steps"]:
            if members := tuple(step.get("members") or ()):
                cases.setdefault((step["workload"], step["case"]), {})[host, step["subject"]] = members
    return cases


def repeats(archive: Archive, workload: str, case: str) -> int:
    """Return the number of planned repeats of the case."""
    leads = {host for host, _ in groups(archive).get((workload, case), {})}
    steps = (step for host in leads for step in (archive.job(host) or {"steps": []})["steps"])
    return 1 + max((int(s["repeat"]) for s in steps if (s["workload"], s["case"]) == (workload, case)), default=0)


def metric_of(archive: Archive, workload: str, case: str, metric: str) -> str:
    """Return ``metric``, or the first measured metric if it is empty; headlines come first.

    For a case that always failed, return a headline of its workload. Raise FleetmarkError if no group measured it.
    """
    condition = f"{_is_of(workload, case)} and better <> '{Better.NONE}'"
    names = read_values(archive).distinct("metric", "headline", condition=condition)
    ranked = names.sort_values("headline", ascending=False, kind="stable")["metric"]
    measured = list(dict.fromkeys(map(str, ranked))) or [n for n, m in load(workload).metrics.items() if m.headline]
    if not metric and measured:
        return measured[0]
    if metric not in measured:
        listed = ", ".join(measured) or "none"
        raise FleetmarkError(
            f"--isolate {workload}/{case}: no group of {archive.id} measured {metric!r}; there is {listed}"
        )
    return metric


def rates(archive: Archive, workload: str, case: str, metric: str) -> dict[Group, list[float]]:
    """Return an oriented logarithm for each repeat of each group; FAILED for a failed repeat."""
    rows = _rows(archive, workload, case, metric)
    leads = groups(archive).get((workload, case), {})
    result: dict[Group, list[float]] = {frozenset(members): [] for members in leads.values()}
    for members, _, value in _per_repeat(rows[rows["members"] != ""], "members"):
        result.setdefault(frozenset(json.loads(members)), []).append(value)
    for host, subject in _broken(archive, workload, case):
        if (host, subject) in leads:
            result[frozenset(leads[host, subject])].append(FAILED)
    return {group: values for group, values in result.items() if values}


def alone(archive: Archive, workload: str, case: str, metric: str) -> dict[str, float]:
    """Return an oriented logarithm for each host that ran the case alone; FAILED if it failed."""
    rows = _rows(archive, workload, case, metric)
    values: dict[str, list[float]] = {}
    for host, _, value in _per_repeat(rows[rows["members"] == ""], "host"):
        values.setdefault(host, []).append(value)
    result = {host: float(np.median(logs)) for host, logs in values.items()}
    return result | dict.fromkeys((host for host, _ in _broken(archive, workload, case)), FAILED)


def _rows(archive: Archive, workload: str, case: str, metric: str) -> pd.DataFrame:
    condition = f"{_is_of(workload, case)} and metric = {literal(metric)} and {PASSED} and value > 0"
    rows = read_values(archive).select(condition)
    sign = np.where(rows["better"] == Better.LOWER.value, -1.0, 1.0)
    return rows.assign(log=np.log(rows["value"].to_numpy(float)) * sign, members=rows["members"].astype(str))


def _is_of(workload: str, case: str) -> str:
    """Return the SQL condition that selects the values of a case."""
    return f'workload = {literal(workload)} and "case" = {literal(case)}'


def _per_repeat(rows: pd.DataFrame, column: str) -> list[tuple[str, int, float]]:
    """Return the mean over the labels of each repeat."""
    means = rows.groupby([rows[column].astype(str), "repeat"], sort=True)["log"].mean()
    return [(str(key), int(repeat), float(value)) for (key, repeat), value in zip(means.index, means, strict=True)]


def _broken(archive: Archive, workload: str, case: str) -> list[tuple[str, str]]:
    """Return the host and subject of the runs that ended without a result."""
    last = {
        (str(e["host"]), str(e["subject"]), e["repeat"]): e["status"]
        for e in archive.journal()
        if e["e"] == "outcome" and (e["workload"], e["case"]) == (workload, case)
    }
    return [(host, subject) for (host, subject, _), status in last.items() if status in BROKEN]
