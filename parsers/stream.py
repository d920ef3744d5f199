"""Parse STREAM's table: the official C, Fortran and MPI programs, ports of them, and Fleetmark's own kernels.

Case: ``32t`` from the thread count, ``4x8t`` from MPI ranks and threads of each, ``stream`` if neither is printed.
Metrics: ``copy``, ``scale``, ``add``, ``triad``: the best rates in B/s (higher is better), as STREAM reports them;
``copy_avg`` and ``copy_worst``: further rates that some ports print; ``copy_time_avg``, ``_min``, ``_max`` in s (lower
is better).

Source: John D. McCalpin's STREAM, versions 4 to 5.10 (C), 5.6 (Fortran) and stream_mpi: 1 MB is 1e6 bytes, a kernel
moves 2 or 3 arrays, and the best of all but the first iteration counts. By STREAM's run rules, a result counts only if
the arrays pass validation. Output without the line that confirms it is kept but ``invalid``, whether validation failed
or the text is truncated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed
from fleetmark.parsers.kit.cut import cut
from fleetmark.parsers.kit.text import decimals, decode, numbered

_TOOL = "stream"
_LONGEST = 1000  # maximum line length in characters
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,12})?")
_ZERO = re.compile(r"0+(?:\.0*)?")
_NOT_FINITE = re.compile(r"[-+]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
# The names up to version 3 were Assignment, Scaling, Summing and SAXPYing.
_KERNELS = {
    name: kernel
    for kernel, names in {
        "copy": ("copy", "assignment"),
        "scale": ("scale", "scaling"),
        "add": ("add", "summing"),
        "triad": ("triad", "saxpying"),
    }.items()
    for name in names
}
_ARRAYS_MOVED = {"copy": 2, "scale": 2, "add": 3, "triad": 3}

_ROW = re.compile(rf"(?<![\w-])({'|'.join(_KERNELS)})\b\s*:?[ \t|]\s*(\S.*)$", re.IGNORECASE)
_HEADING = re.compile(r"\bfunction\b(.*/s.*)", re.IGNORECASE)
_COLUMN = re.compile(
    r"(?:(?P<rate>best|avg|average|mean|worst|min|max)\.?\s+)?(?:(?:rate|bandwidth)\s*)?\(?(?P<unit>[MG](?:i?B|Bytes))/s(?:ec)?\b\)?"
    r"|(?P<time>avg|average|mean|rms|min|max)\.?\s*(?:time\b\s*)?(?:\((?P<per>s|sec|ms|us)\))?",
    re.IGNORECASE,
)
_STATISTIC = {"best": "max", "average": "avg", "mean": "avg", "worst": "min"}
_BYTES = {"mb": 1e6, "mbytes": 1e6, "gb": 1e9, "gbytes": 1e9, "mib": 2.0**20, "gib": 2.0**30}
_SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6}

_BANNER = re.compile(r"\bSTREAM version\s+(?:\$Revision:\s*)?([\w.]+)", re.IGNORECASE)
_OURS = re.compile(r"Fleetmark kernels following STREAM's definition(?:.*\bversion ([\w.]+))?", re.IGNORECASE)
_ARRAY = re.compile(r"\barray size\s*=\s*([0-9]{1,15})\b", re.IGNORECASE)
_WORD = re.compile(r"\b([0-9]{1,2}) bytes per (?:array element|double precision word)", re.IGNORECASE)
_THREADS = re.compile(
    r"number of threads( requested| counted)?(?: for (?:each MPI )?rank(?: [0-9]+)?)?\s*=\s*([0-9]{1,6})\b",
    re.IGNORECASE,
)
_RANKS = re.compile(r"\bdistributed across ([0-9]{1,7}) MPI ranks", re.IGNORECASE)
_TICKS = re.compile(r"\(= ([0-9]{1,9}) clock ticks\)|fewer than 20 clock ticks", re.IGNORECASE)
_VALID = re.compile(r"\bsolution validates", re.IGNORECASE)
_FAILED = re.compile(r"\bfailed validation\b.*|\bsolution failed\b.*", re.IGNORECASE)
_RULE = re.compile(r"[-=|+:\s]*")


@dataclass(frozen=True, slots=True)
class _Column:
    """A numeric column: the ``suffix`` of its metric, the factor to base units, and the unit."""

    suffix: str
    factor: float
    unit: str


_USUAL = (_Column("", 1e6, "B/s"), *(_Column(f"_time_{s}", 1.0, "s") for s in ("avg", "min", "max")))


@dataclass(kw_only=True, slots=True)
class _KernelRun:
    """The output of one run of STREAM. A file may contain several."""

    columns: tuple[_Column, ...] | None = None
    heading: int | None = None
    rows: dict[str, list[str]] = field(default_factory=dict)  # by kernel, the cells as printed
    threads: str | None = None
    ranks: str | None = None
    array: int | None = None
    word: int | None = None
    coarse: bool = False  # a kernel takes fewer than 20 clock ticks
    valid: bool = False
    failed: str | None = None

    @property
    def case(self) -> str:
        if self.threads is None:
            return f"{self.ranks}x" if self.ranks else "stream"
        return f"{self.ranks}x{self.threads}t" if self.ranks else f"{self.threads}t"

    @property
    def wrong(self) -> str | None:
        """Return why this run is not valid; None if it is."""
        return self.failed or (None if self.valid else cut("no 'Solution Validates' line"))

    @property
    def read(self) -> bool:
        """Return whether the run reached its table."""
        return bool(self.rows or self.heading)


def parse(raw: bytes, command: Sequence[str] = ()) -> Parsed:
    """Return the measurements of every run in ``raw``. ``command`` is not needed, because STREAM prints what it ran.

    Raise ParseError if no row of the table can be read.
    """
    text = decode(raw)
    notes: list[str] = []
    version, runs = _read(text, notes)
    last = runs[-1]
    runs = [run for run in runs if run.read]
    some = [run for run in runs if any(_measurements(run))]
    if not some:
        raise _nothing(text, runs)
    used = [run for run in some if not run.wrong] or some
    notes += [f"{run.case}: a run left out: {run.wrong}" for run in some if run not in used]
    for run in used:
        notes += _disagreements(run)
        if run.coarse:
            notes.append(f"{run.case}: a kernel took fewer than 20 ticks of the clock: the arrays are too small")
        notes += [f"{run.case}: no {kernel} row" for kernel in _ARRAYS_MOVED if kernel not in run.rows]
    if len({run.case for run in used}) < len(used):
        notes.append(f"{len(used)} runs in one text, which count as repeats")
    measurements = tuple(m for run in used for m in _measurements(run))
    invalid = (None if last.failed else last.wrong) or used[0].wrong
    return Parsed(_TOOL, measurements, version, invalid, tuple(dict.fromkeys(notes)))


def _read(text: str, notes: list[str]) -> tuple[str | None, list[_KernelRun]]:
    version: str | None = None
    run = _KernelRun()
    runs = [run]
    lines = numbered(text)
    for position, (n, line) in enumerate(lines):
        if len(line) > _LONGEST:
            continue  # no STREAM prints such a line
        columns = _columns(line)
        if run.rows and (columns or _BANNER.search(line) or _OURS.search(line) or _ARRAY.search(line)):
            run = _KernelRun()
            runs.append(run)
        if columns:
            run.columns, run.heading = columns, n
        elif row := _ROW.search(line):
            _take_row(run, row, n, position == len(lines) - 1, notes)
        elif match := _OURS.search(line):
            version = f"fleetmark-{match[1]}" if match[1] else "fleetmark"
            notes.append("Fleetmark's own kernels after STREAM's definition: not a result of the official stream.c")
        elif (match := _BANNER.search(line)) and version is None:
            version = match[1]
        else:
            _take_fact(run, line)
    return version, runs


def _take_fact(run: _KernelRun, line: str) -> None:
    if match := _ARRAY.search(line):
        run.array = int(match[1])
    elif match := _WORD.search(line):
        run.word = int(match[1])
    elif match := _RANKS.search(line):
        run.ranks = str(int(match[1]))
    elif match := _THREADS.search(line):
        if (match[1] or "").strip().lower() != "requested" or run.threads is None:
            run.threads = str(int(match[2]))
    elif match := _FAILED.search(line):
        run.failed = run.failed or match[0].strip()
    elif match := _TICKS.search(line):
        run.coarse = int(match[1] or 0) < 20
    elif _VALID.search(line):
        run.valid = True


def _columns(line: str) -> tuple[_Column, ...]:
    """Return the numeric columns that a heading line names, from left to right; empty if the line is not a heading."""
    heading = _HEADING.search(line)
    columns = tuple(_column(match) for match in _COLUMN.finditer(heading[1])) if heading else ()
    distinct = len({c.suffix for c in columns}) == len(columns)
    return columns if distinct and any(c.unit == "B/s" for c in columns) else ()


def _column(match: re.Match[str]) -> _Column:
    if match["unit"]:
        statistic = _STATISTIC.get((match["rate"] or "best").lower(), (match["rate"] or "").lower())
        suffix = {"max": "", "avg": "_avg", "min": "_worst"}[statistic]
        return _Column(suffix, _BYTES[match["unit"].lower()], "B/s")
    statistic = _STATISTIC.get(match["time"].lower(), match["time"].lower())
    return _Column(f"_time_{statistic}", _SECONDS[(match["per"] or "s").lower()], "s")


def _take_row(run: _KernelRun, row: re.Match[str], n: int, last: bool, notes: list[str]) -> None:
    """Assign the row's cells to their columns, or add a note that says why not."""
    kernel = _KERNELS[row[1].lower()]
    cells = _cells(row[2])
    if not any(_NUMBER.fullmatch(c) or _NOT_FINITE.fullmatch(c) for c in cells):
        return  # prose that contains the word "add"
    columns = run.columns
    if columns is None:
        if not _looks_usual(cells):
            notes.append(f"line {n}: a {kernel} row with no heading above it, left out")
            return
        columns = run.columns = _USUAL
        notes.append(f"line {n}: no heading; columns read as best rate in MB/s and average, minimum, maximum time")
    if last and _cut(cells, columns):
        cells = cells[:-1]
        notes.append(f"line {n}: the text ends inside the {kernel} row")
    elif len(cells) != len(columns):
        notes.append(f"line {n}: {len(cells)} figures in the {kernel} row under {len(columns)} headings, left out")
        return
    if kernel in run.rows:
        run.failed = run.failed or f"line {n}: a second {kernel} row in one table (output of several processes mixed?)"
        return
    if absurd := [c for c in cells if _NOT_FINITE.fullmatch(c)]:  # with a time of 0, the divisor is unknown
        run.failed = run.failed or f"line {n}: {kernel} has {absurd[0]!r}, which is not a number"
    elif any(_ZERO.fullmatch(c) for c in cells):
        notes.append(f"line {n}: {kernel} has a figure of 0, less than STREAM prints; left out")
    run.rows[kernel] = cells


def _cut(cells: list[str], columns: tuple[_Column, ...]) -> bool:
    """Return whether the last figure of the text may have lost digits.

    Cells or decimals of its last row are then missing.
    """
    if len(cells) == len(columns) > 2:
        return decimals(cells[-1]) < decimals(cells[-2])
    return 1 < len(cells) < len(columns)


def _cells(rest: str) -> list[str]:
    if "|" in rest:
        return [cell.strip() for cell in rest.strip().removesuffix("|").split("|")]
    cells = []
    for word in rest.split():
        if not (_NUMBER.fullmatch(word) or _NOT_FINITE.fullmatch(word)):
            break  # another stream's message ran into the line
        cells.append(word)
    return cells


def _looks_usual(cells: list[str]) -> bool:
    """Return whether a row without a heading can only be the rate and the average, minimum and maximum times."""
    if len(cells) != len(_USUAL) or not all(_NUMBER.fullmatch(c) for c in cells):
        return False
    rate, average, minimum, maximum = map(float, cells)
    return minimum <= average <= maximum < rate


def _measurements(run: _KernelRun) -> Iterator[Measurement]:
    for kernel, cells in run.rows.items():
        for column, cell in zip(run.columns or (), cells, strict=False):
            if _NUMBER.fullmatch(cell) and not _ZERO.fullmatch(cell):
                better = Better.HIGHER if column.unit == "B/s" else Better.LOWER
                metric = kernel + column.suffix
                yield Measurement(_TOOL, run.case, metric, float(cell) * column.factor, column.unit, better=better)


def _disagreements(run: _KernelRun) -> Iterator[str]:
    """Yield where the best rate differs from the bytes moved over the shortest time by more than rounding."""
    if run.array is None or run.word is None:
        return
    for kernel, cells in run.rows.items():
        printed = {
            c.suffix: (float(cell) * c.factor, 0.6 * c.factor / 10 ** decimals(cell))
            for c, cell in zip(run.columns or (), cells, strict=False)
            if _NUMBER.fullmatch(cell)
        }
        if not {"", "_time_min"} <= printed.keys():
            continue
        (rate, rate_off), (shortest, time_off) = printed[""], printed["_time_min"]
        if shortest <= time_off:
            continue  # shorter than its rounding error, so the rate cannot be checked
        moved = _ARRAYS_MOVED[kernel] * run.array * run.word
        rate_off += rate * 1e-5  # some builds compute the rate in single precision
        if not moved / (shortest + time_off) - rate_off <= rate <= moved / (shortest - time_off) + rate_off:
            yield (
                f"{run.case}: best {kernel} rate {rate / 1e6:.1f} MB/s disagrees with its own shortest time, "
                f"which gives {moved / shortest / 1e6:.1f} MB/s"
            )


def _nothing(text: str, runs: list[_KernelRun]) -> ParseError:
    printed = [(n, line.strip()) for n, line in numbered(text) if not _RULE.fullmatch(line)]
    expected = "rows Copy, Scale, Add and Triad"
    if runs and runs[-1].heading:
        below = next((line for n, line in printed if n > (runs[-1].heading or 0)), None)
        return ParseError(_TOOL, f"{expected} under the heading", line=runs[-1].heading, got=below)
    if not printed:
        return ParseError(_TOOL, f"STREAM's table with {expected}", got="no output")
    return ParseError(_TOOL, f"STREAM's table with {expected}", line=printed[-1][0], got=printed[-1][1])
