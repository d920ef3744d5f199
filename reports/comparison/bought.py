"""The amounts by which each side's figures are divided: prices with their date, cores, sockets, GPUs or watts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from fleetmark.base.text import Message, count, joined, message
from fleetmark.planner.comparison import Candidate, Comparison
from fleetmark.planner.frontier import Bound
from fleetmark.record.results import HostInfo
from fleetmark.reports.comparison.cell import SERVERS, Line
from fleetmark.reports.comparison.service import Service
from fleetmark.reports.comparison.titles import spaced
from fleetmark.reports.frontier.section import unit_of
from fleetmark.reports.kit import format as fmt

MOST = 6  # maximum number of sides named
Strata = Sequence[tuple[float, Sequence[str]]]  # (share, hosts) of each stratum
_OF: Mapping[str, tuple[str, Callable[[HostInfo], float | int | None]]] = {
    "money": ("price", lambda _: None),
    "watt": ("watts", lambda _: None),
    "socket": ("chips", lambda h: h.facts.cpu.sockets if h.facts else None),
    "core": ("cores", lambda h: h.facts.cpu.cores if h.facts else None),
    "thread": ("threads", lambda h: h.facts.cpu.threads if h.facts else None),
    "gpu": ("gpus", lambda h: len(h.facts.gpus) or None if h.facts else None),
}
_LISTED: Mapping[str, Message] = {
    "watt": message("Watts of a server: {amounts}"),
    "socket": message("Sockets of a server: {amounts}"),
    "core": message("Cores of a server: {amounts}"),
    "thread": message("Threads of a server: {amounts}"),
    "gpu": message("GPUs of a server: {amounts}"),
}


def currency(hosts: Sequence[HostInfo]) -> str:
    """Return the currency of the prices; several currencies are separated by slashes."""
    return "/".join(sorted({fmt.clean(h.labels["currency"]) for h in hosts if h.labels.get("currency")}))


def bought(comparison: Comparison, hosts: Sequence[HostInfo]) -> str:
    """Return the amounts that figures are divided by, and the prices of all sides that have one.

    For example: ``Price of a server: icelake 9,000 EUR, genoa 15,500 EUR; prices of 2026-11-01``.
    """
    prices = _shared(comparison, hosts, "money")
    if comparison.per in ("server", "money"):
        return prices
    return joined([_shared(comparison, hosts, comparison.per), prices], "; ")


def _shared(comparison: Comparison, hosts: Sequence[HostInfo], per: str) -> str:
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
    amounts = [(t, _range([h for h in hosts if h.generation == t], per)) for t in titles]
    units = {t: sorted({_unit(h) for h in hosts if h.generation == t} - {""}) if per == "money" else [] for t in titles}
    known = [spaced(fmt.clean(t), a, joined(units[t], "/")) for t, a in amounts[:MOST] if a]
    if len(titles) > MOST:
        known.append(message("and {n} more", n=len(titles) - MOST))
    listed = joined(known)
    if not listed:
        return message("Power as measured during the runs") if per == "watt" else ""
    if per != "money":
        return Message(_LISTED[per].template, {"amounts": listed})
    labels = ("price_date", "exchange_rate")
    dates = sorted({fmt.clean(h.labels[k]) for h in hosts for k in labels if h.labels.get(k)})
    if not dates:
        return message("Price of a server: {amounts}; the date of the prices is not known", amounts=listed)
    return message("Price of a server: {amounts}; {dates}", amounts=listed, dates=joined(dates))


def totals(
    comparison: Comparison, hosts: Sequence[HostInfo], lead: Sequence[Line], served: Sequence[Service] = ()
) -> tuple[str, ...]:
    """Return, for each candidate, how many servers replace SERVERS of the baseline and what they cost.

    For example: ``34 genoa replace 100 icelake and cost 646,000 EUR; 100 icelake cost 900,000 EUR``. ``lead`` lists the
    classes that the answer covers. ``served`` lists the services whose accelerators or servers are counted in the same
    way. A sentence names each side whose cost is unknown although it has prices.
    """
    if comparison.per not in ("server", "money"):
        return ()
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
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
    sentences = []
    for k, candidate in enumerate(comparison.candidates):
        if candidate.title in prices:
            sentences += [_service_total(comparison, candidate, prices, service) for service in served]
            amounts = [(x.class_, e.value) for x in lead if not x.service and (e := x.cells[k].estimate)]
            sentences.append(_total(comparison, candidate, prices, amounts))
    return (*[sentence for sentence in sentences if sentence][:MOST], *unknown[:MOST])


def _total(
    comparison: Comparison, candidate: Candidate, prices: Mapping[str, _Price], ratios: Sequence[tuple[str, float]]
) -> Message | None:
    """Return how many servers of ``candidate`` replace SERVERS of the baseline, and what they cost.

    ``ratios``: the classes that the answer covers, each with its ratio. If a class is compared size by size, servers
    are bought in the baseline's shares of sizes.
    """
    price, base = prices[candidate.title], prices.get(comparison.baseline)
    if not ratios or (comparison.per == "money" and base is None):
        return None
    numbers, costs = [], []
    for class_, ratio in ratios:
        strata = candidate.classes[class_].strata
        candidate_strata, baseline_strata = ([(share, names[side]) for share, *names in strata] for side in (1, 0))
        same = (
            base.typical(baseline_strata) / price.typical(candidate_strata)
            if base and comparison.per == "money"
            else 1.0
        )
        numbers.append(math.ceil(SERVERS * same / ratio - fmt.ROUNDING))
        costs.append(numbers[-1] * price.mean(candidate_strata))
    names = {"n": SERVERS, "baseline": fmt.clean(comparison.baseline)}
    sentence = message(
        "{needed} {candidate} replace {n} {baseline} and cost {cost}",
        needed="–".join(dict.fromkeys(f"{n:,}" for n in (min(numbers), max(numbers)))),
        candidate=fmt.clean(candidate.title),
        cost=spaced("–".join(dict.fromkeys(fmt.money(cost) for cost in (min(costs), max(costs)))), price.unit),
        **names,
    )
    if base is None:
        return sentence
    before = spaced(fmt.money(SERVERS * base.mean()), base.unit)
    return message("{sentence}; {n} {baseline} cost {before}", sentence=sentence, before=before, **names)


def _service_total(
    comparison: Comparison, candidate: Candidate, prices: Mapping[str, _Price], service: Service
) -> Message | None:
    """Return how many units of ``candidate`` give the service of SERVERS units of the baseline, and what they cost.

    A unit is an accelerator or a server. Return None without an exact ratio at equal service.
    """
    result = service.results.get(candidate.title)
    price, base = (
        prices[side].of_unit(service.family.sizes) if side in prices else None
        for side in (candidate.title, comparison.baseline)
    )
    if result is None or result.ratio is None or result.bound is not Bound.EXACT or price is None:
        return None
    if comparison.per == "money" and base is None:
        return None
    same = base / price if base and comparison.per == "money" else 1.0
    needed = math.ceil(SERVERS * same / result.ratio.value - fmt.ROUNDING)
    unit = prices[candidate.title].unit
    names = {
        "n": SERVERS,
        "baseline": fmt.clean(comparison.baseline),
        "unit": unit_of(service.family),
    }
    sentence = message(
        "{needed} {candidate} {unit}s serve as much as {n} {baseline} {unit}s and cost {cost}",
        needed=f"{needed:,}",
        candidate=fmt.clean(candidate.title),
        cost=spaced(fmt.money(needed * price), unit),
        **names,
    )
    if base is None:
        return sentence
    before = spaced(fmt.money(SERVERS * base), unit)
    return message("{sentence}; {n} {baseline} {unit}s cost {before}", sentence=sentence, before=before, **names)


@dataclass(frozen=True, slots=True)
class _Price:
    """The prices of one side's hosts. ``unit``: their currency and term."""

    by_host: Mapping[str, float]
    unit: str

    def mean(self, strata: Strata = ()) -> float:
        """Return the mean price of a server, weighted by the share of each stratum if there are any."""
        return _mean(self.by_host, strata)

    def of_unit(self, sizes: Mapping[str, float]) -> float:
        """Return the mean price of one unit; ``sizes`` maps hosts to their number of units, 1 if absent."""
        return fmean(price / sizes.get(host, 1.0) for host, price in self.by_host.items())

    def typical(self, strata: Strata = ()) -> float:
        """Return the geometric mean of the prices, as used for figures per money."""
        return math.exp(_mean({host: math.log(price) for host, price in self.by_host.items()}, strata))


def _mean(values: Mapping[str, float], strata: Strata) -> float:
    shares = strata or [(1.0, list(values))]
    total = sum(share for share, _ in shares)
    return sum(share * fmean(values[host] for host in hosts) for share, hosts in shares) / total


def _price(title: str, hosts: Sequence[HostInfo]) -> _Price | Message | None:
    """Return the prices of one side, None if it has none, or the reason why there is no single price."""
    prices = {h.name.removesuffix(f" ({title})"): _number(h.labels.get("price")) for h in hosts}
    known = {host: price for host, price in prices.items() if price}
    if not known:
        return None
    name = fmt.clean(title)
    if lacking := len(prices) - len(known):
        return message("{n} of {hosts} of {side} have no price", n=lacking, hosts=count(len(prices), "host"), side=name)
    units = sorted({_unit(h) for h in hosts})
    if "" in units:
        return message("prices of {side} have no currency", side=name)
    if len(units) > 1:
        return message(
            "prices of {side} have several currencies or terms ({units}); give it one price with --price, or convert a "
            "currency with --rate",
            side=name,
            units=joined(units),
        )
    return _Price(known, units[0])


def _unit(host: HostInfo) -> str:
    """Return ``USD per hour``, only the currency for a one-time price, or nothing without a currency."""
    unit, term = (fmt.clean(host.labels.get(key, "")) for key in ("currency", "term"))
    return message("{unit} per {term}", unit=unit, term=term) if unit and term else unit


def _range(hosts: Sequence[HostInfo], per: str) -> str:
    """Return the amounts of one side's hosts: a single number, or the smallest and the largest."""
    label, amount = _OF[per]
    numbers = sorted({n for h in hosts if (n := amount(h) or _number(h.labels.get(label)))})
    return "–".join(f"{n:,.10g}" for n in dict.fromkeys((*numbers[:1], *numbers[-1:])))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 < number < 1e12 else None
