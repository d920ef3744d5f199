"""Define the variables of a capacity programme: their columns, and the maximum useful value of each.

Variables are counts per period and pair. A pair is a SKU at a site, in place or for sale. The variables are:

- ``x``: ordered, ``d``: retired, ``i``: installed, ``n``: active
- ``a``: servers that work for a workload without failures
- ``r``: additional servers that the workload needs when a failure domain is lost
- ``e``: all servers of a separate pool
- ``g``: the work that a site gives a workload that must survive a failure, including ``r``
- ``z``: whether a SKU is in use at a site with spares
- ``y``: whether a SKU with a minimum order is ordered
- ``m``: the number of lots ordered
- ``b``: whether a price break of a SKU is reached; ``q``: how many ordered servers have its price
- ``w``: bought servers that are in place at the end and have a residual value
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fleetmark.planner.capacity.question import Margin, Question
from fleetmark.planner.capacity.reserve import down, line
from fleetmark.planner.capacity.series import in_period

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Caps = Mapping[tuple[str, str], int]
"""(sku, site), or (sku, "") for all sites together, to the most servers bought over all periods."""
SCARCE = 1e-3  # minimum share of installed servers that counts as usable
NEAR = 1e-9  # a count this close to the next whole number is rounded


class Shape:
    """The variables of a question and their columns.

    - ``pairs``: (sku, site) of x, d, i, n
    - ``combos``: (pair, workload) of a; ``lasting``: the combos of r
    - ``named_pools``: (pair, pool) of e; ``own_of``: the index of each combo there, -1 for common servers
    - ``gives``: (workload, site) of g
    - ``spared``, ``ordered``, ``lots``: the pairs of z, y and m
    - ``broken``: (SKU, number of its price break) of b; ``priced``: (pair, number in ``broken``) of q
    - ``kept``: the pairs of w
    - ``demand``: demand by workload and period, including the margin
    - ``start``: the servers in place, per pair; ``placed``: arrivals of earlier orders, per pair and period
    - ``caps``: limits on purchases; a pair with a cap of 0 is not for sale
    """

    def __init__(self, q: Question, margin: Margin, caps: Caps) -> None:
        self.question, self.caps = q, caps
        self.periods = len(q.periods)
        in_place = {(c.sku, c.site) for c in q.fleet if c.count}
        self.pairs = [(s, k) for s in q.skus for k in q.sites if (s, k) in in_place or self.sold(s, k)]
        self.skus = [q.skus[s] for s, _ in self.pairs]
        self.sites = [q.sites[k] for _, k in self.pairs]
        number = {pair: p for p, pair in enumerate(self.pairs)}
        self.start = np.zeros(len(self.pairs))
        self.placed = np.zeros((len(self.pairs), self.periods))
        for c in q.fleet:
            if c.count and c.arrives is None:
                self.start[number[c.sku, c.site]] += c.count
            elif c.count and c.arrives is not None:
                self.placed[number[c.sku, c.site], c.arrives] += c.count
        self.demand = {
            w: np.array(v.point, dtype=float) * np.asarray(margin.get(w, 1.0)) for w, v in q.workloads.items()
        }
        self.combos = [
            (p, w)
            for p, (s, k) in enumerate(self.pairs)
            for w, work in q.workloads.items()
            if w in q.skus[s].worth and (not work.sites or k in work.sites) and self.demand[w].any()
        ]
        self.lasting = np.array([j for j, (_, w) in enumerate(self.combos) if q.survives(w)], dtype=np.int64)
        pools = [(p, q.pool(w)) for p, w in self.combos]
        self.named_pools = [pool for pool in dict.fromkeys(pools) if pool[1]]
        place = {pool: j for j, pool in enumerate(self.named_pools)}
        self.own_of = np.array([place.get(pool, -1) for pool in pools], dtype=np.int64)
        self.gives = sorted({(self.combos[j][1], self.pairs[self.combos[j][0]][1]) for j in self.lasting.tolist()})
        self.spared = [p for p, (s, k) in enumerate(self.pairs) if q.sites[k].spares or q.unavailability(s) > 0]
        self.ordered = [p for p, sku in enumerate(self.skus) if sku.minimum_order > 1 and self.sold(*self.pairs[p])]
        n = len(self.pairs)
        self.count = {"x": n, "d": n, "i": n, "n": n, "a": len(self.combos)}
        self.count |= {"r": len(self.lasting), "e": len(self.named_pools), "g": len(self.gives)}
        self.count |= {"z": len(self.spared), "y": len(self.ordered)}
        self._of_prices()
        self.first, self.total = {}, 0
        for block, size in self.count.items():
            self.first[block] = self.total
            self.total += size * self.periods

    def _of_prices(self) -> None:
        """Return the variables of lots, price breaks and residual value."""
        buyable = [p for p, pair in enumerate(self.pairs) if self.sold(*pair)]
        self.lots = [p for p in buyable if self.skus[p].lot > 1]
        names = dict.fromkeys(self.pairs[p][0] for p in buyable)
        self.broken = [(s, j) for s in names for j in range(len(self.question.skus[s].breaks))]
        self.priced = [(p, b) for b, (s, _) in enumerate(self.broken) for p in buyable if self.pairs[p][0] == s]
        self.kept = [p for p in buyable if self.skus[p].residual > 0]
        self.count |= {"m": len(self.lots), "b": len(self.broken), "q": len(self.priced), "w": len(self.kept)}

    def sold(self, sku: str, site: str) -> bool:
        """Return whether the SKU can be bought at the site and arrives within the horizon."""
        s = self.question.skus[sku]
        left_out = 0 in (self.caps.get((sku, site)), self.caps.get((sku, "")))
        in_time = any(s.sold_in(t) for t in range(self.periods - s.delay))
        return in_time and not left_out and self.question.fits(sku, site)

    def columns(self, block: str, indices: npt.ArrayLike | None = None) -> Ints:
        """Return the columns of a block's variables over all periods: (count, periods), or (periods,) for one."""
        j = np.arange(self.count[block]) if indices is None else np.asarray(indices, dtype=np.int64)
        return self.first[block] + j[..., None] * self.periods + np.arange(self.periods)

    def part(self, values: Floats, block: str) -> Floats:
        """Return a block of a vector of variables, (count, periods)."""
        size = self.count[block] * self.periods
        return values[self.first[block] : self.first[block] + size].reshape(self.count[block], self.periods)

    @cached_property
    def pair_of(self) -> Ints:
        """Return the pair of each combo."""
        return np.array([p for p, _ in self.combos], dtype=np.int64)

    @cached_property
    def worth(self) -> Floats:
        """Return the work that one server of each combo does at its maximum utilisation."""
        q = self.question
        return np.array([q.rate(self.skus[p].name, w) for p, w in self.combos])

    @cached_property
    def yields(self) -> npt.NDArray[np.bool_]:
        """Return the combos with a workload that may be pre-empted."""
        return np.array([self.question.yields(w) for _, w in self.combos], dtype=bool)

    def servers(self, values: Floats) -> tuple[Floats, Floats]:
        """Return (combo, period): the servers assigned to the workload, and those that work without failures."""
        working = self.part(values, "a")
        servers = working.copy()
        servers[self.lasting] += self.part(values, "r")
        servers[self.alone] = self.part(values, "e")[self.own_of[self.alone]]
        return servers, np.minimum(working, servers)

    @cached_property
    def unit(self) -> dict[str, float]:
        """Return each workload's unit of work in the rows: the geometric mean of the work of one server."""
        logs: dict[str, list[float]] = {}
        for (_, w), one in zip(self.combos, np.log(self.worth), strict=True):
            logs.setdefault(w, []).append(float(one))
        return {w: float(np.exp(np.mean(each))) for w, each in logs.items()}

    @cached_property
    def needed(self) -> Floats:
        """Return the maximum useful servers per combo and period, which can meet the demand alone."""
        need = np.array([self.demand[w] for _, w in self.combos]).reshape(-1, self.periods) / self.worth[:, None]
        need[self.alone] = np.ceil(need[self.alone] - NEAR)
        return need

    @cached_property
    def alone(self) -> Ints:
        """Return which combos belong to dedicated workloads, which own all servers of their pools."""
        return np.array([j for j, (_, w) in enumerate(self.combos) if self.question.workloads[w].dedicated], np.int64)

    @cached_property
    def pooled(self) -> Floats:
        """Return the maximum useful servers per separate pool and period."""
        needed = np.zeros((len(self.named_pools), self.periods))
        mine = np.flatnonzero(self.own_of >= 0)
        np.add.at(needed, self.own_of[mine], self.needed[mine])
        return np.asarray(np.ceil(needed - NEAR))

    @cached_property
    def remaining(self) -> Floats:
        """Return servers that are in place or on order and within their age limit, per pair and period."""
        left = np.zeros((len(self.pairs), self.periods))
        number = {pair: p for p, pair in enumerate(self.pairs)}
        for c in self.question.fleet:
            limit = self.question.skus[c.sku].age_limit
            if c.count:
                first = c.arrives or 0
                left[number[c.sku, c.site], first : None if limit is None else first + max(limit - c.age, 0)] += c.count
        return left

    @cached_property
    def price_levels(self) -> Floats:
        """Return (pair, period): the ratio of a server's price in that period to its price in the first period."""
        levels = [[self.question.price_level(s, t) for t in range(self.periods)] for s, _ in self.pairs]
        return np.array(levels).reshape(len(self.pairs), self.periods)

    @cached_property
    def bounds(self) -> Floats:
        """Return the maximum number of active servers per pair and period that are useful and fit into the site."""
        bound = np.zeros((len(self.pairs), self.periods))
        common = np.flatnonzero(self.own_of < 0)
        np.add.at(bound, self.pair_of[common], self.needed[common])
        bound = np.ceil(bound - NEAR)
        np.add.at(bound, np.array([p for p, _ in self.named_pools], dtype=np.int64), self.pooled)
        for p, (sku, site) in enumerate(zip(self.skus, self.sites, strict=True)):
            for limit, each in (
                (site.power_w, sku.budgeted_w),
                (site.rack_units, sku.rack_units),
                (site.ports, sku.ports),
            ):
                if limit is not None and each > 0:
                    room = np.array([in_period(limit, t) for t in range(self.periods)])
                    bound[p] = np.minimum(bound[p], np.maximum(np.floor(room / each + NEAR) - site.spares, 0))
            early = sku.delay if self.sold(*self.pairs[p]) else self.periods
            old = np.maximum(self.remaining[p, :early] - site.spares, 0)
            bound[p, :early] = np.minimum(bound[p, :early], old)
        return bound

    @cached_property
    def withheld(self) -> Floats:
        """Return (pair, period): the share of installed servers that is never active."""
        shares = [[self.question.withheld(k, t) for t in range(self.periods)] for _, k in self.pairs]
        return np.array(shares).reshape(len(self.pairs), self.periods) + self._down[:, 1:]

    @cached_property
    def idle(self) -> Floats:
        """Return (pair,): the servers of a SKU in use that are never active, in addition to the share ``withheld``."""
        return np.array([float(site.spares) for site in self.sites]) + self._down[:, 0]

    @cached_property
    def _down(self) -> Floats:
        """Return (pair, 2): the linear bound on the servers that are down, as a constant number and a share."""
        q, lines = self.question, np.zeros((len(self.pairs), 2))
        for p, (s, _) in enumerate(self.pairs):
            if q.unavailability(s) > 0:
                active = int(self.bounds[p].max(initial=0.0)) + 1
                owned = int(self.start[p] + self.placed[p].sum())
                usual = active + int(down(active, q.unavailability(s), q.quantile))
                lines[p] = line(4 * usual + owned, usual, q.unavailability(s), q.quantile)
        return lines

    @cached_property
    def largest_stock(self) -> Floats:
        """Return (pair,): the maximum useful number of installed servers."""
        active = self.bounds.max(axis=1, initial=0.0)
        usable = np.maximum(1 - self.withheld.max(axis=1, initial=0.0), SCARCE)
        return np.asarray(np.ceil((active + self.idle) / usable - NEAR))

    @cached_property
    def order(self) -> Floats:
        """Return the largest useful order, per pair and period."""
        order = np.zeros((len(self.pairs), self.periods))
        for p, sku in enumerate(self.skus):
            if self.sold(*self.pairs[p]) and self.bounds[p].any():
                useful = max(self.largest_stock[p], sku.minimum_order, *(least for least, _ in sku.breaks))
                sold = [t for t in range(self.periods - sku.delay) if sku.sold_in(t)]
                order[p, sold] = np.ceil(useful / sku.lot) * sku.lot
        return order
