"""Parse the log of torchtitan.

Metrics as in ``parsers/training``. torchtitan's ``tps`` refers to one device. Tokens of all devices are derived from
the printed mesh, and the step time from batch and sequence length. If several ranks write the log, the first one
counts. Without ``Training completed``, the log is ``invalid``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.training import CheckpointTime, LoggedStep, TrainingLog, count, divided, parsed, positive

_TOOL = "torchtitan"
_RANK = re.compile(r"^\[rank([0-9]{1,7})\]:")
_STEP = re.compile(r"\bstep: +([0-9]{1,15})(?:/[0-9]{1,15} = [0-9.]{1,12}%)? ")
_FIELD = re.compile(r"\b(loss|memory|tps|tflops|mfu): +([0-9][0-9.,eE+-]{0,30})(GiB|%)?")
_SETTING = re.compile(r"\bglobal batch size ([0-9]{1,15})\b.{0,200}?\b(?:sequence length|seq_len) ([0-9]{1,15})\b")
_MESH = re.compile(r"\bdevice mesh with (?:dimensions )?\[[^\]]{1,200}\], \[([0-9, ]{1,100})\]")
_CHECKPOINT = re.compile(
    r"\bFinished (saving|loading) the checkpoint(?: \(or staging if async is enabled\))? ?in ([0-9.]{1,20}) seconds"
)
_END = "Training completed"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one log. Raise ParseError if it has no step."""
    return parsed(_TOOL, raw, read)


def read(lines: Sequence[str]) -> TrainingLog:
    """Return the steps and checkpoints in ``lines``."""
    log = TrainingLog()
    rank: str | None = None
    has_ended = False
    for position, line in enumerate(lines):
        here = match[1] if (match := _RANK.match(line)) else ""
        if (step := _step(position, line)) and rank in (None, here):
            rank, has_ended = here, False
            log.steps.append(step)
        elif match := _CHECKPOINT.search(line):
            if rank in (None, here) and (seconds := positive(match[2])):
                log.checkpoints.append(CheckpointTime(position, seconds, match[1] == "loading"))
        elif match := _SETTING.search(line):
            log.batch, log.sequence = positive(match[1]), positive(match[2])
        elif match := _MESH.search(line):
            sizes = [float(part) for part in match[1].split(",") if count(part.strip())]
            log.devices = math.prod(sizes) if sizes and math.prod(sizes) < 1e9 else None
        has_ended = has_ended or _END in line
    log.steps = [_with_rates(s, log) for s in log.steps]
    log.incomplete = None if has_ended else cut(f'"{_END}" is missing')
    return log


def _step(position: int, line: str) -> LoggedStep | None:
    match = _STEP.search(line)
    fields = {field[1]: positive(field[2]) for field in _FIELD.finditer(line[:2_000])} if match else {}
    if match is None or not fields.get("tps"):
        return None
    memory, tera, percent = fields.get("memory"), fields.get("tflops"), fields.get("mfu")
    return LoggedStep(
        position=position,
        step=count(match[1]) or 0,
        tokens_device=fields["tps"],
        flops=tera * 1e12 if tera else None,
        mfu=percent / 100 if percent else None,
        memory=memory * 2**30 if memory else None,
        loss=fields.get("loss"),
    )


def _with_rates(step: LoggedStep, log: TrainingLog) -> LoggedStep:
    tokens = divided(step.tokens_device, 1.0, log.devices)
    return replace(step, tokens=tokens, seconds=divided(log.batch, tokens, log.sequence))
