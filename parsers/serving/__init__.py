"""Define Fleetmark's metrics for benchmarks of LLM servers. Each tool's own definitions are mapped to them.

``ttft``: time to the first token. ``tpot``: (last - first token) / (tokens - 1) of a request. ``itl``: times between
consecutive tokens or pieces. ``e2e``: time to the last token. ``token_mean``: e2e / tokens of a request, including the
wait for the first token. Tools use the same names for different metrics, so never compare by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.kit.text import number

RATES = ("output_tokens_per_second", "interactivity")
# The kind of rate: the rate of answers, or the requested rate.
FOLLOWS = (
    *("requests_per_second", "input_tokens_per_second", "total_tokens_per_second"),
    "offered_requests_per_second",
)
COUNTS = ("requests", "prompt_tokens", "output_tokens", "accelerators")


def measurements(
    tool: str, case: str, figures: Mapping[str, object], labels: Mapping[str, str] | None = None
) -> Iterator[Measurement]:
    """Return figures in 1/s and s under Fleetmark's names.

    Values that are not positive numbers are omitted, but a failure rate may be zero.
    """
    for name, raw in figures.items():
        value = number(raw)
        if value is None or value < 0 or (value == 0 and name != "failures"):
            continue
        unit, better = kind_of(name)
        yield Measurement(tool, case, name, value, unit, better=better, labels=labels or {})


def kind_of(name: str) -> tuple[str, Better]:
    """Return the unit and direction of one of these metrics."""
    if name in RATES:
        return "1/s", Better.HIGHER
    if name in FOLLOWS:
        return "1/s", Better.NONE
    if name == "failures":
        return "1", Better.LOWER
    return ("1", Better.NONE) if name in COUNTS else ("s", Better.LOWER)


def counted(value: object) -> float | None:
    """Return a number of requests; None if the value cannot be one."""
    many = number(value)
    return many if many is not None and many >= 0 and many.is_integer() else None


def seconds(value: object) -> float | None:
    """Return a time given in ms in seconds."""
    ms = number(value)
    return None if ms is None else ms / 1e3


def failed(requests: float | None, answered: float | None, tolerated: float = 0.01) -> str | None:
    """Return why a run with failed requests does not count; None if at most 1% failed."""
    if requests is None or answered is None:
        return None
    if not requests:
        return "no request was sent"
    if requests - answered > tolerated * requests:
        return f"{requests - answered:g} of {requests:g} requests failed"
    return None


def load(streams: object, rate: object) -> str:
    """Return the case's name: ``c8`` for 8 concurrent requests, ``r2.5`` for a rate per second, ``all`` for neither."""
    at_once, per_second = number(streams), number(rate)
    name = f"c{at_once:g}" if at_once else ""
    return name + (f"r{per_second:g}" if per_second else "") or "all"
