"""Define the classes of work, the kind of figure of each class, and the kind of figures that declare none."""

from __future__ import annotations

from collections.abc import Mapping

from fleetmark.base.measurement import Better, Kind

PEAK = "-peak"  # suffix of the class for figures of a tuned build, which get a separate headline
SPEED = "-speed"  # suffix of a responsiveness class whose name without the suffix is a capacity class
_CAPACITY = (
    *("cpu-int", "cpu-fp", "mem-bw", "disk-iops", "disk-bw", "net", "app"),
    *("gpu-offline", "gpu-server", "gpu-interactive", "gpu-train", "gpu-compute"),
    *(
        "cpu-offline",
        "cpu-server",
        "cpu-interactive",
        "cpu-compute",
        "cpu-train",
    ),  # inference and training on CPUs
)
_RESPONSIVENESS = (
    *("cpu-int-speed", "cpu-fp-speed", "mem-latency", "core-bw", "os", "disk-latency", "net-flow", "gpu-bw"),
    *("gpu-latency", "collective", "gpu-train-speed", "cpu-latency", "cpu-train-speed"),
)
# A guardrail belongs to the class of the figures that it limits.
CLASSES: Mapping[str, Kind] = {
    **dict.fromkeys(_CAPACITY, Kind.CAPACITY),
    **dict.fromkeys(_RESPONSIVENESS, Kind.RESPONSIVENESS),
}
_RATES = ("B/s", "1/s", "FLOP/s")  # units of work over time
_OF_OLD = {  # classes of earlier versions that held several kinds: from unit to the present class
    "disk": {"1/s": "disk-iops", "B/s": "disk-bw", "s": "disk-latency"},
    "net": {"s": "net-flow"},
    "gpu-sla": {"1/s": "gpu-server", "s": "gpu-latency"},
    "cpu-sla": {"1/s": "cpu-server", "s": "cpu-latency"},
    "gpu-compute": {"s": "gpu-latency"},
    "gpu-train": {"s": "gpu-train-speed"},
}

_GONE = {  # classes of earlier versions that were removed
    "disk": "disk-iops, disk-bw or disk-latency",
    "gpu-sla": "gpu-server, gpu-interactive or gpu-latency",
    "cpu-sla": "cpu-server, cpu-interactive or cpu-latency",
    "inference": "gpu-offline, gpu-server, gpu-interactive or gpu-latency",
}


def successors(name: str) -> str:
    """Return a sentence that names the replacement of a class of earlier versions; empty for other names."""
    return f"the class {name!r} is now {_GONE[name]}: use one of them" if name in _GONE else ""


def kind_of_class(name: str) -> Kind | None:
    """Return the kind of the class ``name``; None for a user's own class."""
    return CLASSES.get(name.removesuffix(PEAK))


def inferred(class_: str, unit: str, better: str) -> tuple[str, str]:
    """Return the class and kind of a figure that declares no kind, from its ``class_``, base ``unit`` and direction.

    The kind is empty for a descriptive figure, which has no better direction.
    """
    if better == Better.NONE:
        return class_, ""
    class_ = _OF_OLD.get(class_, {}).get(unit, class_)
    return class_, _kind(class_, unit, better).value


def _kind(class_: str, unit: str, better: str) -> Kind:
    known = kind_of_class(class_)
    if better == Better.LOWER and unit == "1":  # a count or share of undesired events, even in a latency class
        return Kind.GUARDRAIL
    if known is Kind.RESPONSIVENESS:
        return known
    if better == Better.LOWER and unit == "s":  # seconds per job: capacity in a work class, otherwise latency
        return known or Kind.RESPONSIVENESS
    if better == Better.LOWER:  # loss, error rate and power are guardrails
        return Kind.GUARDRAIL
    if unit in _RATES or known is Kind.CAPACITY or unit in ("1", "B"):  # a score counts as capacity by default
        return Kind.CAPACITY
    return Kind.RESPONSIVENESS  # for example, a clock rate
