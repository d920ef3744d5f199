"""Compare the revenue of each workload with its share of a plan's costs, in present values.

The costs of a SKU at a site go to the workloads in proportion to the servers assigned to them there, over all periods.
Costs of servers that no workload uses follow the other costs. Revenue is computed from the median demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fleetmark.planner.capacity.ledger import Ledger

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GrossMargin:
    """Present values of a workload in the currency of the question. ``revenue`` is 0 if it is not given."""

    workload: str
    revenue: float
    cost: float

    @property
    def margin(self) -> float:
        """Return the revenue minus the cost."""
        return self.revenue - self.cost

    @property
    def share(self) -> float | None:
        """Return the margin divided by the revenue, or None without revenue."""
        return self.margin / self.revenue if self.revenue else None


def gross_margins(ledger: Ledger) -> Sequence[GrossMargin]:
    """Return the gross margin of every workload; their costs add up to the plan's cost. Empty if no workload has
    revenue.
    """
    works = list(ledger.question.workloads.values())
    if not any(work.revenue for work in works):
        return []
    paid = ledger.weight * ledger.question.years
    return [
        GrossMargin(work.name, float(np.array(work.point) @ paid * work.revenue), float(cost))
        for work, cost in zip(works, by_workload(ledger), strict=True)
    ]


def used_by(ledger: Ledger) -> Floats:
    """Return (combo,): the servers assigned to a workload on a SKU at a site, over all periods."""
    return np.asarray(ledger.servers.sum(axis=1))


def by_workload(ledger: Ledger) -> Floats:
    """Return (workload,): the present value of the workload's part of all costs."""
    costs, spread = by_pair(ledger), np.zeros((len(ledger.workloads), len(ledger.pairs)))
    for (w, p), servers in zip(ledger.combos, used_by(ledger), strict=True):
        spread[ledger.workloads.index(w), p] += servers
    used = spread.sum(axis=0)
    direct = spread @ np.divide(costs, used, out=np.zeros_like(costs), where=used > 0)
    share = direct / direct.sum() if direct.sum() else np.full(len(direct), 1 / len(direct))
    return np.asarray(direct + float(costs[used == 0].sum()) * share)


def by_pair(ledger: Ledger) -> Floats:
    """Return (pair,): the present value of all costs of a SKU at a site."""
    q, skus = ledger.question, ledger.question.skus
    span = range(ledger.periods)
    watt = np.array([[q.watt(k, t) for t in span] for _, k in ledger.pairs]).reshape(ledger.draw.shape)
    making = ledger.of_pairs(lambda s, _: q.carbon_price / 1000 * skus[s].embodied)[:, None]
    yearly = ledger.of_pairs(lambda s, _: skus[s].rent + skus[s].support + skus[s].space)[:, None]
    leaving = ledger.of_pairs(lambda s, _: skus[s].migration)[:, None]
    money = (ledger.paid + making) * ledger.buy + yearly * q.years * ledger.installed + leaving * ledger.retire
    return np.asarray((money + watt * ledger.draw) @ ledger.weight - ledger.left_worth.sum(axis=1) * ledger.weight[-1])
