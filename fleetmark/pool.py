"""Measurements of many campaigns and imported tables as host means, one side of a comparison at a time."""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fleetmark import importing, readings
from fleetmark.archive import Archive, campaigns, safe_name
from fleetmark.facts import Facts
from fleetmark.model import Better, FleetmarkError
from fleetmark.selection import Machine
from planner.comparison import Side

HEAVY_TAILED = ("disk", "net")  # classes whose runs are summarised by their median
# Labels that a reader must know where the sides differ in them: of imported tables, and of prices.
TRAITS = ("round", "division", "availability", "precision", "accelerators", "currency", "price_date", "term")
CURVE = 4  # sizes from which on a metric is a curve


def machines(root: Path) -> list[Machine]:
    """Every host of every campaign under ``root``, and every machine of the tables imported there."""
    found = []
    for archive in campaigns(root):
        asked = archive.campaign()
        for host in asked["hosts"]:
            labels = {**host["labels"], **asked.get("labels", {})}
            found.append(Machine(archive.id, host["name"], labels, _facts_of(archive, host["name"])))
    return found + importing.machines(root)


def _facts_of(archive: Archive, host: str) -> Any:
    @cache
    def read() -> Facts | None:
        file = archive.path / "facts" / f"{safe_name(host)}.json"
        return Facts.model_validate(json.loads(file.read_text())["facts"]) if file.exists() else None

    return read


def side(
    root: Path,
    title: str,
    chosen: Sequence[Machine],
    *,
    only: Sequence[str] = (),
    per: str = "server",
    by: str = "host",
    best: bool = False,
) -> Side:
    """The figures of the ``chosen`` machines; ``only``: shell-style patterns over ``workload/case/metric``, which
    reach all metrics; without, headlines are compared. Machines that share a value of ``by`` count as one host;
    ``best``: the side is one host that has the best figure of them all for each benchmark.

    A machine that several campaigns measured counts once: its mean over them. Raises FleetmarkError where nothing is
    measured, ``only`` matches nothing, or a machine does not say how much it has of what ``per`` divides by.
    """
    names = sorted({m.campaign for m in chosen})
    files = {name: path for name in names if (path := root / name / "measurements.parquet").exists()}
    if not files:
        raise FleetmarkError(f"{', '.join(names[:4])}: nothing measured; `fleetmark run --resume` goes on with one")
    found = readings.read(files, [(m.campaign, m.host) for m in chosen], headlines=not only)
    keys = found.keys
    values = readings.means(found, HEAVY_TAILED)
    if only:
        titles = keys["workload"] + "/" + keys["case"] + "/" + keys["metric"]
        keys = keys[titles.map(lambda t: _wanted(t, only))]
        values = values[values["key"].isin(keys.index)]
        if keys.empty:
            raise FleetmarkError(f"--only {','.join(only)} matches no benchmark; there are {_some(titles)}")
    notes = [
        f"{workload} {case}: {count} {'value' if count == 1 else 'values'} of {metric} left out: {why}"
        for (workload, case, metric, why), count in sorted(found.left_out.items())
        if _wanted(f"{workload}/{case}/{metric}", only)
    ]
    means, benchmarks = _titled(values, keys, [_host(m, by) for m in chosen])
    if best:
        means = pd.DataFrame([means.max()], [f"best of {len(means)}"])
    drawn = _power(files, chosen) if per == "watt" else {}
    amounts = {m.host: _amount(m, per, drawn) for m in chosen if m.host in means.index} if per != "server" else {}
    worked = set(zip(benchmarks["workload"], benchmarks["case"], strict=True))
    failed = {f"{w} {c}": why for w, c, _, why in found.left_out if (w, c) not in worked}
    return Side(title, means, benchmarks, amounts, _traits(chosen), notes, failed)


def _host(machine: Machine, by: str) -> str:
    found = machine.values(by)
    if len(found) != 1:
        says = f"has {', '.join(found)}" if found else "does not say"
        raise FleetmarkError(
            f"--by {by}: {machine.host} ({machine.campaign}) {says}; it takes one value of each machine"
        )
    return found[0]


def _wanted(title: str, only: Sequence[str]) -> bool:
    return not only or any(fnmatch.fnmatchcase(title, p) for p in only)


# What can be divided by: where it stands among facts or labels, and how it is read there.
_PER: Mapping[str, Callable[[Machine, Facts | None], float | None]] = {
    "socket": lambda m, f: f.cpu.sockets if f else None,
    "core": lambda m, f: f.cpu.cores if f else _positive(m.labels.get("cores")),
    "thread": lambda m, f: f.cpu.threads if f else None,
    "gpu": lambda m, f: len(f.gpus) if f and f.gpus else _positive(m.labels.get("gpus")),
    "watt": lambda m, f: _positive(m.labels.get("watts")),
    "money": lambda m, f: _positive(m.labels.get("price")) if m.labels.get("currency") else None,
}
PER = ("server", *_PER)
_HINTS = {
    "watt": "no power was measured during its runs; give it the label watts, from a meter, in the inventory",
    "money": "give it the labels price and currency (and price_date, term) in the inventory",
    "gpu": "its facts show none; give it the label gpus in the inventory",
}


def _amount(machine: Machine, per: str, drawn: Mapping[str, float]) -> float:
    found = _PER[per](machine, machine.facts()) or drawn.get(machine.host)
    if not found:
        hint = _HINTS.get(per, "its facts do not tell")
        raise FleetmarkError(f"--per {per}: {machine.host} ({machine.campaign}) does not say how much it has: {hint}")
    return float(found)


def _power(files: Mapping[str, Path], chosen: Sequence[Machine]) -> dict[str, float]:
    """What each machine drew during its runs, in W: the geometric mean over them."""
    found = readings.read(files, [(m.campaign, m.host) for m in chosen], headlines=False)
    power = (found.keys["metric"] == "power").to_numpy()
    rows = power[found.key] if len(found.keys) else np.empty(0, bool)
    hosts = np.array([m.host for m in chosen])[found.record[rows]]
    return {str(h): float(np.exp(v)) for h, v in pd.Series(found.log[rows]).groupby(hosts).mean().items()}


def _positive(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value > 0 else None


def _traits(chosen: Sequence[Machine]) -> dict[str, list[str]]:
    found = {key: sorted({v for m in chosen if key in m.labels for v in m.labels[key].split("+")}) for key in TRAITS}
    return {key: values for key, values in found.items() if values}


def _titled(values: pd.DataFrame, keys: pd.DataFrame, hosts: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Values as a matrix under titles that hosts of other kinds share, and what stands behind each title.

    Sizes that follow from a host's own (twice its cache, the end of a curve) would keep generations apart: where a
    host has one size of a thing, or a whole curve, its largest size goes by the thing's name alone.
    """
    size = pd.Series({i: _size(text) for i, text in keys["labels"].items()}, dtype=float)
    rest = keys.assign(labels=[_label(text, size=False) for text in keys["labels"]])
    full = {i: _title(k, k["labels"]) for i, k in keys.to_dict("index").items()}
    bare = {i: _title(k, k["labels"]) for i, k in rest.to_dict("index").items()}
    names = sorted({*full.values(), *bare.values()})
    column = {name: n for n, name in enumerate(names)}
    values = values.assign(column=values["key"].map({i: column[full[i]] for i in full}))
    sized = values["key"].map(size).notna()
    if sized.any():
        line = rest.groupby([c for c in rest.columns if c != "standing"], sort=False).ngroup()
        rows = values[sized].assign(size=values["key"].map(size), line=values["key"].map(line))
        group = rows.groupby(["record", "line"])["size"]
        points, largest = group.transform("nunique"), group.transform("max")
        by_name = ((points == 1) | (points >= CURVE)) & (rows["size"] == largest)
        rows.loc[by_name, "column"] = rows.loc[by_name, "key"].map({i: column[bare[i]] for i in bare})
        rows = rows[(points < CURVE) | (rows["size"] == largest)]
        values = pd.concat([values[~sized], rows[values.columns]])
    machines = sorted(set(hosts))
    place = {name: n for n, name in enumerate(machines)}
    cell = np.array([place[h] for h in hosts])[values["record"]] * len(names) + values["column"].to_numpy()
    shape = (len(machines), len(names))
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (np.bincount(cell, weights=values["mean"], minlength=shape[0] * shape[1]) / count).reshape(shape)
    about = values[["key", "column"]].drop_duplicates().merge(keys, left_on="key", right_index=True).groupby("column")
    benchmarks = about[["workload", "case", "metric", "better", "class"]].first()
    benchmarks = benchmarks.assign(unit=about["unit"].agg(_joined), standing=about["standing"].agg(_joined))
    benchmarks.index = pd.Index([names[n] for n in benchmarks.index], name="title")
    sign = [-1.0 if b == Better.LOWER else 1.0 for b in benchmarks["better"]]
    means = pd.DataFrame(mean, machines, names)[list(benchmarks.index)] * sign
    return means.dropna(how="all"), benchmarks


def _title(key: Mapping[Any, Any], labels: str) -> str:
    where = "" if key["subject"] in ("host", "lo") else f" ({key['subject']})"
    return f"{key['workload']} {key['case']} {key['metric']}{where}{_label(labels)}"


def _joined(values: pd.Series) -> str:
    return ", ".join(sorted({str(v) for v in values if v}))


def _size(text: str) -> float:
    size = str(json.loads(text).get("size", ""))
    return float(size) if size.replace(".", "", 1).isdigit() else math.nan


def _label(text: str, *, size: bool = True) -> str:
    """Labels as they stand in a title, or (without ``size``) as canonical JSON again."""
    labels = json.loads(text)
    if not size:
        return json.dumps({k: v for k, v in labels.items() if k != "size"}, sort_keys=True, separators=(",", ":"))
    return "".join(f" {k}={v}" for k, v in labels.items())


def _some(titles: pd.Series, most: int = 6) -> str:
    names = sorted(set(titles))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
