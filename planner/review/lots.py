"""Name the purchases of a plan as lots, and find which delivery measured each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.planner.capacity.question import Plan, Question

_NAME = re.compile(r"(?P<sku>.+)@(?P<period>[^@/=]+)(?:/(?P<site>[^@=]+))?")


@dataclass(frozen=True, slots=True)
class Lot:
    """Describe a purchase of the plan.

    ``site`` is empty for all sites. ``period`` is that of the order, ``arrives`` that from which the servers can be
    used, ``price`` that of one server at the number ordered.
    """

    name: str
    sku: str
    site: str
    period: int
    arrives: int
    count: int
    price: float


@dataclass(frozen=True, slots=True)
class Delivery:
    """Hold a lot and the campaign that measured it; ``like`` names the lot whose campaign stands for it, or is empty."""

    lot: Lot
    campaign: str
    like: str = ""


def deliveries(question: Question, plan: Plan, written: Sequence[str]) -> list[Delivery]:
    """Return the deliveries of ``LOT=CAMPAIGN``, where a LOT is ``SKU@PERIOD`` or ``SKU@PERIOD/SITE``.

    Instead of a campaign, another delivered lot may be named, whose campaign then stands for both. Raise FleetmarkError
    for a lot that was not planned or is named twice, and for references that run in a circle.
    """
    named: dict[str, tuple[Lot, str]] = {}
    for text in written:
        name, equals, campaign = text.partition("=")
        if not (equals and name and campaign):
            raise FleetmarkError(f"--delivered {text}: write it as LOT=CAMPAIGN, such as genoa@2027-Q1=last")
        lot = lot_of(question, plan, name)
        for other, _ in named.values():
            if _overlap(lot, other):
                raise FleetmarkError(f"--delivered {lot.name}: {other.name} has these servers already; name a lot once")
        named[lot.name] = (lot, campaign)
    return [Delivery(lot, *_campaign(name, named)) for name, (lot, _) in named.items()]


def _campaign(name: str, named: Mapping[str, tuple[Lot, str]]) -> tuple[str, str]:
    """Return the campaign that measured a lot, and the lot that it was measured as, if it is another."""
    path = [name]
    while (target := named[path[-1]][1]) in named:
        if target in path:
            circle = " -> ".join([*path[path.index(target) :], target])
            raise FleetmarkError(f"--delivered: the lots refer to each other in a circle ({circle}); name a campaign")
        path.append(target)
    if "@" in target and _NAME.fullmatch(target):
        raise FleetmarkError(f"--delivered {path[-1]}={target}: {target} has no campaign; add --delivered {target}=CAMPAIGN")
    return target, path[-1] if len(path) > 1 else ""


def _overlap(a: Lot, b: Lot) -> bool:
    return (a.sku, a.period) == (b.sku, b.period) and (a.site == b.site or not a.site or not b.site)


def lot_of(question: Question, plan: Plan, name: str) -> Lot:
    """Return the lot of that name. Raise FleetmarkError if it was not planned."""
    match = _NAME.fullmatch(name)
    planned = lots(question, plan)
    some = ", ".join(lot.name for lot in planned[:8]) or "none"
    if match is None:
        raise FleetmarkError(f"lot {name!r}: write it as SKU@PERIOD or SKU@PERIOD/SITE; the plan has {some}")
    sku, site = match["sku"], match["site"] or ""
    mine = [lot for lot in planned if lot.sku == sku and question.periods[lot.period] == match["period"]]
    sites = [lot for lot in mine if not site or lot.site == site]
    if not sites:
        arrived = [lot for lot in planned if lot.sku == sku and _period(question, lot.arrives) == match["period"]]
        if arrived:
            hint = f"; the servers that arrive then are {arrived[0].name}, named by the period of their order"
        else:
            hint = suggest(name, [lot.name for lot in planned])
        raise FleetmarkError(f"lot {name!r} was never planned{hint}; the plan has {some}")
    first, count = sites[0], sum(lot.count for lot in sites)
    if site or len(sites) == 1:
        return Lot(name, sku, first.site, first.period, first.arrives, count, first.price)
    return Lot(name, sku, "", first.period, first.arrives, count, first.price)


def lots(question: Question, plan: Plan) -> list[Lot]:
    """Return the purchases of a plan by period, SKU and site, named ``SKU@PERIOD/SITE``; without the site if there is
    one site only.
    """
    stock = plan.stock[plan.stock["buy"] > 0].sort_values(["period", "sku", "site"], kind="stable")
    ordered = {key: float(n) for key, n in stock.groupby(["sku", "period"])["buy"].sum().items()}
    planned = []
    for row in stock.itertuples():
        sku, t = question.skus[str(row.sku)], int(row.period)
        price = sku.price_in(ordered[row.sku, row.period]) * question.price_level(sku.name, t)
        site = f"/{row.site}" if len(question.sites) > 1 else ""
        name = f"{row.sku}@{question.periods[t]}{site}"
        planned.append(Lot(name, sku.name, str(row.site), t, t + sku.delay, int(row.buy), price))
    return planned


def _period(question: Question, number: int) -> str:
    return question.periods[number] if number < len(question.periods) else ""
