"""Test a plan under uncertain demand and equivalence with simulated futures, and find margins that cover them.

A future draws one factor per workload for its demand, exp(sigma_t z). A workload has the same z in all periods: if it
exceeds its forecast, it continues to do so, and sigma gives the growth. The values of z are correlated between
workloads as the question specifies. A shock multiplies all demands from one period on.

A future also draws one factor per SKU and workload for the worth of its servers, exp(se x t), where t is Student's t
with the estimate's degrees of freedom. That factor is the same for all servers and periods, because an error of
measurement does not average out over servers. Worths of a SKU that were measured on the same hosts share t.

Draws depend only on the seed and the names, so two plans, or two versions of a question, are tested in the same futures
(common random numbers). Servers are counted in every draw, N = ceil(D / (E u)), and quantiles are taken of the counts.
No formula divides by a mean of E.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.text import message
from fleetmark.planner.capacity.analysis.results import Conflict
from fleetmark.planner.capacity.futures import Draws, Fleet, needed, sample, useful_worth
from fleetmark.planner.capacity.question import HOURS, Margin, Plan, Question
from fleetmark.planner.capacity.series import in_period
from fleetmark.planner.estimate import CONFIDENCE, Estimate

Floats = npt.NDArray[np.float64]
Solve = Callable[..., Plan | Conflict]  # called as solve(question, margin=...)

BAND = (0.05, 0.5, 0.95)
SIZES = (0.5, 0.9, 0.95)
_TRIES = 5  # maximum solves to find a level of confidence
_MORE, _STEP = 3, 0.1  # further solves if another seed does not confirm the level, and their step


@dataclass(frozen=True, slots=True)
class Futures:
    """The results of a plan in ``draws`` simulated futures.

    - ``shortfall``: the share of futures in which, in some period, no distribution of the servers in place meets all
      demands. If the question asks for survival, any one failure domain is lost. Its 95% interval accounts for the
      finite number of draws (Wilson)
    - ``unshared``: the same if servers stay with the workloads of the plan
    - ``table``: one row per (workload, period). ``shortfall`` counts futures that no distribution can meet and in which
      the plan's shares are too small. ``demand_p5`` ``_p50`` ``_p95`` and ``capacity_p5`` ... are in the workload's
      unit; capacity is that of the plan's shares in the worst case. ``servers`` are in the plan; ``servers_p50``
      ``_p90`` ``_p95`` are the numbers needed with the plan's mix of SKUs
    - ``sizing``: one row per (workload, period), with the servers that the workload needs alone, of the ``sku`` that is
      cheapest for it
    - ``by_period``: one row per period, with ``installed`` and ``needed_p50`` ... of the plan's servers
    - ``open``: the number of undecided draws, which count as short
    """

    draws: int
    seed: int
    shortfall: Estimate
    unshared: float
    table: pd.DataFrame
    _: KW_ONLY
    sizing: pd.DataFrame
    by_period: pd.DataFrame
    open: int = 0


def futures(question: Question, plan: Plan, n: int = 2000, seed: int = 1) -> Futures:
    """Simulate the ``plan`` in ``n`` futures; its margins are ignored, because demand is drawn."""
    draws, fleet = sample(question, n, seed), Fleet(question, plan)
    lost, alone, works, left_open = fleet.short(draws)
    rows, sizing, periods = [], [], []
    for t, work in enumerate(works):
        total = np.zeros(n)
        for i, name in enumerate(question.workloads):
            demand = draws.demand[:, i, t]
            planned = float(fleet.shares[t, :, :, i].sum())
            grown = float(fleet.grown(t)[:, :, i].sum())
            need = np.divide(grown * demand, work[:, i], out=np.zeros(n), where=work[:, i] > 0)
            total += need
            rows.append(
                {"workload": name, "period": t, "shortfall": float((lost[:, t] & alone[:, t, i]).mean())}
                | _quantiles("demand", demand, BAND)
                | _quantiles("capacity", work[:, i], BAND)
                | {"servers": planned}
                | _quantiles("servers", np.ceil(need * (1 - 1e-9)), SIZES)
            )
            sku = _cheapest(question, name)
            each = needed(demand, draws.worth[:, list(question.skus).index(sku), i], question.speed_limit(sku, name))
            sizing.append({"workload": name, "period": t, "sku": sku} | _quantiles("servers", each, SIZES))
        installed = float(fleet.installed[t].sum())
        periods.append({"period": t, "installed": installed} | _quantiles("needed", np.ceil(total * (1 - 1e-9)), SIZES))
    shortfall = _wilson(float(lost.any(axis=1).mean()), n)
    unshared = float(alone.any(axis=(1, 2)).mean())
    table, alone_, together = (pd.DataFrame(part) for part in (rows, sizing, periods))
    return Futures(n, seed, shortfall, unshared, table, sizing=alone_, by_period=together, open=left_open)


def _quantiles(name: str, values: Floats, levels: Sequence[float]) -> dict[str, float]:
    """Return quantiles that are values of the sample, so that quantiles of counts are integers."""
    quantiles = np.quantile(values, levels, method="inverted_cdf")
    return {f"{name}_p{100 * level:g}": float(v) for level, v in zip(levels, quantiles, strict=True)}


def _wilson(share: float, n: int) -> Estimate:
    """Return a share of ``n`` draws with its 95% score interval (Wilson, J. Am. Stat. Assoc. 22, 1927)."""
    interval = stats.binomtest(round(share * n), n).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(share, float(interval.low), float(interval.high), n=(n,))


def _cheapest(question: Question, workload: str) -> str:
    """Return the SKU with the lowest cost per unit of work among the SKUs on sale, or among all if none is on sale.

    This cost includes the price over the years of the horizon, support, space, and energy at the maximum utilisation.
    """
    q = question
    able = [s for s in q.skus.values() if workload in s.worth]
    if not able:
        raise FleetmarkError(f"{workload}: no SKU can run it; give one a worth for it")
    able = [s for s in able if s.price is not None] or able
    years = q.years * len(q.periods)

    def cost(name: str) -> float:
        s = q.skus[name]
        used = q.utilisation(name, workload)
        energy = (s.idle_w + (s.peak_w - s.idle_w) * used) * HOURS / 1000 * q.pue * in_period(q.energy_price, 0)
        return ((s.price or 0.0) / years + s.rent + s.support + s.space + energy) / q.rate(name, workload)

    return min((s.name for s in able), key=cost)


def margined(
    question: Question,
    solve: Solve,
    quantile: float | None = None,
    *,
    n: int = 2000,
    seed: int = 1,
    say: Callable[[str], None] = lambda sentence: None,
) -> Plan | Conflict:
    """Return the cheapest plan that meets demand in at least ``quantile`` of futures (None: the question's promise).

    A margin is the quantile of the ratio of demand to worth, for the SKUs that serve the workload. All workloads and
    periods use the same level of confidence. The search finds the level at which the share of futures met, less its
    sampling error, equals ``quantile``, or exceeds it by at most that error; another seed confirms it. The search calls
    ``solve(question, margin=...)`` at most nine times, and reports each call with ``say``.

    If the search ends without such a level, the cheapest plan that meets ``quantile`` in all simulated futures together
    is returned. Return the Conflict of the smallest required margins if there is no such plan. Raise FleetmarkError for
    a quantile outside 0 to 1.
    """
    quantile = question.promise if quantile is None else quantile
    if not 0 < quantile < 1:
        raise FleetmarkError(f"a plan for a quantile of {quantile:g}; it must be between 0 and 1, such as 0.95")
    draws, fresh = sample(question, n, seed), sample(question, n, seed + 1)
    target = min(quantile + 1.645 * math.sqrt(quantile * (1 - quantile) / n), 1.0)
    plan = solve(question, margin={})
    if isinstance(plan, Conflict):
        return plan
    need = _need(question, plan, draws)
    search = _Search(target, _met(question, plan, draws), n, need.shape[1], quantile)
    best, refused = (plan if search.above is not None else None), None
    tried = [plan]
    for level in search.levels(enough=quantile + 2 * (target - quantile)):
        try:
            candidate = _with_margin(question, solve, need, level)
        except FleetmarkError:  # a limit ended the search: a plan that is too expensive is better than no plan
            if best is None:
                raise
            tried.append(replace(best, stopped=True))
            break
        if isinstance(candidate, Conflict):
            refused, search.highest = candidate, level
            continue
        tried.append(candidate)
        met = _met(question, candidate, draws)
        confidence = stats.norm.cdf(level)
        say(
            message(
                "margins at {confidence} confidence: cost {cost}, gap {gap}, {share} of futures met",
                confidence=f"{confidence:.1%}",
                cost=f"{candidate.objective:,.0f}",
                gap=f"{candidate.gap:.2%}",
                share=f"{met:.1%}",
            )
        )
        if search.learn(level, met):
            best = candidate if best is None or candidate.objective < best.objective else best
    level = search.highest if search.above is None else search.above[0] + _STEP
    for _ in range(_MORE):
        if best is not None and _met(question, best, fresh) >= quantile:
            return _told(best, tried)
        candidate = _with_margin(question, solve, need, level)
        if isinstance(candidate, Conflict):
            refused = candidate
            break
        tried.append(candidate)
        best, level = candidate, level + _STEP
    suffice = [p for p in tried if _met(question, p, draws) + _met(question, p, fresh) >= 2 * quantile]
    if suffice:
        return _told(min(suffice, key=lambda p: p.objective), tried)
    if refused is not None:
        return refused
    raise FleetmarkError(
        f"no margin gave a plan that meets demand in {quantile:.1%} of futures; lower the quantile, "
        "or the sigmas if they are wider than intended"
    )


def _told(plan: Plan, tried: Sequence[Plan]) -> Plan:
    """Return the plan, marked as stopped if a time limit ended the search for any plan that was tried."""
    return replace(plan, stopped=any(p.stopped for p in tried))


class _Search:
    """Search for the level (of a normal distribution) at which ``target`` of futures are met.

    The search interpolates between the highest level that does not suffice and the lowest that does, under the
    assumption that the share met is a normal function of the level.
    """

    def __init__(self, target: float, at_median: float, n: int, workloads: int, quantile: float) -> None:
        self.least = 0.5 / n
        self.target = self._level(target)
        self.first = self._level(quantile)
        # Under the assumption of independent failures.
        self.highest = float(stats.norm.ppf(1 - (1 - quantile) / (4 * workloads)))
        self.below: tuple[float, float] = (0.0, self._level(at_median))
        self.above: tuple[float, float] | None = None
        self.learn(0.0, at_median)

    def _level(self, share: float) -> float:
        return float(stats.norm.ppf(min(max(share, self.least), 1 - self.least)))

    def learn(self, level: float, met: float) -> bool:
        """Record the share that a level meets, and return whether it suffices."""
        point = (level, self._level(met))
        if point[1] < self.target:
            self.below = max(self.below, point)
        elif self.above is None or level < self.above[0]:
            self.above = point
        return point[1] >= self.target

    def levels(self, enough: float) -> Iterator[float]:
        """Yield the levels to try, until the lowest level that suffices meets at most the share ``enough`` or is 0."""
        for _ in range(_TRIES):
            if self.above is not None and (self.above[0] == 0 or self.above[1] <= self._level(enough)):
                return
            yield self._next()

    def _next(self) -> float:
        low, start = self.below
        if self.above is None:
            return self.first if low == 0 and self.first < self.highest else (low + self.highest) / 2
        high, end = self.above
        part = (self.target - start) / (end - start) if end > start else 0.5
        return low + (high - low) * min(max(part + 0.05, 0.15), 0.85)


def _need(question: Question, plan: Plan, draws: Draws) -> Floats:
    """Return (draws, workloads, periods): the ratio of demand to worth, as multiples of the plan's values.

    The worth is averaged over the SKUs that serve the workload in the plan.
    """
    fleet = Fleet(question, plan)
    point = np.array(
        [
            [min(s.worth[w].value, useful_worth(question, n, w)) if w in s.worth else 0.0 for w in question.workloads]
            for n, s in question.skus.items()
        ]
    )
    by_sku = fleet.shares.sum(axis=2)  # (periods, skus, workloads)
    thought = np.einsum("sw,tsw->wt", point, by_sku)
    drawn = np.einsum("jsw,tsw->jwt", draws.worth, by_sku)
    worse = np.divide(thought, drawn, out=np.ones_like(drawn), where=drawn > 0)
    median = np.array([w.point for w in question.workloads.values()])
    more = np.divide(draws.demand, median, out=np.ones_like(draws.demand), where=median > 0)
    return np.asarray(more * worse)


def _with_margin(question: Question, solve: Solve, need: Floats, level: float) -> Plan | Conflict:
    """Return the plan with every margin at one level (of a normal distribution)."""
    quantiles = np.quantile(need, float(stats.norm.cdf(level)), axis=0)
    margin: Margin = {w: tuple(row) for w, row in zip(question.workloads, quantiles.tolist(), strict=True)}
    plan = solve(question, margin=margin)
    return plan if isinstance(plan, Conflict) or plan.margin else replace(plan, margin=margin)


def _met(question: Question, plan: Plan, draws: Draws) -> float:
    """Return the share of futures in which demand is met in all periods."""
    return float(Fleet(question, plan).meets(draws).mean())
