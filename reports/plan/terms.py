"""Other terms of a plan as sentences: rack positions, power of rows, late orders, changing prices, rates, forecasts."""

from __future__ import annotations

from collections.abc import Iterator

from fleetmark.base.text import Message, message
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Question
from fleetmark.reports.kit import format as fmt

TITLE = message("Racks, deliveries, prices and forecasts")


def lines(ledger: Ledger) -> list[Message]:
    """A sentence for each, of those that the question has."""
    return [*_racks(ledger), *_rows(ledger), *_orders(ledger.question)]


def _racks(ledger: Ledger) -> Iterator[Message]:
    q = ledger.question
    air, liquid = ledger.racks(liquid=False).max(axis=1), ledger.racks(liquid=True).max(axis=1)
    for k, site in enumerate(q.sites.values()):
        if site.racks is not None:
            used, limit = fmt.amount(float(air[k])), fmt.amount(site.racks)
            yield message(
                "{site}: {used} of {limit} positions for racks at most", site=site.name, used=used, limit=limit
            )
        if liquid[k] or site.liquid_racks:
            used, limit = fmt.amount(float(liquid[k])), fmt.amount(site.liquid_racks or 0.0)
            yield message(
                "{site}: {used} of {limit} liquid-cooled positions at most", site=site.name, used=used, limit=limit
            )


def _rows(ledger: Ledger) -> Iterator[Message]:
    for name, limit in ledger.question.domains_w.items():
        used = float(ledger.domain_w(name).max())
        figures = {"used": fmt.amount(used / 1000), "limit": fmt.amount(limit / 1000)}
        yield message("{domain}: {used} of {limit} kW at most", domain=name, **figures)


def _orders(q: Question) -> Iterator[Message]:
    for s, sku in q.skus.items():
        if sku.slips:
            late, lead, more = fmt.share(1 - sku.slips[0], 0), sku.lead, sku.allowance
            yield message(
                "{sku}: {late} of orders come late; the plan adds {more} to a lead time of {lead} (periods)",
                sku=s,
                late=late,
                more=more,
                lead=lead,
            )
        if sku.price_change:
            yield message("{sku}: its price changes by {change} a year", sku=s, change=fmt.change(sku.price_change))
    if q.energy_price_change:
        yield message("Energy prices change by {change} a year", change=fmt.change(q.energy_price_change))
    for name, rate in q.rates.items():
        yield message("1 {other} is {rate} {currency}, as given", other=name, rate=f"{rate:g}", currency=q.currency)
    for w, work in q.workloads.items():
        if work.forecast:
            yield message("{workload}: {forecast}", workload=w, forecast=work.forecast)
