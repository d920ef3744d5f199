"""Apply prices from the command line to the sides of a comparison, in place of recorded prices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fleetmark.base.errors import FleetmarkError
from fleetmark.record.select import Machine

_PRICE = re.compile(r"\s*(\d[\d,]*(?:\.\d+)?)\s*([A-Z]{3})(?:\s*(?:/|per\s)\s*([\w. ]{1,40}?))?\s*")
_RATE = re.compile(r"\s*([A-Z]{3})\s*=\s*(\d+(?:\.\d+)?)\s*([A-Z]{3})\s+(?:on\s+)?(\d{4}-\d{2}-\d{2})\s*")
_LABELS = ("price", "currency", "price_date", "term")


def priced(
    chosen: Mapping[str, Sequence[Machine]], prices: Sequence[str], selectors: Mapping[str, str]
) -> dict[str, Sequence[Machine]]:
    """Return each side's machines with the labels that ``prices`` (``NAME=4.20 USD/hour``) give them. NAME is a side's
    title or its selector (``selectors``: by title). Raise FleetmarkError if a text is not a price or names no side.
    """
    result: dict[str, Sequence[Machine]] = dict(chosen)
    for text in prices:
        name, _, amount = text.rpartition("=")
        match = _PRICE.fullmatch(amount)
        value = float(match[1].replace(",", "")) if match else 0.0
        if match is None or not 0 < value < math.inf:
            raise FleetmarkError(f"--price {text}: write NAME=15500 EUR, or NAME=4.20 USD/hour")
        title = next((t for t in chosen if name.strip() in (t, selectors.get(t))), None)
        if title is None:
            raise FleetmarkError(f"--price {text}: no side is called {name.strip()}; there are {', '.join(chosen)}")
        labels = {"price": f"{value:g}" if value < 1e6 else f"{value:.0f}", "currency": match[2]}
        labels |= {"term": match[3].strip()} if match[3] else {}
        result[title] = [_with(machine, labels) for machine in chosen[title]]
    return result


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
