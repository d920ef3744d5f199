"""Sort iperf 2's text and comma-separated output into tests, their streams and the rows of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fleetmark.parsers.iperf3.text import datagrams
from fleetmark.parsers.kit.text import number, numbered

FAILURE = re.compile(
    r"(?:^|\] )(?P<what>[\w ]*(?:connect|bind|read|write|recv|recvmsg|recvfrom|send|sendto|accept|shutdown|socket)\b"
    r"[^,;]{0,80} ?failed\b.*|WARNING: did not receive ack of last datagram.*|error:.*|\S*The --\w+ option is .*not.*"
    r"|unable to .*|iperf: .*(?:option|not found).*)$",
    re.IGNORECASE,
)

_POWERS = ("", "K", "M", "G", "T")
_ROW = re.compile(
    r"\[\s*(?P<reverse>\*?)(?P<id>\d{1,6}|SUM(?:-\d{1,6})?|FD\d{1,6})\]\s+(?P<start>\d+\.\d+)-\s*(?P<end>\d+\.\d+) sec"
    r"\s+(?P<moved>-?[\d.]{1,18}) (?P<scale>[KMGT]?)Bytes?"
    r"\s+(?P<rate>-?[\d.]{1,18}) (?P<prefix>[KMGT]?)(?P<unit>bits|Bytes)/sec(?P<rest>.*)$"
)
_LOSS = re.compile(
    r"^\s+(?:(?P<jitter>[\d.]+|-?nan) ms\s+)?(?P<lost>-?\d+)/\s*(?P<total>-?\d+)\s+\((?:[\d.e+-]+|-?nan)%\)"
)
_RETRIES = re.compile(r"^\s+\d+/\d+\s+(\d+)(?:\s|$)")
_BOUNCES = re.compile(r"^\s+\d+=(?P<mean>[\d.]+)/(?P<min>[\d.]+)/(?P<max>[\d.]+)/[\d.]+ ms\s")
_CONNECTED = re.compile(
    r"\[\s*(?P<mark>\*?)(?P<id>\d{1,6})\] local (?P<local>\S+) port (?P<port>\d+) connected with (?P<rest>.*)$"
)
_UNCONFIRMED = re.compile(r"^(?:22[4-9]|23[0-9])\.|^ff[0-9a-f]{2}:|\(no-udp-fin\)", re.IGNORECASE)
_CONNECTING = re.compile(r"Client connecting to .*, (?P<protocol>TCP|UDP) port (?P<port>\d+)")
_LISTENING = re.compile(r"Server listening on (?P<protocol>TCP|UDP) port (?P<port>\d+)")
_REPORT = re.compile(r"\[\s*(\d{1,6})\] Server Report:")

_BASIC = ("time", "src", "srcport", "dst", "dstport", "transferid", "interval", "bytes", "speed")
_BASIC_UDP = (*_BASIC, "jitter", "errors", "datagrams", "errpercent", "outoforder")
_TELLING = 3.0  # s; for shorter tests, whole-second timestamps do not distinguish consecutive from parallel streams
_STAMP = re.compile(r"^(?:[+-]\d{4}:)?(\d{14})(?:\.\d+)?$")


@dataclass(kw_only=True, slots=True)
class Row:
    """One line of figures: seconds, B/s. ``rate`` is None if the printed rate is impossible."""

    start: float
    end: float
    rate: float | None
    received: bool = False  # whether the receiver of datagrams counted it
    udp: dict[str, float] = field(default_factory=dict)
    retransmits: float | None = None
    bounces: dict[str, float] = field(default_factory=dict)
    finish: float | None = None  # end time in seconds
    on_the_second: bool = False  # whether its end has four decimals, all 0

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(kw_only=True, slots=True)
class Stream:
    name: str
    reverse: bool = False
    late: bool = False  # whether it began after other streams had ended (--tradeoff)
    duplex: bool = False  # whether one connection carries both directions (--full-duplex)
    unconfirmed: bool = False  # whether the server sends no report: multicast, --no-udp-fin
    rows: list[Row] = field(default_factory=list)

    def final(self, *, received: bool) -> Row | None:
        """Return the row over the whole time, as the sender or the receiver counted."""
        return final(r for r in self.rows if r.received == received)


@dataclass(kw_only=True, slots=True)
class Test:
    """One test: its streams, and iperf's own sums over them."""

    protocol: str | None = None
    server: bool = False
    headed: bool = False  # whether "Client connecting to" was printed
    text: bool = False  # text output instead of comma-separated
    both: bool = False  # whether the client also listens, for a reverse direction over other connections (-d, -r)
    streams: dict[tuple[str, ...], Stream] = field(default_factory=dict)
    sums: list[Row] = field(default_factory=list)
    summed: int = 0  # the number of streams that a sum claims to cover
    totals: bool = False  # whether some of the sums cover all streams
    duplex_sums: int = 0  # sums over the two directions of a stream
    parallel: bool = True  # whether the streams are known to have run at the same time
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def client(self) -> bool:
        return self.headed and not self.server

    @property
    def moved(self) -> bool:
        return bool(self.sums) or any(s.rows for s in self.streams.values())


def final(rows: Iterable[Row]) -> Row | None:
    """Return the row over the whole time, which comes last; None if the rows end before it."""
    rows = list(rows)
    full = [r for r in rows if r.start == 0]
    if not full:
        return None
    longest = max(r.end for r in full)
    if longest < max(r.end for r in rows) - 0.15:  # the ends of rows are rounded
        return None
    return [r for r in full if r.end == longest][-1]


def read_text(text: str) -> list[Test]:
    """Return the tests in iperf's text output.

    A client's test begins with its heading. A server's test begins with the connections that follow the rows of another
    test.
    """
    reader = _Text()
    for _, line in numbered(text):
        reader.read(line)
    return reader.tests


class _Text:
    def __init__(self) -> None:
        self.tests: list[Test] = []
        self._open: dict[str, Stream] = {}  # by the number in brackets; may stay open after the next test starts
        self._server: bool | None = None
        self._listening = ""  # the port on which a server listens, or a client that waits for the reverse direction
        self._report = ""
        self._retries = False

    def read(self, line: str) -> None:
        if match := _CONNECTING.search(line):
            test = self._test()
            if not self._server and test.headed and (test.moved or test.failures):
                test = self._begin()
            test.protocol, test.headed, test.both = match["protocol"].lower(), True, bool(self._listening)
        elif match := _LISTENING.search(line):
            self._listening = self._listening or match["port"]
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
        protocol = self.tests[-1].protocol if self.tests else None
        self.tests.append(Test(protocol=protocol, server=bool(self._server), text=True))
        if not self._server:
            self._open = {}
        return self.tests[-1]

    def _connected(self, match: re.Match[str]) -> None:
        if match["local"] == "0.0.0.0":  # also printed by a client whose connection was refused
            return
        test = self._test()
        if self._server is None:
            self._server = test.server = not test.headed and match["port"] == self._listening
        if self._server and test.moved:
            test = self._begin()
        is_incoming = match["port"] == self._listening  # the other side connected to us
        back = match["mark"] == "*" or "(reverse)" in match["rest"] or is_incoming != self._server
        stream = Stream(name=match["id"], reverse=back, late=test.moved)
        stream.duplex = "(full-duplex)" in match["rest"]
        stream.unconfirmed = bool(_UNCONFIRMED.search(match["rest"]))
        self._open[match["id"]] = test.streams[match["id"], "*" * back] = stream

    def _row(self, match: re.Match[str]) -> None:
        test, name, rest = self._test(), match["id"], match["rest"]
        start, end, rate, moved = (number(match[k]) for k in ("start", "end", "rate", "moved"))
        if start is None or end is None or rate is None or moved is None:
            return
        base = 1000 if match["unit"] == "bits" else 1024
        printed = rate * base ** _POWERS.index(match["prefix"]) / (8 if base == 1000 else 1)
        blur = _rounding(match["rate"]) + _rounding(match["moved"])
        step = 10.0 ** -len(match["end"].partition(".")[2])
        true = _fitting(printed, moved * 1024 ** _POWERS.index(match["scale"]), end - start, step, blur)
        if true is not None and true != printed:
            test.notes.append(f"stream {name}: its rate does not fit its transfer and time, and is derived from those")
        row = Row(start=start, end=end, rate=true, on_the_second=match["end"].endswith(".0000"))
        if loss := _LOSS.match(rest):
            row.received, row.udp = True, _counted(loss["lost"], loss["total"], loss["jitter"])
        elif bounces := _BOUNCES.match(rest):
            row.bounces = {f"rtt_{k}": v / 1e3 for k, f in bounces.groupdict().items() if (v := number(f))}
        elif self._retries and (retries := _RETRIES.match(rest)):
            row.retransmits = number(retries[1])
        if name.startswith(("SUM", "FD")):
            test.sums.append(row)
            test.totals |= name.startswith("SUM")
            test.duplex_sums += name.startswith("FD")
            test.summed = int(name[4:]) if name.startswith("SUM-") and name[4:] else test.summed
            return
        if self._report == name:
            row.received, self._report = True, ""
        self._stream(name, bool(match["reverse"])).rows.append(row)

    def _stream(self, name: str, back: bool) -> Stream:
        """Return the open stream with this number. Rows with a star are the reverse direction of a full-duplex test."""
        stream = self._open.get(name)
        if stream is not None and (stream.reverse or not back):
            return stream
        return self._test().streams.setdefault((name, "*" * back), Stream(name=name, reverse=back))


def _rounding(figure: str) -> float:
    """Return the largest relative rounding error of ``figure``."""
    value = abs(number(figure) or 0.0)
    return 10.0 ** -len(figure.partition(".")[2]) / value if value else 0.0


def _fitting(rate: float, moved: float, seconds: float, step: float, blur: float) -> float | None:
    """Return ``rate`` if it agrees with bytes moved over time, otherwise that quotient; None if no data moved.

    iperf 2.0.12 overflows above about 8 Gbit/s: it prints negative or far too low rates, but correct transfer sizes.
    """
    if moved <= 0 or seconds < 5 * step or blur > 0.2:
        return rate if rate > 0 else None
    low, high = moved / (seconds + step) * (0.97 - blur), moved / (seconds - step) * (1.03 + blur)
    return rate if low <= rate <= high else moved / seconds


def _counted(lost: str, total: str, jitter: str | None) -> dict[str, float]:
    seconds = number(jitter) if jitter else None
    return datagrams(number(lost), number(total), seconds / 1e3 if seconds else None)


def read_csv(text: str) -> list[Test]:
    """Return the tests in iperf's comma-separated output (``-y C``), with the columns of version 2.0 or of its header.

    Rows do not name their test. A test begins if a stream's number reappears with other ports, after a sum, or if a
    stream began after the others had ended. ``parallel``: whether all streams ended in the same second. It is unknown
    for iperf 2.1, whose end times are all in 1970.
    """
    tests: list[Test] = []
    header: tuple[str, ...] = ()
    for _, line in numbered(text):
        fields = [f.strip() for f in line.strip().split(",")]
        if fields[0] == "time" and "transferid" in fields:
            header = tuple(fields)
            continue
        names = header or (_BASIC_UDP if len(fields) == len(_BASIC_UDP) else _BASIC)
        if not _STAMP.match(fields[0]) or len(fields) != len(names) or not _tells(names):
            continue
        record = dict(zip(names, fields, strict=True))
        name, row = record["transferid"], _csv_row(record)
        if row is None:
            continue
        key = (name, *sorted((record["srcport"], record["dstport"])))  # a server's report swaps the ports
        if not tests or (name != "-1" and _begins(tests[-1], key, row)):
            tests.append(Test())
        test = tests[-1]
        test.protocol = "udp" if "errors" in record else test.protocol or "tcp"
        if name == "-1":
            test.sums.append(row)
            test.totals = True
        else:
            test.streams.setdefault(key, Stream(name=name)).rows.append(row)
    for test in tests:
        test.parallel = _same_finish(test)
    return tests


def _tells(names: Sequence[str]) -> bool:
    """Return whether the columns suffice for a row. A damaged header lacks some."""
    needed = {"srcport", "dstport", "transferid", "bytes", "speed"}
    needed |= {"interval"} if "interval" in names else {"istart", "iend"}
    needed |= {"datagrams", "jitter"} if "errors" in names else set()
    return needed <= set(names)


def _csv_row(record: dict[str, str]) -> Row | None:
    interval = record["interval"].split("-") if "interval" in record else [record["istart"], record["iend"]]
    times = [number(t) for t in interval]
    speed, moved = number(record["speed"]), number(record["bytes"])
    if len(times) != 2 or times[0] is None or times[1] is None or speed is None or moved is None:
        return None
    udp = _counted(record["errors"], record["datagrams"], record["jitter"]) if "errors" in record else {}
    return Row(
        start=times[0],
        end=times[1],
        rate=_fitting(speed / 8, moved, times[1] - times[0], 0.1, 0.0),
        received=bool(udp),
        udp=udp,
        retransmits=number(record.get("tcpretry")),
        finish=_seconds(record["time"]),
    )


def _seconds(stamp: str) -> float | None:
    """Return a time in seconds; None for 1970, which means that no time is known."""
    match = _STAMP.match(stamp)
    if not match or match[1].startswith("1970"):
        return None
    try:
        return datetime.strptime(match[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:  # an invalid date, such as day 99
        return None


def _begins(test: Test, key: tuple[str, ...], row: Row) -> bool:
    """Return whether ``row`` is the first row of another test."""
    if key in test.streams or row.start > 0:
        return False
    if test.sums or any(k[0] == key[0] for k in test.streams):
        return True
    finishes = [f for s in test.streams.values() for r in s.rows if (f := r.finish) is not None]
    late = bool(finishes) and row.finish is not None and row.finish - row.end >= max(finishes) - 0.5
    return late and row.seconds >= _TELLING


def _same_finish(test: Test) -> bool:
    last = [r for s in test.streams.values() if (r := final(s.rows)) is not None]
    finishes = [r.finish for r in last if r.finish is not None]
    if len(last) < len(test.streams) or len(finishes) < len(last) or not last:
        return False
    apart, shortest = max(finishes) - min(finishes), min(r.seconds for r in last)
    return apart == 0 or (shortest >= _TELLING and apart <= shortest / 2)
