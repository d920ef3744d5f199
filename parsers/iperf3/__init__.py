"""Parse iperf3's throughput, loss and jitter, from JSON (``-J``), a JSON stream or text, of client or server.

Metrics:

- ``bitrate``: B/s that the receiver counted
- ``sent_bitrate``: B/s that the sender passed to its socket; only descriptive
- ``retransmits``; ``rtt_mean`` in s, averaged over the streams
- ``loss`` (fraction), ``jitter`` (s), ``packets`` and ``lost_packets``
- ``cpu_host`` and ``cpu_remote``: fractions of one core

The reverse direction of ``--bidir`` has the same names with the prefix ``reverse_``. The case is protocol, number of
streams (if more than one) and direction: ``tcp``, ``tcp-4``, ``udp-reverse``, ``tcp-2-bidir``. Several tests in one
file are repeats.

Source: iperf 3.0.11 to 3.21 (iperf_api.c, iperf_locale.c). Up to 3.9, a UDP client reports one sum, with the sender's
rate and the receiver's loss. ``bitrate`` is then derived as the sent rate times one minus the loss. From 3.7 to 3.9,
``--bidir`` prints the keys of both directions under one name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.iperf3.text import ERROR, Run, datagrams, read_text, settle, weighted_mean
from fleetmark.parsers.kit.cut import cut_in_json
from fleetmark.parsers.kit.text import JsonScan, decode, dig, every, find_json, matches, number, numbered, objects

_KINDS = {
    "bitrate": ("B/s", Better.HIGHER),
    "sent_bitrate": ("B/s", Better.NONE),
    "retransmits": ("1", Better.LOWER),
    "rtt_mean": ("s", Better.LOWER),
    "loss": ("1", Better.LOWER),
    "jitter": ("s", Better.LOWER),
    "packets": ("1", Better.NONE),
    "lost_packets": ("1", Better.NONE),
    "cpu_host": ("1", Better.NONE),
    "cpu_remote": ("1", Better.NONE),
}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return every test in ``raw``.

    ``invalid`` is set if the only test ended with an error, or if the text ends before the last test does. Figures
    printed until then are kept. Raise ParseError, with iperf3's own message if there is one, if no test moved data.
    """
    scan = find_json(decode(raw))
    runs = [_read_json(document, line) for document, line in _tests(scan)]
    if not any(r.values for r in runs):
        runs += read_text(scan.around)
    for run in runs:
        run.values = {metric: value for metric, value in run.values.items() if math.isfinite(value)}
    errors = [m["what"].strip() for _, m in matches(ERROR, scan.around)]
    if errors and len(runs) == 1 and (runs[0].cut or not runs[0].error):
        runs[0].error, runs[0].cut = errors[0], False
    some = [r for r in runs if r.values]
    if not some:
        raise _nothing(scan, runs, errors)
    used = [r for r in some if not r.error] or some
    notes = [
        f"the JSON that begins on line {cut.line} is cut or damaged at line {cut.error_line}; it was not read"
        for cut in scan.broken
    ]
    if len(runs) > 1:
        notes += [
            f"{len(runs)} tests in one file, which count as repeats",
            *(f"besides: {error}" for error in errors),
        ]
    measurements: list[Measurement] = []
    for n, run in enumerate(runs, 1):
        prefix = f"test {n}: " if len(runs) > 1 else ""
        notes += [prefix + note for note in run.notes]
        if run in used:
            measurements += _measure(run)
        else:
            notes.append(f"{prefix}left out: {run.error or 'no data moved'}")
    return Parsed(
        tool="iperf3",
        measurements=tuple(measurements),
        version=next((r.version for r in used if r.version), None),
        invalid=(runs[-1].error if runs[-1].cut else None) or cut_in_json(scan) or used[0].error,
        notes=tuple(dict.fromkeys(notes)),
    )


def _measure(run: Run) -> list[Measurement]:
    measurements = []
    for metric, value in run.values.items():
        unit, better = _KINDS[metric.removeprefix("reverse_")]
        measurements.append(Measurement("iperf3", run.case, metric, value, unit, better=better))
    return measurements


def _tests(scan: JsonScan) -> list[tuple[dict[str, Any], int]]:
    """Return the tests among the documents with their lines; the events of a JSON stream are merged into one test.

    The server's report of the same test is omitted, and so is the full document that may follow a stream's events.
    """
    servers = {n for n, line in numbered(scan.around) if "Server JSON output:" in line}
    tests: list[tuple[dict[str, Any], int]] = []
    stream: dict[str, Any] | None = None
    for document in scan.documents:
        value = document.value
        event, data = value.get("event"), value.get("data")
        if isinstance(event, str) and "data" in value:
            if stream is None or event == "start" or "end" in stream:
                stream = {"intervals": []}
                tests.append((stream, document.line))
            if event == "interval":
                stream["intervals"].append(data)
            else:
                stream[event] = data
        elif isinstance(value.get("end"), dict) or isinstance(value.get("start"), dict):
            if servers & {document.line - 1, document.line}:
                continue
            if stream is not None and _same(stream, value):
                tests = [(t, n) for t, n in tests if t is not stream]
            stream = None
            tests.append((value, document.line))
    return tests


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    cookies = dig(one, "start", "cookie"), dig(other, "start", "cookie")
    return cookies[0] == cookies[1] if all(cookies) else one.get("end") == other.get("end")


def _read_json(test: dict[str, Any], line: int) -> Run:
    start, end, intervals = test.get("start"), test.get("end"), objects(test.get("intervals"))
    settings = dig(start, "test_start")
    version, protocol = dig(start, "version"), dig(settings, "protocol")
    run = Run(line=line, reverse=bool(number(dig(settings, "reverse"))))
    run.version = version.removeprefix("iperf ") if isinstance(version, str) else None
    udp = any("packets" in s for i in intervals for s in objects(i.get("streams"))) or dig(end, "streams", 0, "udp")
    run.protocol = protocol.lower() if isinstance(protocol, str) else "udp" if udp else "tcp"
    run.streams = int(number(dig(settings, "num_streams")) or _count(intervals))
    shares = {side: number(dig(end, "cpu_utilization_percent", f"{side}_total")) for side in ("host", "remote")}
    for direction, prefix in enumerate(("", "reverse_")):
        receiving = (dig(start, "accepted_connection") is not None) ^ run.reverse ^ bool(direction)
        figures = _direction(end, direction, receiver_known=receiving or bool(shares["remote"]))
        run.values.update({prefix + k: v for k, v in figures.items()})
        if not figures.keys() & {"bitrate", "sent_bitrate"} and (mean := _mean(intervals, direction)):
            run.values[f"{prefix}bitrate"] = mean
            run.notes.append(f"{prefix}bitrate is the mean of the intervals: no rate in the summary")
        settle(run, prefix)
    if run.values:
        run.values.update({f"cpu_{side}": share / 100 for side, share in shares.items() if share})
    error = test.get("error")
    if isinstance(error, str):
        run.error = error
    elif not end:
        run.end_early("has no summary")
    return run


def _pick(part: Any, key: str, direction: int) -> Any:
    """Return the sum of one direction; the reverse is ``KEY_bidir_reverse``, or in 3.7 to 3.9 the second ``KEY``."""
    sums = every(part, key)
    return dig([*sums[:1], *(every(part, f"{key}_bidir_reverse") or sums[1:])], direction) if sums else None


def _direction(end: Any, direction: int, *, receiver_known: bool) -> dict[str, float]:
    """Return one direction's figures from the summary.

    ``receiver_known``: whether this side knows the receiver's count.
    """
    values: dict[str, float] = {}
    sent, received, both = (_pick(end, key, direction) for key in ("sum_sent", "sum_received", "sum"))
    rate = number(dig(sent if sent is not None else both, "bits_per_second"))
    if rate and rate > 0:
        values["sent_bitrate"] = rate / 8
    retransmits = number(dig(sent, "retransmits"))
    if retransmits is not None and retransmits >= 0 and "sent_bitrate" in values:
        values["retransmits"] = retransmits
    counted = received if received is not None else both if receiver_known else None
    percent, jitter = number(dig(counted, "lost_percent")), number(dig(counted, "jitter_ms"))
    values |= datagrams(
        number(dig(counted, "lost_packets")), number(dig(counted, "packets")), None if jitter is None else jitter / 1e3
    )
    if "loss" in values and percent is not None and 0 <= percent <= 100:
        values["loss"] = percent / 100
    rate = number(dig(received, "bits_per_second"))
    if rate is not None and (rate > 0 or values.get("loss") == 1.0):  # otherwise, 0 means unknown
        values["bitrate"] = rate / 8
    streams = objects(dig(end, "streams"))
    mine = [s for s in streams if (_side(s) == _side(streams[0])) == (direction == 0)]
    times = [t for s in mine if (t := number(dig(s, "sender", "mean_rtt")))]
    if times and values:
        values["rtt_mean"] = sum(times) / len(times) / 1e6
    return values


def _side(stream: dict[str, Any]) -> Any:
    return dig(stream, "udp", "sender") if "udp" in stream else dig(stream, "sender", "sender")


def _sums(intervals: list[dict[str, Any]], direction: int) -> list[Any]:
    return [s for i in intervals if (s := _pick(i, "sum", direction)) is not None and not dig(s, "omitted")]


def _mean(intervals: list[dict[str, Any]], direction: int) -> float | None:
    """Return the mean rate (B/s) over the intervals that were not omitted."""
    pairs = [(number(dig(s, "bits_per_second")), number(dig(s, "seconds"))) for s in _sums(intervals, direction)]
    mean = weighted_mean((r, t) for r, t in pairs if r is not None and t is not None)
    return mean / 8 if mean else None


def _count(intervals: list[dict[str, Any]]) -> int:
    """Return the number of streams per direction, if the test's settings are missing."""
    streams = objects(dig(intervals, 0, "streams"))
    return max(1, sum(s.get("sender") == streams[0].get("sender") for s in streams)) if streams else 1


def _nothing(scan: JsonScan, runs: list[Run], errors: list[str]) -> ParseError:
    """Return the error for output without measurements, with iperf3's own message if there is one."""
    for run in runs:
        if run.error and not run.cut:
            return ParseError("iperf3", "a finished test", line=run.line, got=run.error)
    for n, match in matches(ERROR, scan.around):
        return ParseError("iperf3", "a finished test", line=n, got=match["what"].strip())
    if scan.broken:
        cut = scan.broken[0]
        return ParseError("iperf3", f"whole JSON from line {cut.line} on", line=cut.error_line, got=cut.reason)
    for run in runs:
        return ParseError("iperf3", "a finished test", line=run.line, got="no data moved")
    first = next(((n, line) for n, line in numbered(scan.around) if line.strip()), None)
    if first is None and not scan.documents:
        return ParseError("iperf3", "iperf3's output", got="nothing")
    number, got = first or (
        scan.documents[0].line,
        f"JSON with {', '.join(list(scan.documents[0].value)[:5]) or 'nothing'}",
    )
    return ParseError("iperf3", "iperf3's JSON or text output", line=number, got=got.strip())
