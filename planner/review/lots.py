"""Name the deliveries of a plan as lots, and find the campaign that measured each lot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.planner.capacity.question import Plan, Question
from fleetmark.planner.review.orders import orders

_NAME = re.compile(r"(?P<sku>.+)@(?P<period>[^@/=]+)(?:/(?P<site>[^@=]+))?")
MOST_NAMED = 8  # maximum number of lots named in an error


@dataclass(frozen=True, slots=True)
class Lot:
    """Servers of a SKU that arrive at a site in a period; ``site`` is empty for all sites.

    ``ordered`` is the period of the order, None for an order placed before the plan. ``price`` is the unit price at the
    ordered quantity; for an order placed before the plan, it is the price of the first period.
    """

    name: str
    sku: str
    site: str
    arrives: int
    ordered: int | None
    _: KW_ONLY
    count: int
    price: float

    @property
    def reviewed(self) -> int:
        """Return the first period with orders that can take the delivery into account; without lead time, it is the
        next one.
        """
        return self.arrives + (self.ordered == self.arrives)


@dataclass(frozen=True, slots=True)
class Delivery:
    """A lot and the campaign that represents it.

    ``like`` is the name of the measured lot, if it is a different lot.
    """

    lot: Lot
    campaign: str
    like: str = ""


def deliveries(question: Question, plan: Plan, written: Sequence[str]) -> list[Delivery]:
    """Return the deliveries of ``LOT=CAMPAIGN``, where a LOT is ``SKU@PERIOD`` or ``SKU@PERIOD/SITE``.

    PERIOD is the period in which the servers arrive. Instead of a campaign, another delivered lot may be named; its
    campaign then represents both lots. Raise FleetmarkError for a lot that was not planned or is named twice, and for
    circular references.
    """
    named: dict[str, tuple[Lot, str]] = {}
    for text in written:
        name, equals, campaign = text.partition("=")
        if not (equals and name and campaign):
            raise FleetmarkError(f"--delivered {text}: write it as LOT=CAMPAIGN, such as genoa@2027-Q2=last")
        lot = lot_of(question, plan, name)
        for other, _ in named.values():
            if _overlap(lot, other):
                raise FleetmarkError(f"--delivered {lot.name}: {other.name} has these servers already; name a lot once")
        named[lot.name] = (lot, campaign)
    return [Delivery(lot, *_campaign(name, named)) for name, (lot, _) in named.items()]


def _campaign(name: str, named: Mapping[str, tuple[Lot, str]]) -> tuple[str, str]:
    """Return the campaign that represents a lot, and the name of the measured lot if it is a different one."""
    path = [name]
    while (target := named[path[-1]][1]) in named:
        if target in path:
            circle = " -> ".join([*path[path.index(target) :], target])
            raise FleetmarkError(f"--delivered: the lots refer to each other in a circle ({circle}); name a campaign")
        path.append(target)
    if "@" in target and _NAME.fullmatch(target):
        raise FleetmarkError(
            f"--delivered {path[-1]}={target}: {target} has no campaign; add --delivered {target}=CAMPAIGN"
        )
    return target, path[-1] if len(path) > 1 else ""


def _overlap(a: Lot, b: Lot) -> bool:
    return (a.sku, a.arrives) == (b.sku, b.arrives) and (a.site == b.site or not a.site or not b.site)


def lot_of(question: Question, plan: Plan, name: str) -> Lot:
    """Return the lot of that name. Raise FleetmarkError if it was not planned."""
    match = _NAME.fullmatch(name)
    planned = lots(question, plan)
    names = list(dict.fromkeys(lot.name for lot in planned))
    some = ", ".join([*names[:MOST_NAMED], *["..."] * (len(names) > MOST_NAMED)]) or "none"
    if match is None:
        raise FleetmarkError(f"lot {name!r}: write it as SKU@PERIOD or SKU@PERIOD/SITE; the plan has {some}")
    sku, site, period = match["sku"], match["site"] or "", match["period"]
    mine = [lot for lot in planned if lot.sku == sku and (not site or lot.site == site)]
    chosen = [lot for lot in mine if question.periods[lot.arrives] == period]
    if not chosen:
        ordered = [lot for lot in mine if lot.ordered is not None and question.periods[lot.ordered] == period]
        hint = (
            f"; a lot is named by the period of its arrival, and the order of {period} arrives as {ordered[0].name}"
            if ordered
            else suggest(name, names)
        )
        raise FleetmarkError(f"lot {name!r} was never planned{hint}; the plan has {some}")
    common_site = chosen[0].site if len({lot.site for lot in chosen}) == 1 else ""
    count = sum(lot.count for lot in chosen)
    price = sum(lot.count * lot.price for lot in chosen) / count
    return replace(chosen[0], name=name, site=common_site, count=count, price=price)


def lots(question: Question, plan: Plan) -> list[Lot]:
    """Return the servers that arrive during the plan, by period, including those of earlier orders.

    They are named ``SKU@PERIOD/SITE``, and without the site if the question has one site only.
    """
    several = len(question.sites) > 1

    def lot(sku: str, site: str, arrives: int, ordered: int | None, count: int, price: float) -> Lot:
        name = f"{sku}@{question.periods[arrives]}" + (f"/{site}" if several else "")
        return Lot(name, sku, site, arrives, ordered, count=count, price=price)

    before = [
        lot(c.sku, c.site, c.arrives, None, c.count, question.skus[c.sku].price_in(c.count))
        for c in question.fleet
        if c.arrives is not None and c.count
    ]
    bought = [
        lot(o.sku, o.site, arrives, o.period, o.count, o.price)
        for o in orders(question, plan)
        for arrives in [o.period + question.skus[o.sku].delay]
        if arrives < len(question.periods)
    ]
    return sorted([*before, *bought], key=lambda one: (one.arrives, one.sku, one.site))
