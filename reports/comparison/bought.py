"""What figures are shared out by, side by side: prices with their date, cores, sockets, GPUs, watts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fleetmark.base.text import Message, joined, message
from fleetmark.record.results import HostInfo
from planner.comparison import Comparison
from reports.comparison.cell import SERVERS, Line
from reports.comparison.titles import spaced
from reports.kit import format as fmt

MOST = 6  # sides named
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
    units = {t: currency([h for h in hosts if h.generation == t]) if per == "money" else "" for t in titles}
    known = [spaced(fmt.clean(t), f"{a} {units[t]}".strip()) for t, a in amounts[:MOST] if a]
    if len(titles) > MOST:
        known.append(message("and {n} more", n=len(titles) - MOST))
    listed = joined(known)
    if not listed:
        return message("Power as measured during the runs") if per == "watt" else ""
    if per != "money":
        return Message(_LISTED[per].template, {"amounts": listed})
    labels = ("price_date", "term", "exchange_rate")
    dates = sorted({fmt.clean(h.labels[k]) for h in hosts for k in labels if h.labels.get(k)})
    if not dates:
        return message("Price of a server: {amounts}; the date of the prices is not known", amounts=listed)
    return message("Price of a server: {amounts}; {dates}", amounts=listed, dates=joined(dates))


def totals(comparison: Comparison, hosts: Sequence[HostInfo], lead: Sequence[Line]) -> tuple[str, ...]:
    """Return, for each candidate, how many servers replace SERVERS of the baseline and what they cost.

    For example: ``34 genoa replace 100 icelake and cost 646,000 EUR; 100 icelake cost 900,000 EUR``. ``lead`` lists the
    classes that the answer covers. The result is empty if a side has hosts without prices, or if currencies or terms
    differ.
    """
    if comparison.per not in ("server", "money"):
        return ()
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
    prices = {t: _price([h for h in hosts if h.generation == t]) for t in titles}
    kinds = {(p.currency, p.term) for p in prices.values() if p}
    if len(kinds) != 1:
        return ()
    ((unit, term),) = kinds
    base = prices[comparison.baseline]
    sentences = []
    for k, candidate in enumerate(titles[1:]):
        price = prices[candidate]
        if price is None or (comparison.per == "money" and base is None):
            continue
        same = base.typical / price.typical if base and comparison.per == "money" else 1.0
        ratios = [e.value / same for line in lead if not line.service and (e := line.cells[k].estimate)]
        if not ratios:
            continue
        fewest, most = (math.ceil(SERVERS / r - fmt.ROUNDING) for r in (max(ratios), min(ratios)))
        needed = [f"{n:,}" for n in dict.fromkeys((fewest, most))]
        cost = [fmt.money(n * price.mean) for n in dict.fromkeys((fewest, most))]
        values = {
            "n": SERVERS,
            "baseline": fmt.clean(comparison.baseline),
            "needed": "–".join(needed),
            "candidate": fmt.clean(candidate),
            "cost": f"{'–'.join(cost)} {fmt.clean(unit)}",
            "term": fmt.clean(term),
        }
        sentence = message("{needed} {candidate} replace {n} {baseline} and cost {cost}", **values)
        if term:
            sentence = message("{needed} {candidate} replace {n} {baseline} and cost {cost} per {term}", **values)
        if base:
            before = f"{fmt.money(SERVERS * base.mean)} {fmt.clean(unit)}"
            sentence = message("{sentence}; {n} {baseline} cost {before}", sentence=sentence, before=before, **values)
        sentences.append(sentence)
    return tuple(sentences[:MOST])


@dataclass(frozen=True, slots=True)
class _Price:
    """Hold the price of a server of one side; ``typical`` is the geometric mean, as used for figures per money."""

    mean: float
    typical: float
    currency: str
    term: str


def _price(hosts: Sequence[HostInfo]) -> _Price | None:
    """Return the price of one side, or None unless all hosts have one in the same currency and for the same term."""
    numbers = [_number(h.labels.get("price")) for h in hosts]
    known = [n for n in numbers if n]
    kinds = {(h.labels.get("currency", ""), h.labels.get("term", "")) for h in hosts}
    if not known or len(known) < len(numbers) or len(kinds) != 1:
        return None
    ((unit, term),) = kinds
    if not unit:
        return None
    typical = math.exp(sum(map(math.log, known)) / len(known))
    return _Price(sum(known) / len(known), typical, unit, term)


def _range(hosts: Sequence[HostInfo], per: str) -> str:
    """Return the amounts of one side's hosts: a single number, or the smallest and the largest."""
    label, of = _OF[per]
    numbers = sorted({n for h in hosts if (n := of(h) or _number(h.labels.get(label)))})
    return "–".join(f"{n:,.10g}" for n in dict.fromkeys((*numbers[:1], *numbers[-1:])))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 < number < 1e12 else None
