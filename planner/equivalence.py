"""Compute from host means how many A one B replaces: for a benchmark, a class of benchmarks or a mix of work.

A side is a frame of oriented logarithms of host means: one row per host, one column per benchmark, NaN for missing
figures. A headline covers the panel: the benchmarks that both sides measured, or those that the caller names. A
benchmark that only one side measured has no influence.

The weight of a benchmark is its share of a server's time. Without weights, a cluster of redundant benchmarks counts
once. Hosts with gaps are kept; ``planner.mixed`` has the model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.base.text import Message, message
from fleetmark.planner.clustered import Clusters, halves, strongest
from fleetmark.planner.contrast import (
    Contrast,
    Figures,
    Pairing,
    Repeats,
    TooFewFiguresError,
    another_workload,
    equal_work,
)
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.ratio import SAME, Ratio
from fleetmark.planner.redundant import clusters, merged

MIX_SENSITIVE = 0.05  # relative difference of the two headlines that triggers a warning
DISAGREE = 1.5  # minimum ratio of the highest to the lowest benchmark for which the mean alone is misleading
MOST_NAMED = 3  # maximum number of benchmarks named in a sentence
ENDS = 2  # number of benchmarks selected by value: the lowest and the highest

Floats = npt.NDArray[np.float64]


class Basis(StrEnum):
    """The method behind a headline."""

    MEAN = ""
    TOTALS = "totals"  # sums over the hosts of a mixed fleet
    STRATA = "strata"  # ratios within strata, weighted by the baseline's shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalence:
    """The comparison of one candidate with the baseline for one class of work.

    - ``ratio``: the weighted geometric mean of the panel's ratios with its confidence interval for the fleet; None if
      it cannot be computed, and ``reason`` gives the reason
    - ``workload``: the same value with the prediction interval for another workload of this class; None for a mix, or
      if ``workload_why`` gives a reason
    - ``work``: the headline for a mix: the ratio of server-hours for the same work
    - ``each``: the ratio of each benchmark
    - ``lowest``, ``highest``: the extreme ratios in the panel, with their titles
    - ``lowest_interval``, ``highest_interval``: their intervals, wider than in ``each`` to correct for selection by
      value
    - ``left_out``: by benchmark, the side on which it is missing
    - ``hosts_out``: by host, the reason why it is excluded from the headline
    - ``gaps``: True if hosts lack figures of the panel, so that ``planner.mixed`` estimates the ratio
    - ``resampled``: the ratio with its bootstrap interval over hosts, if available
    - ``basis``: the method behind the headline
    - ``strata``: if ``basis`` is strata, the share of each and its hosts on both sides
    - ``size``: the name of the only stratum, if ``basis`` is strata and there is one
    - ``geometric``: the geometric mean over all hosts, if ``basis`` is another method
    - ``clusters``: for each side, the clusters that intervals count instead of hosts; None if hosts are independent
    - ``halves``: for each side, groups of benchmarks such that no host ran benchmarks from two groups
    """

    ratio: Ratio | None
    reason: str
    work: Ratio | None
    each: Mapping[str, Ratio]
    weights: Mapping[str, float]  # weights of the panel, summing to 1; a mix has them even without a headline
    lowest: float | None
    highest: float | None
    left_out: Mapping[str, str]
    hosts_out: Mapping[str, str]
    resampled: Estimate | None = None
    workload: Estimate | None = None
    lowest_title: str = ""
    highest_title: str = ""
    gaps: bool = False
    workload_why: str = ""
    lowest_interval: tuple[float, float] | None = None
    highest_interval: tuple[float, float] | None = None
    clusters: tuple[Clusters | None, Clusters | None] = (None, None)
    halves: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]] = ((), ())
    basis: Basis = Basis.MEAN
    geometric: Ratio | None = None
    strata: Sequence[tuple[float, Sequence[str], Sequence[str]]] = ()
    size: str = ""

    @property
    def headline(self) -> Ratio | None:
        """Return the ratio on which the verdict is based: the equal-work ratio if there is a mix."""
        return self.work or self.ratio

    @property
    def equal_work(self) -> Ratio | None:
        """Return the equal-work ratio to compare with the geometric mean; both average over individual hosts."""
        return self.geometric if self.work and self.basis is Basis.TOTALS else self.work

    @property
    def mix_sensitive(self) -> bool:
        """Return whether the equal-work and geometric headlines differ by more than MIX_SENSITIVE."""
        work = self.equal_work
        return bool(self.ratio and work and abs(self.ratio.value / work.value - 1) > MIX_SENSITIVE)

    @property
    def disagree(self) -> bool:
        """Return whether the panel's ratios differ much, or lie on both sides of 1 beyond the margin of "same"."""
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
    family: Mapping[str, str] | None = None,
    groups: tuple[pd.DataFrame | None, pd.DataFrame | None] = (None, None),
) -> Equivalence:
    """Return the comparison of the hosts of ``b`` with those of ``a``.

    - ``mix``: the share of server-hours on ``a`` by benchmark; it may name any benchmark of either side and sums to 1
    - ``weights``: pinned weights, used instead of those from clustering; they disable the second headline
    - ``panel``: the benchmarks that the headline covers; by default, all benchmarks measured on both sides
    - ``machines``: one row per type of machine in the comparison, used to find redundant benchmarks
    - ``quantity``: by benchmark, the quantity that it measures; benchmarks with the same quantity are redundant
    - ``pairing``: how the hosts of the two sides are related
    - ``repeats``: for each side, the precision from repeats, used if the side has a single host
    - ``family``: by benchmark, its family; benchmarks of one family count once in the prediction for another workload
    - ``groups``: for each side, one row per host with its batch, rack, bios and microcode
    """
    names = sorted(set(a.columns) | set(b.columns))
    hosts_out: dict[str, str] = {}
    if pairing is Pairing.SAME_HOSTS:
        a, b, hosts_out = _same_hosts(a, b)
    both, left_out = _on_both(names, a, b)
    sides = (Figures.from_side(a, both, repeats[0]), Figures.from_side(b, both, repeats[1]))

    def refused(reason: Message) -> Equivalence:
        each = _each(sides, both, pairing)
        return Equivalence(
            ratio=None,
            reason=reason,
            work=None,
            each=each,
            weights=dict(mix or {}),
            lowest=None,
            highest=None,
            left_out=left_out,
            hosts_out=hosts_out,
        )

    if reason := _refusal(names, both, mix, panel, a, b):
        return refused(reason)
    weighted = _groups(both if panel is None else sorted(set(panel)), mix, weights, a, b, machines, quantity)
    if not weighted:
        return refused(message("none of what both sides measured has a weight: give one of them a weight"))
    share = {n: w for group in weighted for n, w in group.items()}
    chosen = [n for n in both if n in share]
    panels = (a[chosen], b[chosen])
    if pairing is not Pairing.SAME_HOSTS:
        hosts_out |= _idle(panels[0]) | _idle(panels[1])
    columns = [n for n, name in enumerate(both) if name in share]
    w = np.array([share[n] for n in chosen])
    try:
        contrast = Contrast.from_sides(sides, columns, pairing)
    except TooFewFiguresError as error:
        return refused(error.reason)
    alike = _alike(contrast, w, panels, groups, pairing)
    if any(alike):
        sides = (_in_clusters(sides[0], alike[0]), _in_clusters(sides[1], alike[1]))
        contrast = Contrast.from_sides(sides, columns, pairing)
    each = _each(sides, both, pairing)
    ends = sorted(chosen, key=lambda n: each[n].value)
    workload, workload_why = None, None
    if mix is None:
        families = [[chosen.index(n) for n in group] for group in merged(weighted, family or {})]
        workload, workload_why = another_workload(contrast, w, families)
    return Equivalence(
        ratio=contrast.ratio(w),
        reason="",
        work=equal_work(contrast, w) if mix is not None else None,
        each=each,
        weights={n: share[n] for n in chosen},
        lowest=each[ends[0]].value,
        highest=each[ends[-1]].value,
        left_out=left_out,
        hosts_out=hosts_out,
        resampled=contrast.resampled(w),
        workload=workload,
        lowest_title=ends[0],
        highest_title=ends[-1],
        gaps=contrast.gaps,
        workload_why=workload_why or "",
        lowest_interval=each[ends[0]].selected(ENDS, len(chosen)),
        highest_interval=each[ends[-1]].selected(ENDS, len(chosen)),
        clusters=alike,
        halves=(_halves(panels[0]), _halves(panels[1])),
    )


def _each(sides: tuple[Figures, Figures], names: Sequence[str], pairing: Pairing) -> dict[str, Ratio]:
    """Return the ratio of each benchmark separately."""
    return {name: Contrast.from_sides(sides, [n], pairing).ratio(np.ones(1)) for n, name in enumerate(names)}


# --- clusters of hosts ------------------------------------------------------------------------------------------------


def _alike(
    contrast: Contrast,
    w: Floats,
    panel: tuple[pd.DataFrame, pd.DataFrame],
    groups: tuple[pd.DataFrame | None, pd.DataFrame | None],
    pairing: Pairing,
) -> tuple[Clusters | None, Clusters | None]:
    """Return, for each side, the clusters that intervals must count, or None if hosts are independent."""
    clusters_of_sides: list[Clusters | None] = []
    for scores, side, codes in zip(contrast.scores(w), panel, groups, strict=True):
        if scores is None or codes is None:
            clusters_of_sides.append(None)
            continue
        present = side.notna().any(axis=1).to_numpy()
        if pairing is Pairing.SAME_HOSTS:
            present = (panel[0].notna() & panel[1].notna()).any(axis=1).to_numpy()
        scores_of_all = np.full(len(side), np.nan)
        scores_of_all[present] = scores
        clusters_of_sides.append(strongest(scores_of_all, codes.reindex(side.index)))
    return clusters_of_sides[0], clusters_of_sides[1]


def _in_clusters(side: Figures, clusters: Clusters | None) -> Figures:
    return side if clusters is None else replace(side, clusters=clusters.codes)


def _halves(panel: pd.DataFrame) -> list[list[str]]:
    """Split the benchmarks of a side into groups such that no host ran benchmarks from two groups."""
    names = [str(name) for name in panel.columns]
    return [[names[n] for n in group] for group in halves(panel.notna().to_numpy())]


# --- selection and weights of benchmarks ------------------------------------------------------------------------------


def _refusal(
    names: Sequence[str],
    both: Sequence[str],
    mix: Mapping[str, float] | None,
    panel: Sequence[str] | None,
    a: pd.DataFrame,
    b: pd.DataFrame,
) -> Message | None:
    """Return why there can be no headline over these benchmarks and how to get one, or None if there can be one."""
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
        return message("none of it was measured on the candidate: run {some} there", some=_some(only_a))
    return message("none of it was measured on the baseline: run {some} there", some=_some(only_b))


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
    """Return the panel as groups of redundant benchmarks, each with its weight; all weights sum to 1.

    Groups have equal weights unless weights are given. With given weights, benchmarks without a weight belong to no
    group, and only benchmarks of the same quantity are redundant.
    """
    fixed = mix if mix is not None else weights
    if fixed is not None:
        total = sum(fixed[n] for n in panel if fixed.get(n, 0) > 0)
        members: dict[str, dict[str, float]] = {}
        for n in (n for n in panel if fixed.get(n, 0) > 0):
            members.setdefault((quantity or {}).get(n) or n, {})[n] = fixed[n] / total
        return list(members.values())
    frame = pd.concat([a, b]) if machines is None else machines
    groups = clusters(frame.reindex(columns=list(panel)), kinds=machines is not None, quantity=quantity)
    return [dict.fromkeys(group, 1 / len(groups) / len(group)) for group in groups]


def _same_hosts(a: pd.DataFrame, b: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str]]:
    """Return the hosts on both sides, with a gap if either figure is missing, and the excluded hosts with reasons."""
    common, shared = a.index.intersection(b.index), a.columns.intersection(b.columns)
    alone: dict[str, str] = {str(h): message("is on one side only") for h in a.index.symmetric_difference(b.index)}
    x, y = a.loc[common].copy(), b.loc[common].copy()
    complete = x[shared].notna() & y[shared].notna()
    x[shared], y[shared] = x[shared].where(complete), y[shared].where(complete)
    return x, y, alone


def _on_both(names: Sequence[str], a: pd.DataFrame, b: pd.DataFrame) -> tuple[list[str], dict[str, str]]:
    both: list[str] = []
    out: dict[str, str] = {}
    in_a, in_b = (
        set(itertools.compress(side.columns, np.logical_or.reduce(side.notna().to_numpy()))) for side in (a, b)
    )
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
    """Return the hosts of a side that have no benchmark of the panel."""
    without = panel.index[panel.isna().all(axis=1)]
    return {str(host): message("lacks all benchmarks that both sides measured") for host in without}
