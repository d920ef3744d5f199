"""Read the text of nccl-tests, rccl-tests and mscclpp-test as tests with their rows.

A table's heading names its columns. Rows are read from the right, because versions up to 2.12 omit columns or leave
them blank if they do not apply to a collective. Incomplete rows are omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fleetmark.parsers.nccl.lines import Line
from fleetmark.parsers.nccl.model import (
    DEVICES,
    HEADING,
    SETTINGS,
    STARTING,
    VERSION,
    Point,
    Row,
    Run,
    collective,
    figure,
)

OTHERS = re.compile(r"data_size\(Bytes\)|size\(B\)\s+count\(elems\)|MSCCL\+\+", re.IGNORECASE)

NAME = (
    r"(?P<name>all_?reduce(?:_bias)?|all_?gather|reduce_?scatter|all_?to_?allv?|broadcast|reduce|gather|scatter"
    r"|send_?recv|hypercube)"
)
PROGRAM = re.compile(rf"(?:^|[/\s'\"=])(?:[nr]ccl_)?{NAME}_(?:test_)?perf(?:_mpi|_nompi)?(?![\w-])")
_COMMAND = re.compile(r"\s{0,8}(?:Running:|\+|\$)\s")  # prefixes of a log, a shell's trace, or a shell's prompt
_STARTING = re.compile(r"Collective test (?P<what>starting|concluded): (?P<program>\S{1,100})")
_SETTINGS = re.compile(r"\bnThreads?:?\s+[0-9]{1,6}\s+nGpus:?\s+[0-9]|#\s+minBytes [0-9]{1,18} maxBytes [0-9]")
_KERNEL = re.compile(r"\bkernel num: ([0-9]{1,6})")  # format of mscclpp-test
_VALIDATION = re.compile(r"\bvalidation:\s{0,4}([0-9]{1,6})")
_DEVICES = re.compile(r"^\s{0,8}#?\s{0,8}Using devices\s{0,8}$")
_RANK = re.compile(
    r"#?\s{0,8}Rank\s+(?P<rank>[0-9]{1,7})\s+(?:Group\s+(?P<group>[0-9]{1,7})\s+)?(?:Pid\s+(?P<pid>[0-9]{1,10})\s+)?"
    r"on\s+(?P<host>\S{1,255})\s+device"
)
_PLACES = re.compile(r"out-of-place|in-place")
_VERSION = re.compile(
    r"\b[nr]ccl-tests version (?P<own>\S{1,80}) [nr]ccl-headers=(?P<built>[0-9]{4,6}) "
    r"(?P<which>[nr]ccl)-library=(?P<runs>[0-9]{4,6})"
)
_RCCL_TESTS = re.compile(r"\brccl-tests: Version (?P<own>\w[\w.:+-]{0,80})")
_COMPILED = re.compile(r"NCCL Tests compiled with (?P<library>NCCL [0-9]{1,4}\.[0-9]{1,4})")
_LIBRARY = re.compile(r"\b(?P<which>[NR]CCL) version\s?:?\s(?P<version>[0-9]{1,4}\.[0-9][\w.:+-]{0,80})")
_BOUNDS = re.compile(r"Out of bounds values\s{0,8}:\s{0,8}(?P<count>[0-9]{1,12})(?:\s(?P<verdict>OK|FAILED))?")
_AVERAGE = re.compile(r"Avg bus bandwidth\s{0,8}:\s{0,8}(?P<rate>[^\s]{1,24})(?:\s+(?P<verdict>OK|FAILED))?")
_FAILURE = re.compile(
    r"\bTest (?:NCCL|CUDA|HIP) failure\b|\b(?:NCCL|Cuda) failure \S{1,200}:[0-9]|\bTest timeout \([0-9]{1,9}s\)"
    r"|\[KERNEL_LAUNCH_ERROR\]|Invalid number of GPUs:|\[ERROR\] The number of requested GPUs"
)
_FOLLOWING = re.compile(r"\.\. \S{1,255}(?: pid [0-9]{1,10})?: Test failure \S{1,200}:[0-9]")
_REMARK = re.compile(
    r"(?P<from_here>Reducing maxBytes to [0-9]{1,18} due to memory limitation|\bNCCL WARN |# error: \S"
    r"|Blocking Enabled: )|\bmismatch|\bOption -\w .{0,200}?(?:Ignoring|Defaulting)",
    re.IGNORECASE,
)
_LOG = re.compile(r"\bNCCL (?:INFO|TRACE)\b")
# A row of a table with types, which may begin anywhere in the line.
_ROW_BEGINS = re.compile(
    r"(?:^|[^\w.-])[0-9]{1,18}\s+[0-9]{1,18}\s+(?:float|double|half|bfloat16|u?int(?:8|32|64)|char|int|fp?8_?e[0-9]\w{1,8})(?:\s|$)"
)
_TYPE = re.compile(r"[a-z]\w{1,19}")
_ROOT = re.compile(r"-?[0-9]{1,9}")
_WHOLE = re.compile(r"[0-9]{1,18}")
_WRONG = re.compile(r"(?:N/A|[0-9]{1,18}(?:\.[0-9]{1,12})?(?:e[+-]?[0-9]{1,3})?)\*?")
_NO_NUMBER = re.compile(r"N/A|-|-?(?:nan|inf)", re.IGNORECASE)
_DATE, _CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
_BLANK = 25  # spaces: wider than any gap between two columns, narrower than a blank half of a row

_FIGURES = {
    "time": ("time", 1e-6),
    "cputime": ("cpu_time", 1e-6),
    "hipevt": ("hip_event_time", 1e-6),
    "algbw": ("algbw", 1e9),
    "busbw": ("busbw", 1e9),
    "i_min": ("time_min", 1e-6),
    "i_max": ("time_max", 1e-6),
    "i_p99": ("time_p99", 1e-6),
    "i_cv%": ("time_cv", 1e-2),
}
_CHECKS = ("#wrong", "error", "res")
_UNREAD = ("copybw",)


@dataclass(frozen=True, slots=True)
class Heading:
    """The columns of a table: those left of the first time, those of one half, and the places of the halves."""

    left: tuple[str, ...]
    half: tuple[str, ...]
    places: tuple[str, ...]
    tail: int = 0
    milliseconds: bool = False


USUAL = Heading(("type", "redop", "root"), ("time", "algbw", "busbw", "#wrong"), ("out", "in"))


def heading(text: str, places: tuple[str, ...]) -> Heading | None:
    """Return the columns that a line names if it is a table's heading. ``places`` comes from the line above it."""
    names = text.split()
    if names and names[0] == "#":
        del names[0]
    if tuple(names[:2]) not in (("size", "count"), ("bytes", "N")) or "algbw" not in names:
        return None
    starts = [i for i, name in enumerate(names) if name in ("time", "cputime")]
    left = tuple("redop" if name == "op" else name for name in names[2 : starts[0] if starts else 2])
    if not 1 <= len(starts) <= 2 or not set(left) <= {"type", "redop", "root"}:
        return None
    last = max(i for i, name in enumerate(names) if name in _FIGURES or name in _CHECKS or name in _UNREAD)
    half = tuple(names[starts[0] : starts[1] if len(starts) == 2 else last + 1])
    if len(starts) == 2 and tuple(names[starts[1] :][: len(half)]) != half:
        return None
    if len(places) != len(starts):
        places = ("out", "in")[: len(starts)]
    tail = [name for name in names[starts[-1] + len(half) :] if name != "timestamp"]
    return Heading(left, half, places, len(tail), milliseconds=names[0] == "bytes")


def read_row(line: Line, columns: Heading, blank: bool = False) -> Row | None:
    """Return the row in ``line``, if it is complete.

    ``blank``: whether one half of a row may be empty and its check left out, as mscclpp-test does.
    """
    cells = _cells(line.text, columns)
    if len(cells) < 4 or not all(_WHOLE.fullmatch(cell) for cell in cells[:2]):
        return None
    for places in (columns.places, _lone(line.text, columns, blank)):
        for half in (columns.half, columns.half[:-1]) if blank else (columns.half,):
            split = len(cells) - len(places) * len(half)
            if split < 2 or not places:
                continue
            left = _left(cells[2:split], columns.left)
            points = [
                _point(place, cells[split + i * len(half) :][: len(half)], half, columns.milliseconds)
                for i, place in enumerate(places)
            ]
            if left is not None and all(points):
                kind, redop, root = left
                row = Row(line.n, int(cells[0]), int(cells[1]), kind, redop, root=root)
                row.points = [p for p in points if p is not None and p.figures]
                row.width = None if columns.left else 4
                return row
    return None


def _cells(text: str, columns: Heading) -> list[str]:
    cells = text.split()
    for i in range(len(cells) - 2, 1, -1):  # the timestamp of -S precedes what RCCL adds with -A
        if _CLOCK.fullmatch(cells[i + 1]) and _DATE.fullmatch(cells[i]):
            del cells[i : i + 2]
            break
    return cells[: len(cells) - columns.tail] if columns.tail else cells


def _lone(text: str, columns: Heading, blank: bool) -> tuple[str, ...]:
    """Return the place of a row with only one half. If a gap is as wide as a half, the first half is blank."""
    if len(columns.places) < 2:
        return ()
    if re.search(rf"\S {{{_BLANK},}}\S", text):
        return columns.places[1:]
    return columns.places[:1] if blank else ()


def _left(cells: list[str], names: tuple[str, ...]) -> tuple[str | None, str | None, int | None] | None:
    """Return type, reduction and root of a row; None if the cells contain something else."""
    kind = redop = root = None
    rest = list(cells)
    if "type" in names:
        if not rest or not _TYPE.fullmatch(rest[0]):
            return None
        kind = rest.pop(0)
    if "redop" in names and rest and _TYPE.fullmatch(rest[0]):
        redop = rest.pop(0)
    if "root" in names:
        if not rest or not _ROOT.fullmatch(rest[0]):
            return None
        root = int(rest.pop(0))
    return None if rest else (kind, redop, root)


def _point(place: str, cells: list[str], half: tuple[str, ...], milliseconds: bool) -> Point | None:
    point = Point(place, {})
    for name, cell in zip(half, cells, strict=True):
        if name in _CHECKS:
            if not _WRONG.fullmatch(cell):
                return None
            point.wrong = cell
        elif name in _FIGURES:
            value = figure(cell)
            metric, factor = _FIGURES[name]
            if value is None and not _NO_NUMBER.fullmatch(cell):
                return None
            if value and (value.value or not metric.endswith("time")):  # a time of 0 is not a measurement
                point.figures[metric] = value.times(
                    factor * 1e3 if milliseconds and metric.endswith("time") else factor
                )
    return point


@dataclass(slots=True)
class _Process:
    """Collect the output of one process."""

    test: Run | None = None
    columns: Heading | None = None
    places: tuple[str, ...] = ()


@dataclass(kw_only=True, slots=True)
class Reader:
    """Sort lines into tests; every process has its own."""

    blank: bool = False  # see ``read_row``
    unfinished: int | None = None  # number of the last line if the text does not end with a line end
    tests: list[Run] = field(default_factory=list)
    other: Line | None = None  # the first line of another tool of the family
    _processes: dict[str, _Process] = field(default_factory=dict)
    _pending: str | None = None  # the collective named on a command line, for the next test
    _pending_at: Line | None = None  # that command line, if the test must follow it

    def read(self, output: Iterable[Line]) -> None:
        for line in output:
            if line.text:
                self._take(line)
        self.end()

    def _begin(self, line: Line, process: _Process) -> Run:
        test = Run(line=line.n, case=self._pending, source=line.source, last=line.n)
        if test.case is None and process.test and not process.test.rows and not process.test.named:
            test.case = process.test.case
        self._pending = self._pending_at = None
        process.test = test
        self.tests.append(test)
        return test

    def _at(self, line: Line, stage: int) -> Run:
        """Return the test that ``line`` belongs to, or a new test.

        A new test begins if the line belongs to an earlier stage than the current test has reached.
        """
        process = self._processes[line.source]
        test = process.test
        if test is None or test.stage >= stage or test.ended or test.failure:
            test = self._begin(line, process)
        test.stage, test.last = stage, line.n
        return test

    def _take(self, line: Line) -> None:
        text, process = line.text, self._processes.setdefault(line.source, _Process())
        if self.other is None and OTHERS.search(text):
            self.other = line
        if columns := heading(text, process.places):
            self._take_heading(line, process, columns)
        elif self._take_row(line, process):
            return
        elif match := _STARTING.search(text):
            self._take_name(line, process, match)
        elif match := _VERSION.search(text):
            _take_version(self._at(line, VERSION), match)
        elif match := _SETTINGS.search(text):
            test = self._at(line, SETTINGS)
            validation = _VALIDATION.search(text)
            test.validation = int(validation[1]) if validation else None
            kernel = _KERNEL.search(text)
            test.kernel = kernel[1] if kernel else None
        elif _DEVICES.search(text):
            self._at(line, DEVICES)
        elif match := _RANK.search(text):
            self._take_device(line, process, match)
        elif "#" in text and (places := _PLACES.findall(text)):
            process.places = tuple({"out-of-place": "out", "in-place": "in"}[place] for place in places)
        else:
            self._take_end(line, process)

    def _take_device(self, line: Line, process: _Process, match: re.Match[str]) -> None:
        test = process.test
        if test is None or test.rows or test.ended or test.failure:
            test = self._begin(line, process)
        test.stage, test.last = max(test.stage, DEVICES), line.n
        test.devices.append((int(match["rank"]), int(match["group"] or 0), match["pid"] or "", match["host"]))

    def _take_heading(self, line: Line, process: _Process, columns: Heading) -> None:
        test = process.test
        if test is None or test.rows or test.ended or test.failure:
            test = self._begin(line, process)
        test.stage, test.last, test.columns = HEADING, line.n, columns.left
        test.relative = _relative(columns)
        process.columns = columns
        if self.other is None and "type" not in columns.left:
            self.other = line

    def _take_row(self, line: Line, process: _Process) -> bool:
        """Return whether ``line`` is a row or a part of one."""
        columns = process.columns or USUAL
        row = read_row(line, columns, self.blank)
        if row and line.n == self.unfinished and any(point.wrong is None for point in row.points):
            row = None  # without the check after it, the last figure may have lost digits
        if row is None and not _ROW_BEGINS.search(line.text):
            return False
        test = process.test
        if test is None or test.ended or test.failure:
            test = self._begin(line, process)
        test.last = line.n
        if row is None:
            test.damaged.append(f"line {line.n}: a row that is cut or has other text in it is left out")
            return True
        if test.stage < HEADING and not test.rows:
            origin = "the table before" if process.columns else "nccl-tests 2.13 and later"
            test.notes.append(f"line {line.n}: no heading; columns read as those of {origin}")
            test.headless = process.columns is None
            test.columns, test.relative = columns.left, _relative(columns)
            process.columns = columns
        test.stage = HEADING
        if test.kernel is not None:
            row.more["kernel"] = test.kernel
        test.rows.append(row)
        return True

    def _take_name(self, line: Line, process: _Process, match: re.Match[str]) -> None:
        program = PROGRAM.search(match["program"])
        name = collective(program["name"]) if program else None
        if match["what"] == "starting":
            test = self._at(line, STARTING)
        else:
            test = process.test or self._begin(line, process)
            test.last, test.ended = line.n, True
        if name:
            test.case, test.named = name, True

    def _take_end(self, line: Line, process: _Process) -> None:
        text, test = line.text, process.test
        if match := _BOUNDS.search(text):
            test = test or self._begin(line, process)
            test.summaries.add(("bounds", match["count"]))
            test.out_of_bounds, test.last = max(test.out_of_bounds or 0, int(match["count"])), line.n
        elif match := _AVERAGE.search(text):
            test = test or self._begin(line, process)
            test.summaries.add(("average", match["rate"]))
            average = figure(match["rate"])
            test.last = line.n
            if line.n == self.unfinished and text.endswith(match["rate"]):
                test.cut = f"line {line.n} ends within its average"  # the last digits may be missing
                return
            if average and test.average is None:
                test.average = average.times(1e9)
            test.average_failed = test.average_failed or match["verdict"] == "FAILED"
            test.ended = True
        else:
            self._take_message(line, process)

    def _take_message(self, line: Line, process: _Process) -> None:
        text, test = line.text, process.test or (self.tests[-1] if self.tests else None)
        if _FAILURE.search(text) or (_FOLLOWING.search(text) and not (test and test.failure)):
            if test is None or test.ended:
                test = self._begin(line, process)
            test.failure = test.failure or (line.n, text.strip())
        elif match := _LIBRARY.search(text):
            if test:
                test.versions.append(f"{match['which']} {match['version']}")
        elif match := _RCCL_TESTS.search(text) or _COMPILED.search(text):
            self._take_versions(match, test)
        elif not _LOG.search(text):
            if (match := _REMARK.search(text)) and test:
                test.notes.append(text[match.start() :].strip() if match["from_here"] else text.strip())
            elif program := PROGRAM.search(text):
                self._take_command(line, process, collective(program["name"]))

    def _take_command(self, line: Line, process: _Process, name: str | None) -> None:
        """Take a command line that names a collective. If a shell or a log printed it, the test must follow."""
        if not _COMMAND.match(line.text):
            self._pending = name
            return
        if self._pending_at and self._pending != name:
            self.end()
        self._pending, self._pending_at = name, self._pending_at or line

    def end(self) -> None:
        """Add a test for the last command, if none of its output followed."""
        if line := self._pending_at:
            self.tests.append(Run(line=line.n, case=self._pending, source=line.source, last=line.n))
            self._pending = self._pending_at = None

    def _take_versions(self, match: re.Match[str], test: Run | None) -> None:
        if test is None:
            return
        versions = match.groupdict()
        if versions.get("own") and versions["own"].lower() != "unknown":
            test.version = versions["own"]
        test.library = test.library or versions.get("library")


def _relative(columns: Heading) -> bool:
    return bool({"error", "res"} & set(columns.half))


def library(code: int, name: str = "NCCL") -> str:
    """Return NCCL's version number as text: 22807 is 2.28.7, 2708 is 2.7.8."""
    thousands = 10000 if code >= 10000 else 1000
    return f"{name} {code // thousands}.{code % thousands // 100}.{code % 100}"


def _take_version(test: Run, match: re.Match[str]) -> None:
    name, runs, built = match["which"].upper(), int(match["runs"]), int(match["built"])
    test.version, test.library = match["own"], library(runs, name)
    if runs != built:
        test.notes.append(f"built for {library(built, name)}, runs with {test.library}")
