"""Work out what a fleet costs that does the work of some baseline servers: money, power, and the break-even price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fleetmark.planner.estimate import Estimate

HOURS_PER_YEAR = 8766.0
SERVERS = 100  # baseline servers to replace, unless the user says how many
ROUNDING = 1e-6  # tolerance for counts of servers, so that 25.0000001 are 25
_W_PER_KW = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Hold the conditions of a purchase.

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
    """Hold one server of a side: its price, for some hours or for a purchase (None), its power in W and rack units."""

    price: float | None
    hours: float | None = None
    watts: float | None = None
    rack_units: float | None = None

    def yearly(self, terms: Terms) -> float | None:
        """Return the price of one year without energy; None if it is not known or for a purchase without years."""
        if self.price is None:
            return None
        if self.hours is not None:
            return self.price * HOURS_PER_YEAR / self.hours
        return self.price / terms.years if terms.years else None

    def energy(self, terms: Terms) -> float:
        """Return the cost of one year's energy; 0 if its price or the power is not known."""
        if terms.energy is None or self.watts is None:
            return 0.0
        return self.watts / _W_PER_KW * HOURS_PER_YEAR * terms.energy

    def price_of(self, yearly: float, terms: Terms) -> float | None:
        """Return the price, for the same hours or for a purchase, that costs ``yearly`` in a year without energy."""
        if self.hours is not None:
            return yearly * self.hours / HOURS_PER_YEAR
        return yearly * terms.years if terms.years else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Hold what ``servers`` servers of a side cost.

    - ``total``: their price, for the hours of the offer or for a purchase
    - ``yearly``: price and energy of a year, None without years of service or hours
    - ``lifetime``: the same over the years of service
    - ``power``: in W, None if it is not known
    - ``rack_units``: None if they are not known
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
    """Return what ``servers`` servers cost."""
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

    It includes energy if its price and the power of both sides are known. None if energy alone costs more.
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
