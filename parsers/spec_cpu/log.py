"""Read runcpu's log (CPU2017.001.log). Each run ends with a line, the only record of an interrupted run.

Success 505.mcf_r base refrate ratio=17.31, runtime=745.220114, copies=1, threads=1, power=0.00W, temp=...

``Error`` appears with an ``errorcode``, and ``Run`` if the output was not verified. Power is 0 if it was not measured.
The log does not say which run was selected. As SPEC's tools do, select the run with the median time, or the slower
of two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fleetmark.parsers.spec_cpu.model import BENCHMARK, LONGEST, Report, Run, count, positive

_STARTED = re.compile(r"runcpu v?[0-9]{1,8} started at ")
_FINISHED = re.compile(r"runcpu finished at ")
_SUITE = re.compile(r"suite: CPU(20[0-9]{2})(?: v?([0-9]{1,4}(?:\.[0-9]{1,6}){1,3}))?\b")
_RESULT = re.compile(
    rf"(?:.{{0,60}}\s|)(Success|Error|Run) ({BENCHMARK}) (base|peak) ([a-z]{{1,20}}) "
    r"ratio=([^,]{0,30}), runtime=([^,]{1,30}),"
)
_FIELD = re.compile(r"\b(copies|threads|power|errorcode)=([0-9.]{1,20}|[A-Z?]{2})(?=[W,\s]|$)")
_RUNNING = re.compile(rf"\s{{0,8}}Running (?:\(#([0-9]{{1,4}})\) )?({BENCHMARK}) ([a-z]{{1,20}}) (base|peak)\b")
_BUILDING = re.compile(rf"\s{{0,8}}Building ({BENCHMARK}) (base|peak)\b")
_NOT_BUILT = re.compile(rf"\*\*\* Error building ({BENCHMARK})(?: (base|peak))?")
_ERRORS = re.compile(r"(Build|Setup) errors(?: for [a-z0-9]{1,40})?: (.*)")
_FAILED = re.compile(rf"({BENCHMARK})\((base|peak)(?:; ([A-Z?]{{2}}))?\)")


@dataclass(slots=True)
class _LogReader:
    reports: list[Report] = field(default_factory=list)
    running: tuple[int, str, str, str] | None = None  # line, benchmark, size and tune of runs that have not ended
    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)  # runs by benchmark, tune and size
    failed: set[tuple[str, str]] = field(default_factory=set)
    building: dict[str, str] = field(default_factory=dict)  # maps a benchmark to the tune being built

    @property
    def report(self) -> Report:
        return self.reports[-1]

    def begin(self, n: int) -> None:
        self.interrupted()
        if not self.reports or self.report.runs or self.report.failures:
            self.reports.append(Report(kind="log", line=n, estimate=True))
            self.counts, self.failed = {}, set()

    def take(self, n: int, line: str) -> None:
        if match := _RESULT.match(line):
            self._result(n, match, line)
        elif match := _RUNNING.match(line):
            self.running = (n, match[2], match[3], match[4])
        elif _STARTED.match(line):
            self.begin(n)
        elif _FINISHED.match(line):
            self.report.footer = True
        elif match := _SUITE.match(line):
            self.report.years.append((match[1], n))
            self.report.version = match[2]
        elif match := _BUILDING.match(line):
            self.building[match[1]] = match[2]
        elif match := _NOT_BUILT.match(line):
            self._fail(n, match[1], match[2] or self.building.get(match[1], "base"), "CE")
        elif match := _ERRORS.match(line):
            for failed in _FAILED.finditer(match[2]):
                self._fail(n, failed[1], failed[2], failed[3] or ("CE" if match[1] == "Build" else "set-up error"))

    def _fail(self, n: int, benchmark: str, tune: str, status: str) -> None:
        if (benchmark, tune) not in self.failed:
            self.failed.add((benchmark, tune))
            self.report.failures.append(Run(benchmark, tune, n, status=status))

    def _result(self, n: int, match: re.Match[str], line: str) -> None:
        self.running = None
        outcome, benchmark, tune, size, ratio, time = match.groups()
        rest = dict(_FIELD.findall(line, match.end()))
        status = {"Success": "S", "Run": "R?"}.get(outcome) or rest.get("errorcode", "??")
        if status == "S" and rest.get("errorcode"):
            status = rest["errorcode"]
        kind = "ref" if size.startswith("ref") else size
        nth = self.counts[benchmark, tune, kind] = self.counts.get((benchmark, tune, kind), 0) + 1
        run = Run(benchmark, tune, n, nth, status, size=size)
        figures = {
            "time": positive(time),
            "ratio": positive(ratio),
            "copies": count(rest.get("copies")),
            "threads": count(rest.get("threads")),
            "avg_power": positive(rest.get("power")),
        }
        run.figures = {name: value for name, value in figures.items() if value is not None}
        self.report.runs.append(run)

    def interrupted(self) -> None:
        if self.running:
            n, benchmark, size, tune = self.running
            self.report.notes.append(f"line {n}: {benchmark} {tune} {size} began and never ended")
            self.running = None


def read_log(lines: Iterable[tuple[int, str, bool]]) -> list[Report]:
    """Return the reports in ``lines``, each with its number and whether a line end follows it."""
    reader = _LogReader()
    reader.begin(1)
    for n, line, _ in lines:
        if len(line) <= LONGEST:
            reader.take(n, line)
    reader.interrupted()
    return [r for r in reader.reports if r.runs or r.failures or r.years]
