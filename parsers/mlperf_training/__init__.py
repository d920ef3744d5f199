"""Parse MLPerf Training's logs: the time to train to the target, and the evaluations during training.

Case: the benchmark as the log names it (``bert``), or ``training`` if the log does not name it. Metrics:
``time_to_train`` (s, lower): run_stop minus run_start, only for runs with success in run_stop; ``eval_accuracy`` (1,
higher), ``eval_loss`` or ``eval_error`` (1, lower), ``eval_fid`` (lower) and ``eval_clip`` (higher): the evaluation
that ended the run, under the name of its actual kind, because every log calls it eval_accuracy. The two evaluations of
Mask R-CNN have the label ``of``. The same names with ``_at``: every evaluation, with the progress that the log counts
as a label (``samples``, ``epoch``, ``tokens``, ``step``; and ``eval``, a number, if several evaluations have the same
count). ``throughput`` (1/s, higher): of samples (gpt3: of tokens), the lower median of the printed figures. Descriptive
metrics: ``samples_to_train``, ``epochs_to_train`` (``tokens_``, ``steps_``) at that last evaluation, ``seed``,
``global_batch_size``, ``target`` if printed. Several runs in a log have the label ``run``, counted from 0.

A run that did not converge keeps its evaluations and is invalid. A run that did not end is an error. If it is the last
of several runs, the log is truncated and therefore invalid. Results that MLCommons did not publish are unverified, so
every result is marked as such.

Source: mllog and the compliance checker of mlcommons/logging 4.1 (rulesets 0.6 to 6.1), and results of rounds v0.5,
v0.6, v0.7, v1.0, v3.1, v4.0, v5.0 and v5.1. v0.5 and v0.6 printed ``:::MLPv0.5.0`` and ``:::MLL`` lines, in seconds.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import BinaryIO

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed, Standing
from fleetmark.parsers.kit.mllog import DamagedError, MllogLines
from fleetmark.parsers.mlperf_training.lines import Reader
from fleetmark.parsers.mlperf_training.quality import groups, unit_of
from fleetmark.parsers.mlperf_training.run import Run, plain, runs

_TOOL = "mlperf_training"
_CASE = "training"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_UNFILLED = re.compile(r"placeholder|unknown|your_|reference_implementation|\bn/?a\b|\bnone\b|^\W*$", re.IGNORECASE)
_MOST_NOTES = 20
_MOST_GROUPS = 3  # maximum named in one sentence
_LONGEST = 366 * 86_400_000.0  # ms: a clock that was set during a run
_TO_TRAIN = {"samples": "samples", "epoch": "epochs", "tokens": "tokens", "step": "steps"}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of every run in ``raw``; ``command`` is not needed. Raise ParseError if no run ended."""
    return parse_stream(io.BytesIO(raw), command)


def parse_stream(file: BinaryIO, command: Sequence[str] = ()) -> Parsed:
    """Parse an open file like ``parse``, line by line."""
    reader = Reader()
    try:
        found_runs, before = runs(reader.read(MllogLines(file)))
    except DamagedError as error:
        raise ParseError(_TOOL, "a log that can be unpacked", got=str(error)) from error
    if not found_runs:
        raise _no_run(reader, before)
    judged = [_Judged(run) for run in found_runs]
    some = [j for j in judged if not j.error]
    if not some:
        raise judged[0].failure(reader)
    several = len(judged) > 1
    measurements = [
        m for n, one in enumerate(judged) if not one.error for m in one.measurements({"run": str(n)} if several else {})
    ]
    good = any(not one.invalid for one in some)
    invalid = _cut(judged) or (None if good else some[0].invalid)
    notes = [*_notes(judged), *_overlaps(found_runs)]
    return Parsed(_TOOL, tuple(measurements), found_runs[0].version, invalid, _few(notes), standing=Standing.UNVERIFIED)


def _cut(judged: Sequence[_Judged]) -> str | None:
    """Return a sentence if the text ends within the last of several runs, or before it."""
    last = judged[-1]
    if not last.run.ended and last.error:
        return f"the output is cut: expected {last.error}"
    if last.run.followed:
        return f"the output is cut: the run that sets itself up on line {last.run.followed} has no run_start"
    if not last.run.throughputs and any(one.run.throughputs for one in judged):
        return "the output is cut: the last run has no throughput, and others have"
    return None


def _notes(judged: Sequence[_Judged]) -> Iterator[str]:
    """Yield the notes of all runs. With several runs, a note names its run unless it applies to all."""
    if len(judged) == 1:
        yield from judged[0].notes()
        return
    places_by_note: dict[str, list[int]] = {}
    for n, one in enumerate(judged):
        for note in dict.fromkeys(one.notes()):
            places_by_note.setdefault(note, []).append(n)
        if bad := f"left out: expected {one.error}" if one.error else one.invalid:
            places_by_note.setdefault(bad, []).append(n)
    for note, places in places_by_note.items():
        listed = ", ".join(map(str, places[:10])) + (", …" if len(places) > 10 else "")
        yield note if len(places) == len(judged) else f"run{'s' if len(places) > 1 else ''} {listed}: {note}"


class _Judged:
    """A run and its verdict. ``error``: what the run lacks; ``invalid``: why it has no time to train."""

    def __init__(self, run: Run) -> None:
        self.run = run
        benchmark = run.fact("benchmark")
        self.benchmark = benchmark if isinstance(benchmark, str) and _NAME.fullmatch(benchmark) else None
        self.groups = groups(run, self.benchmark)
        self.time: float | None = None
        self.error: str | None = None
        self.line: int | None = None
        self.got: str | None = None
        self.remark = ""
        self.invalid = self._judge()
        if self.invalid and not (run.evals or run.throughputs):
            self.error, self.line = f"a run that trains: {self.invalid}, and nothing was evaluated", run.stop_line

    def _judge(self) -> str | None:
        run = self.run
        if not run.ended:
            if self.benchmark == "minigo" and run.result is not None and run.result > 0:
                self.time, self.remark = run.result, "time_to_train is the value of eval_result"
            else:
                self.error = self._cut()
            return None
        if not self._succeeded():
            return self._aborted()
        self.line = run.stop_line
        if run.start is None or run.stop is None:
            self.error = f"a time in ms since the epoch at {'run_start' if run.start is None else 'run_stop'}"
            self.line = run.line if run.start is None else run.stop_line
        elif run.stop <= run.start:
            self.error = f"run_stop later than run_start (line {run.line}: {plain(run.start)} ms)"
            self.got = f"{plain(run.stop)} ms"
        elif run.stop - run.start > _LONGEST:
            self.error = f"run_stop within a year of run_start (line {run.line}: {plain(run.start)} ms)"
            self.got = f"{plain(run.stop)} ms"
        else:
            self.time = round((run.stop - run.start) / 1000, 6)
            self.remark = "time_to_train is derived: run_stop less run_start"
        return None

    def _succeeded(self) -> bool:
        """Return whether run_stop reports success; without a status (v0.5), whether the printed target was reached."""
        if self.run.statuses:
            return self.run.successful
        return any(group.reached and group.printed is not None for group in self.groups)

    def _aborted(self) -> str:
        run = self.run
        status = f"says {' and '.join(_say(s) for s in run.statuses)}" if run.statuses else "does not say success"
        reason = f" ({_say(run.reason)})" if run.reason else ""
        bests = [group.best() for group in self.groups[:_MOST_GROUPS]]
        return f"run_stop {status}{reason}: no time to train" + (f" ({', '.join(bests)})" if bests else "")

    def _cut(self) -> str:
        run = self.run
        came = [run.reached] if run.reached else []
        came += [f"{group.title} {plain(group.final.value)}" for group in self.groups[:_MOST_GROUPS]]
        far = f"; it came to {', '.join(came)}" if came else ", nor evaluate anything"
        damaged = next((line for line, key in run.unreadable if key == "run_stop"), None)
        unread = f"; the one on line {damaged} cannot be read" if damaged else ""
        return f"a run_stop: the run that began on line {run.line} did not end{far}{unread}"

    def failure(self, reader: Reader) -> ParseError:
        """Return the error to raise if this is the only run."""
        if not self.run.ended:
            last = reader.last.decode("utf-8", "replace").strip()
            return ParseError(_TOOL, self.error or "", line=reader.line, got=last)
        return ParseError(_TOOL, self.error or "", line=self.line, got=self.got)

    def measurements(self, labels: Mapping[str, str]) -> Iterator[Measurement]:
        run, case = self.run, self.benchmark or _CASE

        def measurement(
            metric: str, value: float, better: Better = Better.NONE, unit: str = "1", /, **more: str
        ) -> Measurement:
            return Measurement(_TOOL, case, metric, value, unit, better=better, labels={**more, **labels})

        if self.time is not None:
            yield measurement("time_to_train", self.time, Better.LOWER, "s")
            if to_train := self._to_train():
                yield measurement(*to_train)
        for group in self.groups:
            metric, better = group.quality.metric, group.quality.better
            yield measurement(metric, group.final.value, better, "1", **group.labels)
            for point, value in group.points:
                yield measurement(f"{metric}_at", value, better, "1", **group.labels, **point)
        if run.throughputs:
            middle = sorted(run.throughputs)[(len(run.throughputs) - 1) // 2]
            yield measurement("throughput", middle, Better.HIGHER, "1/s")
        for name in ("seed", "global_batch_size", "target"):
            if (fact := run.fact(name)) is not None:
                yield measurement(name, fact)

    def _to_train(self) -> tuple[str, float] | None:
        """Return the amount of training up to the target, as counted at the last evaluation, or else at run_stop."""
        counted = [(g.final.unit, g.final.count) for g in self.groups if g.final.count is not None]
        unit, count = counted[0] if counted else self.run.stopped_at_count or ("", 0.0)
        unit = unit_of(self.run, self.benchmark, unit)
        return (f"{_TO_TRAIN[unit]}_to_train", count) if unit in _TO_TRAIN and count > 0 else None

    def notes(self) -> Iterator[str]:
        run = self.run
        if self.error:
            return
        if self.remark:
            yield self.remark
        if self.time is not None:
            yield from self._doubts()
        for group in self.groups:
            yield from group.notes(self.benchmark or _CASE)
        for line in run.not_numbers:
            yield f"line {line}: an evaluation is not a number"
        for line, key in run.unreadable:
            yield f"line {line}: {key} cannot be read and is left out"
        if len(run.starts) > 1:
            apart = (max(run.starts) - min(run.starts)) / 1000
            yield f"{len(run.starts)} ranks print run_start, up to {apart:g} s apart: the first counts"
        yield from _fact_notes(run)

    def _doubts(self) -> Iterator[str]:
        """Yield notes on signs that contradict a success."""
        run = self.run
        if not self.groups:
            yield "no evaluation, so it is unknown whether the target was reached"
        elif not run.statuses and run.ended:
            yield "run_stop does not report success, but the target in the log was reached"
        for group in self.groups:
            if group.target is not None and group.quality.better is not Better.NONE and not group.reached:
                yield f"run_stop says success, but the {group.best()} is not enough"


def _fact_notes(run: Run) -> Iterator[str]:
    for name in ("org", "platform"):
        values = [_say(v) for v in run.facts.get(name, {})][:5]
        yield from (f"submission_{name} was not filled in: {v!r}" for v in values if _UNFILLED.search(v))
        if len(values) > 1:
            yield f"submission_{name} says {' and '.join(map(repr, values))}"
    org, submitter = run.fact("org"), run.fact("submitter")
    if org and submitter and not (_UNFILLED.search(org) or _UNFILLED.search(submitter)):
        one, other = _letters(org), _letters(submitter)
        if one not in other and other not in one:
            yield f"submission_org says {_say(org)!r}, the system's description {_say(submitter)!r}"
    benchmarks = list(run.facts.get("benchmark", {}))
    if len(benchmarks) > 1:
        yield f"submission_benchmark says {' and '.join(repr(_say(b)) for b in benchmarks[:5])}: the first counts"
    elif not benchmarks:
        yield "no submission_benchmark"
    elif not _NAME.fullmatch(benchmarks[0]):
        yield f"submission_benchmark says {_say(benchmarks[0])!r}, which is not a name"
    for name in ("seed", "global_batch_size", "target"):
        if (count := len(run.facts.get(name, {}))) > 1:
            yield f"{count} values of {name} are printed: the first is kept"


def _overlaps(runs: Sequence[Run]) -> Iterator[str]:
    """Yield notes on overlapping runs: parallel runs, or logs of several ranks that were concatenated."""
    spans = sorted((r.start, r.stop) for r in runs if r.start is not None and r.stop is not None)
    if any(later < stop for (_, stop), (later, _) in pairwise(spans)):
        yield "runs overlap in time: made side by side, or one run's ranks"


def _no_run(reader: Reader, before: Run) -> ParseError:
    expected = "run_start of an MLPerf Training log"
    if before.stop_line is not None:
        return ParseError(_TOOL, f"{expected} before run_stop", line=before.stop_line)
    if reader.loadgen:
        return ParseError(_TOOL, expected, line=reader.loadgen, got="LoadGen's log of MLPerf Inference")
    last = reader.last.decode("utf-8", "replace").strip()
    return ParseError(_TOOL, expected, line=reader.line or None, got=last or "no output")


def _few(notes: Sequence[str]) -> tuple[str, ...]:
    """Return ``notes`` without duplicates, at most ``_MOST_NOTES`` of them."""
    different = list(dict.fromkeys(notes))
    more = len(different) - _MOST_NOTES
    return tuple(different[:_MOST_NOTES] + ([f"and {more} more notes"] if more > 0 else []))


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _say(text: str) -> str:
    """Return ``text`` as part of a sentence."""
    shown = "".join(c if c.isprintable() else " " for c in text[:200])
    return " ".join(shown.split())[:80]
