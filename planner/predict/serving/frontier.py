"""Predict the loads of a model on a chip: service and throughput by layout and number of streams, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleetmark.planner.predict.serving.architecture import Architecture
from fleetmark.planner.predict.serving.calibration import Calibration, group
from fleetmark.planner.predict.serving.queue import service
from fleetmark.planner.predict.serving.roofline import (
    Chip,
    Efficiency,
    Layout,
    Step,
    by_operator,
    cache_needed,
    memory_needed,
    seconds,
    step,
)

STREAMS = (4, 8, 16, 32, 64, 128)  # numbers of streams in the points to which efficiencies are fitted
_USABLE = 0.9  # share of the memory for weights and cached tokens; the rest holds activations and the runtime


@dataclass(frozen=True, slots=True)
class Figure:
    """A predicted figure with the bounds of its interval, in base units."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The prediction for a number of streams on a layout.

    ``ttft`` and ``tpot`` are in s. ``speed`` is the number of tokens per second for one user while the answer arrives.
    ``rate`` is the number of answer tokens per second and GPU; ``per_megawatt`` is the same per megawatt of GPUs, or
    None if their power is unknown.
    """

    layout: Layout
    streams: int
    ttft: Figure
    tpot: Figure
    speed: Figure
    rate: Figure
    per_megawatt: Figure | None


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """The time of an operator in a pass, in s.

    ``least`` is the time at the peak of its bound, and ``predicted`` the predicted time. ``bound`` is "compute",
    "memory", "link" or "latency". ``share`` is the share of the bound's peak that software reaches, or None for
    latency.
    """

    operator: str
    least: float
    predicted: float
    bound: str
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The load to predict: ``prompt`` and ``answer`` in tokens, and the serving engine ``software``, empty if not
    chosen.
    """

    model: Architecture
    precision: str
    prompt: int
    answer: int
    software: str


def passes(
    model: Architecture, chip: Chip, precision: str, layout: Layout, *, prompt: float, answer: float, streams: float
) -> tuple[Step, Step, float]:
    """Return the pass over one prompt of each replica, a decode step of all streams, and the streams per replica."""
    replicas = layout.replicas
    first = step(model, chip, precision, layout, streams=replicas, tokens=prompt, context=prompt / 2)
    then = step(model, chip, precision, layout, streams=streams, tokens=1, context=prompt + answer / 2)
    return first, then, max(streams / replicas, 1.0)


def most_streams(question: Question, chip: Chip, layout: Layout) -> float:
    """Return how many streams fit into the memory at their full length, or 0 if the weights do not fit."""
    if not chip.size:
        return math.inf
    room = _USABLE * chip.size - memory_needed(question.model, question.precision, layout)
    each = cache_needed(question.model, layout, 1, question.prompt + question.answer)
    return max(room / each, 0.0)


def loads(
    question: Question,
    chip: Chip,
    layouts: Sequence[Layout],
    calibration: Calibration,
    streams: Sequence[int] = STREAMS,
) -> Iterator[Load]:
    """Yield the loads that fit into the memory, by layout and number of streams."""
    name = group(question.software, chip)
    e, width = calibration.efficiency(name), calibration.width(name)
    for layout in layouts:
        limit = most_streams(question, chip, layout)
        for number in streams:
            if layout.replicas <= number <= limit:
                yield _load(question, chip, layout, number, e, width)


def _load(
    question: Question, chip: Chip, layout: Layout, streams: int, e: Efficiency, width: Mapping[str, float]
) -> Load:
    prompt, answer = question.prompt, question.answer
    first, then, per_replica = passes(
        question.model, chip, question.precision, layout, prompt=prompt, answer=answer, streams=streams
    )
    s = service(seconds(first, e), seconds(then, e) * e.step_pace, per_replica, answer, e)
    rate = _between(float(s.rate) * streams / layout.gpus, width["rate"])
    tpot = _between(float(s.tpot), width["tpot"])
    per_watt = 1e6 / chip.watts if chip.watts else None
    return Load(
        layout=layout,
        streams=streams,
        ttft=_between(float(s.ttft), width["ttft"]),
        tpot=tpot,
        speed=Figure(1 / tpot.value, 1 / tpot.hi, 1 / tpot.lo),
        rate=rate,
        per_megawatt=Figure(*(v * per_watt for v in (rate.value, rate.lo, rate.hi))) if per_watt else None,
    )


def _between(value: float, width: float) -> Figure:
    return Figure(value, value * math.exp(-width), value * math.exp(width))


def best(every: Sequence[Load]) -> list[Load]:
    """Return the loads that no other load beats in both speed and rate, the fastest last."""
    kept: list[Load] = []
    for load in sorted(every, key=lambda one: (-one.speed.value, -one.rate.value)):
        if not kept or load.rate.value > kept[-1].rate.value:
            kept.append(load)
    return kept[::-1]


def operators(question: Question, chip: Chip, load: Load, calibration: Calibration) -> dict[str, list[OperatorTime]]:
    """Return the times of each operator in the prefill of one prompt and in a decode step of a load."""
    e = calibration.efficiency(group(question.software, chip))
    first, then, _ = passes(
        question.model,
        chip,
        question.precision,
        load.layout,
        prompt=question.prompt,
        answer=question.answer,
        streams=load.streams,
    )
    return {
        "prefill": list(_operators(first, e)),
        "decode": list(_operators(then, e, float(e.step_pace))),
    }


def _operators(work: Step, e: Efficiency, pace: float = 1.0) -> Iterator[OperatorTime]:
    for name, time in by_operator(work, e).items():
        predicted = float(time) * pace
        if name == "launches":
            yield OperatorTime(name, 0.0, predicted, "latency", None)
        elif name == "collectives" and work.collectives:
            is_latency = work.collectives * e.collective > work.wire / e.wire
            yield OperatorTime(name, work.wire, predicted, "latency" if is_latency else "link", None)
        elif predicted:
            is_compute = work.compute[name] / e.compute[name] > work.traffic[name] / e.traffic[name]
            least = (work.compute if is_compute else work.traffic)[name]
            share = (e.compute if is_compute else e.traffic)[name] / pace
            yield OperatorTime(name, least, predicted, "compute" if is_compute else "memory", share)
