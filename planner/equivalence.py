"""From host means to "one B is worth so many A": for a benchmark, for a class of them, for a mix of work.

A side is a frame of oriented logarithms of host means: a row per host, a column per benchmark, NaN where a host has no
figure. Weights are the share of a server's time that each benchmark represents; without them a cluster of redundant
benchmarks counts once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.text import message
from planner import bootstrap
from planner.estimate import Estimate, of_log
from planner.ratio import Ratio, against, paired, welch

FULLY_COVERED = 1 - 1e-9  # of the weight, but for rounding
LEAST_COVERED = 0.8  # of the weight; below it there is no headline
MIX_SENSITIVE = 0.05  # how far the two headlines may differ before a warning
ALIKE = 0.98  # correlation from which on benchmarks are redundant
LEAST_MACHINES = 8  # to tell whether they are


class Pairing(Enum):
    """How the hosts of two sides are related."""

    APART = "different hosts"
    SAME_HOSTS = "the same hosts, before and after"
    PINNED = "a pinned reference, of one row, and hosts"


@dataclass(frozen=True, slots=True)
class Equivalence:
    """One candidate against the baseline for a class of work.

    ``ratio`` is None where too little is covered, ``why`` then says so. ``work`` is the headline for the mix:
    the ratio of server-hours for the same work. ``each``: benchmark to its own ratio; ``lowest`` and ``highest`` are
    the ends of those in the headline. ``left_out``: benchmark to why it is not in it; ``hosts_out`` likewise.
    ``all_weights``: the weight of each benchmark of either side before any was left out.
    """

    ratio: Ratio | None
    why: str
    work: Ratio | None
    each: Mapping[str, Ratio]
    weights: Mapping[str, float]  # of what is in the headline, summing to 1
    covered: float  # weight of that among all that was to be compared
    lowest: float | None
    highest: float | None
    left_out: Mapping[str, str]
    hosts_out: Mapping[str, str]
    resampled: Estimate | None = None  # the same ratio with the bootstrap's interval over hosts, where there is one
    all_weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def mix_sensitive(self) -> bool:
        """Whether equal-work and geometric headline differ by more than MIX_SENSITIVE."""
        return bool(self.ratio and self.work and abs(self.ratio.value / self.work.value - 1) > MIX_SENSITIVE)


def compare(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    mix: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    machines: pd.DataFrame | None = None,
    pairing: Pairing = Pairing.APART,
) -> Equivalence:
    """The equivalence of the hosts of ``b`` in terms of those of ``a``.

    ``mix``: benchmark to its share of the server-hours on ``a`` (any benchmark of either side; sums to 1).
    ``weights``: pinned weights, instead of those that clusters give; without a second headline.
    ``machines``: a row per kind of machine on record, for telling which benchmarks are redundant.
    ``pairing``: how the hosts of the two sides are related.
    """
    names = sorted(set(a.columns) | set(b.columns))
    alone: dict[str, str] = {}
    if pairing is Pairing.SAME_HOSTS:
        a, b, alone = _same_hosts(a, b)
    fixed = weights if weights is not None else mix
    all_weights = dict(fixed) if fixed is not None else _equal_weights(names, a, b, machines)
    both, left_out = _on_both(names, a, b)
    each = {n: _one(a[n], b[n], pairing) for n in both}
    chosen = [n for n in both if all_weights.get(n, 0) > 0]
    chosen, rows_a, rows_b, dropped, hosts_out = _complete(chosen, a, b)
    left_out |= dropped
    hosts_out |= alone
    covered = sum(all_weights[n] for n in chosen) / (sum(all_weights.values()) or 1)
    why = ""
    if not chosen or covered < LEAST_COVERED:
        why = message("no benchmark on both sides")
        if chosen:
            why = message("only {covered:.0%} of the weight is measured on both sides", covered=covered)
    elif covered < FULLY_COVERED and len(both) < 2:
        why = message(
            "{covered:.0%} of the weight is in one benchmark: nothing says how far the others may lie from it",
            covered=covered,
        )
    if why:
        return Equivalence(None, why, None, each, {}, covered, None, None, left_out, hosts_out, all_weights=all_weights)
    share = {n: all_weights[n] / sum(all_weights[m] for m in chosen) for n in chosen}
    w = np.array([share[n] for n in chosen])
    x, y = rows_a[chosen].to_numpy(float), rows_b[chosen].to_numpy(float)
    delta = y.mean(axis=0) - x.mean(axis=0)
    logs = delta if len(chosen) > 1 else np.log([each[n].value for n in both])
    extra = (1 - covered) ** 2 * float(np.var(logs, ddof=1)) if covered < FULLY_COVERED else 0.0
    ratio = _over(x @ w, y @ w, pairing, extra)
    work = _equal_work(x, y, w, delta, pairing, extra) if mix is not None else None
    lowest, highest = of_log(float(delta.min())), of_log(float(delta.max()))
    second = None if extra else _resampled(x @ w, y @ w, pairing)
    return Equivalence(ratio, "", work, each, share, covered, lowest, highest, left_out, hosts_out, second, all_weights)


def _over(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], pairing: Pairing, extra: float) -> Ratio:
    if pairing is Pairing.SAME_HOSTS:
        return paired(x.tolist(), y.tolist(), extra=extra)
    if pairing is Pairing.PINNED:
        return against(float(x[0]), y.tolist(), extra=extra)
    return welch(x.tolist(), y.tolist(), extra=extra)


def _resampled(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], pairing: Pairing) -> Estimate | None:
    if pairing is Pairing.SAME_HOSTS:
        return bootstrap.paired_percentiles((y - x).tolist())
    return None if pairing is Pairing.PINNED else bootstrap.percentiles(x.tolist(), y.tolist())


def _equal_work(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    w: npt.NDArray[np.float64],
    delta: npt.NDArray[np.float64],
    pairing: Pairing,
    extra: float,
) -> Ratio:
    """1 / sum(w / r): the server-hours that the mix takes on A over those on B. Interval by the delta method."""
    hours = w * np.array([1 / of_log(d) for d in delta])
    share = hours / hours.sum()  # of the server-hours on B, and the gradient of the headline
    linear = _over(x @ share, y @ share, pairing, extra)
    work = -math.log(hours.sum())
    shift = work - math.log(linear.value)
    lo, hi = (None if end is None else of_log(math.log(end) + shift) for end in (linear.lo, linear.hi))
    return replace(linear, value=of_log(work), lo=lo, hi=hi)


def _one(a: pd.Series, b: pd.Series, pairing: Pairing) -> Ratio:
    return _over(a.dropna().to_numpy(float), b.dropna().to_numpy(float), pairing, 0.0)


def _same_hosts(a: pd.DataFrame, b: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str]]:
    """The hosts of both sides, with gaps wherever one of the two figures is missing; the others, with the reason."""
    common, shared = a.index.intersection(b.index), a.columns.intersection(b.columns)
    alone: dict[str, str] = {str(h): message("is on one side only") for h in a.index.symmetric_difference(b.index)}
    x, y = a.loc[common].copy(), b.loc[common].copy()
    complete = x[shared].notna() & y[shared].notna()
    x[shared], y[shared] = x[shared].where(complete), y[shared].where(complete)
    return x, y, alone


def _on_both(names: Sequence[str], a: pd.DataFrame, b: pd.DataFrame) -> tuple[list[str], dict[str, str]]:
    both: list[str] = []
    out: dict[str, str] = {}
    in_a, in_b = (set(side.columns[side.notna().any()]) for side in (a, b))
    for name in names:
        has_a, has_b = name in in_a, name in in_b
        if has_a and has_b:
            both.append(name)
        elif name in a and name in b and not (has_a or has_b):
            out[name] = message("no host has a figure on both sides")
        else:
            out[name] = message("measured on the baseline only") if has_a else message("measured on the candidate only")
    return both, out


def _complete(
    names: list[str], a: pd.DataFrame, b: pd.DataFrame
) -> tuple[list[str], pd.DataFrame, pd.DataFrame, dict[str, str], dict[str, str]]:
    """The benchmarks and the hosts that have them all.

    Hosts with gaps are left out as long as most hosts of a side stay; otherwise the benchmark with the most gaps is.
    """
    dropped: dict[str, str] = {}
    while names:
        rows_a, rows_b = a[names].dropna(), b[names].dropna()
        if 2 * len(rows_a) >= _present(a, names) and 2 * len(rows_b) >= _present(b, names) and len(rows_a):
            break
        gaps = {n: max(float(side[n].isna().mean()) for side in (a, b)) for n in names}
        worst = max(names, key=lambda n: gaps[n])
        dropped[worst] = message("missing on {part:.0%} of the hosts of a side", part=gaps[worst])
        names = [n for n in names if n != worst]
    else:
        return [], a.iloc[:0], b.iloc[:0], dropped, {}
    hosts_out: dict[str, str] = {}
    for side, rows in ((a, rows_a), (b, rows_b)):
        for host in side.index.difference(rows.index):
            gaps_of = [n for n in names if bool(pd.isna(side.loc[host, n]))]
            some = f"{', '.join(gaps_of[:3])}{' …' if len(gaps_of) > 3 else ''}"
            hosts_out[str(host)] = message("has no {some}", some=some)
    return names, rows_a, rows_b, dropped, hosts_out


def _present(side: pd.DataFrame, names: list[str]) -> int:
    """Hosts of a side that have any of the benchmarks."""
    return int(side[names].notna().any(axis=1).sum())


def _equal_weights(
    names: Sequence[str], a: pd.DataFrame, b: pd.DataFrame, machines: pd.DataFrame | None
) -> dict[str, float]:
    """Equal weight per cluster, then within."""
    frame = pd.concat([a, b]) if machines is None else machines
    groups = clusters(frame.reindex(columns=list(names)), kinds=machines is not None)
    return {name: 1 / len(groups) / len(group) for group in groups for name in group}


def pinned_weights(machines: pd.DataFrame, classes: pd.Series, kinds: pd.DataFrame | None = None) -> dict[str, float]:
    """Title to its weight within its class (summing to 1 there), to be kept with a reference.

    ``machines``: oriented log means, a row per host; ``classes``: title to class; ``kinds``: a row per kind of
    machine on record, where there are enough of them.
    """
    weights: dict[str, float] = {}
    for name in sorted(set(classes)):
        titles = [str(t) for t in classes.index[classes == name]]
        frame = machines if kinds is None else kinds
        groups = clusters(frame.reindex(columns=titles), kinds=kinds is not None)
        weights |= {title: 1 / len(groups) / len(group) for group in groups for title in group}
    return weights


def clusters(machines: pd.DataFrame, kinds: bool = True) -> list[list[str]]:
    """Benchmarks (columns) grouped by whether they rank the machines (rows) alike: average linkage on 1 - correlation.

    That takes LEAST_MACHINES rows that have both, of different ``kinds`` of machine (with hosts of two generations,
    everything would seem to correlate); with fewer, only columns that are equal in every row form a cluster.
    """
    names = [str(c) for c in machines.columns]
    if len(names) < 2:
        return [[n] for n in names]
    equal = [column.round(9).tobytes().hex() for column in machines.to_numpy(float).T]
    keys = [name if machines[name].isna().all() else key for name, key in zip(names, equal, strict=True)]
    if kinds and len(machines) >= LEAST_MACHINES:
        related = machines.corr(min_periods=LEAST_MACHINES).to_numpy(float)
        distance = 1 - np.nan_to_num(related, nan=0.0)
        same = pd.factorize(np.array(keys))[0]
        distance[same[:, None] == same] = 0
        from scipy.cluster.hierarchy import fcluster, linkage  # which few comparisons have the machines for
        from scipy.spatial.distance import squareform

        tree = linkage(squareform((distance + distance.T) / 2, checks=False), "average")
        keys = [str(number) for number in fcluster(tree, 1 - ALIKE, "distance")]
    members: dict[str, list[str]] = {}
    for name, key in zip(names, keys, strict=True):
        members.setdefault(key, []).append(name)
    return list(members.values())
