"""Define the planner's input as a typed document: its keys and their types. ``keys`` defines its larger parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fleetmark.demand import periods
from fleetmark.demand.amounts import (
    ByPeriod,
    Correlations,
    Integer,
    Kilograms,
    Limits,
    Number,
    Reserve,
    Span,
    Spares,
    Survived,
    Text,
    Watts,
    Yearly,
    above,
    currency,
    date,
    integer,
    plain,
    share,
    written_entries,
    written_texts,
)
from fleetmark.demand.keys.part import Part
from fleetmark.demand.keys.sku import Sku
from fleetmark.demand.keys.workload import Workload
from fleetmark.planner.capacity.question import OUTAGE
from fleetmark.planner.review.promise import MOST


def _joined(value: object) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


class Site(Part):
    """A site; every limit is optional."""

    BARE: ClassVar = type(None)

    power: ByPeriod[Watts] | None = None
    rack_units: ByPeriod[Number] | None = None
    ports: ByPeriod[Number] | None = None
    budget: Number | None = None
    domain: Annotated[Text | None, BeforeValidator(_joined, json_schema_input_type=list[str] | str | None)] = None
    spares: Spares = Reserve()
    spare_share: Annotated[float, share(0, 1)] = 0.0
    energy_price: ByPeriod[Number] | None = None
    pue: Annotated[float, plain(1, 10)] | None = None
    racks: ByPeriod[Number] | None = None
    liquid_racks: ByPeriod[Number] = 0.0
    rack_power: Annotated[Watts, AfterValidator(above)] | None = None
    windows: Annotated[tuple[Text, ...], written_texts] | None = None
    maintenance: ByPeriod[Annotated[float, share(0, 1)]] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return {} if value is None else value

    @model_validator(mode="after")
    def _one_share(self) -> Site:
        if self.spares.share and self.spare_share:
            raise ValueError("spare_share: spares is already a share; remove one of them")
        return self


class Cohort(Part):
    """Servers in place, or an order that was already placed; ``arrives`` is then the period of its arrival."""

    sku: Text
    site: Text
    count: Integer
    age: Span = (0.0, "period")
    arrives: Text | None = None

    @model_validator(mode="after")
    def _new(self) -> Cohort:
        if self.arrives is not None and self.age[0]:
            raise ValueError("an order that has not arrived has no age: remove age or arrives")
        return self


class Supply(Part):
    """Limit the orders of a SKU or from a vendor (``item``) to a ``maximum`` in a ``period``, or in each period."""

    RENAMED: ClassVar = {"of": "item", "most": "maximum"}

    item: Text
    maximum: Integer
    period: Text | None = None


class Periods(Part):
    """The periods: ``start`` and ``count``, or all ``names``; names outside the calendar need a ``length``."""

    BARE: ClassVar = list[str | int]

    start: Text | None = None
    count: Annotated[int, integer(1, periods.MOST)] | None = None
    names: Annotated[list[Text], Field(min_length=1, max_length=periods.MOST)] | None = None
    length: Literal["month", "quarter", "half", "year"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return {"names": value} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _one(self) -> Periods:
        if (self.names is None) == (self.start is None) or (self.start is None) != (self.count is None):
            raise ValueError("give start and count (start: 2027-Q1, count: 8), or a list of names")
        self.resolved()
        return self

    def resolved(self) -> tuple[list[str], float]:
        """Return the names of the periods, and the length of each period in years."""
        if self.names is not None:
            return list(self.names), periods.in_order(self.names, self.length)
        assert self.start is not None and self.count is not None
        return periods.sequence(self.start, self.count, self.length)


class Carbon(Part):
    """The cost and limits of carbon: ``price`` is money per tonne CO2e, and ``grid`` is kg CO2e per kWh.

    ``limit`` is the kg CO2e over all periods, and ``yearly_limit`` the kg CO2e of each calendar year.
    """

    price: Number = 0.0
    grid: Number = 0.0
    limit: Kilograms | None = None
    yearly_limit: ByPeriod[Kilograms] | None = None


class Shock(Part):
    """A jump of all demands: ``chance`` is the share of futures that have it, ``demand`` the factor on later
    demand.
    """

    chance: Annotated[float, share(0, 1)]
    demand: Annotated[float, plain(maximum=100, above=True)]


class Document(Part):
    """The complete input."""

    currency: Annotated[str, BeforeValidator(currency)]
    date: Annotated[str, BeforeValidator(date)]
    periods: Periods
    discount: Annotated[float, share(0, 1)]
    energy_price: ByPeriod[Number]
    energy_price_change: Yearly = 0.0
    pue: Annotated[float, plain(1, 10)]
    carbon: Carbon | None = None
    survive: Survived = 0
    outage: Annotated[float, share(0, 1)] = OUTAGE
    quantile: Annotated[float, share(0.5, 0.999)] = 0.95
    reviews: Annotated[int, integer(0, MOST)] = 0
    budget: Limits | None = None
    workloads: Annotated[Mapping[str, Workload], Field(min_length=1)]
    skus: Annotated[Mapping[str, Sku], Field(min_length=1)]
    sites: Annotated[Mapping[str, Site], Field(min_length=1)]
    fleet: list[Cohort] = Field(default_factory=list)
    supply: list[Supply] = Field(default_factory=list)
    currencies: Annotated[Mapping[str, Annotated[float, plain(above=True)]], written_entries] = {}
    domain_power: Annotated[Mapping[str, Watts], written_entries] = {}
    correlation: Correlations = Field(default_factory=dict)
    shock: Shock | None = None
    depreciation: Span | None = None

    @model_validator(mode="after")
    def _change(self) -> Document:
        prices = (self.energy_price, *(site.energy_price for site in self.sites.values()))
        if self.energy_price_change and any(isinstance(price, list | dict) for price in prices):
            raise ValueError(
                "energy_price_change: the energy price is already given by period; remove energy_price_change"
            )
        return self
