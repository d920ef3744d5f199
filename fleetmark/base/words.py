"""The house's own words where they stand as values in a sentence, so that they can be said in another language."""

from __future__ import annotations

from fleetmark.base.text import Said, joined, said

_WORDS: dict[str, Said] = {
    # how a run ended (fleetmark.base.measurement.Status), or why a value that passed is none to use
    "passed": said("passed"),
    "failed": said("failed"),
    "invalid": said("invalid"),
    "skipped": said("skipped"),
    "lost": said("lost"),
    "zero or negative": said("zero or negative"),
    # what the owners of a benchmark call a figure (Standing)
    "estimate": said("estimate"),
    "unverified": said("unverified"),
    # what an interval allows to be said (planner.ratio.Verdict)
    "better": said("better"),
    "worse": said("worse"),
    "same": said("same"),
    "cannot tell": said("cannot tell"),
    # which way a metric improves (Better)
    "higher": said("higher"),
    "lower": said("lower"),
    # what a comparison is per (fleetmark.record.pool.PER)
    "server": said("server"),
    "socket": said("socket"),
    "core": said("core"),
    "thread": said("thread"),
    "gpu": said("gpu"),
    "watt": said("watt"),
    "money": said("money"),
    # the one class that is no benchmark's (planner.comparison.WORK_MIX)
    "work mix": said("work mix"),
}


def word(value: str) -> str:
    """A word of ours as a sentence, several with commas between them as well; any other text as it stands."""
    parts = value.split(", ")
    return joined(_WORDS.get(part, part) for part in parts) if any(part in _WORDS for part in parts) else value
