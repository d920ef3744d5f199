"""From host means to "one B is worth so many A": for a benchmark, for a class of them, for a mix of work.

A side is a frame of oriented logarithms of host means: a row per host, a column per benchmark, NaN where a host has no
figure. A headline is over the panel: what both sides measured, or the benchmarks that the caller names. What one side
lacks takes nothing from it. Weights are the share of a server's time that each benchmark represents; without them a
cluster of redundant benchmarks counts once. Hosts with gaps stay: ``planner.mixed`` has the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.text import Message, count, message
from planner import bootstrap, mixed
from planner.estimate import Estimate, of_log
from planner.ratio import SAME, Mean, Ratio, between, satterthwaite

MIX_SENSITIVE = 0.05  # how far the two headlines may differ before a warning
DISAGREE = 1.5  # times the lowest ratio the highest, from which on a mean alone misleads
ALIKE = 0.98  # correlation from which on benchmarks are redundant
LEAST_MACHINES = 8  # to tell whether they are
MOST_NAMED = 3  # benchmarks in a sentence
MOST_SPREAD = 100  # times its lower end the upper one, from which on an interval of your workload says nothing

Floats = npt.NDArray[np.float64]


class Pairing(Enum):
    """How the hosts of two sides are related."""

    APART = "different hosts"
    SAME_HOSTS = "the same hosts, before and after"
    PINNED = "a pinned reference, of one row, and hosts"


@dataclass(frozen=True, slots=True)
class Repeats:
    """How well each figure of a side is known by its own repeats: frames as the side's. ``errors``: the standard error
    of the log; ``degrees``: its degrees of freedom. NaN where a figure was measured once.
    """

    errors: pd.DataFrame
    degrees: pd.DataFrame


@dataclass(frozen=True, slots=True)
class Equivalence:
    """One candidate against the baseline for a class of work.

    ``ratio``: the weighted geometric mean of the panel's ratios, with the interval of the fleet: how sure that mean is.
    It is None where the figures give none, and ``why`` says what would. ``workload``: the same value with the interval
    in which a workload of this class lies that is none of these benchmarks; None below two, and for a mix. ``work``:
    the headline for the mix, the ratio of server-hours for the same work.

    ``each``: benchmark to its own ratio. ``lowest`` and ``highest`` are the ends of those in the panel, with their
    titles. ``left_out``: benchmark to which side lacks it; ``hosts_out``: host to why it has no part in the headline.
    ``gaps``: hosts lack figures of the panel, so that the ratio comes from ``planner.mixed``. ``resampled``: the ratio
    with the bootstrap's interval over hosts, where there is one.
    """

    ratio: Ratio | None
    why: str
    work: Ratio | None
    each: Mapping[str, Ratio]
    weights: Mapping[str, float]  # of the panel, summing to 1; of a mix also where it gives no headline
    lowest: float | None
    highest: float | None
    left_out: Mapping[str, str]
    hosts_out: Mapping[str, str]
    resampled: Estimate | None = None
    workload: Estimate | None = None
    lowest_title: str = ""
    highest_title: str = ""
    gaps: bool = False

    @property
    def headline(self) -> Ratio | None:
        """The ratio that carries the verdict: that for equal work where there is a mix."""
        return self.work or self.ratio

    @property
    def mix_sensitive(self) -> bool:
        """Whether equal-work and geometric headline differ by more than MIX_SENSITIVE."""
        return bool(self.ratio and self.work and abs(self.ratio.value / self.work.value - 1) > MIX_SENSITIVE)

    @property
    def disagree(self) -> bool:
        """Whether the panel's ratios lie on both sides of 1 (by more than the margin of "same"), or far apart."""
        if self.lowest is None or self.highest is None:
            return False
        return (self.lowest < 1 - SAME and self.highest > 1 + SAME) or self.highest > DISAGREE * self.lowest


def compare(
    a: pd.DataFrame,
    b: pd.DataFrame,
    *,
    mix: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    panel: Sequence[str] | None = None,
    machines: pd.DataFrame | None = None,
    quantity: Mapping[str, str] | None = None,
    pairing: Pairing = Pairing.APART,
    repeats: tuple[Repeats | None, Repeats | None] = (None, None),
) -> Equivalence:
    """The equivalence of the hosts of ``b`` in terms of those of ``a``.

    ``mix``: benchmark to its share of the server-hours on ``a`` (any benchmark of either side; sums to 1).
    ``weights``: pinned weights, instead of those that clusters give; without a second headline.
    ``panel``: the benchmarks that the headline is over, instead of all that both sides have.
    ``machines``: a row per kind of machine on record, for telling which benchmarks are redundant; ``quantity``:
    benchmark to what it measures, where several measure the same: these are.
    ``pairing``: how the hosts of the two sides are related. ``repeats``: of each side, for sides of a single host.
    """
    names = sorted(set(a.columns) | set(b.columns))
    hosts_out: dict[str, str] = {}
    if pairing is Pairing.SAME_HOSTS:
        a, b, hosts_out = _same_hosts(a, b)
    both, left_out = _on_both(names, a, b)
    sides = (_Side.of(a, both, repeats[0]), _Side.of(b, both, repeats[1]))
    each = {name: _Contrast.of(sides, [n], pairing).ratio(np.ones(1)) for n, name in enumerate(both)}

    def refused(why: Message) -> Equivalence:
        return Equivalence(None, why, None, each, dict(mix or {}), None, None, left_out, hosts_out)

    if why := _refusal(names, both, mix, panel, a, b):
        return refused(why)
    groups = _groups(both if panel is None else sorted(set(panel)), mix, weights, a, b, machines, quantity)
    if not groups:
        return refused(message("none of what both sides measured has a weight: give one of them a weight"))
    share = {n: w for group in groups for n, w in group.items()}
    chosen = [n for n in both if n in share]
    if pairing is not Pairing.SAME_HOSTS:
        hosts_out |= _idle(a[chosen]) | _idle(b[chosen])
    try:
        contrast = _Contrast.of(sides, [n for n, name in enumerate(both) if name in share], pairing)
    except _TooFewError as error:
        return refused(error.why)
    w = np.array([share[n] for n in chosen])
    ends = sorted(chosen, key=lambda n: each[n].value)
    return Equivalence(
        contrast.ratio(w),
        "",
        _equal_work(contrast, w) if mix is not None else None,
        each,
        {n: share[n] for n in chosen},
        each[ends[0]].value,
        each[ends[-1]].value,
        left_out,
        hosts_out,
        contrast.resampled(w),
        _workload(contrast, w, [[chosen.index(n) for n in group] for group in groups]) if mix is None else None,
        ends[0],
        ends[-1],
        contrast.gaps,
    )


# --- which benchmarks, and how much each counts -----------------------------------------------------------------------


def _refusal(
    names: Sequence[str],
    both: Sequence[str],
    mix: Mapping[str, float] | None,
    panel: Sequence[str] | None,
    a: pd.DataFrame,
    b: pd.DataFrame,
) -> Message | None:
    """Why there can be no headline over what is to be compared, and what would give one; None where there can be."""
    if mix is not None and (lacking := sorted(n for n, w in mix.items() if w > 0 and n not in both)):
        return message(
            "the mix names {some}, not measured on both sides: measure what is missing, or name a mix without",
            some=_some(lacking),
        )
    if panel is not None and not panel:
        return message("the panel names none of these benchmarks: add one of {some}", some=_some(both or names))
    if panel is not None and (lacking := sorted(set(panel) - set(both))):
        return message(
            "the panel names {some}, not measured on both sides: measure what is missing, or name a panel without",
            some=_some(lacking),
        )
    return None if both else _nothing_shared(a, b)


def _nothing_shared(a: pd.DataFrame, b: pd.DataFrame) -> Message:
    only_a, only_b = (sorted(map(str, side.columns[side.notna().any()])) for side in (a, b))
    if only_a and only_b:
        return message(
            "no benchmark on both sides: run {one} on the candidate, or {other} on the baseline",
            one=only_a[0],
            other=only_b[0],
        )
    if only_a:
        return message("nothing of it is measured on the candidate: run {some} there", some=_some(only_a))
    return message("nothing of it is measured on the baseline: run {some} there", some=_some(only_b))


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (" …" if len(names) > MOST_NAMED else "")


def _groups(
    panel: Sequence[str],
    mix: Mapping[str, float] | None,
    weights: Mapping[str, float] | None,
    a: pd.DataFrame,
    b: pd.DataFrame,
    machines: pd.DataFrame | None,
    quantity: Mapping[str, str] | None,
) -> list[dict[str, float]]:
    """The panel as groups of redundant benchmarks, each with its weight; all weights sum to 1. Groups weigh the same
    unless weights are given: then those without a weight are in none, and redundant are those of one quantity.
    """
    fixed = mix if mix is not None else weights
    if fixed is not None:
        total = sum(fixed[n] for n in panel if fixed.get(n, 0) > 0)
        of: dict[str, dict[str, float]] = {}
        for n in (n for n in panel if fixed.get(n, 0) > 0):
            of.setdefault((quantity or {}).get(n) or n, {})[n] = fixed[n] / total
        return list(of.values())
    frame = pd.concat([a, b]) if machines is None else machines
    groups = clusters(frame.reindex(columns=list(panel)), kinds=machines is not None, quantity=quantity)
    return [dict.fromkeys(group, 1 / len(groups) / len(group)) for group in groups]


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


def _idle(panel: pd.DataFrame) -> dict[str, str]:
    """Hosts of a side that have nothing of the panel."""
    without = panel.index[panel.isna().all(axis=1)]
    return {str(host): message("has none of the benchmarks that both sides measured") for host in without}


# --- the two sides, and what lies between them ------------------------------------------------------------------------


class _Part(Protocol):
    """One side of a contrast."""

    @property
    def means(self) -> Floats: ...

    @property
    def hosts(self) -> int: ...

    def mean(self, weights: Floats) -> Mean: ...


class _TooFewError(ValueError):
    """A side has too few figures for its hosts and benchmarks."""

    def __init__(self, why: Message) -> None:
        self.why = why
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class _Pinned:
    """A side whose figures have no error of their own."""

    means: Floats
    hosts: int = 1

    def mean(self, weights: Floats) -> Mean:
        return Mean.exact(float(weights @ self.means))


@dataclass(frozen=True, slots=True)
class _Single:
    """A side of one host: ``errors`` and ``degrees`` of its figures, by their repeats; NaN where there are none."""

    means: Floats
    errors: Floats
    degrees: Floats
    hosts: int = 1

    def mean(self, weights: Floats) -> Mean:
        value = float(weights @ self.means)
        counted = weights > 0
        errors, degrees = self.errors[counted], self.degrees[counted]
        if not ((degrees > 0) & np.isfinite(errors)).all():
            return Mean(value, 0.0, 0.0)
        parts = [Mean(0.0, v, d) for v, d in zip((weights[counted] * errors) ** 2, degrees, strict=True)]
        return Mean(value, float(sum(p.variance for p in parts)), satterthwaite(parts))


@dataclass(frozen=True, slots=True)
class _Side:
    """The figures of one side, hosts by benchmarks; ``errors`` and ``degrees`` as in Repeats."""

    logs: Floats
    errors: Floats
    degrees: Floats

    @classmethod
    def of(cls, side: pd.DataFrame, names: Sequence[str], repeats: Repeats | None) -> _Side:
        """The benchmarks ``names`` of a side."""
        logs = side[list(names)].to_numpy(float)
        if repeats is None:
            return cls(logs, np.full_like(logs, np.nan), np.full_like(logs, np.nan))
        errors, degrees = (
            frame.reindex(index=side.index, columns=list(names)).to_numpy(float)
            for frame in (repeats.errors, repeats.degrees)
        )
        return cls(logs, errors, degrees)

    def over(self, columns: Sequence[int]) -> _Side:
        """Some of its benchmarks, all of its hosts."""
        return _Side(self.logs[:, columns], self.errors[:, columns], self.degrees[:, columns])

    def less(self, before: _Side) -> _Side:
        """The differences from the same hosts ``before``."""
        mine, theirs = self.errors**2, before.errors**2
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = (mine + theirs) ** 2 / (mine**2 / self.degrees + theirs**2 / before.degrees)
        return _Side(self.logs - before.logs, np.sqrt(mine + theirs), degrees)

    @property
    def gaps(self) -> bool:
        """Whether a host that has some of the benchmarks lacks others."""
        missing = np.isnan(self.logs)
        return bool((missing.any(axis=1) & ~missing.all(axis=1)).any())

    def part(self, called: Message) -> _Part:
        """Its model. Raises _TooFewError, where the side is ``called`` so."""
        seen = ~np.isnan(self.logs)
        present = seen.any(axis=1)
        logs = self.logs[present]
        hosts, benchmarks = logs.shape
        if hosts == 1:
            return _Single(logs[0], self.errors[present][0], self.degrees[present][0])
        cells = int(seen.sum())
        lacking = mixed.needed(hosts, benchmarks) - cells
        if cells < hosts * benchmarks and lacking > 0:
            raise _TooFewError(
                message(
                    "{hosts} of {side} with {figures} over {benchmarks} do not tell hosts from benchmarks: measure "
                    "{n} more of what they lack, or name a panel of fewer",
                    hosts=count(hosts, "host"),
                    side=called,
                    figures=count(cells, "figure"),
                    benchmarks=count(benchmarks, "benchmark"),
                    n=lacking,
                )
            )
        return mixed.fit(self.logs)


@dataclass(frozen=True, slots=True)
class _Contrast:
    """Baseline and candidate over the same benchmarks. Pairs of the same hosts are one side, of their differences,
    against nothing. ``logs``: the figures of both, of pairs the differences, for resampling; ``gaps``: some are
    missing.
    """

    a: _Part
    b: _Part
    pairing: Pairing
    logs: tuple[Floats, Floats]
    gaps: bool

    @classmethod
    def of(cls, sides: tuple[_Side, _Side], columns: Sequence[int], pairing: Pairing) -> _Contrast:
        """Over the benchmarks in ``columns``. Raises _TooFewError, which says what would be enough."""
        a, b = (side.over(columns) for side in sides)
        if pairing is Pairing.SAME_HOSTS:
            pairs = b.less(a)
            part = pairs.part(message("the pairs of hosts"))
            return cls(_Pinned(np.zeros(len(columns))), part, pairing, (pairs.logs, pairs.logs), pairs.gaps)
        logs, gaps = (a.logs, b.logs), a.gaps or b.gaps
        candidate = b.part(message("the candidate"))
        baseline = _Pinned(a.logs[0]) if pairing is Pairing.PINNED else a.part(message("the baseline"))
        return cls(baseline, candidate, pairing, logs, gaps)

    @property
    def deltas(self) -> Floats:
        """Logs of the benchmarks' ratios, by the model of each side."""
        deltas: Floats = self.b.means - self.a.means
        return deltas

    @property
    def hosts(self) -> tuple[int, int]:
        """How many stand behind each side."""
        return (self.b.hosts if self.pairing is Pairing.SAME_HOSTS else self.a.hosts, self.b.hosts)

    def means(self, weights: Floats) -> tuple[Mean, Mean]:
        """The weighted mean of each side."""
        return self.a.mean(weights), self.b.mean(weights)

    def ratio(self, weights: Floats) -> Ratio:
        """The weighted geometric mean of the ratios, with the interval of the fleet."""
        single = isinstance(self.a, _Single) or isinstance(self.b, _Single)
        ratio = between(*self.means(weights), self.hosts, of_repeats=single)
        return replace(ratio, of_repeats=False) if ratio.interval is None else ratio

    def resampled(self, weights: Floats) -> Estimate | None:
        """The same by the bootstrap over hosts, where none lacks a figure."""
        x, y = (logs[~np.isnan(logs).all(axis=1)] for logs in self.logs)
        if self.gaps or self.pairing is Pairing.PINNED:
            return None
        if self.pairing is Pairing.SAME_HOSTS:
            return bootstrap.paired_percentiles((y @ weights).tolist())
        return bootstrap.percentiles((x @ weights).tolist(), (y @ weights).tolist())


def _equal_work(contrast: _Contrast, w: Floats) -> Ratio:
    """1 / sum(w / r): the server-hours that the mix takes on A over those on B. Interval by the delta method."""
    hours = w * np.array([1 / of_log(d) for d in contrast.deltas])
    linear = contrast.ratio(hours / hours.sum())  # shares of the server-hours on B are the gradient of the headline
    work = -math.log(hours.sum())
    shift = work - math.log(linear.value)
    lo, hi = (None if end is None else of_log(math.log(end) + shift) for end in (linear.lo, linear.hi))
    return replace(linear, value=of_log(work), lo=lo, hi=hi)


def _workload(contrast: _Contrast, w: Floats, groups: Sequence[Sequence[int]]) -> Estimate | None:
    """Where one more benchmark of the class would lie: a prediction interval over groups of redundant benchmarks.

    Their weighted spread has Satterthwaite's degrees of freedom, which with equal weights are one less than there are
    groups; the fleet's variance comes on top. It is never narrower than the fleet's own, which may have fewer degrees
    of freedom. None below two groups.
    """
    if len(groups) < 2:
        return None
    weight = np.array([w[group].sum() for group in groups])
    logs = np.array([w[group] @ contrast.deltas[group] for group in groups]) / weight
    mean, square = float(weight @ logs), float(weight @ weight)
    spread = float(weight @ (logs - mean) ** 2) / (1 - square)
    df = (1 - square) ** 2 / (square - 2 * float((weight**3).sum()) + square**2)
    parts = [Mean(mean, spread * (1 + square), df), *(m for m in contrast.means(w) if m.df > 0)]
    total = sum(part.variance for part in parts)
    result = Estimate.of_error(of_log(mean), math.sqrt(total), satterthwaite(parts), (len(groups),))
    fleet = contrast.ratio(w)
    if fleet.lo is None or result.lo is None or result.lo <= fleet.lo:
        return result
    return replace(result, lo=fleet.lo, hi=fleet.hi, df=fleet.df)


def bounded(lo: float | None, hi: float | None) -> bool:
    """Whether an interval of your workload says anything: of two benchmarks far apart it reaches from 0 to anywhere."""
    return lo is not None and hi is not None and hi < MOST_SPREAD * lo


def pinned_weights(
    machines: pd.DataFrame,
    classes: pd.Series,
    kinds: pd.DataFrame | None = None,
    quantity: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Title to its weight within its class (summing to 1 there), to be kept with a reference.

    ``machines``: oriented log means, a row per host; ``classes``: title to class; ``kinds``: a row per kind of
    machine on record, where there are enough of them; ``quantity`` as in ``compare``.
    """
    weights: dict[str, float] = {}
    for name in sorted(set(classes)):
        titles = [str(t) for t in classes.index[classes == name]]
        frame = machines if kinds is None else kinds
        groups = clusters(frame.reindex(columns=titles), kinds=kinds is not None, quantity=quantity)
        weights |= {title: 1 / len(groups) / len(group) for group in groups for title in group}
    return weights


def clusters(machines: pd.DataFrame, kinds: bool = True, quantity: Mapping[str, str] | None = None) -> list[list[str]]:
    """Benchmarks (columns) grouped by whether they rank the machines (rows) alike: average linkage on 1 - correlation.

    That takes LEAST_MACHINES rows that have both, of different ``kinds`` of machine (with hosts of two generations,
    everything would seem to correlate); with fewer, only columns that are equal in every row form a cluster. Those of
    one ``quantity`` (benchmark to what it measures) always do.
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
    return _merged(list(members.values()), quantity or {})


def _merged(groups: list[list[str]], quantity: Mapping[str, str]) -> list[list[str]]:
    """``groups``, of which those that share a quantity are one."""
    merged: list[list[str]] = []
    for group in groups:
        measured = {quantity.get(name, name) for name in group}
        alike = [other for other in merged if measured & {quantity.get(name, name) for name in other}]
        merged = [other for other in merged if other not in alike]
        merged.append([name for part in (*alike, group) for name in part])
    return merged
