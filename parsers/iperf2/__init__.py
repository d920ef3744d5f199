"""Parse iperf 2: throughput, loss and jitter of a test, from the text or comma-separated output of a client or server.

Metrics: ``bitrate`` (B/s; counted by the receiver for UDP, and by the printing side for TCP), ``sent_bitrate`` (B/s
that a UDP sender sent; only descriptive), ``retransmits`` (with ``-e``), ``loss`` (fraction), ``jitter`` (s),
``packets`` and ``lost_packets``; ``rtt_mean``, ``rtt_min``, ``rtt_max`` (s) of ``--bounceback``. If both directions
ran, the reverse direction has the same names with the prefix ``reverse_``. The subject is ``host`` for the whole test,
and ``stream-3`` for one of several streams. The case is the protocol, the number of streams (if more than one) and the
kind of test: ``tcp``, ``tcp-4``, ``udp-reverse``, ``tcp-bidir``, ``tcp-tradeoff`` (one direction after the other),
``tcp-bounceback``. Several tests in one file are repeats.

The sum over several streams is iperf's own. Otherwise it is derived, but only from streams that are known to have run
at the same time. Source: iperf 2.0.5 to 2.2.1 (Locale.c, ReportCSV.c, ReportOutputs.c).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.iperf2.end import end_missing, options_of
from fleetmark.parsers.iperf2.rows import FAILURE, Stream, Test, final, read_csv, read_text
from fleetmark.parsers.iperf3.text import weighted_mean
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decode, matches, numbered

_KINDS = {
    "bitrate": ("B/s", Better.HIGHER),
    "sent_bitrate": ("B/s", Better.NONE),
    "retransmits": ("1", Better.LOWER),
    "loss": ("1", Better.LOWER),
    "jitter": ("s", Better.LOWER),
    "packets": ("1", Better.NONE),
    "lost_packets": ("1", Better.NONE),
    "rtt_mean": ("s", Better.LOWER),
    "rtt_min": ("s", Better.LOWER),
    "rtt_max": ("s", Better.LOWER),
}
_CUT = cut("the row for the whole test is missing")
_SAME_TIME = 1.1  # ratio: streams whose durations differ by more did not run in parallel
_SAME_SUM = 0.05


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every test in ``raw``.

    The options ``-P`` and ``-t`` of ``command``, if known, give the number of streams and the duration. ``invalid`` is
    set if the only test failed partly, or if the text ends before the last test does. Raise ParseError, with iperf's
    own message if there is one, if no test moved data.
    """
    text = decode(raw)
    options = options_of(command)
    tests = read_csv(text)
    if tests:
        for test in tests:
            test.parallel = test.parallel or len(test.streams) == options.streams
        tests[-1].failures += [m["what"].strip() for _, m in matches(FAILURE, text)]
    else:
        tests = read_text(text)
    results = [_result(t) for t in tests]
    some = [r for r in results if r.values]
    if not some:
        raise _nothing(text, tests)
    last = results[-1]
    if not last.failure:
        last.cut = last.cut or end_missing(tests[-1], text, options)
    used = [r for r in some if not r.error] or some
    notes = [f"{len(used)} tests in one file, which count as repeats"] if len(used) > 1 else []
    measurements: list[Measurement] = []
    for n, result in enumerate(results, 1):
        prefix = f"test {n}: " if len(results) > 1 else ""
        notes += [prefix + note for note in result.notes]
        if result in used:
            measurements += _measure(result)
        else:
            notes.append(f"{prefix}left out: {result.error or 'no data moved'}")
    invalid = (None if last.failure else last.cut) or used[0].error
    return Parsed("iperf2", tuple(measurements), None, invalid, tuple(dict.fromkeys(notes)))


@dataclass(slots=True)
class _Result:
    """The figures of one test in base units by (subject, metric)."""

    case: str = ""
    values: dict[tuple[str, str], float] = field(default_factory=dict)
    failure: str | None = None
    cut: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def error(self) -> str | None:
        """Return why the test is not valid."""
        return self.failure or self.cut


def _measure(result: _Result) -> list[Measurement]:
    measurements = []
    for (subject, metric), value in result.values.items():
        unit, better = _KINDS[metric.removeprefix("reverse_")]
        measurements.append(Measurement("iperf2", result.case, metric, value, unit, better=better, subject=subject))
    return measurements


def _result(test: Test) -> _Result:
    result = _Result(notes=list(test.notes))
    live = [s for s in test.streams.values() if s.rows]
    rows = [r for s in live for r in s.rows] + test.sums
    protocol = "udp" if any(r.udp for r in rows) else test.protocol or "tcp"
    directions = [[s for s in live if not s.reverse], [s for s in live if s.reverse]]
    both = all(directions)
    if not both:
        directions = [directions[0] or directions[1]]
    for streams, prefix in zip(directions, ("", "reverse_"), strict=False):
        for (subject, metric), value in _direction(test, streams, result, protocol, alone=not both).items():
            if math.isfinite(value):
                result.values[subject, prefix + metric] = value
    parts = [protocol]
    if (many := max(test.summed, *(len(w) for w in directions))) > 1:
        parts.append(str(many))
    if both:
        parts.append("tradeoff" if any(s.late for s in live) else "bidir")
    elif live and live[0].reverse:
        parts.append("reverse")
    if any(r.bounces for r in rows):
        parts.append("bounceback")
    result.case = "-".join(parts)
    if test.failures and not (protocol == "udp" and live and all(s.final(received=True) for s in live)):
        result.failure = test.failures[0]
    return result


def _direction(
    test: Test, streams: list[Stream], result: _Result, protocol: str, *, alone: bool
) -> dict[tuple[str, str], float]:
    """Return the figures of one direction. ``alone``: iperf's sums cover this direction only, not both."""
    each = {f"stream-{s.name}": _stream(s, protocol, result) for s in streams}
    if len(each) == 1 and not test.summed:
        (only,) = each.values()
        return {("host", metric): value for metric, value in only.items()}
    totals = _summed(test, streams, each, result, protocol) if alone and test.sums else {}
    derived = _derive(test, streams, each)
    for metric, value in derived.items():
        if metric in totals and abs(value - totals[metric]) > _SAME_SUM * max(value, totals[metric]):
            result.notes.append(f"iperf's sum of {metric} is {totals[metric]:.4g}; took its streams' {value:.4g}")
            totals[metric] = value
    if missing := [metric for metric in derived if metric not in totals]:
        result.notes.append(f"no sum by iperf of {', '.join(missing)}: derived from {len(streams)} streams")
        totals |= {metric: derived[metric] for metric in missing}
    if not totals and each:
        result.notes.append("no sum over the streams: it is unknown whether they ran in parallel")
    figures = {("host", metric): value for metric, value in totals.items()}
    return figures | {(subject, metric): v for subject, values in each.items() for metric, v in values.items()}


def _summed(
    test: Test, streams: list[Stream], each: dict[str, dict[str, float]], result: _Result, protocol: str
) -> dict[str, float]:
    """Return iperf's own sums.

    A UDP client prints the sum of sent data; its printed loss, if any, is always 0 and ignored.
    """
    row = final(test.sums)
    if row is None:
        result.cut = _CUT
        result.notes.append("the sum is the mean of its intervals")
        mean = weighted_mean((r.rate or 0.0, r.seconds) for r in test.sums)
        return {"bitrate": mean} if mean else {}
    if (times := _times(streams)) and row.seconds > _SAME_TIME * max(times):
        result.notes.append("iperf's sum left out: it includes an earlier test")  # as in the output of a 2.2 server
        return {}
    counted = bool(row.udp) and all("loss" in values for values in each.values())
    figures = dict(row.udp) if counted else {}
    if row.rate:
        figures["sent_bitrate" if protocol == "udp" and not counted else "bitrate"] = row.rate
    if row.retransmits is not None:
        figures["retransmits"] = row.retransmits
    return figures


def _stream(stream: Stream, protocol: str, result: _Result) -> dict[str, float]:
    sent, received = stream.final(received=False), stream.final(received=True)
    values: dict[str, float] = {}
    if sent is None and received is None:
        result.cut = _CUT
        result.notes.append(f"stream {stream.name}: bitrate is the mean of its intervals")
        mean = weighted_mean((r.rate or 0.0, r.seconds) for r in stream.rows)
        return {"bitrate": mean} if mean and not stream.rows[0].bounces else {}
    if sent is not None:
        if sent.bounces:
            return dict(sent.bounces)
        if sent.rate:
            values["sent_bitrate" if protocol == "udp" else "bitrate"] = sent.rate
        if sent.retransmits is not None:
            values["retransmits"] = sent.retransmits
    if received is not None:
        values |= received.udp
        if received.rate:
            values["bitrate"] = received.rate
        if sent and sent.rate and received.seconds > 1.25 * sent.seconds and "loss" in received.udp:
            values["bitrate"] = sent.rate * (1 - received.udp["loss"])
            result.notes.append(
                f"stream {stream.name}: the server counted over {received.seconds:g} s, the client sent for"
                f" {sent.seconds:g} s: bitrate is derived, the sent rate less the loss"
            )
    elif protocol == "udp":
        result.notes.append(f"stream {stream.name}: no server report, so the received data is unknown")
    return values


def _times(streams: list[Stream]) -> list[float]:
    return [r.seconds for s in streams if (r := s.final(received=False) or s.final(received=True))]


def _derive(test: Test, streams: list[Stream], each: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return sums over streams that ran in parallel; empty if that is unknown or a stream is missing."""
    times = _times(streams)
    announced = sum(s.reverse == streams[0].reverse for s in test.streams.values()) if streams else 0
    if not test.parallel or not times or len(times) < max(announced, test.summed):
        return {}
    if min(times) <= 0 or max(times) / min(times) > _SAME_TIME:
        return {}
    sums = {}
    for metric in ("bitrate", "sent_bitrate", "retransmits", "packets", "lost_packets"):
        if all(metric in values for values in each.values()):
            sums[metric] = sum(values[metric] for values in each.values())
    if sums.get("packets") and "lost_packets" in sums:
        sums["loss"] = sums["lost_packets"] / sums["packets"]
    return sums


def _nothing(text: str, tests: list[Test]) -> ParseError:
    """Return why there is no measurement, with iperf's own message if it printed one."""
    for n, match in matches(FAILURE, text):
        return ParseError("iperf2", "a finished test", line=n, got=match["what"].strip())
    first = next(((n, line) for n, line in numbered(text) if line.strip()), None)
    if first is None:
        return ParseError("iperf2", "iperf's output", got="nothing")
    if any(t.streams or t.headed for t in tests):
        return ParseError("iperf2", "a finished test", line=first[0], got="no data moved")
    return ParseError("iperf2", "iperf's text or comma-separated output", line=first[0], got=first[1].strip())
