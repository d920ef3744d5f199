"""Values to a figure per host, and hosts to a figure per generation, with what lies around each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base import schema
from fleetmark.base.frames import mapped, numbered, plain, stacked
from fleetmark.base.measurement import Centre
from fleetmark.record.figures.database import connect
from fleetmark.record.figures.engine import Engine, in_memory, literal, quoted
from fleetmark.record.figures.hashed import ranges, told_apart
from fleetmark.record.figures.measured import PASSED, Values
from fleetmark.record.figures.packed import Packed, again, once
from fleetmark.record.figures.pairs import pair_subjects
from fleetmark.record.figures.statement import RULES, groups, rule_of, spread
from planner.centre import Interval, ends

METRIC = list(schema.KEY)
_ABOUT = list(schema.ABOUT)
_AT_ONCE = 100_000  # figures of hosts that are looked at at once; what is held is several times that
_SIZES = ((125_000, 16), (2_500_000, 40))  # values that are grouped at once, and the most parts for that
_FIGURES = ("n", "value", "rule", "lo", "hi", "interval", "cv")


def per_host(values: Values) -> pd.DataFrame:
    """One row per (*METRIC, host), from the repeats that passed.

    Columns besides these keys: those that say something about the metric; ``n`` repeats, ``value``, their centre by
    ``rule`` (a Centre), ``lo`` and ``hi`` (NaN for one value), ``interval`` (what lo and hi are: a
    planner.centre.Interval), ``cv`` (sample standard deviation over mean; NaN for one value or mean 0), ``over``
    ("repeats"). Values stay in base units. What did not pass or is not a finite number is left out, so a key without
    any such value has no row. Text is categories.
    """
    return stacked(list(per_host_in_parts(values)))


Rank = Callable[[str, Sequence[str]], Sequence[int]]  # of a column and its values: the place of each


def per_host_in_parts(values: Values, rank: Rank | None = None) -> Iterator[pd.DataFrame]:
    """The rows of ``per_host`` in parts of a size to be worked on at once: all of a workload's metric are in one of
    them. Rows stand by ``rank`` of the columns of METRIC and of hosts, else by the alphabet."""
    with values.database() as con:
        database = in_memory(con)
        keys = _keys(database, rank or _alphabet)
        hosts = _hosts(con, rank or _alphabet)
        rows = [Packed(_grouped(database, part)) for part in ranges(len(values), hosts, sizes=_SIZES)]
    key, place = _popped(rows, "key").to_numpy(), _popped(rows, "place").to_numpy()
    order = np.argsort(key.astype(np.int64) * len(hosts) + place)
    key, place = key[order], place[order]
    columns = {name: once(_popped(rows, name).take(order)) for name in _FIGURES}
    del order, rows
    known = pd.CategoricalDtype(hosts)
    coded = {name: keys[name] if keys[name].dtype == bool else keys[name].astype("category") for name in keys}
    place = place.astype(np.min_scalar_type(-max(1, len(hosts))))
    for first, last in _bounds(keys, key):
        mine = slice(first, last)
        about = {name: _spread_out(coded[name], key[mine]) for name in (*METRIC, *_ABOUT)}
        host = pd.Categorical.from_codes(place[mine], dtype=known)
        figures = {name: again(column, last - first, mine) for name, column in columns.items()}
        over = pd.Categorical.from_codes(np.zeros(last - first, np.int8), pd.Index(["repeats"]))
        yield pd.DataFrame({**about, "host": host, **figures, "over": over}, copy=False)


def _alphabet(_: str, values: Sequence[str]) -> Sequence[int]:
    place = {value: n for n, value in enumerate(sorted(values))}
    return [place[value] for value in values]


def _keys(con: Engine, rank: Rank) -> pd.DataFrame:
    """A row per metric, in order; the view ``hashed`` has the values that count, with a hash ``h``, and the table
    ``hashes`` each hash's ``key`` (the place of its metric among the rows) and ``rule``."""
    con.execute(f"create or replace temp view scored as select * from every where {PASSED}")
    con.execute(f"create or replace temp table kinds as select distinct {quoted([*METRIC, *_ABOUT])} from scored")
    raw, hashed = told_apart(con, "kinds")
    raw["rule"] = [rule_of(*of).value for of in zip(raw["centre"], raw["class"], strict=True)]
    keys = raw[[*METRIC, *_ABOUT]]
    number = numbered(keys, METRIC)
    if number.max(initial=-1) + 1 < len(keys):  # a metric is mostly of one kind
        keys = keys.groupby(METRIC, sort=False)[_ABOUT].min().reset_index()
    places = [np.array(rank(name, values.tolist()))[codes] for name in METRIC for codes, values in [_codes(keys[name])]]
    order = np.lexsort(places[::-1])
    keys = keys.iloc[order].reset_index(drop=True)
    con.register("hash_frame", pd.DataFrame({"h": raw["h"], "key": np.argsort(order)[number], "rule": raw["rule"]}))
    con.execute(
        f"create or replace temp table hashes as select h::{con.hash_type} as h, key::int as key, rule from hash_frame"
    )
    con.execute(f"create or replace temp view hashed as select *, {hashed} as h from scored")
    return keys


def _codes(column: pd.Series) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.object_]]:
    codes, values = pd.factorize(column.array)
    return codes, np.asarray(values, dtype=object)


def _hosts(con: duckdb.DuckDBPyConnection, rank: Rank) -> list[str]:
    """The hosts, in order; the table ``hosts`` has the ``place`` of each."""
    names = [str(name) for (name,) in con.execute("select distinct host from scored").fetchall()]
    places = rank("host", names)
    con.register("host_frame", pd.DataFrame({"host": pd.Series(names, dtype=object), "place": places}))
    con.execute(
        "create or replace temp table hosts as select host::varchar as host, place::int as place from host_frame"
    )
    return [name for _, name in sorted(zip(places, names, strict=True))]


def _grouped(con: Engine, part: str) -> pd.DataFrame:
    """The figures of a part of the hosts: ``key``, ``place`` of the host, and _FIGURES."""
    joined_ = f"hashed v join hashes k using (h) join hosts m on v.host = m.host where {part}"
    rows = f"select k.key, m.place, k.rule, v.value from {joined_}"
    return _with_spread(con, [groups(rows, "key, place", rule) for rule in _rules(con)], ["key", "place", *_FIGURES])


def _rules(con: Engine) -> list[Centre]:
    used = set(con.execute("select distinct rule from hashes").df()["rule"])
    return [rule for rule in RULES if rule in used] or [*RULES[:1]]


def _with_spread(con: Engine, grouped: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The ``columns`` of groups, with what lies around them; their texts are categories."""
    con.execute(f"create or replace temp table grouped as {' union all '.join(grouped)}")
    con.register("ends", ends(con.execute("select distinct n from grouped").df()["n"].tolist()))
    texts = {"rule": Centre, "interval": Interval}
    coded = [f"{name}::enum({', '.join(map(literal, of))}) as {name}" for name, of in texts.items()]
    picked = ", ".join([*(f'"{name}"' for name in columns if name not in texts), *coded])
    return con.execute(f"select {picked} from ({spread('grouped')})").df()


def _popped(parts: Sequence[Packed], name: str) -> pd.Series:
    """A column of all ``parts``, which lose it: it is not held twice."""
    return pd.concat([part.pop(name) for part in parts], ignore_index=True)


def _bounds(keys: pd.DataFrame, key: npt.NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """The first row and the one behind the last of each part, of rows in the order of ``key``; one without rows where
    there are none."""
    if keys.empty:
        yield 0, 0
        return
    starts = ~keys.duplicated(METRIC[:3]).to_numpy()
    firsts = np.append(np.searchsorted(key, np.flatnonzero(starts)), len(key))
    first = 0
    for last, after in zip(firsts[1:].tolist(), [*firsts[2:].tolist(), -1], strict=True):
        if after < 0 or after - first > _AT_ONCE:
            yield first, last
            first = last


def _spread_out(of_key: pd.Series, key: npt.NDArray[np.int32]) -> pd.Categorical | npt.NDArray[np.bool_]:
    """A column of metrics as one of rows that have the keys ``key``: text as categories."""
    if of_key.dtype == bool:
        return of_key.to_numpy()[key]
    return pd.Categorical.from_codes(of_key.cat.codes.to_numpy()[key], of_key.cat.categories)


def _parts(frame: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The rows of ``frame`` in parts to be grouped at once: all of a workload's metric are in one of them."""
    if len(frame) <= _AT_ONCE:
        yield frame
        return
    code = numbered(frame, METRIC[:3])
    part = ((np.cumsum(np.bincount(code)) - 1) // _AT_ONCE).astype(np.int32)[code]
    for number in np.unique(part):
        yield frame[part == number]


def merge_pairs(stats: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    """``per_host``'s rows, where each host's pairs (subject ``h1>h2``) became one row per generation of the peer.

    Its subject reads ``to GENERATION``; ``value`` and what lies around it are then over the pairs' values, ``n`` counts
    pairs, and ``over`` is "pairs". ``generation`` names every host of the campaign; a host alone (``h1>h1``) makes no
    pair.
    """
    subject = pair_subjects(stats, generation)
    pair = subject != stats["subject"]
    if not pair.any():
        return stats
    parts = plain(stats[pair]).assign(subject=subject[pair])
    parts["rule"] = parts["rule"].replace(Centre.MEAN.value, Centre.GEOMEAN.value)  # of a pair's repeats, not of pairs
    pairs = _figures(parts, [*METRIC, "host"])[0].assign(over="pairs")
    return pd.concat([plain(stats[~pair]), plain(pairs)], ignore_index=True)[list(stats.columns)]


def per_generation(stats: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    """One row per (*METRIC, generation); the host is the unit of replication.

    ``stats`` is what ``merge_pairs`` gave. ``n`` counts hosts; ``value`` is their geometric mean, as in a comparison;
    ``lo``, ``hi``, ``interval`` and ``cv`` are over the hosts' values; ``low_host``/``low`` and ``high_host``/``high``
    name the hosts at both ends, of equals the first. Hosts without a generation share the one called "".
    """
    return pd.concat([_per_generation(part, generation) for part in _parts(stats)], ignore_index=True)


def _per_generation(stats: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    own = mapped(stats["host"], generation)
    rule = pd.Categorical.from_codes(np.zeros(len(stats), np.int8), pd.Index([Centre.GEOMEAN.value]))
    frame = stats[[*METRIC, *_ABOUT, "host", "value"]].assign(generation=own, rule=rule)
    figures, number = _figures(frame, [*METRIC, "generation"])
    order = np.lexsort((frame["value"].to_numpy(), number))
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    names = frame["host"].astype(object).to_numpy()
    last = np.append(starts[1:], len(order))[: len(starts)] - 1
    low, high = names[order[starts]], names[order[last]]
    return plain(figures).assign(low_host=low, high_host=high)


def _figures(frame: pd.DataFrame, keys: Sequence[str]) -> tuple[pd.DataFrame, npt.NDArray[np.integer[Any]]]:
    """``frame`` by ``keys``: what its ``value`` comes to by ``rule``, the same within a group; a row per group, as they
    first occur, with ``low`` and ``high``. And the place of each row's group."""
    number = numbered(frame, keys)
    about = frame[[*keys, *(name for name in _ABOUT if name not in keys)]].iloc[np.unique(number, return_index=True)[1]]
    values = pd.DataFrame({"key": number, "rule": frame["rule"].astype(object), "value": frame["value"]}, copy=False)
    with connect(len(values)) as con:
        con.register("frame", values)
        of = [groups("select key, rule, value from frame", "key", rule) for rule in RULES]
        figures = _with_spread(in_memory(con), of, ["key", *_FIGURES, "low", "high"])
    figures = figures.sort_values("key", ignore_index=True).drop(columns="key")
    return pd.concat([about.reset_index(drop=True), figures], axis=1), number
