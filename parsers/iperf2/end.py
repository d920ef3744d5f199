"""Check whether iperf 2's output is complete. iperf prints no line that marks the end of a test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fleetmark.parsers.iperf2.rows import Stream, Test, final
from fleetmark.parsers.kit.cut import cut, cut_in_line

_PROGRAM = re.compile(r"(?:^|/)iperf2?(?:\.exe)?$")
_USUAL_TIME = 10.0  # default seconds of a client without -t
_SLACK = 0.15  # seconds, tolerance for rounded end times
_SHORTER_SUM = 0.9  # seconds, tolerance because a sum may end shortly before its streams


@dataclass(frozen=True, slots=True)
class Options:
    """The number of streams and seconds on a client's command line; None if it does not set them."""

    streams: int | None = None
    seconds: float | None = None


def options_of(command: Sequence[str]) -> Options:
    """Return the options in ``command``, an argument vector; all None for a server or another program."""
    program = next((n for n, word in enumerate(command) if _PROGRAM.search(word)), len(command))
    words = "\0".join(["", *command[program + 1 :], ""])
    many = re.search(r"\0(?:-P\0?|--parallel[=\0])(\d{1,6})\0", words)
    streams = int(many[1]) if many else None
    if not re.search(r"\0(?:-c|--client)", words) or re.search(r"\0(?:-n|--num)", words):
        return Options(streams)
    time = re.search(r"\0(?:-t\0?|--time[=\0])(\d{1,6}(?:\.\d{1,6})?)\0", words)
    return Options(streams, float(time[1]) if time else _USUAL_TIME)


def end_missing(test: Test, text: str, options: Options) -> str | None:
    """Return why the last test of ``text`` is truncated; None if it is complete."""
    if inside := cut_in_line(text):
        return inside
    missing = _row_missing(test, options) or _clients_row_missing(test) or _too_short(test, options)
    return cut(missing) if missing else None


def _row_missing(test: Test, options: Options) -> str | None:
    """Return the first missing row that the connections or options imply."""
    forward, back = _directions(test)
    many = max(len(forward), len(back), test.summed)
    if empty := [s.name for s in test.streams.values() if not s.rows and not s.duplex]:
        return f"stream {empty[0]} has no row"
    if test.both and not (forward and back):
        return "one of the two directions has no row"
    if test.duplex_sums < sum(s.duplex for s in test.streams.values()):
        return "the row over both directions (FD) is missing"
    if test.text and not test.totals and max(len(forward), len(back)) > 1:
        return "the row that sums the streams is missing"
    if options.streams and many < options.streams:
        return f"{options.streams} streams were requested, {many} have rows"
    return None


def _clients_row_missing(test: Test) -> str | None:
    """Return the first missing row among those that only clients print.

    These rows are the server's report of datagrams and the sum over the whole time.
    """
    if not test.client:
        return None
    forward, _ = _directions(test)
    for stream in forward:
        if test.protocol == "udp" and not stream.unconfirmed and stream.final(received=True) is None:
            return f"stream {stream.name} has no report of its server"
    ends = [r.end for s in forward for r in s.rows if not r.received]
    total = final(test.sums) if test.totals else None
    if len(forward) > 1 and total and ends and total.end < _SHORTER_SUM * max(ends):
        return "the row with the sum of the streams for the whole test is missing"
    return None


def _directions(test: Test) -> tuple[list[Stream], list[Stream]]:
    """Return the streams that have rows, from the client to the server and back."""
    live = [s for s in test.streams.values() if s.rows]
    return [s for s in live if not s.reverse], [s for s in live if s.reverse]


def _too_short(test: Test, options: Options) -> str | None:
    """Return a sentence if the rows end before the requested time, or on a whole second like interval rows."""
    ends = [r for s in test.streams.values() for r in s.rows] + test.sums
    last = max(ends, key=lambda r: r.end, default=None)
    if last is None:
        return None
    if options.seconds is not None:
        if last.end < options.seconds - _SLACK:
            return f"its rows end at {last.end:g} s of {options.seconds:g} s requested"
    elif last.on_the_second and len(ends) == len(test.streams) and test.protocol != "udp":
        return f"its only row ends at {last.end:.4f} s, as the first of several rows would"
    return None
