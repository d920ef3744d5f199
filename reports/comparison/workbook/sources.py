"""The measurements behind the host means of a comparison, in an order in which each mean is of neighbouring rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Centre
from fleetmark.planner.comparison import Side
from fleetmark.reports.kit import format as fmt

LIVE = 20_000  # measurements up to which host means are formulas over them


@dataclass(frozen=True, slots=True)
class Middle:
    """A centre in ``Sources.rows``: of each of ``parts``, runs of neighbouring rows (both ends included), and of these.
    ``is_median``: by which rule; the geometric mean otherwise.
    """

    parts: Sequence[tuple[int, int]]
    is_median: bool


@dataclass(frozen=True, slots=True)
class Sources:
    """``rows``: measurements, with their ``side``, ``title`` (of the benchmark), ``machine`` and ``amount`` (what the
    value is shared out by). ``centres``: (side, title) to the centres of each host on it, by its place in Side.means.
    ``count``: how many measurements stand behind the means, listed or not.
    """

    rows: pd.DataFrame
    centres: Mapping[tuple[str, str], Mapping[str, Sequence[Middle]]]
    count: int

    @property
    def is_listed(self) -> bool:
        """Return whether the rows are listed, so that formulas can refer to them."""
        return self.count <= LIVE and not self.rows.empty


def sources(compared: Mapping[str, Side], titles: Sequence[str]) -> Sources:
    """Return the measurements behind the host means of ``titles``, without rows if there are more than LIVE of them."""
    count = sum(side.count for side in compared.values())
    values = [side.values.assign(side=name) for name, side in compared.items() if side.values is not None]
    if count > LIVE or not values:
        return Sources(pd.DataFrame(), {}, count)
    rows = pd.concat(values, ignore_index=True)
    rows = rows[rows["title"].isin(list(titles)) & rows["per"].notna()]
    order = {title: n for n, title in enumerate(titles)}
    sides = {side: n for n, side in enumerate(compared)}
    hosts = {h: n for n, h in enumerate(sorted(rows["machine"].unique(), key=fmt.natural))}
    rows = rows.assign(a=rows["side"].map(sides), b=rows["title"].map(order), c=rows["machine"].map(hosts))
    rows = rows.sort_values(["a", "b", "c", "campaign", "centre", "part", "repeat"], kind="stable", ignore_index=True)
    rows = rows.assign(log=np.log(rows["value"]), amount=np.exp(rows["per"]).round(9))
    centres: dict[tuple[str, str], dict[str, list[Middle]]] = {}
    for _, rows_of_centre in rows.groupby(["side", "centre"], sort=False):
        first = rows_of_centre.iloc[0]
        places = rows_of_centre.groupby("part", sort=False).groups.values()
        parts = [(int(place.min()), int(place.max())) for place in places]
        by_host = centres.setdefault((first["side"], first["title"]), {})
        by_host.setdefault(str(first["host"]), []).append(Middle(parts, first["rule"] == Centre.MEDIAN))
    return Sources(rows, centres, count)
