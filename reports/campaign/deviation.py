"""How far each host lies from its own generation's median, benchmark by benchmark, and which hosts are unlike their
peers. Positive is better, for latencies too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import message
from fleetmark.record.figures.summary import METRIC
from fleetmark.record.results import plain, stacked
from reports.campaign.held import MOST
from reports.campaign.view import Key, View, groups
from reports.kit import format as fmt

LEAST = 3  # hosts of a generation from which on one can be unlike the others
MOST_COLUMNS = 16
MOST_ROWS = 100
LEVELS = 5  # of colour, on either side of the median
STEP = 2  # percent per level
SLOW = 0.05  # a host's median deviation from which it is unlike its peers
APART = 0.10  # the same for a single benchmark, where its peers agree
_NOISE = 6  # times the peers' median deviation, which a single benchmark must exceed


@dataclass(frozen=True, slots=True)
class Column:
    """A benchmark: its names, and whether more or less of it is better in a word (``Better``)."""

    key: Key
    title: str
    better: str


@dataclass(frozen=True, slots=True)
class Cell:
    """``text``: the deviation in percent; ``level``: its colour, -LEVELS to LEVELS; ``value``: the figure itself and
    its generation's median."""

    text: str
    level: int
    value: str
    deviation: float


@dataclass(frozen=True, slots=True)
class Row:
    """A host; ``middle``: the median of its deviations. ``cells``: None where a figure is missing."""

    host: str
    generation: str
    middle: float
    cells: Sequence[Cell | None]


@dataclass(frozen=True, slots=True)
class Heat:
    """``rows`` of hosts by ``columns`` of benchmarks; ``hosts_left_out`` lie nearest to their medians."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    hosts_left_out: int
    columns_left_out: int


@dataclass(frozen=True, slots=True)
class Unlike:
    """A host that differs from its peers: by ``deviation`` (a median over ``benchmarks``, or of the one named)."""

    host: str
    generation: str
    deviation: float
    benchmarks: int
    benchmark: str = ""


class Deviations:
    """The headline figures of a view with ``generation``, ``middle`` (its median), ``peers`` (hosts with that figure),
    and ``deviation``: the ratio to the median less 1, positive where better. In parts of which each has all rows of its
    metrics, which are worked out when somebody goes through them."""

    def __init__(self, view: View) -> None:
        self._view = view

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return iter([self.frame]) if len(self._view.of_merged) <= MOST else self._parts()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All rows, which are held from then on."""
        return stacked(list(self._parts()))

    def _parts(self) -> Iterator[pd.DataFrame]:
        for rows in self._view.headlines_in_parts():
            yield _deviations(rows, self._view.generation)


def _deviations(frame: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    of = {host: generation.get(str(host)) or "" for host in frame["host"].unique()}
    frame = frame.assign(generation=frame["host"].astype(object).map(of))
    frame = frame[(frame["value"] > 0).to_numpy()]
    keys = [frame[c].astype(object) for c in METRIC] + [frame["generation"]]
    values = frame["value"].astype(float)
    middle = values.groupby(keys, sort=False).transform("median")
    peers = values.groupby(keys, sort=False).transform("size")
    ratio = values / middle
    lower = (frame["better"].astype(str) == Better.LOWER).to_numpy()
    better = np.where(lower, 1 / ratio, ratio)
    return frame.assign(middle=middle, peers=peers, deviation=better - 1)


def chosen(keys: Sequence[Key], most: int) -> list[Key]:
    """At most ``most`` of ``keys``, some of every workload, in their order."""
    if len(keys) <= most:
        return list(keys)
    turns: dict[str, int] = {}
    ranked = []
    for place, key in enumerate(keys):
        turns[key[0]] = turns.get(key[0], 0) + 1
        ranked.append((turns[key[0]], place))
    return [keys[place] for place in sorted(place for _, place in sorted(ranked)[:most])]


def heat(view: View, frame: pd.DataFrame, rows_at_most: int = MOST_ROWS) -> Heat | None:
    """The map of the deviations in ``frame``; None where no generation has several hosts with a figure."""
    if frame.empty or int(frame["peers"].max()) < 2:
        return None
    by_key = dict(groups(frame, METRIC))
    keys = [key for key, rows in by_key.items() if int(rows["peers"].max()) > 1]
    shown = chosen(keys, MOST_COLUMNS)
    columns = [Column(key, title(key), str(by_key[key]["better"].iloc[0])) for key in shown]
    cells: dict[str, dict[Key, Cell]] = {}
    for key in shown:
        rows, scale = by_key[key], view.shown(key, by_key[key])
        for host, value, middle, deviation in zip(
            *(rows[c].tolist() for c in ("host", "value", "middle", "deviation")), strict=True
        ):
            cells.setdefault(str(host), {})[key] = _cell(scale, value, middle, deviation)
    worst = frame.groupby(frame["host"].astype(object))["deviation"].agg(lambda d: float(d.abs().max())).to_dict()
    middles = frame.groupby(frame["host"].astype(object))["deviation"].median().to_dict()
    hosts = [h for h in view.hosts if h.name in cells]
    kept = {h.name for h in sorted(hosts, key=lambda h: -worst[h.name])[:rows_at_most]}
    table = [
        Row(h.name, h.generation or "", float(middles[h.name]), [cells[h.name].get(key) for key in shown])
        for h in hosts
        if h.name in kept
    ]
    return Heat(columns, table, len(hosts) - len(table), len(keys) - len(shown))


def _cell(scale: fmt.Shown, value: float, middle: float, deviation: float) -> Cell:
    size = min(LEVELS, round(100 * abs(deviation)) // STEP)  # of the percent as they are printed
    level = int(math.copysign(size, deviation))
    return Cell(percent(deviation), level, f"{scale.quantity(value)} / {scale.quantity(middle)}", deviation)


def percent(deviation: float) -> str:
    """``−14``, ``+3``, ``0``: percent without a decimal."""
    rounded = round(100 * deviation)
    return "0" if rounded == 0 else f"{rounded:+,d}".replace("-", "−")


def title(key: Key) -> str:
    """``stream 64t triad``."""
    return f"{fmt.clean(key[0])} {fmt.clean(key[1])} {fmt.point(key[2], key[3], key[4], key[5])}"


# --- hosts unlike their peers ----------------------------------------------------------------------------------------


def unlike(parts: Iterable[pd.DataFrame]) -> list[Unlike]:
    """The hosts that are slower or faster than their peers, the furthest first: in most benchmarks, else in one in
    which the peers agree. ``parts``: of ``Deviations``, or that frame."""
    hosts: dict[str, tuple[int, str]] = {}  # name to a number and its generation
    numbers, amounts, alone = [], [], []
    for part in parts:
        frame = part[part["peers"] >= LEAST]
        named = frame[["host", "generation"]].drop_duplicates("host").astype(object).itertuples(index=False, name=None)
        number = {host: hosts.setdefault(host, (len(hosts), generation))[0] for host, generation in named}
        numbers.append(frame["host"].astype(object).map(number).to_numpy(np.int32))
        amounts.append(frame["deviation"].to_numpy(float))
        alone.append(_apart(frame))
    if not hosts:
        return []
    deviation = pd.Series(np.concatenate(amounts)).groupby(np.concatenate(numbers))
    middle, size = deviation.median(), deviation.size()
    result = [
        Unlike(host, generation, float(middle[number]), int(size[number]))
        for host, (number, generation) in sorted(hosts.items(), key=lambda item: (item[1][1], item[0]))
        if abs(middle[number]) >= SLOW
    ]
    slow = {u.host for u in result}
    candidates = pd.concat(alone, ignore_index=True).sort_values("size", ascending=False, kind="stable")
    for row in candidates.drop_duplicates("host").to_dict("records"):
        if row["host"] not in slow:
            key = tuple(str(row[c]) for c in METRIC)
            result.append(Unlike(str(row["host"]), str(row["generation"]), float(row["deviation"]), 1, title(key)))
    return sorted(result, key=lambda u: (bool(u.benchmark), -abs(u.deviation)))


def _apart(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that lie far from their peers, where these agree; with ``size``, how far."""
    keys = [frame[c].astype(object) for c in METRIC] + [frame["generation"]]
    size = frame["deviation"].abs()
    noise = size.groupby(keys, sort=False).transform("median")
    far = frame.assign(size=size)[size >= np.maximum(APART, _NOISE * noise)]
    return plain(far[[*METRIC, "host", "generation", "deviation", "size"]])


def sentence(u: Unlike, peers: str) -> str:
    """A host that is unlike its peers, in words; ``peers``: what its generation is called."""
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
