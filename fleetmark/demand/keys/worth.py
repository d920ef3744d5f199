"""Define the keys of a server's worth for a workload."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from fleetmark.demand.amounts import Quantity, Text, Written, integer, plain, positive, share
from fleetmark.demand.keys.part import Part, Valued
from fleetmark.planner.capacity.queueing import CAP


class Chosen(Part):
    """The machines to compare, and a class, a benchmark or a mix to compare them by."""

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
    """A comparison like ``fleetmark compare``; the baseline defaults to the workload's ``reference``."""

    baseline: Text | None = None


class Pinned(Chosen):
    """A comparison with a pinned reference, ``NAME`` or ``NAME@2``."""

    name: Text


class Measured(Part):
    """A measured rate of a server."""

    select: Text
    benchmark: Text


class Profile(Part):
    """A saved demand vector, and the machines to which it is applied; ``baseline`` is as in Compared."""

    name: Text
    select: Text
    baseline: Text | None = None


class Speed(Valued):
    """The speed of one slot as a factor on the objective's service: a ``value``, or a comparison of
    responsiveness.
    """

    value: Annotated[float, plain(above=True)] | None = None
    compare: Compared | None = None

    @model_validator(mode="after")
    def _one(self) -> Speed:
        if (self.value is None) == (self.compare is None):
            raise ValueError("give one of value and compare")
        return self


class Worth(Valued):
    """The worth of one server for a workload: a ``value``, or its source.

    ``utilisation`` is the maximum of these servers for the workload. Alternatively, ``slots`` and ``speed`` of one
    server determine it from the objective. ``hosts`` names the hosts on which a ``value`` was measured; worths of a SKU
    with the same hosts share one error.
    """

    value: Annotated[Quantity, BeforeValidator(positive, json_schema_input_type=Written)] | None = None
    lo: Annotated[float, plain(above=True)] | None = None
    hi: Annotated[float, plain(above=True)] | None = None
    df: Annotated[float, plain(above=True)] | None = None
    error: Annotated[float, share(0, 10)] | None = None
    hosts: Text | None = None
    compare: Compared | None = None
    reference: Pinned | None = None
    measured: Measured | None = None
    profile: Profile | None = None
    utilisation: Annotated[float, share(0, CAP, above=True)] | None = None
    slots: Annotated[int, integer(1, 100_000)] | None = None
    speed: Speed | None = None

    @model_validator(mode="after")
    def _one(self) -> Worth:
        sources = [self.value, self.compare, self.reference, self.measured, self.profile]
        if sum(w is not None for w in sources) != 1:
            raise ValueError("give one of value, compare, reference, measured and profile")
        if (self.lo is None) != (self.hi is None):
            raise ValueError("lo and hi are both needed: the bounds of the 95% interval")
        if self.utilisation is not None and (self.slots is not None or self.speed is not None):
            raise ValueError("slots and speed determine the utilisation: write either these two or the utilisation")
        if self.lo is not None and self.value is None:
            raise ValueError("lo and hi are valid only with value; a worth from stored results has its own interval")
        if self.lo is not None and self.error is not None:
            raise ValueError("error and lo, hi state the same uncertainty; remove one of them")
        if self.hosts is not None and self.value is None:
            raise ValueError("hosts is valid only with value; a worth from stored results has its own hosts")
        if self.df is not None and self.value is None:
            raise ValueError("df is valid only with value; a worth from stored results has its own")
        if self.lo is not None and self.hi is not None and self.value is not None:
            value = self.value.value
            if not self.lo <= value <= self.hi:
                raise ValueError(f"the value {value:g} is not within {self.lo:g} to {self.hi:g}")
        return self
