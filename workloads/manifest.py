"""Define workload manifests: the typed form of ``workloads/NAME.yml``, and their folder."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from fleetmark.base import extensions, kinds
from fleetmark.base.errors import FleetmarkError, suggest
from fleetmark.base.measurement import BASE_UNITS, Better, Centre, Kind
from fleetmark.base.units import parse_seconds
from fleetmark.base.yaml import read_yaml
from fleetmark.workloads.misfit import misfit
from fleetmark.workloads.parameter import Parameter
from fleetmark.workloads.variant import plain_case

HERE = Path(__file__).resolve().parent
SCHEMA = 1  # newest manifest schema that this version can read
T = TypeVar("T", bound=BaseModel)

Summarised = Literal[Centre.GEOMEAN, Centre.MEDIAN]


class _Part(BaseModel, defer_build=True):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Plot(_Part):
    """Select the x axis for a latency under load.

    ``bandwidth``: the metric measured at the same time, with the same value of the label ``each``. This label is a
    number that orders the points of the line.
    """

    bandwidth: str
    each: str


class Override(_Part):
    """Override the declaration of a metric in some cases.

    ``better: none`` marks a setting that is reported as a result. ``limit``: the part of the case name that gives the
    guardrail's limit, with <> for the time, such as "-p99-<>". ``quantity``: the quantity that the metric measures in
    these cases.
    """

    kind: Kind | None = None
    class_: str | None = Field(default=None, alias="class")
    better: Literal[Better.NONE] | None = None
    limit: str = ""
    quantity: str = ""


class Peak(_Part):
    """Select the part of the machine that limits a rate, and thus the peak from the machine's facts to compare it with.

    ``compute``: all cores, or an accelerator if the class says so (the peak is for double precision). ``pcie``: the
    link of an accelerator. ``gpu_link``: the link between two accelerators. ``ends``: one of these two links, chosen by
    the devices in the labels ``from`` and ``to``. ``device_memory`` and ``device_compute`` (16-bit floats): the
    specification of an accelerator. ``cache`` has no known peak and serves as the reference for other parts.
    ``called``: the name of one of several peaks (``fp64``). ``each``: a regular expression with one group, which
    matches the name of the peak in the case.

    ``cases``: shell-style patterns, if the peak does not apply to all cases (one process cannot saturate the memory).
    ``traffic``: bytes that the hardware moves for each byte that the tool counts.
    """

    RENAMED: ClassVar = {"of": "part"}

    part: Literal["memory", "cache", "compute", "link", "pcie", "gpu_link", "ends", "device_memory", "device_compute"]
    cases: tuple[str, ...] = ("*",)
    traffic: float = Field(default=1.0, gt=0)
    called: str = ""
    each: str = ""

    def peak_name(self, case: str) -> str:
        """Return the name of the peak that applies to a case; empty if its part has a single peak."""
        match = re.search(self.each, plain_case(case)) if self.each else None
        return match[1] if match else self.called


class Launch(_Part):
    """The metrics that mark a launch-bound call, beside its share of the roofline.

    ``ratio``: the time that the host needs to start a call over its time on the device; from 1 on, the call is
    launch-bound. ``graph``: the time of the call as one graph of the device; where it exists, the share is based on it.
    """

    ratio: str
    graph: str


class Metric(_Part):
    """A figure of merit: its meaning, kind and direction, and whether it is in the first table of the summary.

    ``<>`` in a class stands for the class of the case. ``overrides``: changes by shell-style pattern of case names; the
    first match applies. ``quantity``: the measured quantity; metrics and workloads that measure the same quantity share
    its name, so that it counts once. ``energy``: the unit of work (token, step) that this rate counts. Together with
    the measured power, the rate gives ``energy_per_token``.
    """

    RENAMED: ClassVar = {"about": "description", "at": "overrides"}

    unit: str
    better: Better
    description: str
    headline: bool = False
    bits: bool = False  # shown in bit/s
    percent: bool = False  # shown in %
    kind: Kind | None = None  # if it differs from its workload's
    class_: str | None = Field(default=None, alias="class")  # if it differs from its workload's
    overrides: Mapping[str, Override] = {}
    quantity: str = ""
    centre: Summarised | None = None  # if it differs from its workload's
    plot: Plot | None = None  # x axis of a latency under load
    between_devices: bool = False  # its labels from and to name devices of a host, so a map shows it
    peak: tuple[Peak, ...] = ()  # peaks of a rate; the first whose cases match counts
    energy: Annotated[str, Field(pattern=r"^([a-z]{1,20})?$")] = ""
    roof: str = ""  # for a share of the roofline: metric that selects the limit; below 1 memory, above 1 compute
    launch: Launch | None = None  # for a share of the roofline: metrics that mark launch-bound calls

    @field_validator("peak", mode="before", json_schema_input_type=Peak | tuple[Peak, ...])
    @classmethod
    def _several(cls, peak: Any) -> Any:
        return [peak] if isinstance(peak, Mapping) else peak

    @field_validator("unit")
    @classmethod
    def _base(cls, unit: str) -> str:
        if unit not in BASE_UNITS:
            raise ValueError(f"{unit!r} is not a base unit ({', '.join(sorted(BASE_UNITS))})")
        return unit


class Frontier(_Part):
    """Points with a trade-off between metrics of a case. ``cases``: shell-style patterns.

    The metrics are the work per time, the speed for one user (1/s), the time that a user waits (s), and the power (W)
    of the host and of its accelerators. ``piece``: the unit of work (``token``). ``each``: a regular expression for the
    part of a case name that differs between the points of a line. ``speeds``: the speeds at which sides are compared.
    ``max_wait``: the maximum wait, in s. ``quality``: metrics of the answers, each with the share of the baseline's
    value by which a candidate may be worse. ``differences``: metrics that are differences from a reference, each with
    the amount by which a candidate may be further from it than the baseline; a baseline without a value counts as the
    reference itself. If a candidate is worse than this, its service is not equal.
    """

    RENAMED: ClassVar = {"at": "speeds", "within": "max_wait"}

    cases: tuple[str, ...] = ("*",)
    each: str
    work: str
    speed: str
    wait: str
    power: str = ""
    devices_power: str = ""
    piece: Annotated[str, Field(pattern=r"^[a-z]{1,20}$")] = "piece"
    speeds: tuple[float, ...] = ()
    max_wait: float = 0.0
    quality: Mapping[str, Annotated[float, Field(gt=0, lt=1)]] = {}
    differences: Mapping[str, Annotated[float, Field(gt=0)]] = {}

    @property
    def answers(self) -> tuple[str, ...]:
        """Return the metrics of the answers."""
        return (*self.quality, *self.differences)


class Score(_Part):
    """A score over several runs, as defined by the owners of the benchmark.

    ``geometric``: the geometric mean of ``metric`` over all ``cases``, with the median of the repeats on each host.
    ``olympic``: MLPerf's mean of the repeats of a case. ``runs`` gives the number of repeats by case name; other cases
    have no score. ``dropped`` gives the number of repeats dropped at each end, if it is not one.
    """

    RENAMED: ClassVar = {"about": "description"}

    metric: str
    mean: Literal["geometric", "olympic"]
    cases: tuple[str, ...] = ()
    runs: Mapping[str, int] = {}
    dropped: Mapping[str, int] = {}
    description: str


class Need(_Part):
    """A condition on the host (an expression over facts and parameters) and the message if it is not met.

    ``refuse`` marks a user error instead of a missing feature of the host; the run then does not start.
    """

    that: Any
    say: str
    refuse: bool = False


class Deploy(_Part):
    """Describe how to deploy the tool; ``provides`` is the resulting command, or a path under tools."""

    provides: str
    packages: Mapping[str, tuple[str, ...]] = {}
    root: Any = False  # whether deploying needs root there
    when: Any = True


class Alike(_Part):
    """A value that must be equal on all hosts of a case: its name, and its expression on each host."""

    RENAMED: ClassVar = {"what": "name", "of": "value"}

    name: str
    value: Any


class Serve(_Part):
    """A server for the other end of a case: on the peer, or next to the case on a single host."""

    argv: tuple[Any, ...]
    port: Any
    ends: bool = True  # the server ends by itself after one client; other servers are terminated after the client


class Case(_Part):
    """A command to measure, or a family of commands over ``foreach`` (name to list, all combinations)."""

    RENAMED: ClassVar = {"about": "description"}

    name: str
    called: str = ""  # the display name, if an expression computes it; settings are in <>
    description: str = ""
    foreach: Mapping[str, Any] = {}
    when: Any = True
    argv: tuple[Any, ...]
    env: Mapping[str, Any] = {}
    files: tuple[str, ...] = ()
    output: str = "stdout"  # which file the parser reads
    class_: Any = Field(default=None, alias="class")  # if it differs from its workload's
    headline: tuple[str, ...] | None = None  # its headline metrics, if they differ from the workload's
    depth: str = ""  # the part of its name with its queue depth, <> for the number: "-qd<>"
    keeps_limit: bool = False  # the case fails on a host that cannot meet its limit (a latency)
    serve: Serve | None = None
    nodes: Any = 1  # number of hosts that run it together; the first of them starts it
    each: bool = False  # all of them run the command, each with its own facts, as number ``node`` of ``members``
    exclusive: tuple[Any, ...] = ()
    expect: Any  # expected time in seconds
    timeout: Any = None  # seconds; if unset, 60 s and five times the expected time


@dataclass(frozen=True, slots=True)
class Declaration:
    """A figure: its class, kind (empty if it is only descriptive) and direction.

    ``limit`` is the guardrail's limit in seconds, or None. ``quantity``: the name of a quantity that several metrics
    measure.
    """

    class_: str
    kind: str
    better: str
    limit: float | None = None
    quantity: str = ""


class Manifest(_Part):
    """One workload.

    ``scope: pair`` measures between two hosts, or over loopback with a single host; its parameter ``pairs`` selects the
    pairs. ``single``: an expression that is true if the user provides the other end, so that each host runs alone.
    ``disk``: the maximum size of its files under the work directory, in bytes. ``spread``: the typical standard
    deviation of repeats relative to their mean, or None if unknown. ``was``: maps classes in files of earlier versions
    to present classes. ``redundant``: a regular expression for the part of a case name that may differ between cases
    that measure the same quantity. ``unshared``: what its tools use past the kernel's control groups, so that a suite
    with a share of it is refused.
    """

    RENAMED: ClassVar = {"about": "description"}

    schema_: int = Field(default=SCHEMA, alias="schema", ge=1)
    name: str
    version: str = ""  # version of the workload, kept in records
    title: str
    class_: str = Field(alias="class")
    kind: Kind | None = None  # default kind of metrics
    was: Mapping[str, str] = {}
    redundant: str = ""
    scope: Literal["host", "pair"] = "host"
    single: Any = False
    description: str
    licence: str
    citation: str
    parser: str | None = None
    probes: tuple[str, ...] = ()  # further commands whose presence the needs check
    torch: str = ""  # the parameter that names a Python with torch; expressions use its facts as torch
    centre: Summarised = Centre.GEOMEAN  # average over the repeats of a metric
    devices: str = ""  # metric with the number of accelerators used, if it may differ from the host's
    sizes: str = ""  # parameter with the numbers of hosts per case; 1 means a single host
    disk: Any = 0
    unshared: tuple[Literal["disk", "network"], ...] = ()
    spread: float | None = Field(default=None, gt=0, lt=1)
    throttle: str = ""  # how to slow down the measurement on purpose, for readers
    deploy: Deploy | None = None
    needs: tuple[Need, ...] = ()
    alike: tuple[Alike, ...] = ()
    parameters: Mapping[str, Parameter] = {}
    cases: tuple[Case, ...]
    metrics: Mapping[str, Metric]
    scores: Mapping[str, Score] = {}
    frontier: Frontier | None = None

    @field_validator("metrics")
    @classmethod
    def _plots(cls, metrics: Mapping[str, Metric]) -> Mapping[str, Metric]:
        bandwidths = {name for name, m in metrics.items() if m.unit == "B/s"}
        for name, m in metrics.items():
            if m.plot and m.plot.bandwidth not in bandwidths:
                raise ValueError(f"{name} is drawn against {m.plot.bandwidth}, which is not one of its bandwidths")
        return metrics

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        if self.sizes and not (self.sizes in self.parameters and self.parameters[self.sizes].many):
            raise ValueError(f"sizes: {self.sizes} is not one of its parameters that take a list")
        return self

    @model_validator(mode="after")
    def _devices(self) -> Self:
        if self.devices and self.devices not in self.metrics:
            raise ValueError(f"devices: {self.devices} is not one of its metrics")
        return self

    @model_validator(mode="after")
    def _kinds(self) -> Self:
        for name, metric in self.metrics.items():
            for kind, class_ in self._declared(metric):
                if kind is None:
                    choices = ", ".join(Kind)
                    raise ValueError(f"metrics: {name} has no kind: write kind: with one of {choices}")
                held = kinds.kind_of_class(class_)
                if held and kind not in (held, Kind.GUARDRAIL):
                    raise ValueError(f"metrics: {name} is {kind}, and its class {class_} holds {held}")
        return self

    def _declared(self, metric: Metric) -> Iterator[tuple[Kind | None, str]]:
        """Return every kind and class that ``metric`` may have, as declared; none for a purely descriptive metric."""
        if metric.better == Better.NONE:
            return
        for override in (Override(), *metric.overrides.values()):
            if override.better is None:
                template = override.class_ or metric.class_ or "<>"
                yield override.kind or metric.kind or self.kind, self.class_ if template == "<>" else template

    def describe(self, name: str, cases: Sequence[str], class_: str, unit: str, better: str) -> Declaration:
        """Return the description of the metric ``name`` in a case, which may have several names in ``cases``.

        ``class_`` is the class of the case, of the metric in another case, or from a file of an earlier version.
        ``unit`` and ``better`` apply if the manifest does not declare the metric.
        """
        class_ = self.was.get(class_, class_)
        metric = self.metrics.get(name)
        if metric is None or better == Better.NONE:
            return Declaration(*kinds.inferred(class_, unit, better), better)
        shapes = [m.class_ for m in self.metrics.values() if m.class_ and m.class_.startswith("<>-")]
        endings = {shape.removeprefix("<>") for shape in shapes}
        class_ = next((class_.removesuffix(end) for end in sorted(endings) if class_.endswith(end)), class_)
        plain = [plain_case(case) for case in cases]
        override = next(
            (a for p, a in metric.overrides.items() if any(fnmatch.fnmatchcase(c, p) for c in plain)), Override()
        )
        class_ = (override.class_ or metric.class_ or "<>").replace("<>", class_)
        if override.better is not None:
            return Declaration(class_, "", override.better)
        kind = override.kind or metric.kind or self.kind
        quantity = override.quantity or metric.quantity
        if self.redundant:
            bare = [re.sub(self.redundant, "", c) for c in cases[:1]]
            quantity = " ".join([self.name, *bare, quantity or name])
        return Declaration(class_, kind.value if kind else "", better, _limit(override.limit, plain[0]), quantity)

    def headlines(self, case: Case) -> tuple[str, ...]:
        """Return the metrics of a case for the first table of the summary."""
        if case.headline is not None:
            return case.headline
        return tuple(name for name, metric in self.metrics.items() if metric.headline)

    @property
    def tool(self) -> str:
        """Return the parser of its output: the one of the same name unless the manifest says otherwise."""
        return self.parser or self.name

    def check_settings(self, settings: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Return the user's settings, typed. Raise FleetmarkError for an unknown name or an invalid value."""
        checked = {}
        for key, value in settings.items():
            if key not in self.parameters:
                raise FleetmarkError(
                    f"{place}: {self.name} has no parameter {key!r}{suggest(key, self.parameters)}; "
                    f"it has {', '.join(self.parameters)}"
                )
            if value is None:  # YAML reads a name without a value as null
                raise FleetmarkError(f"{place}: {self.name}.{key} has no value: write one, or remove the key")
            checked[key] = self.parameters[key].coerce(value, f"{place}: {self.name}.{key}")
        return checked


def _limit(part: str, case: str) -> float | None:
    """Return the time in a case's name, at the place that ``part`` gives, in seconds."""
    if not part:
        return None
    before, _, after = map(re.escape, part.partition("<>"))
    match = re.search(rf"{before}([0-9]+(?:\.[0-9]+)?(?:us|ms|s)){after}\b", case)
    return parse_seconds(match[1]) if match else None


def names() -> list[str]:
    """Return the sorted names of all workloads, including those from other folders."""
    return sorted(_paths())


def path_of(name: str) -> Path:
    """Return the path of a manifest, or raise FleetmarkError with the known names if it does not exist."""
    paths = _paths()
    if name not in paths:
        raise FleetmarkError(
            f"no workload {name!r}{suggest(name, list(paths))}; there are {', '.join(sorted(paths))}; "
            f"add your own folder with --workloads DIR or {extensions.VARIABLE}"
        )
    return paths[name]


def _paths() -> dict[str, Path]:
    return extensions.gather("the workload", {p.stem: p for p in HERE.glob("*.yml")})


def load(name: str) -> Manifest:
    """Return the manifest of a workload, or raise FleetmarkError if it does not exist or violates the schema."""
    return _load(name, extensions.state())


@cache
def _load(name: str, _: str) -> Manifest:
    path = path_of(name)
    if path.parent != HERE and (HERE.parent / "playbooks" / "roles" / name).is_dir():
        raise FleetmarkError(f"{path}: {name} is already the name of a Fleetmark role; rename the workload")
    return _validate(path, Manifest, {"name": name, **read_manifest(path)})


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the keys of a manifest merged with the one named by ``like``, or raise FleetmarkError on failure."""
    raw = read_yaml(path)
    schema = raw.get("schema", SCHEMA)
    if isinstance(schema, int) and schema > SCHEMA:
        raise FleetmarkError(
            f"{path}: schema {schema} is newer than the schema of this Fleetmark version ({SCHEMA}); update Fleetmark"
        )
    if like := raw.pop("like", None):
        base = read_yaml(path_of(str(like)))
        raw = {**_overlay(base, raw), "scores": raw.get("scores", {})}  # defined by their owners, so never inherited
    return raw


def files(name: str) -> list[Path]:
    """Return the files that define the manifest of ``name``: its own file and the one named by ``like``."""
    path = path_of(name)
    base = read_yaml(path).get("like")
    return [path, path_of(str(base))] if base else [path]


def _overlay(base: Any, over: Any) -> Any:
    """Return ``base`` updated with ``over``: mappings are merged, other values replaced, and null removes a key."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    merged = {**base, **{k: _overlay(base.get(k), v) for k, v in over.items()}}
    return {k: v for k, v in merged.items() if v is not None or k not in over}


def read_model(path: Path, model: type[T], **more: Any) -> T:
    """Return a YAML file as ``model``. Raise FleetmarkError naming the file, the place and the problem."""
    return _validate(path, model, {**more, **read_yaml(path)})


def _validate(path: Path, model: type[T], values: Mapping[str, Any]) -> T:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise FleetmarkError(f"{path}: {misfit(error, model)}") from error
