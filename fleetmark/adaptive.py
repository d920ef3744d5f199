"""Repeats until they suffice: which cases are done, which blocks were disturbed, and what never settled."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from fleetmark.model import Status
from fleetmark.outcome import Outcome
from fleetmark.steps import Step
from planner.stability import disturbed, half_width, warm_up

CHECK_EVERY = 5  # repeats: looking more often would cost coverage
CURVE = 4  # points from which on a metric is a curve, which its largest size stands for


@dataclass(frozen=True, slots=True)
class Until:
    """What was asked: the half-width of the median's interval (a part of it), and how few and how many repeats."""

    ci: float
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Enough:
    """A case needs no more repeats on this host."""

    repeats: int
    half_width: float
    warm_up: int


@dataclass(frozen=True, slots=True)
class Unstable:
    """A case whose interval is still wide after all repeats."""

    repeats: int
    half_width: float | None


@dataclass(frozen=True, slots=True)
class Rejected:
    """A repeat of all the workload's cases on this host that others' work disturbed."""

    repeat: int
    reason: str


@dataclass(slots=True)
class _Case:
    values: dict[tuple[str, str], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    foreign: dict[int, float] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)


class Adaptive:
    """Hears every outcome and says what follows from it."""

    def __init__(self, until: Until, cpus: dict[str, int]) -> None:
        self.until, self.cpus = until, cpus
        self.cases: dict[tuple[str, str, str, str], _Case] = defaultdict(_Case)
        self.rejected: dict[tuple[str, str, int], str] = {}
        self.done: set[tuple[str, str, str, str]] = set()

    def heard(self, host: str, step: Step, outcome: Outcome) -> Iterator[Enough | Unstable | Rejected]:
        """What the end of ``step`` changes: a block rejected, a case that is done or will not settle."""
        key = (host, step.workload, step.case, step.subject)
        case = self.cases[key]
        case.ended.add(step.repeat)
        if outcome.status is Status.PASSED:
            for row in outcome.rows:
                if row["headline"] and row["subject"] == step.subject:
                    case.values[row["metric"], row["labels"]][step.repeat] = row["value"]
            if outcome.foreign_cores is not None:
                case.foreign[step.repeat] = outcome.foreign_cores
        for repeat, cores in disturbed(case.foreign, self.cpus.get(host, 1)).items():
            if (host, step.workload, repeat) not in self.rejected:
                reason = f"disturbed: {cores:.2f} cores of others' work above the usual during {step.case}"
                self.rejected[host, step.workload, repeat] = reason
                yield Rejected(repeat, reason)
        if key in self.done:
            return
        counted = sorted(r for r in case.ended if (host, step.workload, r) not in self.rejected)
        if len(counted) >= self.until.least and (len(counted) - self.until.least) % CHECK_EVERY == 0:
            widths = [self._width(series, counted) for series in _headlines(case)]
            if widths and all(w is not None and w[0] <= self.until.ci for w in widths):
                self.done.add(key)
                known = [w for w in widths if w is not None]
                yield Enough(len(case.ended), max(w for w, _ in known), max(k for _, k in known))
                return
        if len(case.ended) >= self.until.most:
            self.done.add(key)
            known = [w for s in _headlines(case) if (w := self._width(s, counted)) is not None]
            yield Unstable(len(case.ended), max((w for w, _ in known), default=None))

    def _width(self, series: dict[int, float], counted: list[int]) -> tuple[float, int] | None:
        """Half-width after the warm-up, and how long that was."""
        values = [series[r] for r in counted if r in series]
        start = warm_up(values)
        width = half_width(values[start:])
        return None if width is None else (width, start)


def _headlines(case: _Case) -> list[dict[int, float]]:
    """The series that decide: all of a few points, the largest size of a curve."""
    by_metric: dict[str, list[tuple[float, dict[int, float]]]] = defaultdict(list)
    for (metric, labels), series in case.values.items():
        size = str(json.loads(labels).get("size", ""))
        by_metric[metric].append((float(size) if size.replace(".", "", 1).isdigit() else 0.0, series))
    found = []
    for points in by_metric.values():
        largest = max(size for size, _ in points)
        found += [series for size, series in points if len(points) < CURVE or size == largest]
    return found
