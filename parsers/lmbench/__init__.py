"""Parse lmbench 3: the results file of a whole run, the text of ``make summary``, and the output of single programs.

Case: the program (``lat_syscall``, ``bw_mem``), with the suffix ``_4p`` if four copies ran at once (-P, SYNC_MAX).
Metric: the measured quantity, with a name that is unique over all programs.

- in s: ``null`` (system call), ``pipe``, ``tcp``, ``context_switch``, ``page_fault``, ``latency`` and
  ``random_latency`` (lat_mem_rd without and with -t)
- in B/s: ``rd``, ``wr``, ``rdwr``, ``cp``, ``frd``, ... (bw_mem), ``pipe_bandwidth``, ``tcp_bandwidth``
- others: see ``lmbench.words``

Labels: ``size`` and ``stride`` in bytes, ``processes``, ``fds``, ``server`` (unless it is loopback), and ``host`` if a
text has several. All programs except mhz and line print on standard error.

bw_mem, bw_file_rd, bw_mmap_rd, lat_mmap and par_mem print two numbers without their meaning. The meaning comes from the
title above them, the command line echoed before them, an operation in front of the row, or ``command``.

Source: lmbench 3.0-a9 (its scripts/lmbench, scripts/getsummary and src/*.c).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.text import decode, numbered
from fleetmark.parsers.lmbench.end import end_missing
from fleetmark.parsers.lmbench.summary import is_summary, read_summary
from fleetmark.parsers.lmbench.words import (
    BY_ARGUMENT,
    BY_PROGRAM,
    LINES,
    LONGEST,
    MEMORY_OPERATIONS,
    NUMBER,
    PARALLELISM,
    TITLES,
    UNITS,
    Call,
    Table,
    base,
    calls,
    loads,
    repeats,
    switches,
)

_TOOL = "lmbench"
_VALUE = re.compile(rf":\s*({NUMBER})\s+({'|'.join(map(re.escape, UNITS))})(?!\w)")
_ROW = re.compile(rf"(?:({'|'.join(MEMORY_OPERATIONS)})[:,]?\s+)?({NUMBER})\s+({NUMBER})(\s+MB/sec)?")
_FILES = re.compile(r"([0-9]{1,9})k\s+(-?[0-9]{1,15})\s+(-?[0-9]{1,15})\s+(-?[0-9]{1,15})")
_STRIDE = re.compile(r'"?stride=([0-9]{1,12})"?')
_SWITCH = re.compile(rf'"?size=([0-9]{{1,9}})k? ovr={NUMBER}"?')
_SOCKETS = re.compile(r'"?Socket bandwidth using (\S+?)"?')
_DISK = re.compile(r'"?(Seek times|Zone bandwidth) for (\S+?)"?')
_CLOCK = re.compile(rf"({NUMBER}) MHz, {NUMBER} nanosec clock")
_TLB = re.compile(rf"\btlb: ([0-9]{{1,9}}) pages(?: ({NUMBER}) nanoseconds)?")
_HTTP = re.compile(rf"\bAvg xfer:? [^,]*, {NUMBER}KB in ({NUMBER}) millisecs, ({NUMBER}) (KB/sec|MB/sec)")
_CACHE = re.compile(rf"\b(?:(L[0-9]) cache: ([0-9]{{1,12}}) bytes|Memory latency:) ({NUMBER}) nanoseconds")
_SETTING = re.compile(r"\[(LMBENCH VERSION|LMBENCH_VER|SYNC_MAX|HOSTNAME|MHZ): ?(.*)\]")
_OPENING = re.compile(r"\[lmbench([0-9.]+) results for")
_ECHO = re.compile(r"(?:^|[/+$#>\s])((?:bw_mem|bw_file_rd|bw_mmap_rd|lat_mmap|par_mem|lat_mem_rd)\s+-?\w.*)")
_ALONE: Mapping[str, tuple[str, float, str, Better]] = {  # programs that print a single bare number
    "line": ("line_size", 1.0, "B", Better.NONE),
    "lat_dram_page": ("dram_page", 1e-9, "s", Better.LOWER),
}
_LOOPBACK = re.compile(r"localhost(?:\..*)?|127\..*|::1")


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements in ``raw``; ``command`` gives the meaning of bare numbers.

    Raise ParseError if there are none, or only numbers of unknown meaning.
    """
    text = decode(raw)
    if is_summary(text):
        return read_summary(text)
    reader = _Reader(command_calls=list(calls(command)))
    for n, line in numbered(text):
        reader.take(n, line.strip())
    reader.finish(text)
    if not reader.measurements:
        raise reader.nothing(text)
    measurements = reader.labelled()
    notes = (*reader.notes, *repeats(measurements))
    return Parsed(
        _TOOL, measurements, reader.version, reader.invalid() or end_missing(text, reader.command_calls), notes
    )


@dataclass(kw_only=True, slots=True)
class _Reader:
    """Read a text line by line and keep track of the current table."""

    command_calls: list[Call]
    measurements: list[tuple[str, Measurement]] = field(default_factory=list)  # each with the host that it belongs to
    notes: list[str] = field(default_factory=list)
    version: str | None = None
    host: str = ""
    parallel: int = 1
    clock: Measurement | None = None
    table: Table | None = None  # under the last title, until a blank line after its rows
    rows: int = 0
    standing: Table | None = None  # table of rows without a title, from the command
    shuffled: bool = False
    unnamed: list[int] = field(default_factory=list)  # line numbers of rows without a known meaning
    absent_program: int | None = None

    def __post_init__(self) -> None:
        tables = [t for t in (call.table() for call in self.command_calls) if t]
        self.standing = tables[0] if tables and all(t == tables[0] for t in tables) else None
        self.shuffled = any(c.program == "lat_mem_rd" and "t" in c.flags for c in self.command_calls)
        self.parallel = max((c.parallel for c in self.command_calls), default=1)

    def take(self, n: int, line: str) -> None:
        if not line:
            if self.rows:
                self.table, self.rows = None, 0
        elif len(line) > LONGEST:
            return  # no program of lmbench prints such a line
        elif line.startswith("["):
            self._setting(line)
        elif row := _ROW.fullmatch(line):
            self._row(n, row)
        elif files := _FILES.fullmatch(line):
            self._files(files)
        elif not (self._title(line) or self._result(line)):
            if re.search(r"\bhello: (?:not found|No such file)", line, re.IGNORECASE):
                self.absent_program = n
            elif (echo := _ECHO.search(line)) and not line.startswith("Usage"):
                self._echo(echo[1])
            elif line.startswith('"'):
                self.table, self.rows = None, 0  # an unknown table

    def _add(self, case: str, metric: str, value: float, unit: str, better: Better, labels: Mapping[str, str]) -> None:
        case = f"{case}_{self.parallel}p" if self.parallel > 1 else case
        measurement = Measurement(_TOOL, case, metric, value, unit, better=better, labels=labels)
        self.measurements.append((self.host, measurement))

    def _row(self, n: int, row: re.Match[str]) -> None:
        operation, key, value, rate = row.groups()
        table = self.table or (BY_PROGRAM["bw_tcp"] if rate else self.standing)
        if operation:
            table = BY_ARGUMENT["bw_mem"][operation]
        if table is None:
            self.unnamed.append(n)
            return
        self.rows += 1
        labels = {**table.labels, table.key: str(_simplest(key, table.scale)) if table.scale else str(int(float(key)))}
        self._add(table.case, table.metric, base(value, table.factor), table.unit, table.better, labels)

    def _files(self, row: re.Match[str]) -> None:
        labels = {"size": str(int(row[1]) * 1024)}
        for metric, value in (("create", row[3]), ("delete", row[4])):
            if not value.startswith("-"):  # lat_fs prints -1 if it failed
                self._add("lat_fs", metric, float(value), "1/s", Better.HIGHER, labels)

    def _title(self, line: str) -> bool:
        """Return whether ``line`` begins a table."""
        table: Table | None
        bare = line.strip('" ').casefold()
        if bare in ("memory load latency", "random load latency"):
            self.shuffled, table = bare.startswith("random"), None
        elif bare == "file system latency":
            table = None  # the table's rows contain their own labels
        elif bare in TITLES:
            table = TITLES[bare]
        elif match := _STRIDE.fullmatch(line):
            table = loads(str(int(match[1])), self.shuffled)
        elif match := _SWITCH.fullmatch(line):
            table = switches(int(match[1]))
        elif match := _SOCKETS.fullmatch(line):
            table = Table("bw_tcp", "tcp_bandwidth", labels=_server(match[1]))
        elif match := _DISK.fullmatch(line):
            labels = {"device": match[2]}
            if match[1] == "Seek times":
                table = Table("disk", "seek", "distance", 1e6, 1e-3, unit="s", labels=labels)
            else:
                table = Table("disk", "zone_bandwidth", "offset", labels=labels)
        else:
            return False
        self.table, self.rows = table, 0
        return True

    def _result(self, line: str) -> bool:
        """Return whether ``line`` contains a result with its own label."""
        if value := _VALUE.search(line):
            factor, unit = UNITS[value[2]]
            better = Better.LOWER if unit == "s" else Better.HIGHER
            for kind in LINES:
                if match := kind.pattern.search(line[: value.start()]):
                    labels = {k: v for k, v in match.groupdict().items() if k != "server"} | _server(
                        match.groupdict().get("server")
                    )
                    self._add(kind.case, match.expand(kind.metric), base(value[1], factor), unit, better, labels)
                    return True
        if match := PARALLELISM.search(line):
            metric = f"{match[1]}_{match[2]}_parallelism"
            self._add("par_ops", metric, float(match[3]), "1", Better.HIGHER, {})
        elif match := _TLB.search(line):
            self._add("tlb", "tlb_pages", float(match[1]), "1", Better.HIGHER, {})
            if match[2]:
                self._add("tlb", "tlb_miss", base(match[2], 1e-9), "s", Better.LOWER, {})
        elif match := _HTTP.search(line):
            self._add("lat_http", "http", base(match[1], 1e-3), "s", Better.LOWER, {})
            self._add("lat_http", "http_bandwidth", base(match[2], UNITS[match[3]][0]), "B/s", Better.HIGHER, {})
        elif match := _CACHE.search(line):
            labels = {"level": match[1] or "memory"}
            self._add("cache", "cache_latency", base(match[3], 1e-9), "s", Better.LOWER, labels)
            if match[2]:
                self._add("cache", "cache_size", float(match[2]), "B", Better.NONE, labels)
        elif match := _CLOCK.fullmatch(line):
            self._add("mhz", "clock", base(match[1], 1e6), "Hz", Better.NONE, {})
        else:
            return False
        return True

    def _setting(self, line: str) -> None:
        if match := _OPENING.match(line):
            self.version, self.parallel, self.host = self.version or match[1], 1, ""
            return
        match = _SETTING.match(line)
        if not match or not match[2].strip():
            return
        name, value = match[1], match[2].strip()
        if name.startswith("LMBENCH"):
            self.version = value.removeprefix("lmbench-")[:40]
        elif name == "SYNC_MAX" and re.fullmatch(r"[0-9]{1,6}", value):
            self.parallel = max(int(value), 1)
        elif name == "HOSTNAME":
            self.host = value
        elif name == "MHZ" and (clock := _CLOCK.fullmatch(value)):
            self.clock = Measurement(_TOOL, "mhz", "clock", base(clock[1], 1e6), "Hz", better=Better.NONE)

    def _echo(self, words: str) -> None:
        """Read a command line in the text itself, as in a transcript or from ``sh -x``."""
        for call in calls(words.split()):
            self.shuffled = "t" in call.flags if call.program == "lat_mem_rd" else self.shuffled
            self.standing, self.table, self.rows = call.table(), None, 0
            self.parallel = call.parallel

    def finish(self, text: str) -> None:
        """Add the results that need the whole text: a bare number, the header's clock, and a note on unnamed rows."""
        bare_number = text.strip()
        if not self.measurements and re.fullmatch(NUMBER, bare_number):
            for call in self.command_calls:
                if call.program in _ALONE:
                    metric, factor, unit, better = _ALONE[call.program]
                    self._add(call.program, metric, base(bare_number, factor), unit, better, {})
                    break
        if self.measurements and self.clock:
            self.measurements.append((self.host, self.clock))
        if self.measurements and self.unnamed:
            self.notes.append(
                f"line {self.unnamed[0]}: {len(self.unnamed)} rows of two numbers with no known title above, left out"
            )
        if self.absent_program:
            self.notes.append(
                f"line {self.absent_program}: lat_proc found no program to start, so exec and shell timed a failure"
            )

    def invalid(self) -> str | None:
        if self.absent_program and all(m.metric in ("exec", "shell") for _, m in self.measurements):
            return "lat_proc found no program to start (lmbench's hello)"
        return None

    def labelled(self) -> tuple[Measurement, ...]:
        """Return the measurements, with a ``host`` label if the text covers several hosts."""
        if len({host for host, _ in self.measurements if host}) < 2:
            return tuple(m for _, m in self.measurements)
        return tuple(
            Measurement(_TOOL, m.case, m.metric, m.value, m.unit, better=m.better, labels={**m.labels, "host": host})
            for host, m in self.measurements
        )

    def nothing(self, text: str) -> ParseError:
        lines = [(n, line.strip()) for n, line in numbered(text) if line.strip()]
        if self.unnamed:
            n = self.unnamed[0]
            got = next(line for number, line in lines if number == n)
            reason = "a title or the command (such as bw_mem 64m rd) that gives the meaning of rows of two numbers"
            if len(self.command_calls) > 1:
                reason = "one lmbench program per command, because rows of two numbers do not name their program"
            return ParseError(_TOOL, reason, line=n, got=got)
        if not lines:
            return ParseError(_TOOL, "results (lmbench's programs print them on standard error)", got="no output")
        n, got = lines[0] if lines[0][1].startswith("Usage") else lines[-1]
        return ParseError(_TOOL, "a result of one of lmbench's programs", line=n, got=got)


def _server(name: str | None) -> dict[str, str]:
    return {"server": name} if name and not _LOOPBACK.fullmatch(name) else {}


def _simplest(printed: str, unit: float) -> int:
    """Return the simplest integer number of bytes that prints as ``printed`` units of ``unit`` bytes.

    lat_mem_rd's 0.00293 MB is 3072 bytes, bw_mem's 1.05 is 2^20, and 1.00 is a million. Short decimals and small
    multiples of a power of two are simple.
    """
    decimals = len(printed.partition(".")[2])
    middle, half = float(printed) * unit, 0.5 * unit / 10**decimals
    by_tens = int(printed.replace(".", "").strip("0") or "0")
    best, complexity = round(middle), by_tens
    step = 1 << max(int(middle + half).bit_length(), 1)
    while step >= 1:
        multiple = round(middle / step)
        if multiple and abs(multiple * step - middle) <= half:
            if multiple < complexity:
                best = multiple * step
            break
        step >>= 1
    return best
