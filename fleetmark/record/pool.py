"""Measurements of many campaigns and imported tables as host means, one side of a comparison at a time."""

from __future__ import annotations

import fnmatch
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError, leave_out
from fleetmark.base.facts import Facts
from fleetmark.base.measurement import Better
from fleetmark.base.text import count, message
from fleetmark.base.words import word
from fleetmark.record import imports as importing
from fleetmark.record import readings
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import campaigns
from fleetmark.record.select import Machine, told_apart
from planner.comparison import Side
from planner.curves import CURVE
from workloads.declared import keeps_limit

HEAVY_TAILED = ("disk", "net")  # classes whose runs are summarised by their median
# Labels that a reader must know where the sides differ in them: of imported tables, and of prices.
TRAITS = (*importing.TRAITS, "currency", "price_date", "term")


def machines(root: Path) -> list[Machine]:
    """Every host of every campaign under ``root``, and every machine of the tables imported there.

    What is damaged is left out, with a LeftOut warning. Raises FleetmarkError where there is no such folder, and where
    nothing on record can be read.
    """
    if not root.is_dir():
        raise FleetmarkError(f"{root}: no such folder, so there is nothing on record; name another with --results")
    found = []
    damaged: list[tuple[str, FleetmarkError]] = []
    for archive in campaigns(root):
        try:
            hosts = archive.campaign()["hosts"]
        except FleetmarkError as error:
            damaged.append((archive.id, error))
            continue
        for host in hosts:
            facts = cache(partial(_facts, archive, host["name"]))
            found.append(
                Machine(archive.id, host["name"], host.get("labels") or {}, facts, str(host.get("address") or ""))
            )
    for file in importing.tables(root):
        try:
            found += importing.machines(file)
        except FleetmarkError as error:
            damaged.append((f"{importing.FOLDER}/{file.parent.name}", error))
    if damaged and not found:
        raise damaged[0][1]
    for name, why in damaged:
        leave_out(name, why)
    return found


def _facts(archive: Archive, host: str) -> Facts | None:
    try:
        return archive.facts_of(host)
    except FleetmarkError as error:
        leave_out(f"what {host} is, of {archive.id},", error)
        return None


def side(
    root: Path,
    title: str,
    chosen: Sequence[Machine],
    *,
    only: Sequence[str] = (),
    per: str = "server",
    by: str = "host",
    best: bool = False,
    names: Mapping[tuple[str, str], str] | None = None,
) -> Side:
    """The figures of the ``chosen`` machines; ``only``: shell-style patterns over ``workload/case/metric``, which
    reach all metrics; without, headlines are compared. Machines that share a value of ``by`` count as one host;
    ``best``: the side is one host that has the best figure of them all for each benchmark.

    A machine that several campaigns measured counts once: its mean over them. Raises FleetmarkError where nothing is
    measured, ``only`` matches nothing, or no machine says how much it has of what ``per`` divides by. ``names``:
    what hosts go by over all sides, from ``told_apart``.
    """
    campaigns = sorted({m.campaign for m in chosen})
    files = _files(root, campaigns)
    if not files:
        raise FleetmarkError(f"{', '.join(campaigns[:4])}: nothing measured; `fleetmark run --resume` goes on with one")
    found = _readings(files, chosen, headlines=not only)
    keys = found.keys
    values = readings.means(found, HEAVY_TAILED)
    if only:
        titles = keys["workload"] + "/" + keys["case"] + "/" + keys["metric"]
        keys = keys[titles.map(lambda t: _wanted(t, only))]
        values = values[values["key"].isin(keys.index)]
        if keys.empty:
            raise FleetmarkError(f"--only {','.join(only)} matches no benchmark; there are {some(titles)}")
    notes: list[str] = [
        message(
            "{workload} {case}: {values} of {metric} left out: {why}",
            workload=workload,
            case=case,
            values=count(number, "value"),
            metric=metric,
            why=word(why),
        )
        for (workload, case, metric, why), number in sorted(found.left_out.items())
        if _wanted(f"{workload}/{case}/{metric}", only)
    ]
    if values.empty:
        raise FleetmarkError(f"{title}: {'; '.join(notes[:3]) or 'nothing is measured on the machines it selects'}")
    notes += [message("{campaign}: nothing measured there", campaign=name) for name in campaigns if name not in files]
    traits = _traits(chosen)
    values = values.assign(per=0.0)
    if per != "server":
        values, remarks, sources = _amounts(values, keys, chosen, per, files)
        notes, traits = notes + remarks, traits | ({"power source": sources} if sources else {})
    names = names or told_apart(chosen)
    if by == "host":
        hosts = [names[m.campaign, m.host] for m in chosen]
    else:
        hosts = [f"{_host(m, by)} of {title}" for m in chosen]  # the other side's is another
    means, shared, benchmarks, remarks, used = _titled(values, keys, hosts)
    parts = _parts(used, keys, chosen, names)
    if best:
        means = pd.DataFrame([means.max()], [f"best of {len(means)} of {title}"])  # the other side's is another
    worked = set(zip(benchmarks["workload"], benchmarks["case"], strict=True))
    vain = {(w, c): why for w, c, _, why in found.left_out if (w, c) not in worked}
    failed = {f"{w} {c}": why for (w, c), why in vain.items()}
    limited = {f"{w} {c}" for w, c in vain if keeps_limit(w, c)}
    shared_out = shared if per != "server" else None
    return Side(title, means, benchmarks, shared_out, traits, notes + remarks, failed, limited, parts)


def _files(root: Path, campaigns: Sequence[str]) -> dict[str, Path]:
    """Campaign to its measurements, of those that have some."""
    files = {}
    for name in campaigns:
        try:
            path = Archive(root / name).inside("measurements.parquet")
        except FleetmarkError as error:
            leave_out(name, error)
            continue
        if path.exists():
            files[name] = path
    return files


def _readings(files: dict[str, Path], chosen: Sequence[Machine], *, headlines: bool) -> readings.Readings:
    """What ``files`` say of the ``chosen`` machines; a damaged one is left out, and taken from ``files``."""
    while True:
        try:
            return readings.read(files, [(m.campaign, m.host) for m in chosen], headlines=headlines)
        except readings.DamagedFileError as error:
            if len(files) == 1:
                raise
            leave_out(error.campaign, error)
            del files[error.campaign]


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
    "socket": lambda m, f: f.cpu.sockets if f else _positive(m.labels.get("chips")),
    "core": lambda m, f: f.cpu.cores if f else _positive(m.labels.get("cores")),
    "thread": lambda m, f: f.cpu.threads if f else None,
    "gpu": lambda m, f: len(f.gpus) if f and f.gpus else _positive(m.labels.get("gpus")),
    "watt": lambda m, f: _positive(m.labels.get("watts")),
    "money": lambda m, f: _positive(m.labels.get("price")) if m.labels.get("currency") else None,
}
PER = ("server", *_PER)
_LABELS = {"socket": "chips", "core": "cores", "gpu": "gpus", "watt": "watts", "money": "price"}
_HINTS = {
    "watt": message("no power was measured during its runs; give it the label watts, from a meter, in the inventory"),
    "money": message("give it the labels price and currency (and price_date, term) in the inventory"),
    "gpu": message("its facts show none; give it the label gpus in the inventory"),
}


def _amounts(
    values: pd.DataFrame, keys: pd.DataFrame, chosen: Sequence[Machine], per: str, files: Mapping[str, Path]
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """``values`` with the logarithm of how much each had of what ``per`` divides by (NaN where that is not known), what
    has to be said, and where power was read."""
    sources: list[str] = []
    if per == "watt":
        amount, sources = _power(values, keys, chosen, files)
    else:
        there = sorted(set(values["record"]))
        known = {n: _PER[per](chosen[n], chosen[n].facts()) for n in there}
        logs = {n: math.log(a) if a else math.nan for n, a in known.items()}
        amount = values["record"].map(logs).astype(float)
    unknown = amount.isna()
    if not unknown.any():
        return values.assign(per=amount), [], sources
    without = [chosen[n] for n in sorted(set(values["record"][unknown]))]
    hint, label = _HINTS.get(per, message("its facts do not tell")), without[0].labels.get(_LABELS.get(per, ""))
    if label is not None and _positive(label) is None:
        hint = message("its label {label} is {value}, which is no number above 0", label=_LABELS[per], value=label)
    if unknown.all():
        m = without[0]
        raise FleetmarkError(f"--per {per}: {m.host} ({m.campaign}) does not say how much it has: {hint}")
    named = ", ".join(f"{m.host} ({m.campaign})" for m in without[:4]) + (", …" if len(without) > 4 else "")
    remark = message(
        "per {per}: {figures} left out for not saying how much there was: {machines}: {hint}",
        per=word(per),
        figures=count(int(unknown.sum()), "figure"),
        machines=named,
        hint=hint,
    )
    return values.assign(per=amount), [remark], sources


def _power(
    values: pd.DataFrame, keys: pd.DataFrame, chosen: Sequence[Machine], files: Mapping[str, Path]
) -> tuple[pd.Series, list[str]]:
    """The logarithm of the W that were drawn during the runs of each figure, by a machine in a campaign and case by
    case; and the sources. The label ``watts`` stands for machines of which nothing was measured."""
    found = readings.read(files, [(m.campaign, m.host) for m in chosen], headlines=False)
    rows = (found.keys["metric"] == "power").to_numpy()[found.key] if len(found.keys) else np.empty(0, bool)
    about = found.keys.loc[found.key[rows], ["workload", "case", "labels"]].reset_index(drop=True)
    power = about.assign(record=found.record[rows], log=found.log[rows])
    power["source"] = [json.loads(text).get("source", "a table") for text in power["labels"]]
    drawn = power.groupby(["record", "workload", "case"]).agg({"log": "mean", "source": _joined})
    wanted = values[["record", "key"]].join(keys[["workload", "case"]], on="key")
    amount, source = pd.Series(np.nan, values.index), pd.Series("", values.index)
    for case in (wanted["case"], wanted["case"].str.partition("/")[0]):  # a step of several cases has one power
        place = pd.MultiIndex.from_arrays([wanted["record"], wanted["workload"], case])
        mine = drawn.reindex(place).set_axis(values.index)
        source = source.where(amount.notna(), mine["source"].astype(object).fillna(""))
        amount = amount.fillna(mine["log"])
    metered = set(power["record"])
    labels = {
        n: math.log(w) for n, m in enumerate(chosen) if n not in metered and (w := _positive(m.labels.get("watts")))
    }
    by_label = values["record"].map(labels).astype(float)
    source = source.where(by_label.isna(), "the label watts")
    return amount.fillna(by_label), sorted({s for text in set(source) for s in text.split(", ") if s})


def _positive(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if value > 0 else None


def _traits(chosen: Sequence[Machine]) -> dict[str, list[str]]:
    found = {key: sorted({v for m in chosen if key in m.labels for v in m.labels[key].split("+")}) for key in TRAITS}
    return {key: values for key, values in found.items() if values}


def _titled(
    values: pd.DataFrame, keys: pd.DataFrame, hosts: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, list[str], pd.DataFrame]:
    """Values as a matrix under titles that hosts of other kinds share; the same, shared out; what stands behind each
    title; what has to be said; and the values that are in it, with their ``host`` and ``title``.

    Sizes that follow from a host's own (twice its cache, the end of a curve) would keep generations apart: where a
    host has one size of a thing, or a whole curve, its largest size goes by the thing's name alone.
    """
    size = pd.Series({i: _size(text) for i, text in keys["labels"].items()}, dtype=float)
    rest = keys.assign(labels=[_label(text, size=False) for text in keys["labels"]])
    full = {i: _title(k, k["labels"]) for i, k in keys.to_dict("index").items()}
    bare = {i: _title(k, k["labels"]) for i, k in rest.to_dict("index").items()}
    names = sorted({*full.values(), *bare.values()})
    column = {name: n for n, name in enumerate(names)}
    values = values.assign(column=values["key"].map({i: column[full[i]] for i in full}), by_name=False)
    sized = values["key"].map(size).notna()
    if sized.any():
        line = rest.groupby([c for c in rest.columns if c != "standing"], sort=False).ngroup()
        rows = values[sized].assign(size=values["key"].map(size), line=values["key"].map(line))
        group = rows.groupby(["record", "line"])["size"]
        points, largest = group.transform("nunique"), group.transform("max")
        by_name = ((points == 1) | (points >= CURVE)) & (rows["size"] == largest)
        rows["by_name"] = by_name
        rows.loc[by_name, "column"] = rows.loc[by_name, "key"].map({i: column[bare[i]] for i in bare})
        rows = rows[(points < CURVE) | (rows["size"] == largest)]
        values = pd.concat([values[~sized], rows[values.columns]])
    machines = sorted(set(hosts))
    place = {name: n for n, name in enumerate(machines)}
    cell = np.array([place[h] for h in hosts])[values["record"]] * len(names) + values["column"].to_numpy()
    values, cell, remarks = _official(values, cell, keys, names)
    about = values[["key", "column"]].drop_duplicates().merge(keys, left_on="key", right_index=True).groupby("column")
    benchmarks = about[["workload", "case", "metric", "better", "class"]].first()
    benchmarks = benchmarks.assign(
        unit=about[["unit", "better"]].apply(_units), standing=about["standing"].agg(_joined)
    )
    sizes = values["key"].map(size)[values["by_name"]].groupby(values["column"]).agg(["min", "max"])
    benchmarks[["smallest", "largest"]] = sizes.reindex(benchmarks.index).to_numpy(float)
    benchmarks.index = pd.Index([names[n] for n in benchmarks.index], name="title")
    sign = [-1.0 if b == Better.LOWER else 1.0 for b in benchmarks["better"]]

    def matrix(cell: readings.Codes, logs: pd.Series) -> pd.DataFrame:
        number = np.bincount(cell, minlength=len(machines) * len(names))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(cell, weights=logs, minlength=len(number)) / number
        frame = pd.DataFrame(mean.reshape(len(machines), len(names)), machines, names)
        return (frame[list(benchmarks.index)] * sign).dropna(how="all")

    known = values["per"].notna().to_numpy()
    shared = matrix(cell[known], (values["mean"] - values["per"])[known])
    place_of, column_of = (
        pd.Categorical.from_codes(codes, pd.Index(words))
        for codes, words in zip(divmod(cell, len(names)), (machines, names), strict=True)
    )
    used = values[["record", "key", "n", "mean", "per"]].assign(host=place_of, title=column_of)
    return matrix(cell, values["mean"]), shared, benchmarks, remarks, used


def _parts(
    used: pd.DataFrame, keys: pd.DataFrame, chosen: Sequence[Machine], names: Mapping[tuple[str, str], str]
) -> pd.DataFrame:
    """``used`` with the campaign, the machine's name and the columns of ``keys``, in little memory."""
    record, key = used["record"].to_numpy(), keys.index.get_indexer(pd.Index(used["key"]))
    told = {"campaign": [m.campaign for m in chosen], "machine": [names[m.campaign, m.host] for m in chosen]}
    made = used.drop(columns=["record", "key"]).reset_index(drop=True)
    columns = [(name, pd.Index(words), record) for name, words in told.items()]
    columns += [(str(name), pd.Index(keys[name]), key) for name in keys]
    for name, words, places in columns:
        found = pd.Categorical(words)
        made[name] = pd.Categorical.from_codes(found.codes[places], found.categories)
    return made


def _official(
    values: pd.DataFrame, cell: readings.Codes, keys: pd.DataFrame, names: Sequence[str]
) -> tuple[pd.DataFrame, readings.Codes, list[str]]:
    """Without the estimates of a benchmark (a ``cell``) of a host that has official results of it: they do not mix.

    What has to be said of that, and of benchmarks (``names`` by column) that only some hosts have official results of.
    """
    lesser = values["key"].map(keys["standing"] != "").to_numpy(bool)
    if not lesser.any() or lesser.all():
        return values, cell, []
    dropped = lesser & np.isin(cell, cell[~lesser])
    remarks: list[str] = []
    if dropped.any():
        figures = count(int(dropped.sum()), "figure")
        remarks.append(message("{figures} left out: no official result, where the host has one", figures=figures))
    columns = values["column"].to_numpy()
    for column in np.intersect1d(columns[lesser & ~dropped], columns[~lesser]).tolist():
        title = names[column]
        remarks.append(
            message(
                "{title}: the mean is over official results of some hosts and figures of others that are none",
                title=title,
            )
        )
    return values[~dropped], cell[~dropped], remarks


def _title(key: Mapping[Any, Any], labels: str) -> str:
    where = "" if key["subject"] in ("host", "lo") else f" ({key['subject']})"
    return f"{key['workload']} {key['case']} {key['metric']}{where}{_label(labels)}"


def _units(of: pd.DataFrame) -> str:
    """The unit of a benchmark; several are named, and so is one with several directions: neither can be compared."""
    if of["better"].nunique() == 1:
        return _joined(of["unit"])
    return _joined(of["unit"] + " (" + of["better"].map(lambda b: Better(b).phrase) + ")")


def _joined(values: pd.Series) -> str:
    return ", ".join(sorted({str(v) for v in values if v}))


def _size(text: str) -> float:
    size = str(json.loads(text).get("size") or "")
    return float(size) if size.replace(".", "", 1).isdigit() else math.nan


def _label(text: str, *, size: bool = True) -> str:
    """Labels as they stand in a title, or (without ``size``) as canonical JSON again."""
    labels = json.loads(text)
    if not size:
        return json.dumps({k: v for k, v in labels.items() if k != "size"}, sort_keys=True, separators=(",", ":"))
    return "".join(f" {k}={v}" for k, v in labels.items())


def some(titles: Iterable[str], most: int = 6) -> str:
    """The first of them, and how many more there are."""
    names = sorted(set(titles))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
