"""Fit efficiencies to measured points of serving, and measure the errors on chips that the fit has not seen.

The method is a robust least-squares fit of the logarithms of TTFT and TPOT. Every chip has the same total weight. Each
efficiency is shrunk towards a usual value, so that it keeps this value if the points give no information on it. A
software on a generation of chips may deviate by three factors, which are shrunk towards 1 (ridge regression). The
intervals come from the errors on chips that were left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import t as student_t

from fleetmark.planner.predict.serving.architecture import Architecture
from fleetmark.planner.predict.serving.calibration import METRICS, Calibration, efficiency, group
from fleetmark.planner.predict.serving.frontier import passes
from fleetmark.planner.predict.serving.queue import Service, service
from fleetmark.planner.predict.serving.roofline import OPERATORS, Chip, Efficiency, Layout, Step, seconds

# Usual values of the efficiencies, and the standard deviations of their logarithms.
_USUAL: Mapping[str, tuple[float, float]] = {
    "compute projections": (0.6, 0.1),
    "compute experts": (0.2, 0.7),
    "compute attention": (0.3, 0.5),
    "traffic projections": (0.7, 0.3),
    "traffic experts": (0.6, 0.3),
    "traffic attention": (0.5, 0.5),
    "wire": (0.5, 0.5),
    "launch": (30e-6, 1.0),
    "collective": (10e-6, 1.0),
    "step": (0.5e-3, 1.0),
    "overlap": (1.0 - 1e-6, 0.5),
    "waiting": (1.0, 1.0),
    "prefill": (10e-3, 1.0),
}
_SHARES = ("compute", "traffic", "wire")  # efficiencies that are at most 1
# Standard deviations of the logarithms of paces.
_PACES: Mapping[str, float] = {"launch": 1.5, "prompt": 0.5, "step": 0.1}
_NOISE = 0.15  # standard deviation of a point's logarithm around the model


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A measured load.

    ``prompt`` and ``answer`` are in tokens; ``ttft`` and ``tpot`` in s. ``rate`` is the number of answer tokens per
    second and GPU. ``software`` is the serving engine.
    """

    chip: Chip
    model: Architecture
    precision: str
    layout: Layout
    software: str
    prompt: float
    answer: float
    streams: float
    ttft: float
    tpot: float
    rate: float

    @property
    def group(self) -> str:
        """Return the software and the generation of the chip."""
        return group(self.software, self.chip)


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of predictions, one per point: logarithms of predicted over measured values.

    ``is_known`` is True if the fit had points of the same software on another chip of the generation.
    """

    chips: tuple[str, ...]
    is_known: Any
    logs: Mapping[str, Any]


def fit(points: Sequence[Point]) -> Calibration:
    """Return the efficiencies that fit the points best, without the widths of intervals."""
    work = _stacked(points)
    chips = [p.chip.name for p in points]
    weight = np.sqrt(_weights(chips) * len(points))
    logs = np.log([[p.ttft, p.tpot] for p in points]).T
    centre = np.log([v for v, _ in _USUAL.values()])
    spread = np.array([s for _, s in _USUAL.values()])
    groups = sorted({p.group for p in points})
    member = np.array([groups.index(p.group) for p in points])
    n, m = len(_USUAL), len(groups)
    drawn = np.repeat(list(_PACES.values()), m)

    def parts(x: Any) -> tuple[dict[str, float], dict[str, Any]]:
        paces = {k: np.exp(x[n + i * m : n + (i + 1) * m]) for i, k in enumerate(_PACES)}
        return dict(zip(_USUAL, np.exp(x[:n]), strict=True)), paces

    def residuals(x: Any) -> Any:
        values, paces = parts(x)
        s = _served(work, efficiency(values, {k: v[member] for k, v in paces.items()}))
        misses = [weight * (np.log(s.ttft) - logs[0]), weight * (np.log(s.tpot) - logs[1])]
        return np.concatenate([*(miss / _NOISE for miss in misses), (x[:n] - centre) / spread, x[n:] / drawn])

    highest = np.array([0.0 if k.startswith(_SHARES) else math.inf for k in _USUAL] + [math.inf] * len(drawn))
    start = np.concatenate([centre, np.zeros(len(drawn))])
    best = least_squares(residuals, start, bounds=(-math.inf, highest), loss="soft_l1")
    values, paces = parts(best.x)
    by_group = {g: {k: float(v[j]) for k, v in paces.items()} for j, g in enumerate(groups)}
    return Calibration({k: float(v) for k, v in values.items()}, by_group)


def left_out(points: Sequence[Point]) -> Errors:
    """Return the errors of predictions for each chip, using a fit to the points of all other chips."""
    chips: list[str] = []
    known: list[bool] = []
    logs: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for chip in dict.fromkeys(p.chip.name for p in points):
        others = [p for p in points if p.chip.name != chip]
        tested = [p for p in points if p.chip.name == chip]
        calibration = fit(others)
        chips += [chip] * len(tested)
        known += [p.group in calibration.paces for p in tested]
        for metric, errors in errors_of(calibration, tested).items():
            logs[metric] += list(errors)
    return Errors(tuple(chips), np.array(known), {k: np.array(v) for k, v in logs.items()})


def errors_of(calibration: Calibration, points: Sequence[Point]) -> dict[str, Any]:
    """Return the logarithms of predicted over measured values, by metric."""
    paces = [calibration.pace(p.group) for p in points]
    e = efficiency(calibration.efficiencies, {k: np.array([pace[k] for pace in paces]) for k in _PACES})
    s = _served(_stacked(points), e)
    rate = s.rate * np.array([p.streams / p.layout.gpus for p in points])
    return {
        "ttft": np.log(s.ttft / np.array([p.ttft for p in points])),
        "tpot": np.log(s.tpot / np.array([p.tpot for p in points])),
        "rate": np.log(rate / np.array([p.rate for p in points])),
    }


def widths(errors: Errors, level: float) -> dict[str, dict[str, float]]:
    """Return half the widths of intervals as logarithms: by whether the software is known, then by metric.

    Errors on one chip are correlated, so the unit is the chip and not the point. A width is Student's t, with one
    degree of freedom per chip, times the root mean square over chips of their root mean squared errors. If no chip was
    in that position, all chips count. The width for new software is never smaller.
    """
    chips = np.array(errors.chips)
    table: dict[str, dict[str, float]] = {}
    for key, is_known in (("known", True), ("new", False)):
        chosen = errors.is_known == is_known
        chosen = chosen if chosen.any() else np.ones_like(chosen)
        of_chips = [chosen & (chips == chip) for chip in dict.fromkeys(chips[chosen])]
        quantile = float(student_t.ppf((1 + level) / 2, len(of_chips)))
        table[key] = {
            k: quantile * math.sqrt(sum(np.mean(v[c] ** 2) for c in of_chips) / len(of_chips))
            for k, v in errors.logs.items()
        }
    table["new"] = {k: max(v, table["known"][k]) for k, v in table["new"].items()}
    return table


def covered(points: Sequence[Point], level: float) -> dict[str, Any]:
    """Return for each point of ``left_out`` whether its interval covers it, by metric.

    The width for a chip comes only from the other chips, each of them left out in turn.
    """
    inside: dict[str, list[bool]] = {metric: [] for metric in METRICS}
    errors = left_out(points)
    chips = np.array(errors.chips)
    for chip in dict.fromkeys(errors.chips):
        table = widths(left_out([p for p in points if p.chip.name != chip]), level)
        here = chips == chip
        for metric, logs in errors.logs.items():
            wide = np.where(errors.is_known[here], table["known"][metric], table["new"][metric])
            inside[metric] += list(np.abs(logs[here]) <= wide)
    return {k: np.array(v) for k, v in inside.items()}


def _weights(chips: Sequence[str]) -> Any:
    """Return a weight for each point, so that every chip has the same total weight and all weights add up to 1."""
    return np.array([1 / chips.count(c) / len(set(chips)) for c in chips])


@dataclass(frozen=True, slots=True)
class _Work:
    """The passes of several points as arrays: those over one prompt, and those of one decode step."""

    prefill: Step
    decode: Step
    streams: Any
    answer: Any


def _stacked(points: Sequence[Point]) -> _Work:
    parts = [
        passes(p.model, p.chip, p.precision, p.layout, prompt=p.prompt, answer=p.answer, streams=p.streams)
        for p in points
    ]
    return _Work(
        _stack([p for p, _, _ in parts]),
        _stack([d for _, d, _ in parts]),
        np.array([s for _, _, s in parts]),
        np.array([p.answer for p in points]),
    )


def _stack(steps: Sequence[Step]) -> Step:
    return Step(
        compute={k: np.array([s.compute[k] for s in steps]) for k in OPERATORS},
        traffic={k: np.array([s.traffic[k] for s in steps]) for k in OPERATORS},
        wire=np.array([s.wire for s in steps]),
        collectives=np.array([s.collectives for s in steps]),
        layers=np.array([s.layers for s in steps]),
    )


def _served(work: _Work, e: Efficiency) -> Service:
    return service(seconds(work.prefill, e), seconds(work.decode, e) * e.step_pace, work.streams, work.answer, e)
