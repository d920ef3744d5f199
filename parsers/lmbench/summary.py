"""Parse the fixed-width tables of lmbench's ``make summary``. A cell belongs to the column above it, and may be blank.

Cases, metrics and labels are those of the programs that the figures come from, with these exceptions. ``null_io`` is
the mean of reading and writing a byte. Creations and deletions of lat_fs are times, ``create_time`` and ``delete_time``
in s. Bandwidths of memory and files are for the largest size and have no label ``size``. ``latency`` of lat_mem_rd has
a label ``level``: L1 and L2 are at 1 KiB and 128 KiB with a stride of 128 bytes, main at the largest size.

Source: lmbench 3.0-a9, scripts/getsummary (K is 1e3, M 1e6; MB/s is 1e6 B/s).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut, cut_in_line
from fleetmark.parsers.kit.text import numbered
from fleetmark.parsers.lmbench.words import LONGEST, base, repeats

_TOOL = "lmbench"
_BANNER = re.compile(r"L M B E N C H\s+([0-9])\s*\.\s*([0-9])")
_RULE = re.compile(r"-{3,}(?: +-+){2,}\s*")
_CELL = re.compile(r"([0-9]{1,12}(?:\.[0-9]{0,9})?(?:e[+-]?[0-9]{1,2})?)([KM]?)")
_THOUSANDS = {"": 1.0, "K": 1e3, "M": 1e6}
_SCALES = (("microseconds", 1e-6, "s"), ("nanoseconds", 1e-9, "s"), ("MB/s", 1e6, "B/s"))


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: a pattern for its heading (both lines), and what it measures.

    ``unit``: None for the table's own unit.
    """

    heading: str
    case: str
    metric: str
    labels: Mapping[str, str] = field(default_factory=dict)
    _: KW_ONLY
    factor: float = 1.0
    unit: str | None = None
    better: Better | None = None


def _operations(kind: str) -> tuple[_Column, ...]:
    names = {"bit": "bit", "add": "add", "mul": "mul", "div": "div", "mod": "mod", "bogo": "bogomflops"}
    return tuple(_Column(heading, "lat_ops", f"{kind}_{name}") for heading, name in names.items())


def _switch(processes: int, kilobytes: int) -> _Column:
    labels = {"processes": str(processes), "size": str(kilobytes * 1024)}
    return _Column(rf"\b{processes}p/{kilobytes}K", "lat_ctx", "context_switch", labels)


def _networking(server: Mapping[str, str]) -> tuple[_Column, ...]:
    # "RPC/" heads both UDP and TCP; the line below distinguishes them.
    return (
        _Column("^Pipe", "lat_pipe", "pipe"),
        _Column("UNIX", "lat_unix", "unix"),
        _Column("^UDP", "lat_udp", "udp", server),
        _Column("^RPC/.*UDP", "lat_rpc", "rpc_udp", server),
        _Column("^TCP$", "lat_tcp", "tcp", server),
        _Column("^RPC/.*TCP", "lat_rpc", "rpc_tcp", server),
        _Column("conn", "lat_connect", "tcp_connect", server),
    )


_CLOCK = _Column("^Mhz", "mhz", "clock", factor=1e6, unit="Hz", better=Better.NONE)
# By the beginning of a table's title. Columns are in the order of the text, which distinguishes equal headings.
_TABLES: Mapping[str, tuple[_Column, ...]] = {
    "basic system parameters": (
        _CLOCK,
        _Column("^tlb", "tlb", "tlb_pages", unit="1", better=Better.HIGHER),
        _Column("^cache", "line", "line_size", unit="B", better=Better.NONE),
        _Column("^mem", "par_mem", "load_parallelism", unit="1", better=Better.HIGHER),
    ),
    "processor, processes": (
        _CLOCK,
        _Column("call", "lat_syscall", "null"),
        _Column("I/O", "lat_syscall", "null_io"),
        _Column("stat", "lat_syscall", "stat"),
        _Column("clos", "lat_syscall", "open_close"),
        _Column("slct|selct", "lat_select", "select_tcp", {"fds": "100"}),
        _Column("inst", "lat_sig", "signal_install"),
        _Column("hndl", "lat_sig", "signal_catch"),
        _Column("fork", "lat_proc", "fork"),
        _Column("exec", "lat_proc", "exec"),
        _Column("sh", "lat_proc", "shell"),
    ),
    "basic integer operations": _operations("integer"),
    "basic uint64 operations": _operations("int64"),
    "basic int64 operations": _operations("int64"),
    "basic float operations": _operations("float"),
    "basic double operations": _operations("double"),
    "context switching": tuple(
        _switch(p, k) for p, k in ((2, 0), (2, 16), (2, 64), (8, 16), (8, 64), (16, 16), (16, 64))
    ),
    "*local* communication latencies": _networking({}),
    "*remote* communication latencies": _networking({"server": "remote"}),
    "file & vm system latencies": (
        _Column("create", "lat_fs", "create_time", {"size": "0"}),
        _Column("delete", "lat_fs", "delete_time", {"size": "0"}),
        _Column("create", "lat_fs", "create_time", {"size": "10240"}),
        _Column("delete", "lat_fs", "delete_time", {"size": "10240"}),
        _Column("mmap", "lat_mmap", "mmap"),
        _Column("prot", "lat_sig", "protection_fault"),
        _Column("page", "lat_pagefault", "page_fault"),
        _Column("100fd", "lat_select", "select_file", {"fds": "100"}),
    ),
    "*local* communication bandwidths": (
        _Column("^Pipe", "bw_pipe", "pipe_bandwidth"),
        _Column("UNIX", "bw_unix", "unix_bandwidth"),
        _Column("^TCP", "bw_tcp", "tcp_bandwidth"),
        _Column("File", "bw_file_rd", "file_read"),
        _Column("Mmap", "bw_mmap_rd", "mmap_read"),
        _Column("libc", "bw_mem", "bcopy"),
        _Column("hand", "bw_mem", "fcp"),
        _Column("Mem.*read", "bw_mem", "frd"),
        _Column("Mem.*write", "bw_mem", "fwr"),
    ),
    "memory latencies": (
        _CLOCK,
        _Column("L1", "lat_mem_rd", "latency", {"level": "L1"}),
        _Column("L2", "lat_mem_rd", "latency", {"level": "L2"}),
        _Column("Main mem", "lat_mem_rd", "latency", {"level": "main"}),
        _Column("Rand mem", "lat_mem_rd", "random_latency", {"level": "main"}),
    ),
}

_LAST = "memory latencies"


@dataclass(frozen=True, slots=True)
class _Span:
    """A column of one table in the text: where its rule begins and ends, and its contents; None if unknown."""

    start: int
    end: int
    holds: _Column | None
    slack: int  # how far from the column's end a cell may end


def _title(line: str) -> str | None:
    bare = line.strip().casefold()
    return next((t for t in _TABLES if bare.startswith(t)), None)


def is_summary(text: str) -> bool:
    """Return whether ``text`` is the output of getsummary, or a part of it."""
    if _BANNER.search(text):
        return True
    return any(_title(line) and "is better" in line for _, line in numbered(text))


def read_summary(text: str) -> Parsed:
    """Return the measurements of a summary. Raise ParseError if every table is empty."""
    notes: list[str] = []
    figures: list[tuple[str, Measurement]] = []
    title, scale, unit = None, 1.0, ""
    above: list[str] = []
    spans: list[_Span] = []
    last_title = 1
    rows: Counter[str] = Counter()  # by title
    filled = False  # whether the last row read reaches the end of its last column
    for n, raw in numbered(text):
        line = raw[:LONGEST]
        if new := _title(line):
            title, last_title = new, n
            scale, unit = next(((f, u) for word, f, u in _SCALES if word in line), (1.0, ""))
            above, spans = [], []
        elif title and _RULE.fullmatch(line):
            # The double operations are one character left of their columns, and the memory table differs between
            # versions.
            spans = _spans(line, above, _TABLES[title], 5 if title == "memory latencies" else 1)
        elif title and not spans:
            above.append(line.replace("---", "   "))
        elif not line.strip():
            title, spans = None, []
        elif spans:
            filled = False
            rows[title or ""] += 1
            host, cells = line.split()[0], _cells(line, spans)
            if cells is None:
                notes.append(f"line {n}: left out, because its cells are not below their headings")
                continue
            filled = _filled(line, spans)
            for column, cell in cells:
                if measurement := _measurement(column, cell, scale, unit):
                    figures.append((host, measurement))
                else:
                    notes.append(f"line {n}: {column.metric} has {cell!r}, which is not a number")
    if not figures:
        raise ParseError(_TOOL, "a figure in one of the summary's tables", line=last_title, got="empty tables")
    banner = _BANNER.search(text)
    version = f"{banner[1]}.{banner[2]}" if banner else None
    measurements = _labelled(figures)
    invalid = _end_missing(text, rows, banner, filled=filled)
    return Parsed(_TOOL, measurements, version, invalid, (*notes, *repeats(measurements)))


def _filled(line: str, spans: Sequence[_Span]) -> bool:
    """Return whether the last two columns of a row end alike.

    If so, the last cell is complete even without a line end.
    """
    held = [s for s in spans if s.holds]
    ends = {m.end() for m in re.finditer(r"\S+", line)}
    return len(held) > 1 and any({held[-2].end + off, held[-1].end + off} <= ends for off in range(-5, 6))


def _end_missing(text: str, rows: Mapping[str, int], banner: re.Match[str] | None, *, filled: bool) -> str | None:
    """Return why a summary is truncated: the last table or a host in it is missing.

    ``filled``: whether the last row is complete.
    """
    last = list(rows)[-1]
    if (banner and last != _LAST) or rows[last] < max(rows.values()):
        return cut("no table of memory latencies with a row of each host")
    return None if filled else cut_in_line(text)


def _spans(rule: str, above: Sequence[str], columns: Sequence[_Column], slack: int) -> list[_Span]:
    """Return the columns under one rule. Headings are matched, in order, with the table's possible columns."""
    spans: list[_Span] = []
    left = list(columns)
    for dashes in re.finditer(r"-+", rule):
        words = [
            word[0]
            for line in above
            for word in re.finditer(r"\S+", line)
            if word.start() < dashes.end() and word.end() > dashes.start()
        ]
        heading = " ".join(words)
        position = next((i for i, c in enumerate(left) if re.search(c.heading, heading, re.IGNORECASE)), None)
        holds = None
        if position is not None and spans:
            holds = left[position]
            left = left[position + 1 :]
        spans.append(_Span(dashes.start(), dashes.end(), holds, 1 if heading.startswith("Mhz") else slack))
    return spans


def _cells(line: str, spans: Sequence[_Span]) -> list[tuple[_Column, str]] | None:
    """Return a row's cells by column; None if a cell does not end where its column does, as when spaces were lost."""
    first = next((i for i, s in enumerate(spans) if s.holds), len(spans))
    last = max((s.end for s in spans if s.holds), default=0)
    taken: dict[int, str] = {}
    for word in re.finditer(r"\S+", line):
        if word.start() >= last:
            break  # lmbench's guesses after the memory latencies
        under = [i for i, s in enumerate(spans) if word.start() < s.end and word.end() > s.start]
        if under and max(under) < first:
            continue  # host, system, description
        if len(under) != 1 or under[0] in taken or abs(word.end() - spans[under[0]].end) > spans[under[0]].slack:
            return None
        taken[under[0]] = word[0]
    return [(s.holds, taken[i]) for i, s in enumerate(spans) if s.holds and i in taken]


def _measurement(column: _Column, cell: str, scale: float, unit: str) -> Measurement | None:
    match = _CELL.fullmatch(cell)
    if not match or not (column.unit or unit):
        return None
    value = base(match[1], _THOUSANDS[match[2]] * (column.factor if column.unit else scale))
    own_unit = column.unit or unit
    better = column.better or (Better.LOWER if own_unit == "s" else Better.HIGHER)
    return Measurement(_TOOL, column.case, column.metric, value, own_unit, better=better, labels=column.labels)


def _labelled(figures: Sequence[tuple[str, Measurement]]) -> tuple[Measurement, ...]:
    """Return the measurements, with a ``host`` label if the rows cover several hosts.

    A clock rate appears once per host.
    """
    several = len({host for host, _ in figures}) > 1
    clocks: set[str] = set()
    measurements = []
    for host, m in figures:
        if m.metric == "clock":
            if host in clocks:
                continue  # several tables contain the clock rate
            clocks.add(host)
        labels = {**m.labels, "host": host} if several else m.labels
        measurements.append(Measurement(_TOOL, m.case, m.metric, m.value, m.unit, better=m.better, labels=labels))
    return tuple(measurements)
