"""Define measurements: a number with its unit and direction, the status of a run, and the standing of a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum

from fleetmark.base.text import message


class Better(StrEnum):
    """The better direction of a metric; ``NONE`` for a descriptive metric, such as packets sent."""

    HIGHER = "higher"
    LOWER = "lower"
    NONE = "none"

    @property
    def phrase(self) -> str:
        """Return the direction in words, such as ``higher is better``; empty for a descriptive metric."""
        return {Better.HIGHER: message("higher is better"), Better.LOWER: message("lower is better")}.get(self, "")


class Kind(StrEnum):
    """The kind of a figure, which determines how comparisons interpret it."""

    CAPACITY = "capacity"  # extensive: two machines do twice the work; "one new server replaces N old ones"
    RESPONSIVENESS = "responsiveness"  # intensive: the speed of one job, request or flow; "x faster"
    GUARDRAIL = "guardrail"  # a limit that must not be exceeded; "kept" or "broken"


class Centre(StrEnum):
    """Define how several values of a metric are summarised."""

    GEOMEAN = "geomean"  # the geometric mean
    MEDIAN = "median"  # for heavy-tailed figures, such as storage and network
    MEAN = "mean"  # if a value is not positive and has no logarithm


class Status(StrEnum):
    """The status of a (host, workload, case, repeat). Every run has one of these statuses."""

    PASSED = "passed"
    FAILED = "failed"
    INVALID = "invalid"  # the tool ran, but violated its own rules
    SKIPPED = "skipped"  # not started, for a reason known before the run
    LOST = "lost"  # the outcome is unknown, because the host or the link failed


class Standing(StrEnum):
    """The standing of a figure that is not an official result, in the terms of the benchmark's owners."""

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
    """One number that a tool printed, in base units.

    ``subject``: the measured part of the host: ``host``, a core, NUMA node, disk, NIC, GPU, or a pair such as
    ``h1>h2``. ``labels`` identify the measured point (``size``, ``stride``, ``op``). Repeats of a measurement must have
    equal labels, so labels hold no value that varies between runs. ``size`` is always in bytes: figures that differ
    only in ``size`` form a curve.
    """

    workload: str
    case: str
    metric: str
    value: float
    unit: str
    better: Better
    _: KW_ONLY
    subject: str = "host"
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.unit not in BASE_UNITS:
            raise ValueError(f"{self.workload} {self.metric}: {self.unit!r} is not a base unit")
        if not math.isfinite(self.value):
            raise ValueError(f"{self.workload} {self.metric}: {self.value!r} is not a measurement")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The parsed content of one output of a tool.

    ``invalid``: the reason, if the tool ran but violated its own rules, as when STREAM does not validate; the
    measurements are stored, but never scored. ``invalid_cases``: the affected cases; empty for all cases. ``notes``:
    anomalies, such as truncated output or a headline that disagrees with its rows. ``standing``: set if the benchmark's
    owners do not accept the figure as a result. ``window``: start and end of the timed part in Unix seconds of the
    host's clock, if the tool prints them. ``elsewhere``: whether the work was done on another machine than the one that
    ran the tool.
    """

    tool: str
    measurements: tuple[Measurement, ...]
    version: str | None = None
    invalid: str | None = None
    notes: tuple[str, ...] = ()
    _: KW_ONLY
    standing: Standing | None = None
    window: tuple[float, float] | None = None
    invalid_cases: tuple[str, ...] = ()
    elsewhere: bool = False
