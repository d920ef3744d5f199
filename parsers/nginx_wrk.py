"""Parse the text (``--latency``) of wrk and wrk2, from a manual run or from Fleetmark's driver.

Case: ``http``. Metrics: ``requests_per_second`` in 1/s and ``bandwidth`` in B/s (higher); ``latency_mean``, ``_max``,
``_p50``, ``_p75``, ``_p90``, ``_p99`` in s (lower); ``clients``, the connections. wrk's prefixes are powers of 1024. A
run with socket errors or responses other than 2xx and 3xx is ``invalid``, because its rate includes failed requests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.load import last, latencies, seconds
from fleetmark.parsers.kit.text import decode, number

_TOOL = "nginx_wrk"
_RATE = re.compile(r"^Requests/sec: {1,12}([0-9.]{1,18})$", re.MULTILINE)
_BYTES = re.compile(r"^Transfer/sec: {1,12}([0-9.]{1,18})([KMGT]?)B$", re.MULTILINE)
_THREADS = re.compile(r"^ {1,8}Latency {1,12}(\S{1,12}) {1,12}\S{1,12} {1,12}(\S{1,12}) ", re.MULTILINE)
_PERCENTILE = re.compile(r"^ {1,8}(50|75|90|99)(?:\.000)?% {1,12}(\S{1,12})$", re.MULTILINE)
_CLIENTS = re.compile(r"^ {1,8}[0-9]{1,5} threads and ([0-9]{1,7}) connections$", re.MULTILINE)
_WRONG = re.compile(r"^ {1,8}(Socket errors: .{1,120}|Non-2xx or 3xx responses: [0-9]{1,18})$", re.MULTILINE)


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the run that counts. Raise ParseError if it has no rate."""
    load = last(decode(raw))
    text = load.section.text
    rate = _RATE.search(text)
    if not rate or not (requests := number(rate[1])):
        n, line = next(((n, line) for n, line in reversed(load.section.lines) if line.strip()), (1, "no output"))
        raise ParseError(_TOOL, "wrk's line Requests/sec", line=n, got=line)
    measurements = [Measurement(_TOOL, "http", "requests_per_second", requests, "1/s", better=Better.HIGHER)]
    moved = _BYTES.search(text)
    if moved and (amount := number(moved[1])):
        factor = 1024.0 ** " KMGT".index(moved[2] or " ")
        measurements.append(Measurement(_TOOL, "http", "bandwidth", amount * factor, "B/s", better=Better.HIGHER))
    times = {f"p{match[1]}": seconds(match[2]) for match in _PERCENTILE.finditer(text)}
    if match := _THREADS.search(text):
        times |= {"mean": seconds(match[1]), "max": seconds(match[2])}
    measurements += latencies(_TOOL, "http", times)
    clients = _CLIENTS.search(text)
    if clients and (connections := int(clients[1])):
        measurements.append(Measurement(_TOOL, "http", "clients", float(connections), "1", better=Better.NONE))
    wrong = [match[1] for match in _WRONG.finditer(text)]
    short = None if moved else cut("no line Transfer/sec")
    return Parsed(_TOOL, tuple(measurements), invalid="; ".join(wrong) or load.invalid(times.get("p99")) or short)
