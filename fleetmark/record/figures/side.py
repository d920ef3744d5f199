"""Select the figures of one side of a comparison: hosts measured alone, in pairs, or in a group."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.record.figures.centres import BENCHMARK, Figures
from fleetmark.record.figures.statement import RULES, groups
from fleetmark.record.values.database import connect

Chosen = npt.NDArray[np.bool_]

PAIRS = "pairs"  # the subject of measurements between hosts of the same side
SHARED = "shared with hosts of another side"


@dataclass(frozen=True, slots=True)
class SideFigures:
    """Store the figures of a side. ``record`` is the position of a machine in the side.

    ``benchmarks``: a row per benchmark with the columns BENCHMARK; all pairs of hosts are one subject. ``benchmark``
    is a position in it. ``rows``: ``record``, ``benchmark``, the number ``n`` of values, ``log``, the natural
    logarithm of their centre (for pairs, the centre of the pairs' centres), and its standard ``error`` (NaN if
    unknown). ``parts``: the rows behind each centre, with ``key`` (as in Figures) and ``rule``. ``left_out``:
    ``record``, ``benchmark``, ``why``, ``n``.
    """

    benchmarks: pd.DataFrame
    rows: pd.DataFrame
    parts: pd.DataFrame
    left_out: pd.DataFrame


def of_side(figures: Figures, machines: Sequence[tuple[str, str]]) -> SideFigures:
    """Return the figures of ``machines`` (campaign, host), without measurements shared with hosts of another side."""
    place = {m: n for n, m in enumerate(figures.machines)}
    number = np.full(len(figures.machines), -1)
    number[[place[m] for m in machines]] = range(len(machines))
    parts, left_out = (_renumbered(frame, number) for frame in (figures.rows, figures.left_out))
    keys = figures.keys
    subjects = keys["subject"].where(~keys["subject"].str.contains(">", regex=False), PAIRS)
    columns = keys.assign(subject=subjects)[list(BENCHMARK)]
    benchmarks = columns.drop_duplicates(ignore_index=True)
    numbered = columns.merge(benchmarks.reset_index(names="benchmark"), how="left", on=list(BENCHMARK))
    benchmark = numbered["benchmark"].to_numpy(int)
    parts, left_out = (kept(f, _own_pairs(f, keys["subject"], machines)) for f in (parts, left_out))
    among = _among_themselves(parts, keys["members"], machines)
    left_out = pd.concat([left_out, parts.loc[~among, ["record", "key", "n"]].assign(why=SHARED)])
    left_out = left_out.assign(benchmark=benchmark[left_out["key"].to_numpy(int)]).drop(columns="key")
    parts = kept(parts, among)
    rule = pd.Categorical(keys["rule"]).take(parts["key"].to_numpy(int))
    parts = parts.assign(benchmark=benchmark[parts["key"].to_numpy(int)], rule=rule)
    cells = pd.Index(parts["record"].to_numpy() * len(benchmarks) + parts["benchmark"].to_numpy())
    if cells.is_unique:
        rows = parts.drop(columns=["key", "rule"])
    else:
        values = parts.assign(rule=parts["rule"].astype(object), value=np.exp(parts["log"]))
        rows = _centres(values).merge(_of_parts(parts), on=["record", "benchmark"])
    return SideFigures(benchmarks, rows, parts, left_out)


def kept(frame: pd.DataFrame, rows: Chosen) -> pd.DataFrame:
    """Return the chosen ``rows`` of ``frame``. If these are all rows, return ``frame`` itself, to save memory."""
    return frame if rows.all() else frame[rows]


def _renumbered(frame: pd.DataFrame, number: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return the rows of the records that have a new ``number``, renumbered."""
    record = number[frame["record"].to_numpy(int)]
    return kept(frame, record >= 0).assign(record=record[record >= 0])


def _centres(values: pd.DataFrame) -> pd.DataFrame:
    with connect(len(values)) as con:
        con.register("centres", values)
        by_rule = (groups("select * from centres", "record, benchmark", rule) for rule in RULES)
        return pd.concat(
            [con.execute(f"select record, benchmark, log from ({of})").df() for of in by_rule], ignore_index=True
        )


def _of_parts(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the number of values behind the centre of each group of parts, and its standard error if known.

    The standard error is the one of the mean of the parts.
    """
    if "error" not in parts:
        return parts.groupby(["record", "benchmark"], as_index=False)[["n"]].sum()
    squared = parts.assign(error=parts["error"] ** 2).groupby(["record", "benchmark"], as_index=False)
    sums = squared.agg(n=("n", "sum"), error=("error", "sum"), known=("error", "count"), parts=("error", "size"))
    error = (sums["error"] ** 0.5 / sums["parts"]).where(sums["known"] == sums["parts"])
    return sums[["record", "benchmark", "n"]].assign(error=error)


def _own_pairs(rows: pd.DataFrame, subjects: pd.Series, machines: Sequence[tuple[str, str]]) -> Chosen:
    """Select the ``rows`` that are no pair, or a pair from their host to another host of the side."""
    own = np.ones(len(rows), bool)
    paired = subjects.str.contains(">", regex=False).to_numpy()
    if not paired.any():
        return own
    pair = paired[rows["key"].to_numpy(int)]
    pairs = rows[pair]
    side = set(machines)
    names = subjects.to_numpy(object)

    def within(record: int, key: int) -> bool:
        campaign, host = machines[record]
        subject = names[key]
        return subject.startswith(f"{host}>") and (campaign, subject.removeprefix(f"{host}>")) in side

    own[pair] = [within(r, k) for r, k in zip(pairs["record"].tolist(), pairs["key"].tolist(), strict=True)]
    return own


def _among_themselves(rows: pd.DataFrame, members: pd.Series, machines: Sequence[tuple[str, str]]) -> Chosen:
    """Select the ``rows`` without a host of another side. The leading host of a run represents all its members."""
    among = np.ones(len(rows), bool)
    if (members == "").all():
        return among
    led = (members != "").to_numpy()[rows["key"].to_numpy(int)]
    shared = rows[led]
    hosts: dict[str, set[str]] = {}
    for campaign, host in machines:
        hosts.setdefault(campaign, set()).add(host)
    texts = {n: set(json.loads(members[n])) for n in shared["key"].unique().tolist()}
    pairs = zip(shared["record"].tolist(), shared["key"].tolist(), strict=True)
    among[led] = [texts[key] <= hosts[machines[record][0]] for record, key in pairs]
    return among
