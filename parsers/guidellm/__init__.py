"""Parse guidellm's JSON; each of its benchmarks is a case.

Case: ``concurrent c4``, ``constant r2``, ``synchronous``. guidellm's names differ from vLLM's.
``inter_token_latency_ms`` is (last - first token) / (tokens - 1) of a request, which is ``tpot``.
``time_per_output_token_ms`` is a request's time per token, including the wait for the first token, which is
``token_mean``. Rates are means over time of answered requests only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Measurement, Parsed
from fleetmark.parsers.kit.cut import cut_in_json
from fleetmark.parsers.kit.text import decode, dig, find_json, number, numbered, objects
from fleetmark.parsers.serving import counted, failed, load, measurements, seconds

_TOOL = "guidellm"
_TIMES = {
    "time_to_first_token_ms": ("ttft", True),
    "inter_token_latency_ms": ("tpot", True),
    "time_per_output_token_ms": ("token_mean", True),
    "request_latency": ("e2e", False),  # seconds
}
_SHARES = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_RATES = {
    "output_tokens_per_second": "output_tokens_per_second",
    "prompt_tokens_per_second": "input_tokens_per_second",
    "requests_per_second": "requests_per_second",
}
_COUNTS = {"prompt_token_count": "prompt_tokens", "output_token_count": "output_tokens"}
_MOST = 1_000
_KEPT = 0.95  # a run below this share of the requested rate did not keep up


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the benchmarks in ``raw``. Raise ParseError if there is none."""
    text = decode(raw)
    scan = find_json(text)
    report = next((d.value for d in scan.documents if objects(d.value.get("benchmarks"))), None)
    if report is None:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "guidellm's benchmarks in JSON", line=1, got=got)
    benchmarks = objects(report["benchmarks"])[:_MOST]
    model = dig(report, "config", "spec", "backend", "model") or dig(report, "args", "model")
    labels = {"model": model[:200]} if isinstance(model, str) and model else {}
    rows = [m for b in benchmarks for m in _benchmark(b, labels)]
    if not rows:
        raise ParseError(_TOOL, "a benchmark with metrics", line=1, got="benchmarks without them")
    reasons = [*(failed(*_requests(b)) for b in benchmarks), cut_in_json(scan)]
    invalid = "; ".join(dict.fromkeys(filter(None, reasons))) or None
    version = dig(report, "metadata", "guidellm_version")
    version = version if isinstance(version, str) else None
    notes = tuple(filter(None, map(_behind, benchmarks)))
    return Parsed(_TOOL, tuple(rows), version=version, invalid=invalid, notes=notes)


def _behind(benchmark: Mapping[str, Any]) -> str:
    """Return a note if the rate of answered requests is below the requested rate; otherwise an empty text."""
    rate = number(dig(benchmark, "config", "strategy", "rate"))
    achieved = number(dig(benchmark, "metrics", "requests_per_second", "successful", "mean"))
    if not rate or achieved is None or achieved >= _KEPT * rate:
        return ""
    return (
        f"{_case(benchmark)}: {achieved:.3g} requests/s were answered of {rate:.3g} requested: the server or the "
        f"client did not keep up, and the case has the requested rate in its name"
    )


def _requests(benchmark: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the numbers of ended and answered requests, without those cut off at the end of the run."""
    answered, bad = (counted(dig(benchmark, "metrics", "request_totals", k)) for k in ("successful", "errored"))
    return (answered + bad if answered is not None and bad is not None else None), answered


def _benchmark(benchmark: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Measurement]:
    requests, answered = _requests(benchmark)
    figures: dict[str, object] = {"requests": requests}
    if rate := number(dig(benchmark, "config", "strategy", "rate")):
        figures["offered_requests_per_second"] = rate
    if requests and answered is not None:
        figures["failures"] = max(0.0, requests - answered) / requests
    for theirs, ours in {**_RATES, **_COUNTS}.items():
        figures[ours] = dig(benchmark, "metrics", theirs, "successful", "mean")
    for theirs, (name, in_ms) in _TIMES.items():
        statistics = dig(benchmark, "metrics", theirs, "successful")
        values = {"mean": dig(statistics, "mean")} | {
            ours: dig(statistics, "percentiles", p) for p, ours in _SHARES.items()
        }
        figures |= {f"{name}_{share}": seconds(v) if in_ms else v for share, v in values.items()}
    middle = number(figures.get("tpot_p50"))
    if middle and middle > 1e-9:
        figures["interactivity"] = 1 / middle
    yield from measurements(_TOOL, _case(benchmark), figures, labels)


def _case(benchmark: Mapping[str, Any]) -> str:
    strategy = dig(benchmark, "config", "strategy")
    kind = dig(strategy, "type_")
    of_load = load(dig(strategy, "streams") or dig(strategy, "max_concurrency"), dig(strategy, "rate"))
    word = str(kind)[:40] if isinstance(kind, str) and kind else "run"
    return word if of_load == "all" else f"{word} {of_load}"
