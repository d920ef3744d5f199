"""Sort the measurements behind the host means of a comparison so that each mean covers adjacent rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Centre
from fleetmark.planner.comparison import Side
from fleetmark.reports.kit import format as fmt

LIVE = 20_000  # maximum measurements for which host means are formulas


@dataclass(frozen=True, slots=True)
class Middle:
    """A centre of adjacent rows in ``Sources.rows``.

    ``parts``: the first and last row of each part; the centre is computed for each part, then over the parts.
    ``is_median``: use the median instead of the geometric mean.
    """

    parts: Sequence[tuple[int, int]]
    is_median: bool


@dataclass(frozen=True, slots=True)
class Sources:
    """The measurements behind the host means.

    ``rows``: measurements with their ``side``, ``title`` (of the benchmark), ``machine`` and ``amount`` (the divisor of
    the value). ``centres``: maps (side, title) to the centres of each host, by its position in Side.means. ``count``:
    the number of measurements behind the means, listed or not.
    """

    rows: pd.DataFrame
    centres: Mapping[tuple[str, str], Mapping[str, Sequence[Middle]]]
    count: int

    @property
    def is_listed(self) -> bool:
        """Return whether the rows are listed, so that formulas can refer to them."""
        return self.count <= LIVE and not self.rows.empty


def sources(compared: Mapping[str, Side], titles: Sequence[str]) -> Sources:
    """Return the measurements behind the host means of ``titles``; no rows if there are more than LIVE of them."""
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
