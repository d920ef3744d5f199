"""Define the keys of a server model and of its terms of sale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, create_model, model_validator

from fleetmark.demand.amounts import (
    Money,
    Number,
    Prices,
    Quantity,
    Rate,
    Resource,
    Span,
    Text,
    Watts,
    Yearly,
    integer,
    share,
    written_entries,
)
from fleetmark.demand.keys.part import Gigabytes, Part, Valued
from fleetmark.demand.keys.worth import Measured, Worth
from fleetmark.planner.capacity.sku import AIR, LIQUID, Declared, Field, Kind, declared_fields
from fleetmark.planner.capacity.sku import Sku as PlannedSku

_DIGITS = 9
_MOST_SLIP = 24


class Has(Valued):
    """The amount of a resource in one server: its ``value``, or a stored rate."""

    value: Resource | None = None
    measured: Measured | None = None

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


def _bounded(declared: Declared) -> Any:
    """Return the type of a count or a share between the bounds of its declaration."""
    if declared.kind is Kind.COUNT:
        return Annotated[int, integer(declared.minimum)]
    return Annotated[float, share(declared.minimum, 1 if declared.maximum is None else declared.maximum)]


_TYPES: Mapping[Kind, Any] = {
    Kind.NUMBER: Number,
    Kind.CHANGE: Yearly,
    Kind.WATTS: Watts,
    Kind.GIGABYTES: Gigabytes,
    Kind.MONEY: Money,
    Kind.RATE: Rate,
    Kind.PERIODS: Span,
    Kind.AGE: Span,
    Kind.TIME: Span,
    Kind.TEXT: Text,
    Kind.PRICE: Prices,
    Kind.BREAKS: Annotated[Mapping[str, Money], written_entries, AfterValidator(_counts)],
    Kind.SLIPS: Annotated[Mapping[str, Annotated[float, share(0, 1)]], written_entries, AfterValidator(_late)],
    Kind.COOLING: Literal["air", "liquid"],
    Kind.WORTH: Mapping[str, Worth],
    Kind.RESOURCES: Annotated[Mapping[str, Has], written_entries],
}
_DEFAULTS: Mapping[Kind, Callable[[Any], Any]] = {
    Kind.MONEY: Quantity,
    Kind.RATE: Quantity,
    Kind.PERIODS: lambda count: (float(count), "period"),
    Kind.TIME: lambda count: (float(count), "period"),
    Kind.TEXT: lambda text: text or None,
    Kind.BREAKS: dict,
    Kind.SLIPS: dict,
    Kind.COOLING: lambda is_liquid: LIQUID if is_liquid else AIR,
}


def _key(field: Field) -> tuple[Any, Any]:
    """Return the type and the default of a field's key."""
    kind = field.declared.kind
    written = _TYPES[kind] if kind in _TYPES else _bounded(field.declared)
    if field.default is MISSING:
        return written, ...
    default = _DEFAULTS[kind](field.default) if kind in _DEFAULTS else field.default
    return (written if default is not None else written | None), default


def keys_of(owner: type, section: str = "") -> dict[str, Any]:
    """Return the keys of a dataclass with declared fields, in the form of ``pydantic.create_model``.

    ``section``: return the keys below this one.
    """
    parts = [(field.key.rpartition("."), field) for field in declared_fields(owner)]
    return {name: _key(field) for (above, _, name), field in parts if above == section}


_PowerKeys: Any = create_model("_PowerKeys", __base__=Part, **keys_of(PlannedSku, "power"))


class Power(_PowerKeys):  # type: ignore[misc]
    """The power of a server.

    ``provisioned`` is the power that counts against a site's limit, measured or set; the default is the peak.
    """

    @model_validator(mode="after")
    def _ordered(self) -> Power:
        if self.peak < self.idle:
            raise ValueError(f"peak ({self.peak:g} W) is below idle ({self.idle:g} W)")
        return self


_SkuKeys: Any = create_model("_SkuKeys", __base__=Part, power=(Power, ...), **keys_of(PlannedSku))


class Sku(_SkuKeys):  # type: ignore[misc]
    """A server model that can be bought or is in place."""

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
