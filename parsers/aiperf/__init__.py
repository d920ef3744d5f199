"""Parse aiperf's ``profile_export_aiperf.json``, and that of its predecessor genai-perf.

Case: ``c8``, ``r2`` or ``all``, from the settings. From schema 1.1 on, the settings are those of the measured phase.
aiperf's ``inter_token_latency`` is (last - first token) / (tokens - 1) of a request, which is ``tpot``. aiperf's
``inter_chunk_latency`` is the time between pieces, which is ``itl``. Every figure has its own unit. A run that was
cancelled or degraded is ``invalid``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.cut import cut_in_json
from fleetmark.parsers.kit.text import decode, dig, find_json, number, numbered
from fleetmark.parsers.serving import counted, failed, load, measurements

_TOOL = "aiperf"
_TIMES = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "tpot",
    "inter_chunk_latency": "itl",
    "request_latency": "e2e",
}
_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "us": 1e-6, "ns": 1e-9}
_SHARES = {"avg": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_RATES = {
    "output_token_throughput": "output_tokens_per_second",
    "total_token_throughput": "total_tokens_per_second",
    "request_throughput": "requests_per_second",
}
_COUNTS = {"input_sequence_length": "prompt_tokens", "output_sequence_length": "output_tokens"}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the profile in ``raw``. Raise ParseError if there is none."""
    text = decode(raw)
    scan = find_json(text)
    doc = next((d.value for d in scan.documents if dig(d.value, "request_latency", "unit")), None)
    if doc is None:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "aiperf's profile in JSON", line=1, got=got)
    answered, bad = (counted(dig(doc, k, "avg")) for k in ("request_count", "error_request_count"))
    requests = answered + (bad or 0.0) if answered is not None else None
    figures: dict[str, object] = {"requests": requests}
    if requests and answered is not None:
        figures["failures"] = (requests - answered) / requests
    figures |= {ours: dig(doc, theirs, "avg") for theirs, ours in {**_RATES, **_COUNTS}.items()}
    for theirs, ours in _TIMES.items():
        unit = dig(doc, theirs, "unit")
        factor = _UNITS.get(unit) if isinstance(unit, str) else None
        for word, share in _SHARES.items():
            value = number(dig(doc, theirs, word))
            figures[f"{ours}_{share}"] = value * factor if factor and value is not None else None
    middle = number(figures.get("tpot_p50"))
    if middle and middle > 1e-9:
        figures["interactivity"] = 1 / middle
    case, model = _case(doc), _model(doc)
    labels = {"model": model[:200]} if isinstance(model, str) and model else {}
    rows = tuple(measurements(_TOOL, case, figures, labels))
    if not rows:
        raise ParseError(_TOOL, "a profile with figures", line=1, got="a profile without any")
    version = doc.get("aiperf_version")
    return Parsed(
        _TOOL,
        rows,
        version=version if isinstance(version, str) else None,
        invalid=failed(requests, answered) or _incomplete(doc) or cut_in_json(scan),
    )


def _case(doc: Mapping[str, Any]) -> str:
    settings = next((s for k in ("loadgen", "load_generator") if (s := dig(doc, "input_config", k))), None)
    phases = dig(doc, "input_config", "phases")
    if settings is None and isinstance(phases, list):
        counted_ones = [p for p in phases if isinstance(p, dict) and p.get("exclude_from_results") is not True]
        named = [p for p in counted_ones if p.get("name") == "profiling"]
        settings = next(iter([*named, *counted_ones[-1:]]), None)
        return load(dig(settings, "concurrency"), dig(settings, "rate"))
    return load(dig(settings, "concurrency"), dig(settings, "request_rate"))


def _model(doc: Mapping[str, Any]) -> object:
    old = dig(doc, "input_config", "endpoint", "model_names", 0)
    return old or dig(doc, "input_config", "models", "items", 0, "name")


def _incomplete(doc: Mapping[str, Any]) -> str | None:
    """Return why the run is incomplete; None if it is complete."""
    if doc.get("was_cancelled") is True:
        return "the run was cancelled"
    if doc.get("is_complete") is not False:
        return None
    reason = doc.get("incomplete_reason")
    detail = f": {' '.join(reason.split())[:200]}" if isinstance(reason, str) and reason.strip() else ""
    return f"the run degraded before its end{detail}"
