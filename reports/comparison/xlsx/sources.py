"""The measurements behind the host means of a comparison, in an order in which each mean is of neighbouring rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Status
from fleetmark.record.readings import KEY, PAIRS
from planner.comparison import Side
from planner.summary import plain
from reports.kit import format as fmt
from reports.report import Report

LIVE = 20_000  # measurements up to which host means are formulas over them
AGREES = 1e-9
_PLACE = ["side", "campaign", "machine", *KEY]


@dataclass(frozen=True, slots=True)
class Part:
    """A run of neighbouring rows of ``Sources.rows`` (both ends included) of which a mean, or median, is taken."""

    first: int
    last: int
    median: bool


@dataclass(frozen=True, slots=True)
class Sources:
    """``rows``: measurements, with their ``side``, ``title`` (of the benchmark), ``machine`` and ``amount`` (what the
    value is shared out by). ``parts``: (side, title) to the parts of each host on it, by its place in Side.means.
    ``count``: how many measurements stand behind the means, listed or not.
    """

    rows: pd.DataFrame
    parts: Mapping[tuple[str, str], Mapping[str, Sequence[Part]]]
    count: int

    @property
    def listed(self) -> bool:
        return self.count <= LIVE


def sources(report: Report, titles: Sequence[str]) -> Sources:
    """What the host means of ``titles`` are made of; without rows where there are more than LIVE of them.

    A mean that the measurements found for it do not give again, to AGREES, has no part: its value stands as it is.
    """
    used = [made for title, side in report.sides.items() if (made := _used(title, side)) is not None]
    parts = pd.concat(used, ignore_index=True) if used else pd.DataFrame(columns=[*_PLACE, "n", "mean", "per", "title"])
    parts = parts[parts["title"].isin(list(titles))]
    count = int(parts["n"].sum())
    if count > LIVE or parts.empty:
        return Sources(pd.DataFrame(), {}, count)
    parts = parts.assign(part=range(len(parts)))
    rows = _rows(report).merge(parts, on=_PLACE, suffixes=("", "_of_part"))
    rows = _no_more(rows, headline=rows["headline"].fillna(False).astype(bool))
    rows = _traced(rows.assign(log=np.log(rows["value"].to_numpy(float))))
    order = {title: n for n, title in enumerate(titles)}
    sides = {side: n for n, side in enumerate(report.sides)}
    hosts = {h: n for n, h in enumerate(sorted(rows["machine"].unique(), key=fmt.natural))}
    rows = rows.assign(a=rows["side"].map(sides), b=rows["title"].map(order), c=rows["machine"].map(hosts))
    rows = rows.sort_values(["a", "b", "c", "campaign", "part", "repeat", "subject"], kind="stable", ignore_index=True)
    rows["amount"] = np.exp(rows["per"].to_numpy(float)).round(9)
    found: dict[tuple[str, str], dict[str, list[Part]]] = {}
    for _, at in rows.groupby("part", sort=False).indices.items():
        row = rows.iloc[at[0]]
        of_host = found.setdefault((row["side"], row["title"]), {}).setdefault(str(row["place"]), [])
        of_host.append(Part(int(at[0]), int(at[-1]), bool(row["median"])))
    return Sources(rows, found, count)


def _used(title: str, side: Side) -> pd.DataFrame | None:
    if side.parts is None:
        return None
    parts = side.parts if side.shared is None else side.parts[side.parts["per"].notna()]
    return plain(parts.rename(columns={"host": "place"}).assign(side=title))


def _rows(report: Report) -> pd.DataFrame:
    """The measurements that may be used, under the names that parts go by."""
    m = report.view.results.measurements
    side = m["host"].astype(object).map(report.view.generation)
    m = plain(m.assign(side=side)[(m["status"] == Status.PASSED) & (m["value"] > 0) & side.isin(list(report.sides))])
    # A host that stands on both sides is called by its side too.
    names = {
        (t, f"{name} ({s.title})"): name
        for t, s in report.sides.items()
        if s.parts is not None
        for name in s.parts["machine"].astype(object).unique()
    }
    pairs = list(zip(m["side"], m["host"], strict=True))
    machine = [names.get(p, p[1]) for p in pairs]
    m = m.assign(machine=machine, labels=m["labels"].replace("", "{}"), of=m["subject"])
    there = set(zip(m["campaign"], pairs, strict=True))
    own = [
        ">" not in subject or (subject.startswith(f"{h}>") and (c, (s, subject.removeprefix(f"{h}>"))) in there)
        for c, s, h, subject in zip(m["campaign"], m["side"], m["host"], m["subject"], strict=True)
    ]
    return m[own].assign(subject=lambda f: f["subject"].where(~f["subject"].str.contains(">", regex=False), PAIRS))


def _no_more(rows: pd.DataFrame, headline: pd.Series) -> pd.DataFrame:
    """Without what is no headline, where a part is of fewer values than were found: it is of headlines alone."""
    more = rows.groupby("part")["value"].transform("size") > rows["n"]
    return rows[~more | headline]


def _traced(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of parts whose mean, or median, they give again; with which of the two it is."""
    logs = rows.groupby("part")["log"]
    mean, median = ((logs.transform(how) - rows["mean"]).abs() <= AGREES for how in ("mean", "median"))
    return rows.assign(median=~mean)[(logs.transform("size") == rows["n"]) & (mean | median)]
