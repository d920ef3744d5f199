"""Compute the accounts of a plan from its question and decisions: arrivals, stock, work, power and money.

The solver's tables, the terminal, the page and the workbook take their figures from this module; ``checks`` computes
them independently. Arrays have the indices workload w, SKU s, site k, pair p (a SKU at a site), combo c (a workload on
a pair) and period t, in the order of the question.

Money is undiscounted unless it is a present value. Units are W, kg and the question's units of work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from fleetmark.planner.capacity.question import KINDS, Case, Question, Supply
from fleetmark.planner.capacity.sku import Sku

Floats = npt.NDArray[np.float64]
_NEAR = 1e-6  # relative tolerance of solvers; absolute below one server


def over(part: Floats, total: Floats) -> Floats:
    """Return the quotient, or 0 if the divisor is 0."""
    return np.asarray(np.divide(part, total, out=np.zeros_like(part), where=total > 0))


class Ledger:
    """A question and the decisions of a plan: ``buy``, ``retire`` and ``active`` of ``stock``, and ``use``.

    Other columns of ``Plan`` are not read. Pairs have servers in place, for sale or in the plan.
    """

    def __init__(self, question: Question, stock: pd.DataFrame, use: pd.DataFrame) -> None:
        self.question, self.stock, self.use = question, stock, use

    @cached_property
    def periods(self) -> int:
        return len(self.question.periods)

    @cached_property
    def workloads(self) -> list[str]:
        return list(self.question.workloads)

    @cached_property
    def skus(self) -> list[str]:
        return list(self.question.skus)

    @cached_property
    def sites(self) -> list[str]:
        return list(self.question.sites)

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """Return all (SKU, site), ordered by SKU, then by site."""
        q = self.question
        present = {(c.sku, c.site) for c in q.fleet if c.count}
        moved = self.stock[(self.stock[["buy", "retire", "active"]] != 0).any(axis=1)]
        present |= set(zip(moved["sku"], moved["site"], strict=True))
        return [(s, k) for s in q.skus for k in q.sites if q.skus[s].price is not None or (s, k) in present]

    @cached_property
    def combos(self) -> list[tuple[str, int]]:
        """Return (workload, pair) for every workload that may run on the pair, ordered by workload."""
        q = self.question
        used = {(r.workload, r.sku, r.site) for r in self.use.itertuples() if r.servers}
        return [
            (w, p)
            for w, work in q.workloads.items()
            for p, (s, k) in enumerate(self.pairs)
            if w in q.skus[s].worth and (not work.sites or k in work.sites or (w, s, k) in used)
        ]

    # ------------------------------------------------------------ decisions

    def _stock(self, column: str) -> Floats:
        return _cube(self.stock, ("sku", "site"), self.pairs, column, self.periods)

    @cached_property
    def buy(self) -> Floats:
        """Return the orders as (pair, period), in the period of the order."""
        return self._stock("buy")

    @cached_property
    def retire(self) -> Floats:
        return self._stock("retire")

    @cached_property
    def active(self) -> Floats:
        return self._stock("active")

    def _use(self, column: str) -> Floats:
        keys = [(*self.pairs[p], w) for w, p in self.combos]
        return _cube(self.use, ("sku", "site", "workload"), keys, column, self.periods)

    @cached_property
    def servers(self) -> Floats:
        """Return (combo, period): the servers assigned to the workload, including servers for failover."""
        return self._use("servers")

    @cached_property
    def working(self) -> Floats:
        """Return (combo, period): the assigned servers that demand needs without failures, at their utilisation."""
        return self._use("working")

    # ------------------------------------------------------------ servers

    @cached_property
    def start(self) -> Floats:
        """Return (pair,): the servers in place before the first period."""
        fleet = self.question.fleet
        mine = [[c.count for c in fleet if (c.sku, c.site) == pair and not c.ordered] for pair in self.pairs]
        return np.array([float(sum(counts)) for counts in mine])

    @cached_property
    def arrive(self) -> Floats:
        """Return (pair, period): arrivals of the plan's orders after their lead time, and of earlier orders."""
        arrivals = np.zeros_like(self.buy)
        for p, (s, _) in enumerate(self.pairs):
            arrivals[p] = self._delayed(s, self.buy[p])
        row_of_pair = {pair: p for p, pair in enumerate(self.pairs)}
        for c in self.question.fleet:
            if c.arrives is not None and c.count:
                arrivals[row_of_pair[c.sku, c.site], c.arrives] += c.count
        return arrivals

    def _delayed(self, sku: str, ordered: Floats) -> Floats:
        """Return (period,): the orders by the period in which their servers become usable."""
        delay = self.question.skus[sku].delay
        return np.concatenate([np.zeros(min(delay, self.periods)), ordered[: max(self.periods - delay, 0)]])

    @cached_property
    def left(self) -> Floats:
        """Return (pair, period): servers of the plan's orders at the end, by arrival; the newest count first."""
        left = np.zeros_like(self.buy)
        for p, (s, _) in enumerate(self.pairs):
            limit = self.question.skus[s].age_limit
            arrived, room = self._delayed(s, self.buy[p]), self.installed[p, -1]
            for t in range(self.periods - 1, -1 if limit is None else max(self.periods - limit, 0) - 1, -1):
                left[p, t] = min(arrived[t], room)
                room -= left[p, t]
        return left

    @cached_property
    def left_worth(self) -> Floats:
        """Return (pair, period): the residual value of these servers at the end."""
        q = self.question
        age = q.years * (self.periods - np.arange(self.periods))
        span = range(self.periods)
        price = np.array([[q.skus[s].least_price * q.level_at_arrival(s, t) for t in span] for s, _ in self.pairs])
        keeps = self.of_pairs(lambda s, _: q.skus[s].residual)
        with np.errstate(divide="ignore"):
            return np.asarray(self.left * price.reshape(self.left.shape) * np.where(keeps, keeps, 0.0)[:, None] ** age)

    @cached_property
    def installed(self) -> Floats:
        return np.asarray(self.start[:, None] + np.cumsum(self.arrive - self.retire, axis=1))

    @cached_property
    def must_leave(self) -> Floats:
        """Return (pair, period): the servers since the start that have reached the age limit by that period."""
        return self._of_age(lambda s: s.age_limit)

    @cached_property
    def may_leave(self) -> Floats:
        """Return (pair, period): the number of servers that have served their term by that period; 0 without a term."""
        return self._of_age(lambda s: s.term or None)

    def _of_age(self, age: Callable[[Sku], int | None]) -> Floats:
        """Return (pair, period): the number of servers since the start that have reached a given age by that period."""
        leaving = np.zeros_like(self.buy)
        for p, (s, k) in enumerate(self.pairs):
            limit = age(self.question.skus[s])
            mine = [c for c in self.question.fleet if (c.sku, c.site) == (s, k) and not c.ordered]
            for t in range(self.periods) if limit is not None else ():
                leaving[p, t] = sum(c.count for c in mine if c.age + t >= (limit or 0))
                leaving[p, t] += self.arrive[p, : max(t - (limit or 0) + 1, 0)].sum()
        return leaving

    @cached_property
    def pooled(self) -> dict[str, Floats]:
        """Return (pair, period) for each separate pool: its servers, which are whole."""
        return {pool: self._whole(pool) for pool in self.question.pools if pool}

    @cached_property
    def common(self) -> Floats:
        """Return (pair, period): active servers that are in no separate pool."""
        return np.asarray(self.active - sum(self.pooled.values(), start=np.zeros_like(self.active)))

    def _whole(self, pool: str) -> Floats:
        mine = self._marked(lambda w: self.question.pool(w) == pool)[:, None]
        stays = ~self._marked(self.question.yields)[:, None]
        needed = np.maximum(self._by_pair(self.working * mine), self._by_pair(self.servers * mine * stays))
        return np.ceil(needed - _NEAR * np.maximum(needed, 1.0))

    @cached_property
    def of_pool(self) -> Floats:
        """Return (combo, period): the whole servers of the workload's pool."""
        pools = [(self.pooled.get(self.question.pool(w), self.common))[p] for w, p in self.combos]
        return np.array(pools, dtype=float).reshape(-1, self.periods)

    @cached_property
    def share(self) -> Floats:
        """Return (combo, period): the share of the pool that is assigned to the workload, including failover."""
        return over(self.servers, self.of_pool)

    @cached_property
    def share_working(self) -> Floats:
        """Return (combo, period): the share of the pool that the workload's demand needs without failures."""
        return over(self.working, self.of_pool)

    @cached_property
    def busy(self) -> Floats:
        """Return (pair, period): the working servers times their utilisation."""
        return self._by_pair(self.working * self.used[:, None])

    @cached_property
    def used(self) -> Floats:
        """Return (combo,): the utilisation of its servers."""
        return np.array([self.question.utilisation(self.pairs[p][0], w) for w, p in self.combos], dtype=float)

    def _marked(self, is_marked: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
        """Return which combos belong to workloads with a given property."""
        return np.array([is_marked(w) for w, _ in self.combos], dtype=bool)

    def _by_pair(self, values: Floats) -> Floats:
        sums = np.zeros_like(self.buy)
        np.add.at(sums, [p for _, p in self.combos], values)
        return sums

    def of_pairs(self, value: Callable[[str, str], float]) -> Floats:
        """Return (pair,): a figure of the pair's SKU or site."""
        return np.array([value(s, k) for s, k in self.pairs], dtype=float)

    # ------------------------------------------------------------ work

    @cached_property
    def rate(self) -> Floats:
        """Return (combo,): the work that one server does at its utilisation."""
        return np.array([self.question.rate(self.pairs[p][0], w) for w, p in self.combos], dtype=float)

    @cached_property
    def capacity(self) -> Floats:
        """Return (combo, period): the work that the assigned servers can do."""
        return np.asarray(self.servers * self.rate[:, None])

    def delivered(self, workload: int, lost: Case = ()) -> Floats:
        """Return (period,): the capacity for a workload, without the failure domains ``lost``."""
        return np.asarray(self.capacity[self._left(workload, lost)].sum(axis=0))

    def done(self, workload: int) -> Floats:
        """Return (period,): the work that is done for a workload without failures."""
        mine = self._combos_of[workload]
        return np.asarray((self.working[mine] * self.rate[mine, None]).sum(axis=0))

    def worst(self, workload: int) -> Floats:
        """Return (period,): the capacity for a workload in the worst failure that the question asks to survive."""
        return np.asarray(np.min([self.delivered(workload, lost) for lost in self.question.cases], axis=0))

    def counted(self, workload: int) -> Floats:
        """Return (period,): the capacity that counts: that of the worst failure if the workload must survive it."""
        lasts = self.question.survives(self.workloads[workload])
        return self.worst(workload) if lasts else self.delivered(workload)

    def pool_of(self, workload: int) -> Floats:
        """Return (period,): whole servers of the workload's pool, counting SKUs and sites that can run the workload."""
        return np.asarray(self.of_pool[self._combos_of[workload]].sum(axis=0))

    def serving(self, workload: int) -> Floats:
        """Return (period,): the share of the pool that is assigned to the workload, including failover."""
        mine = self._combos_of[workload]
        return over(self.servers[mine].sum(axis=0), self.of_pool[mine].sum(axis=0))

    def bound_by(self, workload: int) -> dict[str, Floats]:
        """Return (period,) by resource: the share of the workload's servers that the resource limits.

        The empty name stands for the speed of the servers. Shares are 0 without servers.
        """
        mine, work = self._combos_of[workload], self.workloads[workload]
        servers = self.servers[mine]
        binding = np.array([self.question.binding(self.pairs[self.combos[c][1]][0], work) for c in mine.tolist()])
        names = ("", *sorted(self.question.workloads[work].needs))
        return {name: over(servers[binding == name].sum(axis=0), servers.sum(axis=0)) for name in names}

    def load(self, workload: int, planned: Floats, *, worst: bool) -> Floats:
        """Return (period,): the mean utilisation of a workload's servers when they do the ``planned`` work.

        If ``worst`` is True, the failure that raises utilisation most has happened. The result is 0 without servers.
        """
        loads = []
        for lost in self.question.cases if worst else [()]:
            mine = self._left(workload, lost)
            full = (self.servers[mine] * self.rate[mine, None] / self.used[mine, None]).sum(axis=0)
            loads.append(np.divide(planned, full, out=np.zeros_like(planned), where=full > 0))
        return np.asarray(np.max(loads, axis=0))

    def _left(self, workload: int, lost: Case) -> npt.NDArray[np.intp]:
        """Return the combos of a workload that remain when failure domains are lost."""
        mine = self._combos_of[workload]
        if not lost:
            return mine
        stays = {k: not self.question.is_lost(k, lost) for k in self.sites}
        return mine[[stays[self.pairs[self.combos[c][1]][1]] for c in mine.tolist()]]

    @cached_property
    def _combos_of(self) -> list[npt.NDArray[np.intp]]:
        """Return the combos of each workload."""
        names = np.array([w for w, _ in self.combos], dtype=object)
        return [np.flatnonzero(names == w) for w in self.workloads]

    def expected(self, workload: int) -> Floats:
        """Return (period,): the lowest mean share of its demand that is served for a pre-emptible workload.

        Each failure domain is down for the question's share of time. During that time, the workload runs only on
        unreserved servers.
        """
        mine, q = self._combos_of[workload], self.question
        done, lacking = self.done(workload), np.zeros(self.periods)
        pool, yields = q.pool(self.workloads[workload]), self._marked(q.yields)
        inside = self._marked(lambda w: q.pool(w) == pool)
        reserve = self.pooled.get(pool, self.common)
        free = np.maximum(reserve - self._by_pair(self.servers * (inside & ~yields)[:, None]), 0.0)
        guests = self._by_pair(self.working * (inside & yields)[:, None])
        share = np.divide(free, guests, out=np.zeros_like(free), where=guests > 0).clip(max=1.0)
        for lost in q.all_domains:
            left = np.zeros(self.periods)
            for c in mine.tolist():
                pair = self.combos[c][1]
                if lost not in q.domains(self.pairs[pair][1]):
                    left += self.working[c] * self.rate[c] * share[pair]
            lacking += q.outage * (1 - np.divide(left, done, out=np.ones_like(left), where=done > 0))
        return np.maximum(1 - lacking, 0.0)

    # ------------------------------------------------------------ sites

    def power(self, *, failed: bool) -> Floats:
        """Return (site, period): the mean power in W of the active servers without failures.

        If ``failed`` is True, a failure domain at another site is lost, and all servers reserved for that case run at
        their utilisation.
        """
        skus, busy = self.question.skus, self.busy
        if failed:
            stays = ~self._marked(self.question.yields)
            busy = np.maximum(busy, self._by_pair(self.servers * (self.used * stays)[:, None]))
        idle = self.at_sites(lambda s: skus[s].idle_w, self.active)
        return np.asarray(idle + self.at_sites(lambda s: skus[s].peak_w - skus[s].idle_w, busy))

    def at_sites(self, each: Callable[[str], float], servers: Floats) -> Floats:
        """Return (site, period): a figure of the SKU, added up over servers (pair, period)."""
        sums = np.zeros((len(self.sites), self.periods))
        figures = self.of_pairs(lambda s, _: each(s))
        np.add.at(sums, [self.sites.index(k) for _, k in self.pairs], servers * figures[:, None])
        return sums

    @cached_property
    def peak_w(self) -> Floats:
        """Return (site, period): the peak power in W of all installed servers."""
        return self.at_sites(lambda s: self.question.skus[s].peak_w, self.installed)

    @cached_property
    def budgeted_w(self) -> Floats:
        """Return (site, period): the power in W of all installed servers that counts against the site's limit."""
        return self.at_sites(lambda s: self.question.skus[s].budgeted_w, self.installed)

    @cached_property
    def rack_units(self) -> Floats:
        """Return (site, period): the rack units of all installed servers."""
        return self.at_sites(lambda s: self.question.skus[s].rack_units, self.installed)

    @cached_property
    def ports(self) -> Floats:
        """Return (site, period): the network ports of all installed servers."""
        return self.at_sites(lambda s: self.question.skus[s].ports, self.installed)

    def racks(self, *, liquid: bool) -> Floats:
        """Return (site, period): the occupied rack positions, either with or without liquid cooling."""
        q = self.question
        each = self.of_pairs(lambda s, k: q.positions(s, k) if q.skus[s].liquid == liquid else 0.0)
        return self.at_sites(lambda _: 1.0, self.installed * each[:, None])

    def domain_w(self, name: str) -> Floats:
        """Return (period,): the power in W of a failure domain's installed servers that counts against its limit."""
        here = [k for k, site in enumerate(self.sites) if name in self.question.domains(site)]
        return np.asarray(self.budgeted_w[here].sum(axis=0))

    def supplied(self, supply: Supply) -> Floats:
        """Return (period,): the number of ordered servers that a supply limit covers."""
        skus = self.question.supplied(supply)
        return np.asarray(self.buy[[p for p, (s, _) in enumerate(self.pairs) if s in skus]].sum(axis=0))

    @cached_property
    def spent(self) -> Floats:
        """Return (site, period): the total cost of purchases since the start."""
        return np.cumsum(self.at_sites(lambda _: 1.0, self.buy * self.paid), axis=1)

    # ------------------------------------------------------------ money

    def price(self, sku: str) -> float:
        """Return the price in the first period, or 0 if the SKU cannot be bought."""
        return self.question.skus[sku].price or 0.0

    @cached_property
    def paid(self) -> Floats:
        """Return (pair, period): the price of one server, given the quantity of its SKU ordered in that period at all
        sites.
        """
        q, paid = self.question, np.zeros_like(self.buy)
        for s in self.skus:
            mine = [p for p, (name, _) in enumerate(self.pairs) if name == s]
            ordered = enumerate(self.buy[mine].sum(axis=0).tolist())
            paid[mine] = [q.skus[s].price_in(n) * q.price_level(s, t) for t, n in ordered]
        return paid

    @cached_property
    def weight(self) -> Floats:
        """Return (period,): the present value of one unit of money."""
        return np.array([self.question.weight(t) for t in range(self.periods)])

    @cached_property
    def draw(self) -> Floats:
        """Return (pair, period): the mean power in W of the active servers."""
        skus = self.question.skus
        idle = self.of_pairs(lambda s, _: skus[s].idle_w)
        swing = self.of_pairs(lambda s, _: skus[s].peak_w - skus[s].idle_w)
        return np.asarray(idle[:, None] * self.active + swing[:, None] * self.busy)

    @cached_property
    def kwh(self) -> Floats:
        """Return (period,): the energy at all meters, in kWh."""
        return np.asarray(self.of_pairs(lambda _, k: self.question.energy(k)) @ self.draw)

    @cached_property
    def embodied(self) -> Floats:
        """Return (period,): the kg CO2e from making the ordered servers."""
        return np.asarray(self.of_pairs(lambda s, _: self.question.skus[s].embodied) @ self.buy)

    @cached_property
    def carbon(self) -> float:
        """Return the kg CO2e over the horizon: embodied in purchases, and from energy."""
        return float(self.embodied.sum() + self.question.grid * self.kwh.sum())

    @cached_property
    def kinds(self) -> dict[str, Floats]:
        """Return (period,) for each kind of cost, undiscounted, in the order of ``KINDS``.

        Purchases are paid in the period of the order. Energy covers the idle power of active servers and the additional
        power of the work done without failures. Rent, support and space count all installed servers; migration counts
        retired servers. The residual value of purchases is subtracted in the last period.
        """
        q, skus = self.question, self.question.skus
        span = range(self.periods)
        money = np.array([[q.energy(k) * q.price_of_energy(k, t) for t in span] for _, k in self.pairs])
        return {
            "purchase": (self.paid * self.buy).sum(axis=0),
            "rent": self.of_pairs(lambda s, _: skus[s].rent) @ self.installed * q.years,
            "energy": (money.reshape(self.draw.shape) * self.draw).sum(axis=0),
            "support": self.of_pairs(lambda s, _: skus[s].support) @ self.installed * q.years,
            "space": self.of_pairs(lambda s, _: skus[s].space) @ self.installed * q.years,
            "migration": self.of_pairs(lambda s, _: skus[s].migration) @ self.retire,
            "carbon": q.carbon_price / 1000 * (self.embodied + q.grid * self.kwh),
            "residual": np.where(np.arange(self.periods) == self.periods - 1, -self.left_worth.sum(), 0.0),
        }

    @cached_property
    def costs(self) -> pd.DataFrame:
        """Return the costs in the form of ``Plan.costs``: one row per period and kind."""
        table = np.array([self.kinds[kind] for kind in KINDS])
        return pd.DataFrame(
            {
                "period": np.repeat(np.arange(self.periods), len(KINDS)),
                "kind": list(KINDS) * self.periods,
                "money": table.T.ravel(),
                "present": (table * self.weight).T.ravel(),
            }
        )

    @cached_property
    def total(self) -> float:
        """Return the present value of all costs."""
        return float(sum((money @ self.weight for money in self.kinds.values()), start=0.0))


def _cube(
    frame: pd.DataFrame, names: Sequence[str], keys: Sequence[tuple[str, ...]], column: str, periods: int
) -> Floats:
    """Return (key, period) from long rows, with 0 for missing rows."""
    cube = np.zeros((len(keys), periods))
    if len(frame):
        row_of_key = {key: i for i, key in enumerate(keys)}
        rows = [row_of_key.get(key) for key in zip(*(frame[n] for n in names), strict=True)]
        for i, t, value in zip(rows, frame["period"], frame[column], strict=True):
            if i is not None:
                cube[i, int(t)] += float(value)
    return cube
