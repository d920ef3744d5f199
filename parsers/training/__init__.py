"""Define what logs of training frameworks have in common: logged steps, checkpoints, and the derived metrics.

Metrics of all readers, if the log has the required figures:

- ``step_time``, ``step_time_p90``: s, median and 90th percentile over the logged steps
- ``tokens_per_second``, ``samples_per_second``: 1/s, of all devices together; ``tokens_per_second_device``: of one
  device
- ``model_flops_device`` (FLOP/s), ``mfu``: as the framework counts them; ``peak_memory``: B, of one device
- ``checkpoint_save``, ``checkpoint_load``: s, the longest one, of the slowest rank
- ``straggler_time``: s that a step loses to its slowest rank; the label ``rank`` names the rank with the largest loss
- ``loss`` of the last step; ``steps``, the number of the last step; ``devices``

If there are several logged steps, the first one is omitted, because it includes compilation. Each median is a value of
the log (the lower of the two middle values).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.base.units import is_whole
from fleetmark.parsers.kit.cut import cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered
from fleetmark.parsers.training.stragglers import RankTime, Waits, straggler


@dataclass(kw_only=True, frozen=True, slots=True)
class LoggedStep:
    """One line of progress: times in s, rates in 1/s, ``flops`` in FLOP/s of one device, ``memory`` in B.

    ``position``: the index of its line among the lines that were read.
    """

    position: int
    step: int
    seconds: float | None = None
    tokens: float | None = None  # per second, of all devices
    tokens_device: float | None = None
    samples: float | None = None
    flops: float | None = None
    mfu: float | None = None
    memory: float | None = None
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointTime:
    """The seconds of one save (or one load) of a checkpoint, and the index of the line that ends it."""

    position: int
    seconds: float
    is_load: bool = False


@dataclass(kw_only=True, slots=True)
class TrainingLog:
    """The contents of one log. ``incomplete``: why the log is incomplete, None if it is complete."""

    steps: list[LoggedStep] = field(default_factory=list)
    ranks: list[RankTime] = field(default_factory=list)
    checkpoints: list[CheckpointTime] = field(default_factory=list)
    batch: float | None = None  # samples of a step on all devices
    sequence: float | None = None  # tokens of a sample
    devices: float | None = None
    memory: float | None = None  # peak memory in B
    incomplete: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def case(self) -> str:
        """Return ``b512-s4096`` from batch size and sequence length, or ``train`` if the log lacks one of them."""
        if not self.batch or not self.sequence or max(self.batch, self.sequence) > 1e12:
            return "train"
        return f"b{int(self.batch)}-s{int(self.sequence)}"


Reader = Callable[[Sequence[str]], TrainingLog]


def positive(text: str | None) -> float | None:
    """Return a printed number above zero, with or without thousands separators; None for anything else."""
    value = number(text.replace(",", "")) if text is not None and len(text) <= 40 else None
    return value if value is not None and value > 0 else None


def count(text: str | None) -> int | None:
    """Return a printed whole number from 0; None for anything else, and for more than 15 digits."""
    return int(text) if text is not None and is_whole(text) and len(text) <= 15 else None


def parsed(tool: str, raw: bytes, reader: Reader) -> Parsed:
    """Return the measurements in one log of ``tool``. Raise ParseError if it has no step."""
    text = decode(raw)
    lines = [line for _, line in numbered(text)]
    log = reader(lines)
    rows = tuple(measurements(tool, log.case, log))
    if not rows:
        got = next((line.strip()[:120] for line in lines if line.strip()), "no output")
        raise ParseError(tool, "the line of a training step", line=1, got=got)
    slow = straggler(Waits(log.ranks))
    notes = (*log.notes, slow.note) if slow else log.notes
    return Parsed(tool, rows, invalid=cut_in_line(text) or log.incomplete, notes=notes)


def measurements(tool: str, case: str, log: TrainingLog) -> Iterator[Measurement]:
    """Yield the figures of a log; nothing if it has no step with a time or a rate."""
    timed = [s for s in log.steps if s.seconds or s.tokens or s.tokens_device or s.samples]
    if not timed:
        return
    steady = timed[1:] or timed
    rows: list[tuple[str, float | None, str, Better]] = [
        ("step_time", _middle(s.seconds for s in steady), "s", Better.LOWER),
        ("step_time_p90", _high(s.seconds for s in steady), "s", Better.LOWER),
        ("tokens_per_second", _middle(s.tokens for s in steady), "1/s", Better.HIGHER),
        ("samples_per_second", _middle(s.samples for s in steady), "1/s", Better.HIGHER),
        ("tokens_per_second_device", _middle(s.tokens_device for s in steady), "1/s", Better.NONE),
        ("model_flops_device", _middle(s.flops for s in steady), "FLOP/s", Better.NONE),
        ("mfu", _middle(s.mfu for s in steady), "1", Better.NONE),
        ("peak_memory", max([s.memory for s in timed if s.memory] + [log.memory or 0.0]), "B", Better.NONE),
        ("checkpoint_save", _largest(log, is_load=False), "s", Better.LOWER),
        ("checkpoint_load", _largest(log, is_load=True), "s", Better.LOWER),
        ("loss", timed[-1].loss, "1", Better.NONE),
        ("steps", float(timed[-1].step), "1", Better.NONE),
        ("devices", log.devices, "1", Better.NONE),
    ]
    for name, value, unit, better in rows:
        if value is not None and value > 0 and math.isfinite(value):
            yield Measurement(tool, case, name, value, unit, better=better)
    if (slow := straggler(Waits(log.ranks))) and math.isfinite(slow.seconds):
        labels = {"rank": str(slow.rank)}
        yield Measurement(tool, case, "straggler_time", slow.seconds, "s", better=Better.NONE, labels=labels)


def divided(value: float | None, other: float | None, *factors: float | None) -> float | None:
    """Return ``value`` over ``other`` times ``factors``; None if one is missing or the result is not positive."""
    if not value or not other or not all(factors):
        return None
    result = value / other * math.prod(f for f in factors if f)
    return result if math.isfinite(result) and result > 0 else None


def _middle(values: Iterator[float | None]) -> float | None:
    present = [v for v in values if v is not None and v > 0]
    return median_low(present) if present else None


def _high(values: Iterator[float | None]) -> float | None:
    """Return the 90th percentile (nearest rank) of at least ten values."""
    present = sorted(v for v in values if v is not None and v > 0)
    return present[math.ceil(0.9 * len(present)) - 1] if len(present) >= 10 else None


def _largest(log: TrainingLog, *, is_load: bool) -> float | None:
    return max((c.seconds for c in log.checkpoints if c.is_load == is_load), default=None)
