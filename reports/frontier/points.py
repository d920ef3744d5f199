"""Find the points of frontiers among measurements, by side and machine, as manifests declare them."""

from __future__ import annotations

import fnmatch
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.base.text import message
from fleetmark.planner.frontier import EqualService, Point, equivalence
from fleetmark.planner.power import has_devices
from fleetmark.record.results import HostInfo
from fleetmark.record.sides.amounts import positive
from fleetmark.reports.frontier import amounts
from fleetmark.workloads import declared
from fleetmark.workloads.manifest import Frontier

LEAST = 2  # minimum points of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of loads on all machines: the cases that share ``kind``, the common part of their names.

    - ``name``: ``kind`` with the labels
    - ``sides``: the points of each machine, by side
    - ``per_device``: whether work is per accelerator instead of per server
    - ``prices``: the hourly price of such a unit and its currency, by side
    - ``provisioned``: the provisioned power of a unit in W, by machine
    - ``sources``: the sources of the measured power
    - ``sizes``: the number of accelerators that a machine's price covers: its label ``gpus``, otherwise the most that a
      load used; empty unless ``per_device``
    - ``quality``: the quality metrics of the answers on the worst machine of each side
    """

    workload: str
    kind: str
    name: str
    frontier: Frontier
    sides: Mapping[str, Mapping[str, tuple[Point, ...]]]
    per_device: bool
    prices: Mapping[str, tuple[float, str]]
    provisioned: Mapping[str, float]
    sources: tuple[str, ...]
    sizes: Mapping[str, float]
    quality: Mapping[str, Mapping[str, float]]

    def equal_service(self, baseline: str, candidate: str, speed: float) -> EqualService:
        """Return how many ``baseline`` units one ``candidate`` unit replaces at a per-user speed of ``speed``.

        There is no ratio if the answers of ``candidate`` are worse than the manifest allows.
        """
        if reason := self._worse(self.quality.get(baseline, {}), self.quality.get(candidate, {})):
            return EqualService(speed=speed, reason=reason)
        return equivalence(self.sides[baseline], self.sides[candidate], speed, self.frontier.max_wait or None)

    def _worse(self, baseline: Mapping[str, float], candidate: Mapping[str, float]) -> str:
        for metric, bound in self.frontier.differences.items():
            if metric in baseline and metric not in candidate:
                return message("not equivalent: the candidate has no {metric}, which the baseline has", metric=metric)
            if candidate.get(metric, 0.0) > baseline.get(metric, 0.0) + bound:
                return _are_worse(metric, baseline.get(metric, 0.0), candidate[metric])
        for metric, bound in self.frontier.quality.items():
            old, new = baseline.get(metric), candidate.get(metric)
            if old is None or new is None:
                continue
            if new > old * (1 + bound) if declared.lower_is_better(self.workload, metric) else new < old * (1 - bound):
                return _are_worse(metric, old, new)
        return ""


def _are_worse(metric: str, old: float, new: float) -> str:
    values = {"metric": metric, "old": f"{old:.3g}", "new": f"{new:.3g}"}
    return message("not equivalent: answers are worse ({metric} {new}, baseline {old})", **values)


def families(frame: pd.DataFrame, hosts: Sequence[HostInfo], only: Collection[str] | None = None) -> list[Family]:
    """Return every family with a line on some machine. ``frame``: measurements. ``only``: the workloads to include."""
    frame = frame[frame["status"] == Status.PASSED.value]
    frame = frame if only is None else frame[frame["workload"].isin(list(only))]
    listed = []
    for workload in sorted(map(str, frame["workload"].unique())):
        frontier = declared.frontier(workload)
        if frontier is not None:
            size = declared.devices(workload)
            mine = frame[frame["workload"] == workload]
            mine = mine[(mine["value"] > 0) | mine["metric"].isin(frontier.answers)]  # no answer may be right
            rows = _rows(mine, frontier, size)
            listed += [f for part in _apart(rows, frontier) if (f := _family(hosts, frontier, size, part))]
    return listed


def metrics_of(workload: str) -> set[str]:
    """Return the metrics that form a workload's frontier; empty if it has none."""
    frontier = declared.frontier(workload)
    if frontier is None:
        return set()
    size = declared.devices(workload)
    return {m for m in (frontier.work, frontier.speed, frontier.wait, size, *_powers(frontier), *frontier.answers) if m}


def _apart(rows: pd.DataFrame, frontier: Frontier) -> Iterator[pd.DataFrame]:
    """Yield the rows of each family, with the power of its runs."""
    drawn = rows["metric"].isin(_powers(frontier))
    power = rows[drawn]
    for (name, _), part in rows[~drawn].groupby(["family", "point_labels"]):
        yield pd.concat([part, power[power["family"] == name]])


def _powers(frontier: Frontier) -> list[str]:
    return [m for m in (frontier.power, frontier.devices_power) if m]


def _rows(frame: pd.DataFrame, frontier: Frontier, size: str) -> pd.DataFrame:
    """Return the rows of a frontier's metrics and its ``size``, with the family and machine of each row."""
    metrics = metrics_of(str(frame["workload"].iloc[0])) if len(frame) else set()
    cases = {c: re.sub(frontier.each, "", c) for c in map(str, frame["case"].unique()) if _is_one(c, frontier)}
    rows = frame[frame["metric"].isin(list(metrics)) & frame["case"].isin(list(cases))]
    subjects = rows["subject"].astype(str)
    served = subjects.map(lambda subject: subject.partition(">")[2])  # the serving host of a pair, or empty
    labels, drawn = rows["labels"].astype(str), rows["metric"].isin(_powers(frontier))
    return pd.DataFrame(
        {
            "workload": rows["workload"].astype(str),
            "family": rows["case"].astype(str).map(cases),
            "case": rows["case"].astype(str),
            "point_labels": labels.where(~drawn, ""),
            "source": labels.map(lambda text: _labels(text).get("source", "")).where(drawn, ""),
            "metric": rows["metric"].astype(str),
            "host": rows["host"].astype(str),
            "machine": served.where(served != "", rows["host"].astype(str)),  # for a pair of hosts, the one that serves
            "value": rows["value"],
        }
    )


def _is_one(case: str, frontier: Frontier) -> bool:
    return any(fnmatch.fnmatchcase(case, pattern) for pattern in frontier.cases)


def _family(hosts: Sequence[HostInfo], frontier: Frontier, size: str, rows: pd.DataFrame) -> Family | None:
    name, labels = str(rows["family"].iloc[0]), str(rows["point_labels"].iloc[0])
    drawn = {str(m): _drawn(group, frontier) for m, group in rows.groupby("machine")}
    measured = {str(m): list(_points(group, frontier, size, drawn[str(m)][0])) for m, group in rows.groupby("machine")}
    generation = {h.name: h.generation or "" for h in hosts}
    labelled = {h.name: positive(h.labels.get("gpus")) for h in hosts}  # accelerators by machine, from labels
    points = {m: [(point, used or labelled.get(m)) for point, used in group] for m, group in measured.items()}
    sized = bool(size) and all(devices for group in points.values() for _, devices in group)
    sides: dict[str, dict[str, tuple[Point, ...]]] = {}
    for machine, group in points.items():
        if len(group) >= LEAST and machine in generation:
            per_unit = tuple(_shared(point, devices) if sized else point for point, devices in group)
            sides.setdefault(generation[machine], {})[machine] = per_unit
    if not sides:
        return None
    sizes = {m: labelled.get(m) or _largest(group) for m, group in points.items()} if sized else {}
    members = {side: [h for h in hosts if h.name in group] for side, group in sides.items()}
    prices = {side: price for side, group in members.items() if (price := amounts.price(group, sizes)) is not None}
    provisioned = amounts.provisioned([h for group in members.values() for h in group], sizes)
    sources = {source for m in drawn if any(m in group for group in sides.values()) for source in drawn[m][1]}
    shown = " ".join([name, *(f"{k}={v}" for k, v in _labels(labels).items())])
    workload = str(rows["workload"].iloc[0])
    return Family(
        workload=workload,
        kind=name,
        name=shown,
        frontier=frontier,
        sides=sides,
        per_device=sized,
        prices=prices,
        provisioned=provisioned,
        sources=tuple(sorted(sources)),
        sizes=sizes,
        quality={side: _quality(rows[rows["machine"].isin(list(group))], frontier) for side, group in sides.items()},
    )


def _largest(points: Sequence[tuple[Point, float | None]]) -> float:
    """Return the largest number of devices that a point used."""
    return max((devices or 1.0 for _, devices in points), default=1.0)


def _quality(rows: pd.DataFrame, frontier: Frontier) -> dict[str, float]:
    """Return the quality metrics: the median of each machine's repeats, then the worst machine's median."""
    middle = rows[rows["metric"].isin(frontier.answers)].groupby(["metric", "machine"])["value"].median()
    workload = str(rows["workload"].iloc[0])
    return {
        str(metric): float(values.max() if declared.lower_is_better(workload, str(metric)) else values.min())
        for metric, values in middle.groupby(level="metric")
    }


def _labels(text: str) -> dict[str, str]:
    try:
        doc = json.loads(text)
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in doc.items()} if isinstance(doc, dict) else {}


def _drawn(rows: pd.DataFrame, frontier: Frontier) -> tuple[dict[str, float], set[str]]:
    """Return the power in W that a machine drew by case, and the sources of the measurement.

    The power is that of the whole server, or else of its processors and devices.
    """
    watts: dict[str, float] = {}
    sources: set[str] = set()
    for case, group in rows[rows["metric"].isin(_powers(frontier))].groupby("case"):
        parts = {str(metric): part for metric, part in group.groupby("metric")}
        host = parts.get(frontier.power)
        complete = host is not None and has_devices(set(host["source"]))
        counted = [host] if complete else [part for part in parts.values() if part is not None]
        watts[str(case)] = sum(float(part["value"].median()) for part in counted if part is not None)
        sources |= {str(s) for part in counted if part is not None for s in part["source"] if s}
    return watts, sources


def _points(
    rows: pd.DataFrame, frontier: Frontier, size: str, watts: Mapping[str, float]
) -> Iterator[tuple[Point, float | None]]:
    """Return a machine's points with the number of devices of each. A figure is the median of its repeats."""
    middle = rows[~rows["metric"].isin(_powers(frontier))].groupby(["case", "metric"])["value"].median()
    for case in sorted(set(middle.index.get_level_values("case"))):
        figures = middle[case].to_dict()
        work, speed = figures.get(frontier.work), figures.get(frontier.speed)
        if work and speed and math.isfinite(work) and math.isfinite(speed):
            yield Point(str(case), speed, work, figures.get(frontier.wait), watts.get(str(case))), figures.get(size)


def _shared(point: Point, used: float | None) -> Point:
    """Return a point with its work and power divided by the number of devices that it used."""
    devices = used or 1.0
    power = point.power / devices if point.power else None
    return Point(point.name, point.speed, point.work / devices, point.wait, power)
