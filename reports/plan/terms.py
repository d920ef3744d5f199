"""Describe other terms of a plan: rack positions, row power, late orders, changing prices, rates, forecasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fleetmark.base.text import Message, joined, message
from fleetmark.demand.amounts import NOT_SOLD
from fleetmark.planner.capacity.ledger import Ledger
from fleetmark.planner.capacity.question import Question
from fleetmark.planner.capacity.series import each, figures
from fleetmark.reports.kit import format as fmt

TITLE = message("Racks, deliveries, prices and forecasts")


def lines(ledger: Ledger) -> list[Message]:
    """Yield a sentence for each term that the question has."""
    return [*_racks(ledger), *_rows(ledger), *_limits(ledger.question), *_orders(ledger.question)]


def _racks(ledger: Ledger) -> Iterator[Message]:
    q = ledger.question
    air, liquid = ledger.racks(liquid=False).max(axis=1), ledger.racks(liquid=True).max(axis=1)
    for k, site in enumerate(q.sites.values()):
        if site.racks is not None:
            used, limit = fmt.amount(float(air[k])), fmt.amount(max(figures(site.racks)))
            yield message(
                "{site}: {used} of {limit} positions for racks at most", site=site.name, used=used, limit=limit
            )
        if liquid[k] or site.liquid_racks:
            used, limit = fmt.amount(float(liquid[k])), fmt.amount(max(figures(site.liquid_racks or 0.0)))
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
        if sku.prices:
            yield message("{sku}: its price is {figures}", sku=s, figures=_steps(q, sku.prices, fmt.money))
    if q.energy_price_change:
        yield message("Energy prices change by {change} a year", change=fmt.change(q.energy_price_change))
    yield from _energy(q)
    for name, rate in q.rates.items():
        yield message("1 {other} is {rate} {currency}, as given", other=name, rate=f"{rate:g}", currency=q.currency)
    for w, work in q.workloads.items():
        if work.forecast:
            yield message("{workload}: {forecast}", workload=w, forecast=work.forecast)


def _limits(q: Question) -> Iterator[Message]:
    """Yield the limits of sites that change over time."""
    for k, site in q.sites.items():
        kilowatts = None if site.power_w is None else each(site.power_w, lambda watts: watts / 1000)
        for name, limit in (
            (message("power limit in kW"), kilowatts),
            (message("rack units"), site.rack_units),
            (message("ports"), site.ports),
            (message("positions for racks"), site.racks),
            (message("liquid-cooled positions"), site.liquid_racks),
        ):
            if isinstance(limit, tuple):
                steps = _steps(q, limit, fmt.amount)
                yield message("{site}: {limit} over time: {figures}", site=k, limit=name, figures=steps)


def _energy(q: Question) -> Iterator[Message]:
    """Yield the energy prices that change over time."""
    if isinstance(q.energy_price, tuple):
        yield message("The energy price is {figures}", figures=_steps(q, q.energy_price, "{:g}".format))
    for k, site in q.sites.items():
        if isinstance(site.energy_price, tuple):
            steps = _steps(q, site.energy_price, "{:g}".format)
            yield message("{site}: its energy price is {figures}", site=k, figures=steps)


def _steps(q: Question, series: Sequence[float | None], text: Callable[[float], str]) -> Message | str:
    """Return the figures in words, such as ``0 from 2027-Q1, 60 from 2027-Q3``."""
    steps = [
        message("{figure} from {period}", figure=NOT_SOLD if value is None else text(value), period=q.periods[t])
        for t, value in enumerate(series)
        if not t or value != series[t - 1]
    ]
    return joined(steps)
