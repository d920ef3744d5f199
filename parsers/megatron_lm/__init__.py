"""Parse the log of Megatron-LM, and of forks with its lines (Megatron-DeepSpeed, NeMo's bridge, Primus).

Metrics as in ``parsers/training``. ``step_time`` is the mean over a log interval. Tokens per second are the global
batch size times the sequence length (both from the printed arguments) over the step time. Some forks print tokens per
GPU themselves. Ranks are compared by their forward and backward passes (``--timing-log-level 2 --timing-log-option
all``), or by the fastest and the slowest rank that ``--log-straggler`` prints. A log is ``invalid`` if ``[after
training is done]`` (or ``exiting program``) is missing, or if a checkpoint was not saved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.training import CheckpointTime, LoggedStep, TrainingLog, count, divided, parsed, positive
from fleetmark.parsers.training.stragglers import RankTime

_TOOL = "megatron_lm"
_STEP = re.compile(r"\biteration +([0-9]{1,15})/ *(?:[0-9]{1,15}|infinity) \|(.*)")
_PAIR = re.compile(r"^(.{1,60}?)(?:: *| )([0-9.eE+-]{1,30})$")
_TIMER = re.compile(r"\b(save|load)-checkpoint \.+: (?:\(([0-9.]{1,20}), ([0-9.]{1,20})\)|([0-9.]{1,20})) *$")
_ARGUMENT = re.compile(r"^(?:[0-9]+: )? *(seq_length|world_size|global_batch_size) \.{3,} ([0-9]{1,15}) *$")
_MEMORY = re.compile(r"\| max allocated: ([0-9.]{1,30}(?![0-9.]))")
_TIMER_RANKS = re.compile(r"^(?:\S{1,60}:)?\s+([a-z][a-z-]{1,60}):\s*$")
_RANK = re.compile(r"^(?:\S{1,60}:)?\s+rank +([0-9]{1,7}): ([0-9.]{1,20})\s*$")
_OWN = ("forward-compute", "backward-compute")  # without waits for other ranks' gradients
_DETECTED = re.compile(r"\bM[nx]Rtt/Rnk: ([0-9.]{1,20})ms/([0-9]{1,7}) \|")
_ENDS = ("[after training is done]", "exiting program")
_FLOPS = ("throughput per GPU (TFLOP/s/GPU)", "compute per GPU (TFLOP/s/GPU)", "TFLOPs")
_TOKENS_DEVICE = ("tokens per gpu per second (tgs)", "tokens/s/GPU")


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of one log. Raise ParseError if it has no step."""
    return parsed(_TOOL, raw, read)


def read(lines: Sequence[str]) -> TrainingLog:
    """Return the steps and checkpoints in ``lines``."""
    log = TrainingLog()
    arguments: dict[str, float | None] = {}
    has_ended, is_saving = False, False
    for position, line in enumerate(lines):
        if match := _STEP.search(line):
            log.steps.append(_step(position, match, log))
            has_ended = False
        elif match := _TIMER.search(line):
            if ms := positive(match[3] or match[4]):
                log.checkpoints.append(CheckpointTime(position, ms / 1e3, match[1] == "load"))
        elif match := _ARGUMENT.match(line):
            arguments.setdefault(match[1], positive(match[2]))
        elif match := _MEMORY.search(line):
            log.memory = max(log.memory or 0.0, (positive(match[1]) or 0.0) * 2**20) or None
        elif "successfully saved checkpoint" in line:
            is_saving = False
        elif line.lstrip().startswith("saving checkpoint") or ": saving checkpoint" in line:
            is_saving = True
        has_ended = has_ended or any(end in line for end in _ENDS)
    log.ranks = _ranks(lines)
    log.batch = log.batch or arguments.get("global_batch_size")
    log.sequence, log.devices = arguments.get("seq_length"), arguments.get("world_size")
    log.steps = [_with_rates(s, log) for s in log.steps]
    if is_saving:
        log.incomplete = cut("a checkpoint save begins but does not end")
    elif not has_ended:
        log.incomplete = cut(f'the line with "{_ENDS[0]}" is missing')
    return log


def _ranks(lines: Sequence[str]) -> list[RankTime]:
    """Return the working time of each rank in the steps of an interval, or else of the fastest and slowest rank."""
    timed: dict[tuple[int, int], float] = {}
    detected: list[RankTime] = []
    step, timer = 0, ""
    for line in lines:
        if match := _STEP.search(line):
            step = count(match[1]) or 0
        elif match := _TIMER_RANKS.match(line):
            timer = match[1]
        elif match := _RANK.match(line):
            if timer in _OWN and (ms := positive(match[2])):
                timed[step, int(match[1])] = timed.get((step, int(match[1])), 0.0) + ms / 1e3
        elif "MnRtt/Rnk" in line:
            pairs = [(int(rank), positive(ms)) for ms, rank in _DETECTED.findall(line[:2_000])]
            detected += [RankTime(step, rank, ms / 1e3) for rank, ms in pairs if ms]
    return [RankTime(step, rank, seconds) for (step, rank), seconds in timed.items()] or detected


def _step(position: int, match: re.Match[str], log: TrainingLog) -> LoggedStep:
    fields: dict[str, str] = {}
    for part in match[2].split("|")[:60]:
        if pair := _PAIR.match(part.strip()):
            fields[pair[1].strip()] = pair[2]
    log.batch = positive(fields.get("global batch size")) or log.batch
    ms = positive(fields.get("elapsed time per iteration (ms)"))
    tera = next((v for name in _FLOPS if (v := positive(fields.get(name)))), None)
    return LoggedStep(
        position=position,
        step=count(match[1]) or 0,
        seconds=ms / 1e3 if ms else None,
        tokens_device=next((v for name in _TOKENS_DEVICE if (v := positive(fields.get(name)))), None),
        flops=tera * 1e12 if tera else None,
        loss=positive(fields.get("lm loss")),
    )


def _with_rates(step: LoggedStep, log: TrainingLog) -> LoggedStep:
    tokens = divided(log.batch, step.seconds, log.sequence)
    return replace(step, tokens=tokens, tokens_device=step.tokens_device or divided(tokens, log.devices))
