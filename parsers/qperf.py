"""Parse the text of qperf 0.4, also with ``-v``, ``-u`` or ``-ub``. Each line has its own unit.

Case: the test (``tcp_bw``, ``udp_lat``, ``rc_rdma_write_bw``). Metrics: ``bandwidth`` in B/s (higher is better; for
UDP, as received) and ``sent_bandwidth``; ``latency`` in s (lower is better; one way, which is half a round trip);
``message_rate`` in 1/s. qperf's prefixes are powers of 1000. The output has the version if the test ``conf`` is run
last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import decode, number, numbered

_TOOL = "qperf"
_LONGEST = 200  # maximum line length in characters
_TEST = re.compile(r"([a-z][a-z0-9_]{1,40}):")
_LINE = re.compile(
    r"\s{4}([a-z_]{2,20})\s{1,20}=\s{1,20}([0-9]{1,3}(?:,[0-9]{3}){1,5}(?:\.[0-9]{0,9})?|[0-9][0-9.]{0,20})\s{1,3}(\S{1,12})"
)
_VERSION = re.compile(r"\s{4}rem_qperf\s{1,20}=\s{1,20}([0-9][0-9.]{0,12})")
_NAMES = {
    "bw": "bandwidth",
    "recv_bw": "bandwidth",
    "send_bw": "sent_bandwidth",
    "latency": "latency",
    "msg_rate": "message_rate",
}
_PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS = {
    **{f"{prefix}{word}/sec": (factor, "B/s") for prefix, factor in _PREFIXES.items() for word in ("B", "bytes")},
    **{f"{prefix}b/sec": (factor / 8, "B/s") for prefix, factor in _PREFIXES.items() if prefix},  # -ub: in bits
    "bits/sec": (1 / 8, "B/s"),
    **{f"{prefix}/sec": (factor, "1/s") for prefix, factor in _PREFIXES.items()},
    "ns": (1e-9, "s"),
    "us": (1e-6, "s"),
    "ms": (1e-3, "s"),
    "sec": (1.0, "s"),
}
_EXPECTED = {"bandwidth": "B/s", "sent_bandwidth": "B/s", "latency": "s", "message_rate": "1/s"}


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the figures of every test. Raise ParseError if there is none."""
    text = decode(raw)
    version = None
    measurements: dict[tuple[str, str], Measurement] = {}
    test, last = "", (1, "no output")
    tests: list[str] = []
    for n, line in numbered(text):
        if len(line) > _LONGEST:
            continue
        if match := _TEST.fullmatch(line):
            test = match[1]
            tests.append(test)
        elif match := _VERSION.fullmatch(line):
            version = match[1]
        for m in _row(test, line):
            measurements[m.case, m.metric] = m
        last = (n, line) if line.strip() else last
    if not measurements:
        raise ParseError(_TOOL, "a line of qperf with a rate or a latency", line=last[0], got=last[1])
    if ("conf" in tests or "conf" in command) and version is None:
        return Parsed(_TOOL, tuple(measurements.values()), invalid=cut("the configuration at its end is not complete"))
    empty = [name for name in tests if name not in {case for case, _ in measurements} | {"conf", "quit"}]
    invalid = cut_in_line(text) or (cut(f"{empty[0]} has no figure") if empty else None)
    return Parsed(_TOOL, tuple(measurements.values()), version, invalid)


def _row(test: str, line: str) -> Iterator[Measurement]:
    match = _LINE.fullmatch(line.rstrip())
    metric = _NAMES.get(match[1]) if match else None
    if not match or not metric or not test or match[3] not in _UNITS:
        return
    factor, unit = _UNITS[match[3]]
    value = number(match[2].replace(",", ""))
    if value and unit == _EXPECTED[metric]:
        yield Measurement(
            _TOOL, test, metric, value * factor, unit, better=Better.LOWER if unit == "s" else Better.HIGHER
        )
