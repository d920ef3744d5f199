"""Compute each host's deviation from the median of its generation per benchmark, and find hosts unlike their peers.

A positive deviation is better, for latencies too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import Message, message
from fleetmark.record.figures.hosts import METRIC
from fleetmark.record.figures.metric import Metric
from fleetmark.reports.campaign.view import View, by_metric, of_metrics, point
from fleetmark.reports.kit import format as fmt
from fleetmark.reports.kit.tabular import Cell, Column, Kind, Tabular, Tone

LEAST = 3  # minimum hosts per generation before a host can be called different
MOST_COLUMNS = 16
MOST_ROWS = 100
LEVELS = 5  # colour levels on either side of the median
STEP = 2  # percent per level
SLOW = 0.05  # minimum median deviation of a host that differs from its peers
APART = 0.10  # minimum deviation in a single benchmark in which the peers agree
_NOISE = 6  # a deviation in a single benchmark must exceed this multiple of the peers' median deviation


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Identify a benchmark of the map."""

    metric: Metric
    title: str


@dataclass(frozen=True, slots=True)
class Unlike:
    """A host that differs from its peers.

    ``deviation``: its deviation in the named ``benchmark``, or the median over ``benchmarks`` benchmarks.
    """

    host: str
    generation: str
    deviation: float
    benchmarks: int
    benchmark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Collected:
    """All deviations in compact form, for several exhibits.

    ``number``, ``amount``, ``peered``: for each deviation, the host's number, the value, and whether at least LEAST
    hosts have the figure. ``hosts``: maps host to generation, in the order of the host numbers. ``columns``: benchmarks
    that several hosts of a generation have. ``apart``: frames of deviations far from those of peers that agree.
    """

    hosts: Mapping[str, str]
    number: npt.NDArray[np.int32]
    amount: npt.NDArray[np.float64]
    peered: npt.NDArray[np.bool_]
    columns: Sequence[Benchmark]
    apart: Sequence[pd.DataFrame]

    def by_host(self, rows: npt.NDArray[np.bool_] | None = None) -> Any:
        """Return the deviations grouped by host number. ``rows``: the only rows to use."""
        every = rows is None or bool(rows.all())
        amount, number = (self.amount, self.number) if every else (self.amount[rows], self.number[rows])
        return pd.Series(amount, copy=False).groupby(number)


class Deviations:
    """Yield the headline figures of a view with their deviations, as frames computed during iteration.

    Each frame has all rows of its metrics. Further columns are ``generation``, ``group`` (a number per metric and
    generation), ``middle`` (the group's median), ``peers`` (the group's number of hosts) and ``deviation``: the ratio
    to the median minus 1, positive if better.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    def __iter__(self) -> Iterator[pd.DataFrame]:
        for rows in self._view.headlines_in_parts():
            yield _deviations(rows, self._view.generation)

    def for_metrics(self, metrics: Collection[Metric]) -> Iterator[pd.DataFrame]:
        """Yield the rows of ``metrics``."""
        for rows in self._view.headlines_in_parts():
            mine = of_metrics(rows, metrics)
            if len(mine):
                yield _deviations(mine, self._view.generation)

    @cached_property
    def collected(self) -> _Collected:
        hosts: dict[str, str] = {}
        numbers, amounts, peered, columns = [], [], [], []
        apart: list[pd.DataFrame] = []
        for frame in self:
            codes, names = pd.factorize(frame["host"].array)
            for name in names.tolist():
                hosts.setdefault(name, self._view.generation.get(name) or "")
            place = {name: n for n, name in enumerate(hosts)}
            numbers.append(np.array([place[name] for name in names.tolist()], np.int32)[codes])
            amounts.append(frame["deviation"].to_numpy(float))
            peered.append(frame["peers"].to_numpy() >= LEAST)
            apart += _apart(frame, peered[-1])
            peers = frame.groupby(METRIC, sort=False, observed=True)["peers"].max()
            for metric in (Metric(*map(str, key)) for key in peers.index[peers > 1]):
                columns.append(Benchmark(metric, title(metric)))
        empty = not numbers
        return _Collected(
            hosts=hosts,
            number=np.array([], np.int32) if empty else np.concatenate(numbers),
            amount=np.array([]) if empty else np.concatenate(amounts),
            peered=np.array([], bool) if empty else np.concatenate(peered),
            columns=columns,
            apart=apart,
        )

    @cached_property
    def unlike(self) -> list[Unlike]:
        """Return the hosts that are slower or faster than their peers, the largest deviation first.

        A host counts if it differs in most benchmarks, or in a single benchmark in which its peers agree.
        """
        collected = self.collected
        if not collected.peered.any():
            return []
        middles = collected.by_host(collected.peered).median()
        sizes = np.bincount(collected.number[collected.peered])
        hosts = list(collected.hosts.items())
        listed = [(*hosts[n], middle, int(sizes[n])) for n, middle in zip(middles.index, middles.tolist(), strict=True)]
        result = [
            Unlike(host, generation, middle, size)
            for host, generation, middle, size in sorted(listed, key=lambda item: (item[1], item[0]))
            if abs(middle) >= SLOW
        ]
        slow = {u.host for u in result}
        if collected.apart:
            candidates = pd.concat(collected.apart, ignore_index=True).sort_values(
                "size", ascending=False, kind="stable"
            )
            for row in candidates.drop_duplicates("host").to_dict("records"):
                if row["host"] not in slow:
                    metric = Metric(*(str(row[c]) for c in METRIC))
                    result.append(
                        Unlike(str(row["host"]), str(row["generation"]), float(row["deviation"]), 1, title(metric))
                    )
        return sorted(result, key=lambda u: (bool(u.benchmark), -abs(u.deviation)))


def _deviations(frame: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    frame = frame[frame["value"].to_numpy() > 0]
    frame = frame.assign(generation=frame["host"].astype(object).map(generation).fillna(""))
    values = frame["value"].to_numpy(float)
    group = frame.groupby([*METRIC, "generation"], sort=False, observed=True).ngroup().to_numpy()
    middle = _medians(values, group)
    ratio = values / middle
    lower = frame["better"].to_numpy() == Better.LOWER
    deviation = np.where(lower, 1 / ratio, ratio) - 1
    return frame.assign(group=group, middle=middle, peers=np.bincount(group)[group], deviation=deviation)


def _medians(values: npt.NDArray[np.float64], group: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return, for each value, the median of its group."""
    medians: npt.NDArray[Any] = pd.Series(values, copy=False).groupby(group).median().to_numpy()[group]
    return medians


def chosen(metrics: Sequence[Metric], limit: int, always: Container[Metric] = ()) -> list[Metric]:
    """Return at most ``limit`` metrics in their order: those in ``always`` first, then some from every workload."""
    if len(metrics) <= limit:
        return list(metrics)
    turns: dict[str, int] = {}
    ranked = []
    for place, metric in enumerate(metrics):
        turns[metric.workload] = turns.get(metric.workload, 0) + 1
        ranked.append((0 if metric in always else turns[metric.workload], place))
    return [metrics[place] for place in sorted(place for _, place in sorted(ranked)[:limit])]


def map_of_hosts(view: View, deviations: Deviations, side: Message, limits: Mapping[Kind, int]) -> Tabular | None:
    """Return the deviations of hosts by benchmark, or None if no generation has several hosts with a figure.

    Hosts closest to their medians are omitted first. ``side``: the heading of generations.
    """
    collected = deviations.collected
    if not collected.columns:
        return None
    by_metric_ = {column.metric: column for column in collected.columns}
    shown = chosen(list(by_metric_), MOST_COLUMNS)
    columns = [group for part in deviations.for_metrics(set(shown)) for group in by_metric(part)]
    present = {str(host) for _, rows in columns for host in rows["host"].tolist()}
    by_host = collected.by_host()
    ends = np.maximum(by_host.max(), -by_host.min())
    worst = dict(zip(collected.hosts, ends.tolist(), strict=True))
    hosts = [h for h in view.hosts if h.name in present]
    kept = sorted(hosts, key=lambda h: -worst[h.name])[:MOST_ROWS]
    limit = min(limits.values(), default=MOST_ROWS)
    ordered = sorted(kept, key=hosts.index) if len(kept) <= limit else kept  # a shortened table keeps the worst hosts
    names = {h.name for h in kept}
    cells: dict[str, dict[Metric, Cell]] = {}
    for metric, rows in columns:
        scale = view.shown(metric, rows)
        for host, *figures in zip(rows["host"], rows["value"], rows["middle"], rows["deviation"], strict=True):
            if host in names:
                cells.setdefault(host, {})[metric] = _cell(scale, *figures)
    sides = len(view.generations) > 1
    heads = [Column("host", message("host"), "name"), *([Column("generation", side, "side")] if sides else [])]
    heads += [Column(f"metric{n}", by_metric_[metric].title, "number") for n, metric in enumerate(shown)]
    table = [
        (
            Cell(fmt.clean(h.name)),
            *([Cell(view.title_of(h.generation or ""))] if sides else []),
            *(cells[h.name].get(metric, Cell("–")) for metric in shown),
        )
        for h in ordered
    ]
    notes = [message("Percent from the median of the host's own generation; positive is better, for latency too.")]
    if len(hosts) > len(table):
        n = f"{len(hosts) - len(table):,}"
        notes.append(message("The hosts furthest from their median are shown; {n} others are closer.", n=n))
    if len(by_metric_) > len(shown):
        notes.append(message("{n} more benchmarks are in the tables.", n=len(by_metric_) - len(shown)))
    heading = message("Deviation from generation median")
    return Tabular("hosts_against_generation", heading, tuple(heads), table, notes=tuple(notes), limits=limits)


def _cell(scale: fmt.Shown, value: float, middle: float, deviation: float) -> Cell:
    size = min(LEVELS, round(100 * abs(deviation)) // STEP)  # computed from the printed percentage
    tone = _LEVELS[LEVELS + int(math.copysign(size, deviation))]
    return Cell(percent(deviation), deviation, tone=tone, hint=f"{scale.quantity(value)} / {scale.quantity(middle)}")


_LEVELS: tuple[Tone, ...] = ("h-5", "h-4", "h-3", "h-2", "h-1", "h0", "h1", "h2", "h3", "h4", "h5")


def percent(deviation: float) -> str:
    """Return a deviation in whole percent, such as ``−14``, ``+3`` or ``0``."""
    rounded = round(100 * deviation)
    return "0" if rounded == 0 else fmt.with_minus(f"{rounded:+,d}")


def title(metric: Metric) -> str:
    """Return the title of a metric, such as ``stream 64t triad``."""
    return f"{fmt.clean(metric.workload)} {fmt.clean(metric.case)} {point(metric)}"


# --- hosts that differ from their peers ------------------------------------------------------------------------------


def _apart(frame: pd.DataFrame, peered: npt.NDArray[np.bool_]) -> Iterator[pd.DataFrame]:
    """Yield a frame of the ``peered`` rows that are far from peers that agree, or nothing if there are none.

    The column ``size`` is the absolute deviation.
    """
    size = np.abs(frame["deviation"].to_numpy())
    far = peered & (size >= np.maximum(APART, _NOISE * _medians(size, frame["group"].to_numpy())))
    if far.any():
        rows = frame.loc[far, [*METRIC, "host", "generation", "deviation"]]
        yield rows.astype(dict.fromkeys([*METRIC, "host"], object)).assign(size=size[far])


def sentence(u: Unlike, peers: str) -> str:
    """Return a sentence about a host that differs from its peers. ``peers``: the name of the host's generation."""
    values = {"host": fmt.clean(u.host), "part": fmt.share(abs(u.deviation), 0), "peers": peers}
    if u.benchmark:
        values["benchmark"] = u.benchmark
        if u.deviation < 0:
            return message("{host} is {part} worse than the median of {peers} in {benchmark}", **values)
        return message("{host} is {part} better than the median of {peers} in {benchmark}", **values)
    values["n"] = f"{u.benchmarks:,}"
    if u.deviation < 0:
        return message("{host} is {part} worse than the median of {peers} (median of {n} benchmarks)", **values)
    return message("{host} is {part} better than the median of {peers} (median of {n} benchmarks)", **values)
