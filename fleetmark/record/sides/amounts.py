"""Find how much of a divisor each machine has: sockets, cores, GPUs, watts, money."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Facts
from fleetmark.base.text import count, message
from fleetmark.base.words import word
from fleetmark.planner.power import has_devices
from fleetmark.record import figures
from fleetmark.record.imports import is_imported
from fleetmark.record.select import Machine
from fleetmark.record.sides.titles import joined
from fleetmark.record.values.host import numbered
from fleetmark.workloads import declared

# Divisors: the fact or label that holds the amount, and the function that reads it.
_PER: Mapping[str, Callable[[Machine, Facts | None], float | None]] = {
    "socket": lambda m, f: f.cpu.sockets if f else positive(m.labels.get("chips")),
    "core": lambda m, f: f.cpu.cores if f else positive(m.labels.get("cores")),
    "thread": lambda m, f: f.cpu.threads if f else _threads(m),
    "gpu": lambda m, f: len(f.gpus) if f and f.gpus else positive(m.labels.get("gpus")),
    "watt": lambda m, f: positive(m.labels.get("watts")),
    "money": lambda m, f: positive(m.labels.get("price")) if m.labels.get("currency") else None,
}
PER = ("server", *_PER)


def amount_of(machine: Machine, per: str) -> float | None:
    """Return a machine's amount of ``per``, or None if it is not recorded."""
    return _PER[per](machine, machine.facts())


_LABELS = {"socket": "chips", "core": "cores", "thread": "threads", "gpu": "gpus", "watt": "watts", "money": "price"}
_HINTS = {
    "watt": message("no power was measured during its runs; give it the label watts, from a meter, in the inventory"),
    "money": message("give it the labels price and currency (and price_date, term) in the inventory"),
    "gpu": message("its facts list no GPU; give it the label gpus in the inventory"),
}


def amounts(
    rows: pd.DataFrame, benchmarks: pd.DataFrame, chosen: Sequence[Machine], per: str, files: Mapping[str, Path]
) -> tuple[pd.Series, list[str], list[str]]:
    """Return three things for each of ``rows`` (``record``, a position in ``chosen``, and ``benchmark``): the natural
    logarithm of its machine's amount of ``per``, NaN if unknown; notes; and the sources of power figures.

    Raise FleetmarkError if no machine has an amount.
    """
    sources: list[str] = []
    notes: list[str] = []
    if per == "watt":
        amount, sources = _power(rows, benchmarks, chosen, files)
    else:
        sizes = {n: amount_of(chosen[n], per) for n in sorted(set(rows["record"]))}
        logs = {n: math.log(size) if size else math.nan for n, size in sizes.items()}
        amount = rows["record"].map(logs).astype(float)
        if per == "gpu":
            used = _used(rows, benchmarks, chosen, files)
            notes = list(_fewer(rows, benchmarks, chosen, used, amount))
            amount = used.fillna(amount)
    unknown = amount.isna()
    if not unknown.any():
        return amount, notes, sources
    without = [chosen[n] for n in sorted(set(rows["record"][unknown]))]
    hint, label = _HINTS.get(per, message("its facts lack this value")), without[0].labels.get(_LABELS.get(per, ""))
    if is_imported(without[0]):
        hint = message(
            "its table has no label {label}: import it with such a column, or remove --per", label=_LABELS[per]
        )
    if label is not None and positive(label) is None:
        hint = message("its label {label} is {value}, which is not a number above 0", label=_LABELS[per], value=label)
    if unknown.all():
        m = without[0]
        raise FleetmarkError(f"--per {per}: {m.host} ({m.campaign}) has no known amount: {hint}")
    named = ", ".join(f"{m.host} ({m.campaign})" for m in without[:4]) + (", …" if len(without) > 4 else "")
    left_out = message(
        "per {per}: {figures} left out, because the amount is unknown: {machines}: {hint}",
        per=word(per),
        figures=count(int(unknown.sum()), "figure"),
        machines=named,
        hint=hint,
    )
    return amount, [*notes, left_out], sources


def _used(
    rows: pd.DataFrame, benchmarks: pd.DataFrame, chosen: Sequence[Machine], files: Mapping[str, Path]
) -> pd.Series:
    """Return the logarithm of the number of accelerators used in each row, if its workload measures that; else NaN."""
    keys = rows[["record", "benchmark"]].join(benchmarks[["workload", "case", "class"]], on="benchmark")
    told_by = {w: metric for w in keys["workload"].unique() if (metric := declared.devices(w))}
    on_devices = keys["workload"].isin(list(told_by)) & keys["class"].str.startswith("gpu")
    if not on_devices.any():
        return pd.Series(np.nan, rows.index)
    hosts = numbered((m.campaign, m.host) for m in chosen)
    condition = figures.of_metrics(*sorted(set(told_by.values())))
    side = figures.of_side(figures.read(files, hosts, condition=condition, describing=True))
    counts = side.rows.merge(side.benchmarks, left_on="benchmark", right_index=True)
    counts = counts[counts["metric"] == counts["workload"].map(told_by)]
    place = ["record", "workload", "case"]
    used = counts.groupby(place, observed=True)["log"].mean()
    amount = used.reindex(pd.MultiIndex.from_frame(keys[place])).set_axis(rows.index)
    return amount.where(on_devices)


def _fewer(
    rows: pd.DataFrame, benchmarks: pd.DataFrame, chosen: Sequence[Machine], used: pd.Series, installed: pd.Series
) -> Iterator[str]:
    """Yield a note for each workload whose figures are not divided by the number of the host's GPUs."""
    other = (used - installed).abs() > 1e-9
    workload = rows["benchmark"][other].map(benchmarks["workload"])
    for name in sorted(set(workload)):
        pairs = {
            (record, round(math.exp(a)), round(math.exp(b)))
            for record, a, b in zip(
                *(column[other][workload == name] for column in (rows["record"], used, installed)), strict=True
            )
        }
        named = [f"{chosen[r].host} ({chosen[r].campaign}) {a}/{b}" for r, a, b in sorted(pairs)]
        yield message(
            "per gpu: {workload} is divided by the GPUs that it used, not by those of the host: {machines}",
            workload=name,
            machines=", ".join(named[:4]) + (", …" if len(named) > 4 else ""),
        )


def _power(
    rows: pd.DataFrame, benchmarks: pd.DataFrame, chosen: Sequence[Machine], files: Mapping[str, Path]
) -> tuple[pd.Series, list[str]]:
    """Return the logarithm of the power in W during the runs of each row, by machine, campaign and case, and its
    sources. The label ``watts`` is used for machines whose power was not measured.
    """
    hosts = numbered((m.campaign, m.host) for m in chosen)
    side = figures.of_side(figures.read(files, hosts, condition=figures.POWER))
    drawn = _drawn(side.rows.merge(side.benchmarks, left_on="benchmark", right_index=True))
    keys = rows[["record", "benchmark"]].join(benchmarks[["workload", "case"]], on="benchmark")
    amount, source = pd.Series(np.nan, rows.index), pd.Series("", rows.index)
    for case in (keys["case"], keys["case"].str.partition("/")[0]):  # a step has one power for all its cases
        place = pd.MultiIndex.from_arrays([keys["record"], keys["workload"], case])
        measured = drawn.reindex(place).set_axis(rows.index)
        source = source.where(amount.notna(), measured["source"].astype(object).fillna(""))
        amount = amount.fillna(measured["log"].astype(float))
    metered = set(side.rows["record"])
    labels = {
        n: math.log(w) for n, m in enumerate(chosen) if n not in metered and (w := positive(m.labels.get("watts")))
    }
    by_label = rows["record"].map(labels).astype(float)
    source = source.where(by_label.isna(), "the label watts")
    return amount.fillna(by_label), sorted({s for text in set(source) for s in text.split(", ") if s})


def _drawn(power: pd.DataFrame) -> pd.DataFrame:
    """Return ``log`` (of W) and ``source`` by record, workload and case: the host's power, plus that of its
    accelerators if the source excludes them; the accelerators' power alone if no other power was measured. Combined
    sources are joined, such as ``rapl + nvml``.
    """
    power = power.assign(source=[json.loads(text).get("source", "a table") for text in power["labels"]])
    place = ["record", "workload", "case"]
    is_devices = power["metric"] == figures.DEVICES_POWER
    parts = (power[~is_devices], power[is_devices])
    host, devices = (part.groupby(place).agg({"log": "mean", "source": joined}) for part in parts)
    both = host.merge(devices, how="outer", left_index=True, right_index=True, suffixes=("", "_devices"))
    includes_devices = [isinstance(s, str) and has_devices(s.split(", ")) for s in both["source"]]
    watts = both[["log", "log_devices"]].astype(float).rpow(math.e).fillna(0.0)
    watts.loc[includes_devices, "log_devices"] = 0.0
    named = both[["source", "source_devices"]].astype(object).where(watts.to_numpy() > 0, "")
    return pd.DataFrame(
        {
            "log": np.log(watts.sum(axis=1)),
            "source": [" + ".join(filter(None, pair)) for pair in named.itertuples(index=False, name=None)],
        },
        index=both.index,
    )


def _threads(machine: Machine) -> float | None:
    """Return the number of threads of a published machine. Some tables give the threads per core."""
    cores, each = (positive(machine.labels.get(label)) for label in ("cores", "threads_per_core"))
    return positive(machine.labels.get("threads")) or (cores * each if cores and each else None)


def positive(text: str | None) -> float | None:
    """Return a finite number above zero; None for any other text."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value < math.inf else None
