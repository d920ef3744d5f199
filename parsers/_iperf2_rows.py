"""iperf 2's two outputs, text and comma-separated, sorted into tests, their streams and the rows of each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from parsers._iperf3_text import datagrams
from parsers._text import number, numbered

FAILURE = re.compile(
    r"(?:^|\] )(?P<what>[\w ]*(?:connect|bind|read|write|recv|recvmsg|recvfrom|send|sendto|accept|shutdown|socket)\b"
    r"[^,;]{0,80} ?failed\b.*|WARNING: did not receive ack of last datagram.*|error:.*|\S*The --\w+ option is .*not.*"
    r"|unable to .*|iperf: .*(?:option|not found).*)$",
    re.IGNORECASE,
)

_POWERS = ("", "K", "M", "G", "T")
_ROW = re.compile(
    r"\[\s*(?P<reverse>\*?)(?P<id>\d+|SUM(?:-\d+)?|FD\d+)\]\s+(?P<start>\d+\.\d+)-\s*(?P<end>\d+\.\d+) sec"
    r"\s+-?[\d.]+ [KMGT]?Bytes?\s+(?P<rate>-?[\d.]+) (?P<prefix>[KMGT]?)(?P<unit>bits|Bytes)/sec(?P<rest>.*)$"
)
_LOSS = re.compile(
    r"^\s+(?:(?P<jitter>[\d.]+|-?nan) ms\s+)?(?P<lost>-?\d+)/\s*(?P<total>-?\d+)\s+\((?:[\d.e+-]+|-?nan)%\)"
)
_RETRIES = re.compile(r"^\s+\d+/\d+\s+(\d+)(?:\s|$)")
_BOUNCES = re.compile(r"^\s+\d+=(?P<mean>[\d.]+)/(?P<min>[\d.]+)/(?P<max>[\d.]+)/[\d.]+ ms\s")
_CONNECTED = re.compile(r"\[\s*(?P<mark>\*?)(?P<id>\d+)\] local \S+ port (?P<port>\d+) connected with (?P<rest>.*)$")
_CONNECTING = re.compile(r"Client connecting to .*, (?P<protocol>TCP|UDP) port (?P<port>\d+)")
_LISTENING = re.compile(r"Server listening on (?P<protocol>TCP|UDP) port (?P<port>\d+)")
_REPORT = re.compile(r"\[\s*(\d+)\] Server Report:")

_BASIC = ("time", "src", "srcport", "dst", "dstport", "transferid", "interval", "bytes", "speed")
_BASIC_UDP = (*_BASIC, "jitter", "errors", "datagrams", "errpercent", "outoforder")
_STAMP = re.compile(r"^(?:[+-]\d{4}:)?(\d{14})(?:\.\d+)?$")


@dataclass(slots=True)
class Row:
    """One line of figures: seconds, B/s; ``rate`` is None where iperf printed none that can be."""

    start: float
    end: float
    rate: float | None
    received: bool = False  # counted by the receiver of datagrams
    udp: dict[str, float] = field(default_factory=dict)
    retransmits: float | None = None
    bounces: dict[str, float] = field(default_factory=dict)
    stamp: str = ""

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(slots=True)
class Stream:
    name: str
    reverse: bool = False
    late: bool = False  # it began when others had ended (--tradeoff)
    rows: list[Row] = field(default_factory=list)

    def final(self, *, received: bool) -> Row | None:
        return final([r for r in self.rows if r.received == received])


@dataclass(slots=True)
class Test:
    """One test: its streams, and what iperf itself summed over them."""

    protocol: str | None = None
    server: bool = False
    streams: dict[tuple[str, ...], Stream] = field(default_factory=dict)
    sums: list[Row] = field(default_factory=list)
    summed: int = 0  # how many streams a sum says it covers
    parallel: bool = True  # whether the streams are known to have run at the same time
    notes: list[str] = field(default_factory=list)

    @property
    def moved(self) -> bool:
        return bool(self.sums) or any(s.rows for s in self.streams.values())


def final(rows: Iterable[Row]) -> Row | None:
    """The row over the whole time, printed last; None where the rows end before it."""
    rows = list(rows)
    whole = [r for r in rows if r.start == 0]
    if not whole:
        return None
    longest = max(r.end for r in whole)
    if longest < max(r.end for r in rows) - 0.05:
        return None
    return [r for r in whole if r.end == longest][-1]


def read_text(text: str) -> list[Test]:
    """The tests in iperf's text output.

    A client's test begins with its heading, a server's with the connections that follow the rows of another.
    """
    reader = _Text()
    for _, line in numbered(text):
        reader.read(line)
    return [t for t in reader.tests if t.moved or t.streams or t.protocol]


class _Text:
    def __init__(self) -> None:
        self.tests: list[Test] = []
        self._open: dict[str, Stream] = {}  # by the number in brackets; a server's outlive the next test's beginning
        self._server: bool | None = None
        self._ports: set[str] = set()  # a client's stream from one of these ports came in there: it is the way back
        self._report = ""
        self._retries = False

    def read(self, line: str) -> None:
        if match := _CONNECTING.search(line):
            test = self._test()
            if not self._server and test.headed and (test.moved or test.failures):
                test = self._begin()
            self._ports.add(match["port"])
            test.protocol, test.headed = match["protocol"].lower(), True
        elif match := _LISTENING.search(line):
            self._ports.add(match["port"])
            self._test().protocol = match["protocol"].lower()
        elif match := _CONNECTED.search(line):
            self._connected(match)
        elif match := _REPORT.search(line):
            self._report = match[1]
        elif "[ ID] " in line or "[SUM-cnt] " in line:
            self._retries = "Rtry" in line
        elif match := _ROW.search(line):
            if "omitted" not in match["rest"]:
                self._row(match)
        elif match := FAILURE.search(line):
            self._test().failures.append(match["what"].strip())

    def _test(self) -> Test:
        return self.tests[-1] if self.tests else self._begin()

    def _begin(self) -> Test:
        self.tests.append(Test(protocol=self.tests[-1].protocol if self.tests else None, server=bool(self._server)))
        if not self._server:
            self._open = {}
        return self.tests[-1]

    def _connected(self, match: re.Match[str]) -> None:
        if match["local"] == "0.0.0.0":  # what a refused client prints all the same
            return
        test = self._test()
        if self._server is None:
            self._server = test.server = not test.headed and match["port"] in self._ports
        if self._server and test.moved:
            test = self._begin()
        back = match["mark"] == "*" or "(reverse)" in match["rest"] or (not self._server and match["port"] in self._ports)
        stream = Stream(match["id"], reverse=back, late=test.moved)
        self._open[match["id"]] = test.streams[match["id"], "*" * back] = stream

    def _row(self, match: re.Match[str]) -> None:
        test, name, rest = self._test(), match["id"], match["rest"]
        rate, start, end = number(match["rate"]), number(match["start"]), number(match["end"])
        if rate is None or start is None or end is None:
            return
        if rate < 0:
            test.notes.append(f"stream {name}: a negative rate left out")
        base = 1000 if match["unit"] == "bits" else 1024
        whole = rate * base ** _POWERS.index(match["prefix"])
        row = Row(start, end, (whole / 8 if base == 1000 else whole) if rate > 0 else None)
        if loss := _LOSS.match(rest):
            row.received, row.udp = True, _counted(loss["lost"], loss["total"], loss["jitter"])
        elif bounces := _BOUNCES.match(rest):
            row.bounces = {f"rtt_{k}": v / 1e3 for k, f in bounces.groupdict().items() if (v := number(f))}
        elif self._retries and (retries := _RETRIES.match(rest)):
            row.retransmits = number(retries[1])
        if name.startswith(("SUM", "FD")):
            test.sums.append(row)
            test.summed = int(name[4:]) if name.startswith("SUM-") and name[4:] else test.summed
            return
        if self._report == name:
            row.received, self._report = True, ""
        self._stream(name, bool(match["reverse"])).rows.append(row)

    def _stream(self, name: str, back: bool) -> Stream:
        """The open stream of that number and direction; a full-duplex one is two."""
        stream = self._open.get(name)
        test = self._test()
        if stream is not None and stream.reverse == back:
            return stream
        if stream is not None and not stream.rows and back:  # announced without the star its rows bear
            stream.reverse = True
            return stream
        if stream is not None and stream.reverse and not back:
            return stream
        return test.streams.setdefault((name, "*" * back), Stream(name, reverse=back))


def _counted(lost: str, total: str, jitter: str | None) -> dict[str, float]:
    seconds = number(jitter) if jitter else None
    return datagrams(number(lost), number(total), seconds / 1e3 if seconds else None)


def read_csv(text: str) -> list[Test]:
    """The tests in iperf's comma-separated output (``-y C``).

    It names no test. A stream's number on other ports, what follows a sum, and a finish clearly later than the others'
    belong to the next one. Rows of several streams that carry no time (iperf 2.1 stamps their ends 1970) may be one
    test or several: ``parallel`` is then False.
    """
    tests: list[Test] = []
    header: tuple[str, ...] = ()
    closed = True
    for _, line in numbered(text):
        fields = [f.strip() for f in line.strip().split(",")]
        if fields[0] == "time" and "transferid" in fields:
            header = tuple(fields)
            continue
        names = header or (_BASIC_UDP if len(fields) == len(_BASIC_UDP) else _BASIC)
        if not _STAMP.match(fields[0]) or len(fields) != len(names):
            continue
        record = dict(zip(names, fields, strict=True))
        row = _csv_row(record)
        if row is None:
            continue
        ends = ":".join(sorted((f"{record.get('src', record.get('srcaddress', ''))} {record['srcport']}", "")))
        key = (record["transferid"], *sorted((record["srcport"], record["dstport"])))
        if closed or _is_next(tests[-1], key, row):
            tests.append(Test())
        closed = False
        test = tests[-1]
        test.protocol = "udp" if "errors" in record else test.protocol or "tcp"
        if record["transferid"] == "-1":
            test.sums.append(row)
            closed = final([row]) is not None and all(s.rows[-1].end <= row.end + 0.5 for s in test.streams.values())
        else:
            test.streams.setdefault(key, Stream(record["transferid"])).rows.append(row)
    return tests
