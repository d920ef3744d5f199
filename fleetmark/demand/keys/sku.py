"""Define the keys of a server model and of its terms of sale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, model_validator

from fleetmark.demand.amounts import (
    ByPeriod,
    Integer,
    Money,
    Number,
    Price,
    Quantity,
    Rate,
    Resource,
    Span,
    Text,
    Watts,
    Written,
    Yearly,
    integer,
    share,
    written_entries,
)
from fleetmark.demand.keys.part import Gigabytes, Part
from fleetmark.demand.keys.worth import Measured, Worth

_DIGITS = 9
_MOST_SLIP = 24


class Power(Part):
    """The power of a server.

    ``provisioned`` is the power that counts against a site's limit, measured or set; the default is the peak.
    """

    idle: Watts
    peak: Watts
    provisioned: Watts | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Power:
        if self.peak < self.idle:
            raise ValueError(f"peak ({self.peak:g} W) is below idle ({self.idle:g} W)")
        return self


class Has(Part):
    """The amount of a resource in one server: its ``value``, or a stored rate."""

    BARE: ClassVar = Written

    value: Resource | None = None
    measured: Measured | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return value if isinstance(value, Mapping) else {"value": value}

    @model_validator(mode="after")
    def _one(self) -> Has:
        if (self.value is None) == (self.measured is None):
            raise ValueError("give one of value and measured")
        return self


def _counts(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entries. Raise ValueError if a name is not a whole number from 1."""
    wrong = [name for name in entries if not (name.isdecimal() and len(name) <= _DIGITS and int(name))]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not a count of 1 or more")
    return entries


def _late(shares: Mapping[str, float]) -> Mapping[str, float]:
    """Return the share of orders by the number of periods they are late. Raise ValueError for invalid shares."""
    _counts(shares)
    if sum(shares.values()) > 1 + 1e-9:
        raise ValueError(f"the shares come to {sum(shares.values()):.0%}, more than all orders")
    if any(int(n) > _MOST_SLIP for n in shares):
        raise ValueError(f"at most {_MOST_SLIP} periods: a later order is none")
    return shares


class Sku(Part):
    """A server model that can be bought or is in place."""

    price: ByPeriod[Price]
    power: Power
    rack_units: Number
    gpus: Integer = 0
    gpu_memory: Gigabytes = 0.0
    ports: Integer = 1
    lead: Span = (0.0, "period")
    support: Money = Quantity(0.0)
    space: Money = Quantity(0.0)
    migration: Money = Quantity(0.0)
    minimum_order: Integer = 0
    age_limit: Span | None = None
    embodied: Number = 0.0
    vendor: Text | None = None
    lot: Annotated[int, integer(1)] = 1
    racks: Number = 0.0
    cooling: Literal["air", "liquid"] = "air"
    residual: Annotated[float, share(0, 1)] = 0.0
    price_breaks: Annotated[Mapping[str, Money], written_entries, AfterValidator(_counts)] = {}
    price_change: Yearly = 0.0
    has: Annotated[Mapping[str, Has], written_entries] = {}
    slips: Annotated[Mapping[str, Annotated[float, share(0, 1)]], written_entries, AfterValidator(_late)] = {}
    rent: Rate = Quantity(0.0)
    term: Span = (0.0, "period")
    failure_rate: Annotated[float, share(0, 10)] = 0.0
    repair: Span = (0.0, "period")
    worth: Mapping[str, Worth]

    @model_validator(mode="after")
    def _terms(self) -> Sku:
        if self.price_breaks and not self.is_sold:
            raise ValueError("price_breaks: it is not sold")
        if self.failure_rate and not self.repair[0]:
            raise ValueError("failure_rate: give repair, the time from a failure to the server's return (2 weeks)")
        if self.price_change and isinstance(self.price, list | dict):
            raise ValueError("price_change: the price is already given by period; remove price_change")
        return self

    @property
    def is_sold(self) -> bool:
        """Return whether the SKU has a price in any period."""
        if isinstance(self.price, list | dict):
            return any(self.price.values() if isinstance(self.price, dict) else self.price)
        return self.price is not None
