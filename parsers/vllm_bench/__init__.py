"""Parse the JSON and table of ``vllm bench serve``, and of forks with the same names (InferenceX's is in seconds).

Case: ``c4`` (maximum concurrency), ``r2`` (request rate) or ``all``. Metrics are those of ``parsers/serving``: vLLM's
TPOT is the same, and its ITL is the time between pieces of the stream. A run is ``invalid`` if more than 1% of its
requests failed, because the tool exits with status 0 even if all fail. Spare Cores' long form (one measurement and
percentile per line) has a case for each load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_json
from fleetmark.parsers.kit.text import decode, dig, find_json, number, numbered
from fleetmark.parsers.serving import counted, failed, load, measurements, seconds

_TOOL = "vllm_bench"
_TIMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e", "e2e_latency": "e2e"}
_SHARES = {"mean": "mean", "median": "p50", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_RATES = {
    "request_throughput": "requests_per_second",
    "output_throughput": "output_tokens_per_second",
    "total_token_throughput": "total_tokens_per_second",
    "total_throughput": "total_tokens_per_second",
    "input_throughput": "input_tokens_per_second",
}
# A figure may be followed by a mark such as "<====", with which InferenceX's fork marks the rows that it plots.
_ROW = re.compile(r"^([A-Z][A-Za-z0-9 ()/.-]{2,60}?): +([0-9.]{1,24})(?: +[^0-9\s]\S{0,40})? *$")
_WORDS = {
    "Successful requests": "completed",
    "Failed requests": "failed",
    "Maximum request concurrency": "max_concurrency",
    "Request throughput (req/s)": "request_throughput",
    "Output token throughput (tok/s)": "output_throughput",
    "Total Token throughput (tok/s)": "total_token_throughput",
    "Total token throughput (tok/s)": "total_token_throughput",
}
_TABLE = "Serving Benchmark Result"
_LONG = {"ttft": "ttft", "itl": "tpot", "inter_token_latency": "tpot", "tpot": "token_mean", "e2e": "e2e"}
_MOST = 5_000


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the runs in ``raw``. Raise ParseError if there is none."""
    text = decode(raw)
    scan = find_json(text)
    docs = [d.value for d in scan.documents[:_MOST]]
    if any("measurement" in d and "score" in d for d in docs):
        return _long(docs, cut_in_json(scan))
    runs = [d for d in docs if "output_throughput" in d and "request_throughput" in d]
    ends: str | None = None
    if not runs and _TABLE in text:
        runs, ends = _tables(text)
    if not runs:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "the result of vllm bench serve", line=1, got=got)
    return result(_TOOL, runs, ends or cut_in_json(scan))


def result(tool: str, runs: Sequence[Mapping[str, Any]], incomplete: str | None) -> Parsed:
    """Return the runs under vLLM's names, which other tools also use."""
    rows = [m for run in runs for m in _run(tool, run)]
    if not rows:
        raise ParseError(tool, "a run with figures", line=1, got="a result without any")
    reasons = [_why(run) for run in runs]
    reasons.append(incomplete)
    invalid = "; ".join(dict.fromkeys(filter(None, reasons))) or None
    return Parsed(tool, tuple(rows), invalid=invalid)


def _requests(run: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the numbers of requests and answers."""
    answered, bad, prompts = (counted(run.get(k)) for k in ("completed", "failed", "num_prompts"))
    errors = run.get("errors")  # one per request, empty for answered requests
    if bad is None and prompts is None and isinstance(errors, list) and answered is not None:
        return max(float(len(errors)), answered), answered
    return (answered + bad if answered is not None and bad is not None else prompts), answered


def _why(run: Mapping[str, Any]) -> str | None:
    return failed(*_requests(run))


def _run(tool: str, run: Mapping[str, Any]) -> Iterator[Measurement]:
    requests, answered = _requests(run)
    figures: dict[str, object] = {"requests": requests}
    if requests and answered is not None:
        figures["failures"] = max(0.0, requests - answered) / requests
    figures |= {ours: run.get(theirs) for theirs, ours in _RATES.items() if theirs in run}
    for theirs, ours in _TIMES.items():
        for word, share in _SHARES.items():
            if f"{word}_{theirs}_ms" in run:
                figures[f"{ours}_{share}"] = seconds(run[f"{word}_{theirs}_ms"])
            elif f"{word}_{theirs}" in run:
                figures[f"{ours}_{share}"] = run[f"{word}_{theirs}"]
    middle = number(figures.get("tpot_p50"))
    if middle and middle > 1e-9:
        figures["interactivity"] = 1 / middle
    if answered:
        for name, ours in (("total_input_tokens", "prompt_tokens"), ("total_output_tokens", "output_tokens")):
            total = number(run.get(name))
            figures[ours] = total / answered if total else None
    model = run.get("model_id") or dig(run, "server_info", "model_path")
    labels = {"model": model[:200]} if isinstance(model, str) and model else {}
    yield from measurements(tool, load(run.get("max_concurrency"), run.get("request_rate")), figures, labels)


def _tables(text: str) -> tuple[list[dict[str, Any]], str | None]:
    """Return the tables in ``text``, under the names that the JSON uses, and what the last table lacks."""
    runs: list[dict[str, Any]] = []
    closed = True
    for _, line in numbered(text):
        if _TABLE in line:
            runs.append({})
            closed = False
        elif not closed and line.startswith("=====") and set(line.strip()) == {"="}:
            closed = True
        elif not closed and (match := _ROW.match(line)):
            runs[-1][_key(match[1])] = number(match[2])
    tables = [r for r in runs[:_MOST] if "output_throughput" in r]
    return tables, None if closed else cut("the line that ends the table is missing")


def _key(words: str) -> str:
    """Return the name that the JSON uses for a row of the table."""
    if words in _WORDS:
        return _WORDS[words]
    match = re.fullmatch(r"(Mean|Median|P[0-9]{2}) (TTFT|TPOT|ITL|E2EL|E2E Latency) \(ms\)", words)
    return f"{match[1].lower()}_{match[2].lower().replace(' ', '_')}_ms" if match else words


def _long(docs: Sequence[Mapping[str, Any]], incomplete: str | None) -> Parsed:
    """Return Spare Cores' runs, which guidellm measured; their ``itl`` is Fleetmark's TPOT."""
    rows: list[Measurement] = []
    for row in docs:
        name, share, unit = row.get("measurement"), row.get("percentile"), row.get("unit")
        ours = _LONG.get(name) if isinstance(name, str) else None
        if ours is None or not isinstance(share, str) or share not in _SHARES or unit not in ("ms", "s"):
            continue
        value = seconds(row.get("score")) if unit == "ms" else number(row.get("score"))
        case = f"{row.get('workload')} {row.get('strategy')} {load(None, row.get('target_rate'))}"[:120]
        labels = {"model": str(row.get("model"))[:200]}
        rows += measurements(_TOOL, case, {f"{ours}_{_SHARES[share]}": value}, labels)
    if not rows:
        raise ParseError(_TOOL, "a measurement with a percentile", line=1, got="rows without one")
    return Parsed(_TOOL, tuple(rows), invalid=incomplete)
