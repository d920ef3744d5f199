"""Compute scores over several runs as a benchmark's owner defines them: SPEC's geometric and MLPerf's olympic mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.planner.olympic import olympic_mean

_SAME = ["campaign", "host", "subject", "workload", "unit", "better", "class"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Define how one score is computed.

    ``geometric`` scores average ``metric`` over all ``cases``, using the median of each case's repeats. ``olympic``
    scores average the repeats of a case by MLPerf Training's rules. ``runs`` and ``dropped`` are as in
    ``olympic_mean``, for the benchmark with the case's name.
    """

    name: str
    metric: str
    mean: str
    cases: Sequence[str] = ()
    runs: Mapping[str, int] = field(default_factory=dict)
    _: KW_ONLY
    dropped: Mapping[str, int] = field(default_factory=dict)


def scores(measurements: pd.DataFrame, rules: Mapping[str, Sequence[Rule]]) -> pd.DataFrame:
    """Return one row per score if all of its parts passed, with the columns of ``measurements``.

    ``rules`` gives the scores of each workload. The case is the name of a geometric score, or the case that an olympic
    score covers. The metric is ``score``, or the score's name. ``raw`` is empty, since no file contains the score. A
    score with a missing part is omitted.
    """
    rows = [
        row
        for workload, workload_rules in rules.items()
        for rule in workload_rules
        for row in _MEANS[rule.mean](measurements[measurements["workload"] == workload], rule)
    ]
    return pd.DataFrame(rows, columns=measurements.columns)


def _geometric(rows: pd.DataFrame, rule: Rule) -> Iterator[dict[str, Any]]:
    """Return SPEC's score: the median run of each benchmark (the slower of two), then the mean over benchmarks."""
    parts = _counting(rows, rule.metric)
    parts = parts[parts["case"].isin(list(rule.cases)) & (parts["value"] > 0)]
    for _, group in parts.groupby(_SAME, sort=True):
        if set(group["case"]) == set(rule.cases):
            middle = [sorted(rows["value"].astype(float))[(len(rows) - 1) // 2] for _, rows in group.groupby("case")]
            yield _row(group.sort_values("repeat"), rule.name, "score", float(np.exp(np.log(middle).mean())))


def _olympic(rows: pd.DataFrame, rule: Rule) -> Iterator[dict[str, Any]]:
    """Return the olympic score. An invalid run did not converge, and the rules count one such run as the slowest."""
    lost = {
        key: set(group["repeat"]) for key, group in rows[rows["status"] == Status.INVALID].groupby(["host", "case"])
    }
    for _, group in _counting(rows, rule.metric).groupby([*_SAME, "case"], sort=True):
        if group["repeat"].duplicated().any():
            continue  # several runs in one repeat: which of them belong to the set is unknown
        first = group.iloc[0]
        time = dict(zip(group["repeat"], group["value"], strict=True))
        runs = sorted({*time, *lost.get((first["host"], first["case"]), ())})
        benchmark = str(first["case"]).rpartition("/")[2]
        result = olympic_mean(benchmark, [time.get(r) for r in runs], rule.runs, rule.dropped)
        if result.mean is not None:
            yield _row(group, str(first["case"]), rule.name, result.mean)


def _counting(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    return rows[(rows["metric"] == metric) & (rows["status"] == Status.PASSED)]


_MEANS = {"geometric": _geometric, "olympic": _olympic}


def _row(parts: pd.DataFrame, case: str, metric: str, value: float) -> dict[str, Any]:
    first = {str(name): value for name, value in parts.iloc[0].items()}
    standing = max(parts["standing"])  # a score is an estimate if one of its parts is
    return {**first, "case": case, "metric": metric, "labels": "{}", "value": value, "headline": True} | {
        "bits": False,
        "percent": False,
        "raw": "",
        "standing": standing,
    }
