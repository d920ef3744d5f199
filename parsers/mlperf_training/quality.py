"""Sort a run's evaluations by kind: the one that ended the run, the best one, and the points of the curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetmark.base.measurement import Better
from fleetmark.parsers.mlperf_training import rules
from fleetmark.parsers.mlperf_training.run import Eval, Run, is_close, plain

_CHECKPOINTS = (rules.FID, rules.CLIP)  # evaluated after training, in any order


@dataclass(kw_only=True, frozen=True, slots=True)
class Group:
    """All evaluations of one kind in a run: ``final`` ended it, ``points`` are labels and values of the curve."""

    quality: rules.Quality
    name: str  # distinguishes the two evaluations of Mask R-CNN
    evals: tuple[Eval, ...]
    final: Eval
    points: tuple[tuple[dict[str, str], float], ...]
    numbered: bool  # whether the counts alone do not distinguish the evaluations
    printed: float | None  # the target that the log prints
    target: float | None  # the printed target, or else the target in the rules

    @property
    def title(self) -> str:
        return f"{self.quality.metric} of {self.name}" if self.name else self.quality.metric

    @property
    def labels(self) -> dict[str, str]:
        return {"of": self.name} if self.name else {}

    @property
    def reached(self) -> bool:
        """Return whether an evaluation is as good as the target, or None if unknown."""
        return self.target is not None and any(self.quality.reaches(e.value, self.target) for e in self.evals)

    def best(self) -> str:
        """Return the best evaluation in words, compared with the target if there is one."""
        values = [e.value for e in self.evals]
        if self.quality.better is Better.NONE:
            text = f"last {self.title} {plain(self.final.value)}"
        else:
            best = min(values) if self.quality.better is Better.LOWER else max(values)
            text = f"best {self.title} {plain(best)}"
        if self.target is None:
            return text
        owner = "the rules'" if self.printed is None else "a"
        return f"{text} against {owner} target of {plain(self.target)}"

    def notes(self, benchmark: str) -> Iterator[str]:
        if self.quality.meaning:
            yield f"eval_accuracy of {benchmark} is {self.quality.meaning}"
        if self.quality.better is Better.NONE:
            yield f"whether a higher or a lower eval_accuracy of {benchmark} is better is not known"
        if self.numbered:
            yield f"{self.title}: several evaluations at one count, or without any, have the label eval"


def groups(run: Run, benchmark: str | None) -> list[Group]:
    """Return the evaluations of ``run`` by kind, in order of first appearance."""
    by_kind: dict[tuple[rules.Quality, str], list[Eval]] = {}
    for e in run.evals:
        quality = rules.quality(benchmark, e.key, e.name)
        by_kind.setdefault((quality, "" if quality in _CHECKPOINTS else e.name), []).append(e)
    printed = run.fact("target") if len(by_kind) == 1 else None
    counts = _unit(run, benchmark)
    deciding = _deciding(run, by_kind)
    result = []
    for (quality, name), evals in by_kind.items():
        points, numbered = _points(evals, counts)
        target = rules.target(benchmark, evals[0].name, run.start or 0.0) if printed is None else printed
        final = deciding.get(quality) or _last(run, evals)
        result.append(
            Group(
                quality=quality,
                name=name,
                evals=tuple(evals),
                final=final,
                points=points,
                numbered=numbered,
                printed=printed,
                target=target,
            )
        )
    return result


def _unit(run: Run, benchmark: str | None) -> str:
    """Return what the ``epoch_num`` of this run's evaluations counts."""
    epochs = max((e.count for e in run.evals if e.unit == "epoch" and e.count is not None), default=0.0)
    return rules.counts(benchmark, epochs, run.fact("global_batch_size"))


def unit_of(run: Run, benchmark: str | None, unit: str) -> str:
    """Return ``unit`` as the log names it, or the unit that is actually counted."""
    return _unit(run, benchmark) if unit == "epoch" else unit


def _last(run: Run, evals: Sequence[Eval]) -> Eval:
    """Return the evaluation that ended the run: the last one not after run_stop, by time or position."""
    within = [
        e
        for e in evals
        if run.stop_line is None or e.line < run.stop_line or (e.time and run.stop and e.time <= run.stop)
    ] or evals
    if all(e.time is not None for e in within):
        return max(within, key=lambda e: (e.time or 0.0, e.line))
    return within[-1]


def _deciding(run: Run, by_kind: dict[tuple[rules.Quality, str], list[Eval]]) -> dict[rules.Quality, Eval]:
    """Return the evaluations of the deciding checkpoint, if checkpoints are evaluated later.

    It is the first checkpoint that is good enough by all evaluations, or else the last.
    """
    checkpoints: dict[float, dict[rules.Quality, Eval]] = {}
    kinds = [quality for quality, _ in by_kind if quality in _CHECKPOINTS]
    for quality in kinds:
        for e in by_kind[quality, ""]:
            if e.count is not None:
                checkpoints.setdefault(e.count, {}).setdefault(quality, e)
    complete = sorted(count for count, evaluations in checkpoints.items() if len(evaluations) == len(kinds))
    if not complete:
        return {}
    good = [
        count
        for count in complete
        if all(q.reaches(e.value, rules.target(None, e.name, _ANY) or 0.0) for q, e in checkpoints[count].items())
    ]
    return checkpoints[good[0] if good and run.successful else complete[-1]]


_ANY = float("inf")  # a time after all changes of targets


def _points(evals: Sequence[Eval], counts: str) -> tuple[tuple[tuple[dict[str, str], float], ...], bool]:
    """Return the curve without repeated evaluations, and whether equal counts were numbered."""
    values_by_point: dict[tuple[str, float | None], list[float]] = {}
    points: list[tuple[dict[str, str], float]] = []
    numbered = False
    for e in evals:
        unit = counts if e.unit == "epoch" else e.unit
        values = values_by_point.setdefault((unit, e.count), [])
        if e.count is not None and any(is_close(e.value, v) for v in values[-3:]):
            continue
        values.append(e.value)
        label = {} if e.count is None else {unit: plain(e.count)}
        if e.count is None or len(values) > 1:
            label["eval"] = str(len(values))
            numbered = True
        points.append((label, e.value))
    return tuple(points), numbered
