"""Repeat each case until its interval is narrow enough, and detect disturbed repeats and unstable cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetmark.base.measurement import Status
from fleetmark.campaign.outcome import Outcome
from fleetmark.planner.curves import CURVE, curve_point
from fleetmark.planner.stability import disturbed, half_width, warm_up
from fleetmark.record.steps import Step

CHECK_EVERY = 5  # number of repeats between checks; checking more often would reduce coverage


@dataclass(frozen=True, slots=True)
class Until:
    """The stopping rule: the relative half-width of the median's interval, and the limits on repeats."""

    ci: float
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class Settled:
    """Report a case that needs no more repeats on this host.

    It is precise ``enough``, or has reached the limit. ``repeats`` is the number of finished repeats, of which the
    first ``warm_up`` do not count. ``half_width`` is None if there is no interval.
    """

    repeats: int
    half_width: float | None
    warm_up: tuple[int, ...]
    enough: bool


@dataclass(frozen=True, slots=True)
class Rejected:
    """Report a repeat that other processes or virtual machines disturbed. It covers all cases of the workload in that
    repeat.
    """

    repeat: int
    reason: str


@dataclass(slots=True)
class _Case:
    values: dict[tuple[str, ...], dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    foreign: dict[int, float] = field(default_factory=dict)
    stolen: dict[int, float] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)


class Adaptive:
    """Decide after every outcome which repeats are still needed."""

    def __init__(self, until: Until, cpus: dict[str, int]) -> None:
        self.until, self.cpus = until, cpus
        self.cases: dict[tuple[str, str, str, str], _Case] = defaultdict(_Case)
        self.rejected: set[tuple[str, str, str, int]] = set()
        self.done: set[tuple[str, str, str, str]] = set()

    def remember(self, journal: Iterable[Mapping[str, Any]]) -> None:
        """Restore the decisions that an earlier run of the campaign recorded in the journal."""
        for e in journal:
            if e["e"] == "rejected":
                self.rejected.add((e["host"], e["workload"], e["subject"], e["repeat"]))
            elif e["e"] in ("enough", "unstable"):
                self.done.add((e["host"], e["workload"], e["case"], e["subject"]))

    def heard(self, host: str, step: Step, outcome: Outcome) -> Iterator[Settled | Rejected]:
        """Yield the decisions that follow from a finished ``step``: rejected repeats, and a case that needs no more
        repeats.
        """
        key = (host, step.workload, step.case, step.subject)
        case = self.cases[key]
        case.ended.add(step.repeat)
        if outcome.status is Status.PASSED:
            case.passed.add(step.repeat)
            mine = [r for r in outcome.rows if r["subject"] == step.subject]
            for row in [r for r in mine if r["headline"]] or mine:  # use all figures if the case has no headline
                case.values[row["case"], row["metric"], row["labels"]][step.repeat] = row["value"]
            if outcome.foreign_cores is not None:
                case.foreign[step.repeat] = outcome.foreign_cores
            if outcome.stolen_cores is not None:
                case.stolen[step.repeat] = outcome.stolen_cores
        for taken, cause in (
            (case.foreign, "cores used by other processes"),
            (case.stolen, "cores taken by the hypervisor"),
        ):
            for repeat, cores in disturbed(taken, self.cpus.get(host, 1)).items():
                if (host, step.workload, step.subject, repeat) not in self.rejected:
                    self.rejected.add((host, step.workload, step.subject, repeat))
                    yield Rejected(repeat, f"disturbed: {cores:.2f} {cause} above the usual level during {step.case}")
        if key in self.done:
            return
        counting = sorted(r for r in case.passed if (host, step.workload, step.subject, r) not in self.rejected)
        capped = len(case.ended) >= self.until.maximum
        hopeless = not case.passed and len(case.ended) >= self.until.minimum
        due = len(counting) >= self.until.minimum and (len(counting) - self.until.minimum) % CHECK_EVERY == 0
        if not (due or capped or hopeless):
            return
        widths = [self._width(series, counting) for series in _deciding(case)]
        warm = counting[: max((start for _, start, _ in widths), default=0)]
        half_widths = [width for width, _, _ in widths if width is not None]
        enough = (
            len(half_widths) == len(widths) > 0
            and max(half_widths) <= self.until.ci
            and min(n for _, _, n in widths) >= min(self.until.minimum, self.until.maximum)
        )
        if enough or capped or hopeless:
            self.done.add(key)
            yield Settled(len(case.ended), max(half_widths, default=None), tuple(warm), enough)

    def _width(self, series: dict[int, float], counting: list[int]) -> tuple[float | None, int, int]:
        """Return the half-width after the warm-up, the length of the warm-up, and the number of remaining values."""
        values = [series[r] for r in counting if r in series]
        start = warm_up(values)
        return half_width(values[start:]), start, len(values) - start


def _deciding(case: _Case) -> list[dict[int, float]]:
    """Return the series that the stopping rule checks: every short series, or the largest size of a curve."""
    by_metric: dict[tuple[str, str], list[tuple[float, dict[int, float]]]] = defaultdict(list)
    for (name, metric, labels), series in case.values.items():
        point = curve_point(labels)
        by_metric[name, metric].append((point[1] if point else 0.0, series))
    deciding = []
    for points in by_metric.values():
        largest = max(size for size, _ in points)
        deciding += [series for size, series in points if len(points) < CURVE or size == largest]
    return deciding
