"""Group records of MLPerf Training into runs: where each begins and ends, its evaluations, and whether it counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fleetmark.parsers.kit.text import number
from fleetmark.parsers.mlperf_training.lines import SYSTEM, UNREADABLE, Record

_RANKS_APART = 60_000.0  # maximum ms between the run_start of several ranks of one run
_MOST_STATUSES = 5
_SAME = 1e-6  # relative difference up to which two figures are the same evaluation, rounded differently
# Names of submission facts; older names are listed with the current ones.
_FACTS = {
    "submission_benchmark": "benchmark",
    "submission_org": "org",
    "submission_platform": "platform",
    "seed": "seed",
    "run_set_random_seed": "seed",
    "global_batch_size": "global_batch_size",
    "target_accuracy": "target",
    "eval_target": "target",
}
_NUMBERS = ("seed", "global_batch_size", "target")
_COUNTS = (("samples_count", "samples"), ("epoch_num", "epoch"), ("epoch", "epoch"), ("step_num", "step"))
_PARTS = ("BBOX", "SEGM")  # evaluations of Mask R-CNN, in the order of a list of two

_ODD = re.compile(r"[^A-Za-z0-9_.+-]")

Facts = dict[str, dict[Any, None]]  # by name, the distinct values in the order printed


@dataclass(kw_only=True, frozen=True, slots=True)
class Eval:
    """One evaluation.

    ``name`` distinguishes several evaluations at one time (FID, BBOX); ``count`` is the training progress.
    """

    line: int
    key: str
    name: str
    value: float
    unit: str
    count: float | None
    time: float | None


@dataclass(kw_only=True, slots=True)
class Run:
    """The log of one run, from its run_start (None if the log begins later) to the run_start of the next run."""

    line: int
    start: float | None
    stop: float | None = None
    stop_line: int | None = None
    statuses: list[str] = field(default_factory=list)
    reason: str = ""
    evals: list[Eval] = field(default_factory=list)
    not_numbers: list[int] = field(default_factory=list)  # lines with values that are not numbers
    unreadable: list[tuple[int, str]] = field(default_factory=list)
    throughputs: list[float] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)
    version: str | None = None
    result: float | None = None  # seconds: minigo evaluates after the run and prints the time
    reached: str = ""  # its progress, in words
    starts: set[float] = field(default_factory=set)  # times of run_start on all ranks
    followed: int | None = None  # the first line after its end on which another run is set up
    stopped_at_count: tuple[str, float] | None = None
    seen: set[tuple[Any, ...]] = field(default_factory=set)

    @property
    def ended(self) -> bool:
        return self.stop_line is not None

    def fact(self, name: str) -> Any:
        """Return the first printed value of a fact, or None if there is none."""
        return next(iter(self.facts.get(name, ())), None)

    @property
    def successful(self) -> bool:
        return set(self.statuses) == {"success"}


def runs(records: Iterable[Record]) -> tuple[list[Run], Run]:
    """Return the runs in a log in order; records before the first one form a run that never started.

    A run_start begins a run. Facts printed between two runs belong to the second. They also belong to the first if it
    has none of its own, because some logs end with the submission facts.
    """
    result: list[Run] = []
    before = Run(line=0, start=None)
    between: Facts = before.facts
    for record in records:
        run = result[-1] if result else None
        if record.key == "run_start":
            if run is None or _begins_another(run, record):
                if run is not None:
                    _inherit(run.facts, between)
                result.append(_begin(record, between, run))
                between = {}
            elif record.time is not None and run.start is not None:
                run.start = min(run.start, record.time)
                run.starts.add(record.time)
        elif record.key == "init_start":
            if run is not None and run.ended:
                run.followed = run.followed or record.line
        elif (name := _FACTS.get(record.key)) or record.key == SYSTEM:
            facts = between if run is None or run.ended else run.facts
            _take_fact(facts, name, record)
        else:
            _take(run or before, record)
        if record.benchmark:
            _add((result[-1] if result else before).facts, "benchmark", record.benchmark)
            (result[-1] if result else before).version = record.version
    if result:
        _inherit(result[-1].facts, between)
    return result, before


def _begin(record: Record, facts: Facts, previous: Run | None) -> Run:
    run = Run(line=record.line, start=record.time, facts={k: dict(v) for k, v in facts.items()})
    if record.time is not None:
        run.starts.add(record.time)
    if previous is not None and (benchmark := previous.fact("benchmark")) is not None and not record.benchmark:
        run.facts.setdefault("benchmark", {benchmark: None})
    return run


def _begins_another(run: Run, record: Record) -> bool:
    """Return whether a run_start after that of ``run`` begins the next run and does not come from another rank."""
    if record.time is None or run.start is None:
        return run.ended or bool(run.evals)
    if record.time in run.starts:
        return False
    return run.ended or bool(run.evals) or abs(record.time - run.start) > _RANKS_APART


def _inherit(facts: Facts, later: Facts) -> None:
    for name, values in later.items():
        facts.setdefault(name, dict(values))


def _take_fact(facts: Facts, name: str | None, record: Record) -> None:
    if name is None:
        submitter = record.value.get("submitter")
        if isinstance(submitter, str) and submitter:
            _add(facts, "submitter", submitter)
    elif name in _NUMBERS:
        if (value := number(record.value)) is not None:
            _add(facts, name, value)
    elif isinstance(record.value, str):
        _add(facts, name, record.value)


def _add(facts: Facts, name: str, value: Any) -> None:
    facts.setdefault(name, {}).setdefault(value)


def _take(run: Run, record: Record) -> None:
    match record.key:
        case "run_stop":
            _take_stop(run, record)
        case "eval_accuracy" | "eval_error":
            _take_eval(run, record)
        case "tracked_stats" if isinstance(record.value, dict):
            _take_throughput(run, record.value.get("throughput"), record)
        case "throughput":
            _take_throughput(run, record.value, record)
        case "eval_result" if run.result is None:
            run.result = number(record.metadata.get("timestamp"))
        case key if key == UNREADABLE:
            run.unreadable.append((record.line, record.value or "record"))
    if not run.ended and (count := _count(record)) and record.key != "tracked_stats":
        run.reached = f"{count[0]} {plain(count[1])}"


def _take_throughput(run: Run, value: object, record: Record) -> None:
    figure = number(value)
    if figure is not None and figure > 0 and _new(run, record, figure):
        run.throughputs.append(figure)


def _take_stop(run: Run, record: Record) -> None:
    if not run.ended:
        run.stop, run.stop_line = record.time, record.line
        run.stopped_at_count = _count(record)
    status = _status(record)
    if status and status not in run.statuses and len(run.statuses) < _MOST_STATUSES:
        run.statuses.append(status)
    words = [record.metadata.get(k) for k in ("reason", "message", "error")]
    run.reason = run.reason or next((w for w in words if isinstance(w, str)), "")
    _take_throughput(run, record.metadata.get("throughput"), record)


def _status(record: Record) -> str:
    """Return the status in run_stop: ``success`` or the log's word for anything else; empty if there is none."""
    status = record.metadata.get("status")
    if status is None and "success" in record.metadata:
        success = str(record.metadata["success"]).lower()
        return "success" if success == "true" else f"success: {success}"
    return status.strip().lower() if isinstance(status, str) else ""


def _take_eval(run: Run, record: Record) -> None:
    name = record.metadata.get("metric")
    unit, count = _count(record) or ("", None)
    for raw_part, value in _parts(record.value, name if isinstance(name, str) else ""):
        part = _ODD.sub("_", raw_part)[:40]
        figure = number(value)
        if figure is None:
            run.not_numbers.append(record.line)
        elif _new(run, record, (part, figure, unit, count)):
            run.evals.append(
                Eval(
                    line=record.line, key=record.key, name=part, value=figure, unit=unit, count=count, time=record.time
                )
            )


def _new(run: Run, record: Record, value: Any) -> bool:
    """Return whether this record is new; ranks, and logs printed twice, repeat records with the same time."""
    identity = (record.key, record.time, value)
    if record.time is not None and identity in run.seen:
        return False
    run.seen.add(identity)
    return True


def _parts(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Return the figures of an evaluation by name, from a number, a mapping (BBOX and SEGM, for example) or a pair."""
    if isinstance(value, dict):
        if "accuracy" in value:
            yield from _parts(value["accuracy"], name)
        else:
            yield from ((str(k), v) for k, v in value.items())
    elif isinstance(value, list) and len(value) == len(_PARTS):
        yield from zip(_PARTS, value, strict=True)
    else:
        yield name, value


def _count(record: Record) -> tuple[str, float] | None:
    """Return the training progress, by the key that has it."""
    for key, unit in _COUNTS:
        if (value := number(record.metadata.get(key))) is not None:
            return unit, value
    return None


def plain(value: float) -> str:
    """Return a figure as people write it: counts without a decimal point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def is_close(one: float, other: float) -> bool:
    """Return whether two figures are equal except for rounding."""
    return abs(one - other) <= _SAME * max(abs(one), abs(other))
