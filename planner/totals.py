"""Totals of mixed fleets: what all hosts of a side do together is a sum, and a geometric mean is no sum.

Each host has a score: its work over the benchmarks of a class, or how often it finishes the mix in a time. The ratio of
the arithmetic means of both sides' scores says how many hosts replace how many.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from planner.contrast import Pairing
from planner.equivalence import Basis, Equivalence
from planner.estimate import Estimate
from planner.fieller import fieller
from planner.ratio import Mean, Ratio

APART = 0.02  # how far totals and geometric mean may differ before totals are the headline
_ROUNDS = 50  # of the fit that fills gaps

Floats = npt.NDArray[np.float64]


def totalled(e: Equivalence, a: pd.DataFrame, b: pd.DataFrame, pairing: Pairing) -> Equivalence:
    """Return ``e`` with the ratio of totals as its headline where it lies more than APART from the one that it has.

    ``a`` and ``b``: oriented logarithms of the capacity of the baseline's and the candidate's hosts. The interval is
    Fieller's; there is none where it reaches 0 or is unbounded. The same hosts before and after are compared host by
    host, so their totals stay as they are.
    """
    before = e.headline
    if before is None or pairing is Pairing.SAME_HOSTS:
        return e
    titles = [t for t, w in e.weights.items() if w > 0]
    weights = np.array([e.weights[t] for t in titles])
    weights /= weights.sum()
    x, y = (_filled(side[titles].dropna(how="all").to_numpy(float)) for side in (a, b))
    if e.work is not None:
        jobs = weights * np.exp(x).mean(axis=0)  # of each benchmark in the time that the baseline's mean host takes
        scores = [1 / (jobs / np.exp(side)).sum(axis=1) for side in (x, y)]
    else:
        centre = x.mean(axis=0)
        scores = [np.exp((side - centre) @ weights) for side in (x, y)]
    ratio = replace(total(scores[0], scores[1]), n=before.n)
    if abs(ratio.value / before.value - 1) <= APART:
        return e
    workload = None if e.workload is None else _scaled(e.workload, ratio.value / before.value)
    changed = replace(e, basis=Basis.TOTALS, geometric=before, workload=workload, resampled=None)
    return replace(changed, work=ratio) if e.work is not None else replace(changed, ratio=ratio)


def total(a: Floats, b: Floats) -> Ratio:
    """Return mean(``b``) / mean(``a``) with Fieller's interval: none where it reaches 0 or is unbounded."""
    e = fieller(b, a)
    lo, hi = (e.lo, e.hi) if e.lo is not None and e.lo > 0 else (None, None)
    return Ratio(e.value, lo, hi, e.level, e.df, (len(a), len(b)), _p(a, b, e.df))


def _filled(logs: Floats) -> Floats:
    """Return ``logs`` (hosts by benchmarks) with gaps filled by host and benchmark effects, fitted by least squares."""
    seen = ~np.isnan(logs)
    if seen.all():
        return logs
    host = np.zeros(len(logs))
    for _ in range(_ROUNDS):
        benchmark = np.nanmean(logs - host[:, None], axis=0)
        host = np.nanmean(logs - benchmark, axis=1)
    return np.where(seen, logs, benchmark + host[:, None])


def _p(a: Floats, b: Floats, df: float | None) -> float | None:
    """Return how likely totals so far apart are where there is no difference; None where a side is one host."""
    if min(len(a), len(b)) < 2 or df is None:
        return None
    x, y = Mean.of(a), Mean.of(b)
    error = (x.variance + y.variance) ** 0.5
    if error == 0:
        return 0.0 if x.value != y.value else 1.0
    from scipy import special  # as in planner.estimate

    return 2 * float(special.stdtr(df, -abs(y.value - x.value) / error))


def _scaled(e: Estimate, factor: float) -> Estimate:
    lo, hi = (None if end is None else end * factor for end in (e.lo, e.hi))
    return replace(e, value=e.value * factor, lo=lo, hi=hi)
