"""Check whether lmbench's output is complete, from its programs' last lines and from the command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import numbered
from fleetmark.parsers.lmbench.words import Call, calls

_OPENING = re.compile(r"\[lmbench[0-9.]+ results for")
_CLOCK_TIME = re.compile(r"\[\w{3} \w{3} +\d{1,2} \d\d:\d\d:\d\d \S{1,6} \d{4}\]")  # output of date(1)
_SWITCH = re.compile(r"\[BENCHMARK_(HARDWARE|OS): (YES|NO)\]")
_STRIDE = re.compile(r'"?stride=([0-9]{1,12})"?')
_SIZE = re.compile(r'"?size=([0-9]{1,9})k? ovr=')
_PAIR = re.compile(r"([0-9.]{1,20}) [0-9.]{1,20}")
_LAST_SIZE = "64"  # lat_ctx in the operating system part of a full run
# The first and last lines of some programs.
_FIRST_AND_LAST = (
    (re.compile(r"^integer bit: "), re.compile(r"^double bogomflops: "), "line of double bogomflops (lat_ops)"),
    (re.compile(r"^STREAM copy "), re.compile(r"^STREAM triad bandwidth: "), "line of STREAM triad bandwidth"),
    (re.compile(r"^STREAM2 fill "), re.compile(r"^STREAM2 sum bandwidth: "), "line of STREAM2 sum bandwidth"),
    (re.compile(r"^L[0-9] cache: "), re.compile(r"^Memory latency: "), "line of memory latency (cache)"),
    (re.compile(r"^0k\t"), re.compile(r"^10k\t"), "line of 10k (lat_fs)"),
)
_SIZES = re.compile(r"([0-9]{1,12})([kKmMgG]?)")
_POWERS: Mapping[str, int] = {"": 0, "k": 1, "m": 2, "g": 3}


def end_missing(text: str, command_calls: Sequence[Call]) -> str | None:
    """Return why the output is truncated; None if it is complete.

    ``text``: the output of the programs in ``command_calls``, or of a full run.
    """
    if inside := cut_in_line(text):
        return inside
    lines = [line.strip() for _, line in numbered(text)]
    openings = [n for n, line in enumerate(lines) if _OPENING.match(line)]
    missing = _of_run(lines[openings[-1] :]) if openings else _of_programs(lines, command_calls)
    return cut(f"no {missing}") if missing else None


def _of_run(lines: Sequence[str]) -> str | None:
    """Return the missing part of a results file: the time at its end, unless all enabled parts are complete."""
    if sum(bool(_CLOCK_TIME.fullmatch(line)) for line in lines) >= 2:
        return None
    switches = {match[1]: match[2] for line in lines if (match := _SWITCH.match(line))}
    tables = list(_tables(lines, _SIZE))
    last = tables[-1] if tables else None
    operating_system_only = switches == {"HARDWARE": "NO", "OS": "YES"}
    if operating_system_only and last and last[0] == _LAST_SIZE and len(last[1]) == len(tables[0][1]):
        return None
    return "line with the time at its end"


def _of_programs(lines: Sequence[str], command_calls: Sequence[Call]) -> str | None:
    for first, last, name in _FIRST_AND_LAST:
        if any(map(first.match, lines)) and not any(map(last.match, lines)):
            return name
    echoed = [n for n, line in enumerate(lines) if line.startswith("+") and any(calls(line.split()))]
    if echoed and not any(_PAIR.fullmatch(line) for line in lines[echoed[-1] :]):
        return f"figure of {lines[echoed[-1]].lstrip('+ ')}"
    call = command_calls[0] if len(command_calls) == 1 else None
    strides = list(_tables(lines, _STRIDE))
    words = call.words if call and call.program == "lat_mem_rd" else ()
    for stride, rows, ended in strides:
        if not ended and not (words and rows and _number(rows[-1]) == _number(words[0])):
            return f"end of the table of stride {stride}"
    if strides and len(strides) < len(words) - 1:
        return f"table of {len(words) - 1 - len(strides)} of {len(words) - 1} strides"
    return _of_table(lines, call) if call else None


def _of_table(lines: Sequence[str], call: Call) -> str | None:
    """Return the row that ``call`` requests but ``lines`` lack, for programs whose tables have no end mark."""
    rows = [match[1] for line in lines if (match := _PAIR.fullmatch(line))]
    if call.program == "lat_ctx":
        for count in call.words:
            if count.isdecimal() and count not in rows:
                return f"row of {count} processes"
    largest = _bytes(call.values.get("M", ""))
    if call.program == "par_mem" and largest and rows and _number(rows[-1]) * 2e6 < 0.999 * largest:
        return f"row of the largest size under {largest} bytes"
    return None


def _tables(lines: Sequence[str], title: re.Pattern[str]) -> Iterator[tuple[str, list[str], bool]]:
    """Yield each table under a ``title``.

    A table has its first group, the first numbers of its rows, and whether a blank line ends it.
    """
    for n, line in enumerate(lines):
        if match := title.match(line):
            rows: list[str] = []
            ended = False
            for below in lines[n + 1 : -1]:  # no line follows the last line end
                if pair := _PAIR.fullmatch(below):
                    rows.append(pair[1])
                elif rows or below:
                    ended = not below
                    break
            yield match[1], rows, ended


def _number(word: str) -> float:
    return float(word) if re.fullmatch(r"[0-9]{1,15}(?:\.[0-9]{0,12})?", word) else 0.0


def _bytes(size: str) -> int:
    match = _SIZES.fullmatch(size)
    return int(match[1]) * 1024 ** _POWERS[match[2].lower()] if match else 0
