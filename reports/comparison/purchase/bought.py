"""Describe the amounts that figures of a side are divided by: prices with date, cores, sockets, GPUs or watts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.base.text import Message, joined, message
from fleetmark.base.words import word
from fleetmark.planner.comparison import Comparison
from fleetmark.record.results import HostInfo
from fleetmark.record.sides.amounts import positive
from fleetmark.reports.comparison.titles import spaced
from fleetmark.reports.kit import format as fmt

MOST = 6  # maximum number of sides named
MOST_DECIMALS = 6  # of a price that someone set; more are those of a mean
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


@dataclass(frozen=True, slots=True)
class Pieces:
    """The parts of servers that figures count, such as accelerators: their ``name``, and the number in each host."""

    name: str = ""
    by_host: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_single(self) -> bool:
        """Return whether every host is a single piece, so that its price is that of a piece."""
        return bool(self.by_host) and set(self.by_host.values()) == {1.0}

    def number(self, hosts: Sequence[HostInfo]) -> Message | None:
        """Return the number of pieces of a server, such as ``8 accelerators``, if all ``hosts`` have equally many."""
        numbers = {self.by_host[host.name] for host in hosts if host.name in self.by_host}
        if len(numbers) != 1:
            return None
        number = numbers.pop()
        if number == 1:
            return message("{n} {piece}", n=1, piece=self.name)
        return message("{n} {piece}s", n=f"{number:g}", piece=self.name)


_SERVERS = Pieces()


def bought(comparison: Comparison, hosts: Sequence[HostInfo], pieces: Pieces = _SERVERS) -> str:
    """Return the amounts that figures are divided by, and all known prices of sides.

    For example: ``Price of a server: icelake 9,000 EUR, genoa 15,500 EUR; prices of 2026-11-01``. ``pieces``: what the
    figures count, if not servers.
    """
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
    prices = price_list(titles, hosts, pieces)
    if comparison.per in ("server", "money"):
        return prices
    return joined([_shared(titles, hosts, comparison.per), prices], "; ")


def price_list(titles: Sequence[str], hosts: Sequence[HostInfo], pieces: Pieces = _SERVERS) -> str:
    """Return the price of a server, or of a single piece, on each side, with its date; nothing without prices."""
    return _shared(titles, hosts, "money", pieces)


def _shared(titles: Sequence[str], hosts: Sequence[HostInfo], per: str, pieces: Pieces = _SERVERS) -> str:
    of_side = {t: [h for h in hosts if h.generation == t] for t in titles}
    amounts = [(t, _range(of_side[t], per)) for t in titles]
    units = {
        t: sorted({unit_of_price(h) for h in hosts if h.generation == t} - {""}) if per == "money" else []
        for t in titles
    }
    known = [
        _with_pieces(spaced(fmt.clean(t), a, joined(units[t], "/")), pieces, of_side[t]) for t, a in amounts[:MOST] if a
    ]
    if known and len(titles) > MOST:
        known.append(message("and {n} more", n=len(titles) - MOST))
    listed = joined(known)
    if not listed:
        return message("Power as measured during the runs") if per == "watt" else ""
    if per != "money":
        return Message(_LISTED[per].template, {"amounts": listed})
    labels = ("price_date", "exchange_rate")
    dates = sorted({fmt.clean(h.labels[k]) for h in hosts for k in labels if h.labels.get(k)})
    listed = joined([listed, joined(dates) or message("the date of the prices is not known")], "; ")
    if pieces.is_single:
        return message("Price of one {piece}: {amounts}", piece=pieces.name, amounts=listed)
    return message("Price of a server: {amounts}", amounts=listed)


def _with_pieces(amount: str, pieces: Pieces, hosts: Sequence[HostInfo]) -> str:
    """Return a price with the number of pieces that it buys."""
    number = None if pieces.is_single else pieces.number(hosts)
    return message("{amount} ({pieces})", amount=amount, pieces=number) if number else amount


def years_of(number: float) -> Message:
    """Return a number of years with its noun: ``1 year``, ``4 years``, ``1.5 years``."""
    return message("{n} year", n=1) if number == 1 else message("{n} years", n=f"{number:g}")


def unit_of_price(host: HostInfo) -> str:
    """Return ``USD per hour``, only the currency for a one-time price, or nothing without a currency."""
    unit, term = (fmt.clean(host.labels.get(key, "")) for key in ("currency", "term"))
    return message("{unit} per {term}", unit=unit, term=word(term)) if unit and term else unit


def _range(hosts: Sequence[HostInfo], per: str) -> str:
    """Return the amounts of one side's hosts: a single number, or the smallest and the largest."""
    label, amount = _OF[per]
    numbers = sorted({n for h in hosts if (n := amount(h) or positive(h.labels.get(label)))})
    ends = dict.fromkeys((*numbers[:1], *numbers[-1:]))
    return "–".join(exact_price(n) if per == "money" else f"{n:,.10g}" for n in ends)


def exact_price(number: float) -> str:
    """Return a price with all its digits, at least two decimals if it has any: ``2.90``. Means are rounded."""
    text = f"{number:,.10g}"
    decimals = len(text.partition(".")[2])
    if decimals > MOST_DECIMALS:
        return fmt.price(number)
    return f"{number:,.2f}" if decimals == 1 else text
