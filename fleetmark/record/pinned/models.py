"""Validate references, baselines and profiles: anyone who can write to a root can write these files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_Number = float | None
_Quantity = float | Literal["inf"]  # JSON has no infinity


class _Text(BaseModel, defer_build=True):
    """Validate a part of a document.

    Numbers and text are not converted into each other, and unknown keys are ignored.
    """

    model_config = ConfigDict(strict=True, frozen=True)


class PinnedText(_Text):
    """The first fields of every saved document."""

    name: str
    version: int
    created: str


class RecordText(_Text):
    """A recorded machine."""

    campaign: str
    host: str


class BenchmarkText(_Text):
    """A benchmark of a reference. ``mean`` and ``of_hosts`` are logarithms of values in the base unit."""

    title: str
    workload: str
    case: str
    metric: str
    unit: str
    better: str
    mean: float
    weight: float
    class_: str = Field(alias="class")
    kind: str = ""
    standing: str | None = None
    smallest: _Number = None
    largest: _Number = None
    of_hosts: list[_Number] = []


class RunsText(_Text):
    """The measurements of single hosts, with a row per benchmark and a column per host."""

    hosts: list[str]
    benchmarks: list[dict[str, Any]]
    values: list[list[_Number]]
    spread: list[list[_Number]]
    runs: list[list[_Number]]


class ReferenceText(PinnedText):
    """A reference.

    ``measured``: the values and spread of its hosts; absent for published figures and in old files.
    """

    selector: str
    hosts: int = Field(ge=0)
    benchmarks: list[BenchmarkText] = Field(min_length=1)
    names: list[str] = []
    host_label: str = Field("host", alias="by")
    records: list[RecordText] = []
    traits: dict[str, list[str]] = {}
    measured: RunsText | None = None


class BaselineText(PinnedText, RunsText):
    """A reference that an earlier version saved for ``diagnose`` in ``baselines/``."""

    campaign: str


class MachineText(_Text):
    """A machine in a profile."""

    name: str
    rates: list[_Number]
    time: _Number


class ResourceText(_Text):
    """A resource in a profile."""

    pattern: str
    benchmarks: list[str]
    unit: str


class ProfileText(PinnedText):
    """A profile."""

    target: str
    unit: str
    select: Any
    resources: dict[str, ResourceText]
    machines: list[MachineText]
    demand: dict[str, _Quantity]
    p: _Quantity
    errors: list[list[_Quantity]]
    shares: dict[str, float]
    intervals: dict[str, list[float]]
    condition: _Quantity
    refused: list[str]
    throttle: list[str | float] | None
    alike: list[_Quantity]
    drawn: list[list[Any]]
    records: list[RecordText]
    left_out: Any


MODELS: Mapping[str, type[PinnedText]] = {
    "reference": ReferenceText,
    "baseline": BaselineText,
    "profile": ProfileText,
}
