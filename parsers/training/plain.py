"""Read the log of a training loop that prints its own JSON lines: steps, and saved or loaded checkpoints.

``{"step": 12, "seconds": 0.5, "tokens": 4096, "loss": 2.1}``: one step, its time, and its tokens on all devices.
``{"step": 12, "rank": 3, "working": 0.4}``: the seconds that a rank worked on a step, without waits for other ranks.
``{"checkpoint": "save", "seconds": 3.2}``: a checkpoint that is saved (``"save"``) or loaded (``"load"``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fleetmark.parsers.kit.json_lines import integer, positive
from fleetmark.parsers.training import CheckpointTime, LoggedStep, TrainingLog, divided
from fleetmark.parsers.training.stragglers import RankTime

_LONGEST = 4_096  # maximum characters of a line


def read(lines: Sequence[str]) -> TrainingLog:
    """Return the steps and checkpoints in ``lines``."""
    log = TrainingLog()
    for position, line in enumerate(lines):
        document = _document(line)
        seconds, working = positive(document, "seconds"), positive(document, "working")
        step, rank = integer(document, "step", 0), integer(document, "rank", 0)
        if step is not None and rank is not None and working:
            log.ranks.append(RankTime(step, rank, working))
        if step is not None and not rank and (seconds or not working):
            tokens = divided(positive(document, "tokens"), seconds)
            loss = positive(document, "loss")
            log.steps.append(LoggedStep(position=position, step=step, seconds=seconds, tokens=tokens, loss=loss))
        elif step is None and document.get("checkpoint") in ("save", "load") and seconds:
            log.checkpoints.append(CheckpointTime(position, seconds, document["checkpoint"] == "load"))
    return log


def _document(line: str) -> dict[str, Any]:
    if not line.startswith("{") or len(line) > _LONGEST:
        return {}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
