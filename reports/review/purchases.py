"""Compare the purchases of the old and the new plan."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.review.orders import orders
from fleetmark.planner.review.review import Review


@dataclass(frozen=True, slots=True)
class Purchase:
    """The order of a SKU for a site in a period.

    ``money``: the change of the price. ``period`` and ``arrives`` are numbers in the remaining question.
    """

    period: int
    site: str
    sku: str
    planned: int
    now: int
    _: KW_ONLY
    arrives: int
    money: float

    @property
    def change(self) -> int:
        """Return how many more servers are ordered than planned."""
        return self.now - self.planned


def purchases(review: Review) -> list[Purchase]:
    """Return all purchases of either plan, by period, site and SKU; none without a new plan."""
    if review.plan is None:
        return []
    q = review.question
    old, new = _priced(q, review.kept), _priced(q, review.plan)
    none = (0, 0.0)
    order = {name: n for n, name in enumerate([*q.sites, *q.skus])}
    return [
        Purchase(
            t,
            site,
            sku,
            old.get((t, site, sku), none)[0],
            new.get((t, site, sku), none)[0],
            arrives=t + q.skus[sku].delay,
            money=new.get((t, site, sku), none)[1] - old.get((t, site, sku), none)[1],
        )
        for t, site, sku in sorted(old.keys() | new.keys(), key=lambda key: (key[0], order[key[1]], order[key[2]]))
    ]


def _priced(q: Question, plan: Plan) -> dict[tuple[int, str, str], tuple[int, float]]:
    """Return the number and undiscounted price of bought servers by (period, site, SKU)."""
    return {(o.period, o.site, o.sku): (o.count, o.money) for o in orders(q, plan)}
