"""What figures are shared out by, side by side: prices with their date, cores, sockets, GPUs, watts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fleetmark.base.text import Message, joined, message
from fleetmark.record.results import HostInfo
from planner.comparison import Comparison
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
    """The currency of the prices; several of them with slashes."""
    return "/".join(sorted({fmt.clean(h.labels["currency"]) for h in hosts if h.labels.get("currency")}))


def bought(comparison: Comparison, hosts: Sequence[HostInfo]) -> str:
    """``Price of a server: icelake 9,000 EUR, genoa 15,500 EUR; prices of 2026-11-01``; empty for whole servers."""
    if comparison.per not in _OF:
        return ""
    titles = [comparison.baseline, *(c.title for c in comparison.candidates)]
    amounts = [(t, _range([h for h in hosts if h.generation == t], comparison.per)) for t in titles]
    unit = currency(hosts) if comparison.per == "money" else ""
    known = [spaced(fmt.clean(t), f"{a} {unit}".strip()) for t, a in amounts[:MOST] if a]
    if len(titles) > MOST:
        known.append(message("and {n} more", n=len(titles) - MOST))
    listed = joined(known)
    if not listed:
        return message("Power as measured during the runs") if comparison.per == "watt" else ""
    if comparison.per != "money":
        return Message(_LISTED[comparison.per].template, {"amounts": listed})
    dates = sorted({fmt.clean(h.labels[k]) for h in hosts for k in ("price_date", "term") if h.labels.get(k)})
    if not dates:
        return message("Price of a server: {amounts}; the date of the prices is not known", amounts=listed)
    return message("Price of a server: {amounts}; {dates}", amounts=listed, dates=joined(dates))


def _range(hosts: Sequence[HostInfo], per: str) -> str:
    """The amounts of one side's hosts: one number, or the smallest and the largest."""
    label, of = _OF[per]
    numbers = sorted({n for h in hosts if (n := of(h) or _number(h.labels.get(label)))})
    return "–".join(f"{n:,.10g}" for n in dict.fromkeys((*numbers[:1], *numbers[-1:])))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 < number < 1e12 else None
