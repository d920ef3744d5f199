"""Read SPEC CPU's text report: the table of all runs, a ruler, the table of the selected runs, the scores, then prose.

Figures have 3 significant digits. ``*`` marks the selected run, ``S`` the others. A row has one group of figures for
each tune, which ends with the run's status. A single group belongs to peak if it is below the second half of the
heading. Energy is in kJ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fleetmark.parsers.spec_cpu.model import (
    BENCHMARK,
    FINISHED,
    LONGEST,
    TUNES,
    WITHDRAWN,
    Report,
    Run,
    count,
    positive,
    reason,
    score,
)

_ROW = re.compile(rf"\s{{0,20}}({BENCHMARK})(\s.*)?")
_HEADING = re.compile(r"\s{0,20}Benchmarks\s.*(?:Copies|Threads)\b.*")
_COLUMN = re.compile(r"Copies|Threads|Run ?Time|Rate|Ratio|Energy|MaxPwr|AvgPwr|ERatio")
_FIGURES = {
    "Copies": "copies",
    "Threads": "threads",
    "Run Time": "time",
    "RunTime": "time",
    "Rate": "ratio",
    "Ratio": "ratio",
    "Energy": "energy",
    "MaxPwr": "max_power",
    "AvgPwr": "avg_power",
    "ERatio": "energy_ratio",
}
_MANY = {"r": "copies", "s": "threads"}  # the unit of the first column, by the suffix of the benchmark's name
_PLAIN = ("copies", "time", "ratio")
_POWER = (*_PLAIN, "energy", "max_power", "avg_power", "energy_ratio")
_RULER = re.compile(r"\s{0,20}={30,}\s*")
_SCORE = re.compile(r"\s{0,20}(Est\.\s{0,4})?(SPEC\S{4,40})(\s.*)?")
_TITLE = re.compile(
    r"\s*SPEC(?:\(R\)|®)? CPU(?:\(R\)|®)? ?(20[0-9]{2}) (?:Integer|Floating Point) (?:Rate|Speed) Result\s*"
)
_TESTED = re.compile(r"Tested with SPEC(?:\(R\)|®)? CPU(?:\(R\)|®)? ?(20[0-9]{2}) v([0-9]{1,4}(?:\.[0-9]{1,6}){1,3})")
_BANNER = re.compile(r"#\s+INVALID RUN\b")
_SIZE = re.compile(r"Input set must be \S+ for a valid run \(set to '([a-z]{1,20})")
_STATUS = re.compile(r"\*|[A-Z][A-Z?]?")
_FIGURE = re.compile(r"--|[0-9][0-9.]{0,20}")
_FIGURES_BEGIN = re.compile(r"[-+.,]?[0-9]|--|\*|[A-Z][A-Z?]$")  # a line of prose has a word in this place
_PEAK_COUNT = 57  # the column after peak's copies or threads, by default


@dataclass(kw_only=True, slots=True)
class _TxtReader:
    """Read the lines: the full table up to a ruler, then the table of selected runs up to the scores."""

    reports: list[Report] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    peak_count: int = _PEAK_COUNT
    below_ruler: bool = False
    above: dict[str, int] = field(default_factory=dict)  # the rows of a benchmark in the full table
    last_row: str = ""  # the benchmark of the row above
    below: set[str] = field(default_factory=set)  # the benchmarks in the selected table
    in_banner: bool = False
    banner: int | None = None  # INVALID RUN, which appears above or below the tables of its report
    reasons: list[str] = field(default_factory=list)

    @property
    def report(self) -> Report:
        return self.reports[-1]

    def begin(self, n: int) -> None:
        if self.reports and not (self.report.runs or self.report.scores):
            return
        self.reports.append(Report(kind="text", line=n, rounded=True))
        self.below_ruler, self.above, self.below = False, {}, set()

    def take(self, n: int, line: str, complete: bool) -> None:
        if line.startswith("#"):
            self._banner(n, line)
        elif match := _TITLE.fullmatch(line):
            self.begin(n)
            self.report.years.append((match[1], n))
            self.settle()
        elif match := _TESTED.match(line):
            self.settle()
            self.report.years.append((match[1], n))
            self.report.version = match[2]
            self.report.declared = self.report.footer = True
        elif line.startswith("For questions about this result"):
            self.settle()
        elif _HEADING.fullmatch(line):
            self.begin(n)
            self._heading(line)
        elif re.fullmatch(r"\s{15,}Estimated(?:\s+Estimated)?\s*", line):
            self.begin(n)
            self.report.estimate = True
        elif _RULER.fullmatch(line):
            self.below_ruler = bool(self.columns or self.report.runs) and not self.report.scores
        elif match := _ROW.fullmatch(line):
            self._row(n, match, complete)
        elif (match := _SCORE.fullmatch(line)) and match[3]:
            parsed = score(match[2], re.sub(r"\s+", " ", match[3].strip(" :=\t")), n, complete)
            if parsed:
                self.report.estimate |= match[1] is not None
                self.report.scores.append(parsed)

    def settle(self) -> None:
        """Assign the last banner to the current report."""
        if self.banner:
            self.report.banner, self.report.reasons = self.banner, self.reasons
            self.report.estimate = True
            for text in self.reasons:
                if match := _SIZE.match(text):
                    self.report.size = match[1]
            self.banner, self.reasons = None, []

    def _banner(self, n: int, line: str) -> None:
        if _BANNER.match(line):
            self.in_banner = not self.in_banner
            if self.in_banner:
                self.banner, self.reasons = n, []
        elif self.in_banner and (text := reason(line)) and not line.startswith("##"):
            self.reasons.append(text)

    def _heading(self, line: str) -> None:
        headings = list(_COLUMN.finditer(line))
        names = [_FIGURES[m[0]] for m in headings]
        again = next((i for i in range(1, len(names)) if names[i] == names[0]), len(names))
        self.columns = tuple(names[:again]) if "time" in names[:again] else ()
        self.report.power |= "energy" in self.columns
        self.peak_count = headings[again].end() if again < len(headings) else _PEAK_COUNT

    def _row(self, n: int, row: re.Match[str], complete: bool) -> None:
        benchmark, rest, offset = row[1], row[2] or "", row.start(2)
        words = [(m[0], offset + m.end()) for m in re.finditer(r"\S+", rest)]
        groups = list(_groups(words))
        if not groups or (not complete and groups[-1].status not in ("*", "S")):
            if not complete and words:
                self.report.notes.append(f"line {n}: the text ends inside the row of {benchmark}")
            groups = [g for g in groups if complete or g.status in ("*", "S")]
        if not groups:
            self._unread(n, benchmark, words, complete)
            return
        self._place(n, benchmark)
        iteration = self._count(benchmark)
        for tune, group in self._tunes(groups):
            run = Run(benchmark, tune, n, status=group.status, selected=group.status == "*" or self.below_ruler)
            if not self._figures(run, group.figures):
                self.report.notes.append(
                    f"line {n}: {len(group.figures)} figures for {benchmark} {tune} fit no columns, left out"
                )
                self.report.unreadable.append(n)
                continue
            if run.status == "NR":
                run.selected = False
            elif not self.below_ruler:
                run.iteration = iteration
            self.report.runs.append(run)

    def _count(self, benchmark: str) -> int:
        """Return the row of the benchmark in the full table, which is its iteration in each tune."""
        if not self.below_ruler:
            self.above[benchmark] = self.above.get(benchmark, 0) + 1
        return self.above.get(benchmark, 0)

    def _unread(self, n: int, benchmark: str, words: list[tuple[str, int]], complete: bool) -> None:
        """Count an unreadable row of a table as an iteration, so that later rows keep their numbers."""
        in_table = self.columns and not self.report.scores
        if in_table and complete and words and _FIGURES_BEGIN.match(words[0][0]):
            self._place(n, benchmark)
            self._count(benchmark)
            self.report.notes.append(f"line {n}: the row of {benchmark} cannot be read, left out")
            self.report.unreadable.append(n)

    def _place(self, n: int, benchmark: str) -> None:
        """Begin another report if this row cannot belong to the current one, as in concatenated output."""
        if self.below_ruler:
            again = benchmark in self.below
        else:
            again = benchmark in self.above and self.last_row != benchmark
            self.last_row = benchmark
        if self.report.scores or again:
            self.begin(n)
        if self.below_ruler:
            self.below.add(benchmark)

    def _tunes(self, groups: list[_Group]) -> Iterator[tuple[str, _Group]]:
        if len(groups) == 1:
            only = groups[0]
            # Hand-edited rows are shifted by a few columns, but base and peak are half a table apart.
            peak = only.start > self.peak_count - 12 if only.figures else only.end > self.peak_count
            return iter([("peak" if peak else "base", only)])
        return zip(TUNES, groups, strict=False)

    def _figures(self, run: Run, figures: list[str]) -> bool:
        """Assign the figures to their columns. Return False if their number matches no set of columns."""
        if run.status not in FINISHED:
            return True  # the time of a failed run is not a measurement
        benchmark, columns = run.benchmark, self.columns
        if len(figures) != len(columns):
            columns = {len(_PLAIN): _PLAIN, len(_POWER): _POWER}.get(len(figures), ())
        if not columns and len(figures) == 2:
            columns = _PLAIN[:2]  # the ratio is blank if a run's status is not S
        for name, word in zip(columns, figures, strict=False):
            many = name in _MANY.values()
            value = count(word) if many else positive(word)
            if value is not None:
                run.figures[_MANY[benchmark[-1]] if many else name] = value * 1000 if name == "energy" else value
        return bool(columns)


@dataclass(slots=True)
class _Group:
    """The words of one tune: figures, then a status."""

    figures: list[str]
    status: str
    start: int
    end: int  # the column after the group


def _groups(words: list[tuple[str, int]]) -> Iterator[_Group]:
    """Yield the groups of a row. Yield no group if a word is neither a figure nor a status."""
    if len(words) > 16 or any(not (_FIGURE.fullmatch(w) or _STATUS.fullmatch(w)) for w, _ in words):
        return
    if withdrawn := [w for w, _ in words if w in WITHDRAWN]:
        yield _Group([], withdrawn[0], 0, 0)
        return
    figures: list[str] = []
    start = 0
    for word, end in words:
        start = start if figures else end - len(word)
        if _FIGURE.fullmatch(word):
            figures.append(word)
        else:
            yield _Group(figures, word, start, end)
            figures = []
    if len(figures) == len(words) == len(_PLAIN):
        yield _Group(figures, "S", start, words[-1][1])  # an edited table without the marks


def read_txt(lines: Iterable[tuple[int, str, bool]]) -> list[Report]:
    """Return the reports in ``lines``, each with its number and whether a line end follows it."""
    reader = _TxtReader()
    reader.begin(1)
    for n, line, complete in lines:
        if len(line) <= LONGEST:
            reader.take(n, line, complete)
    reader.settle()
    return [r for r in reader.reports if r.runs or r.scores or r.years or r.banner]
