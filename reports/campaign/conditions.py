"""Summarise the conditions of hosts and accelerators during measurements: clock, heat, power and load by workload."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from fleetmark.base.measurement import Status
from fleetmark.record.results import EXTREME_COLUMNS
from fleetmark.reports.campaign.view import View

_OF = ["generation", "workload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Summarise the state of a generation's hosts during a workload's runs; None where it is unknown.

    ``runs``: the number of passed runs. ``read``: how many of them have readable samples. ``clock_hz`` and ``power_w``
    (W): medians of the runs' means. ``lowest_clock_hz``, ``hottest_c`` (°C) and ``steal`` (share of the machine): the
    worst of all samples. ``foreign_cores``: the most cores that other processes used in any run, whether its samples
    were read or not. ``gpu_power_w``: the power of all accelerators of a host. ``gpu_slowed``: the median over the runs
    of the share of samples, over all devices, in which power or heat limited the clock.
    """

    generation: str
    workload: str
    runs: int
    read: int
    clock_hz: float | None
    lowest_clock_hz: float | None
    hottest_c: float | None
    power_w: float | None
    steal: float | None
    foreign_cores: float | None
    gpu_clock_hz: float | None = None
    gpu_lowest_clock_hz: float | None = None
    gpu_hottest_c: float | None = None
    gpu_power_w: float | None = None
    gpu_slowed: float | None = None


def conditions(view: View) -> tuple[Condition, ...]:
    """Return the conditions of every generation and workload with passed runs.

    Generations come one after another; workloads have the same order as in ``view``.
    """
    outcomes, extremes = view.results.outcomes, view.results.telemetry.extremes
    generation = {h: g or "" for h, g in view.generation.items()}
    passed = outcomes[((outcomes["status"] == Status.PASSED) & (outcomes["started"] != "")).to_numpy()]
    sides = [generation.get(host, "") for host in passed["host"]]
    grouped = passed[["workload", "foreign_cores"]].assign(generation=sides)
    runs = {
        key: (len(rows), float(np.fmax.reduce(rows["foreign_cores"])))
        for key, rows in grouped.groupby(_OF, sort=False, observed=True)
    }
    read: dict[tuple[str, str], set[tuple[Any, ...]]] = defaultdict(set)
    samples: dict[tuple[str, str, str], list[tuple[float, ...]]] = defaultdict(list)
    for host, workload, case, repeat, column, *ends in extremes[[*EXTREME_COLUMNS]].itertuples(index=False):
        if host in generation:
            read[generation[host], workload].add((host, case, repeat))
            samples[generation[host], workload, column].append(tuple(ends))
    low = {key: float(np.nanmin([ends[0] for ends in listed])) for key, listed in samples.items()}
    mean = {key: float(np.nanmedian([ends[1] for ends in listed])) for key, listed in samples.items()}
    high = {key: float(np.nanmax([ends[2] for ends in listed])) for key, listed in samples.items()}
    workloads = dict.fromkeys(w for frame in (view.generational, passed) for w in frame["workload"].unique())
    keys = [key for side in view.generations for workload in workloads if (key := (side, workload)) in runs]
    return tuple(
        Condition(
            generation=key[0],
            workload=key[1],
            runs=runs[key][0],
            read=len(read[key]),
            clock_hz=mean.get((*key, "clock_hz_mean")),
            lowest_clock_hz=low.get((*key, "clock_hz_min")),
            hottest_c=high.get((*key, "temp_c_max")),
            power_w=mean.get((*key, "power_w")),
            steal=high.get((*key, "cpu_steal")),
            foreign_cores=None if math.isnan(runs[key][1]) else runs[key][1],
            gpu_clock_hz=mean.get((*key, "gpu_clock_hz_mean")),
            gpu_lowest_clock_hz=low.get((*key, "gpu_clock_hz_min")),
            gpu_hottest_c=high.get((*key, "gpu_temp_c_max")),
            gpu_power_w=mean.get((*key, "gpu_power_w")),
            gpu_slowed=mean.get((*key, "gpu_slowed")),
        )
        for key in keys
    )
