"""Parse InferenceX's ``agg_*.json``: each document is one point of a sweep, in seconds and per GPU.

Case: ``p1024-o128-c48``, or ``agentic-coding-c48`` for replayed traces (AgentX). Figures of traces are in
``request_metrics``, and their ``itl`` is defined as in aiperf, where it equals Fleetmark's TPOT. ``tput_per_gpu``
counts tokens of prompts and answers, ``output_tput_per_gpu`` only tokens of answers. Fleetmark's figure is the latter,
summed over all GPUs. If prefill and decode are separate, older points have the answers per decode GPU and the prompts
per prefill GPU; newer points call these ``output_tput_per_decode_gpu`` and so on. ``median_intvty`` is 1 / the median
of TPOT. Power is that of GPU boards, and only given if the point says that it is valid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_json
from fleetmark.parsers.kit.text import decode, find_json, number, numbered
from fleetmark.parsers.serving import measurements

_TOOL = "inferencex"
_TIMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e"}
_SHARES = {"mean": "mean", "median": "p50", "p90": "p90", "p99": "p99", "p99.9": "p999"}
LABELS = ("hw", "model", "framework", "precision")
_MOST = 20_000
_NAMED = 4  # maximum points named per reason


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the points in ``raw``. Raise ParseError if there is none."""
    text = decode(raw)
    scan = find_json(text)
    points = [point for d in scan.documents[:_MOST] if (point := point_of(d.value))]
    rows = [m for point in points for m in of_point(point)]
    if not rows:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "a point of InferenceX (agg_*.json)", line=1, got=got)
    listed = text.lstrip().startswith("[") and not text.rstrip().endswith("]")
    ends = cut("the bracket that ends the list is missing") if listed else None
    if broken := cut_in_json(scan) or ends:
        return Parsed(_TOOL, tuple(rows), invalid=broken)
    bad = {case(point): reason for point in points if (reason := failed(point))}
    whys = "; ".join(f"{name}: {reason}" for name, reason in list(bad.items())[:_NAMED]) or None
    return Parsed(_TOOL, tuple(rows), invalid=whys, invalid_cases=tuple(bad))


def point_of(doc: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a JSON object as a point with its figures at the top level; None for other objects."""
    if "hw" not in doc:
        return None
    if "tput_per_gpu" in doc:
        return doc
    nested = _within(doc, "request_metrics")
    per_gpu = _within(nested, "throughput", "per_gpu")
    if "output_tput_tps" not in per_gpu:
        return None
    rates = {f"{k}tput_per_gpu": per_gpu.get(f"{k or 'total_'}tput_tps") for k in ("", "output_", "input_")}
    times = _within(nested, "latency")
    spread = {
        f"{'median' if share == 'p50' else share}_{name}": value
        for name in ("ttft", "tpot", "e2el", "intvty")
        for share, value in _within(times, name).items()
    }
    return {**doc, **rates, **spread}


def _within(doc: Any, *keys: str) -> Mapping[str, Any]:
    """Return the object below ``keys``; an empty one if there is none."""
    for key in keys:
        doc = doc.get(key) if isinstance(doc, Mapping) else None
    return doc if isinstance(doc, Mapping) else {}


def failed(point: Mapping[str, Any]) -> str | None:
    """Return why a point says that it is not valid; None if it is valid."""
    outcome = _within(point, "benchmark_outcome")
    if outcome.get("status") == "failed":
        done, requested = (number(outcome.get(k)) for k in ("completed", "requested"))
        return "its run failed" + (
            f": {done:g} of {requested:g} requests were answered" if done is not None and requested else ""
        )
    return None


def _apart(point: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the numbers of GPUs for prefill and for decode, if these are separate."""
    prefill, decode = (number(point.get(k)) for k in ("num_prefill_gpu", "num_decode_gpu"))
    if prefill is None or decode is None or prefill < 0 or decode < 0 or prefill + decode == 0:
        return None
    together = all(str(point.get(k)).lower() == "false" for k in ("disagg", "is_multinode"))
    return None if together else (prefill, decode)


def _output(point: Mapping[str, Any]) -> float | None:
    """Return the output tokens per second of all GPUs.

    The sum of input and output tokens shows which GPUs the point's rates refer to.
    """
    halves, count = _apart(point), gpus(point)
    total, out, into = (number(point.get(f"{k}tput_per_gpu")) for k in ("", "output_", "input_"))
    by_decode = number(point.get("output_tput_per_decode_gpu"))
    if halves is None or not count:
        return out * count if out is not None and count else None
    prefill, decode = halves
    if by_decode is not None:
        return by_decode * decode
    if out is None:
        return None
    if total is not None and into is not None:
        of_roles, of_all = abs(out * decode + into * prefill - total * count), abs(out + into - total) * count
        return out * (decode if of_roles <= of_all else count)
    return out * decode


def gpus(point: Mapping[str, Any]) -> float | None:
    """Return the number of GPUs of a point, prefill and decode together; None if unknown."""
    if halves := _apart(point):
        return sum(halves)
    layout = [number(point.get(k, 1)) for k in ("tp", "pp", "pcp_size")]  # other requests share their GPUs
    sizes = [size for size in layout if size and size > 0]
    return number(point.get("num_gpus")) or (math.prod(sizes) if len(sizes) == len(layout) and "tp" in point else None)


def case(point: Mapping[str, Any]) -> str:
    """Return the name of the case, from the token lengths and the concurrency."""
    lengths = [number(point.get(k)) for k in ("isl", "osl", "conc")]
    parts = [f"{word}{n:g}" for word, n in zip("poc", lengths, strict=True) if n is not None]
    scenario = point.get("scenario_type")
    if lengths[0] is None and isinstance(scenario, str):
        parts.insert(0, re.sub(r"[^a-z0-9]+", "-", scenario.lower())[:40])
    return "-".join(parts) or "point"


def figures(point: Mapping[str, Any]) -> dict[str, object]:
    """Return a point's figures over all its GPUs, under Fleetmark's metric names."""
    values: dict[str, object] = {"accelerators": gpus(point), "interactivity": point.get("median_intvty")}
    values["output_tokens_per_second"] = _output(point)
    for theirs, ours in _TIMES.items():
        values |= {f"{ours}_{share}": point.get(f"{word}_{theirs}") for word, share in _SHARES.items()}
    return values


def power(tool: str, case_: str, point: Mapping[str, Any]) -> Iterator[Measurement]:
    """Yield the power of all GPU boards in W, if the point says that the measurement is valid."""
    watts = number(point.get("avg_total_gpu_power_w"))
    if number(point.get("power_valid")) == 1 and watts is not None and watts > 0:
        labels = {"source": "GPU boards"}
        yield Measurement(tool, case_, "accelerator_power", watts, "W", better=Better.LOWER, labels=labels)


def of_point(point: Mapping[str, Any]) -> Iterator[Measurement]:
    """Yield the point's measurements."""
    labels = {k: str(point[k])[:120] for k in LABELS if isinstance(point.get(k), str) and point[k]}
    yield from measurements(_TOOL, case(point), figures(point), labels)
    yield from power(_TOOL, case(point), point)
