"""Compare hosts with the other hosts of their side: find their deviation from the median, and the outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.measurement import Kind
from fleetmark.planner.comparison import Side

LEAST = 3  # minimum number of hosts on a side to report outliers
SLOW = 0.05  # minimum deviation of an outlier over all benchmarks
APART = 0.10  # the same for a single class
_NOISE = 4  # minimum ratio of a deviation to the median deviation of the host's peers


@dataclass(frozen=True, slots=True)
class Outlier:
    """A host of ``side`` that differs from its peers.

    ``deviation`` is its distance from the median (-0.1: 10% worse), over all its benchmarks or those of ``class_``.
    """

    side: str
    host: str
    deviation: float
    class_: str = ""


def deviations(side: Side) -> pd.DataFrame:
    """Return the ratio of each host to the median of its side, minus 1, hosts by classes; positive values are better.

    The column "" covers all benchmarks. Guardrails are excluded, since they are not speeds. A value is NaN if the host
    has no figure, or if no peer has one.
    """
    scored = side.benchmarks.index[side.benchmarks["kind"] != Kind.GUARDRAIL]
    means = side.means.loc[:, (side.means.notna().sum() > 1) & side.means.columns.isin(scored)]
    values = means.to_numpy(float)
    apart = values - _medians(values.T)
    class_of = side.benchmarks.loc[means.columns, "class"]
    parts = {"": _medians(apart)}
    parts |= {str(c): _medians(apart[:, (class_of == c).to_numpy()]) for c in class_of.unique() if c}
    return pd.DataFrame(np.expm1(pd.DataFrame(parts, index=side.means.index)))


def _medians(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the median of each row, ignoring NaN."""
    if not np.isnan(values).any() and values.shape[1]:  # the branch is several times faster than np.nanmedian
        return np.asarray(np.median(values, axis=1))
    return pd.DataFrame(values).median(axis=1).to_numpy(float)


def outliers(side: Side) -> list[Outlier]:
    """Return the hosts that differ from their peers, the largest deviation first.

    Each host appears once, with its deviation over all benchmarks if this is large enough.
    """
    if len(side.means) < LEAST:
        return []
    frame = deviations(side)
    by_host: dict[str, Outlier] = {}
    for column in sorted(frame.columns):
        values = frame[column].dropna()
        if len(values) < LEAST:
            continue
        bound = max(APART if column else SLOW, _NOISE * float(values.abs().median()))
        for host, value in values[values.abs() > bound].items():
            known = by_host.get(str(host))
            if known is None or (known.class_ and abs(value) > abs(known.deviation)):
                by_host[str(host)] = Outlier(side.title, str(host), float(value), str(column))
    return sorted(by_host.values(), key=lambda o: (-abs(o.deviation), o.host))
