"""Parse runs of Fleetmark's own client of an OpenAI-compatible endpoint (``llm_serve/files/client.py``).

Case: ``c8`` (closed loop), ``r2`` (requests per second), ``x1`` (a trace at its own times), ``goodput``. Rates in 1/s:
``output_tokens_per_second``, ``goodput`` with ``goodput_missed`` (the lowest rate shown to miss a target),
``interactivity`` (1 / median TPOT). Times in s: ``ttft_*``, ``tpot_*`` = (last - first token) / (tokens - 1),
``itl_*``, ``e2e_*`` and ``ttfa_*`` (the first token after the thinking). Percentiles cover all requests; failed
requests count as the slowest. The 99th percentile requires 100 requests, or 1,000 if some failed. The 90th percentile
requires 10 requests, or 100 if some failed.

``exact_match`` (share of correct answers to generated arithmetic), ``retrieval`` (share of a list's entries that are
found in it) and ``perplexity`` (of a fixed text) are the worse of the checks before and after the runs.
``cache_hit_rate`` is the rate that the server reports; ``reusable_prompt`` is the highest possible rate.

A run is ``invalid`` if the client itself was late, if more than 1% of its requests failed, if no rate meets its
targets, if answers are worse after it than before, or if they are less likely than those of the same model elsewhere.
If the client reports that another machine answered, the work was done ``elsewhere``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, dig, number, numbered

_TOOL = "llm_serve"
_TOLERATED = 0.01
_BUSY = 0.7  # share of a run's time above which the client may limit the run
_LATE = 0.005  # delay in s above which the client affects the measurement
_WORSE_MATCH = 0.1  # share of answers that batching may change
_WORSE_TEXT = 0.02  # share of perplexity that batching and kernels may change
_MATCHES = {"exact_match": "the arithmetic", "retrieval": "the retrieval"}
_COMPARED = (
    ("difference", "logprob_difference", Better.LOWER, max),
    ("largest", "logprob_difference_max", Better.NONE, max),
    ("agreement", "top1_agreement", Better.HIGHER, min),
)  # relative to a stored reference
_LONGEST = 20_000  # maximum characters of a line
_MOST = 2_000  # maximum number of runs
_KINDS = ("closed", "open", "replay", "goodput")
_SHARES = {
    "cache_hit_rate": "cache_hit_rate",
    "cached": "cached_prompt",
    "reusable": "reusable_prompt",
    "tool_calls": "tool_calls",
}
_TARGETS = ("first tokens within {} s", "later ones within {} s each", "whole answers within {} s")
_LATEST = 4e9  # latest valid time, in Unix seconds
_PIECE = 1.02  # tokens per piece above which gaps are between pieces instead of tokens


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every run except the probes of a search. Raise ParseError if there is none."""
    text = decode(raw)
    lines = [doc for n, line in numbered(text) if (doc := _object(line)) is not None]
    header = next((d for d in lines if "llm_serve" in d), {})
    runs = [d for d in lines if d.get("run") in _KINDS][:_MOST]
    runs = [d for n, d in enumerate(runs) if d["run"] != "goodput" or not _is_goodput(runs[n + 1 :])]
    model = header.get("model")
    labels = {"model": model[:200]} if isinstance(model, str) and model else {}
    gpus = number(header.get("gpus")) or 0.0
    measurements = [m for run in runs for m in _measurements(run, labels, gpus)]
    checks = [d for d in lines if d.get("quality") in ("before", "after")]
    if runs:
        measurements += _quality(checks, _case(runs[0]), labels)
    tried = next((number(d.get("rate")) for d in lines if d.get("run") == "not kept"), None)
    if tried and tried > 0:  # the reasons why a search had no result
        measurements.append(
            Measurement(_TOOL, "goodput", "rate_tried", tried, "1/s", better=Better.NONE, labels=labels)
        )
    if not header or not measurements:
        got = next((line for _, line in numbered(text) if line.strip()), "no output")
        raise ParseError(_TOOL, "runs of Fleetmark's client", line=1, got=got)
    ended = bool(lines) and lines[-1].get("end") is True and text.endswith("\n")
    reasons = [_failed(run) for run in runs] + [_not_kept(header, lines), *_worse(checks), *_late(header, lines)]
    reasons.append("" if ended else cut("the line that ends it is missing"))
    invalid = "; ".join(dict.fromkeys(filter(None, reasons)))
    notes = tuple(dict.fromkeys(note for run in runs for note in _notes(run)))
    window, elsewhere = _window(runs), header.get("here") is False
    return Parsed(_TOOL, tuple(measurements), invalid=invalid or None, notes=notes, window=window, elsewhere=elsewhere)


def _object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{") or len(line) > _LONGEST:
        return None
    try:
        doc = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return doc if isinstance(doc, dict) else None


def _window(runs: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Return the measured time of the only run; None if there are several or the time is missing."""
    ends = runs[0].get("window") if len(runs) == 1 else None
    begin, end = (number(m) for m in ends) if isinstance(ends, list) and len(ends) == 2 else (None, None)
    return (begin, end) if begin is not None and end is not None and 0 < begin < end < _LATEST else None


def _is_goodput(later: Sequence[Mapping[str, Any]]) -> bool:
    return any(d["run"] == "goodput" for d in later)


def _case(run: Mapping[str, Any]) -> str:
    streams, rate = number(run.get("concurrency")), number(run.get("rate"))
    if run["run"] == "closed" and streams is not None:
        return f"c{streams:g}"
    if run["run"] == "replay":
        return f"x{number(run.get('speed')) or 0:g}"
    return "goodput" if run["run"] == "goodput" else f"r{rate or 0:g}"


def _measurements(run: Mapping[str, Any], labels: Mapping[str, str], gpus: float) -> Iterator[Measurement]:
    case = _case(run)

    def measurement(metric: str, value: float, unit: str, better: Better) -> Measurement:
        return Measurement(_TOOL, case, metric, value, unit, better=better, labels=labels)

    requests, answered = (number(run.get(k)) or 0.0 for k in ("requests", "answered"))
    if number(run.get("requests")) is not None and requests >= 0:
        yield measurement("requests", requests, "1", Better.NONE)
    if requests > 0 and (unanswered := number(max(0.0, requests - answered) / requests)) is not None:
        yield measurement("failures", unanswered, "1", Better.LOWER)
    if not answered:
        return
    yield from _rates(run, measurement)
    for name, metric in (("ttft", "ttft"), ("tpot", "tpot"), ("gap", _gap(run)), ("e2e", "e2e"), ("ttfa", "ttfa")):
        shares = ("p50", "p90", "p99", "mean")
        for share in (s for s in shares if requests >= _fewest(s, requests - answered)):
            value = number(dig(run, name, share))
            if value is not None and value > 0:  # tokens that arrived at the same moment give no measurable time
                yield measurement(f"{metric}_{share}", value, "s", Better.LOWER)
    middle = number(dig(run, "tpot", "p50"))
    if middle is not None and middle > 0 and number(1 / middle) is not None:
        yield measurement("interactivity", 1 / middle, "1/s", Better.HIGHER)
    for key in ("prompt_tokens", "output_tokens"):
        count = number(run.get(key))
        if count is not None:
            yield measurement(key, count, "1", Better.NONE)
    yield from _uses(run, case, labels)
    if gpus:
        yield measurement("accelerators", gpus, "1", Better.NONE)


def _uses(run: Mapping[str, Any], case: str, labels: Mapping[str, str]) -> Iterator[Measurement]:
    """Return what is known about caches, thinking, tool calls and the client's lateness."""
    for key, metric in _SHARES.items():
        share = number(run.get(key))
        if share is not None and 0 <= share <= 1:
            source = run.get("cache_metric") if key == "cache_hit_rate" else None
            more = {"source": source[:100]} if isinstance(source, str) else {}
            better = Better.HIGHER if key == "tool_calls" else Better.NONE
            yield Measurement(_TOOL, case, metric, share, "1", better=better, labels={**labels, **more})
    if (tokens := number(run.get("thinking_tokens"))) is not None and tokens > 0:
        yield Measurement(_TOOL, case, "thinking_tokens", tokens, "1", better=Better.NONE, labels=labels)
    if (late := number(run.get("late"))) is not None and late > 1e-9:
        yield Measurement(_TOOL, case, "client_lateness", late, "s", better=Better.NONE, labels=labels)


def _rates(run: Mapping[str, Any], measurement: Any) -> Iterator[Measurement]:
    rate, missed = number(run.get("rate")), number(run.get("missed"))
    if run["run"] == "goodput" and rate:
        yield measurement("goodput", rate, "1/s", Better.HIGHER)
        if missed and missed > rate:
            yield measurement("goodput_missed", missed, "1/s", Better.NONE)
    for key in ("output_tokens_per_second", "input_tokens_per_second", "requests_per_second"):
        value = number(run.get(key))
        if value is not None and value > 0:  # no rate was measured in a window without answers
            yield measurement(key, value, "1/s", Better.HIGHER if key.startswith("output") else Better.NONE)


def _fewest(share: str, failed: float) -> float:
    """Return the minimum number of requests for a percentile: one beyond the percentile, or ten if some failed."""
    beyond = {"p90": 10, "p99": 100}.get(share, 1)
    return 10 * beyond if failed > 0 and beyond > 1 else beyond


def _gap(run: Mapping[str, Any]) -> str:
    """Return what the gaps between pieces measure: gaps between tokens, or between pieces of several tokens."""
    return "piece_gap" if (number(run.get("tokens_a_piece")) or 1.0) > _PIECE else "itl"


def _failed(run: Mapping[str, Any]) -> str:
    """Return why the figures of a run are not valid; empty if they are."""
    requests, answered = (number(run.get(k)) for k in ("requests", "answered"))
    case = _case(run)
    if not requests or answered is None:
        return f"{case}: no request was sent in the measured time; raise seconds"
    if answered >= (1 - _TOLERATED) * requests:
        return ""
    failures = run.get("failures")
    parts = []
    for reason, count in list(failures.items())[:5] if isinstance(failures, dict) else []:
        detail = dig(run, "details", reason)
        more = f", {detail[:160]}" if isinstance(detail, str) and detail else ""
        parts.append(f"{number(count) or 0:g} {str(reason)[:60]}{more}")
    return f"{case}: {requests - answered:g} of {requests:g} requests failed ({'; '.join(parts)})"


def _late(header: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return where the client itself exceeded its lateness limit, in a run or in a step of a search."""
    limit = number(header.get("limit"))
    for line in lines[:_MOST] if limit else ():
        late = number(line.get("late"))
        if late is None or not limit or late <= limit or line.get("run") not in (*_KINDS, "trial"):
            continue
        place = f"search at {number(line.get('rate')) or 0:.3g}/s" if line["run"] == "trial" else _case(line)
        yield (
            f"{place}: the client itself was {late:.3g} s late (99%), more than {limit:g} s; raise processes, give the "
            "client's host more processors, or reduce the load"
        )


def _not_kept(header: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> str:
    last = next((d for d in lines if d.get("run") == "not kept"), None)
    if last is None:
        return ""
    limits = [number(dig(header, "targets", n)) or 0.0 for n in range(len(_TARGETS))]
    rate = number(last.get("rate")) or 0.0
    share, missed = number(last.get("share")) or 0.99, number(last.get("missed"))
    if "requests" not in last:  # recorded by a client that treated the last tried rate as missed
        missed = rate
    each = [words.format(f"{limit:g}") for words, limit in zip(_TARGETS, limits, strict=True) if limit]
    targets = f"the targets ({share:.0%} of {', of '.join(each)})"
    if missed:
        return f"{targets} are not kept at {missed:.3g} requests/s, the lowest rate shown to miss one"
    requests = number(last.get("requests")) or 0.0
    return (
        f"{targets} are shown neither to be kept nor to be missed at {rate:.3g} requests/s within effort: a rate takes "
        f"{requests:g} requests at least; raise effort, or take a lower percentile"
    )


def _quality(checks: Sequence[Mapping[str, Any]], case: str, labels: Mapping[str, str]) -> Iterator[Measurement]:
    """Return the worse of the checks before and after the runs."""
    for metric, better, worse in (
        *((name, Better.HIGHER, min) for name in _MATCHES),
        ("perplexity", Better.LOWER, max),
    ):
        values = [value for check in checks if (value := number(check.get(metric))) is not None]
        if values and worse(values) >= 0:
            yield Measurement(_TOOL, case, metric, worse(values), "1", better=better, labels=labels)
    for key, metric, better, worse in _COMPARED:
        values = [value for check in checks if (value := number(check.get(key))) is not None and value >= 0]
        if values and (better is not Better.HIGHER or worse(values) <= 1):
            yield Measurement(_TOOL, case, metric, worse(values), "1", better=better, labels=labels)


def _worse(checks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return why the answers of a run are not valid: worse after the run than before, or less likely than expected."""
    by_moment = {check["quality"]: check for check in checks}
    before, after = by_moment.get("before", {}), by_moment.get("after", {})
    for metric, task in _MATCHES.items():
        first, last = (number(check.get(metric)) for check in (before, after))
        if first is not None and last is not None and last < first - _WORSE_MATCH:
            yield f"answers became worse: {first:.0%} of {task} was right before the runs and {last:.0%} after them"
    likely, later = (number(check.get("perplexity")) for check in (before, after))
    if likely and later and later > likely * (1 + _WORSE_TEXT):
        yield f"answers became worse: the fixed text has perplexity {later:.4g} after the runs and {likely:.4g} before"
    yield from _unlike(before, after)
    expected, highest = number(before.get("expected")), max(likely or 0.0, later or 0.0)
    if expected and highest > expected * (1 + _WORSE_TEXT):
        yield (
            f"the answers are not those of the same model: the fixed text has perplexity {highest:.4g}, and "
            f"{expected:.4g} is expected, within {_WORSE_TEXT:.0%}"
        )


def _unlike(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Return why the answers differ from those of the stored reference."""
    for moment, check in (("before", before), ("after", after)):
        difference, bound = number(check.get("difference")), number(check.get("bound"))
        if isinstance(reason := check.get("unlike"), str) and reason:
            yield f"the fixed text cannot be compared with the reference: {reason[:200]}"
        if difference is not None and bound is not None and difference > bound:
            largest, agreement = number(check.get("largest")) or difference, number(check.get("agreement"))
            alike = f", and {agreement:.0%} of the most likely tokens are the same" if agreement is not None else ""
            yield (
                f"{moment} the runs the answers are not those of the reference: log-probabilities of the fixed text "
                f"differ by {difference:.3g} on average, more than {bound:g}, and by {largest:.3g} at most{alike}"
            )


def _notes(run: Mapping[str, Any]) -> Iterator[str]:
    case = _case(run)
    requests, answered = (number(run.get(k)) or 0.0 for k in ("requests", "answered"))
    if (pieces := number(run.get("tokens_a_piece"))) and pieces > _PIECE:
        yield f"{case}: the server sends {pieces:.3g} tokens per piece: gaps are between pieces (piece_gap), not tokens"
    if (busy := number(run.get("busy"))) and busy > _BUSY:
        yield f"{case}: the client was busy for {busy:.0%} of the time, and may limit the run"
    if (late := number(run.get("late"))) and late > _LATE:
        yield f"{case}: the client itself was {late:.3g} s late (99%): its host is busy, and its times are too long"
    if 0 < requests < _fewest("p99", requests - answered):
        yield f"{case}: {requests:g} requests are too few for the 99th percentile, which is omitted"
    if run["run"] == "goodput" and (rate := number(run.get("rate"))):
        missed, error = number(run.get("missed")), number(run.get("error")) or 0.05
        upper = f"and missed at {missed:.3g}/s" if missed else "and no rate was shown to miss one within effort"
        yield f"goodput: the targets are kept at {rate:.3g}/s {upper}; each is wrong in at most {error:.0%} of searches"
    if dropped := number(run.get("dropped_turns")):
        yield f"{case}: {dropped:g} turns of conversations were dropped, because the previous turn failed"
    if left_out := number(run.get("left_out")):
        yield f"{case}: {left_out:g} requests of the trace are omitted, because they had no prompt or no answer"
    if 0 < answered < requests:
        yield f"{case}: {requests - answered:g} of {requests:g} requests failed and count as the slowest"
    if answered and (number(run.get("output_tokens")) or 0) > 2 and not number(dig(run, "tpot", "p50")):
        yield f"{case}: answers arrive in one piece, because the stream is buffered, so TPOT cannot be measured"
