"""Read SPEC CPU's CSV report: ``valid``, two tables of results, the scores, and the errors at the end.

A row of the full table names its workload and iteration; one of the selected table is marked as selected. If power was
measured, each tune has five more columns, but a benchmark that was not run has only the usual five.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fleetmark.parsers.spec_cpu.model import (
    BENCHMARK,
    LONGEST,
    WITHDRAWN,
    Report,
    Run,
    Score,
    count,
    positive,
    reason,
    score,
)

_NAME = re.compile(BENCHMARK)
_COLUMN = re.compile(
    r"(?:Est\. )?(Base|Peak) "
    r"(# Copies|# Threads|Run Time|Rate|Ratio|Selected|Status|Energy|Energy Ratio|Max Power|Avg Power)",
    re.IGNORECASE,
)
_FIGURES = {
    "# copies": "copies",
    "# threads": "threads",
    "run time": "time",
    "rate": "ratio",
    "ratio": "ratio",
    "selected": "selected",
    "status": "status",
    "energy": "energy",  # J in CSV, kJ in text
    "energy ratio": "energy_ratio",
    "max power": "max_power",
    "avg power": "avg_power",
}
_USUAL = 5  # columns of a tune if no power was measured
_TITLE = re.compile(r"SPEC CPU ?(20[0-9]{2}) .{0,40}Result", re.IGNORECASE)
_TESTED = re.compile(r"Tested with SPEC CPU(?:\(R\)|®)? ?(20[0-9]{2})")
_VERSION = re.compile(r"v([0-9]{1,4}(?:\.[0-9]{1,6}){1,3})")
_ITERATION = re.compile(r"([a-z]{1,20})(?:\([a-z]{1,20}\))? iteration #([0-9]{1,4})")
_STATUS = re.compile(r"[A-Z][A-Z?]?")
_BANNER = re.compile(r"#\s+INVALID RUN\b")


@dataclass(kw_only=True, slots=True)
class _CsvReader:
    """Process the lines. ``fields``: the columns of the current heading, by tune."""

    reports: list[Report] = field(default_factory=list)
    fields: dict[str, list[str | None]] = field(default_factory=dict)
    selected_table: bool = False
    in_banner: bool = False
    held: dict[tuple[str, str, int | None], Run] = field(default_factory=dict)  # runs of the current report
    counts: dict[tuple[str, str], int] = field(default_factory=dict)  # number of rows without an iteration number

    @property
    def report(self) -> Report:
        return self.reports[-1]

    def begin(self, n: int) -> None:
        self.reports.append(Report(kind="CSV", line=n))
        self.selected_table = self.in_banner = False
        self.held, self.counts = {}, {}

    def take(self, n: int, cells: list[str], complete: bool) -> None:
        first = cells[0].strip()
        if first == "valid" and len(cells) > 1:
            self._fresh(n)
            self.report.declared = cells[1].strip() == "1"
            self.report.estimate |= not self.report.declared
        elif match := _TITLE.fullmatch(first):
            self._fresh(n)
            self.report.years.append((match[1], n))
        elif match := _TESTED.search(first):
            self.report.years.append((match[1], n))
            version = _VERSION.search(" ".join(cells))
            self.report.version = version[1] if version else None
            self.report.footer = True
        elif first.casefold() in ("full results table", "selected results table"):
            self.selected_table = first.casefold().startswith("selected")
        elif first == "Benchmark" and len(cells) > 2:
            self._heading(cells)
        elif first.startswith("#"):
            self._banner(n, first)
        elif _NAME.fullmatch(first):
            self._row(n, first, [c.strip() for c in cells], complete)
        elif len(cells) > 1 and (parsed := score(first.removeprefix("Est. "), cells[1].strip(), n)):
            self._score(parsed, [c.strip() for c in cells[1:]], complete)
            self.report.estimate |= first.startswith("Est.")
        elif first and self.report.scores:
            self.report.sections = True

    def _score(self, parsed: Score, cells: list[str], complete: bool) -> None:
        """Store a score.

        It is printed twice: in its own line, and in the column of its ratios. A figure with a decimal comma also takes
        the next cell.
        """
        next_cell, again = "".join(cells[1:2]), [c for c in cells if c][-1:]
        if next_cell or (complete and again and again[0] != parsed.printed):
            parsed.printed, parsed.unreadable = (
                f"{parsed.printed},{next_cell}" if next_cell else f"{parsed.printed} and {again[0]}",
                True,
            )
        parsed.complete = complete or len(cells) > 1
        self.report.scores.append(parsed)

    def _fresh(self, n: int) -> None:
        if self.report.runs or self.report.scores:
            self.begin(n)

    def _banner(self, n: int, text: str) -> None:
        if _BANNER.match(text):
            self.in_banner = not self.in_banner
            self.report.banner = self.report.banner or n
        elif self.in_banner and (cause := reason(text)) and not text.startswith("##"):
            self.report.reasons.append(cause)

    def _heading(self, cells: list[str]) -> None:
        fields: dict[str, list[str | None]] = {}
        tune: str | None = None
        for cell in cells[1:]:
            if match := _COLUMN.fullmatch(cell.strip()):
                tune = match[1].lower()
                fields.setdefault(tune, []).append(_FIGURES[match[2].lower()])
            elif tune and cell.strip() and cell.strip() != "Description":
                fields[tune].append(None)
        if any({"time", "status"} <= set(columns) for columns in fields.values()):
            self.fields = fields
            self.report.power |= any("energy" in columns for columns in fields.values())
            self.report.estimate |= any(cell.strip().startswith("Est.") for cell in cells)

    def _row(self, n: int, benchmark: str, cells: list[str], complete: bool) -> None:
        if not complete:
            cells = cells[:-1]  # the text ends inside the last cell
        if len(cells) <= _USUAL or not (cells[1] == "" or cells[1] in WITHDRAWN or count(cells[1])):
            return  # the benchmark's name before its compiler flags
        taken: list[Run] = []
        position = 1
        for tune, columns in self.fields.items():
            width = _width(cells[position:], len(columns))
            group = cells[position : position + width]
            position += width
            if any(group):
                parsed = _run(n, benchmark, tune, columns if width == len(columns) else [None] * 4 + ["status"], group)
                if parsed is None:
                    self.report.notes.append(f"line {n}: the {tune} columns of {benchmark} cannot be read, left out")
                    self.report.unreadable.append(n)
                else:
                    taken.append(parsed)
        described = _ITERATION.match(" ".join(cells[position:]))
        for run in taken:
            if described:
                run.size, run.iteration = described[1], int(described[2])
                self.report.size = self.report.size or run.size
            elif self.selected_table or run.status == "NR":
                run.selected = run.status != "NR"
            else:
                run.iteration = self.counts[benchmark, run.tune] = self.counts.get((benchmark, run.tune), 0) + 1
        self._keep(n, taken)

    def _keep(self, n: int, taken: list[Run]) -> None:
        """Add the runs unless they are already present. Different runs in the same place begin another report."""
        repeated = [(self.held[_place(run)], run) for run in taken if _place(run) in self.held]
        if any((other.figures, other.status) != (run.figures, run.status) for other, run in repeated):
            self.begin(n)
        for run in taken:
            if _place(run) not in self.held:
                self.held[_place(run)] = run
                self.report.runs.append(run)


def _place(run: Run) -> tuple[str, str, int | None]:
    """Return the key of a run in a report. A row with NR appears in both tables and counts once."""
    return run.benchmark, run.tune, 0 if run.status == "NR" else run.iteration


def _width(cells: list[str], columns: int) -> int:
    """Return the number of cells of the next tune: five if nothing was run or shown, regardless of the heading."""
    if columns > _USUAL and not any(cells[:4]) and cells[4:5] == ["NR"]:
        return _USUAL
    if columns > _USUAL and len(set(cells[:_USUAL])) == 1 and cells[0] in WITHDRAWN:
        return _USUAL
    return columns


def _run(n: int, benchmark: str, tune: str, columns: list[str | None], group: list[str]) -> Run | None:
    """Return the run in one tune's cells; None if its status is missing or a figure is not a number."""
    if len(group) < len(columns):
        group = group + [""] * (len(columns) - len(group))
    cells = {column: cell for column, cell in zip(columns, group, strict=False) if column}
    status = cells.pop("status", "")
    if not _STATUS.fullmatch(status):
        return None
    run = Run(benchmark, tune, n, status=status, selected=cells.pop("selected", "") == "1")
    for name, cell in cells.items():
        value = count(cell) if name in ("copies", "threads") else positive(cell)
        if value is not None:
            run.figures[name] = value
    return run


def read_csv(lines: Iterable[tuple[int, str, bool]]) -> list[Report]:
    """Return the reports in ``lines``, each with its number and whether a line end follows it."""
    reader = _CsvReader()
    reader.begin(1)
    for n, line, complete in lines:
        if "," not in line and not line.startswith(('"', "#")):
            continue
        if len(line) > LONGEST:
            continue  # a list of flags
        try:
            cells = next(csv.reader([line]), [])
        except csv.Error:
            continue
        while len(cells) > 1 and not cells[-1].strip() and len(cells) > _USUAL + 1:
            cells.pop()  # spreadsheets pad their lines
        if cells:
            reader.take(n, cells, complete)
    return [r for r in reader.reports if r.runs or r.scores or r.years]
