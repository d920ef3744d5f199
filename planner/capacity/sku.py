"""Define a SKU: the terms on which a server is sold, and how much of each workload's demand it serves.

The fields of a SKU are declared here and nowhere else. The keys of input files, their JSON Schema, the heads of CSV
sheets and the columns of workbooks all follow from the ``Declared`` of each field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from enum import Enum, auto
from functools import cache
from typing import Annotated, Any, get_type_hints

from fleetmark.base.text import Message, message
from fleetmark.planner.estimate import Estimate
from fleetmark.planner.review.origin import Origin

AIR, LIQUID = COOLING = ("air", "liquid")
MONEY, YEARLY = "money", "money a year"  # units that stand for the currency of the question


class Kind(Enum):
    """The kind of a field: how it is written, and how its figure is derived from the written one."""

    NUMBER = auto()
    COUNT = auto()
    SHARE = auto()
    CHANGE = auto()  # relative, per year
    WATTS = auto()
    GIGABYTES = auto()
    MONEY = auto()
    RATE = auto()  # money per time
    PERIODS = auto()  # a duration, rounded up to periods
    AGE = auto()  # a duration, rounded down to periods
    TIME = auto()  # a duration in fractions of periods
    TEXT = auto()
    PRICE = auto()  # by period
    BREAKS = auto()  # prices by count
    SLIPS = auto()  # shares by number of periods
    COOLING = auto()
    WORTH = auto()
    RESOURCES = auto()


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration of a field: its ``kind``, and the ``title`` and ``unit`` of its column in a workbook.

    - ``hint``: a valid value in words, if it differs from the usual one of its kind
    - ``empty``: the meaning of an empty cell; None if a value is needed
    - ``minimum``, ``maximum``: the bounds in files and workbooks
    - ``key``: the key in files, with a dot for nested keys; empty for the name of the field

    A field without a title has no column: it is in a table of its own.
    """

    kind: Kind
    title: Message | None = None
    unit: Message | str = ""
    _: KW_ONLY
    hint: Message | None = None
    empty: Message | str | None = None
    minimum: int = 0
    maximum: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A declared field of a class: its ``name``, its ``key`` in files, and its ``default``.

    ``default`` is ``dataclasses.MISSING`` if a value is needed.
    """

    name: str
    key: str
    default: Any
    declared: Declared

    @property
    def column(self) -> str:
        """Return the name of its column in a workbook: its key, or its own name if the key is nested."""
        return self.name if "." in self.key else self.key


@cache
def declared_fields(owner: type) -> tuple[Field, ...]:
    """Return the fields of a dataclass that have a declaration, in their order."""
    hints = get_type_hints(owner, include_extras=True)
    parts = ((f, part) for f in fields(owner) for part in getattr(hints[f.name], "__metadata__", ()))
    return tuple(
        Field(f.name, part.key or f.name, f.default if f.default_factory is MISSING else f.default_factory(), part)
        for f, part in parts
        if isinstance(part, Declared)
    )


@dataclass(frozen=True, slots=True)
class Worth:
    """Hold how much of a workload's demand one server of a SKU serves at full use, in the workload's unit.

    - ``se``: the standard error of its natural logarithm
    - ``df``: the degrees of freedom of that error; infinite if the value is not an estimate
    - ``source``: its origin in words; ``origin``: how it was measured, or None for a given figure
    - ``hosts``: the measured hosts, if known; worths of a SKU with the same hosts share one error
    - ``utilisation``: the maximum for these servers and this workload; None for the workload's own. ``reason`` gives
      the origin of the limit
    - ``promised``: the value before measurements of deliveries changed it; 0 if it is unchanged
    """

    value: float
    se: float = 0.0
    df: float = math.inf
    source: str = "given"
    _: KW_ONLY
    utilisation: float | None = None
    reason: str = ""
    hosts: str = ""
    origin: Origin | None = None
    promised: float = 0.0

    @property
    def estimate(self) -> Estimate:
        """Return the value with its 95% interval, exp(ln value ± t se)."""
        return Estimate.of_error(self.value, self.se, self.df)


@dataclass(frozen=True, slots=True)
class Sku:
    """A server model that can be bought or is in place.

    - ``worth``: the Worth by workload; other workloads cannot run on it
    - ``price``: of one server in the first period in which it is sold; None if it is no longer sold
    - ``prices``: its price in each period, None if it is not sold then; empty if ``price`` applies to all periods
    - ``support``, ``space``: money per server and year
    - ``lead``: periods from order to use
    - ``age_limit``: maximum periods of service, or None. A server has age 0 in the period of its arrival, and is gone
      from the period in which its age reaches the limit
    - ``minimum_order``: the smallest order for one site in one period
    - ``migration``: cost of moving the work off a server that is retired
    - ``embodied``: kg CO2e of making one server
    - ``gpu_memory``: bytes of each of its ``gpus``
    - ``provisioned_w``: its share of a site's power, measured or set by policy; None for ``peak_w``
    - ``out``: by workload, the reason why this SKU cannot run it within its objective
    - ``vendor``: the seller
    - ``lot``: orders are multiples of this number
    - ``racks``: rack positions per server; 1 for a rack that is bought whole, 0 if they follow from its power
    - ``liquid``: True if it needs positions with liquid cooling
    - ``residual``: the share of its price that remains after each year
    - ``breaks``: (count, unit price), ascending: the price of each server if at least ``count`` servers are ordered in
      one period at all sites together
    - ``price_change``: the relative change of all its prices per year; -0.1 means 10% less each year
    - ``slips``: the probabilities that all its orders arrive 0, 1, 2 ... periods late; empty if they are never late
    - ``allowance``: the periods that the plan adds to ``lead`` for late orders
    - ``has``: by resource, the amount that one server provides for the ``needs`` of workloads, in base units
    - ``rent``: money per installed server and year; ``term``: the least periods of service
    - ``failure_rate``: failures per server and year; ``repair``: the periods that a repair takes
    """

    name: str
    worth: Annotated[Mapping[str, Worth], Declared(Kind.WORTH)]
    price: Annotated[float | None, Declared(Kind.PRICE, message("price"), MONEY, empty=message("not sold"))]
    idle_w: Annotated[float, Declared(Kind.WATTS, message("power idle"), "W", key="power.idle")]
    peak_w: Annotated[float, Declared(Kind.WATTS, message("power peak"), "W", key="power.peak")]
    _: KW_ONLY
    rack_units: Annotated[float, Declared(Kind.NUMBER, message("rack units"), "U", hint=message("rack units"))]
    gpus: Annotated[int, Declared(Kind.COUNT, message("GPUs"))] = 0
    ports: Annotated[int, Declared(Kind.COUNT, message("ports"))] = 1
    lead: Annotated[
        int, Declared(Kind.PERIODS, message("lead time"), message("periods"), hint=message("a lead time"))
    ] = 0
    support: Annotated[float, Declared(Kind.MONEY, message("support"), YEARLY)] = 0.0
    space: Annotated[float, Declared(Kind.MONEY, message("space"), YEARLY)] = 0.0
    migration: Annotated[float, Declared(Kind.MONEY, message("moving off one"), MONEY)] = 0.0
    minimum_order: Annotated[int, Declared(Kind.COUNT, message("minimum order"), message("servers"))] = 0
    age_limit: Annotated[
        int | None,
        Declared(Kind.AGE, message("age limit"), message("periods"), hint=message("an age"), empty=message("none")),
    ] = None
    embodied: Annotated[
        float, Declared(Kind.NUMBER, message("embodied carbon"), "kg CO2e", hint=message("embodied carbon"))
    ] = 0.0
    gpu_memory: Annotated[float, Declared(Kind.GIGABYTES, message("memory of a GPU"), "GB", empty=message("none"))] = (
        0.0
    )
    provisioned_w: Annotated[
        float | None,
        Declared(
            Kind.WATTS, message("power against the limit"), "W", empty=message("its peak"), key="power.provisioned"
        ),
    ] = None
    out: Mapping[str, str] = field(default_factory=dict)
    vendor: Annotated[str, Declared(Kind.TEXT, message("vendor"), hint=message("a name"), empty="")] = ""
    lot: Annotated[
        int, Declared(Kind.COUNT, message("sold in multiples of"), message("servers"), empty="1", minimum=1)
    ] = 1
    racks: Annotated[
        float,
        Declared(Kind.NUMBER, message("positions for racks"), hint=message("a count"), empty=message("by its power")),
    ] = 0.0
    liquid: Annotated[
        bool, Declared(Kind.COOLING, message("cooling"), ", ".join(COOLING), empty=AIR, key="cooling")
    ] = False
    residual: Annotated[
        float,
        Declared(Kind.SHARE, message("keeps of its price"), message("a year"), empty=message("nothing"), maximum=1),
    ] = 0.0
    breaks: Annotated[
        tuple[tuple[int, float], ...],
        Declared(Kind.BREAKS, message("price from a count on"), MONEY, empty="", key="price_breaks"),
    ] = ()
    price_change: Annotated[
        float, Declared(Kind.CHANGE, message("change of its price"), message("a year"), empty=message("none"))
    ] = 0.0
    slips: Annotated[
        tuple[float, ...],
        Declared(Kind.SLIPS, message("share of orders that come late"), message("periods late: share"), empty=""),
    ] = ()
    allowance: int = 0
    prices: tuple[float | None, ...] = ()
    has: Annotated[Mapping[str, float], Declared(Kind.RESOURCES)] = field(default_factory=dict)
    rent: Annotated[float, Declared(Kind.RATE, message("rent"), YEARLY, empty=message("none"))] = 0.0
    term: Annotated[
        int, Declared(Kind.PERIODS, message("least service"), message("periods"), empty=message("none"))
    ] = 0
    failure_rate: Annotated[
        float,
        Declared(
            Kind.SHARE,
            message("failure rate"),
            message("a year"),
            hint=message("a rate"),
            empty=message("none"),
            maximum=10,
        ),
    ] = 0.0
    repair: Annotated[
        float, Declared(Kind.TIME, message("time to repair"), message("periods"), empty=message("none"))
    ] = 0.0

    def sold_in(self, period: int) -> bool:
        """Return whether the SKU can be ordered in that period."""
        return self.price is not None and not (self.prices and self.prices[period] is None)

    @property
    def delay(self) -> int:
        """Return the periods from order to use in the plan."""
        return self.lead + self.allowance

    @property
    def least_price(self) -> float:
        """Return the lowest price of one server at any quantity in the first period, or 0 if it is not sold."""
        return 0.0 if self.price is None else min([self.price, *(price for _, price in self.breaks)])

    def price_in(self, count: float) -> float:
        """Return the price of one of ``count`` servers ordered in the first period, or 0 if it is not sold."""
        reached = [price for least, price in self.breaks if count >= least]
        return reached[-1] if reached else self.price or 0.0

    @property
    def budgeted_w(self) -> float:
        """Return the power of one server in W that counts against a site's limit."""
        return self.peak_w if self.provisioned_w is None else self.provisioned_w
