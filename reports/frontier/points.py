"""The points of frontiers among measurements: side by side, machine by machine, as manifests declare them."""

from __future__ import annotations

import fnmatch
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.record.results import Results
from planner.frontier import Point
from workloads import declared
from workloads.manifest import Frontier

LEAST = 2  # points of a line
_HOURS = ("h", "hour", "hourly", "1h")


@dataclass(frozen=True, slots=True)
class Family:
    """Loads of one kind on all machines. ``sides``: a side's name to its machines' points; ``per_device``: work is that
    of one device, else of a server; ``prices``: a side's price of that unit an hour, with its currency.
    """

    workload: str
    name: str
    about: Frontier
    sides: Mapping[str, Mapping[str, tuple[Point, ...]]]
    per_device: bool
    prices: Mapping[str, tuple[float, str]]


def families(results: Results) -> list[Family]:
    """Every family of which some machine has a line."""
    frame = results.measurements
    frame = frame[(frame["status"] == Status.PASSED.value) & (frame["value"] > 0)]
    listed = []
    for workload in sorted(map(str, frame["workload"].unique())):
        about = declared.frontier(workload)
        if about is not None:
            rows = _rows(frame[frame["workload"] == workload], about)
            listed += [f for of in _apart(rows, about) if (f := _family(results, about, of))]
    return listed


def _apart(rows: pd.DataFrame, about: Frontier) -> Iterator[pd.DataFrame]:
    """The rows of each family, with the power of its runs on the machines that had all of them to themselves."""
    power = rows[(rows["metric"] == about.power) & rows["local"]]
    for (name, _), of in rows[rows["metric"] != about.power].groupby(["family", "point_labels"]):
        yield pd.concat([of, power[power["family"] == name]])


def _rows(frame: pd.DataFrame, about: Frontier) -> pd.DataFrame:
    """The rows of a frontier's metrics, with the family and machine that each is of."""
    metrics = [m for m in (about.work, about.speed, about.wait, about.size, about.power) if m]
    cases = {c: re.sub(about.each, "", c) for c in map(str, frame["case"].unique()) if _is_one(c, about)}
    rows = frame[frame["metric"].isin(metrics) & frame["case"].isin(list(cases))]
    subjects = rows["subject"].astype(str)
    served = subjects.str.partition(">")[2]
    labels = rows["labels"].astype(str).where(rows["metric"] != about.power, "")
    return pd.DataFrame(
        {
            "workload": rows["workload"].astype(str),
            "family": rows["case"].astype(str).map(cases),
            "case": rows["case"].astype(str),
            "point_labels": labels,
            "metric": rows["metric"].astype(str),
            "host": rows["host"].astype(str),
            "machine": served.where(served != "", rows["host"].astype(str)),  # of a pair, the one that serves
            "local": served == "",
            "value": rows["value"],
        }
    )


def _is_one(case: str, about: Frontier) -> bool:
    return any(fnmatch.fnmatchcase(case, pattern) for pattern in about.cases)


def _family(results: Results, about: Frontier, rows: pd.DataFrame) -> Family | None:
    name, labels = str(rows["family"].iloc[0]), str(rows["point_labels"].iloc[0])
    points = {str(m): list(_points(of, about)) for m, of in rows.groupby("machine")}
    sized = bool(about.size) and all(size for of in points.values() for _, size in of)
    generation = {h.name: h.generation or "" for h in results.hosts}
    sides: dict[str, dict[str, tuple[Point, ...]]] = {}
    for machine, of in points.items():
        if len(of) >= LEAST and machine in generation:
            per_unit = tuple(_shared(point, size) if sized else point for point, size in of)
            sides.setdefault(generation[machine], {})[machine] = per_unit
    if not sides:
        return None
    sizes = {m: max((s or 1.0 for _, s in of), default=1.0) for m, of in points.items()}
    prices = {
        side: price for side in sides if (price := _price(results, sides[side], sizes if sized else {})) is not None
    }
    shown = " ".join([name, *(f"{k}={v}" for k, v in _labels(labels).items())])
    return Family(str(rows["workload"].iloc[0]), shown, about, sides, sized, prices)


def _labels(text: str) -> dict[str, str]:
    try:
        doc = json.loads(text)
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in doc.items()} if isinstance(doc, dict) else {}


def _points(rows: pd.DataFrame, about: Frontier) -> Iterator[tuple[Point, float | None]]:
    """A machine's points with the devices that each took; a figure is the median of its repeats."""
    middle = rows.groupby(["case", "metric"])["value"].median()
    for case in sorted(rows["case"].unique()):
        of = middle[case].to_dict()
        work, speed = of.get(about.work), of.get(about.speed)
        if work and speed and math.isfinite(work) and math.isfinite(speed):
            yield Point(str(case), speed, work, of.get(about.wait), of.get(about.power)), of.get(about.size)


def _shared(point: Point, size: float | None) -> Point:
    """A point's work and power, shared out over its devices."""
    devices = size or 1.0
    power = point.power / devices if point.power else None
    return Point(point.name, point.speed, point.work / devices, point.wait, power)


def _price(results: Results, machines: Mapping[str, object], sizes: Mapping[str, float]) -> tuple[float, str] | None:
    """The mean price of one unit an hour, where every machine of a side says it, in one currency."""
    labels = [h.labels for h in results.hosts if h.name in machines]
    currencies = {own.get("currency", "") for own in labels}
    if not labels or len(currencies) != 1 or "" in currencies or any(own.get("term") not in _HOURS for own in labels):
        return None
    each = []
    for host in (h for h in results.hosts if h.name in machines):
        try:
            price = float(host.labels.get("price", ""))
        except ValueError:
            return None
        if not (math.isfinite(price) and price > 0):
            return None
        each.append(price / sizes.get(host.name, 1.0))
    return sum(each) / len(each), currencies.pop()
