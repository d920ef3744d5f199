"""Define the output of lmbench 3's programs as data: result lines, table titles, and tables that command lines imply.

The units follow the sources (lib_timing.c, lat_mem_rd.c, bw_mem.c of 3.0-a9). KB and MB are 1e3 and 1e6 bytes in
figures and sizes, with two exceptions. Sizes of lat_mem_rd are in units of 2^20 bytes, and sizes written ``4k``
(lat_fs, lat_ctx) in units of 2^10.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath

from fleetmark.base.measurement import Better, Measurement

LONGEST = 1000  # maximum characters of a line that is read
NUMBER = r"[0-9]{1,15}(?:\.[0-9]{0,12})?"
UNITS: Mapping[str, tuple[float, str]] = {
    "nanoseconds": (1e-9, "s"),
    "microseconds": (1e-6, "s"),
    "milliseconds": (1e-3, "s"),
    "KB/sec": (1e3, "B/s"),
    "MB/sec": (1e6, "B/s"),
}
MEMORY_OPERATIONS = ("rd", "wr", "rdwr", "cp", "frd", "fwr", "fcp", "bzero", "bcopy")


def base(printed: str, factor: float) -> float:
    """Return ``printed`` times ``factor`` without binary rounding: 0.6737 microseconds are 6.737e-07 s."""
    return float(Decimal(printed) * Decimal(repr(factor)))


def repeats(measurements: Iterable[Measurement]) -> tuple[str, ...]:
    """Return a note if a text contains a measurement more than once."""
    counts = Counter((m.case, m.metric, *sorted(m.labels.items())) for m in measurements)
    runs = max(counts.values(), default=0)
    return (f"up to {runs} runs in one text, which count as repeats",) if runs > 1 else ()


@dataclass(frozen=True, slots=True)
class Line:
    """A result line ``LABEL: NUMBER UNIT``; ``metric`` may use the pattern's groups, and named groups are
    labels.
    """

    pattern: re.Pattern[str]
    case: str
    metric: str


def _lines(*rows: tuple[str, str, str]) -> tuple[Line, ...]:
    # An error message without a newline may run into a label: "Connection refusedPipe latency".
    before = {True: r"(?<![A-Z_])", False: r"\b"}
    return tuple(
        Line(re.compile(before[pattern[0].isupper()] + pattern + r"\s*$"), case, metric)
        for pattern, case, metric in rows
    )


LINES = _lines(
    (r"Simple syscall", "lat_syscall", "null"),
    (r"Null syscall", "lat_syscall", "write"),  # lmbench 1, which wrote a byte to /dev/null
    (r"Simple (read|write|stat|fstat)", "lat_syscall", r"\1"),
    (r"Simple open/close", "lat_syscall", "open_close"),
    (r"Select on (?P<fds>[0-9]{1,9}) fd's", "lat_select", "select_file"),
    (r"Select on (?P<fds>[0-9]{1,9}) tcp fd's", "lat_select", "select_tcp"),
    (r"Signal handler installation", "lat_sig", "signal_install"),
    (r"Signal handler overhead", "lat_sig", "signal_catch"),
    (r"Protection fault", "lat_sig", "protection_fault"),
    (r"Pipe latency", "lat_pipe", "pipe"),
    (r"Fifo latency", "lat_fifo", "fifo"),
    (r"AF_UNIX sock stream latency", "lat_unix", "unix"),
    (r"UNIX connection cost", "lat_unix_connect", "unix_connect"),
    (r"Semaphore latency", "lat_sem", "semaphore"),
    (r"Fcntl lock latency", "lat_fcntl", "fcntl_lock"),
    (r"Procedure call", "lat_proc", "procedure"),
    (r"Process fork\+exit", "lat_proc", "fork"),
    (r"Process fork\+execve", "lat_proc", "exec"),
    (r"Process fork\+/bin/sh -c", "lat_proc", "shell"),
    (r"Pagefaults on \S.*", "lat_pagefault", "page_fault"),
    (r"UDP latency using (?P<server>\S+)", "lat_udp", "udp"),
    (r"TCP latency using (?P<server>\S+)", "lat_tcp", "tcp"),
    (r"RPC/(udp|tcp) latency using (?P<server>\S+)", "lat_rpc", r"rpc_\1"),
    (r"TCP/IP connection cost to (?P<server>\S+)", "lat_connect", "tcp_connect"),
    (r"AF_UNIX sock stream bandwidth", "bw_unix", "unix_bandwidth"),
    (r"Pipe bandwidth", "bw_pipe", "pipe_bandwidth"),
    (r"socket UDP bandwidth using (?P<server>\S+)", "bw_udp", "udp_bandwidth"),
    (r"File \S.* write bandwidth", "lmdd", "file_write"),
    (r"u?(integer|int64|float|double) (bit|add|mul|div|mod|bogomflops)", "lat_ops", r"\1_\2"),
    (r"([dlr]+and(?:48)?|random) latency", "lat_rand", r"\1"),
    (r"(usleep|nanosleep|select|pselect|itimer) (?P<usecs>[0-9]{1,9}) microseconds", "lat_usleep", r"sleep_\1"),
    (r"STREAM (copy|scale|add|triad) (latency|bandwidth)", "stream", r"stream_\1_\2"),
    (r"STREAM2 (fill|copy|daxpy|sum) (latency|bandwidth)", "stream", r"stream2_\1_\2"),
)
PARALLELISM = re.compile(
    rf"\bu?(integer|int64|float|double) (bit|add|mul|div|mod) parallelism:\s+({NUMBER})(?![\w.,])", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table with rows of two numbers.

    The first number is the label ``key`` in units of ``scale`` bytes (None: a plain count). The second is in units of
    ``factor`` base units of ``unit``.
    """

    case: str
    metric: str
    key: str = "size"
    scale: float | None = 1e6
    factor: float = 1e6
    _: KW_ONLY
    unit: str = "B/s"
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def better(self) -> Better:
        return Better.LOWER if self.unit == "s" else Better.HIGHER


def loads(stride: str, shuffled: bool) -> Table:
    """Return lat_mem_rd's table for one stride in bytes; ``shuffled`` is its option -t."""
    metric = "random_latency" if shuffled else "latency"
    return Table("lat_mem_rd", metric, scale=2.0**20, factor=1e-9, unit="s", labels={"stride": stride})


def switches(kilobytes: int) -> Table:
    """Return lat_ctx's table for one process size."""
    labels = {"size": str(kilobytes * 1024)}
    return Table("lat_ctx", "context_switch", "processes", None, 1e-6, unit="s", labels=labels)


# The meaning of rows without a title, by program and the argument after the size.
BY_ARGUMENT: Mapping[str, Mapping[str, Table]] = {
    "bw_mem": {
        operation + conflict: Table("bw_mem", operation + conflict)
        for operation in MEMORY_OPERATIONS
        for conflict in ("", "_conflict")
    },
    "bw_file_rd": {
        "io_only": Table("bw_file_rd", "file_read"),
        "open2close": Table("bw_file_rd", "file_read_open2close"),
    },
    "bw_mmap_rd": {
        "mmap_only": Table("bw_mmap_rd", "mmap_read"),
        "open2close": Table("bw_mmap_rd", "mmap_read_open2close"),
    },
}
BY_PROGRAM: Mapping[str, Table] = {
    "lat_mmap": Table("lat_mmap", "mmap", factor=1e-6, unit="s"),
    "par_mem": Table("par_mem", "load_parallelism", factor=1.0, unit="1"),
    "bw_tcp": Table("bw_tcp", "tcp_bandwidth"),
}

# Titles of the tables in the results file, as `lmbench` writes them; case and a leading quote are ignored.
_MEMORY = BY_ARGUMENT["bw_mem"]
TITLES: Mapping[str, Table] = {
    "mappings": BY_PROGRAM["lat_mmap"],
    "read bandwidth": BY_ARGUMENT["bw_file_rd"]["io_only"],
    "read open2close bandwidth": BY_ARGUMENT["bw_file_rd"]["open2close"],
    "mmap read bandwidth": BY_ARGUMENT["bw_mmap_rd"]["mmap_only"],
    "mmap read open2close bandwidth": BY_ARGUMENT["bw_mmap_rd"]["open2close"],
    "libc bcopy unaligned": _MEMORY["bcopy"],
    "libc bcopy aligned": _MEMORY["bcopy_conflict"],
    "memory bzero bandwidth": _MEMORY["bzero"],
    "unrolled bcopy unaligned": _MEMORY["fcp"],
    "unrolled partial bcopy unaligned": _MEMORY["cp"],
    "memory read bandwidth": _MEMORY["frd"],
    "memory partial read bandwidth": _MEMORY["rd"],
    "memory write bandwidth": _MEMORY["fwr"],
    "memory partial write bandwidth": _MEMORY["wr"],
    "memory partial read/write bandwidth": _MEMORY["rdwr"],
    "memory load parallelism": BY_PROGRAM["par_mem"],
}

_PROGRAM = re.compile(r"(?:lat|bw|par)_[a-z0-9_]+|stream|tlb|cache|line|lmdd|mhz")
_TAKES_VALUE = frozenset("PWNmMsLvnuT")


@dataclass(frozen=True, slots=True)
class Call:
    """One lmbench program of a command line: its arguments, and its options without and with a value."""

    program: str
    words: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    parallel: int = 1
    values: Mapping[str, str] = field(default_factory=dict)  # options that take a value

    def table(self) -> Table | None:
        """Return the table of the rows that this call prints without their meaning."""
        if self.program in BY_PROGRAM:
            return BY_PROGRAM[self.program]
        argument = self.words[1] if len(self.words) > 1 else ""
        return BY_ARGUMENT.get(self.program, {}).get(argument + ("_conflict" if "conflict" in self.words[2:] else ""))


def calls(command: Sequence[str]) -> Iterator[Call]:
    """Return every lmbench program on a command line.

    Programs inside ``sh -c "..."`` or after numactl, taskset and the like are included.
    """
    words = " ".join(command).replace(";", " ; ").replace("&", " ; ").replace("|", " ; ").split()
    for position, word in enumerate(words):
        program = PurePosixPath(word.strip("'\"")).name
        if _PROGRAM.fullmatch(program):
            yield _call(program, words[position + 1 :])


def _call(program: str, rest: Sequence[str]) -> Call:
    plain: list[str] = []
    flags: set[str] = set()
    values: dict[str, str] = {}
    pending = ""  # an option whose value is the next word
    for word in rest:
        if word == ";" or ">" in word:
            break
        if pending:
            values[pending] = word
            pending = ""
        elif word.startswith("-") and len(word) > 1 and not plain:
            if word[1] not in _TAKES_VALUE:
                flags.update(word[1:])
            elif len(word) == 2:
                pending = word[1]
            else:
                values[word[1]] = word[2:]
        else:
            plain.append(word.strip("'\""))
    return Call(program, tuple(plain), frozenset(flags), _count(values.get("P", "1")), values)


def _count(word: str) -> int:
    return int(word) if re.fullmatch(r"[0-9]{1,6}", word) else 1
