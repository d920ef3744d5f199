"""Parse the timestamped log of the user's own training, which Fleetmark's program records.

Case: the name that the user gives. Metrics are those of ``parsers/training`` over all attempts, and these for the whole
run:

- ``goodput``: share of the run's time in useful steps at their usual speed; ``lost_to_startup``, ``lost_to_restarts``,
  ``lost_to_checkpoints``, ``lost_to_stragglers``, ``lost_to_slow_steps``: the other shares, see
  ``parsers/training/goodput``
- ``useful_tokens_per_second``: tokens of the useful steps over the run's time
- ``restarts``, ``steps_redone``, ``run_time`` (s)

``mfu`` is computed from the FLOP per token and the device's peak if the user gives them, or else from the framework's
FLOP/s over that peak. Otherwise it is the figure in the log. A run is ``invalid`` if it has no end or its log was too
long.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers import deepspeed, maxtext, megatron_lm, torchtitan
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.json_lines import integer, positive, word
from fleetmark.parsers.kit.text import decode, number, numbered
from fleetmark.parsers.training import LoggedStep, Reader, TrainingLog, count, divided, measurements, plain
from fleetmark.parsers.training.goodput import Attempt, goodput
from fleetmark.parsers.training.stragglers import RankTime, Waits, straggler

_TOOL = "training_recipe"
_STAMP = re.compile(r"@([0-9]{1,9}\.[0-9]{1,6}) (.*)")
READERS: dict[str, Reader] = {
    "megatron_lm": megatron_lm.read,
    "deepspeed": deepspeed.read,
    "torchtitan": torchtitan.read,
    "maxtext": maxtext.read,
    "json": plain.read,
}
_MOST_ATTEMPTS = 10_000


@dataclass(kw_only=True, slots=True)
class _Lines:
    """The timestamped lines of one attempt."""

    begin: float
    end: float | None = None
    status: float | None = None
    was_ended: bool = False  # ended when the user's time limit was reached
    times: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    ranks: list[RankTime] = field(default_factory=list)  # from files that the ranks write


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one run. Raise ParseError if it has no step."""
    head, attempts, end = _split(decode(raw))
    reader = READERS.get(word(head, "framework"))
    if reader is None:
        raise ParseError(_TOOL, "the head of a recorded training", got=str(head)[:120] if head else "no head")
    last = attempts[-1].times[-1] if attempts and attempts[-1].times else 0.0
    run_time = positive(end, "at") or last
    runs = [
        Attempt(
            begin=a.begin,
            end=max(a.end if a.end is not None else run_time, a.begin),
            log=_with_ranks(reader(a.texts), a.ranks),
            times=a.times,
        )
        for a in attempts
    ]
    case = word(head, "case") or "train"
    rows = [*measurements(_TOOL, case, _merged(runs, head)), *_of_run(case, runs, run_time, head)]
    if not any(run.log.steps for run in runs) or not rows:
        last_line = next((t.strip() for a in reversed(attempts) for t in reversed(a.texts) if t.strip()), "no output")
        raise ParseError(_TOOL, f"the line of a training step of {word(head, 'framework')}", got=last_line[:160])
    begin = positive(head, "unix")
    window = (begin, begin + run_time) if begin and begin < 4e9 and run_time > 0 else None
    slow = straggler(Waits(_merged(runs, head).ranks))
    notes = tuple(dict.fromkeys(note for run in runs for note in run.log.notes))
    notes += (slow.note,) if slow else ()
    return Parsed(_TOOL, tuple(rows), invalid=_wrong(end, attempts), notes=notes, window=window)


def _split(text: str) -> tuple[dict[str, Any], list[_Lines], dict[str, Any]]:
    """Return the head, the attempts, and the last document (empty if the output is truncated)."""
    head: dict[str, Any] = {}
    attempts: list[_Lines] = []
    for _, line in numbered(text):
        if match := _STAMP.match(line):
            if attempts:
                attempts[-1].times.append(float(match[1]))
                attempts[-1].texts.append(match[2])
            continue
        document = _document(line)
        seconds = number(document.get("at"))
        if document.get("tool") == _TOOL and not head:
            head = document
        elif document.get("end") is True:
            return head, attempts, document
        elif "attempt" in document and seconds is not None and seconds >= 0 and len(attempts) < _MOST_ATTEMPTS:
            attempts.append(_Lines(begin=seconds))
        elif "exit" in document and attempts and seconds is not None:
            attempts[-1].end, attempts[-1].status = seconds, number(document["exit"])
            attempts[-1].was_ended = document.get("ended") is True
        elif "working" in document and attempts:
            attempts[-1].ranks += _ranks(document)
    return head, attempts, {}


def _ranks(document: dict[str, Any]) -> list[RankTime]:
    """Return the seconds of one step by rank; the recorder keeps only the slowest and the median rank."""
    step, working = integer(document, "step", 0), document.get("working")
    if step is None or not isinstance(working, dict):
        return []
    ranks = {count(rank): positive(working, rank) for rank in list(working)[:10]}
    return [RankTime(step, rank, seconds) for rank, seconds in ranks.items() if rank is not None and seconds]


def _with_ranks(log: TrainingLog, ranks: list[RankTime]) -> TrainingLog:
    log.ranks += ranks
    return log


def _document(line: str) -> dict[str, Any]:
    if not line.startswith("{") or len(line) > 20_000:
        return {}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _merged(runs: Sequence[Attempt], head: dict[str, Any]) -> TrainingLog:
    """Return one log of all attempts, without the first step of each, and with the rates that the head determines."""
    merged = TrainingLog()
    for run in runs:
        log = run.log
        merged.steps += log.steps[1:] if len(log.steps) > 1 and merged.steps else log.steps
        merged.checkpoints += log.checkpoints
        merged.ranks += log.ranks
        merged.batch, merged.sequence = merged.batch or log.batch, merged.sequence or log.sequence
        merged.devices = merged.devices or positive(head, "devices") or log.devices
        merged.memory = max(merged.memory or 0.0, log.memory or 0.0) or None
    merged.steps = [_with_rates(step, merged.devices, head) for step in merged.steps]
    return merged


def _with_rates(step: LoggedStep, devices: float | None, head: dict[str, Any]) -> LoggedStep:
    tokens = step.tokens or divided(positive(head, "tokens"), step.seconds) or divided(step.tokens_device, 1.0, devices)
    device = step.tokens_device or divided(tokens, devices)
    flops, peak = positive(head, "flops"), positive(head, "peak")
    mfu = divided(device, peak, flops) or divided(step.flops, peak) or step.mfu
    return replace(step, tokens=tokens, tokens_device=device, mfu=mfu)


def _of_run(case: str, runs: Sequence[Attempt], run_time: float, head: dict[str, Any]) -> Iterator[Measurement]:
    result = goodput(runs, run_time)
    if result is None:
        return
    first = next((run.log for run in runs if run.log.batch and run.log.sequence), TrainingLog())
    printed = [s.tokens * s.seconds for run in runs for s in run.log.steps if s.tokens and s.seconds]
    tokens = positive(head, "tokens") or divided(first.batch, 1.0, first.sequence) or (printed[-1] if printed else None)
    rows: list[tuple[str, float | None, str, Better]] = [
        ("goodput", result.share, "1", Better.HIGHER),
        *((f"lost_to_{cause}", share, "1", Better.NONE) for cause, share in result.lost.items()),
        ("useful_tokens_per_second", divided(tokens, run_time, float(result.kept)), "1/s", Better.HIGHER),
        ("restarts", float(len(runs) - 1), "1", Better.NONE),
        ("steps_redone", float(result.redone), "1", Better.NONE),
        ("run_time", run_time, "s", Better.NONE),
    ]
    for name, value, unit, better in rows:
        if value is not None and math.isfinite(value):
            yield Measurement(_TOOL, case, name, max(value, 0.0), unit, better=better)


def _wrong(end: dict[str, Any], attempts: Sequence[_Lines]) -> str | None:
    if not end:
        return cut("its end line is missing")
    if dropped := positive(end, "dropped"):
        return f"the log is too long: {dropped:g} lines were not kept; let the command log fewer steps"
    if attempts and attempts[-1].status and not attempts[-1].was_ended:
        return f"the last attempt ended with status {attempts[-1].status:g}"
    return None
