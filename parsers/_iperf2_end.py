"""Whether an iperf 2 output goes on to the end of its last test: iperf prints no word that it is done."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from parsers._cut import cut, cut_in_line
from parsers._iperf2_rows import Test, final

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
    """What the last test of ``text`` lacks, as the reason why it is cut; None where its end is there."""
    if inside := cut_in_line(text):
        return inside
    live = [s for s in test.streams.values() if s.rows]
    forward, back = ([s for s in live if s.reverse == way] for way in (False, True))
    if empty := [s.name for s in test.streams.values() if not s.rows and not s.duplex]:
        return cut(f"stream {empty[0]} has no row")
    if test.both and not (forward and back):
        return cut("one of the two directions has no row")
    if test.duplex_sums < sum(s.duplex for s in test.streams.values()):
        return cut("the row over both directions (FD) is missing")
    several = len(forward) > 1 or len(back) > 1
    if several and test.text and not test.totals:
        return cut("the row that sums the streams is missing")
    if question.streams and max(len(forward), len(back), test.summed) < question.streams:
        return cut(f"{question.streams} streams were asked for, {max(len(forward), len(back))} have rows")
    if not test.client:
        return None
    for stream in forward:
        if test.protocol == "udp" and not stream.unconfirmed and stream.final(received=True) is None:
            return cut(f"stream {stream.name} has no report of its server")
    ends = [r.end for s in forward for r in s.rows if not r.received]
    total = final(test.sums) if test.totals else None
    if several and total and ends and total.end < _SHORTER_SUM * max(ends):
        return cut("the row that sums the streams over the whole time is missing")
    return _too_short(test, question)


def _too_short(test: Test, question: Asked) -> str | None:
    """That the rows end before the time asked for; or on a whole second as only those of intervals do."""
    ends = [r for s in test.streams.values() for r in s.rows] + test.sums
    last = max(ends, key=lambda r: r.end, default=None)
    if last is None:
        return None
    if question.seconds is not None:
        if last.end < question.seconds - _SLACK:
            return cut(f"its rows end at {last.end:g} s of {question.seconds:g} s asked for")
    elif last.on_the_second and len(ends) == len(test.streams) and test.protocol != "udp":
        return cut(f"its only row ends at {last.end:.4f} s, as the first of several does")
    return None
