"""List the translatable words that appear as values in Fleetmark's sentences."""

from __future__ import annotations

from fleetmark.base.text import Message, joined, message

_WORDS: dict[str, Message] = {
    # the status of a run (fleetmark.base.measurement.Status), or why a passed value cannot be used
    "passed": message("passed"),
    "failed": message("failed"),
    "invalid": message("invalid"),
    "skipped": message("skipped"),
    "lost": message("lost"),
    "zero or negative": message("zero or negative"),
    # the benchmark owners' terms for a figure (Standing)
    "estimate": message("estimate"),
    "unverified": message("unverified"),
    # the verdict from an interval (planner.ratio.Verdict)
    "better": message("better"),
    "worse": message("worse"),
    "same": message("same"),
    "cannot tell": message("cannot tell"),
    # the state of a guardrail (planner.guardrail.Held)
    "kept": message("kept"),
    "broken": message("broken"),
    # the kind of a figure (Kind)
    "capacity": message("capacity"),
    "responsiveness": message("responsiveness"),
    "guardrail": message("guardrail"),
    # the better direction of a metric (Better)
    "higher": message("higher"),
    "lower": message("lower"),
    # the base of a comparison, as in "per server" (fleetmark.record.sides.PER)
    "server": message("server"),
    "socket": message("socket"),
    "core": message("core"),
    "thread": message("thread"),
    "gpu": message("gpu"),
    "watt": message("watt"),
    "money": message("money"),
    # the publisher of a result (labels of imports)
    "submitter": message("submitter"),
    "vendor": message("vendor"),
    "publisher": message("publisher"),
    # work classes as named in manifests and published tables
    "app": message("app"),
    "app-speed": message("app-speed"),
    "cluster": message("cluster"),
    "collective": message("collective"),
    "core-bw": message("core-bw"),
    "cpu-compute": message("cpu-compute"),
    "cpu-fp": message("cpu-fp"),
    "cpu-fp-peak": message("cpu-fp-peak"),
    "cpu-fp-speed": message("cpu-fp-speed"),
    "cpu-fp-speed-peak": message("cpu-fp-speed-peak"),
    "cpu-int": message("cpu-int"),
    "cpu-int-peak": message("cpu-int-peak"),
    "cpu-int-speed": message("cpu-int-speed"),
    "cpu-int-speed-peak": message("cpu-int-speed-peak"),
    "cpu-interactive": message("cpu-interactive"),
    "cpu-latency": message("cpu-latency"),
    "cpu-offline": message("cpu-offline"),
    "cpu-server": message("cpu-server"),
    "disk-bw": message("disk-bw"),
    "disk-iops": message("disk-iops"),
    "disk-latency": message("disk-latency"),
    "gpu-compute": message("gpu-compute"),
    "gpu-interactive": message("gpu-interactive"),
    "gpu-latency": message("gpu-latency"),
    "gpu-offline": message("gpu-offline"),
    "gpu-server": message("gpu-server"),
    "gpu-train": message("gpu-train"),
    "gpu-train-speed": message("gpu-train-speed"),
    "gpu-bw": message("gpu-bw"),
    "mem-bw": message("mem-bw"),
    "mem-latency": message("mem-latency"),
    "net": message("net"),
    "net-flow": message("net-flow"),
    "os": message("os"),
    # a common cause of several slow hosts (planner.diagnosis.isolation.partners.Fault)
    "shared": message("shared cause"),
    # the class for the whole mix of benchmarks (planner.comparison.WORK_MIX)
    "work mix": message("work mix"),
    # titles of classes with a single benchmark (parsers.published.sparecores.MICRO)
    "integer division": message("integer division"),
    "integer division on one core": message("integer division on one core"),
    # the time that a price covers (the label term)
    "hour": message("hour"),
    "day": message("day"),
    "month": message("month"),
    "year": message("year"),
}


def word(value: str) -> str:
    """Return ``value`` as a translatable message if it is one of these words or a comma-separated list of them."""
    parts = value.split(", ")
    return joined(_WORDS.get(part, part) for part in parts) if any(part in _WORDS for part in parts) else value
