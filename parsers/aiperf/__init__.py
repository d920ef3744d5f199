"""aiperf's ``profile_export_aiperf.json`` (and genai-perf's, its forerunner) to measurements.

Case: ``c8``, ``r2`` or ``all``, by its settings. Its ``inter_token_latency`` is (last - first token) / (tokens - 1) of
a request, our ``tpot``; ``inter_chunk_latency`` is between pieces, our ``itl``. Every figure carries its unit.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from parsers.kit.cut import cut_in_json
from parsers.kit.text import decode, dig, find_json, number, numbered
from parsers.serving import counted, failed, load, measurements

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
    """The profile in ``raw``. Raises ParseError where there is none."""
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
    settings = next((s for k in ("loadgen", "load_generator") if (s := dig(doc, "input_config", k))), None)
    model = dig(doc, "input_config", "endpoint", "model_names", 0)
    labels = {"model": model[:200]} if isinstance(model, str) and model else {}
    case = load(dig(settings, "concurrency"), dig(settings, "request_rate"))
    rows = tuple(measurements(_TOOL, case, figures, labels))
    if not rows:
        raise ParseError(_TOOL, "a profile with figures", line=1, got="a profile without any")
    version = doc.get("aiperf_version")
    return Parsed(
        _TOOL,
        rows,
        version=version if isinstance(version, str) else None,
        invalid=failed(requests, answered) or cut_in_json(scan),
    )
