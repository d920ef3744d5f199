"""Read reports of MLPerf's endpoints client (from round v6.1).

They are report.txt, result_summary.json and accuracy_results.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.kit.text import dig, number, objects
from fleetmark.parsers.mlperf_inference.accuracy import CASE as ACCURACY
from fleetmark.parsers.mlperf_inference.run import CUT, NANO, TOOL, better, hint, percentile, says_interactive

_MOST = 1000
_FIGURE = r"(\S{1,60})"
_BAR = re.compile(r"-{5,60} (Summary|Latency Breakdowns|End of Report|End of Summary) -{5,60}")
_VERSION = re.compile(r"Version: (\S{1,40})")
_PATTERN = re.compile(r"  load_pattern: type=([a-z_]{1,40})\b(?:.{0,200}?\btarget_concurrency=([0-9]{1,9}|None))?.*")
_TOTAL = re.compile(rf"Total samples (issued|completed|failed): {_FIGURE}")
_HEADLINE = re.compile(rf"(Duration|QPS|TPS): {_FIGURE}(?: seconds)?")
_SECTION = re.compile(r"(TTFT|TPOT|Latency|Input sequence lengths|Output sequence lengths):")
_STATISTIC = re.compile(rf"  (Min|Max|Median|Avg\.|Std Dev\.): {_FIGURE} (ms|tokens)")
_AT = re.compile(rf" {{2,8}}([0-9.]{{1,8}}): {_FIGURE} (ms|tokens)")
_SCORE = re.compile(r"  (?!Average:|OSL )(\S(?:.{0,200}\S)?): ([0-9.]{1,20})(%?)(?: \(.{0,200}\))?")
_SUBSET = re.compile(r"    (\S(?:.{0,200}\S)?): ([0-9.]{1,20})%")
_AVERAGE = re.compile(rf"  Average: {_FIGURE}")

_TOTALS = {"issued": "samples_issued", "completed": "samples", "failed": "samples_failed"}
_HEADLINES = {"Duration": "duration", "QPS": "samples_per_second", "TPS": "tokens_per_second"}
_SECTIONS = {
    "TTFT": "ttft",
    "TPOT": "tpot",
    "Latency": "latency",
    "Input sequence lengths": "input_tokens",
    "Output sequence lengths": "output_tokens",
}
_STATISTICS = {"Min": "min", "Max": "max", "Avg.": "mean"}
_SHORTEST_S = 600


@dataclass(kw_only=True, slots=True)
class Report:
    """One report; figures are in base units, by metric and percentile (a label) or ""."""

    line: int
    values: dict[tuple[str, str], float] = field(default_factory=dict)
    scores: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)  # by labels
    version: str | None = None
    pattern: str | None = None
    concurrency: str | None = None
    broken: str | None = None  # the report's own reason why its figures are partial
    ended: bool = False
    notes: list[str] = field(default_factory=list)

    def put(self, metric: str, figure: object, factor: float = 1.0, rank: str = "") -> None:
        value = number(figure)
        if value is None or len(self.values) >= _MOST:
            return  # N/A: too few samples
        if value < 0:
            self.say(f"{metric} is {value:g}, left out")
        else:
            self.values.setdefault((metric, rank), value * factor)

    def say(self, note: str) -> None:
        if len(self.notes) < 100:
            self.notes.append(note)

    def score(self, figure: object, percent: bool, **labels: str) -> None:
        """Store an accuracy as a fraction; a value above 1 must be a percentage."""
        value = number(figure)
        if value is None or not 0 <= value <= 100 or len(self.scores) >= _MOST:
            return
        labelled = tuple(sorted((k, v.strip()[:100]) for k, v in labels.items()))
        self.scores.setdefault(labelled, value / 100 if percent or value > 1 else value)

    def case(self, command: Sequence[str]) -> str:
        """Return the scenario that the load pattern stands for."""
        if self.pattern == "poisson":
            if says_interactive(command):
                return "Interactive"
            self.say("Server and Interactive cannot be distinguished: the report does not print the latency limits")
            return "Server"
        if self.pattern == "max_throughput":
            return "Offline"
        if self.pattern == "concurrency" and self.concurrency == "1":
            if (mean := self.values.get(("latency_mean", ""))) is not None:
                self.values["latency", ""] = mean
                self.say("latency is the mean, the result of SingleStream with the endpoints client")
            return "SingleStream"
        return "".join(word.capitalize() for word in (self.pattern or "endpoints").split("_"))

    def wrong(self, command: Sequence[str]) -> list[str]:
        """Return why this report is not a score, or None if it is."""
        reasons = [self.broken] if self.broken else []
        if word := hint(command):
            reasons.append(f"not a score by its command: {word}")
        if not self.ended:
            reasons.append(CUT.format("the report ends before its last line"))
        return reasons

    def remarks(self) -> Iterator[str]:
        yield from self.notes
        if self.values:
            yield "the report does not state whether the result is valid"
        duration = self.values.get(("duration", ""))
        if duration is not None and duration < _SHORTEST_S:
            yield f"short: {duration:g} s, the rules want {_SHORTEST_S} s"
        if failed := self.values.get(("samples_failed", "")):
            yield f"{failed:g} samples failed"
        if not self.ended:
            yield "the report ends before its last line"

    def measure(self, case: str) -> Iterator[Measurement]:
        for (metric, rank), value in self.values.items():
            unit, direction = better(metric, case)
            labels = {"percentile": rank} if rank else {}
            yield Measurement(TOOL, case, metric, value, unit, better=direction, labels=labels)
        for labelled, value in self.scores.items():
            yield Measurement(TOOL, ACCURACY, "accuracy", value, "1", better=Better.HIGHER, labels=dict(labelled))


class ReportReader:
    """Take lines of report.txt one by one."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self._part: str | None = None  # Summary or Latency Breakdowns; None outside a report
        self._section: str | None = None
        self._estimates = False
        self._dataset: str | None = None
        self._accuracy = False

    def take(self, n: int, line: str) -> bool:
        """Read one line without its line end; return whether it belongs to a report."""
        line = line.rstrip()
        if line.startswith("-----") and (match := _BAR.fullmatch(line)):
            self._open(n, match[1])
            return True
        if self._part is None or not line:
            return False
        if self._part == "Summary":
            report = self.reports[-1]
            return self._take_summary(report, line) or (self._accuracy and self._take_accuracy(report, line))
        return self._take_statistic(self.reports[-1], line)

    def finish(self) -> list[Report]:
        return [report for report in self.reports if report.values or report.scores]

    def _open(self, n: int, part: str) -> None:
        if part == "Summary" or not self.reports:
            self._section, self._estimates, self._accuracy, self._dataset = None, False, False, None
            if len(self.reports) < _MOST:
                self.reports.append(Report(line=n))
        if part.startswith("End"):
            self.reports[-1].ended = True
        self._part = None if part.startswith("End") else part

    def _take_summary(self, report: Report, line: str) -> bool:
        if match := _TOTAL.fullmatch(line):
            report.put(_TOTALS[match[1]], match[2])
        elif match := _HEADLINE.fullmatch(line):
            report.put(_HEADLINES[match[1]], match[2])
        elif match := _VERSION.fullmatch(line):
            report.version = match[1]
        elif match := _PATTERN.fullmatch(line):
            report.pattern, report.concurrency = match[1], match[2]
        elif line.startswith(("WARNING: run was interrupted", "WARNING: report is incomplete")):
            report.broken = line.removeprefix("WARNING: ")[:200]
        elif line == "Accuracy:":
            self._accuracy = True
        else:
            return False
        return True

    def _take_accuracy(self, report: Report, line: str) -> bool:
        if match := _SCORE.fullmatch(line):
            self._dataset = match[1]
            report.score(match[2], bool(match[3]), dataset=match[1])
        elif self._dataset and (match := _SUBSET.fullmatch(line)):
            report.score(match[2], True, dataset=self._dataset, subset=match[1])
        elif match := _AVERAGE.fullmatch(line):
            report.score(match[1], False)
        elif line == "    (incomplete)":
            report.say(f"accuracy of {(self._dataset or '')[:100]} is incomplete")
        else:
            return False
        return True

    def _take_statistic(self, report: Report, line: str) -> bool:
        if match := _SECTION.fullmatch(line):
            self._section, self._estimates = _SECTIONS[match[1]], False
        elif line.startswith("  Early-stopping percentile estimates"):
            self._estimates = True
        elif line == "  Percentiles:":
            self._estimates = False
        elif self._section and (match := _STATISTIC.fullmatch(line)):
            _put_statistic(report, self._section, _STATISTICS.get(match[1]), match[2], 1e-3)
        elif self._section and (match := _AT.fullmatch(line)):
            _put_percentile(report, self._section, match[1], match[2], self._estimates, 1e-3)
        else:
            return False
        return True


def _put_statistic(report: Report, section: str, statistic: str | None, figure: object, scale: float) -> None:
    if section.endswith("_tokens"):
        if statistic == "mean":
            report.put(f"{section}_mean", figure)
    elif statistic:
        report.put(f"{section}_{statistic}", figure, scale)


def _put_percentile(report: Report, section: str, rank: str, figure: object, estimate: bool, scale: float) -> None:
    if section.endswith("_tokens") or not (named := percentile(rank)):
        return
    if estimate:
        report.put(f"{section}_early_stopping", figure, scale, named)
    else:
        report.put(f"{section}_p{named}", figure, scale)


def from_json(value: Mapping[str, Any], line: int) -> Report | None:
    """Return the report in result_summary.json or accuracy_results.json; None if the object is neither."""
    report = Report(line=line, ended=True)
    if "n_samples_completed" in value or "n_samples_issued" in value:
        _read_summary(report, value)
    if isinstance(value.get("accuracy_scores"), list):
        report.score(value.get("average_accuracy"), False)
        for entry in objects(value["accuracy_scores"]):
            _read_scores(report, entry)
    return report if report.values or report.scores else None


def _read_summary(report: Report, value: Mapping[str, Any]) -> None:
    report.version = value["version"][:40] if isinstance(value.get("version"), str) else None
    for count, metric in _TOTALS.items():
        report.put(metric, value.get(f"n_samples_{count}"))
    report.put("duration", value.get("duration_ns"), NANO)
    report.put("samples_per_second", value.get("qps"))
    report.put("tokens_per_second", value.get("tps"))
    pattern = dig(value, "run_config", "load_pattern", "type")
    report.pattern = pattern[:40] if isinstance(pattern, str) and re.fullmatch("[a-z_]{1,40}", pattern) else None
    concurrency = dig(value, "run_config", "load_pattern", "target_concurrency")
    report.concurrency = str(concurrency)[:9] if isinstance(concurrency, int) else None
    if value.get("complete") is False:
        report.broken = f"the run is not complete: state {str(value.get('state'))[:40]}"
    for section in ("ttft", "tpot", "latency", "input_sequence_lengths", "output_sequence_lengths"):
        metric = section.replace("_sequence_lengths", "_tokens")
        for statistic, key in (("min", "min"), ("max", "max"), ("mean", "avg")):
            _put_statistic(report, metric, statistic, dig(value, section, key), NANO)
        for key, estimate in (("percentiles", False), ("early_stopping_percentiles", True)):
            figures = dig(value, section, key)
            for rank, figure in figures.items() if isinstance(figures, dict) else ():
                _put_percentile(report, metric, rank[:20], figure, estimate, NANO)


def _read_scores(report: Report, entry: Mapping[str, Any]) -> None:
    dataset = entry.get("dataset_name")
    if not isinstance(dataset, str):
        return
    report.score(entry.get("score"), False, dataset=dataset)
    subsets = dig(entry.get("breakdown"), "subset_scores")
    for subset, figure in subsets.items() if isinstance(subsets, dict) else ():
        report.score(figure, True, dataset=dataset, subset=subset)
    if entry.get("complete") is False:
        report.say(f"accuracy of {dataset[:100]} is incomplete")
