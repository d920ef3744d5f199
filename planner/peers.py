"""Hosts beside the other hosts of their side: how far each lies from their median, and which stand out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.measurement import Kind
from planner.comparison import Side

LEAST = 3  # hosts of a side from which on one can be unlike the others
SLOW = 0.05  # a host's deviation over all benchmarks from which it stands out
APART = 0.10  # the same for a single class
_NOISE = 4  # times the median deviation of its peers, which it must exceed


@dataclass(frozen=True, slots=True)
class Outlier:
    """A host of ``side`` whose figures are ``deviation`` from the median of its side (-0.1: 10% worse), over all its
    benchmarks or those of ``class_``.
    """

    side: str
    host: str
    deviation: float
    class_: str = ""


def deviations(side: Side) -> pd.DataFrame:
    """Hosts by classes: the ratio to the median of the side less 1, positive where better; the column "" is over all
    benchmarks. Guardrails are no speed and do not count. NaN where a host has no figure, or no peer has.
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
    """The median of each row, of what is not NaN."""
    if not np.isnan(values).any() and values.shape[1]:  # several times as fast
        return np.asarray(np.median(values, axis=1))
    return pd.DataFrame(values).median(axis=1).to_numpy(float)


def outliers(side: Side) -> list[Outlier]:
    """Hosts unlike their peers, the furthest first; each once, by all its benchmarks where these tell."""
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
