"""Repeats to a figure per host, and hosts to a figure per generation: medians with their spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base import schema
from fleetmark.base.measurement import Status

METRIC, _ABOUT = list(schema.KEY), list(schema.ABOUT)
_FIGURES = ["n", "median", "lo", "hi", "interval", "coverage", "cv"]


class Interval(StrEnum):
    """What ``lo`` and ``hi`` around a median are."""

    ORDER = "order"  # interval of the median from order statistics, coverage at least 95%
    RANGE = "range"  # min to max: too few values for an interval
    NONE = "none"  # one value: nothing is known about its spread


@lru_cache(maxsize=4096)
def order_interval(n: int, confidence: float = 0.95) -> tuple[int, int, float] | None:
    """Ranks (from 1) of the narrowest symmetric order-statistic interval of a median of ``n`` values, and its coverage.

    None where no pair of ranks covers ``confidence`` (n < 6 for 95%). Exact binomial, free of any distribution
    (Hahn & Meeker, Statistical Intervals, 1991, section 5.2).
    """
    total, tail, rank = 1 << n, 0, 0
    term = 1  # C(n, rank)
    while rank < n // 2 and 1 - 2 * (tail + term) / total >= confidence:
        tail += term
        term = term * (n - rank) // (rank + 1)
        rank += 1
    return (rank, n + 1 - rank, 1 - 2 * tail / total) if rank else None


def per_host(measurements: pd.DataFrame) -> pd.DataFrame:
    """One row per (*METRIC, host), from the repeats that passed.

    Columns besides these keys: better, class, headline, bits; ``n`` repeats, ``median``, ``lo`` and ``hi`` (NaN
    for one value), ``interval`` (an Interval: what lo and hi are), ``coverage`` of it (NaN unless ORDER), ``cv``
    (sample standard deviation over mean; NaN for one value or mean 0), ``over`` ("repeats"). Values stay in base
    units. What did not pass or is not a finite number is left out, so a key without any such value has no row.
    Text is categories where it was.
    """
    counts = (measurements["status"] == Status.PASSED) & np.isfinite(measurements["value"].astype(float))
    scored = measurements.loc[counts, [*METRIC, "host", *_ABOUT, "value"]]
    result = _figures(scored, [*METRIC, "host"])
    return _over(result[[*METRIC, "host", *_ABOUT, *_FIGURES]], "repeats")


def merge_pairs(stats: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    """``per_host``'s rows, where each host's pairs (subject ``h1>h2``) became one row per generation of the peer.

    Its subject reads ``to GENERATION`` (``to others`` for peers without one); median, spread and ``n`` are then
    those over the pairs' medians, and ``over`` is "pairs". ``generation`` names every host of the campaign: only
    names in it make a pair, and a host alone (``h1>h1``) makes none.
    """
    subject = pair_subjects(stats, generation)
    pair = subject != stats["subject"]
    if not pair.any():
        return stats
    pairs = stats[pair].assign(subject=subject[pair], value=stats["median"])
    result = _over(_figures(pairs, [*METRIC, "host"]), "pairs")
    both = pd.concat([stats[~pair], result[list(stats.columns)]], ignore_index=True)
    return both.iloc[np.argsort(codes(both, [*METRIC, "host"]), kind="stable")].reset_index(drop=True)


def pair_subjects(frame: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.Series:
    """The ``subject`` of each row of ``frame`` (which has ``host`` too) as ``merge_pairs`` names it; same index."""
    code, subjects = pd.factorize(frame["subject"])
    pairs = np.flatnonzero(np.array([">" in s for s in subjects] or [False])[code])
    if not len(pairs):
        return frame["subject"]
    made = np.array(subjects, dtype=object)[code]
    names: dict[tuple[str, str], str] = {}
    for host, subject in dict.fromkeys(zip(frame["host"].iloc[pairs], made[pairs], strict=True)):
        other = peer(host, subject, generation)
        names[host, subject] = subject if other is None else f"to {generation[other] or 'others'}"
    made[pairs] = [names[key] for key in zip(frame["host"].iloc[pairs], made[pairs], strict=True)]
    return pd.Series(made, index=frame.index, dtype=object)


def peer(host: str, subject: str, hosts: Container[str]) -> str | None:
    """The other host of a pair, None where ``subject`` is no pair with ``host``. Names may hold ``>`` themselves."""
    for other in (
        subject.removeprefix(f"{host}>") if subject.startswith(f"{host}>") else host,
        subject.removesuffix(f">{host}") if subject.endswith(f">{host}") else host,
    ):
        if other != host and other in hosts:
            return other
    return None


def per_generation(stats: pd.DataFrame, generation: Mapping[str, str | None]) -> pd.DataFrame:
    """One row per (*METRIC, generation); the host is the unit of replication.

    ``stats`` is what ``merge_pairs`` gave. ``n`` counts hosts; ``median``, ``lo``, ``hi``, ``interval``, ``coverage``
    and ``cv`` are over the hosts' medians; ``low_host``/``low`` and ``high_host``/``high`` name the hosts at both
    ends. Hosts without a generation share the one called "".
    """
    of = {h: generation.get(h) or "" for h in stats["host"].unique()}
    frame = stats.assign(value=stats["median"], generation=stats["host"].map(of))
    columns = [*METRIC, "generation", *_ABOUT, *_FIGURES, "low_host", "low", "high_host", "high"]
    return plain(_figures(frame, [*METRIC, "generation"])[columns])


def status_counts(outcomes: pd.DataFrame) -> dict[Status, int]:
    """How many repeats ended in each status; every status is named, those that never occurred with 0."""
    counts = outcomes["status"].value_counts()
    return {status: int(counts.get(status, 0)) for status in Status}


def _figures(frame: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Group ``frame`` by ``keys`` and summarise its ``value``; sorted by ``keys``, no Python loop over groups."""
    if frame.empty:
        names = [*keys, *_ABOUT, *_FIGURES, "low_host", "low", "high_host", "high"]
        return pd.DataFrame({name: pd.Series(dtype=_EMPTY.get(name, "object")) for name in dict.fromkeys(names)})
    code = codes(frame, keys)
    value = frame["value"].to_numpy(dtype=float)
    order = np.argsort(code, kind="stable")
    if (np.diff(code[order]) == 0).any():  # else no value has another to stand beside
        order = np.lexsort((value, code))
    value, code = value[order], code[order]
    first = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
    n = np.diff(np.r_[first, len(code)])
    last = first + n - 1

    lo_rank, hi_rank, coverage = _ranks(n)
    alone = n == 1
    mean = np.add.reduceat(value, first) / n
    squares = np.add.reduceat((value - np.repeat(mean, n)) ** 2, first)
    with np.errstate(divide="ignore", invalid="ignore"):
        cv = np.sqrt(squares / (n - 1)) / np.abs(mean)

    result = frame.iloc[order[first]].reset_index(drop=True)
    return result.assign(
        n=n,
        median=(value[first + (n - 1) // 2] + value[first + n // 2]) / 2,
        lo=np.where(alone, np.nan, value[first + lo_rank - 1]),
        hi=np.where(alone, np.nan, value[first + hi_rank - 1]),
        interval=_category(np.where(alone, 2, np.where(np.isnan(coverage), 1, 0)), list(Interval)),
        coverage=coverage,
        cv=np.where(alone | (mean == 0), np.nan, cv),
        low_host=frame["host"].iloc[order[first]].array,
        low=value[first],
        high_host=frame["host"].iloc[order[last]].array,
        high=value[last],
    )


def _over(stats: pd.DataFrame, what: str) -> pd.DataFrame:
    return stats.assign(over=_category(np.zeros(len(stats), dtype=np.int64), [what]))


def _category(code: npt.NDArray[np.int64], names: Sequence[str]) -> pd.Categorical:
    """Millions of words, each kept once."""
    return pd.Categorical.from_codes(code, categories=pd.Index([str(n) for n in names], dtype=object))


_FLOATS = ("median", "lo", "hi", "coverage", "cv", "low", "high")
_EMPTY = {**schema.PANDAS, "n": "int64", **dict.fromkeys(_FLOATS, "float64")}


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` with text as itself where it may be categories."""
    return frame.astype(dict.fromkeys(frame.select_dtypes("category").columns, object))


def codes(
    frame: pd.DataFrame,
    keys: Sequence[str],
    rank: Callable[[str, Sequence[str]], Sequence[int]] | None = None,
) -> npt.NDArray[np.int64]:
    """A number per row that is equal where all ``keys`` are, and orders as they do, the first before the second.

    ``rank``: of a column's name and its different values to where each stands; they stand by value without it.
    """
    code, size = np.zeros(len(frame), dtype=np.int64), 1
    for key in keys:
        part, values = pd.factorize(frame[key])
        names = list(values)
        if rank is None:
            place = np.empty(len(names), dtype=np.int64)
            place[np.argsort(np.array(names, dtype=object))] = np.arange(len(names))
        else:
            place = np.array(rank(key, names), dtype=np.int64)
        count = max(len(names), 1)
        if size * count > _MOST:  # compressed, so that the product never outgrows 64 bits
            code = np.unique(code, return_inverse=True)[1]
            size = len(frame)
        code, size = code * count + place[part], size * count
    return code


_MOST = 1 << 62


def _ranks(n: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Per group of ``n`` values: ranks of lo and hi, and the coverage (NaN where they are min and max)."""
    sizes = np.flatnonzero(np.bincount(n))
    where = np.zeros(sizes.max(initial=0) + 1, dtype=np.int64)
    where[sizes] = np.arange(len(sizes))
    found = [order_interval(int(size)) or (1, int(size), math.nan) for size in sizes]
    lo, hi, coverage = (np.array(column)[where[n]] for column in zip(*found, strict=True))
    return lo, hi, coverage
