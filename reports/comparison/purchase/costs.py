"""Compute the cost of the same work on every side: servers, money, power, rack units, and the break-even price.

Prices are for whole servers, so costs do not depend on what figures are divided by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from statistics import fmean
from types import MappingProxyType

from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.comparison import Candidate, Comparison
from fleetmark.planner.cost import Cost, Offer, Terms, break_even, cost, needed
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.frontier import Bound
from fleetmark.record.results import HostInfo
from fleetmark.record.sides.amounts import positive
from fleetmark.reports.comparison.cell import Line
from fleetmark.reports.comparison.purchase.bought import MOST, unit_of_price, years_of
from fleetmark.reports.comparison.service import Service
from fleetmark.reports.comparison.titles import spaced
from fleetmark.reports.frontier.amounts import hours
from fleetmark.reports.frontier.section import cost_per_million, unit_of
from fleetmark.reports.kit import format as fmt

Strata = Sequence[tuple[float, Sequence[str]]]  # (share, hosts) of each stratum


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """The cost of doing the work of the baseline's servers on one side, for one class of work.

    ``work``: the title of the class, empty for the baseline. ``class_``: its name. ``piece``: what is counted, if not
    servers. ``ratio``: baseline servers that one server replaces. ``cost``: the cost of the needed servers. ``minimum``
    and ``maximum``: the bounds of the interval of their number. ``change``: the cost relative to the baseline's, as a
    fraction. ``unit``: the currency and billing term of the offer.
    """

    side: str
    work: str
    class_: str
    offer: Offer
    cost: Cost
    unit: str
    ratio: Estimate | None = None
    minimum: int | None = None
    maximum: int | None = None
    change: float | None = None
    break_even: Estimate | None = None
    piece: str = ""


@dataclass(frozen=True, slots=True)
class Offers:
    """The average server of each side.

    ``unit``, ``hours``: the common unit and term of all prices; empty and None if prices have no common unit.
    """

    by_side: Mapping[str, Offer]
    unit: str
    hours: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of all sides.

    ``offers``: the average server of each side. ``lines``: the classes that costs cover, for whole servers. ``totals``:
    sentences on servers and money, and why costs are unknown. ``more``: sentences on years and break-even prices.
    """

    terms: Terms
    offers: Offers
    lines: tuple[Line, ...] = ()
    bills: tuple[Bill, ...] = ()
    totals: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Price:
    """The prices of one side's hosts. ``unit``: the currency and term. ``term``: the hours that a price covers."""

    by_host: Mapping[str, float]
    unit: str
    term: float | None
    watts: float | None
    rack_units: float | None

    def offer(self, strata: Strata = ()) -> Offer:
        """Return the mean server, weighted by the share of each stratum if there are strata."""
        return self._offer(_mean(self.by_host, strata))

    def offer_of_unit(self, sizes: Mapping[str, float]) -> Offer:
        """Return the mean unit; ``sizes`` maps hosts to their number of units, 1 if absent."""
        price = fmean(price / sizes.get(host, 1.0) for host, price in self.by_host.items())
        return Offer(price=price, hours=self.term)

    def _offer(self, price: float) -> Offer:
        return Offer(price=price, hours=self.term, watts=self.watts, rack_units=self.rack_units)


def costs(
    whole_servers: Comparison, hosts: Sequence[HostInfo], lead: Sequence[Line], served: Sequence[Service], terms: Terms
) -> Costs:
    """Return the cost of the work of ``terms.servers`` baseline servers on every side.

    ``whole_servers`` compares whole servers. ``lead`` lists its classes of the answer. ``served`` lists the services
    whose accelerators or servers are counted in the same way. Without any price there are no costs.
    """
    titles = [whole_servers.baseline, *(c.title for c in whole_servers.candidates)]
    known = {t: _price(t, [h for h in hosts if h.generation == t]) for t in titles}
    prices = {t: p for t, p in known.items() if isinstance(p, _Price)}
    unknown = [message("No total cost: {why}", why=p) for p in known.values() if isinstance(p, Message)]
    if len({p.unit for p in prices.values()}) > 1:
        units = joined((spaced(fmt.clean(t), p.unit) for t, p in prices.items()), "; ")
        unknown.append(
            message(
                "No total cost: prices have several currencies or terms ({units}); give all sides one with --price, "
                "or convert a currency with --rate",
                units=units,
            )
        )
        prices = {}
    all_offers = offers(titles, hosts)
    unpowered = [fmt.clean(t) for t in titles if all_offers.by_side[t].watts is None]
    has_energy = terms.energy is not None and not unpowered
    if terms.energy is not None and prices and not has_energy:
        lacking = joined(unpowered[:MOST])
        unknown.append(
            message("Energy is not counted: the power of {sides} is unknown; add --watts NAME=650", sides=lacking)
        )
    counted = terms if has_energy else Terms(servers=terms.servers, years=terms.years)
    bills = tuple(_bills(whole_servers, prices, all_offers, lead, served, counted))
    works = [_by_side(bills, work) for work in dict.fromkeys(bill.work if bill.piece else "" for bill in bills)]
    totals = [sentence for by_side in works for sentence in _totals(whole_servers, by_side, counted)]
    more: list[str] = [*_per_million(whole_servers.baseline, served)]
    more += [sentence for by_side in works for sentence in _more(whole_servers, by_side, counted)]
    return Costs(
        terms=counted,
        offers=all_offers,
        lines=tuple(lead),
        bills=bills,
        totals=(*totals[:MOST], *unknown[:MOST]),
        more=tuple(more[:MOST]),
    )


# --- figures ---------------------------------------------------------------------------------------------------------


def _bills(
    whole_servers: Comparison,
    prices: Mapping[str, _Price],
    all_offers: Offers,
    lead: Sequence[Line],
    served: Sequence[Service],
    terms: Terms,
) -> Iterator[Bill]:
    base = prices.get(whole_servers.baseline)
    lines = [line for line in lead if not line.service]
    for service in served if prices else ():
        sizes = service.family.sizes
        results = {c: e.ratio for c, e in service.results.items() if e.ratio is not None and e.bound is Bound.EXACT}
        offers = {side: price.offer_of_unit(sizes) for side, price in prices.items()}
        yield from _of_work(whole_servers, offers, prices, service.line, results, terms, unit_of(service.family))
    if not lines or not prices:
        return
    if base is not None:
        yield _bill(whole_servers.baseline, "", "", base.offer(), base.unit, terms.servers, terms)
    for k, candidate in enumerate(whole_servers.candidates):
        for line in lines:
            if estimate := line.cells[k].estimate:
                yield from _of_class(whole_servers, candidate, prices, all_offers, line, estimate, terms)


def _of_work(
    whole_servers: Comparison,
    offers: Mapping[str, Offer],
    prices: Mapping[str, _Price],
    line: Line,
    results: Mapping[str, Estimate],
    terms: Terms,
    piece: str,
) -> Iterator[Bill]:
    base = offers.get(whole_servers.baseline)
    if base is not None:
        unit = prices[whole_servers.baseline].unit
        yield _bill(whole_servers.baseline, line.title, line.class_, base, unit, terms.servers, terms, piece=piece)
    for candidate, ratio in results.items():
        if candidate in offers:
            unit = prices[candidate].unit
            yield _candidate(
                candidate, line.title, line.class_, offers[candidate], base, unit, ratio, terms, piece=piece
            )


def _of_class(
    whole_servers: Comparison,
    candidate: Candidate,
    prices: Mapping[str, _Price],
    all_offers: Offers,
    line: Line,
    ratio: Estimate,
    terms: Terms,
) -> Iterator[Bill]:
    """Yield the bill of a candidate.

    If a class is compared size by size, servers are bought in the same shares of sizes as the baseline has.
    """
    price, base = prices.get(candidate.title), prices.get(whole_servers.baseline)
    strata = [(share, names) for share, _, names in candidate.classes[line.class_].strata]
    if price is not None:
        offer = price.offer(strata)
    elif base is not None:
        mine = all_offers.by_side[candidate.title]
        offer = Offer(price=None, hours=base.term, watts=mine.watts, rack_units=mine.rack_units)
    else:
        return
    unit = price.unit if price is not None else base.unit if base is not None else ""
    yield _candidate(
        candidate.title, line.title, line.class_, offer, base.offer() if base else None, unit, ratio, terms
    )


def _candidate(
    side: str,
    work: str,
    class_: str,
    offer: Offer,
    base: Offer | None,
    unit: str,
    ratio: Estimate,
    terms: Terms,
    *,
    piece: str = "",
) -> Bill:
    servers = needed(terms.servers, ratio.value)
    ends = [None if end is None or end <= 0 else needed(terms.servers, end) for end in (ratio.hi, ratio.lo)]
    bill = _bill(side, work, class_, offer, unit, servers, terms, piece=piece)
    if base is None:
        return replace(bill, ratio=ratio, minimum=ends[0], maximum=ends[1])
    before = cost(base, terms.servers, terms)
    pairs = ((before.yearly, bill.cost.yearly), (before.total, bill.cost.total))
    changes = [after / old - 1 for old, after in pairs if old and after is not None]
    return replace(
        bill,
        ratio=ratio,
        minimum=ends[0],
        maximum=ends[1],
        change=next(iter(changes), None),
        break_even=break_even(ratio, base, offer, terms),
    )


def _bill(
    side: str, work: str, class_: str, offer: Offer, unit: str, servers: int, terms: Terms, *, piece: str = ""
) -> Bill:
    of_all = cost(offer, servers, terms)
    return Bill(side=side, work=work, class_=class_, offer=offer, cost=of_all, unit=unit, piece=piece)


def offers(titles: Sequence[str], hosts: Sequence[HostInfo], sizes: Mapping[str, float] | None = None) -> Offers:
    """Return the average server of each side: its price (if all have the same currency), power and rack units.

    ``sizes``: the number of accelerators of each machine; each side's offer is then its mean accelerator.
    """
    parts = sizes or {}
    known = {t: _price(t, [h for h in hosts if h.generation == t]) for t in titles}
    prices = {t: p for t, p in known.items() if isinstance(p, _Price)}
    units = {p.unit for p in prices.values()}
    by_side = {}
    for title in titles:
        mine = [h for h in hosts if h.generation == title]
        price = prices[title].offer_of_unit(parts).price if title in prices and len(units) == 1 else None
        watts, rack_units = (_mean_of(mine, label, parts) for label in ("watts", "rack_units"))
        by_side[title] = Offer(price=price, watts=watts, rack_units=rack_units)
    first = next(iter(prices.values()), None) if len(units) == 1 else None
    return Offers(by_side, first.unit if first else "", first.term if first else None)


# --- prices ----------------------------------------------------------------------------------------------------------


def _price(title: str, hosts: Sequence[HostInfo]) -> _Price | Message | None:
    """Return the prices of one side, None if it has none, or the reason why there is no single price."""
    prices = {_machine(h): positive(h.labels.get("price")) for h in hosts}
    known = {host: price for host, price in prices.items() if price and price < 1e12}
    if not known:
        return None
    name = fmt.clean(title)
    if lacking := len(prices) - len(known):
        return message("{n} of {hosts} of {side} have no price", n=lacking, hosts=count(len(prices), "host"), side=name)
    units = sorted({unit_of_price(h) for h in hosts})
    if "" in units:
        return message("prices of {side} have no currency", side=name)
    if len(units) > 1:
        return message(
            "prices of {side} have several currencies or terms ({units}); give it one price with --price, or convert a "
            "currency with --rate",
            side=name,
            units=joined(units),
        )
    term = hours(hosts[0].labels.get("term", "")) if hosts[0].labels.get("term") else None
    return _Price(known, units[0], term, _mean_of(hosts, "watts"), _mean_of(hosts, "rack_units"))


def _mean_of(hosts: Sequence[HostInfo], label: str, sizes: Mapping[str, float] = MappingProxyType({})) -> float | None:
    """Return the mean of a label over all hosts, or None if a host lacks it.

    ``sizes``: the number by which each host's value is divided.
    """
    known = [(positive(h.labels.get(label)), sizes.get(_machine(h), 1.0)) for h in hosts]
    present = [value / size for value, size in known if value is not None]
    return fmean(present) if present and len(present) == len(known) else None


def _machine(host: HostInfo) -> str:
    """Return the name of a host without its side."""
    return host.name.removesuffix(f" ({host.generation})")


def _mean(values: Mapping[str, float], strata: Strata) -> float:
    shares = strata or [(1.0, list(values))]
    total = sum(share for share, _ in shares)
    return sum(share * fmean(values[host] for host in names) for share, names in shares) / total


def currency_of(unit: str) -> str:
    """Return the currency of a price's unit: ``USD`` for ``USD per hour``."""
    return unit.split(" ", maxsplit=1)[0]


def summed(value: float) -> str:
    """Return a sum of prices as text: without decimals from 100, otherwise as ``fmt.price`` formats it."""
    return fmt.money(value) if value >= 99.995 or value == 0 else fmt.price(value)


# --- sentences -------------------------------------------------------------------------------------------------------


def _by_side(bills: Sequence[Bill], service: str) -> dict[str, list[Bill]]:
    """Return the bills by side.

    ``service``: only the bills of this service; otherwise only bills without a service.
    """
    by_side: dict[str, list[Bill]] = {}
    for bill in bills:
        if (bill.work if bill.piece else "") == service:
            by_side.setdefault(bill.side, []).append(bill)
    return by_side


def _totals(whole_servers: Comparison, by_side: Mapping[str, Sequence[Bill]], terms: Terms) -> Iterator[str]:
    """Yield sentences such as ``34 new replace 100 old and cost 646,000 EUR; 100 old cost 900,000 EUR``."""
    base = by_side.get(whole_servers.baseline, [None])[0]
    for side, group in by_side.items():
        if side != whole_servers.baseline and all(bill.cost.total is not None for bill in group):
            yield _total(whole_servers, group, base, terms)


def _more(whole_servers: Comparison, by_side: Mapping[str, Sequence[Bill]], terms: Terms) -> Iterator[str]:
    """Yield the cost of a year, and the break-even prices."""
    if yearly := _yearly(by_side, terms):
        yield yearly
    rest = {side: group for side, group in by_side.items() if side != whole_servers.baseline}
    if even := _even(rest):
        yield even


def _per_million(baseline: str, served: Sequence[Service]) -> Iterator[Message]:
    """Yield the cost of a million tokens on each side, at the speed per user of each service."""
    for service in served:
        results = list(service.results.items())
        work = {baseline: results[0][1].baseline} | {side: e.candidate for side, e in results} if results else {}
        known = [(side, price, work[side]) for side, price in service.family.prices.items() if work.get(side)]
        currencies = {currency for _, (_, currency), _ in known}
        if len(currencies) != 1 or len(known) < len(work):
            continue
        amounts = [
            spaced(fmt.clean(side), fmt.price(cost_per_million(price, rate)))
            for side, (price, _), rate in sorted(known, key=lambda item: item[0] != baseline)
            if rate is not None
        ]
        yield message(
            "Cost of a million {piece}s at {speed} {piece}s/s per user, in {currency}: {costs}",
            piece=service.family.frontier.piece,
            speed=f"{service.speed:g}",
            currency=fmt.clean(currencies.pop()),
            costs=joined(amounts[:MOST]),
        )


def _total(whole_servers: Comparison, group: Sequence[Bill], base: Bill | None, terms: Terms) -> Message:
    numbers = [bill.cost.servers for bill in group]
    totals = [bill.cost.total or 0.0 for bill in group]
    first = group[0]
    of_cost = spaced(span(map(summed, _ends(totals))), first.unit)
    names = {"n": f"{terms.servers:,}", "baseline": fmt.clean(whole_servers.baseline)}
    mine = {"needed": span(f"{n:,}" for n in _ends(numbers)), "candidate": fmt.clean(first.side), "cost": of_cost}
    if first.piece:
        sentence = message(
            "{needed} {candidate} {unit}s serve as much as {n} {baseline} {unit}s and cost {cost}",
            unit=first.piece,
            **mine,
            **names,
        )
    else:
        sentence = message("{needed} {candidate} replace {n} {baseline} and cost {cost}", **mine, **names)
    if base is None or base.cost.total is None:
        return sentence
    before = spaced(summed(base.cost.total), base.unit)
    if first.piece:
        return message(
            "{sentence}; {n} {baseline} {unit}s cost {before}",
            sentence=sentence,
            before=before,
            unit=base.piece,
            **names,
        )
    return message("{sentence}; {n} {baseline} cost {before}", sentence=sentence, before=before, **names)


def _yearly(by_side: Mapping[str, Sequence[Bill]], terms: Terms) -> Message | None:
    """Return the cost of a year on every side, the baseline first."""
    groups = list(by_side.values())
    parts = []
    for group in groups[:MOST]:
        yearly = [bill.cost.yearly for bill in group if bill.cost.yearly is not None]
        if yearly:
            parts.append(spaced(fmt.clean(group[0].side), span(map(summed, _ends(yearly)))))
    if not parts or not terms.years:
        return None
    unit = currency_of(groups[0][0].unit)
    values = {"term": years_of(terms.years), "unit": unit, "costs": joined(parts)}
    if terms.energy is not None:
        return message("Per year over {term}, with energy, in {unit}: {costs}", **values)
    return message("Per year over {term}, without energy, in {unit}: {costs}", **values)


def _even(by_side: Mapping[str, Sequence[Bill]]) -> Message | None:
    """Return the prices at which the same work costs as much as on the baseline."""
    parts = []
    unit = piece = ""
    for side, group in list(by_side.items())[:MOST]:
        evens = [(b.break_even.value, b) for b in group if b.break_even is not None and b.break_even.value]
        if not evens:
            continue
        unit, piece = group[0].unit, group[0].piece
        (least, low), (greatest, high) = (end(evens, key=itemgetter(0)) for end in (min, max))
        if low is high or low.break_even == high.break_even:
            parts.append(spaced(fmt.clean(side), _with_ends(low.break_even)))
        else:
            parts.append(
                message(
                    "{side} {low} ({class_}) to {high} ({other})",
                    side=fmt.clean(side),
                    low=fmt.price(least),
                    class_=low.work,
                    high=fmt.price(greatest),
                    other=high.work,
                )
            )
    if not parts:
        return None
    if piece:
        return message(
            "Break-even price of one {piece}, in {unit}: {prices}", piece=piece, unit=unit, prices=joined(parts)
        )
    return message("Break-even price of a server, in {unit}: {prices}", unit=unit, prices=joined(parts))


def _with_ends(price: Estimate | None) -> str:
    if price is None:
        return ""
    ends = interval(price)
    return f"{fmt.price(price.value)} ({ends})" if ends else fmt.price(price.value)


def interval(price: Estimate) -> str:
    return "" if price.lo is None or price.hi is None else f"{fmt.price(price.lo)}–{fmt.price(price.hi)}"


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def span(texts: Iterator[str] | map[str]) -> str:
    return "–".join(dict.fromkeys(texts))
