"""Arrange the figures of single hosts as matrices, to compare hosts with each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from fleetmark.base import schema
from fleetmark.base.measurement import Better, Centre
from fleetmark.planner.diagnosis import outliers
from fleetmark.record.figures import Figures

BENCHMARK = (*schema.KEY, "better", "class")
_NAMED = 6  # maximum hosts in a sentence


class Table:
    """Store figures of single hosts as matrices of benchmarks x hosts.

    ``values``: oriented logarithms (higher is better); ``deficit``: the smallest deficit that matters, by benchmark.
    ``least`` overrides it, by class of metrics ("": every class).
    """

    def __init__(self, measured: Figures, hosts: Sequence[str], least: Mapping[str, float] | None = None) -> None:
        self.measured = measured
        keys = measured.keys
        between = keys["subject"].str.contains(">", regex=False).to_numpy(bool)
        single = ~between & (keys["members"] == "").to_numpy(bool)
        self.place = {host: n for n, host in enumerate(hosts)}
        self.hosts = list(hosts)
        self.keys = np.flatnonzero(single)  # the benchmark of each row
        self.metrics = keys.iloc[self.keys]
        self._names = list(zip(*(self.metrics[name].astype(str) for name in BENCHMARK), strict=True))
        row_of = np.full(len(keys), -1)
        row_of[self.keys] = range(len(self.keys))
        rows = measured.rows
        row, column = row_of[rows["key"].to_numpy(int)], rows["record"].to_numpy(int)
        chosen = row >= 0
        if not chosen.all():
            row, column, rows = row[chosen], column[chosen], rows[chosen]
        sign = np.where(self.metrics["better"] == Better.LOWER.value, -1.0, 1.0)
        shape = (len(self.keys), len(hosts))
        self.sign = sign
        self.values = np.full(shape, np.nan)
        self.values[row, column] = rows["log"].to_numpy() * sign[row]
        self.runs = np.zeros(shape, dtype=np.int32)
        self.runs[row, column] = rows["n"].to_numpy()
        self.sd = np.full(shape, np.nan, dtype=np.float32)
        self.sd[row, column] = rows["log_sd"].to_numpy()
        tailed = (self.metrics["rule"] == Centre.MEDIAN.value).to_numpy(bool)  # storage and network
        self.deficit = np.where(tailed, outliers.LARGE, outliers.SMALL)
        if least:
            classes = self.metrics["class"].astype(str)
            wanted = [least.get(name, least.get("")) for name in classes]
            self.deficit = np.array([d if w is None else w for w, d in zip(wanted, self.deficit, strict=True)])

    def errors(self, columns: np.ndarray) -> np.ndarray:
        """Return the standard error of each value: the median spread of runs over the square root of their number."""
        with np.errstate(invalid="ignore"):
            known = ~np.isnan(self.sd[:, columns]).all(axis=1)
        usual = np.full(len(self.values), np.nan)
        if known.any():
            usual[known] = np.nanmedian(self.sd[np.ix_(known, columns)], axis=1)
        return usual[:, None] / np.sqrt(np.maximum(self.runs[:, columns], 1))

    def repeats(self, columns: np.ndarray) -> outliers.Repeats:
        """Return the number and spread of each value's repeats."""
        return outliers.Repeats(self.runs[:, columns].astype(np.int64), self.sd[:, columns].astype(np.float64))

    def benchmark(self, row: int) -> dict[str, str]:
        return dict(zip(BENCHMARK, self._names[row], strict=True))

    def value(self, row: int, oriented: float) -> float:
        """Return an oriented logarithm as a value in the base unit."""
        return float(np.exp(oriented * self.sign[row]))


def title(benchmark: Mapping[str, str]) -> str:
    """Return a benchmark in one line: workload, case, metric, subject and labels."""
    labels = " ".join(f"{k}={v}" for k, v in json.loads(benchmark["labels"]).items())
    subject = benchmark["subject"] if benchmark["subject"] != "host" else ""
    return " ".join(p for p in (*(benchmark[k] for k in ("workload", "case", "metric")), subject, labels) if p)


def some(names: Sequence[str], limit: int = _NAMED) -> str:
    """Return the first of ``names``, with an ellipsis if there are more."""
    return ", ".join(names[:limit]) + (", …" if len(names) > limit else "")
