"""Group benchmarks under titles that different kinds of machines share, with the means of hosts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, count, message
from fleetmark.base.units import is_whole
from fleetmark.planner.contrast import Repeats
from fleetmark.planner.curves import CURVE


@dataclass(frozen=True, slots=True)
class Titled:
    """Figures under titles.

    ``rows``: the figures that count, each with its ``host`` and ``title`` (categories). ``benchmarks``: a row per
    title, as in ``planner.comparison.Side``. ``notes``: sentences.
    """

    rows: pd.DataFrame
    benchmarks: pd.DataFrame
    notes: Sequence[str]

    def means(self, logs: pd.Series) -> pd.DataFrame:
        """Return the mean of ``logs``, one for each of ``rows`` (NaN does not count). Higher is better. The result has
        a row per host and a column per title.
        """
        hosts, titles = self.rows["host"].cat, self.rows["title"].cat
        shape = len(hosts.categories), len(titles.categories)
        scored = logs.notna().to_numpy()
        cell = (hosts.codes.to_numpy(int) * shape[1] + titles.codes.to_numpy(int))[scored]
        number = np.bincount(cell, minlength=shape[0] * shape[1])
        with np.errstate(invalid="ignore"):
            mean = np.bincount(cell, weights=logs.to_numpy()[scored], minlength=len(number)) / number
        means = pd.DataFrame(mean.reshape(shape), hosts.categories, titles.categories).dropna(how="all")
        sign = [-1.0 if better == Better.LOWER else 1.0 for better in self.benchmarks["better"]]
        return means * sign

    def repeats(self) -> Repeats:
        """Return the standard errors of the means of the rows' logs, from their repeats; NaN for a single repeat."""
        rows = self.rows.assign(squared=self.rows["error"] ** 2, free=self.rows["n"] - 1.0)
        groups = rows.groupby(self._at(pd.Series(True, rows.index)))
        sums = groups.agg(
            squared=("squared", "sum"), known=("error", "count"), size=("n", "size"), free=("free", "sum")
        )
        sums = sums.where(sums["known"] == sums["size"])
        return Repeats(self._framed(sums["squared"] ** 0.5 / sums["size"]), self._framed(sums["free"]))

    def _at(self, counted: pd.Series) -> list[pd.Series]:
        """Return the codes of host and title of the rows that are ``counted``."""
        return [self.rows[name].cat.codes.astype(int).rename(name)[counted] for name in ("host", "title")]

    def _framed(self, values: pd.Series) -> pd.DataFrame:
        """Return ``values``, indexed by host and title, as a frame with a row per host and a column per title."""
        frame = values.unstack("title").reindex(columns=range(len(self.benchmarks)))
        frame.index = pd.Index(self.rows["host"].cat.categories[frame.index])
        frame.columns = self.benchmarks.index
        return frame.rename_axis(columns=None)


def titled(rows: pd.DataFrame, benchmarks: pd.DataFrame, hosts: Sequence[str]) -> Titled:
    """Assign titles to ``rows`` (``record``, ``benchmark``, ...). ``hosts``: the host name that each record counts as.

    Sizes that depend on the host, such as twice its cache, would prevent a comparison of generations. If a host has one
    size of a benchmark, or a whole curve, its largest size gets a title without the size.
    """
    size = pd.Series({n: _size(text) for n, text in benchmarks["labels"].items()}, dtype=float)
    unsized = benchmarks.assign(labels=[_without_size(text) for text in benchmarks["labels"]])
    full, bare = ([_title(b) for b in frame.to_dict("records")] for frame in (benchmarks, unsized))
    names = sorted({*full, *bare})
    place = {name: n for n, name in enumerate(names)}
    of_row = rows["benchmark"].to_numpy(int)
    title = np.array([place[name] for name in full], int)[of_row]
    by_name = np.zeros(len(rows), bool)
    kept = np.ones(len(rows), bool)
    sized = size.notna().to_numpy()[of_row]
    if sized.any():
        line = unsized.groupby([c for c in unsized.columns if c != "standing"], sort=False).ngroup()
        points = rows.loc[sized, ["record"]].assign(size=size[of_row[sized]].array, line=line[of_row[sized]].array)
        group = points.groupby(["record", "line"])["size"]
        number, is_largest = group.transform("nunique"), points["size"] == group.transform("max")
        by_name[sized] = ((number == 1) | (number >= CURVE)) & is_largest
        kept[sized] = (number < CURVE) | is_largest
        title[by_name] = np.array([place[name] for name in bare], int)[of_row[by_name]]
    of_record, machines = pd.factorize(np.array(hosts, dtype=object), sort=True)
    rows = rows.assign(title=title, host=of_record[rows["record"].to_numpy(int)], by_name=by_name)
    rows = rows if kept.all() else rows[kept]
    rows, notes = _official(rows, (benchmarks["standing"] != "").to_numpy(), names)
    rows = rows.assign(title=_categories(rows["title"], names), host=_categories(rows["host"], machines.tolist()))
    named = rows[rows["by_name"]]
    sizes = pd.Series(size.to_numpy()[named["benchmark"]], named["title"].cat.codes.astype(int))
    return Titled(rows.drop(columns="by_name"), _about(rows, benchmarks, sizes), notes)


def _about(rows: pd.DataFrame, benchmarks: pd.DataFrame, sizes: pd.Series) -> pd.DataFrame:
    """Return a description of each title of ``rows``.

    ``sizes``: the sizes of rows whose title omits the size, by title.
    """
    titles = rows["title"].cat
    cells = pd.unique(titles.codes.to_numpy(int) * len(benchmarks) + rows["benchmark"].to_numpy(int))
    pairs = pd.DataFrame({"title": cells // len(benchmarks), "benchmark": cells % len(benchmarks)})
    pairs = pairs.merge(benchmarks, left_on="benchmark", right_index=True)
    pairs = pairs.sort_values("benchmark")
    described = pairs.groupby("title")[["workload", "case", "metric", "better", "class", "kind"]].first()
    of_title: dict[int, list[Mapping[Any, str]]] = {}
    for pair in pairs[["title", "unit", "better", "standing"]].to_dict("records"):
        of_title.setdefault(pair["title"], []).append(pair)
    groups = [of_title[title] for title in described.index]
    described = described.assign(
        unit=[_units(group) for group in groups], standing=[joined(b["standing"] for b in group) for group in groups]
    )
    ends = sizes.groupby(level=0).agg(["min", "max"])
    described[["smallest", "largest"]] = ends.reindex(described.index).to_numpy(float)
    described.index = pd.Index(titles.categories[described.index], name="title")
    return described


def _categories(codes: pd.Series, words: Sequence[str]) -> pd.Categorical:
    """Return ``codes`` as a categorical of ``words`` without unused categories."""
    occurs = np.bincount(codes.to_numpy(), minlength=len(words)) > 0
    place = np.cumsum(occurs) - 1
    used = [words[n] for n in np.flatnonzero(occurs).tolist()]
    return pd.Categorical.from_codes(place[codes.to_numpy()], pd.Index(used, dtype=object))


def _official(
    rows: pd.DataFrame, lesser_benchmark: npt.NDArray[np.bool_], names: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Drop a host's unofficial figures under each title for which the host also has official results.

    Return the remaining rows, and notes on dropped figures and on titles for which only some hosts have official
    results.
    """
    if not lesser_benchmark.any():
        return rows, []
    lesser = pd.Series(lesser_benchmark[rows["benchmark"].to_numpy(int)], rows.index)
    if not lesser.any() or lesser.all():
        return rows, []
    official = (~lesser).groupby([rows["host"], rows["title"]]).transform("any")
    dropped = lesser & official
    notes: list[str] = []
    if dropped.any():
        figures = count(int(dropped.sum()), "figure")
        notes.append(message("{figures} left out: it has no official result, but the host has one", figures=figures))
    mixed = set(rows["title"][lesser & ~dropped]) & set(rows["title"][~lesser])
    for title in (names[n] for n in sorted(mixed)):
        notes.append(_mixed(title))
    return rows[~dropped], notes


def is_of_mixed_standing(note: str) -> bool:
    """Return whether a note of ``titled`` is about a mean of official and other results."""
    return isinstance(note, Message) and note.template == _mixed("").template


def _mixed(title: str) -> Message:
    return message(
        "{title}: the mean mixes official results of some hosts with unofficial figures of others", title=title
    )


def title_of(benchmark: Mapping[Any, Any], *, sized: bool = True) -> str:
    """Return the title of a benchmark as recorded (workload, case, metric, subject, labels).

    ``sized``: whether to include the size, which the title of a host with a single size omits.
    """
    return _title(benchmark if sized else {**benchmark, "labels": _without_size(str(benchmark["labels"]))})


def _title(benchmark: Mapping[Any, Any]) -> str:
    subject = "" if benchmark["subject"] in ("host", "lo") else f" ({benchmark['subject']})"
    labels = "".join(f" {k}={v}" for k, v in json.loads(benchmark["labels"]).items())
    return f"{benchmark['workload']} {benchmark['case']} {benchmark['metric']}{subject}{labels}"


def _units(benchmarks: Sequence[Mapping[Any, str]]) -> str:
    """Return the unit of a benchmark. If it has several units or directions, all are named, and it cannot be
    compared.
    """
    if len({b["better"] for b in benchmarks}) == 1:
        return joined(b["unit"] for b in benchmarks)
    return joined(f"{b['unit']} ({Better(b['better']).phrase})" for b in benchmarks)


def joined(values: Iterable[str]) -> str:
    """Return the distinct nonempty ``values``, sorted and separated by commas."""
    return ", ".join(sorted({str(v) for v in values if v}))


def _size(text: str) -> float:
    size = str(json.loads(text).get("size") or "")
    return float(size) if is_whole(size.replace(".", "", 1)) else math.nan


def _without_size(text: str) -> str:
    return json.dumps({k: v for k, v in json.loads(text).items() if k != "size"}, sort_keys=True, separators=(",", ":"))
