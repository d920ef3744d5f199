"""Compute the values of all formulas of the plan's workbook: the plan's ledger, and figures that only it has.

Only the solver's decisions come from the plan, so the same functions also compute the values of an old plan for an
edited question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import stats

from fleetmark.demand.tables import SERIES
from fleetmark.planner.capacity.ledger import Ledger, over
from fleetmark.planner.capacity.question import HOURS, Case, Plan, Question
from fleetmark.planner.capacity.series import in_period
from fleetmark.planner.cost.margin import by_pair, used_by

Floats = npt.NDArray[np.float64]

BAND = (0.05, 0.95)  # quantiles of the demand in charts


def servers_for(demand: float, each: float) -> int:
    """Return ``demand / each`` rounded up; less than 5e-7 above an integer rounds down to it."""
    return math.ceil(round(demand / each, 6))


def quantile(point: float, sigma: float, share: float) -> float:
    """Return a quantile of a log-normal demand with median ``point``."""
    return float(point * math.exp(stats.norm.ppf(share) * sigma))


class Numbers(Ledger):
    """Compute the ledger of a plan under a question, which may differ from the one that it was solved for."""

    def __init__(self, question: Question, plan: Plan) -> None:
        super().__init__(question, plan.stock, plan.use)
        self.plan = plan

    @cached_property
    def series(self) -> dict[tuple[str, str], tuple[float | None, ...]]:
        """Return the figures that change from period to period, by their key in the question and their SKU or site."""
        q = self.question
        listed: dict[tuple[str, str], object] = {("energy_price", ""): q.energy_price}
        listed |= {("price", s): sku.prices for s, sku in q.skus.items()}
        for k, site in q.sites.items():
            listed |= {
                (key, k): getattr(site, "power_w" if key == "power" else key) for key in SERIES if key != "price"
            }
        return {key: values for key, values in listed.items() if isinstance(values, tuple) and values}

    def series_cell(self, key: str, name: str, period: int) -> str:
        """Return the reference of a figure that changes from period to period; empty if it is constant."""
        rows = list(self.series)
        return f"[series!p{period}!{rows.index((key, name))}]" if (key, name) in rows else ""

    @cached_property
    def resources(self) -> list[str]:
        """Return the names of all resources that demand needs."""
        return sorted({name for work in self.question.workloads.values() for name in work.needs})

    @cached_property
    def margin(self) -> Floats:
        """Return the factor on the median demand by (workload, period)."""
        return np.array([[self.plan.factor(w, t) for t in range(self.periods)] for w in self.workloads])

    @cached_property
    def point(self) -> Floats:
        """Return the median demand by (workload, period)."""
        return np.array([work.point for work in self.question.workloads.values()], dtype=float)

    def growth(self, workload: int) -> float | None:
        """Return the annual growth of a median demand with the same rate in all periods; None for other demands."""
        point = self.point[workload]
        if len(point) < 2 or not point.all() or (point == point[0]).all():
            return None
        rate = float((point[-1] / point[0]) ** (1 / (self.question.years * (len(point) - 1))) - 1)
        grown = point[0] * (1 + rate) ** (self.question.years * np.arange(len(point)))
        return rate if np.allclose(point, grown, rtol=1e-10, atol=0.0) else None

    @cached_property
    def sigma(self) -> Floats:
        return np.array([work.sigma for work in self.question.workloads.values()], dtype=float)

    @cached_property
    def planned(self) -> Floats:
        """Return the demand that the plan must meet by (workload, period)."""
        return np.asarray(self.point * self.margin)

    @cached_property
    def dedicated_pools(self) -> list[tuple[str, int]]:
        """Return (pool, pair) for each dedicated pool, wherever it has servers."""
        pools = dict.fromkeys((self.question.pool(w), p) for w, p in self.combos)
        return [(name, p) for name, p in pools if name and self.pooled[name][p].any()]

    @cached_property
    def own_of(self) -> list[int | None]:
        """Return each combo's number in ``dedicated_pools``: None for common servers, -1 where its pool has none."""
        positions = {pool: j for j, pool in enumerate(self.dedicated_pools)}
        pools = [(self.question.pool(w), p) for w, p in self.combos]
        return [positions.get(pool, -1) if pool[0] else None for pool in pools]

    @cached_property
    def load_of_active(self) -> Floats:
        """Return the average utilisation of active servers without failures, by (pair, period)."""
        return over(self.busy, self.active)

    @cached_property
    def most_domains(self) -> int:
        """Return the maximum number of failure domains of a site."""
        return max(len(self.question.domains(k)) for k in self.sites)

    def domain(self, site: int, number: int) -> str:
        """Return the name of a failure domain of a site; empty if the site has fewer."""
        names = self.question.domains(self.sites[site])
        return names[number] if number < len(names) else ""

    def lost(self, places: Sequence[tuple[int, int]]) -> Case:
        """Return the names of the failure domains at these places (site, number); empty if a site has fewer."""
        case = tuple(self.domain(*place) for place in places)
        return case if all(case) else ()

    @cached_property
    def annuity(self) -> float:
        """Return the discounted years of the horizon."""
        return float(self.weight.sum() * self.question.years)

    @cached_property
    def year_names(self) -> list[str]:
        """Return the names of the years."""
        return list(dict.fromkeys(self.question.year_names))

    @cached_property
    def years(self) -> list[int]:
        """Return the year of each period: its number among the names, from 1."""
        return [self.year_names.index(name) + 1 for name in self.question.year_names]

    @cached_property
    def pair_costs(self) -> Floats:
        """Return the present value of all costs of a SKU at a site, by pair."""
        return by_pair(self)

    @cached_property
    def used_up(self) -> Floats:
        """Return the servers of a workload over all periods, by combo."""
        return used_by(self)

    @cached_property
    def used_of_pair(self) -> Floats:
        """Return the servers of all workloads over all periods, by pair."""
        used = np.zeros(len(self.pairs))
        np.add.at(used, [p for _, p in self.combos], self.used_up)
        return used

    @cached_property
    def pairs_of_worth(self) -> list[tuple[str, str]]:
        """Return (SKU, workload) of each equivalence."""
        return [(a, b) for a, sku in self.question.skus.items() for b in sku.worth]

    def worth_cells(self, workload: str, sku: str) -> tuple[str, str]:
        """Return references to E of a SKU for a workload, and to the utilisation of its servers for that workload."""
        row = self.pairs_of_worth.index((sku, workload))
        return f"[worth!value!{row}]", f"[worth!used!{row}]"

    def watt_year(self) -> float:
        """Return the cost of 1 W of servers for one year at the question's energy price and PUE, including carbon."""
        q = self.question
        return HOURS / 1000 * q.pue * (in_period(q.energy_price, 0) + q.carbon_price * q.grid / 1000)
