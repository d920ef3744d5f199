"""Parse the log of a DeepSpeed engine: its throughput timer, its configuration and its launcher.

Metrics as in ``parsers/training``. ``samples_per_second`` covers all devices (``CurrSamplesPerSec``). ``step_time`` is
the printed ``train_batch_size`` over this rate. A checkpoint's time is the time between the two lines that begin and
end it. If DeepSpeed's own launcher ran, the log is ``invalid`` without the line ``exits successfully``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.training import CheckpointTime, LoggedStep, TrainingLog, count, divided, parsed, positive

_TOOL = "deepspeed"
_STEP = re.compile(
    r"(?:global_step=|\] [0-9]{1,9}/)([0-9]{1,15}), RunningAvgSamplesPerSec=[^,]{0,40}, "
    r"CurrSamplesPerSec=([0-9.eE+-]{1,40})(?:, MemAllocated=[^,]{0,40}, MaxMemAllocated=([0-9.]{1,30})GB)?"
)
_CONFIG = re.compile(r"\b(train_batch_size) \.{3,} ([0-9]{1,15}) *$")
_WORLD = re.compile(r"\bdist_world_size=([0-9]{1,9})\b")
_TIME = re.compile(r"^(?:[0-9]+: )?\[([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}),([0-9]{3})\]")
_SAVE = re.compile(r"\bCheckpoint (\S{1,100}) is (about to be saved|ready now)!")
_NO_END = "the log has no end marker: DeepSpeed's own launcher did not write it"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one log. Raise ParseError if it has no step."""
    return parsed(_TOOL, raw, read)


def read(lines: Sequence[str]) -> TrainingLog:
    """Return the steps and checkpoints in ``lines``."""
    log = TrainingLog()
    began: dict[str, float] = {}
    is_launched, has_ended = False, False
    for position, line in enumerate(lines):
        if match := _STEP.search(line):
            log.steps.append(_step(position, match))
        elif match := _CONFIG.search(line):
            log.batch = log.batch or positive(match[2])
        elif match := _SAVE.search(line):
            _save(log, position, match, _time(line), began)
        is_launched = is_launched or "[launch.py:" in line
        has_ended = has_ended or "exits successfully" in line
        if match := _WORLD.search(line):
            log.devices = log.devices or positive(match[1])
    log.steps = [replace(s, seconds=divided(log.batch, s.samples)) for s in log.steps]
    if began:
        log.incomplete = cut("a checkpoint save begins but does not end")
    elif is_launched and not has_ended:
        log.incomplete = cut('no process "exits successfully"')
    elif not is_launched and log.steps:
        log.notes = (_NO_END,)
    return log


def _step(position: int, match: re.Match[str]) -> LoggedStep:
    gib = positive(match[3])
    return LoggedStep(
        position=position,
        step=count(match[1]) or 0,
        samples=positive(match[2]),
        memory=gib * 2**30 if gib else None,
    )


def _save(log: TrainingLog, position: int, match: re.Match[str], time: float | None, began: dict[str, float]) -> None:
    """Note when a save begins (by the first rank that reports it), and store its time when it is complete."""
    if match[2] == "about to be saved":
        if len(began) < 1000:
            began.setdefault(match[1], time or 0.0)
    elif (start := began.pop(match[1], None)) and time and time > start:
        log.checkpoints.append(CheckpointTime(position, round(time - start, 3)))


def _time(line: str) -> float | None:
    """Return a line's timestamp in seconds, without a time zone; None if the line has none."""
    match = _TIME.match(line)
    if match is None:
        return None
    try:
        stamp = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return stamp.timestamp() + int(match[2]) / 1e3
