"""Translatable words of Fleetmark that appear as values in sentences."""

from __future__ import annotations

from fleetmark.base.text import Message, joined, message

_WORDS: dict[str, Message] = {
    # how a run ended (fleetmark.base.measurement.Status), or why a value that passed cannot be used
    "passed": message("passed"),
    "failed": message("failed"),
    "invalid": message("invalid"),
    "skipped": message("skipped"),
    "lost": message("lost"),
    "zero or negative": message("zero or negative"),
    # what the owners of a benchmark call a figure (Standing)
    "estimate": message("estimate"),
    "unverified": message("unverified"),
    # what follows from an interval (planner.ratio.Verdict)
    "better": message("better"),
    "worse": message("worse"),
    "same": message("same"),
    "cannot tell": message("cannot tell"),
    # whether a guardrail holds (planner.guardrail.Held)
    "kept": message("kept"),
    "broken": message("broken"),
    # what a figure is (Kind)
    "capacity": message("capacity"),
    "responsiveness": message("responsiveness"),
    "guardrail": message("guardrail"),
    # which way a metric improves (Better)
    "higher": message("higher"),
    "lower": message("lower"),
    # what a comparison is per (fleetmark.record.sides.PER)
    "server": message("server"),
    "socket": message("socket"),
    "core": message("core"),
    "thread": message("thread"),
    "gpu": message("gpu"),
    "watt": message("watt"),
    "money": message("money"),
    # the class that belongs to no benchmark (planner.comparison.WORK_MIX)
    "work mix": message("work mix"),
}


def word(value: str) -> str:
    """``value`` as a message where it is one of these words, or several with commas; any other text unchanged."""
    parts = value.split(", ")
    return joined(_WORDS.get(part, part) for part in parts) if any(part in _WORDS for part in parts) else value
