"""Compare the totals of mixed fleets, since a geometric mean does not represent a sum.

Each host has a score: its average work over the benchmarks of a class, or the rate at which it completes the mix. The
ratio of the arithmetic mean scores tells how many baseline hosts one candidate host replaces.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.text import Message, message
from fleetmark.planner.contrast import Pairing, of_use
from fleetmark.planner.equivalence import Basis, Equivalence
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.fieller import degrees_of, fieller, of_means
from fleetmark.planner.mixed import Codes, mean_over
from fleetmark.planner.ratio import Mean, Ratio, two_sided

APART = 0.02  # relative difference from the geometric mean above which the ratio of totals becomes the headline
_ROUNDS = 50  # iterations of the fit that fills gaps

Floats = npt.NDArray[np.float64]


def totalled(e: Equivalence, a: pd.DataFrame, b: pd.DataFrame, pairing: Pairing) -> Equivalence:
    """Return ``e`` with the ratio of totals as its headline if it differs from the present headline by more than APART.

    ``a`` and ``b`` are the oriented logs of the capacity of the baseline's and the candidate's hosts. The interval is
    Fieller's. It counts clusters if the interval of ``e`` does, and is omitted if it includes 0 or is unbounded. The
    headline stays unchanged if both sides are the same hosts (before and after), for a pinned reference, and for a
    single host with an interval from its repeats.
    """
    before = e.headline
    if before is None or pairing is not Pairing.APART or (before.single and before.interval is not None):
        return e
    titles = [t for t, w in e.weights.items() if w > 0]
    weights = np.array([e.weights[t] for t in titles])
    weights /= weights.sum()
    present = [side[titles].notna().any(axis=1).to_numpy() for side in (a, b)]
    x, y = (_filled(side[titles].to_numpy(float)[rows]) for side, rows in zip((a, b), present, strict=True))
    if e.work is not None:
        jobs = weights * np.exp(x).mean(axis=0)  # jobs per benchmark completed by the baseline's mean host
        scores = [1 / (jobs / np.exp(side)).sum(axis=1) for side in (x, y)]
    else:
        centre = x.mean(axis=0)
        scores = [np.exp((side - centre) @ weights) for side in (x, y)]
    codes = [None if c is None else c.codes[rows] for c, rows in zip(e.clusters, present, strict=True)]
    ratio = replace(total(scores[0], scores[1], (codes[0], codes[1])), n=before.n, single=before.single)
    if abs(ratio.value / before.value - 1) <= APART:
        return e
    workload, reason = (None, None) if e.workload is None else _another_workload(e.workload, ratio)
    changed = replace(e, basis=Basis.TOTALS, geometric=before, workload=workload, resampled=None)
    changed = replace(changed, workload_why=reason or e.workload_why)
    return replace(changed, work=ratio) if e.work is not None else replace(changed, ratio=ratio)


def total(a: Floats, b: Floats, clusters: tuple[Codes | None, Codes | None] = (None, None)) -> Ratio:
    """Return mean(``b``) / mean(``a``) with Fieller's interval, omitted if it includes 0 or is unbounded.

    ``clusters``: for each side, the cluster of each host, or None; with clusters the variance is CR2.
    """
    n = (len(a), len(b))
    if not any(c is not None for c in clusters):
        x, y = Mean.from_logs(a), Mean.from_logs(b)
        e = fieller(b, a)
    else:
        x, y = (mean_over(side, codes) for side, codes in zip((a, b), clusters, strict=True))
        e = of_means(y, x, (n[1], n[0]))
    lo, hi = (e.lo, e.hi) if e.lo is not None and e.lo > 0 else (None, None)
    df_many = None if e.df is None else degrees_of(y, x)[1]
    return Ratio(
        e.value,
        lo,
        hi,
        e.level,
        e.df,
        n=n,
        p=_p(x, y, e.df),
        df_many=df_many,
        clusters=any(c is not None for c in clusters),
    )


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


def _p(a: Mean, b: Mean, df: float | None) -> float | None:
    """Return the p value of the difference between the totals, or None if a side has only one host."""
    if min(a.df, b.df) <= 0 or df is None:
        return None
    error = (a.variance + b.variance) ** 0.5
    if error == 0:
        return 0.0 if a.value != b.value else 1.0
    return two_sided((b.value - a.value) / error, df)


def _another_workload(e: Estimate, fleet: Ratio) -> tuple[Estimate | None, Message | None]:
    """Return the interval of another workload around the ratio of totals, or the reason why there is none.

    The interval is never narrower than the interval for the fleet.
    """
    if fleet.lo is None or fleet.hi is None:
        return None, message("the totals have no interval, which is part of it")
    lo, hi = (fleet.value * (end or e.value) / e.value for end in (e.lo, e.hi))
    return of_use(replace(e, value=fleet.value, lo=min(lo, fleet.lo), hi=max(hi, fleet.hi)))
