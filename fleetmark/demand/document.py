"""The planner's input as a typed document: its keys and their types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fleetmark.demand import periods
from fleetmark.demand.amounts import (
    Amount,
    Deviations,
    Integer,
    Limits,
    Money,
    Number,
    Price,
    Quantity,
    Seconds,
    Series,
    Span,
    Text,
    Watts,
    Yes,
    above,
    currency,
    date,
    entries,
    integer,
    plain,
    positive,
    share,
    texts,
)
from planner.capacity.question import OUTAGE
from planner.capacity.queueing import CAP

_DIGITS = 9
_MOST_SLIP = 24
QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


def _quantiles(value: object) -> Any:
    """Move keys such as ``p50`` from ``value`` into a mapping ``quantiles``."""
    if not isinstance(value, Mapping):
        return value
    ranks = {k: v for k, v in value.items() if QUANTILE.fullmatch(str(k))}
    return {**{k: v for k, v in value.items() if k not in ranks}, **({"quantiles": ranks} if ranks else {})}


def rank(key: str) -> float:
    """``p90`` as 0.9."""
    match = QUANTILE.fullmatch(key)
    assert match is not None
    return float(match[1]) / 100


class Start(_Part):
    """A figure, or its quantiles."""

    value: Amount | None = None
    quantiles: Mapping[str, Amount] | None = None

    @model_validator(mode="before")
    @classmethod
    def _either(cls, value: object) -> Any:
        return _quantiles(value) if isinstance(value, Mapping) else {"value": value}


class Growth(_Part):
    """Growth a year, or its quantiles."""

    value: Annotated[float, share(-0.99, 100)] | None = None
    quantiles: Mapping[str, Annotated[float, share(-0.99, 100)]] | None = None

    @model_validator(mode="before")
    @classmethod
    def _either(cls, value: object) -> Any:
        return _quantiles(value) if isinstance(value, Mapping) else {"value": value}


class History(_Part):
    """Past use: a CSV ``file`` with a ``column`` (the workload's name) and the periods of a ``season`` (a year)."""

    file: Text
    column: Text | None = None
    season: Annotated[int, integer(1, 60)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return value if isinstance(value, Mapping) else {"file": value}


class Demand(_Part):
    """``point``: a figure for every period; ``start`` and ``growth``; or ``quantiles`` of every period, or their median
    and ``sigma``, the standard deviation of the logarithm; or the ``history`` that a forecast follows from.
    """

    point: Series | None = None
    start: Start | None = None
    growth: Growth | None = None
    quantiles: Mapping[str, Series] | None = None
    sigma: Deviations | None = None
    history: History | None = None

    @model_validator(mode="before")
    @classmethod
    def _which(cls, value: object) -> Any:
        doc = _quantiles(value)
        keys = {"start", "growth", "quantiles", "sigma", "history"}
        if not isinstance(value, Mapping) or (value and not keys & set(doc) and _by_period(value)):
            return {"point": value}
        return doc

    @model_validator(mode="after")
    def _one(self) -> Demand:
        grows = self.start is not None or self.growth is not None
        if sum((self.point is not None, grows, bool(self.quantiles), self.history is not None)) != 1:
            raise ValueError(
                "give one of: a figure for every period, start and growth, quantiles (p50, p90), or a history"
            )
        if self.start is None and self.growth is not None:
            raise ValueError("start is missing: what the demand is in the first period")
        if self.sigma is not None and list(self.quantiles or {}) != ["p50"]:
            raise ValueError("sigma goes with p50 alone: the median, and the standard deviation of its logarithm")
        return self


def _by_period(value: Mapping[object, object]) -> bool:
    return all(isinstance(v, str | int | float) for v in value.values())


class Slo(_Part):
    """A latency target, a quantile (``p99: 50ms``) or ``mean``, and the figures of the service."""

    quantiles: Mapping[str, Seconds] | None = None
    mean: Seconds | None = None
    service_time: Seconds
    service_cv: Number = 1.0
    arrival_cv: Number = 1.0
    slots: Annotated[int, integer(1, 100_000)]
    wait: Yes = False  # the target is for the time in the queue, without service

    @model_validator(mode="before")
    @classmethod
    def _ranks(cls, value: object) -> Any:
        return _quantiles(value)

    @model_validator(mode="after")
    def _one(self) -> Slo:
        if (self.mean is None) == (self.quantiles is None) or len(self.quantiles or {"": 0}) != 1:
            raise ValueError("give one latency: p99 (or another quantile), or mean")
        return self


def _gigabytes(value: object) -> Any:
    return value[: -len("GB")].strip() if isinstance(value, str) and value.strip().upper().endswith("GB") else value


def _joined(value: object) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


Gigabytes = Annotated[float, plain(), BeforeValidator(_gigabytes)]


class Workload(_Part):
    """A workload and its demand. ``gpus``, each of ``gpu_memory`` GB or more: what one unit of it needs in a server."""

    unit: Text
    demand: Demand
    utilisation: Annotated[float, share(0, CAP, above=True)] | None = None
    slo: Slo | None = None
    sites: Annotated[tuple[Text, ...], BeforeValidator(texts)] = ()
    dedicated: Yes = False
    availability: Literal["survives", "normal", "preemptible"] | None = None
    gpus: Integer = 0
    gpu_memory: Gigabytes = 0.0
    reference: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Workload:
        if (self.utilisation is None) == (self.slo is None):
            raise ValueError(f"give utilisation (above 0, up to {CAP:.0%}) or slo, one of them")
        if self.dedicated and self.availability == "preemptible":
            raise ValueError("what may be pre-empted runs on servers of others: leave out dedicated or preemptible")
        return self


class Power(_Part):
    """Power of a server. ``provisioned``: what counts against a site's limit, measured or set; its peak by default."""

    idle: Watts
    peak: Watts
    provisioned: Watts | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Power:
        if self.peak < self.idle:
            raise ValueError(f"peak ({self.peak:g} W) is below idle ({self.idle:g} W)")
        return self


class Chosen(_Part):
    """Machines to compare: by a class, a benchmark or a mix."""

    candidate: Text
    class_: Text | None = Field(default=None, alias="class")
    benchmark: Text | None = None
    mix: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> Chosen:
        if sum(v is not None for v in (self.class_, self.benchmark, self.mix)) != 1:
            raise ValueError(
                "give one of class (cpu-int), benchmark (fio/*/read_iops) and mix (cpu-int=0.6,disk-iops=0.4)"
            )
        return self


class Compared(Chosen):
    """A comparison as by ``fleetmark compare``; the baseline defaults to the workload's ``reference``."""

    baseline: Text | None = None


class Pinned(Chosen):
    """A comparison with a pinned reference, ``NAME`` or ``NAME@2``."""

    name: Text


class Measured(_Part):
    """A measured rate of a server."""

    select: Text
    benchmark: Text


class Profile(_Part):
    """A saved demand vector, and the machines whose rates it applies to; ``baseline`` as in Compared."""

    name: Text
    select: Text
    baseline: Text | None = None


class Speed(_Part):
    """How fast one slot is, as a factor on the objective's service: ``value``, or a comparison of responsiveness."""

    value: Annotated[float, plain(above=True)] | None = None
    compare: Compared | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return value if isinstance(value, Mapping) else {"value": value}

    @model_validator(mode="after")
    def _one(self) -> Speed:
        if (self.value is None) == (self.compare is None):
            raise ValueError("give one of value and compare")
        return self


class Worth(_Part):
    """The worth of one server for a workload: ``value``, or its source. ``utilisation`` of its servers for it; or
    ``slots`` and ``speed`` of one, from which the objective gives it.
    """

    value: Annotated[Quantity, BeforeValidator(positive)] | None = None
    lo: Annotated[float, plain(above=True)] | None = None
    hi: Annotated[float, plain(above=True)] | None = None
    df: Annotated[float, plain(above=True)] | None = None
    error: Annotated[float, share(0, 10)] | None = None
    compare: Compared | None = None
    reference: Pinned | None = None
    measured: Measured | None = None
    profile: Profile | None = None
    utilisation: Annotated[float, share(0, CAP, above=True)] | None = None
    slots: Annotated[int, integer(1, 100_000)] | None = None
    speed: Speed | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return value if isinstance(value, Mapping) else {"value": value}

    @model_validator(mode="after")
    def _one(self) -> Worth:
        sources = [self.value, self.compare, self.reference, self.measured, self.profile]
        if sum(w is not None for w in sources) != 1:
            raise ValueError("give one of value, compare, reference, measured and profile")
        if (self.lo is None) != (self.hi is None):
            raise ValueError("lo and hi go together: the ends of the 95% interval")
        if self.utilisation is not None and (self.slots is not None or self.speed is not None):
            raise ValueError("slots and speed give the utilisation: give them, or the utilisation")
        if self.lo is not None and self.value is None:
            raise ValueError("lo and hi go with value; a worth on record has its own interval")
        if self.lo is not None and self.error is not None:
            raise ValueError("error repeats lo and hi; give one of them")
        if self.df is not None and self.value is None:
            raise ValueError("df goes with value; a worth on record has its own")
        if self.lo is not None and self.hi is not None and self.value is not None:
            value = self.value.value
            if not self.lo <= value <= self.hi:
                raise ValueError(f"the value {value:g} is not within {self.lo:g} to {self.hi:g}")
        return self


def _counts(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    """Entries whose names are whole numbers from 1."""
    wrong = [name for name in entries if not (name.isdecimal() and len(name) <= _DIGITS and int(name))]
    if wrong:
        raise ValueError(f"{wrong[0]!r} is not a count of 1 or more")
    return entries


def _late(shares: Mapping[str, float]) -> Mapping[str, float]:
    """Periods late to the share of orders."""
    _counts(shares)
    if sum(shares.values()) > 1 + 1e-9:
        raise ValueError(f"the shares come to {sum(shares.values()):.0%}, more than all orders")
    if any(int(n) > _MOST_SLIP for n in shares):
        raise ValueError(f"at most {_MOST_SLIP} periods: a later order is none")
    return shares


class Sku(_Part):
    """A server model that can be bought, or is in place."""

    price: Price
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
    price_breaks: Annotated[Mapping[str, Money], BeforeValidator(entries), AfterValidator(_counts)] = {}
    slips: Annotated[Mapping[str, Annotated[float, share(0, 1)]], BeforeValidator(entries), AfterValidator(_late)] = {}
    worth: Mapping[str, Worth]

    @model_validator(mode="after")
    def _terms(self) -> Sku:
        if self.price_breaks and self.price is None:
            raise ValueError("price_breaks: it is not sold")
        return self


class Site(_Part):
    """A site; every limit is optional."""

    power: Watts | None = None
    rack_units: Number | None = None
    ports: Number | None = None
    budget: Number | None = None
    domain: Annotated[Text | None, BeforeValidator(_joined)] = None
    spares: Integer = 0
    energy_price: Number | None = None
    pue: Annotated[float, plain(1, 10)] | None = None
    racks: Number | None = None
    liquid_racks: Number = 0.0
    rack_power: Annotated[Watts, AfterValidator(above)] | None = None
    windows: Annotated[tuple[Text, ...], BeforeValidator(texts)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return {} if value is None else value


class Cohort(_Part):
    """Servers in place; with ``arrives``, an order that is placed already, by the period in which it arrives."""

    sku: Text
    site: Text
    count: Integer
    age: Span = (0.0, "period")
    arrives: Text | None = None

    @model_validator(mode="after")
    def _new(self) -> Cohort:
        if self.arrives is not None and self.age[0]:
            raise ValueError("an order that has not arrived has no age: leave out age or arrives")
        return self


class Supply(_Part):
    """The ``most`` that can be ordered of a SKU or from a vendor (``of``) in a ``period``, or in each."""

    of: Text
    most: Integer
    period: Text | None = None


class Periods(_Part):
    """``start`` and ``count``, or all ``names``; ``length`` if the names are not those of the calendar."""

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
        """The names, and the length of each in years."""
        if self.names is not None:
            return list(self.names), periods.in_order(self.names, self.length)
        assert self.start is not None and self.count is not None
        return periods.sequence(self.start, self.count, self.length)


class Carbon(_Part):
    """``price``: money per tonne CO2e; ``grid``: kg CO2e per kWh."""

    price: Number
    grid: Number


class Document(_Part):
    """The complete input."""

    currency: Annotated[str, BeforeValidator(currency)]
    date: Annotated[str, BeforeValidator(date)]
    periods: Periods
    discount: Annotated[float, share(0, 1)]
    energy_price: Number
    pue: Annotated[float, plain(1, 10)]
    carbon: Carbon | None = None
    survive: Yes = False
    outage: Annotated[float, share(0, 1)] = OUTAGE
    quantile: Annotated[float, share(0.5, 0.999)] = 0.95
    budget: Limits | None = None
    workloads: Annotated[Mapping[str, Workload], Field(min_length=1)]
    skus: Annotated[Mapping[str, Sku], Field(min_length=1)]
    sites: Annotated[Mapping[str, Site], Field(min_length=1)]
    fleet: list[Cohort] = []
    supply: list[Supply] = []
    currencies: Annotated[Mapping[str, Annotated[float, plain(above=True)]], BeforeValidator(entries)] = {}
    domain_power: Annotated[Mapping[str, Watts], BeforeValidator(entries)] = {}
