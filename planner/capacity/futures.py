"""Draw random futures of a capacity question, and represent a plan as arrays to test in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import stats

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.capacity.demand.correlation import correlated, matrix
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Plan, Question, Shock
from fleetmark.planner.capacity.resources import bound
from fleetmark.planner.capacity.sharing import Servers, enough, kept, possible, served

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

SPLIT = 0.5  # share of the allowed failing futures for late deliveries; the rest is for demand and worth
_WILDEST = 50.0  # limit of a drawn logarithm: draws with one or two degrees of freedom would overflow


@dataclass(frozen=True, slots=True)
class Draws:
    """Random futures, in the question's order.

    - ``demand``: (draws, workloads, periods) in the workloads' units
    - ``worth``: (draws, skus, workloads), the worth of one server at full use; 0 if it cannot run the workload
    - ``late``: (draws, skus), the number of periods by which orders of a SKU arrive later than planned
    """

    demand: Floats
    worth: Floats
    late: Ints

    def some(self, indices: Ints) -> Draws:
        """Return a subset of the draws."""
        return Draws(self.demand[indices], self.worth[indices], self.late[indices])


def sample(question: Question, n: int, seed: int) -> Draws:
    """Draw ``n`` futures of a question. Raise FleetmarkError if ``n`` is less than 1."""
    if n < 1:
        raise FleetmarkError(f"{n} futures: give 1 or more, 2000 for probabilities of some percent")
    workloads, skus = list(question.workloads.values()), list(question.skus.values())
    demand = np.empty((n, len(workloads), len(question.periods)))
    worth = np.zeros((n, len(skus), len(workloads)))
    normal = np.array([_normal(_uniform(n, seed, "demand", w.name), math.inf) for w in workloads]).T
    if question.correlation:
        normal = correlated(normal, matrix(question.correlation, list(question.workloads)))
    for i, w in enumerate(workloads):
        spread = np.array(w.sigma) * normal[:, i, None]
        demand[:, i, :] = np.array(w.point) * np.exp(np.clip(spread, -_WILDEST, _WILDEST))
        for j, s in enumerate(skus):
            if (e := s.worth.get(w.name)) is not None:
                error = ("worth of hosts", s.name, e.hosts) if e.hosts else ("worth", s.name, w.name)
                off = e.se * _normal(_uniform(n, seed, *error), e.df) if e.se else np.zeros(n)
                drawn = e.value * np.exp(np.clip(off, -_WILDEST, _WILDEST))
                worth[:, j, i] = np.minimum(drawn, useful_worth(question, s.name, w.name))
    if question.shock is not None:
        demand *= _jumps(question.shock, n, seed, demand.shape[2])[:, None, :]
    late = np.zeros((n, len(skus)), dtype=np.int64)
    for j, s in enumerate(skus):
        if s.slips:
            slip = np.searchsorted(np.cumsum(s.slips), _uniform(n, seed, "slip", s.name), side="right")
            late[:, j] = np.maximum(np.minimum(slip, len(s.slips) - 1) - s.allowance, 0)
    return Draws(demand, worth, late)


def useful_worth(question: Question, sku: str, workload: str) -> float:
    """Return the worth above which resources limit a server, so that a faster server does no more work."""
    units, _ = bound(question.skus[sku].has, question.workloads[workload].needs)
    return units / question.speed_limit(sku, workload)


def _jumps(shock: Shock, n: int, seed: int, periods: int) -> Floats:
    """Return the factor (draws, periods) on all demands."""
    hit = _uniform(n, seed, "shock") < shock.chance
    begin = np.floor(_uniform(n, seed, "begin of the shock") * periods)
    return np.where(hit[:, None] & (np.arange(periods) >= begin[:, None]), shock.demand, 1.0)


def allowance(slips: Sequence[float], quantile: float, slipping: int) -> int:
    """Return the number of periods to add to a lead time because of late deliveries.

    ``slips`` has the probabilities that orders arrive 0, 1, 2 ... periods late. With the result, later deliveries of
    all ``slipping`` SKUs take at most their part of the futures that may fail.
    """
    tolerated = (1 - quantile) * SPLIT / slipping
    return next(a for a in range(len(slips)) if sum(slips[a + 1 :]) <= tolerated + 1e-12)


def _uniform(n: int, seed: int, *names: str) -> Floats:
    """Return ``n`` uniform random numbers that depend only on the seed and the names."""
    return np.random.default_rng([seed, *"\0".join(names).encode()]).random(n)


def _normal(uniform: Floats, df: float) -> Floats:
    """Return quantiles of Student's t with ``df`` degrees of freedom, or of the normal distribution if ``df`` is
    infinite.
    """
    inside = np.clip(uniform, 1e-12, 1 - 1e-12)
    return np.asarray(stats.norm.ppf(inside) if math.isinf(df) else stats.t.ppf(inside, df))


def needed(demand: Floats, worth: Floats, utilisation: float) -> Floats:
    """Return the servers for each draw, N = ceil(D / (E u)), with a tolerance for rounding."""
    return np.asarray(np.ceil(demand / (worth * utilisation) * (1 - 1e-12)))


@dataclass(frozen=True, slots=True)
class Pool:
    """Servers that some workloads share among themselves only; ``count`` is (periods, skus, sites).

    ``shared`` is True if the servers can be redistributed; servers of a dedicated workload cannot.
    """

    workloads: Ints
    count: Floats
    shared: bool


class Fleet:
    """A plan as arrays.

    - ``count``: (periods, skus, sites), the servers that can work
    - ``shares``: (periods, skus, sites, workloads)
    - ``kept``, ``guests``: as in ``Servers``
    - ``may``: (skus, sites, workloads)
    - ``utilisation``: (skus, workloads)
    - ``pools``: the common servers and each separate pool
    """

    def __init__(self, question: Question, plan: Plan) -> None:
        self.question, self.plan = question, plan
        s, k, w = (
            {name: i for i, name in enumerate(names)} for names in (question.skus, question.sites, question.workloads)
        )
        periods = len(question.periods)
        workloads = list(question.workloads.values())
        stock = plan.stock
        self.count = np.zeros((periods, len(s), len(k)))
        cell = (stock["period"].to_numpy(int), stock["sku"].map(s).to_numpy(int), stock["site"].map(k).to_numpy(int))
        self.installed = np.zeros_like(self.count)
        self.installed[cell] = stock["installed"].to_numpy(float)
        self.count[cell] = stock["active"].to_numpy(float)
        skus, sites = list(question.skus), list(question.sites)
        for position in np.argwhere(self.installed):  # idle servers can be activated, but spares cannot
            t, i, j = position.tolist()
            usable = question.usable(skus[i], sites[j], t, self.installed[t, i, j])
            self.count[t, i, j] = max(self.count[t, i, j], usable)
        self.shares = np.zeros((periods, len(s), len(k), len(w)))
        use = plan.use
        positions = [use[name].map(index).to_numpy(int) for name, index in (("sku", s), ("site", k), ("workload", w))]
        self.shares[use["period"].to_numpy(int), *positions] = use["servers"].to_numpy(float)
        self.kept, self.guests = kept(question)
        allowed = np.array([[not x.sites or name in x.sites for x in workloads] for name in k])
        self.may: Flags = np.repeat(allowed[None], len(s), axis=0)
        self.utilisation = np.array(
            [[question.speed_limit(n, x) if x in sku.worth else 0.0 for x in w] for n, sku in question.skus.items()]
        )
        members_of_pool = {name: [w[x] for x in members] for name, members in question.pools.items() if name}
        self.pools: list[Pool] = [self._pool(name, members) for name, members in members_of_pool.items()]
        common = np.array([w[x] for x in question.pools.get("", [])], dtype=np.int64)
        left = self.count - sum((pool.count for pool in self.pools), start=np.zeros_like(self.count))
        self.pools.append(Pool(common, np.maximum(left, 0.0), True))

    def _pool(self, name: str, members: Sequence[int]) -> Pool:
        """Return a separate pool with the whole servers that it has in the plan."""
        ledger, q = Ledger(self.question, self.plan.stock, self.plan.use), self.question
        count = np.zeros_like(self.count)
        skus, sites = list(q.skus), list(q.sites)
        for (s, k), servers in zip(ledger.pairs, ledger.pooled[name], strict=True):
            count[:, skus.index(s), sites.index(k)] = servers
        return Pool(np.array(members, dtype=np.int64), count, len(members) > 1)

    def grown(self, period: int) -> Floats:
        """Return the plan's shares, increased in proportion by the unused servers of each pool."""
        shares: Floats = self.shares[period].copy()
        for pool in self.pools:
            growing = pool.workloads[~self.guests[pool.workloads]] if pool.shared else pool.workloads[:0]
            free = shares[:, :, growing].sum(axis=2)
            left = np.maximum(pool.count[period], free)
            shares[:, :, growing] *= np.divide(left, free, out=np.ones_like(free), where=free > 0)[:, :, None]
        return shares

    def delayed(self, late: Sequence[int]) -> Fleet:
        """Return the plan's servers if the orders of each SKU arrive ``late`` periods late.

        Servers are retired as planned. All workloads lack the missing servers in proportion to their shares.
        """
        stock = self.plan.stock.sort_values(["sku", "site", "period"], kind="stable").copy()
        slips = dict(zip(self.question.skus, late, strict=True))
        for sku, site in stock[["sku", "site"]].drop_duplicates().itertuples(index=False):
            rows = stock[(stock["sku"] == sku) & (stock["site"] == site)]
            slip = min(slips[sku], len(rows))
            if not slip or not rows["buy"].any():
                continue
            arrivals = np.zeros(len(rows))
            delay = self.question.skus[sku].delay
            arrivals[delay:] = rows["buy"].to_numpy(float)[: max(len(rows) - delay, 0)]
            missing = np.cumsum(arrivals) - np.concatenate(
                [np.zeros(slip), np.cumsum(arrivals)[: len(arrivals) - slip]]
            )
            installed = np.maximum(rows["installed"].to_numpy(float) - missing, 0)
            room = np.array([self.question.usable(sku, site, t, n) for t, n in enumerate(installed.tolist())])
            stock.loc[rows.index, "installed"] = installed
            stock.loc[rows.index, "active"] = np.minimum(rows["active"].to_numpy(float), room)
        left = Fleet(self.question, replace(self.plan, stock=stock))
        apart, common = left.pools[:-1], left.pools[-1].workloads
        used = left.shares[..., common[~left.guests[common]]].sum(axis=3)
        used += sum((pool.count for pool in apart), start=np.zeros_like(used))
        fits = np.divide(left.count, used, out=np.ones_like(used), where=used > left.count)
        left.shares = np.where(left.guests, left.shares, left.shares * fits[..., None])
        rest = left.count - sum((pool.count * fits for pool in apart), start=np.zeros_like(used))
        left.pools = [replace(pool, count=pool.count * fits) for pool in apart]
        left.pools.append(Pool(common, np.maximum(rest, 0.0), True))
        return left

    def short(self, draws: Draws, shared: bool = True) -> tuple[Flags, Flags, list[Floats], int]:
        """Return the draws in which demand is not met, as four values.

        - (draws, periods): demand is not met with any shares, or, if ``shared`` is False, with the plan's shares
        - (draws, periods, workloads): demand is not met with the plan's shares
        - the work done, by period
        - the number of undecided draws
        """
        periods, workloads = len(self.count), draws.demand.shape[1]
        lost: Flags = np.zeros((len(draws.late), periods), dtype=bool)
        alone: Flags = np.zeros((len(draws.late), periods, workloads), dtype=bool)
        works, left_open = [np.zeros((len(draws.late), workloads)) for _ in range(periods)], 0
        for fleet, mine in self._by_delay(draws):
            some = draws.some(mine)
            for t in range(periods):
                lost[mine, t], alone[mine, t], works[t][mine], undecided = fleet._in_period(some, t, shared)
                left_open += undecided
        return lost, alone, works, left_open

    def meets(self, draws: Draws) -> Flags:
        """Return the draws in which demand is met in all periods, with any shares.

        The last period is tested first; a draw that fails in one period is not tested in the others.
        """
        good: Flags = np.ones(len(draws.late), dtype=bool)
        for fleet, mine in self._by_delay(draws):
            for t in reversed(range(len(self.count))):
                left = mine[good[mine]]
                good[left] = ~fleet._in_period(draws.some(left), t, True)[0]
        return good

    def _by_delay(self, draws: Draws) -> Iterator[tuple[Fleet, Ints]]:
        """Yield the plan's servers under each delay that is drawn, and the positions of its draws."""
        for late in np.unique(draws.late, axis=0):
            mine = np.flatnonzero((draws.late == late).all(axis=1))
            yield (self.delayed(late.tolist()) if late.any() else self), mine

    def _servers(self, pool: Pool, period: int) -> Servers:
        mine = pool.workloads
        return Servers(pool.count[period], self.may[:, :, mine], self.kept[:, :, mine], self.guests[mine])

    def _in_period(self, draws: Draws, period: int, shared: bool) -> tuple[Flags, Flags, Floats, int]:
        """Return the parts of ``short`` of one period: (draws,), (draws, workloads), the work done, undecided draws."""
        worth = draws.worth * self.utilisation
        shares, demand = self.grown(period), draws.demand[:, :, period]
        work = np.zeros_like(demand)
        for pool in self.pools:
            mine = pool.workloads
            work[:, mine] = served(worth[:, :, mine], shares[:, :, mine], self._servers(pool, period), demand[:, mine])
        bad = ~enough(work[:, :, None], demand[:, :, None])
        lost: Flags = np.zeros(len(bad), dtype=bool)
        left_open = 0
        for pool in sorted(self.pools, key=lambda pool: shared and pool.shared):
            mine = pool.workloads
            again = np.flatnonzero(bad[:, mine].any(axis=1) & ~lost)  # draws that do not fail in another pool
            if not (shared and pool.shared and len(again)):
                lost[again] = True
                continue
            good, undecided = possible(
                worth[np.ix_(again, np.arange(worth.shape[1]), mine)],
                demand[np.ix_(again, mine)],
                self._servers(pool, period),
                shares[:, :, mine],
            )
            lost[again[~good]] = True
            left_open += undecided
        return lost, bad, work, left_open
