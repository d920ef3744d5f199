"""Check guardrails: conditions that the candidate must meet, against a limit or against the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd

from fleetmark.base.measurement import Better
from fleetmark.base.text import joined, message
from fleetmark.planner.clustered import Clusters, strongest
from fleetmark.planner.contrast import Pairing
from fleetmark.planner.mixed import mean_over
from fleetmark.planner.ratio import Mean, Ratio, Verdict, against, among, between
from fleetmark.planner.remarks import numbered

_ZERO = 1e-29  # smaller values are treated as zero
_ROUNDING = 1e-9
Groups = tuple[pd.DataFrame | None, pd.DataFrame | None]
NO_GROUPS: Groups = (None, None)


class Held(StrEnum):
    """The verdict on a guardrail."""

    KEPT = "kept"
    BROKEN = "broken"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """The result of one guardrail.

    - ``a``, ``b``: the mean over the hosts of each side in the base unit, or None if not measured
    - ``n``: the number of hosts on each side
    - ``limit``: the limit that applies; None if the candidate is compared with the baseline
    - ``held``: the verdict, or None if a side has no figure; ``reason`` then gives the reason
    - ``change``: the test of the candidate against the baseline if there is no limit. Its logarithm is the difference
      of the means relative to the baseline's mean
    """

    a: float | None
    b: float | None
    limit: float | None
    held: Held | None
    reason: str
    n: tuple[int, int]
    change: Ratio | None = None


def judged_together(guards: Mapping[str, Guardrail]) -> dict[str, Guardrail]:
    """Return the guardrails with verdicts adjusted for multiple tests (Benjamini-Hochberg) if they have no limit.

    Without the adjustment, 2.5% of unchanged guardrails would fail, including at least one in most tables of 100.
    """
    ps = among({name: g.change for name, g in guards.items() if g.change is not None})
    return {name: _adjusted(g, ps.get(name)) for name, g in guards.items()}


def _adjusted(guard: Guardrail, p: float | None) -> Guardrail:
    if guard.change is None or p is None:
        return guard
    change = replace(guard.change, p_adjusted=p)
    return replace(guard, change=change, held=held_by(change))


def guardrail(
    a: pd.Series, b: pd.Series, better: Better, limit: float | None, pairing: Pairing, groups: Groups = NO_GROUPS
) -> Guardrail:
    """Return the guardrail for the hosts ``a`` and ``b``, given as oriented logs of host means.

    With a limit, every host must meet it. Without a limit, the candidate must not be worse than the baseline, and the
    test counts clusters if hosts in one of the ``groups`` (see ``planner.equivalence.compare``) are similar.
    """
    sign = -1.0 if better is Better.LOWER else 1.0
    x, y = (pd.Series(np.exp(sign * side), dtype=float).where(sign * side > np.log(_ZERO), 0.0) for side in (a, b))
    first, second = (float(side.mean()) if len(side) else None for side in (x, y))
    n = (len(x), len(y))
    if limit is not None and len(y):
        slack = _ROUNDING * abs(limit)  # convert the figures back from their logarithms
        over = {side: int((sign * values < sign * limit - slack).sum()) for side, values in (("a", x), ("b", y))}
        reason = message("broken on {n} of {hosts} hosts", n=over["b"], hosts=len(y)) if over["b"] else ""
        if over["a"] and not reason:
            reason = message("the baseline breaks it")
        return Guardrail(
            a=first, b=second, limit=limit, held=Held.BROKEN if over["b"] else Held.KEPT, reason=reason, n=n
        )
    if not len(x) or not len(y):
        reason = message("measured on the baseline only") if len(x) else message("measured on the candidate only")
        return Guardrail(a=first, b=second, limit=limit, held=None, reason=reason, n=n)
    change, clusters = _change(x, y, sign, pairing, groups)
    reason = message("no limit: compared with the baseline")
    if clusters:
        counted = joined(numbered(of_side)[0] for of_side in clusters)
        reason = message("no limit: compared with the baseline; similar hosts count as {clusters}", clusters=counted)
    return Guardrail(a=first, b=second, limit=None, held=held_by(change), reason=reason, n=n, change=change)


def held_by(change: Ratio | None) -> Held:
    """Return the verdict of the test against the baseline; ``change`` is None if all figures are zero."""
    if change is None:
        return Held.KEPT
    return {Verdict.WORSE: Held.BROKEN, Verdict.CANNOT_TELL: Held.CANNOT_TELL}.get(change.verdict, Held.KEPT)


def _change(
    x: pd.Series, y: pd.Series, sign: float, pairing: Pairing, groups: Groups
) -> tuple[Ratio | None, Sequence[Clusters]]:
    """Return the test of ``y`` against ``x`` by the difference of their means, and the clusters that it counts.

    There is no test if all figures are zero.
    """
    scale = float(x.mean()) or float(y.mean())
    if scale == 0:
        return None, ()
    before, after = (sign * side / scale for side in (x, y))
    if pairing is Pairing.PINNED:
        return against(float(before.iloc[0]), after.tolist()), ()
    if pairing is Pairing.SAME_HOSTS:
        common = before.index.intersection(after.index)
        if common.empty:
            return Ratio(1.0), ()
        mean, clusters = _mean(after[common] - before[common], groups[1])
        return between(Mean.exact(0.0), mean, (len(common), len(common))), clusters
    (first, of_first), (second, of_second) = _mean(before, groups[0]), _mean(after, groups[1])
    return between(first, second, (len(before), len(after))), [*of_first, *of_second]


def _mean(scores: pd.Series, groups: pd.DataFrame | None) -> tuple[Mean, Sequence[Clusters]]:
    """Return the mean over hosts and the clusters that its variance counts, if any."""
    values = scores.to_numpy(float)
    clusters = None if groups is None else strongest(values, groups.reindex(scores.index))
    return mean_over(values, None if clusters is None else clusters.codes), [clusters] if clusters else []
