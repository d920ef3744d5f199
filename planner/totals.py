"""Compare the totals of mixed fleets, since a geometric mean does not represent a sum.

Each host has a score: its average work over the benchmarks of a class, or the rate at which it completes the mix. The
ratio of the arithmetic mean scores tells how many baseline hosts one candidate host replaces.
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

APART = 0.02  # relative difference from the geometric mean above which the ratio of totals becomes the headline
_ROUNDS = 50  # iterations of the fit that fills gaps

Floats = npt.NDArray[np.float64]


def totalled(e: Equivalence, a: pd.DataFrame, b: pd.DataFrame, pairing: Pairing) -> Equivalence:
    """Return ``e`` with the ratio of totals as its headline if it differs from the present headline by more than APART.

    ``a`` and ``b`` are the oriented logs of the capacity of the baseline's and the candidate's hosts. The interval is
    Fieller's, and is omitted if it includes 0 or is unbounded. If both sides are the same hosts (before and after), the
    headline stays unchanged, since they are compared host by host.
    """
    before = e.headline
    if before is None or pairing is Pairing.SAME_HOSTS:
        return e
    titles = [t for t, w in e.weights.items() if w > 0]
    weights = np.array([e.weights[t] for t in titles])
    weights /= weights.sum()
    x, y = (_filled(side[titles].dropna(how="all").to_numpy(float)) for side in (a, b))
    if e.work is not None:
        jobs = weights * np.exp(x).mean(axis=0)  # jobs per benchmark completed by the baseline's mean host
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
    """Return mean(``b``) / mean(``a``) with Fieller's interval, omitted if it includes 0 or is unbounded."""
    e = fieller(b, a)
    lo, hi = (e.lo, e.hi) if e.lo is not None and e.lo > 0 else (None, None)
    return Ratio(e.value, lo, hi, e.level, e.df, (len(a), len(b)), _p(a, b, e.df))


def _filled(logs: Floats) -> Floats:
    """Return ``logs`` (hosts by benchmarks) with gaps filled by a least-squares fit of host and benchmark effects."""
    seen = ~np.isnan(logs)
    if seen.all():
        return logs
    host = np.zeros(len(logs))
    for _ in range(_ROUNDS):
        benchmark = np.nanmean(logs - host[:, None], axis=0)
        host = np.nanmean(logs - benchmark, axis=1)
    return np.where(seen, logs, benchmark + host[:, None])


def _p(a: Floats, b: Floats, df: float | None) -> float | None:
    """Return the p value of the difference of the totals, or None if a side has only one host."""
    if min(len(a), len(b)) < 2 or df is None:
        return None
    x, y = Mean.of(a), Mean.of(b)
    error = (x.variance + y.variance) ** 0.5
    if error == 0:
        return 0.0 if x.value != y.value else 1.0
    from scipy import special  # imported lazily, as in planner.estimate

    return 2 * float(special.stdtr(df, -abs(y.value - x.value) / error))


def _scaled(e: Estimate, factor: float) -> Estimate:
    lo, hi = (None if end is None else end * factor for end in (e.lo, e.hi))
    return replace(e, value=e.value * factor, lo=lo, hi=hi)
