"""Parse the log of MaxText.

Metrics as in ``parsers/training``. ``tokens_per_second`` counts the weighted tokens (``total_weights``) of all devices.
A log that prints its number of steps (``Config param steps``) is ``invalid`` if it ends before the last step. MaxText
prints no checkpoint times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.training import LoggedStep, TrainingLog, count, divided, parsed, positive

_TOOL = "maxtext"
_FIGURE = r"([0-9.]{1,20})(?![0-9.eE])"  # longer figures are rejected, not truncated
_STEP = re.compile(
    rf"\bcompleted step: ([0-9]{{1,15}}), seconds: {_FIGURE}, TFLOP/s/device: {_FIGURE}, "
    rf"Tokens/s/device: {_FIGURE}(?:, total_weights: {_FIGURE})?(?:, loss: {_FIGURE})?"
)
_PARAMETER = re.compile(r"\bConfig param (steps|global_batch_size_to_train_on|max_target_length): ([0-9]{1,15}) *$")
_DEVICES = re.compile(r"\bNum_devices: ([0-9]{1,9})\b")
_NO_END = "the log does not contain the number of steps: Config param steps is missing"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one log. Raise ParseError if it has no step."""
    return parsed(_TOOL, raw, read)


def read(lines: Sequence[str]) -> TrainingLog:
    """Return the steps in ``lines``."""
    log = TrainingLog()
    parameters: dict[str, int | None] = {}
    for position, line in enumerate(lines):
        if match := _STEP.search(line):
            log.steps.append(_step(position, match))
        elif match := _PARAMETER.search(line):
            parameters.setdefault(match[1], count(match[2]))
        elif match := _DEVICES.search(line):
            log.devices = positive(match[1])
    log.batch = parameters.get("global_batch_size_to_train_on")
    log.sequence = parameters.get("max_target_length")
    steps, last = parameters.get("steps"), max((s.step for s in log.steps), default=-1)
    if steps is None:
        log.notes = (_NO_END,)
    elif last + 1 < steps:
        log.incomplete = cut(f"the last step is {last}, but {steps} steps from 0 were configured")
    return log


def _step(position: int, match: re.Match[str]) -> LoggedStep:
    seconds, tera = positive(match[2]), positive(match[3])
    return LoggedStep(
        position=position,
        step=count(match[1]) or 0,
        seconds=seconds,
        tokens=divided(positive(match[5]), seconds),
        tokens_device=positive(match[4]),
        flops=tera * 1e12 if tera else None,
        loss=positive(match[6]),
    )
