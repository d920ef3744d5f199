"""Compute a run's figures from its answers: counts, percentiles and rates, as plain values for JSON.

Imported by client.py on the host. Standard library only, Python 3.6 and later. A percentile is the smallest value that
at least this share of all requests stays within. A request without a complete answer stays within no value, so it never
counts as fast.
"""

import json
import math

SHARES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
ENDS = ("stop", "tool_calls", "function_call")  # finish_reasons of answers that the model ended
TOLERATED = 0.01  # share of requests that may fail in a run whose figures count


def failure(answer, exact):
    """Return why an answer does not count; empty if it counts. ``exact``: it must have the requested number of
    tokens.
    """
    if answer.problem:
        return answer.problem
    if answer.used is None:
        return "no usage"
    tokens = answer.used[1]
    ended = answer.finish in ENDS and not exact
    if tokens < answer.wanted and not ended:
        return "cut"
    if tokens > answer.wanted:
        return "longer than asked"
    return "" if answer.stamps and tokens else "empty"


def percentile(values, missing, share):
    """Return the value that ``share`` of all requests stay below; None if too many are ``missing``."""
    rank = math.ceil(share * (len(values) + missing) - 1e-9)
    return sorted(values)[rank - 1] if 0 < rank <= len(values) else None


def spread(values, missing):
    """Return percentiles and the mean. The mean covers only answered requests."""
    ordered = sorted(values)
    figures = {name: percentile(ordered, missing, share) for name, share in SHARES}
    figures["mean"] = sum(ordered) / len(ordered) if ordered else None
    return figures


def ttft(answer):
    """Return the time from when the request was due to the first piece with text."""
    return answer.stamps[0] - answer.due


def tpot(answer):
    """Return the mean time of a token after the first; None if there is no second token or piece."""
    more = answer.used[1] - 1
    return (answer.stamps[-1] - answer.stamps[0]) / more if more > 0 and len(answer.stamps) > 1 else None


def e2e(answer):
    """Return the time from when the request was due to its last token."""
    return answer.stamps[-1] - answer.due


def thinking(answer):
    """Return the tokens of an answer that are thinking: the server's count, its marks, or what was planned."""
    if answer.reasoned is not None:
        return answer.reasoned
    if answer.thought:
        return answer.used[1] * answer.thought / len(answer.stamps)
    return answer.prompt.thinking if answer.prompt else 0


def reply(answer):
    """Return the time from when the request was due to the first piece that is not thinking; None if there is none."""
    if answer.thought:
        return None if answer.replied is None else answer.replied - answer.due
    place = int(thinking(answer) * len(answer.stamps) / float(answer.used[1]))
    return answer.stamps[place] - answer.due if place < len(answer.stamps) else None


def lateness(answer):
    """Return the delay of an answer that the client caused: the request was sent late, or its first or last piece
    waited to be read.
    """
    return max(answer.sent - answer.due, *(answer.delays or (0.0,)))


def exceeded(values):
    """Return the value that at most 1% of all, or one of them, exceed; None if there are none."""
    ordered = sorted(values, reverse=True)
    return ordered[min(len(ordered) - 1, max(1, len(ordered) // 100))] if ordered else None


def called(answer):
    """Return whether an answer is a complete tool call: a name, and arguments that are a JSON object."""
    try:
        return bool(answer.calls) and all(
            name and isinstance(json.loads(text), dict) for name, text in answer.calls.values()
        )
    except (ValueError, RecursionError):
        return False


def of_run(answers, window, exact, worked, wall):
    """Return the figures of a run, and its answers. ``answers``: all that ended, including those before and after the
    window.

    ``window``: the two ends of the measured time; latencies are of requests due within it, rates of the tokens that
    came within it. ``worked`` of ``wall`` seconds this client was at work.
    """
    begin, end = window
    seconds = end - begin
    complete = [a for a in answers if not failure(a, exact)]
    mine = [a for a in answers if begin <= a.due < end]
    good = [a for a in mine if not failure(a, exact)]
    reasons, details = {}, {}
    for answer in mine:
        reason = failure(answer, exact)
        if reason:
            reasons[reason] = reasons.get(reason, 0) + 1
            details.setdefault(reason, detail(answer, reason))
    bad = len(mine) - len(good)
    gaps = [b - a for answer in good for a, b in zip(answer.stamps, answer.stamps[1:])]  # noqa: B905
    tpots = [value for value in map(tpot, good) if value is not None]
    result = {
        "answers": mine,
        "requests": len(mine),
        "answered": len(good),
        "failures": reasons,
        "details": details,
        "seconds": seconds,
        "window": window,
        "ttft": spread([ttft(a) for a in good], bad),
        "tpot": spread(tpots, bad if tpots else 0),
        "gap": spread(gaps, 0),
        "e2e": spread([e2e(a) for a in good], bad),
        "requests_per_second": sum(begin <= a.stamps[-1] < end for a in complete) / seconds,
        "output_tokens_per_second": sum(within(a, begin, end) for a in complete) / seconds,
        "input_tokens_per_second": sum(a.used[0] for a in complete if begin <= a.stamps[0] < end) / seconds,
        "prompt_tokens": mean([a.used[0] for a in good]),
        "output_tokens": mean([a.used[1] for a in good]),
        "tokens_a_piece": mean([a.used[1] / len(a.stamps) for a in good]),
        "late": exceeded([lateness(a) for a in mine if a.sent is not None]),
        "busy": worked / wall if wall else 0.0,
    }
    result.update(of_prompts(good, bad))
    return result


def of_prompts(good, bad):
    """Return figures of caches, thinking and tool calls, as far as these answers have any."""
    planned = [a for a in good if a.prompt is not None]
    tokens = float(sum(a.used[0] for a in planned))
    result = {}
    if tokens:
        result["reusable"] = sum(min(a.prompt.reusable, a.used[0]) for a in planned) / tokens
    counted = [a for a in good if a.cached is not None]
    if counted:
        result["cached"] = sum(a.cached for a in counted) / float(sum(a.used[0] for a in counted) or 1)
    thoughts = [thinking(a) for a in good]
    if any(thoughts):
        replies = [value for value in map(reply, good) if value is not None]
        result["thinking_tokens"] = mean(thoughts)
        result["ttfa"] = spread(replies, bad + len(good) - len(replies))
    asked = [a for a in good if a.calls is not None]
    if asked:
        result["tool_calls"] = sum(map(called, asked)) / float(len(asked) + bad)
    return result


def detail(answer, reason):
    """Describe the failure of one request in words."""
    if reason in ("cut", "longer than asked"):
        return "%d of %d tokens, finish_reason %s" % (answer.used[1], answer.wanted, answer.finish)
    return answer.detail


def within(answer, begin, end):
    """Return the tokens of an answer that came within a time. All pieces with text count as equally long."""
    return answer.used[1] * sum(begin <= stamp < end for stamp in answer.stamps) / len(answer.stamps)


def mean(values):
    return sum(values) / len(values) if values else None


def kept(figures, targets, share):
    """Return whether ``share`` of the run's requests met each target: (name, seconds)."""
    if not figures["requests"] or figures["answered"] < (1 - TOLERATED) * figures["requests"]:
        return False
    quantile = "p%g" % round(100 * share, 6)
    values = [(figures[name][quantile], target) for name, target in targets]
    return all(value is not None and value <= target for value, target in values)
