"""Convert the reports from the readers to measurements.

This module decides which reports count, which run of a benchmark is its result, and whether scores agree with their
rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Measurement, Parsed, Standing
from fleetmark.parsers.kit.text import decode, numbered
from fleetmark.parsers.spec_cpu.csv import read_csv
from fleetmark.parsers.spec_cpu.ending import cut
from fleetmark.parsers.spec_cpu.log import read_log
from fleetmark.parsers.spec_cpu.model import (
    CHECKED_ONLY,
    FINISHED,
    NO_ENERGY,
    NO_FAILURE,
    TUNES,
    Report,
    Run,
    Score,
    spelled,
)
from fleetmark.parsers.spec_cpu.rsf import read_rsf
from fleetmark.parsers.spec_cpu.txt import read_txt

_UNITS: dict[str, tuple[str, Better]] = {
    "ratio": ("1", Better.HIGHER),
    "time": ("s", Better.LOWER),
    "copies": ("1", Better.NONE),
    "threads": ("1", Better.NONE),
    "energy": ("J", Better.LOWER),
    "max_power": ("W", Better.LOWER),
    "avg_power": ("W", Better.LOWER),
    "energy_ratio": ("1", Better.HIGHER),
}
_OF_POWER = frozenset({"energy", "max_power", "avg_power", "energy_ratio"})
# Preference between two forms of the same results.
_RANK = {"raw": 0, "CSV": 1, "text": 2, "log": 3}
# Reasons for INVALID RUN that only concern publication by SPEC; the standing covers them. All other reasons are real
# failures.
_FORMAL = re.compile(
    r"'reportable' flag not set"
    r"|\S+ \((?:base|peak)\) did not have enough runs!"
    r"|Input set must be "
    r"|There is no set of valid runs with the same number of copies"
    r"|Complete set of valid runs for peak rate unavailable"
    r"|No 'base' runs!"
    r"|(?:Unknown|Forbidden) flags were used!"
    r"|Your run was marked invalid because it has one or more flags in the"
    r"|\W{0,3}unknown\W{1,3}category\. "
    r"|re-running your test; see|for more information|for information about how to get rid|https?://"
)
_UNKNOWN_FLAGS = re.compile(r"Your run was marked invalid because it has one or more flags in the")
_CONTINUED = re.compile(r"re-running|for |\W{0,3}unknown")
_TOO_FEW = re.compile(r"([0-9]{3}\.\w{1,40}) \((base|peak)\) did not have enough runs!")
_STATUS_REASON = re.compile(r"Run of ([0-9]{3}\.\w{1,40}) \((base|peak)\) was not valid; status is ([A-Z?]{2})")
_YEARS = {"56": "2017", "78": "2026", "4": "2006"}  # by the first digit of a suite's benchmark numbers
_LIKE_A_FIGURE = re.compile(r"[0-9.,]*[1-9]")
_MOST_NOTES = 40
_MOST_NAMES = 60  # more than two tunes of any suite


@dataclass(frozen=True, slots=True)
class Suite:
    """One of SPEC's suites and its parser."""

    tool: str
    year: str


CPU2017 = Suite("spec_cpu2017", "2017")
CPU2026 = Suite("spec_cpu2026", "2026")


def read(suite: Suite, raw: bytes) -> Parsed:
    """Return the measurements of ``suite`` in ``raw``, in any of SPEC's formats.

    Raise ParseError if no benchmark finished, and for the results of another suite.
    """
    text = decode(raw)
    lines = [(n, line, True) for n, line in numbered(text)]
    lines[-1] = (*lines[-1][:2], False)
    parsed = [*read_rsf(lines), *read_csv(lines), *read_txt(lines), *read_log(lines)]
    reports, foreign = _of_suite(suite, parsed)
    results = [_Result(r) for r in reports]
    some = [r for r in results if r.measurable]
    if not some:
        raise _nothing(suite, reports, foreign, lines)
    notes: list[str] = []
    latest = _apart(some, notes)
    used = [r for r in latest if not r.invalid] or latest
    bad = [r for r in results if r.invalid and (not r.measurable or (r in latest and not used[0].invalid))]
    notes += [f"the {r.report.kind} result from line {r.report.line} left out: {r.invalid}" for r in bad[:3]]
    measurements: list[Measurement] = []
    for result in used:
        prefix = f"from line {result.report.line}: " if len(used) > 1 else ""
        measurements += _measure(suite.tool, result)
        notes += [prefix + note for note in result.notes()]
    if len(used) > 1:
        notes.insert(0, f"{len(used)} results in one text")
    if foreign:
        year, line = foreign[0]
        notes.append(f"line {line}: {len(foreign)} rows of another suite left out: {_whose(year)}")
    estimate = any(not r.report.declared or r.report.estimate for r in used)
    ends = [f"line {r.report.line}: {r.cut}" if len(results) > 1 else r.cut for r in results if r.cut]
    invalid = list(dict.fromkeys(r.invalid for r in used if r.invalid)) or [f"the output is cut: {w}" for w in ends[:1]]
    return Parsed(
        suite.tool,
        tuple(measurements),
        next((r.report.version for r in used if r.report.version), None),
        "; ".join(invalid) or None,
        _few_notes(list(dict.fromkeys(notes))),
        standing=Standing.ESTIMATE if estimate else None,
    )


def _few_notes(notes: list[str]) -> tuple[str, ...]:
    rest = notes[_MOST_NOTES:]
    return (*notes[:_MOST_NOTES], *([f"and {len(rest)} more notes"] if rest else []))


def _year(run: Run) -> str:
    """Return the year of the suite of ``run``'s benchmark by its number; None if its line names another year."""
    year = next((year for digits, year in _YEARS.items() if run.benchmark[0] in digits), "")
    return year if run.year in (None, year) else ""


def _of_suite(suite: Suite, reports: list[Report]) -> tuple[list[Report], list[tuple[str, int]]]:
    """Return the reports with only the rows of ``suite``, and the year and line of each row of another suite."""
    ours: list[Report] = []
    foreign: list[tuple[str, int]] = []
    named: list[tuple[str, int]] = []
    for report in reports:
        statuses = [m for m in map(_STATUS_REASON.match, report.reasons) if m]
        report.failures += [Run(m[1], m[2], report.banner or report.line, status=m[3]) for m in statuses]
        report.runs = [r for r in report.runs if not CHECKED_ONLY.match(r.benchmark)]
        report.failures = [r for r in report.failures if not CHECKED_ONLY.match(r.benchmark)]
        foreign += [(_year(r), r.line) for r in (*report.runs, *report.failures) if _year(r) != suite.year]
        foreign += [(s.year, s.line) for s in report.scores if s.year != suite.year]
        report.runs = [r for r in report.runs if _year(r) == suite.year]
        report.failures = [r for r in report.failures if _year(r) == suite.year]
        report.scores = [s for s in report.scores if s.year == suite.year]
        named += [(year, n) for year, n in report.years if year != suite.year]
        if report.runs or report.scores or report.failures:
            ours.append(report)
    return ours, sorted(foreign or ([] if ours else named), key=lambda f: f[1])


def _whose(year: str) -> str:
    tool = next((s.tool for s in (CPU2017, CPU2026) if s.year == year), None)
    if tool:
        return f"those of SPEC CPU {year} are for the parser {tool}"
    return f"there is no parser for those of SPEC CPU {year}" if year else "there is no such benchmark in any suite"


class _Result:
    """A report and the selected run of each benchmark in it."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.remarks = list(report.notes)
        done = [r for r in report.runs if r.finished]
        if any(report.is_reference(r) for r in done):
            rest = [r for r in done if not report.is_reference(r)]
            sizes = sorted({str(report.size_of(r)) for r in rest})
            if rest:
                many = f"{len(rest)} runs" if len(rest) > 1 else "1 run"
                self.remarks.append(f"{many} of the workload {' and '.join(sizes)} left out: they only check the build")
            done = [r for r in done if report.is_reference(r)]
        self.done = done
        self.failures = self._failures()
        groups: dict[tuple[str, str, str | None], list[Run]] = {}
        for run in done:
            size = None if report.is_reference(run) else report.size_of(run)
            groups.setdefault((run.benchmark, run.tune, size), []).append(run)
        self.chosen = [selected for runs in groups.values() if (selected := self._choose(runs))]
        self.scored = any("ratio" in r.figures for r in done)
        self.absent = {tune: self._absent(tune) for tune in TUNES}
        self.scores = self._scores()
        self.invalid = self._invalid()
        self.cut = cut(report, self._agrees)

    @property
    def measurable(self) -> bool:
        return bool(self.done or (self.scores and not self.failures))

    @property
    def names(self) -> set[tuple[str, str]]:
        """Return keys that two results must not share: benchmarks and scores, each with its tune."""
        return {(r.benchmark, r.tune) for r in self.done} | set(self.scores)

    def labels(self, run: Run) -> dict[str, str]:
        """Return the label ``size`` if the workload is not the scored one, since its times are not comparable."""
        if not self.report.is_reference(run):
            return {"size": str(self.report.size_of(run))}
        return {} if self.report.size_of(run) or self.scored else {"size": "unknown"}

    def _choose(self, runs: list[Run]) -> Run | None:
        """Return the selected run, by the report's marks or, without marks, by SPEC's rule."""
        table = [r for r in runs if r.iteration is None]
        marked = [r for r in runs if r.iteration is not None and r.selected]
        if table:
            if marked and all(m.figures.get("time") != table[0].figures["time"] for m in marked):
                name = f"{runs[0].benchmark} {runs[0].tune}"
                self.remarks.append(
                    f"{name}: the table of selected runs has a different run from the one marked as selected"
                )
            return table[0]
        if marked:
            return marked[0]
        if self.report.kind != "log" and any("ratio" in r.figures for r in runs):
            self.remarks.append(f"{runs[0].benchmark} {runs[0].tune}: no run is marked as selected")
            return None
        return sorted(runs, key=lambda r: r.figures["time"])[len(runs) // 2]

    def _failures(self) -> list[Run]:
        """Return the runs that failed, one per benchmark and tune, in their order."""
        failed: dict[tuple[str, str], Run] = {}
        for run in (*self.report.runs, *self.report.failures):
            if run.status not in NO_FAILURE:
                failed.setdefault((run.benchmark, run.tune), run)
        return list(failed.values())

    def _absent(self, tune: str) -> set[str]:
        """Return the benchmarks of the suite that did not run; raw results only list them as errors."""
        named = {r.benchmark for r in self.report.runs if r.tune == tune and r.status == "NR"}
        named |= {m[1] for m in map(_TOO_FEW.match, self.report.reasons) if m and m[2] == tune}
        return named - {r.benchmark for r in (*self.done, *self.failures) if r.tune == tune}

    def _scores(self) -> dict[tuple[str, str], Score]:
        scores: dict[tuple[str, str], Score] = {}
        for score in self.report.scores:
            if score.value is None:
                if score.unreadable or (score.ended and _LIKE_A_FIGURE.match(score.printed)):
                    self.remarks.append(
                        f"line {score.line}: {score.case} {score.tune} is printed as {score.printed!r}, no figure "
                        "with a decimal point, left out"
                    )
                if score.unreadable or score.printed.strip("0."):
                    continue  # "--" or "Not Run"
                if self.scored:
                    self.remarks.append(
                        f"line {score.line}: {score.case} {score.tune} is printed as {score.printed}, left out"
                    )
            elif self.absent[score.tune]:
                if self.scored:
                    self.remarks.append(
                        f"line {score.line}: {score.case} {score.tune} is printed as {score.printed}, left out: "
                        "only a part of the suite was run"
                    )
            elif not score.complete and not self._agrees(score):
                self.remarks.append(f"line {score.line}: the text ends inside the {score.tune} score, left out")
            elif (score.case, score.tune) in scores:
                if scores[score.case, score.tune].value != score.value:
                    self.remarks.append(f"line {score.line}: a second {score.case} {score.tune} score, left out")
            else:
                scores[score.case, score.tune] = score
        return scores

    def rows(self, score: Score) -> list[Run]:
        """Return the selected runs whose geometric mean is ``score``."""
        name = "energy_ratio" if score.case.endswith("_energy") else "ratio"
        suffix = "_r" if "rate" in score.case else "_s"
        return [r for r in self.chosen if r.tune == score.tune and r.benchmark.endswith(suffix) and name in r.figures]

    def _bounds(self, score: Score) -> tuple[float, float] | None:
        """Return the possible range of the rows' geometric mean before rounding."""
        name = "energy_ratio" if score.case.endswith("_energy") else "ratio"
        figures = [r.figures[name] for r in self.rows(score)]
        if not figures:
            return None
        off = [_half(f, self.report.rounded) for f in figures]
        low, high = (
            math.exp(sum(math.log(max(f + sign * o, 1e-9)) for f, o in zip(figures, off, strict=True)) / len(figures))
            for sign in (-1, 1)
        )
        return low, high

    def _agrees(self, score: Score) -> bool:
        bounds, value = self._bounds(score), score.value
        if bounds is None or value is None:
            return False
        off = _half(value, self.report.rounded)
        return bounds[0] - off * 1.01 <= value <= bounds[1] + off * 1.01

    def _invalid(self) -> str | None:
        unverified = [r for r in self.done if r.status == "R?"]
        if self.failures:
            by_status: dict[str, list[str]] = {}
            for run in self.failures[:_MOST_NAMES]:
                by_status.setdefault(spelled(run.status), []).append(f"{run.benchmark} {run.tune}")
            statuses = "; ".join(f"{status}: {', '.join(names)}" for status, names in by_status.items())
            rest = len(self.failures) - _MOST_NAMES
            return f"some benchmarks failed: {statuses}" + (f" and {rest} more" if rest > 0 else "")
        if unverified:
            return (
                f"there is no verification of the output of {unverified[0].benchmark} {unverified[0].tune} (status R?)"
            )
        if self.report.banner is None:
            return None
        wrong = [r for r in self.report.reasons if not _FORMAL.match(r)]
        if wrong:
            return "INVALID RUN: " + wrong[0] + (f" (and {len(wrong) - 1} more reasons)" if len(wrong) > 1 else "")
        return None if self.report.reasons else "INVALID RUN, with no reason given"

    def notes(self) -> list[str]:
        notes = list(self.remarks)
        notes += self._formalities()
        for run in self.report.runs:
            place = f"{run.benchmark} {run.tune}" + (f" iteration {run.iteration}" if run.iteration else "")
            if run.status in NO_ENERGY:
                notes.append(f"{place} ended {spelled(run.status)}: its power and energy do not count")
            elif run.status not in FINISHED and "time" in run.figures:
                notes.append(f"{place} ended {spelled(run.status)}: its time is not a result and is left out")
        for tune in TUNES:
            absent, present = self.absent[tune], {r.benchmark for r in self.done if r.tune == tune}
            if absent and len(present) > 1:  # a single benchmark was requested
                notes.append(
                    f"{tune}: {len(absent)} of {len(absent | present)} benchmarks were not run: {_few(absent)}"
                )
        for score in self.scores.values():
            if (bounds := self._bounds(score)) is None:
                notes.append(f"{score.case} {score.tune}: no rows to check the score {score.printed} against")
            elif not self._agrees(score):
                mean = f"{math.sqrt(bounds[0] * bounds[1]):.{4 if self.report.rounded else 9}g}"
                notes.append(
                    f"{score.case} {score.tune}: the score is printed as {score.printed}, "
                    f"but the geometric mean of its {len(self.rows(score))} selected rows is {mean}"
                )
        if self.report.kind == "log":
            counts = Counter((r.benchmark, r.tune) for r in self.done)
            if counts and max(counts.values()) > 1:
                notes.append("a log names no selected run: the run with the median time is used, or the slower of two")
        return notes

    def _formalities(self) -> Iterator[str]:
        """Return the report's reasons why SPEC would not publish it."""
        formal = [r for r in self.report.reasons if _FORMAL.match(r) and "://" not in r]
        few = [r for r in formal if r.endswith("did not have enough runs!")]
        reasons = [
            _UNKNOWN_FLAGS.sub("it has flags of the category unknown", r.split(" See", 1)[0])
            for r in formal
            if r not in few
        ]
        if few:
            reasons.append(few[0] if len(few) == 1 else "some benchmarks did not have enough runs")
        reasons = [s for s in reasons if not _CONTINUED.match(s)]
        if reasons and not self.invalid:
            yield "INVALID RUN by SPEC's rules for publishing: " + "; ".join(reasons)


def _half(value: float, rounded: bool) -> float:
    """Return half a unit in the last place: the third digit in SPEC's text, otherwise the sixth decimal."""
    if rounded:
        return 0.5 * 10.0 ** (math.floor(math.log10(value)) - 2)
    decimals = -int(Decimal(repr(value)).as_tuple().exponent)
    return 0.5 * 10.0 ** -min(decimals, 6)


def _few(names: set[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def _apart(results: list[_Result], notes: list[str]) -> list[_Result]:
    """Return the results without duplicates; of two with the same benchmark, the fuller or better form is kept."""
    ranked = sorted(
        results, key=lambda r: (-len(r.chosen), -len(r.scores), _RANK[r.report.kind], -len(r.done), r.report.line)
    )
    distinct: list[_Result] = []
    taken: dict[tuple[str, str], _Result] = {}
    dropped: list[str] = []
    for result in ranked:
        names = result.names
        other = next((taken[name] for name in sorted(names) if name in taken), None)
        if other is None:
            distinct.append(result)
            taken.update(dict.fromkeys(names, result))
        else:
            dropped.append(
                f"the {result.report.kind} result from line {result.report.line} left out: it has benchmarks of the "
                f"{other.report.kind} result from line {other.report.line} once more"
            )
    notes += dropped[:3]
    if dropped[3:]:
        notes.append(f"{len(dropped) - 3} more results left out for the same reason")
    return sorted(distinct, key=lambda r: r.report.line)


def _measure(tool: str, result: _Result) -> Iterator[Measurement]:
    for run in result.chosen:
        for name, (unit, better) in _UNITS.items():
            if name in run.figures and not (name in _OF_POWER and run.status in NO_ENERGY):
                metric, labels = f"{run.tune}_{name}", result.labels(run)
                yield Measurement(tool, run.benchmark, metric, run.figures[name], unit, better=better, labels=labels)
    for run in result.done:
        if run.iteration is None:
            continue
        for name in ("time", "ratio"):
            if name in run.figures:
                labels = {**result.labels(run), "iteration": str(run.iteration)}
                metric, (unit, better) = f"{run.tune}_run_{name}", _UNITS[name]
                yield Measurement(tool, run.benchmark, metric, run.figures[name], unit, better=better, labels=labels)
    for score in result.scores.values():
        if score.value is not None:
            yield Measurement(tool, score.case, f"{score.tune}_score", score.value, "1", better=Better.HIGHER)


def _nothing(
    suite: Suite, reports: list[Report], foreign: list[tuple[str, int]], lines: Sequence[tuple[int, str, bool]]
) -> ParseError:
    texts = {n: line.strip() for n, line, _ in reversed(lines)}
    rows = sorted((r for report in reports for r in (*report.runs, *report.failures)), key=lambda r: r.line)
    if foreign and not rows:
        year, n = foreign[0]
        return ParseError(suite.tool, f"results of SPEC CPU {suite.year} ({_whose(year)})", line=n, got=texts[n])
    if unread := sorted(n for report in reports for n in report.unreadable):
        return ParseError(suite.tool, "figures with a decimal point", line=unread[0], got=texts[unread[0]])
    ended = next((r for r in rows if r.status not in NO_FAILURE), next((r for r in rows if not r.finished), None))
    if ended:
        got = f"{ended.benchmark} {ended.tune} ended {spelled(ended.status)}"
        return ParseError(suite.tool, "a benchmark that finished", line=ended.line, got=got)
    expected = f"a CSV, text or raw report of SPEC CPU {suite.year}, or runcpu's log, with a benchmark that finished"
    full = [(n, line.strip()) for n, line, _ in lines if line.strip()]
    if not full:
        return ParseError(suite.tool, expected, got="no output")
    return ParseError(suite.tool, expected, line=full[-1][0], got=full[-1][1])
