"""Define measurements: a number with its unit and direction, the status of a run, and the standing of a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fleetmark.base.text import message


class Better(StrEnum):
    """Say in which direction a metric improves; ``NONE`` if it is only descriptive, such as packets sent."""

    HIGHER = "higher"
    LOWER = "lower"
    NONE = "none"

    @property
    def phrase(self) -> str:
        """``higher is better``; empty for what only describes."""
        return {Better.HIGHER: message("higher is better"), Better.LOWER: message("lower is better")}.get(self, "")


class Kind(StrEnum):
    """Name the kind of a figure, which determines how it is read."""

    CAPACITY = "capacity"  # extensive: two machines do twice as much; "one new is worth N old"
    RESPONSIVENESS = "responsiveness"  # intensive: how fast one job, request or flow goes; "x faster"
    GUARDRAIL = "guardrail"  # a condition that must hold; "kept" or "broken"


class Centre(StrEnum):
    """Say how several values of a metric are summarised."""

    GEOMEAN = "geomean"  # the mean of their logarithms, turned back
    MEDIAN = "median"  # of heavy-tailed figures: storage and network
    MEAN = "mean"  # where a value is not positive, so that no logarithm exists


class Status(StrEnum):
    """Say how a (host, workload, case, repeat) ended. Every run has one of these statuses."""

    PASSED = "passed"
    FAILED = "failed"
    INVALID = "invalid"  # it ran, but broke its own rules
    SKIPPED = "skipped"  # never started, for a reason known beforehand
    LOST = "lost"  # the end is unknown: the host or the link failed


class Standing(StrEnum):
    """Name a figure as the benchmark's owners do if it is not a result by their rules."""

    ESTIMATE = "estimate"  # SPEC: not a compliant, reportable run
    UNVERIFIED = "unverified"  # MLPerf: not from a table that MLCommons published

    @property
    def footnote(self) -> str:
        """Return the footnote that every such figure needs."""
        return {
            Standing.ESTIMATE: message(
                "estimate: not a compliant reportable run; not comparable with published SPEC results."
            ),
            Standing.UNVERIFIED: message("unverified: Result not verified by MLCommons Association."),
        }[self]


BASE_UNITS = frozenset({"B/s", "s", "1/s", "FLOP/s", "W", "J", "B", "Hz", "degC", "1"})


@dataclass(frozen=True, slots=True)
class Measurement:
    """One number a tool printed, in base units.

    ``subject`` says what was measured within the host: ``host``, a core, NUMA node, disk, NIC, GPU, or a pair
    such as ``h1>h2``. ``labels`` identify the point (``size``, ``stride``, ``op``): two repeats of the same
    measurement carry the same labels, so nothing that varies from run to run belongs there. ``size`` is in bytes, for
    every tool: figures that differ in it alone are a curve.
    """

    workload: str
    case: str
    metric: str
    value: float
    unit: str
    better: Better
    subject: str = "host"
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.unit not in BASE_UNITS:
            raise ValueError(f"{self.workload} {self.metric}: {self.unit!r} is not a base unit")
        if not math.isfinite(self.value):
            raise ValueError(f"{self.workload} {self.metric}: {self.value!r} is not a measurement")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of one output of one tool.

    ``invalid`` is set when the tool ran but broke its own rules (STREAM that did not validate): the measurements are
    stored, and never scored. ``invalid_cases``: the cases that it is about, where it is not about all. ``notes`` name
    oddities, such as truncation or a headline that disagrees with its rows. ``standing`` is set where the benchmark's
    owners do not call it a result. ``window``: from when to when the tool timed, Unix seconds of the host, where it
    says so. ``elsewhere``: the work was done on another machine than the one that the tool ran on.
    """

    tool: str
    measurements: tuple[Measurement, ...]
    version: str | None = None
    invalid: str | None = None
    notes: tuple[str, ...] = ()
    standing: Standing | None = None
    window: tuple[float, float] | None = None
    invalid_cases: tuple[str, ...] = ()
    elsewhere: bool = False
