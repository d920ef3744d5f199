"""List the orders and retirements of a plan with their prices."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from fleetmark.planner.capacity.question import Plan, Question


@dataclass(frozen=True, slots=True)
class Order:
    """``count`` servers of a SKU ordered for a site in a period; ``price`` is the undiscounted unit price."""

    sku: str
    site: str
    period: int
    count: int
    price: float

    @property
    def money(self) -> float:
        """Return the price of all servers of the order."""
        return self.count * self.price


def orders(question: Question, plan: Plan) -> list[Order]:
    """Return the orders of a plan. Price breaks are based on the orders of all sites together."""
    counts = moves(plan, "buy")
    together: dict[tuple[str, int], int] = defaultdict(int)
    for (sku, _, period), count in counts.items():
        together[sku, period] += count
    return [
        Order(sku, site, period, count, price)
        for (sku, site, period), count in counts.items()
        for s in [question.skus[sku]]
        for price in [s.price_in(together[sku, period]) * question.price_level(sku, period)]
    ]


def moves(plan: Plan, column: str) -> dict[tuple[str, str, int], int]:
    """Return (SKU, site, period) to the nonzero counts ``buy`` or ``retire`` of the stock."""
    columns = (plan.stock[name].tolist() for name in ("sku", "site", "period", column))
    return {(str(s), str(k), int(t)): int(n) for s, k, t, n in zip(*columns, strict=True) if n}
