"""Measurements in memory to a figure per host, and hosts to a figure per generation, with what lies around each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from fleetmark.base import schema
from fleetmark.base.measurement import Centre, Status
from fleetmark.record.figures.database import connect
from fleetmark.record.figures.pairs import pair_subjects
from fleetmark.record.figures.statement import RULES, groups, rule_of, spread
from fleetmark.record.results import plain, stacked
from planner.centre import ends

METRIC = list(schema.KEY)
_ABOUT = list(schema.ABOUT)
_AT_ONCE = 100_000  # rows that are grouped at once; what is held is several times that
_FIGURES = ("n", "value", "rule", "lo", "hi", "interval", "cv")


def per_host(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row per (*METRIC, host), from the repeats that passed.

    Columns besides these keys: those that say something about the metric; ``n`` repeats, ``value``, their centre by
    ``rule`` (a Centre), ``lo`` and ``hi`` (NaN for one value), ``interval`` (what lo and hi are: a
    planner.centre.Interval), ``cv`` (sample standard deviation over mean; NaN for one value or mean 0), ``over``
    ("repeats"). Values stay in base units. What did not pass or is not a finite number is left out, so a key without
    any such value has no row. Text is categories.
    """
    return stacked(list(per_host_in_parts(measurements)))


Rank = Callable[[str, Sequence[str]], Sequence[int]]  # of a column and its values: the place of each


def per_host_in_parts(measurements: pd.DataFrame, rank: Rank | None = None) -> Iterator[pd.DataFrame]:
    """The rows of ``per_host`` in parts of a size to be worked on at once: all of a workload's metric are in one of
    them. Parts follow each other by ``rank`` of workload, case and metric."""
    passed = measurements["status"] == Status.PASSED
    scored = measurements[[*METRIC, "host", *_ABOUT, "value"]]
    scored = scored if passed.all() else scored[passed]
    for part in _parts(scored, rank):
        yield _per_host(part)


def _per_host(scored: pd.DataFrame) -> pd.DataFrame:
    kinds = scored[["centre", "class"]].astype(object).drop_duplicates()
    kinds["rule"] = [rule_of(*kind).value for kind in zip(kinds["centre"], kinds["class"], strict=True)]
    rules = scored[["centre", "class"]].astype(object).merge(kinds, how="left")["rule"].astype("category")
    frame = scored[[*METRIC, "host", *_ABOUT, "value"]].assign(rule=rules.array)
    figures = _figures(frame, [*METRIC, "host"]).assign(over="repeats")
    return figures.astype(dict.fromkeys(("over", "rule", "interval"), "category"))


def _parts(frame: pd.DataFrame, rank: Rank | None = None) -> Iterator[pd.DataFrame]:
    """The rows of ``frame`` in parts to be grouped at once: all of a workload's metric are in one of them."""
    if len(frame) <= _AT_ONCE:
        yield frame
        return
    code = np.zeros(len(frame), dtype=np.int32)
    for name in ("workload", "case", "metric"):
        of, values = pd.factorize(frame[name])
        places = np.asarray(rank(name, list(values)) if rank else range(len(values)), dtype=np.int32)
        numbered, _ = pd.factorize(code * np.int64(len(values)) + places[of], sort=True)
        code = numbered.astype(np.int32)
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
    pairs = _figures(parts, [*METRIC, "host"]).assign(over="pairs")
    return pd.concat([plain(stats[~pair]), plain(pairs)], ignore_index=True)[list(stats.columns)]


def per_generation(stats: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    """One row per (*METRIC, generation); the host is the unit of replication.

    ``stats`` is what ``merge_pairs`` gave. ``n`` counts hosts; ``value`` is their geometric mean, as in a comparison;
    ``lo``, ``hi``, ``interval`` and ``cv`` are over the hosts' values; ``low_host``/``low`` and ``high_host``/``high``
    name the hosts at both ends, of equals the first. Hosts without a generation share the one called "".
    """
    return pd.concat([_per_generation(part, generation) for part in _parts(stats)], ignore_index=True)


def _per_generation(stats: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    of = stats["host"].astype(object).map(lambda host: generation.get(host) or "")
    frame = stats.assign(generation=of, rule=Centre.GEOMEAN.value)
    keys = [*METRIC, "generation"]
    figures = _figures(frame, keys)
    ordered = plain(frame[[*keys, "host", "value"]]).sort_values("value", kind="stable")
    hosts = ordered.groupby(keys, sort=False)["host"]
    at_ends = pd.DataFrame({"low_host": hosts.first(), "high_host": hosts.last()}).reset_index()
    return plain(figures).merge(at_ends, on=keys)


def _figures(frame: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """``frame`` by ``keys``: what its ``value`` comes to by ``rule``; a row per group, with ``low`` and ``high``."""
    by = ", ".join(f'"{key}"' for key in keys)
    with connect() as con:
        con.register("frame", frame)
        texts = [name for name in _ABOUT if name not in keys]
        rows = "select * from frame where isfinite(value)"
        of = [groups(rows, by, rule, texts) for rule in RULES]
        con.execute(f"create table grouped as {' union all '.join(of)}")
        sizes = con.execute("select distinct n from grouped").df()["n"].tolist()
        con.register("ends", ends(sizes))
        return pd.DataFrame(con.execute(spread("grouped")).df())
