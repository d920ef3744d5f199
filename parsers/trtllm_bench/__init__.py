"""Parse TensorRT-LLM's ``trtllm-bench``: the overview that it prints, and its JSON report.

Case: ``throughput``. The tool defines TPOT as Fleetmark does. All requests arrive simultaneously unless a rate or
concurrency is set, so TTFT is mostly queueing time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_json, cut_in_line
from fleetmark.parsers.kit.text import decode, dig, find_json, number, numbered
from fleetmark.parsers.serving import measurements, seconds

_TOOL = "trtllm_bench"
_ROW = re.compile(r"^([A-Z][^:]{3,70}):\s{1,80}([0-9.]{1,24})\s*$")
_SHARE = re.compile(r"^\[(TPOT|TTFT|Latency|GTPOT)\] (P50|P90|P95|P99|AVERAGE) *: ([0-9.]{1,24})\s*$")
_ROWS = {
    "Request Throughput (req/sec)": ("requests_per_second", 1.0),
    "Total Output Throughput (tokens/sec)": ("output_tokens_per_second", 1.0),
    "Total Token Throughput (tokens/sec)": ("total_tokens_per_second", 1.0),
    "Average request latency (ms)": ("e2e_mean", 1e-3),
    "Average time-to-first-token [TTFT] (ms)": ("ttft_mean", 1e-3),
    "Average time-per-output-token [TPOT] (ms)": ("tpot_mean", 1e-3),
}
_PARTS = {"TPOT": "tpot", "TTFT": "ttft", "Latency": "e2e"}
_LAST = "P99"
_PER_GPU = "Per GPU Output Throughput (tokens/sec/gpu)"


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the overview or report in ``raw``. Raise ParseError if there is none."""
    text = decode(raw)
    scan = find_json(text)
    report = next((d.value for d in scan.documents if isinstance(d.value.get("performance"), dict)), None)
    figures = _report(report) if report else _overview(text)
    if not (number(figures.get("output_tokens_per_second")) or 0.0) > 0:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "trtllm-bench's performance overview", line=1, got=got)
    middle = number(figures.get("tpot_p50"))
    if middle and middle > 1e-9:
        figures["interactivity"] = 1 / middle
    ends = cut_in_json(scan) if report else cut_in_line(text) or _short(text)
    return Parsed(_TOOL, tuple(measurements(_TOOL, "throughput", figures)), invalid=ends)


def _report(report: Mapping[str, object]) -> dict[str, object]:
    figures: dict[str, object] = {
        "requests_per_second": dig(report, "performance", "request_throughput_req_s"),
        "output_tokens_per_second": dig(report, "performance", "system_output_throughput_tok_s"),
        "total_tokens_per_second": dig(report, "performance", "system_total_throughput_tok_s"),
        "e2e_mean": seconds(dig(report, "performance", "avg_request_latency_ms")),
        "ttft_mean": seconds(dig(report, "streaming_metrics", "avg_ttft_ms")),
        "tpot_mean": seconds(dig(report, "streaming_metrics", "avg_tpot_ms")),
    }
    for name in ("ttft", "tpot"):
        for share in ("p50", "p90", "p95", "p99"):
            figures[f"{name}_{share}"] = seconds(dig(report, "streaming_metrics", f"{name}_percentiles", share))
    return figures


def _overview(text: str) -> dict[str, object]:
    figures: dict[str, object] = {}
    per_gpu: float | None = None
    for _, line in numbered(text):
        if (match := _ROW.match(line)) and match[1] in _ROWS:
            name, factor = _ROWS[match[1]]
            value = number(match[2])
            figures[name] = None if value is None else value * factor
        elif match and match[1] == _PER_GPU:
            per_gpu = number(match[2])
        elif (match := _SHARE.match(line)) and match[1] in _PARTS and match[2] != "AVERAGE":
            figures[f"{_PARTS[match[1]]}_{match[2].lower()}"] = seconds(match[3])
    total = number(figures.get("output_tokens_per_second"))
    if total and per_gpu:
        figures["accelerators"] = round(total / per_gpu)
    return figures


def _short(text: str) -> str | None:
    """Return what an overview lacks. It is followed by breakdowns, each of which ends with its 99th percentile."""
    last = text.rpartition("Breakdown")[2] if "Breakdown" in text else ""
    return None if f"{_LAST} " in last else cut(f"the last breakdown of its percentiles has no {_LAST}")
