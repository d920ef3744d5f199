"""Derive a unit's price and power from the inventory: labels of hosts, divided among their devices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fleetmark.record.results import HostInfo
from fleetmark.record.sides.amounts import positive

_HOURS: Mapping[str, float] = {"h": 1, "hour": 1, "d": 24, "day": 24, "month": 730.5, "y": 8766, "year": 8766}
_TERM = re.compile(r"(?:per\s+|/)?(\d{1,6}(?:\.\d{1,6})?)?\s*([a-z]+?)s?")
_WORDS = {"hourly": "hour", "daily": "day", "monthly": "month", "yearly": "year", "annual": "year"}


def hours(term: str) -> float | None:
    """Return the hours that a price covers: ``hour``, ``month``, ``5 years``; None if ``term`` is not a time."""
    match = _TERM.fullmatch(_WORDS.get(term.strip().lower(), term.strip().lower()))
    unit = _HOURS.get(match[2]) if match else None
    amount = float(match[1] or 1) if match else 0.0
    return amount * unit if unit and amount > 0 else None


def price(hosts: Sequence[HostInfo], sizes: Mapping[str, float]) -> tuple[float, str] | None:
    """Return the mean hourly price of one unit with its currency.

    The result is None unless all ``hosts`` have prices in one currency. ``sizes``: maps a host to its number of units;
    one if absent.
    """
    currencies = {h.labels.get("currency", "") for h in hosts}
    each = [_hourly(h, sizes.get(h.name, 1.0)) for h in hosts]
    known = [p for p in each if p is not None]
    if len(currencies) != 1 or "" in currencies or len(known) != len(each):
        return None
    return sum(known) / len(known), currencies.pop()


def _hourly(host: HostInfo, size: float) -> float | None:
    amount, time = positive(host.labels.get("price")), hours(host.labels.get("term", ""))
    return amount / time / size if amount and time else None


def provisioned(hosts: Sequence[HostInfo], sizes: Mapping[str, float]) -> dict[str, float]:
    """Return the provisioned power of one unit in W by host, from the label ``provisioned_w``."""
    watts = {h.name: positive(h.labels.get("provisioned_w")) for h in hosts}
    return {name: w / sizes.get(name, 1.0) for name, w in watts.items() if w}
