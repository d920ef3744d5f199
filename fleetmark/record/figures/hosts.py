"""Compute figures and their spread for hosts, merged pairs and generations."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base import schema
from fleetmark.base.measurement import Centre
from fleetmark.planner.centre import ends
from fleetmark.record.figures.pairs import pair_subjects
from fleetmark.record.figures.statement import CENTRES, INTERVALS, RULES, groups, lowest, rule_of, spread
from fleetmark.record.values import PASSED, Values, create_tables, described, ranges
from fleetmark.record.values.database import connect
from fleetmark.record.values.engine import Engine, in_memory

METRIC = list(schema.KEY)
_ABOUT = list(schema.ABOUT)
_AT_ONCE = 100_000  # maximum figures per part; the frame of a part takes several times their memory
_SIZES = ((125_000, 16), (2_500_000, 40))  # (target values per part, maximum number of parts of that size)
_FIGURES = ("n", "value", "rule", "lo", "hi", "interval", "cv")

Rank = Callable[[str, Sequence[str]], Sequence[int]]  # maps a column and its values to the rank of each value


@dataclass(frozen=True)
class HostFigures:
    """A figure per metric and host.

    ``metrics``: a row per metric, in order, with METRIC, the columns that describe it, and ``over`` ("repeats" or
    "pairs"). ``hosts``: names, in order. ``rows``: sorted by ``metric`` and ``host`` (positions in the former two),
    with ``n`` (number of values), ``value`` (centre by ``rule``, a Centre), ``lo`` and ``hi`` (NaN for one value),
    ``interval`` (a planner.centre.Interval), and ``cv`` (sample standard deviation over mean; NaN for one value or mean
    0). Values are in base units.
    """

    metrics: pd.DataFrame
    hosts: Sequence[str]
    rows: pd.DataFrame

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Yield the rows in parts with the columns of ``frame``. No metric of a workload is split between parts."""
        for first, last in self._bounds():
            yield self._named(self.rows.iloc[first:last])

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Return all rows with the metric's columns and the host's name as categories. Iterate over many rows."""
        return self._named(self.rows)

    def select(self, names: Sequence[str], keys: Container[tuple[Any, ...]]) -> pd.DataFrame:
        """Return the rows of the metrics whose columns ``names`` are among ``keys``."""
        chosen = [key in keys for key in self.metrics[[*names]].itertuples(index=False, name=None)]
        return self._named(self.rows[np.array(chosen, bool)[self.rows["metric"].to_numpy()]])

    def distinct(self, *names: str) -> list[tuple[Any, ...]]:
        """Return the distinct combinations of the columns ``names``, in the order of the rows."""
        frame = self.metrics
        if further := [name for name in names if name not in frame]:
            frame = self.rows[["metric", *further]].drop_duplicates().join(frame.add_prefix("metric_"), on="metric")
            names = tuple(name if name in further else f"metric_{name}" for name in names)
        return list(frame[[*names]].drop_duplicates().itertuples(index=False, name=None))

    @cached_property
    def _coded(self) -> pd.DataFrame:
        texts: dict[str, Any] = {str(n): "category" for n in self.metrics if self.metrics[n].dtype != bool}
        return self.metrics.astype(texts)

    def _named(self, rows: pd.DataFrame) -> pd.DataFrame:
        place = rows["metric"].to_numpy()
        of_metric = {str(name): self._coded[name].array.take(place) for name in self._coded}
        host = pd.Categorical.from_codes(rows["host"].to_numpy(), dtype=pd.CategoricalDtype(list(self.hosts)))
        figures = {name: rows[name].array for name in _FIGURES}
        over = of_metric.pop("over")
        return pd.DataFrame({**of_metric, "host": host, **figures, "over": over}, copy=False)

    def _bounds(self) -> Iterator[tuple[int, int]]:
        """Yield the start and end (exclusive) of each part; one empty part if there are no rows."""
        if not len(self.rows):
            yield 0, 0
            return
        starts = np.flatnonzero(~self.metrics.duplicated(METRIC[:3]).to_numpy())
        firsts = np.append(np.searchsorted(self.rows["metric"].to_numpy(), starts), len(self.rows))
        first = 0
        for last, following in zip(firsts[1:].tolist(), [*firsts[2:].tolist(), -1], strict=True):
            if following < 0 or following - first > _AT_ONCE:
                yield first, last
                first = last


def alphabet(_: str, values: Sequence[str]) -> Sequence[int]:
    """Rank values alphabetically."""
    place = {value: n for n, value in enumerate(sorted(values))}
    return [place[value] for value in values]


def per_host(values: Values, rank: Rank = alphabet) -> HostFigures:
    """Return the figures of hosts over passed repeats. A host has no row for a metric without a passed value.

    ``rank``: gives the order of the values of METRIC columns and of hosts.
    """
    with values.queried() as database:
        metrics, numbered = _ranked(described(database, PASSED), rank)
        listed = database.execute(f"select distinct file, host from every where {PASSED}").df()
        place, hosts = _places(listed["host"], "host", rank)
        create_tables(database, listed.assign(id=place), numbered, PASSED)
        rules = [rule for rule in RULES if rule in set(numbered["rule"])] or [*RULES[:1]]
        parts = []
        for part in ranges(len(values), values.hosts_on_record(), _SIZES):
            rows = f"select metric_id as metric, host_id as host, rule, value from value where {part}"
            parts.append(_with_spread(database, [groups(rows, "metric, host", rule) for rule in rules]))
    return HostFigures(metrics.assign(over="repeats"), hosts, _sorted(parts, len(hosts)))


def _ranked(metrics: pd.DataFrame, rank: Rank) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a row per metric in the order of ``rank``, and ``metrics`` with the number of that row as ``id``.

    The latter also has the ``rule`` and the ``lowest`` value that is scored.
    """
    ordered = metrics.sort_values(_ABOUT, kind="stable", ignore_index=True)  # a metric usually has only one kind
    rules = [rule_of(*row).value for row in zip(ordered["centre"], ordered["class"], strict=True)]
    number = ordered.groupby(METRIC, sort=False).ngroup().to_numpy()
    unique = ordered.drop_duplicates(METRIC)[[*METRIC, *_ABOUT]]
    order = _order(unique, rank)
    numbered = ordered.assign(id=np.argsort(order)[number], rule=rules, lowest=ordered["kind"].map(lowest))
    return unique.iloc[order].reset_index(drop=True), numbered


def _order(metrics: pd.DataFrame, rank: Rank) -> npt.NDArray[np.intp]:
    """Return the order of ``metrics`` by the ranks of their columns."""
    return np.lexsort([_places(metrics[name], name, rank)[0] for name in reversed(METRIC)])


def _places(column: pd.Series, name: str, rank: Rank) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the rank of each value of ``column``, and the distinct values by rank."""
    codes, values = pd.factorize(column.array)
    texts = [str(value) for value in values]
    places = np.array(rank(name, texts), dtype=np.int64)
    return places[codes], [texts[n] for n in np.argsort(places)]


def _with_spread(database: Engine, grouped: Sequence[str], further: Sequence[str] = ()) -> pd.DataFrame:
    """Return the rows of groups with their spread, and text as categories. ``further``: additional columns to keep."""
    database.execute(f"create or replace temp table grouped as {' union all '.join(grouped)}")
    database.register("ends", ends(database.execute("select distinct n from grouped").df()["n"].tolist()))
    picked = ", ".join(f"g.{name}" for name in ("metric", "host", "n", "value", *further))
    frame: pd.DataFrame = database.execute(spread("grouped", picked)).df()
    for name, words in (("rule", CENTRES), ("interval", INTERVALS)):
        codes = frame.pop(f"{name}_number").to_numpy(np.int8)
        frame[name] = pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype([word.value for word in words]))
    return frame


def _sorted(parts: list[pd.DataFrame], hosts: int) -> pd.DataFrame:
    """Return the rows of ``parts`` by metric and host. Parts are emptied, so that no column is in memory twice."""
    metric, host = (pd.concat([part.pop(name) for part in parts], ignore_index=True) for name in ("metric", "host"))
    order = np.argsort(metric.to_numpy(np.int64) * max(1, hosts) + host.to_numpy())
    columns = {"metric": metric.take(order).array, "host": host.take(order).array}
    for name in _FIGURES:
        columns[name] = pd.concat([part.pop(name) for part in parts], ignore_index=True).take(order).array
    return pd.DataFrame(columns, copy=False)


def merge_pairs(figures: HostFigures, generation: Mapping[str, str | None], rank: Rank = alphabet) -> HostFigures:
    """Return ``figures`` with each host's pairs (subject ``h1>h2``) merged into one row per generation of the peer.

    In a merged row, the subject is ``to GENERATION``, ``value`` and its spread are over the pairs' values, ``n`` counts
    pairs, and ``over`` is "pairs". ``generation`` covers every host of the campaign. A single host (``h1>h1``) is not a
    pair.
    """
    between = figures.metrics["subject"].str.contains(">", regex=False).to_numpy(bool)
    rows = figures.rows
    candidates = rows[between[rows["metric"].to_numpy()]] if between.any() else rows.iloc[:0]
    recorded = figures.metrics["subject"].take(candidates["metric"].to_numpy()).set_axis(candidates.index)
    names = np.array(figures.hosts, dtype=object)[candidates["host"].to_numpy()]
    subject = pair_subjects(pd.DataFrame({"host": names, "subject": recorded}), generation)
    changed = subject != recorded
    if not changed.any():
        return figures
    paired = candidates[changed]
    called = figures.metrics.iloc[paired["metric"]].assign(subject=subject[changed].to_numpy(), over="pairs")
    kept = rows.drop(index=paired.index)
    used = np.unique(kept["metric"])
    brought = called.drop_duplicates(METRIC)
    metrics = pd.concat([figures.metrics.iloc[used], brought], ignore_index=True)
    order = _order(metrics, rank)
    place = np.argsort(order)
    number = len(used) + called.groupby(METRIC, sort=False).ngroup().to_numpy()
    # the arithmetic mean applies only to repeats
    rule = paired["rule"].astype(object).replace(Centre.MEAN.value, Centre.GEOMEAN.value)
    frame = pd.DataFrame({"metric": place[number], "host": paired["host"], "rule": rule, "value": paired["value"]})
    kept = kept.assign(metric=place[np.searchsorted(used, kept["metric"])])
    parts = [kept, _regrouped(frame)]
    return HostFigures(metrics.iloc[order].reset_index(drop=True), figures.hosts, _sorted(parts, len(figures.hosts)))


def _regrouped(frame: pd.DataFrame) -> pd.DataFrame:
    """Group ``frame`` (``metric``, ``host``, ``rule`` and ``value``) and return the figures with their spread."""
    with connect(len(frame)) as con:
        con.register("frame", frame)
        return _with_spread(in_memory(con), [groups("select * from frame", "metric, host", rule) for rule in RULES])


def per_generation(figures: HostFigures, generation: Mapping[str, str | None], rank: Rank = alphabet) -> pd.DataFrame:
    """Return one row per (*METRIC, generation). The host is the unit of replication.

    ``n`` counts hosts, and ``value`` is their geometric mean, as in a comparison. ``lo``, ``hi``, ``interval`` and
    ``cv`` are computed from the hosts' values. ``low_host`` and ``high_host`` name the hosts with the lowest (``low``)
    and highest value (``high``). Hosts without a generation form the generation "".
    """
    of_host, names = _places(
        pd.Series([generation.get(h) or "" for h in figures.hosts], dtype=object), "generation", rank
    )
    hosts = pd.DataFrame({"host": range(len(figures.hosts)), "generation": of_host})
    with connect(len(figures)) as con:
        con.register("figure", figures.rows[["metric", "host", "value"]])
        con.register("hosts", hosts)
        rows = f"select metric, host, generation, value, '{Centre.GEOMEAN}' as rule from figure join hosts using (host)"
        con.execute(
            f"create or replace temp table grouped_hosts as {groups(rows, 'metric, generation', Centre.GEOMEAN)}"
        )
        at_ends = (
            f"select g.*, null::int as host, min(f.host) filter (f.value = g.low) as low_host, "
            f"max(f.host) filter (f.value = g.high) as high_host "
            f"from grouped_hosts g join ({rows}) f using (metric, generation) group by all"
        )
        further = ("generation", "low_host", "low", "high_host", "high")
        frame = _with_spread(in_memory(con), [at_ends], further)
    frame = frame.sort_values(["metric", "generation"], ignore_index=True)
    text = {name: np.array(figures.hosts, dtype=object)[frame[name]] for name in ("low_host", "high_host")}
    text["generation"] = np.array(names, dtype=object)[frame["generation"]]
    described = figures.metrics[[*METRIC, *_ABOUT]].iloc[frame["metric"]].reset_index(drop=True)
    columns = ["generation", *_FIGURES, "low_host", "low", "high_host", "high"]
    return pd.concat([described, frame.assign(**text)[columns].astype({"rule": object, "interval": object})], axis=1)
