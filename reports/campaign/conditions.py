"""What hosts and their accelerators were like while they measured, by side and workload: clock, heat, power, load."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from fleetmark.base.measurement import Status
from reports.campaign.view import View

_OF = ["generation", "workload"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A generation's hosts during a workload's runs; None where it is unknown.

    ``runs`` passed, of ``read`` of which samples were read. Over those: ``clock_hz`` and ``power_w`` (W) are medians of
    the runs' means, ``lowest_clock_hz``, ``hottest_c`` (°C) and ``steal`` (share of the machine) the worst samples of
    all. ``foreign_cores``: the most cores that others kept busy in any run, read or not. The same of accelerators:
    ``gpu_power_w`` of all those of a host, ``gpu_slowed`` the median of the runs' shares of samples, over all devices,
    in which power or heat held the clock down.
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
    """Every generation and workload with runs that passed; generation by generation, workloads as they stand in
    ``view``."""
    outcomes, extremes = view.results.outcomes, view.results.telemetry.extremes
    generation = {h: g or "" for h, g in view.generation.items()}
    passed = outcomes[(outcomes["status"] == Status.PASSED) & (outcomes["started"] != "")]
    if passed.empty:
        return ()
    own = passed[["workload", "foreign_cores"]].assign(generation=passed["host"].map(generation).astype("category"))
    runs = own.groupby(_OF, observed=True)["foreign_cores"].agg(["size", "max"])
    of = extremes.assign(generation=extremes["host"].map(generation))
    read = of.drop_duplicates([*_OF, "host", "case", "repeat"]).groupby(_OF).size()
    mean = of.groupby([*_OF, "column"])["mean"].median()
    low, high = of.groupby([*_OF, "column"])["min"].min(), of.groupby([*_OF, "column"])["max"].max()
    workloads = list(dict.fromkeys([*view.generational["workload"].unique(), *passed["workload"].unique()]))
    rows = []
    for side in view.generations:
        for workload in workloads:
            key = (side, workload)
            if key in runs.index:
                count, foreign = runs.loc[key, "size"], runs.loc[key, "max"]
                rows.append(
                    Condition(
                        *key,
                        int(count),
                        int(read.get(key, 0)),
                        _known(mean, (*key, "clock_hz_mean")),
                        _known(low, (*key, "clock_hz_min")),
                        _known(high, (*key, "temp_c_max")),
                        _known(mean, (*key, "power_w")),
                        _known(high, (*key, "cpu_steal")),
                        None if math.isnan(foreign) else float(foreign),
                        _known(mean, (*key, "gpu_clock_hz_mean")),
                        _known(low, (*key, "gpu_clock_hz_min")),
                        _known(high, (*key, "gpu_temp_c_max")),
                        _known(mean, (*key, "gpu_power_w")),
                        _known(mean, (*key, "gpu_slowed")),
                    )
                )
    return tuple(rows)


def _known(values: pd.Series, key: tuple[str, str, str]) -> float | None:
    return float(values[key]) if key in values.index else None
