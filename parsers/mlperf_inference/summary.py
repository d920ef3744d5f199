"""Read LoadGen's runs from mlperf_log_summary.txt, or from the same lines within a program's output."""

from __future__ import annotations

import re

from fleetmark.parsers.kit.text import number
from fleetmark.parsers.mlperf_inference.run import NANO, SCENARIOS, Run, percentile

_MOST_RUNS = 1000
_FIGURE = r"(\S{1,60})"
_TITLE = "MLPerf Results Summary"
_SCENARIO = re.compile(r"Scenario ?: ?([A-Za-z ]{1,30})")
_MODE = re.compile(r"Mode {0,9}: ?([A-Za-z ]{1,30})")
_RATE = re.compile(
    rf"(?:(Completed|Scheduled) )?(samples|tokens) per second ?(\(inferred\))? {{0,30}}: ?{_FIGURE}", re.IGNORECASE
)
_OVERHEAD = re.compile(rf"([QT]PS) (w/o?) loadgen overhead {{0,20}}: ?{_FIGURE}")
_TARGET = re.compile(rf"([0-9.]{{1,8}})th (first token )?percentile latency \(ns\) ?: ?{_FIGURE}")
_OF = r"(latency|first token latency|time (?:to|per) output token) \(ns\) {0,30}: ?"
_PERCENTILE = re.compile(rf"([0-9.]{{1,8}}) percentile {_OF}{_FIGURE}", re.IGNORECASE)
_EXTREME = re.compile(rf"(Min|Max|Mean) {_OF}{_FIGURE}", re.IGNORECASE)
_STREAMS = re.compile(rf"Samples per query : {_FIGURE}")
_VERDICT = re.compile(r"Result is ?: (VALID|INVALID)")
_MET = re.compile(
    r" {0,4}(Performance constraints|Min duration|Min queries|Early stopping) satisfied ?: (Yes|NO)", re.IGNORECASE
)
_EARLY = re.compile(r"(?:(TTFT|TPOT) )?Early Stopping Result:")
_SETTING = re.compile(rf"([a-z][a-z_]{{3,40}}) (?:\((?:ns|ms)\))? ?: ?{_FIGURE}")
_COUNT = re.compile(r"(No|[0-9]{1,9}) (warning|error)s? encountered", re.IGNORECASE)
_CONCATENATED = "WARNING: sample_concatenate_permutation"
_SETTINGS = {
    "samples_per_query": "samples_per_query",
    "ttft_latency": "ttft",
    "tpot_latency": "tpot",
    "min_duration": "min_duration_ms",
    "min_query_count": "min_query_count",
    "qsl_rng_seed": "qsl_rng_seed",
    "accuracy_log_probability": "accuracy_log_probability",
    "accuracy_log_sampling_target": "accuracy_log_sampling_target",
    "performance_issue_unique": "performance_issue_unique",
    "performance_issue_same": "performance_issue_same",
    "performance_sample_count": "performance_sample_count",
}
# The beginning of every relevant line; other output is skipped quickly.
_BEGINS = re.compile(
    r"MLPerf|Scenario|Mode |(?:Samples|Tokens|Completed|Scheduled|QPS|TPS|Min|Max|Mean|Per|Result|Early|TTFT|TPOT|No)\b"
    r"| {1,4}[PME]|Recommendations|WARNING: sample|[0-9.]{1,9}(?:th| percentile| warn| ERR)"
    r"|[a-z_]{4,41} ?(?:\([nm]s\) ?)?:",
    re.IGNORECASE,
)
_FLAGS = {"true": 1.0, "false": 0.0}


class SummaryReader:
    """Take a text's lines one by one; ``finish`` returns the runs in them."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.title: int | None = None
        self.ending: int | None = None  # the first "No errors encountered" line, the only one in accuracy mode
        self.left_out = 0
        self._block: list[str] | None = None  # lines of the current block
        self._kind = ""  # kind of the block: advice, latency, ttft or tpot
        self._per_query = False

    @property
    def begun(self) -> int | None:
        """Return the line on which an unfinished run without figures begins, or None if there is none."""
        last = self.runs[-1] if self.runs else None
        return last.line if last and last.titled and not (last.values or last.ended) else None

    def take(self, n: int, line: str) -> None:
        """Read one line without its line end."""
        line = line.rstrip()
        if self._block is not None and self._continue_block(line):
            return
        if not _BEGINS.match(line):
            return
        if line == _TITLE:
            self._begin(n).titled = True
            self.title = self.title or n
        elif not self._take_head(n, line) and not self._take_figure(n, line):
            self._take_setting(n, line)

    def finish(self) -> list[Run]:
        """Return the completed runs of LoadGen that have figures."""
        self._end_block()
        some = [run for run in self.runs if run.values and (run.titled or run.scenario or run.verdict)]
        for run in some:
            run.finish()
        return [run for run in some if run.scenario]

    def _run(self, n: int) -> Run:
        return self.runs[-1] if self.runs else self._begin(n)

    def _begin(self, n: int) -> Run:
        self._end_block()
        self._per_query = False
        if len(self.runs) >= _MOST_RUNS:
            self.left_out += 1
            return Run(line=n)
        self.runs.append(Run(line=n))
        return self.runs[-1]

    def _take_head(self, n: int, line: str) -> bool:
        if match := _SCENARIO.fullmatch(line):
            if (name := match[1].replace(" ", "")) in SCENARIOS:
                run = self._run(n)
                if run.scenario:  # another run whose heading is missing
                    run = self._begin(n)
                run.scenario = name
        elif match := _MODE.fullmatch(line):
            self._run(n).mode = match[1].strip()
        elif match := _VERDICT.fullmatch(line):
            run = self._run(n)
            if run.verdict:
                run = self._begin(n)
            run.verdict = match[1]
        elif match := _MET.fullmatch(line):
            run = self._run(n)
            run.early_stopping |= match[1] == "Early stopping"
            if match[2].lower() == "no":
                run.failed.append(match[1].lower())
        elif line == "Recommendations:":
            self._open_block("advice")
        elif match := _EARLY.fullmatch(line):
            self._open_block((match[1] or "latency").lower())
        else:
            return False
        return True

    def _take_figure(self, n: int, line: str) -> bool:
        if match := _RATE.fullmatch(line):
            self._take_rate(self._run(n), match)
        elif match := _PERCENTILE.fullmatch(line):
            if rank := percentile(match[1]):
                self._put(n, f"{self._name(match[2])}_p{rank}", match[3], NANO)
        elif match := _EXTREME.fullmatch(line):
            self._put(n, f"{self._name(match[2])}_{match[1].lower()}", match[3], NANO)
        elif match := _OVERHEAD.fullmatch(line):
            without = "with" if match[2] == "w/" else "without"
            self._put(n, f"{match[1].lower()}_{without}_overhead", match[3])
        elif match := _TARGET.fullmatch(line):
            if rank := percentile(match[1]):
                metric = "ttft" if match[2] else "latency"
                if not match[2]:
                    self._run(n).target = rank
                query = "query_" if self._run(n).scenario == "MultiStream" and not match[2] else ""
                self._put(n, f"{query}{metric}_p{rank}", match[3], NANO)
        elif match := _STREAMS.fullmatch(line):
            self._put(n, "samples_per_query", match[1])
        elif line.startswith(("Per-query latency:", "Per-sample latency:")):
            self._per_query = line.startswith("Per-query")
        else:
            return False
        return True

    def _take_rate(self, run: Run, match: re.Match[str]) -> None:
        qualifier, noun, inferred, figure = match.groups()
        name = f"{noun.lower()}_per_second"
        if qualifier:
            run.completed = True
        if qualifier and qualifier.lower() == "scheduled":
            run.scheduled_first |= run.verdict is None and ("samples_per_second", "") not in run.values
            name = "scheduled_" + name
        if inferred:
            name = "inferred_" + name
        self._put(run.line, name, figure)

    def _take_setting(self, n: int, line: str) -> None:
        if match := _SETTING.fullmatch(line):
            if name := _SETTINGS.get(match[1]):
                value = _FLAGS.get(match[2], number(match[2]))
                if value is not None:
                    self._run(n).settings.setdefault(name, value)
        elif line.startswith(_CONCATENATED):
            self._run(n).concatenated = True
        elif match := _COUNT.match(line):
            self.ending = self.ending or n
            if self.runs and match[2].lower() == "error":
                self.runs[-1].ended = True
                self.runs[-1].errors = 0 if match[1] == "No" else int(match[1])

    def _put(self, n: int, metric: str, figure: str, factor: float = 1.0) -> None:
        run = self._run(n)
        value = number(figure)
        if value is None:
            run.say(f"{metric} is printed as {figure!r}, which is not a number")
        else:
            run.put(metric, value, factor)

    def _name(self, printed: str) -> str:
        if printed == "latency":
            return "query_latency" if self._per_query else "latency"
        return "ttft" if printed.lower().startswith("first") else "tpot"

    def _open_block(self, kind: str) -> None:
        self._end_block()
        self._block, self._kind = [], kind

    def _continue_block(self, line: str) -> bool:
        """Return whether ``line`` belongs to the current block: it begins with a space, even if it is wrapped."""
        if self._block is not None and line.startswith(" ") and not _MET.fullmatch(line):
            if len(self._block) < 20:
                self._block.append(line)
            return True
        self._end_block()
        return False

    def _end_block(self) -> None:
        lines, self._block = self._block or [], None
        if not lines or not self.runs:
            return
        text = " ".join(line.strip() for line in lines)
        if self._kind == "advice":
            self.runs[-1].advice += [part.strip(" .")[:200] for part in text.split("* ") if part.strip()]
        else:
            self.runs[-1].read_early_stopping(self._kind, text)
