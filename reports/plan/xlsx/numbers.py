"""The values of all formulas of the plan's workbook: the model's arithmetic on a question and a plan's decisions.

Arrays are indexed by workload w, SKU s, site k, pair p (a SKU at a site), combo c (a workload on a pair) and period
t, in the order of the question. Only the solver's decisions come from the plan, so the same functions also give the
values of an old plan under an edited question.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from planner.capacity.question import HOURS, Plan, Question
from reports.plan.model import years

Floats = npt.NDArray[np.float64]

BAND = (0.05, 0.95)  # quantiles of the demand in charts


def servers_for(demand: float, each: float) -> int:
    """``demand / each`` rounded up; less than 5e-7 above an integer rounds down to it."""
    return math.ceil(round(demand / each, 6))


def quantile(point: float, sigma: float, share: float) -> float:
    """A quantile of a log-normal demand with median ``point``."""
    return float(point * math.exp(stats.norm.ppf(share) * sigma))


@dataclass(frozen=True)
class Numbers:
    """A question and a plan as arrays. Money is undiscounted unless it is a present value; W, kg and units of work are
    those of the question. Pairs are those with servers in place, for sale or in the plan.
    """

    question: Question
    plan: Plan

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
        """(SKU, site), by SKU, then by site."""
        q = self.question
        present = {(c.sku, c.site) for c in q.fleet if c.count}
        stock = self.plan.stock
        moved = stock[(stock[["buy", "retire", "installed", "active"]] != 0).any(axis=1)]
        present |= set(zip(moved["sku"], moved["site"], strict=True))
        return [(s, k) for s in q.skus for k in q.sites if q.skus[s].price is not None or (s, k) in present]

    @cached_property
    def combos(self) -> list[tuple[str, int]]:
        """(workload, pair) for every workload that may run on the pair, by workload."""
        q = self.question
        used = {(r.workload, r.sku, r.site) for r in self.plan.use.itertuples() if r.servers}
        return [
            (w, p)
            for w, work in q.workloads.items()
            for p, (s, k) in enumerate(self.pairs)
            if w in q.skus[s].worth and (not work.sites or k in work.sites or (w, s, k) in used)
        ]

    # ------------------------------------------------------------ the solver's decisions

    def _stock(self, what: str) -> Floats:
        return _cube(self.plan.stock, ("sku", "site"), self.pairs, what, self.periods)

    @cached_property
    def buy(self) -> Floats:
        """(pair, period), in the period of the order."""
        return self._stock("buy")

    @cached_property
    def retire(self) -> Floats:
        return self._stock("retire")

    @cached_property
    def active(self) -> Floats:
        return self._stock("active")

    @cached_property
    def servers(self) -> Floats:
        """(combo, period): servers that serve the workload."""
        keys = [(*self.pairs[p], w) for w, p in self.combos]
        return _cube(self.plan.use, ("sku", "site", "workload"), keys, "servers", self.periods)

    @cached_property
    def margin(self) -> Floats:
        """(workload, period): the factor on the median demand."""
        return np.array([[self.plan.factor(w, t) for t in range(self.periods)] for w in self.workloads])

    # ------------------------------------------------------------ servers

    @cached_property
    def start(self) -> Floats:
        """(pair,): in place before the first period."""
        fleet = self.question.fleet
        return np.array([float(sum(c.count for c in fleet if (c.sku, c.site) == pair)) for pair in self.pairs])

    @cached_property
    def arrive(self) -> Floats:
        arrivals = np.zeros_like(self.buy)
        for p, (s, _) in enumerate(self.pairs):
            lead = self.question.skus[s].lead
            arrivals[p, lead:] = self.buy[p, : max(self.periods - lead, 0)]
        return arrivals

    @cached_property
    def installed(self) -> Floats:
        return np.asarray(self.start[:, None] + np.cumsum(self.arrive - self.retire, axis=1))

    @cached_property
    def must_leave(self) -> Floats:
        """(pair, period): the number that has reached the age limit by then, since the start."""
        leaving = np.zeros_like(self.buy)
        for p, (s, k) in enumerate(self.pairs):
            limit = self.question.skus[s].age_limit
            if limit is None:
                continue
            for t in range(self.periods):
                leaving[p, t] = sum(
                    c.count for c in self.question.fleet if (c.sku, c.site) == (s, k) and c.age + t >= limit
                )
                leaving[p, t] += self.arrive[p, : max(t - limit + 1, 0)].sum()
        return leaving

    @cached_property
    def in_use(self) -> Floats:
        """(pair, period): servers that serve a workload."""
        return self._by_pair(np.ones(len(self.combos)))

    @cached_property
    def busy(self) -> Floats:
        """(pair, period): the same, times their utilisation."""
        return self._by_pair(np.array([self.question.workloads[w].utilisation for w, _ in self.combos]))

    def _by_pair(self, weight: Floats) -> Floats:
        sums = np.zeros_like(self.buy)
        np.add.at(sums, [p for _, p in self.combos], self.servers * weight[:, None])
        return sums

    def of_pairs(self, value: Callable[[str, str], float]) -> Floats:
        """(pair,): a figure of the SKU or the site."""
        return np.array([value(s, k) for s, k in self.pairs], dtype=float)

    # ------------------------------------------------------------ work

    @cached_property
    def rate(self) -> Floats:
        """(combo,): work that one server serves at its utilisation."""
        q = self.question
        return np.array([self.each(w, self.pairs[p][0]) for w, p in self.combos]) if q.workloads else np.zeros(0)

    def each(self, workload: str, sku: str) -> float:
        """Work of one server of the SKU for the workload at its utilisation: E u."""
        return self.question.skus[sku].worth[workload].value * self.question.workloads[workload].utilisation

    @cached_property
    def capacity(self) -> Floats:
        """(combo, period)"""
        return np.asarray(self.servers * self.rate[:, None])

    @cached_property
    def domains(self) -> list[int]:
        """Number of each site's failure domain: that of the first site in it, from 1."""
        names = [self.question.domain(k) for k in self.sites]
        return [names.index(name) + 1 for name in names]

    def delivered(self, workload: int, lost: int | None = None) -> Floats:
        """(period,): capacity for a workload, without the domain of site ``lost``."""
        mine = self._combos_of[workload]
        if lost is not None:
            mine = mine[self._domain_of[mine] != self.domains[lost]]
        return np.asarray(self.capacity[mine].sum(axis=0))

    @cached_property
    def _combos_of(self) -> list[npt.NDArray[np.intp]]:
        """The combos of each workload."""
        names = np.array([w for w, _ in self.combos], dtype=object)
        return [np.flatnonzero(names == w) for w in self.workloads]

    @cached_property
    def _domain_of(self) -> npt.NDArray[np.intp]:
        """The number of the failure domain of each combo."""
        return np.array([self.domains[self.sites.index(self.pairs[p][1])] for _, p in self.combos], dtype=np.intp)

    @cached_property
    def point(self) -> Floats:
        """(workload, period): the median demand."""
        return np.array([work.point for work in self.question.workloads.values()], dtype=float)

    @cached_property
    def sigma(self) -> Floats:
        return np.array([work.sigma for work in self.question.workloads.values()], dtype=float)

    @cached_property
    def planned(self) -> Floats:
        """(workload, period): the demand that the plan must meet."""
        return np.asarray(self.point * self.margin)

    # ------------------------------------------------------------ sites

    def at_sites(self, each: Callable[[str], float], servers: Floats) -> Floats:
        """(site, period): a figure of the SKU summed over servers (pair, period)."""
        sums = np.zeros((len(self.sites), self.periods))
        figures = self.of_pairs(lambda s, _: each(s))
        np.add.at(sums, [self.sites.index(k) for _, k in self.pairs], servers * figures[:, None])
        return sums

    def price(self, sku: str) -> float:
        """The price; 0 if it is not sold."""
        return self.question.skus[sku].price or 0.0

    # ------------------------------------------------------------ money

    @cached_property
    def weight(self) -> Floats:
        """(period,): present value of 1."""
        return np.array([self.question.weight(t) for t in range(self.periods)])

    def energy_price(self, site: str) -> float:
        """Per kWh."""
        price = self.question.sites[site].energy_price
        return self.question.energy_price if price is None else price

    @cached_property
    def draw(self) -> Floats:
        """(pair, period): mean W of the servers that are active."""
        skus = self.question.skus
        idle = self.of_pairs(lambda s, _: skus[s].idle_w)
        swing = self.of_pairs(lambda s, _: skus[s].peak_w - skus[s].idle_w)
        return np.asarray(idle[:, None] * self.active + swing[:, None] * self.busy)

    @cached_property
    def kinds(self) -> dict[str, Floats]:
        """Kind of cost to (period,), undiscounted; in the order of planner.capacity.question.KINDS."""
        q, skus = self.question, self.question.skus
        kwh = self.of_pairs(lambda _, k: q.energy(k)) @ self.draw
        embodied = self.of_pairs(lambda s, _: skus[s].embodied) @ self.buy
        return {
            "purchase": self.of_pairs(lambda s, _: self.price(s)) @ self.buy,
            "energy": self.of_pairs(lambda _, k: q.energy(k) * self.energy_price(k)) @ self.draw,
            "support": self.of_pairs(lambda s, _: skus[s].support) @ self.installed * q.years,
            "space": self.of_pairs(lambda s, _: skus[s].space) @ self.installed * q.years,
            "migration": self.of_pairs(lambda s, _: skus[s].migration) @ self.retire,
            "carbon": q.carbon_price / 1000 * (embodied + q.grid * kwh),
        }

    @cached_property
    def total(self) -> float:
        """Present value of all costs."""
        return float(sum((money @ self.weight for money in self.kinds.values()), start=0.0))

    @cached_property
    def annuity(self) -> float:
        """Discounted years of the horizon."""
        return float(self.weight.sum() * self.question.years)

    @cached_property
    def year_names(self) -> list[str]:
        """The names of the years."""
        return list(dict.fromkeys(years(self.question)))

    @cached_property
    def years(self) -> list[int]:
        """The year of each period: its number among the names, from 1."""
        return [self.year_names.index(name) + 1 for name in years(self.question)]

    def watt_year(self) -> float:
        """Money for one W of servers over one year at the question's energy price and PUE, with its carbon."""
        q = self.question
        return HOURS / 1000 * q.pue * (q.energy_price + q.carbon_price * q.grid / 1000)


def _cube(
    frame: pd.DataFrame, names: Sequence[str], keys: Sequence[tuple[str, ...]], what: str, periods: int
) -> Floats:
    """(key, period) from long rows; 0 without a row."""
    cube = np.zeros((len(keys), periods))
    if len(frame):
        at = {key: i for i, key in enumerate(keys)}
        rows = [at.get(key) for key in zip(*(frame[n] for n in names), strict=True)]
        for i, t, value in zip(rows, frame["period"], frame[what], strict=True):
            if i is not None:
                cube[i, int(t)] += float(value)
    return cube
