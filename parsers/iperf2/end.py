"""Whether an iperf 2 output goes on to the end of its last test: iperf prints no word that it is done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from parsers._cut import cut, cut_in_line
from parsers.iperf2.rows import Stream, Test, final

_PROGRAM = re.compile(r"(?:^|/)iperf2?(?:\.exe)?$")
_USUAL_TIME = 10.0  # s, of a client without -t
_SLACK = 0.15  # s: ends are printed rounded
_SHORTER_SUM = 0.9  # a sum ends with its streams, or a little before


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client's command line asks for: how many streams, how many seconds. None where it does not say."""

    streams: int | None = None
    seconds: float | None = None


def asked(command: Sequence[str]) -> Asked:
    """The question in ``command``, an argument vector; nothing for a server's, or for another program."""
    program = next((n for n, word in enumerate(command) if _PROGRAM.search(word)), len(command))
    words = "\0".join(["", *command[program + 1 :], ""])
    many = re.search(r"\0(?:-P\0?|--parallel[=\0])(\d{1,6})\0", words)
    streams = int(many[1]) if many else None
    if not re.search(r"\0(?:-c|--client)", words) or re.search(r"\0(?:-n|--num)", words):
        return Asked(streams)
    time = re.search(r"\0(?:-t\0?|--time[=\0])(\d{1,6}(?:\.\d{1,6})?)\0", words)
    return Asked(streams, float(time[1]) if time else _USUAL_TIME)


def end_missing(test: Test, text: str, question: Asked) -> str | None:
    """Why the last test of ``text`` is cut; None where its end is there."""
    if inside := cut_in_line(text):
        return inside
    missing = _row_missing(test, question) or _clients_row_missing(test) or _too_short(test, question)
    return cut(missing) if missing else None


def _row_missing(test: Test, question: Asked) -> str | None:
    """The row that connections, or the question, let expect and that is not there, in words."""
    forward, back = _ways(test)
    many = max(len(forward), len(back), test.summed)
    if empty := [s.name for s in test.streams.values() if not s.rows and not s.duplex]:
        return f"stream {empty[0]} has no row"
    if test.both and not (forward and back):
        return "one of the two directions has no row"
    if test.duplex_sums < sum(s.duplex for s in test.streams.values()):
        return "the row over both directions (FD) is missing"
    if test.text and not test.totals and max(len(forward), len(back)) > 1:
        return "the row that sums the streams is missing"
    if question.streams and many < question.streams:
        return f"{question.streams} streams were asked for, {many} have rows"
    return None


def _clients_row_missing(test: Test) -> str | None:
    """The same of what only clients print: the server's report of datagrams, the sum over the whole time."""
    if not test.client:
        return None
    forward, _ = _ways(test)
    for stream in forward:
        if test.protocol == "udp" and not stream.unconfirmed and stream.final(received=True) is None:
            return f"stream {stream.name} has no report of its server"
    ends = [r.end for s in forward for r in s.rows if not r.received]
    total = final(test.sums) if test.totals else None
    if len(forward) > 1 and total and ends and total.end < _SHORTER_SUM * max(ends):
        return "the row that sums the streams over the whole time is missing"
    return None


def _ways(test: Test) -> tuple[list[Stream], list[Stream]]:
    """The streams that have rows, from the client to the server and back."""
    live = [s for s in test.streams.values() if s.rows]
    return [s for s in live if not s.reverse], [s for s in live if s.reverse]


def _too_short(test: Test, question: Asked) -> str | None:
    """That the rows end before the time asked for; or on a whole second as only those of intervals do."""
    ends = [r for s in test.streams.values() for r in s.rows] + test.sums
    last = max(ends, key=lambda r: r.end, default=None)
    if last is None:
        return None
    if question.seconds is not None:
        if last.end < question.seconds - _SLACK:
            return f"its rows end at {last.end:g} s of {question.seconds:g} s asked for"
    elif last.on_the_second and len(ends) == len(test.streams) and test.protocol != "udp":
        return f"its only row ends at {last.end:.4f} s, as the first of several does"
    return None
