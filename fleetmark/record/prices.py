"""Read prices, power and terms of a purchase from the command line; they replace recorded ones."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.cost import Terms
from fleetmark.record.select import Machine

_PRICE = re.compile(
    r"\s*(\d[\d,]*(?:\.\d+)?)\s*([A-Z]{3})(?:\s*(?:/|per\s)\s*([\w. ]{1,40}?))?(?:\s+(?:on\s+)?(\d{4}-\d{2}-\d{2}))?\s*"
)
_RATE = re.compile(r"\s*([A-Z]{3})\s*=\s*(\d+(?:\.\d+)?)\s*([A-Z]{3})\s+(?:on\s+)?(\d{4}-\d{2}-\d{2})\s*")
_WATTS = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*W?\s*")
_TERM = re.compile(r"\s*(\d{1,4}(?:\.\d{1,4})?)\s*(y|years?|m|months?)\s*")
_ENERGY = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([A-Z]{3})(?:\s*(?:/|per\s)\s*kWh)\s*")
_MOST_SERVERS = 10_000_000
_MOST_YEARS = 100
_LABELS = ("price", "currency", "price_date", "term")


def priced(
    chosen: Mapping[str, Sequence[Machine]], prices: Sequence[str], selectors: Mapping[str, str]
) -> dict[str, Sequence[Machine]]:
    """Return each side's machines with price labels from ``prices`` (``NAME=4.20 USD/hour``).

    NAME is a side's title or its selector (``selectors``: by title). Raise FleetmarkError for an invalid price or an
    unknown side.
    """
    result: dict[str, Sequence[Machine]] = dict(chosen)
    for text in prices:
        name, _, amount = text.rpartition("=")
        match = _PRICE.fullmatch(amount)
        value = float(match[1].replace(",", "")) if match else 0.0
        if match is None or not 0 < value < math.inf:
            raise FleetmarkError(
                f"--price {text}: write NAME=15500 EUR, NAME=4.20 USD/hour, or NAME=15500 EUR 2026-11-01"
            )
        title = next((t for t in chosen if name.strip() in (t, selectors.get(t))), None)
        if title is None:
            raise FleetmarkError(f"--price {text}: no side is called {name.strip()}; there are {', '.join(chosen)}")
        labels = {"price": f"{value:g}" if value < 1e6 else f"{value:.0f}", "currency": match[2]}
        labels |= {"term": match[3].strip()} if match[3] else {}
        labels |= {"price_date": match[4]} if match[4] else {}
        result[title] = [_with(machine, labels) for machine in chosen[title]]
    return result


def powered(
    chosen: Mapping[str, Sequence[Machine]], watts: Sequence[str], selectors: Mapping[str, str]
) -> dict[str, Sequence[Machine]]:
    """Return each side's machines with the label ``watts`` from the options ``watts`` (``NAME=650``).

    NAME is as in ``priced``. Raise FleetmarkError for an invalid power or an unknown side.
    """
    result: dict[str, Sequence[Machine]] = dict(chosen)
    for text in watts:
        name, _, amount = text.rpartition("=")
        match = _WATTS.fullmatch(amount)
        if match is None or not float(match[1]) > 0:
            raise FleetmarkError(f"--watts {text}: not a power; write NAME=650, in W per server")
        title = next((t for t in chosen if name.strip() in (t, selectors.get(t))), None)
        if title is None:
            raise FleetmarkError(f"--watts {text}: no side is called {name.strip()}; there are {', '.join(chosen)}")
        result[title] = [replace(m, labels={**m.labels, "watts": match[1]}) for m in chosen[title]]
    return result


def terms(servers: int, term: str | None, energy: str | None) -> Terms:
    """Return the conditions of a purchase: servers to replace, years of service (``4y``), and the price of energy
    (``0.25 EUR/kWh``).

    Raise FleetmarkError for an invalid text.
    """
    if not 0 < servers <= _MOST_SERVERS:
        raise FleetmarkError(f"--replace {servers}: not a number of servers; use 1 to {_MOST_SERVERS:,}")
    years = None
    if term is not None:
        match = _TERM.fullmatch(term)
        years = float(match[1]) / (12 if match[2].startswith("m") else 1) if match else 0.0
        if not 0 < years <= _MOST_YEARS:
            raise FleetmarkError(f"--term {term}: not a time of service; write 4y, 4 years or 36 months")
    if energy is None:
        return Terms(servers=servers, years=years)
    match = _ENERGY.fullmatch(energy)
    if match is None:
        raise FleetmarkError(f"--energy {energy}: not a price of energy; write 0.25 EUR/kWh")
    if years is None:
        raise FleetmarkError(
            f"--energy {energy}: energy is a cost per year; add the time of service, such as --term 4y"
        )
    return Terms(servers=servers, years=years, energy=float(match[1]), currency=match[2])


def check_energy(chosen: Mapping[str, Sequence[Machine]], terms: Terms) -> None:
    """Raise FleetmarkError if energy has another currency than the prices."""
    if terms.energy is None:
        return
    for title, machines in chosen.items():
        others = sorted({c for m in machines if (c := m.labels.get("currency")) and m.labels.get("price")})
        if others and others != [terms.currency]:
            raise FleetmarkError(
                f"--energy in {terms.currency}: the prices of {title} are in {', '.join(others)}; give both in one "
                "currency, or convert the prices with --rate"
            )


def _with(machine: Machine, labels: Mapping[str, str]) -> Machine:
    kept = {k: v for k, v in machine.labels.items() if k not in _LABELS}
    return replace(machine, labels={**kept, **labels})


def exchanged(chosen: Mapping[str, Sequence[Machine]], rates: Sequence[str]) -> dict[str, Sequence[Machine]]:
    """Return each side's machines with prices converted by the exchange rates (``USD=0.92 EUR 2026-11-01``).

    Raise FleetmarkError if a rate is invalid or has no date.
    """
    result: dict[str, Sequence[Machine]] = dict(chosen)
    for text in rates:
        match = _RATE.fullmatch(text)
        if match is None or not 0 < float(match[2]) < math.inf or match[1] == match[3]:
            raise FleetmarkError(f"--rate {text}: not an exchange rate with a date; write USD=0.92 EUR 2026-11-01")
        result = {title: [_exchanged(m, match) for m in machines] for title, machines in result.items()}
    return result


def _exchanged(machine: Machine, rate: re.Match[str]) -> Machine:
    labels = machine.labels
    if labels.get("currency") != rate[1]:
        return machine
    try:
        price = float(labels.get("price", ""))
    except ValueError:
        return machine
    description = f"1 {rate[1]} = {rate[2]} {rate[3]} on {rate[4]}"
    return replace(
        machine,
        labels={**labels, "price": f"{price * float(rate[2]):.12g}", "currency": rate[3], "exchange_rate": description},
    )


def check_alike(chosen: Mapping[str, Sequence[Machine]]) -> None:
    """Raise FleetmarkError if prices have several currencies or billing terms, which cannot be compared."""
    kinds = {
        title: sorted({_kind(m) for m in machines if m.labels.get("price") and m.labels.get("currency")})
        for title, machines in chosen.items()
    }
    if len({kind for kinds_of_side in kinds.values() for kind in kinds_of_side}) > 1:
        shown = "; ".join(
            f"{title} {', '.join(kinds_of_side)}" for title, kinds_of_side in kinds.items() if kinds_of_side
        )
        raise FleetmarkError(
            f"--per money: prices have several currencies or terms ({shown}); give all sides one "
            "currency and one term with --price, or convert a currency with --rate 'USD=0.92 EUR 2026-11-01'"
        )


def _kind(machine: Machine) -> str:
    """Return ``USD per hour``, or only the currency for a one-time price."""
    term = machine.labels.get("term", "")
    return f"{machine.labels['currency']} per {term}" if term else machine.labels["currency"]
