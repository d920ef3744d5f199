"""Read the telemetry samples of a bounded number of runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Status
from fleetmark.record import replies
from fleetmark.record.archive import Archive
from fleetmark.record.results import EXTREME_COLUMNS, TELEMETRY_COLUMNS, Telemetry
from fleetmark.record.values import Values

MOST_RUNS = 300  # maximum runs whose samples are read, over all campaigns of a report
MOST_SAMPLES = 120  # maximum samples per column of a run
_MOST_BYTES = 64 << 20  # maximum size of all result.json files of a campaign
_PLAIN = ("cpu_busy", "cpu_steal", "clock_hz_mean", "clock_hz_min", "temp_c_max")
_DEVICES = (
    "gpu_power_w",
    "gpu_clock_hz_min",
    "gpu_clock_hz_mean",
    "gpu_temp_c_max",
    "gpu_memory_used_max",
    "gpu_slowed",
)
_Run = tuple[str, str, str, int]  # host, workload, case, repeat


def read(archive: Archive, outcomes: pd.DataFrame, values: Values, limit: int = MOST_RUNS) -> Telemetry:
    """Return the telemetry of at most ``limit`` passed runs of headline cases.

    The runs are spread evenly over the hosts of each workload. ``outcomes`` must have the column ``subject``.
    """
    if not (archive.path / "raw").is_dir():
        return Telemetry()
    runs = _of_headlines(outcomes, values)
    samples: list[tuple[Any, ...]] = []
    extremes: list[tuple[Any, ...]] = []
    damaged, read_, size = [], 0, 0
    for host, workload, case, repeat, subject in _spread(runs, limit):
        step = {"workload": workload, "case": case, "repeat": repeat, "subject": subject}
        folder = archive.raw_dir(host, step)
        file = folder / "result.json"
        if not os.path.lexists(file):
            continue
        try:
            size += file.stat().st_size
            if size > _MOST_BYTES:
                break
            telemetry = archive.telemetry(folder) or replies.StepTelemetry()
            run = (host, workload, case, repeat)
            rows, ends = _rows(run, _seconds(telemetry.samples), _columns(telemetry.samples), telemetry.summary)
            if devices := telemetry.gpus:
                of_devices = {name: devices.samples[name] for name in _DEVICES if name in devices.samples}
                device_rows, device_ends = _rows(run, _seconds(devices.samples), of_devices, {})
                rows, ends = rows + device_rows, ends + device_ends
        except (FleetmarkError, OSError, ValueError):
            damaged.append(str(file))
            continue
        samples += rows
        extremes += ends
        read_ += bool(ends)
    return Telemetry(
        pd.DataFrame(samples, columns=list(TELEMETRY_COLUMNS)) if samples else Telemetry().samples,
        pd.DataFrame(extremes, columns=list(EXTREME_COLUMNS)) if extremes else Telemetry().extremes,
        read_,
        len(runs),
        tuple(damaged),
    )


def together(parts: Sequence[Telemetry]) -> Telemetry:
    """Merge the telemetry of several campaigns."""
    return Telemetry(
        pd.concat([Telemetry().samples, *(p.samples for p in parts)], ignore_index=True),
        pd.concat([Telemetry().extremes, *(p.extremes for p in parts)], ignore_index=True),
        sum(p.read for p in parts),
        sum(p.available for p in parts),
        tuple(name for p in parts for name in p.damaged),
    )


def _of_headlines(outcomes: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the passed runs of the cases with a headline, or of all cases if none has one."""
    ran = outcomes[(outcomes["status"] == Status.PASSED) & (outcomes["started"] != "")]
    heads = values.distinct("workload", "case", condition="headline")
    cases = pd.MultiIndex.from_arrays([heads["workload"], heads["case"].str.split("/").str[0]])
    of_headlines = pd.MultiIndex.from_frame(ran[["workload", "case"]]).isin(cases)
    return ran[of_headlines] if of_headlines.any() else ran


def _spread(runs: pd.DataFrame, limit: int) -> Iterator[tuple[str, str, str, int, str]]:
    """Yield at most ``limit`` runs, equally many per workload, spread evenly over its hosts, cases and repeats."""
    columns = ["host", "workload", "case", "repeat", "subject"]
    order = runs.sort_values(["workload", "host", "case", "repeat", "subject"], kind="stable")[columns]
    share = max(1, limit // max(1, order["workload"].nunique()))
    for _, rows in order.groupby("workload", sort=True):
        picked = np.unique(np.linspace(0, len(rows) - 1, min(share, len(rows))).round().astype(int))
        yield from rows.iloc[picked].itertuples(index=False, name=None)


def _columns(samples: Mapping[str, Sequence[float | None]]) -> dict[str, Sequence[float | None]]:
    """Return the columns to show, with the host's power from its best source as ``power_w``."""
    columns = {name: samples[name] for name in _PLAIN if name in samples}
    power = {n.removeprefix("power_w:"): v for n, v in samples.items() if n.startswith("power_w:")}
    packages = [v for n, v in power.items() if n.startswith("package")]
    if total := power.get("power_meter") or power.get("psys"):
        columns["power_w"] = total
    elif packages:
        columns["power_w"] = [None if None in row else sum(row) for row in zip(*packages, strict=True)]
    return columns


def _seconds(samples: Mapping[str, Sequence[float | None]]) -> list[float]:
    return [t for t in samples.get("t", ()) if t is not None]


def _rows(
    run: _Run,
    seconds: Sequence[float],
    columns: Mapping[str, Sequence[float | None]],
    summary: Mapping[str, replies.Extremes],
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return some of a run's samples, and the extremes of each column, as sent by the host if available."""
    step = max(1, -(-len(seconds) // MOST_SAMPLES))
    samples, ends = [], []
    for name, values in columns.items():
        present = [float(v) for v in values if v is not None]
        if not present:
            continue
        extremes = summary.get(name) or replies.Extremes(
            min=min(present), mean=sum(present) / len(present), max=max(present)
        )
        ends.append((*run, name, extremes.min, extremes.mean, extremes.max))
        both = list(zip(seconds, values, strict=True))[::step]
        samples += [(*run, t, name, float(v)) for t, v in both if v is not None]
    return samples, ends
