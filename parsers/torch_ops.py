"""Parse the JSON lines of playbooks/roles/torch_ops: timed and checked torch operators, format 1.

Case: operator/precision/shape (``mm/bf16/llama3-8b-gate``), ``roof/PRECISION`` and ``roof/memory``. Each operator has
one rate, higher is better, from the median time. It is ``flops`` if the operator does at least 8 operations per byte,
otherwise ``bandwidth``, from the minimum number of bytes that it must move. The time of a launch-bound operator is that
of its CUDA graph, if it was captured: the time between two events around a call includes waits for the host.

Descriptive metrics: ``time``, ``time_best``, ``time_iqr``, ``error``, ``roof_share`` (the minimum time by the device's
own roofs over the median time) and ``balance`` (operations per byte relative to the point where the roofs meet);
``time_host`` (the time that the host needs to start a call), ``launch_ratio`` (that time over the median; from 1 on, a
call is launch-bound), ``time_graph`` (a launch-bound call as one CUDA graph), ``time_nchw`` and ``time_channels_last``
(both layouts of a convolution; the rate is that of the faster one). For each precision, ``sustained_peak``,
``sustained_clock`` and ``sustained_power``; ``device_power_cap``.

A wrong result or a failure makes only its own case ``invalid``. Skipped cases are noted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import decode, numbered

_TOOL = "torch_ops"
COMPUTES = 8.0  # operations per byte above which a case is rated by its operations
_LONGEST = 10_000  # maximum characters of a line
_MOST = 20_000  # maximum number of lines
_NAMED = 8  # number of cases that a note names for one reason

Precision = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"]
# Bounds wide enough for real values; within them, every quotient of two values is finite.
Seconds = Annotated[float, Field(ge=1e-12, lt=1e6, allow_inf_nan=False)]
Rate = Annotated[float, Field(ge=1.0, le=1e21, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=1 << 62)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,60}/(fp64|fp32|tf32|bf16|fp16|fp8|int8)(/[A-Za-z0-9.-]{1,60})?$")]
Layout = Literal["nchw", "channels_last"]
Short = Annotated[str, Field(max_length=400)]


class _Line(BaseModel, defer_build=True):
    model_config = ConfigDict(frozen=True, strict=True)


class _Environment(_Line):
    fleetmark: Literal["torch_ops"]
    format: Literal[1]
    torch: Short
    device: Short
    name: Short
    runtime: Short
    isa: Short
    onednn_isa: Short
    threads: Count
    grade: Literal["basic", "fused", "long-tail"]
    power_cap: Annotated[float, Field(gt=0, lt=1e6, allow_inf_nan=False)] | None = None


class _Sustained(_Line):
    sustained: Precision
    rate: Rate
    clock: Rate | None
    power: Annotated[float, Field(gt=0, lt=1e6, allow_inf_nan=False)] | None


class _Roof(_Line):
    roof: Precision | Literal["memory"]
    rate: Rate


class _Case(_Line):
    case: Name
    flops: Annotated[float, Field(ge=0, lt=1e21, allow_inf_nan=False)]
    bytes: Annotated[int, Field(gt=0, le=1 << 60)]
    n: Annotated[int, Field(gt=0, le=1 << 30)]
    throttled: Count
    error: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    right: bool
    best: Seconds
    median: Seconds
    q1: Seconds
    q3: Seconds
    host: Seconds | None = None
    graph: Seconds | None = None
    no_graph: Short | None = None
    layout: Layout | None = None
    layouts: Mapping[Layout, Seconds] = Field(default_factory=dict)

    @property
    def is_launch_bound(self) -> bool:
        return self.host is not None and self.host >= self.median

    @property
    def device_time(self) -> float:
        """Return the time that rates and shares of roofs are based on: that of the CUDA graph, if it is shorter."""
        return min(self.median, self.graph or self.median)


class _Skip(_Line):
    skip: Name
    why: Short


class _Fail(_Line):
    fail: Name
    why: Short


class _Counts(_Line):
    cases: Count
    skipped: Count
    failed: Count
    wrong: Count


class _End(_Line):
    end: _Counts
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]


_KINDS: Mapping[str, type[_Line]] = {
    "fleetmark": _Environment,
    "roof": _Roof,
    "sustained": _Sustained,
    "case": _Case,
    "skip": _Skip,
    "fail": _Fail,
    "end": _End,
}


@dataclass(kw_only=True, slots=True)
class _OperatorRun:
    """The sorted lines of one output."""

    environment: _Environment | None = None
    roofs: dict[str, float] = field(default_factory=dict)
    sustained: list[_Sustained] = field(default_factory=list)
    cases: dict[str, _Case] = field(default_factory=dict)
    skips: list[_Skip] = field(default_factory=list)
    fails: list[_Fail] = field(default_factory=list)
    end: _End | None = None


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every timed case. Raise ParseError for an unknown kind of line, and if there is no timed case."""
    text = decode(raw)
    run = _read(text)
    if run.environment is None:
        raise ParseError(_TOOL, "the line of its environment", line=1, got=text.strip().split("\n")[0][:100])
    if not run.cases and not run.roofs:
        reasons = [f.why for f in run.fails] + [s.why for s in run.skips]
        raise ParseError(_TOOL, "a case that was timed", got=reasons[0] if reasons else "none")
    measurements = [*_roofs(run), *(m for case in run.cases.values() for m in _of_case(case, run.roofs))]
    environment = run.environment
    runtime = f", {environment.runtime}" if environment.runtime else ""
    parsed = Parsed(
        _TOOL, tuple(measurements), f"{environment.torch} ({environment.device}{runtime})", notes=tuple(_notes(run))
    )
    if broken := _broken(run, text):
        return replace(parsed, invalid=broken)
    wrong = [c for c in run.cases.values() if not c.right]
    if not wrong and not run.fails:
        return parsed
    cases = tuple([c.case for c in wrong] + [f.fail for f in run.fails])
    return replace(parsed, invalid="; ".join(_blame(wrong, run.fails)), invalid_cases=cases)


def _read(text: str) -> _OperatorRun:
    run = _OperatorRun()
    for n, line in numbered(text):
        if n > _MOST:
            raise ParseError(_TOOL, f"at most {_MOST} lines", line=n, got=line[:100])
        if not line.startswith("{") or not line.endswith("}"):
            continue  # a library's warning, or an incomplete last line
        _sort(run, _line(n, line))
    return run


def _line(n: int, line: str) -> _Line:
    if len(line) > _LONGEST:
        raise ParseError(_TOOL, f"lines of at most {_LONGEST} characters", line=n, got=line[:100])
    try:
        values: Any = json.loads(line)
        kind = next((model for key, model in _KINDS.items() if key in values), None)
        if kind is None:
            raise ParseError(_TOOL, "a line of torch_ops", line=n, got=line[:100])
        return kind.model_validate(values)
    except (ValueError, RecursionError) as error:
        first = error.errors(include_url=False, include_input=False)[0] if isinstance(error, ValidationError) else None
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else "no JSON"
        raise ParseError(_TOOL, "a line of torch_ops", line=n, got=f"{line[:60]} ({problem})") from None


def _sort(run: _OperatorRun, line: _Line) -> None:
    match line:
        case _Environment():
            run.environment = line
        case _Roof():
            run.roofs[line.roof] = line.rate
        case _Sustained():
            run.sustained.append(line)
        case _Case():
            run.cases[line.case] = line
        case _Skip():
            run.skips.append(line)
        case _Fail():
            run.fails.append(line)
        case _End():
            run.end = line


def _roofs(run: _OperatorRun) -> Iterator[Measurement]:
    for roof, rate in run.roofs.items():
        metric, unit = ("memory_rate", "B/s") if roof == "memory" else ("peak", "FLOP/s")
        yield Measurement(_TOOL, f"roof/{roof}", metric, rate, unit, better=Better.HIGHER)
    for line in run.sustained:
        case = f"roof/{line.sustained}"
        yield Measurement(_TOOL, case, "sustained_peak", line.rate, "FLOP/s", better=Better.HIGHER)
        if line.clock:
            yield Measurement(_TOOL, case, "sustained_clock", line.clock, "1/s", better=Better.NONE)
        if line.power:
            yield Measurement(_TOOL, case, "sustained_power", line.power, "W", better=Better.NONE)
    if run.environment and run.environment.power_cap:
        yield Measurement(_TOOL, "roof", "device_power_cap", run.environment.power_cap, "W", better=Better.NONE)
    shares = [min(share, 1.0) for c in run.cases.values() if c.right and (share := _share(c, run.roofs))]
    if shares:
        mean = math.exp(sum(map(math.log, shares)) / len(shares))
        yield Measurement(_TOOL, "roof", "mean_roof_share", mean, "1", better=Better.NONE)


def _of_case(c: _Case, roofs: Mapping[str, float]) -> Iterator[Measurement]:
    def one(metric: str, value: float, unit: str, better: Better = Better.NONE) -> Measurement:
        return Measurement(_TOOL, c.case, metric, value, unit, better=better)

    if c.flops / c.bytes >= COMPUTES:
        yield one("flops", c.flops / c.device_time, "FLOP/s", Better.HIGHER)
    else:
        yield one("bandwidth", c.bytes / c.device_time, "B/s", Better.HIGHER)
    yield one("time", c.median, "s")
    yield one("time_best", c.best, "s")
    for metric, seconds in (("time_host", c.host), ("time_graph", c.graph)):
        if seconds is not None:
            yield one(metric, seconds, "s")
    if c.host is not None:
        yield one("launch_ratio", c.host / c.median, "1")
    for layout, seconds in c.layouts.items():
        yield one(f"time_{layout}", seconds, "s")
    if c.q3 > c.q1:
        yield one("time_iqr", c.q3 - c.q1, "s")
    if share := _share(c, roofs):
        yield one("roof_share", share, "1")
        yield one("balance", c.flops / c.bytes / (roofs[_precision(c)] / roofs["memory"]), "1")
    if c.error is not None:
        yield one("error", c.error, "1")


def _precision(c: _Case) -> str:
    return c.case.split("/")[1]


def _share(c: _Case, roofs: Mapping[str, float]) -> float | None:
    """Return the minimum time that the roofs allow over the time on the device; None if a roof is unknown."""
    peak, memory = roofs.get(_precision(c)), roofs.get("memory")
    if peak is None or memory is None:
        return None
    return max(c.flops / peak, c.bytes / memory) / c.device_time


def _broken(run: _OperatorRun, text: str) -> str | None:
    """Return why the output as a whole is not valid; None if it is."""
    if run.end is None:
        return cut_in_line(text) or cut("its last line, the end, is absent")
    counted, listed = run.end.end, len(run.cases)
    if counted.cases != listed or counted.failed != len(run.fails):
        return cut(f"{counted.cases} cases were timed, and {listed} are there")
    return None


def _blame(wrong: Sequence[_Case], fails: Sequence[_Fail]) -> Iterator[str]:
    """Return the names of the first few cases that were wrong or failed, with the problem."""
    for c in wrong[:_NAMED]:
        error = "is not a number" if c.error is None else f"is off by {c.error:.2g}, and {c.tolerance:.2g} is allowed"
        yield f"{c.case} computes a wrong result: it {error}"
    for f in fails[:_NAMED]:
        yield f"{f.fail} failed: {f.why}"
    if (more := len(wrong) + len(fails) - len(wrong[:_NAMED]) - len(fails[:_NAMED])) > 0:
        yield f"and {more} more"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _notes(run: _OperatorRun) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for skip in run.skips:
        by_reason.setdefault(skip.why, []).append(skip.skip)
    for reason, names in by_reason.items():
        yield f"skipped {_listed(names)}: {reason}"
    bound = [c for c in run.cases.values() if c.is_launch_bound]
    if graphs := [c.case for c in bound if c.graph is not None]:
        yield f"launch-bound, so rated by their time as one CUDA graph (time_graph): {_listed(graphs)}"
    if others := [c.case for c in bound if not c.graph]:
        yield f"launch-bound, so rated by the time of the host's start, as no graph was timed: {_listed(others)}"
    for layout in ("nchw", "channels_last"):
        if faster := [c.case for c in run.cases.values() if c.layout == layout]:
            yield f"the layout {layout} is the faster one for {_listed(faster)}"
    if dropped := sum(c.throttled for c in run.cases.values()):
        yield f"{dropped} calls were dropped since the device throttled"
    if run.environment and run.environment.onednn_isa:
        yield f"ONEDNN_MAX_CPU_ISA is {run.environment.onednn_isa}, which limits the rates"
