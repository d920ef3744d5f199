"""Compute the cost of a fleet that does the work of some baseline servers: money, power, and the break-even price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fleetmark.planner.estimate import Estimate

HOURS_PER_YEAR = 8766.0
SERVERS = 100  # baseline servers to replace, unless the user gives a number
ROUNDING = 1e-6  # tolerance for counts of servers, so that 25.0000001 are 25
_W_PER_KW = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The conditions of a purchase.

    - ``servers``: the number of baseline servers to replace
    - ``years``: the years of service, or None
    - ``energy``: the price of 1 kWh in ``currency``, or None
    """

    servers: int = SERVERS
    years: float | None = None
    energy: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The terms of one server of a side.

    The price is for a number of hours or, if the hours are None, for a purchase. The power is in W.
    """

    price: float | None
    hours: float | None = None
    watts: float | None = None
    rack_units: float | None = None

    def yearly(self, terms: Terms) -> float | None:
        """Return the price of one year without energy.

        Return None if the price is unknown, or for a purchase without years of service.
        """
        if self.price is None:
            return None
        if self.hours is not None:
            return self.price * HOURS_PER_YEAR / self.hours
        return self.price / terms.years if terms.years else None

    def energy(self, terms: Terms) -> float:
        """Return the cost of one year's energy, or 0 if its price or the power is unknown."""
        if terms.energy is None or self.watts is None:
            return 0.0
        return self.watts / _W_PER_KW * HOURS_PER_YEAR * terms.energy

    def price_of(self, yearly: float, terms: Terms) -> float | None:
        """Return the price of an offer that costs ``yearly`` in a year without energy, for the same hours or for a
        purchase.
        """
        if self.hours is not None:
            return yearly * self.hours / HOURS_PER_YEAR
        return yearly * terms.years if terms.years else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of ``servers`` servers of a side.

    - ``total``: their price, for the hours of the offer or for a purchase
    - ``yearly``: price and energy of a year, None without years of service or hours
    - ``lifetime``: the same over the years of service
    - ``power``: in W, or None if it is unknown
    - ``rack_units``: their number, or None if it is unknown
    """

    servers: int
    total: float | None
    yearly: float | None
    lifetime: float | None
    power: float | None
    rack_units: float | None


def needed(servers: float, ratio: float) -> int:
    """Return how many candidate servers do the work of ``servers`` baseline servers at ``ratio``."""
    return math.ceil(servers / ratio - ROUNDING)


def cost(offer: Offer, servers: int, terms: Terms) -> Cost:
    """Return the cost of ``servers`` servers."""
    yearly = offer.yearly(terms)
    full = None if yearly is None else servers * (yearly + offer.energy(terms))
    return Cost(
        servers=servers,
        total=None if offer.price is None else servers * offer.price,
        yearly=full,
        lifetime=None if full is None or terms.years is None else full * terms.years,
        power=None if offer.watts is None else servers * offer.watts,
        rack_units=None if offer.rack_units is None else servers * offer.rack_units,
    )


def break_even(ratio: Estimate, baseline: Offer, candidate: Offer, terms: Terms) -> Estimate | None:
    """Return the candidate's price at which the same work costs the same on both sides, with the ratio's interval.

    The price includes energy if the energy price and the power of both sides are known. Return None if energy alone
    costs more.
    """
    ends = [
        None if r is None else _break_even(r, baseline, candidate, terms) for r in (ratio.value, ratio.lo, ratio.hi)
    ]
    value, lo, hi = ends
    if value is None or value <= 0:
        return None
    return Estimate(value, None if lo is None else max(0.0, lo), hi)


def _break_even(ratio: float, baseline: Offer, candidate: Offer, terms: Terms) -> float | None:
    yearly = baseline.yearly(terms)
    if yearly is None:
        return None if baseline.price is None else baseline.price * ratio
    return candidate.price_of((yearly + baseline.energy(terms)) * ratio - candidate.energy(terms), terms)
