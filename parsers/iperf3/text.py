"""Read iperf3's text output, of client and server, into the figures of each test.

The JSON reader shares some of the functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import number, numbered

# Errors are printed on stderr, often in the middle of a line.
ERROR = re.compile(r"iperf3?: (?P<what>(?:error|the |interrupt|parameter|exiting|getsockopt|unable).*)$")

_POWERS = ("", "K", "M", "G", "T")
_BEGIN = re.compile(r"Connecting to host |Accepted connection from ")
_ROW = re.compile(
    r"\[\s*(?P<id>\d{1,6}|SUM)\](?:\[(?P<role>TX-C|RX-C|TX-S|RX-S)\])?\s+(?P<start>\d+\.\d+)-(?P<end>\d+\.\d+)\s+sec"
    r"\s+[\d.]+ [KMGT]?Bytes\s+(?P<rate>[\d.]{1,18}) (?P<prefix>[KMGT]?)(?P<unit>bits|Bytes)/sec(?P<rest>.*)$"
)
_DATAGRAMS = re.compile(r"^\s+(?P<jitter>[\d.]+) ms\s+(?P<lost>-?\d+|Unknown)/(?P<total>\d+)\b")
_RETRANSMITS = re.compile(r"^\s+(\d+)\s+sender\s*$")
_CPU = re.compile(r"CPU Utilization: local/\w+ ([\d.]+)% \(.*?\), remote/\w+ ([\d.]+)% \(")
_HEADER = re.compile(r"\[ ID\](?:\[Role\])? Interval|Test Complete\. Summary Results")
_VERSION = re.compile(r"(?:^|\s)iperf (\d+\.\d\S*)$")
_DONE = re.compile(r"\biperf Done\.\s*$")
_VERBOSE = re.compile(r"^\s*(?:Control connection MSS|Starting Test: |Test Complete\. Summary Results)")
_STREAM = re.compile(r"\[\s*(\d{1,6})\] local \S+ port \d+ connected (?:to|with) ")


@dataclass(kw_only=True, slots=True)
class Run:
    """One test: its figures in base units by metric name. ``error``: why the test is not valid, if so."""

    protocol: str = "tcp"
    streams: int = 1
    reverse: bool = False
    values: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    cut: bool = False  # whether ``error`` says that the text ends too early
    version: str | None = None
    notes: list[str] = field(default_factory=list)
    line: int | None = None

    def end_early(self, reason: str) -> None:
        """Record that the output ends before the test's end; ``reason`` says what is missing."""
        self.error, self.cut = cut(f"the test on line {self.line} {reason}"), True

    @property
    def case(self) -> str:
        parts = [self.protocol]
        if self.streams > 1:
            parts.append(str(self.streams))
        if self.reverse:
            parts.append("reverse")
        if any(m.startswith("reverse_") for m in self.values):
            parts.append("bidir")
        return "-".join(parts)


def settle(run: Run, prefix: str) -> None:
    """Set the direction's ``bitrate`` if the receiver's count is missing, with a note on its source."""
    sent, loss = run.values.get(f"{prefix}sent_bitrate"), run.values.get(f"{prefix}loss")
    if f"{prefix}bitrate" in run.values or sent is None:
        return
    if loss is not None:
        run.values[f"{prefix}bitrate"] = sent * (1 - loss)
        run.notes.append(f"{prefix}bitrate is derived: the sender's rate less the loss")
    else:
        run.values[f"{prefix}bitrate"] = sent
        run.notes.append(f"{prefix}bitrate is the sender's: the receiver's count is missing")


def datagrams(lost: float | None, total: float | None, jitter: float | None) -> dict[str, float]:
    """Return loss, jitter (s) and counts of datagrams; empty unless the receiver counted some."""
    if not total or total < 0:
        return {}
    values = {"packets": total}
    if jitter:  # 0 is below the printed precision
        values["jitter"] = jitter
    if lost is not None and 0 <= lost <= total:  # below 0 if more datagrams arrived out of order than were lost
        values |= {"lost_packets": lost, "loss": lost / total}
    return values


def weighted_mean(rates: Iterable[tuple[float, float]]) -> float | None:
    """Return the mean of (rate, duration) pairs weighted by duration, or None if the total duration is 0."""
    pairs = list(rates)
    time = sum(t for _, t in pairs)
    if time <= 0:
        return None
    return pairs[0][0] if len(pairs) == 1 else sum(r * t for r, t in pairs) / time


@dataclass(kw_only=True, slots=True)
class _Row:
    stream: str
    role: str
    seconds: float
    rate: float
    side: str
    retransmits: float | None
    udp: dict[str, float] | None

    @property
    def forward(self) -> bool:
        """Return whether the data flow from the client to the server."""
        return self.role in ("", "TX-C", "RX-S")


@dataclass(kw_only=True, slots=True)
class _Section:
    """The lines of one test: rows of intervals and rows of the summary."""

    run: Run
    server: bool = False
    client: bool = False  # whether an end line is expected, as from a client
    verbose: bool = False
    done: bool = False
    stopped: str | None = None  # iperf3's reason for ending early
    datagrams_sent: bool = False  # the intervals count what was sent, so this side is the sender
    intervals: list[_Row] = field(default_factory=list)
    summary: list[_Row] = field(default_factory=list)
    streams: set[str] = field(default_factory=set)


def read_text(text: str) -> list[Run]:
    """Return every test in ``text``; a test without a summary has the mean of its intervals, and ``error`` says so."""
    sections: list[_Section] = []
    version: str | None = None
    separated = summary = others = False
    for n, line in numbered(text):
        if match := _VERSION.search(line):
            version = match[1]
        if "Server output:" in line or "Server JSON output:" in line:
            others = True  # the other side's report of the same test, up to its end
        elif _DONE.search(line) or "Server listening on" in line:
            others = False
        if others:
            continue
        row = _row(line)
        if _BEGIN.search(line) or (row and not sections):
            sections.append(
                _Section(run=Run(version=version, line=n), server="Accepted" in line, client="Connecting" in line)
            )
            separated = summary = False
        if not sections:
            continue
        section = sections[-1]
        if row:
            # only rows of the summary show the side
            (section.summary if summary or row.side else section.intervals).append(row)
        elif _HEADER.search(line):
            summary = summary or separated
            section.datagrams_sent |= "  Total Datagrams" in line
            if "Datagrams" in line:
                section.run.protocol = "udp"
        else:
            _read_other(line, section)
        separated = "- - - - -" in line
    runs = [_finish(s) for s in sections]
    if sections and not runs[-1].error:
        _check_end(sections[-1], text)
    return runs


def _check_end(last: _Section, text: str) -> None:
    """Mark the last test if the text ends before the test does; a client prints an end line, a server does not."""
    if last.done:
        return
    if last.client:
        last.run.end_early("has no 'iperf Done.'")
    elif inside := cut_in_line(text):
        last.run.error, last.run.cut = inside, True
    elif last.verbose and "cpu_host" not in last.run.values and not last.stopped:
        last.run.end_early("has no line on CPU utilization")
    elif missing := _missing(last):
        last.run.end_early(f"has no {missing}")


def _missing(section: _Section) -> str | None:
    """Return the first row that a server's summary lacks, in words."""
    directions = {r.forward for r in section.intervals} | {r.forward for r in section.summary}
    for forward in sorted(directions, reverse=True):
        rows = [r for r in section.summary if r.forward == forward]
        streams = {r.stream for r in section.intervals if r.forward == forward and r.stream != "SUM"}
        by_stream = {s: {r.side for r in rows if r.stream == s} for s in {r.stream for r in rows}}
        if len(streams) > 1:
            streams = {*streams, "SUM"}
        if absent := sorted(streams - by_stream.keys()):
            return f"row of {absent[0]} in its summary"
        if by_stream and any(kinds != max(by_stream.values(), key=len) for kinds in by_stream.values()):
            return "row of every stream's sender and receiver"
        if rows and rows[-1].side == "sender" and not rows[-1].rate:  # up to 3.6, a server prints 0 for the sender
            return "row of the receiver"
    return None


def _row(line: str) -> _Row | None:
    match = _ROW.search(line)
    if not match or "(omitted)" in match["rest"]:
        return None
    rate, start, end = number(match["rate"]), number(match["start"]), number(match["end"])
    if rate is None or start is None or end is None:
        return None
    base = 1000 if match["unit"] == "bits" else 1024
    value = rate * base ** _POWERS.index(match["prefix"])
    rest = match["rest"]
    retransmits, udp = _RETRANSMITS.match(rest), _DATAGRAMS.match(rest)
    jitter = number(udp["jitter"]) if udp else None
    counted = datagrams(number(udp["lost"]), number(udp["total"]), jitter and jitter / 1e3) if udp else None
    return _Row(
        stream=match["id"],
        role=match["role"] or "",
        seconds=end - start,
        rate=value / 8 if base == 1000 else value,
        side=next((w for w in ("sender", "receiver") if rest.rstrip().endswith(w)), ""),
        retransmits=number(retransmits[1]) if retransmits else None,
        udp=counted,
    )


def _read_other(line: str, section: _Section) -> None:
    run = section.run
    section.verbose |= bool(_VERBOSE.search(line))
    if match := _STREAM.search(line):
        section.streams.add(match[1])
    elif match := ERROR.search(line):
        section.stopped = match["what"].strip()
    elif _DONE.search(line):
        section.done = True
    elif "Reverse mode, remote host" in line:
        run.reverse = True
    elif match := _CPU.search(line):
        for metric, figure in (("cpu_host", match[1]), ("cpu_remote", match[2])):
            if share := number(figure):
                run.values[metric] = share / 100
    elif "protocol: SCTP" in line:
        run.protocol = "sctp"


def _finish(section: _Section) -> Run:
    run, values = section.run, section.run.values
    rows = section.summary or section.intervals
    if any(r.udp is not None for r in rows):
        run.protocol = "udp"
    run.streams = max(1, len(section.streams) // max(1, len({r.forward for r in rows})))
    for forward, prefix in ((True, ""), (False, "reverse_")):
        for metric, value in _direction([r for r in section.summary if r.forward == forward], section).items():
            values[prefix + metric] = value
        intervals = _totals([r for r in section.intervals if r.forward == forward])
        mean = weighted_mean((r.rate, r.seconds) for r in intervals)
        if not {f"{prefix}bitrate", f"{prefix}sent_bitrate"} & values.keys() and mean:
            values[f"{prefix}bitrate"] = mean
            run.notes.append(f"{prefix}bitrate is the mean of the intervals: no rate in the summary")
        settle(run, prefix)
    if not section.summary:
        run.end_early("has no summary")
    if not any(m.endswith("bitrate") for m in values):
        values.clear()
    return run


def _totals(rows: list[_Row]) -> list[_Row]:
    """Return the rows over all streams: the sums, or the rows of the only stream."""
    return [r for r in rows if r.stream == "SUM"] or (rows if len({r.stream for r in rows}) == 1 else [])


def _direction(rows: list[_Row], section: _Section) -> dict[str, float]:
    """Return one direction's figures from its summary rows."""
    values: dict[str, float] = {}
    for row in _totals(rows):
        if row.side == "receiver":
            values |= row.udp or {}
            if row.rate or values.get("loss") == 1.0:  # otherwise, 0 means unknown
                values["bitrate"] = row.rate
        elif row.side == "sender":
            if row.rate:
                values["sent_bitrate"] = row.rate
            if row.rate and row.retransmits is not None:
                values["retransmits"] = row.retransmits
        else:  # up to 3.1, one row has the sender's rate and the receiver's losses, or 0 if a sending server knows none
            if row.rate:
                values["sent_bitrate"] = row.rate
            if row.udp and not (section.server and section.datagrams_sent and not row.udp.get("loss")):
                values |= row.udp
    sending = section.datagrams_sent or ("bitrate" not in values and any(r.side == "sender" and r.rate for r in rows))
    if section.server and sending and all(r.role == "" for r in rows):
        section.run.reverse = True
    if rows and not _totals(rows):
        section.run.notes.append("the sum over the streams is missing")
    return values
