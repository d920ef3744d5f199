"""Define the keys of a workload and its demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from fleetmark.demand.amounts import (
    Amount,
    Deviations,
    Integer,
    Number,
    Quantity,
    Rate,
    Resource,
    Seconds,
    Series,
    Text,
    Written,
    Yearly,
    Yes,
    integer,
    share,
    written_entries,
    written_texts,
)
from fleetmark.demand.keys.part import Gigabytes, Part, quantiles_of
from fleetmark.planner.capacity.queueing import CAP


class _Bare(Part):
    """A part that may be written as a single value, or as quantiles of it."""

    BARE: ClassVar = Written

    @model_validator(mode="before")
    @classmethod
    def _either(cls, value: object) -> Any:
        return quantiles_of(value) if isinstance(value, Mapping) else {"value": value}


class Start(_Bare):
    """A figure, or its quantiles."""

    value: Amount | None = None
    quantiles: Mapping[str, Amount] | None = None


class Growth(_Bare):
    """The growth per year, or its quantiles."""

    value: Yearly | None = None
    quantiles: Mapping[str, Yearly] | None = None


class History(Part):
    """Past use: a CSV ``file``, the ``column`` of the workload (its name), and the periods in a ``season`` (a
    year).
    """

    BARE: ClassVar = str

    file: Text
    column: Text | None = None
    season: Annotated[int, integer(1, 60)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare(cls, value: object) -> Any:
        return value if isinstance(value, Mapping) else {"file": value}


class Demand(Part):
    """The demand in one of several forms.

    ``point`` is a figure for every period. ``start`` and ``growth`` define a trend. ``quantiles`` are given for every
    period; with the median alone, ``sigma`` is the standard deviation of the logarithm. ``history`` is past use, from
    which demand is forecast.
    """

    BARE: ClassVar = Written | list[Written] | dict[str, Written]

    point: Series | None = None
    start: Start | None = None
    growth: Growth | None = None
    quantiles: Mapping[str, Series] | None = None
    sigma: Deviations | None = None
    history: History | None = None

    @model_validator(mode="before")
    @classmethod
    def _which(cls, value: object) -> Any:
        doc = quantiles_of(value)
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
            raise ValueError("start is missing: write the demand in the first period")
        if self.sigma is not None and list(self.quantiles or {}) != ["p50"]:
            raise ValueError("sigma is valid only with p50: the median, and the standard deviation of its logarithm")
        return self


def _by_period(value: Mapping[object, object]) -> bool:
    return all(isinstance(v, str | int | float) for v in value.values())


class Slo(Part):
    """A latency target: a quantile (``p99: 50ms``) or the ``mean``, and the figures of the service."""

    quantiles: Mapping[str, Seconds] | None = None
    mean: Seconds | None = None
    service_time: Seconds
    service_cv: Number = 1.0
    arrival_cv: Number = 1.0
    slots: Annotated[int, integer(1, 100_000)]
    wait: Yes = False  # whether the target applies to the time in the queue, without service

    @model_validator(mode="before")
    @classmethod
    def _ranks(cls, value: object) -> Any:
        return quantiles_of(value)

    @model_validator(mode="after")
    def _one(self) -> Slo:
        if (self.mean is None) == (self.quantiles is None) or len(self.quantiles or {"": 0}) != 1:
            raise ValueError("give one latency: p99 (or another quantile), or mean")
        return self


class Workload(Part):
    """A workload and its demand.

    One unit of demand needs ``gpus`` GPUs in one server, each with at least ``gpu_memory`` GB.
    """

    unit: Text
    demand: Demand
    utilisation: Annotated[float, share(0, CAP, above=True)] | None = None
    slo: Slo | None = None
    sites: Annotated[tuple[Text, ...], written_texts] = ()
    dedicated: Yes = False
    pool: Text | None = None
    availability: Literal["survives", "normal", "preemptible"] | None = None
    gpus: Integer = 0
    gpu_memory: Gigabytes = 0.0
    needs: Annotated[Mapping[str, Resource], written_entries] = {}
    reference: Text | None = None
    revenue: Rate = Quantity(0.0)

    @model_validator(mode="after")
    def _one(self) -> Workload:
        if (self.utilisation is None) == (self.slo is None):
            raise ValueError(f"give utilisation (above 0, up to {CAP:.0%}) or slo, one of them")
        if self.dedicated and self.availability == "preemptible":
            raise ValueError("preemptible work runs on servers of other workloads: remove dedicated or preemptible")
        if self.dedicated and self.pool is not None:
            raise ValueError("a workload with dedicated servers cannot share a pool: remove dedicated or pool")
        return self
