"""Represent one run of LoadGen from its logs: figures, settings, verdict, and checks against MLPerf's rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fleetmark.base.measurement import Better, Measurement
from fleetmark.parsers.kit.text import number

TOOL = "mlperf_inference"
SCENARIOS = frozenset({"SingleStream", "MultiStream", "MultiStreamFree", "Server", "Offline"})
NANO = 1e-9
CUT = "the output is cut: {}"
_MOST = 500  # maximum figures of a run; a real one has about forty

# Limits (TTFT, TPOT in ms) that distinguish the Interactive scenario from Server; both run as LoadGen's Server.
_INTERACTIVE = {(450, 40), (4500, 80), (500, 30), (1500, 15), (2000, 15), (2000, 20)}
_SERVER = {(2000, 200), (6000, 175), (2000, 100), (2000, 80), (3000, 80)}
# qsl_rng_seed of the compliance test TEST05, which repeats a run with other seeds, in v0.5 to v4.1 and after.
_TEST05 = {195, 313588358309856706, 14646058500348515648, 793197339507417767, 2376919268182438552, 16799458546791641818}
_TEST05 |= {7975553102935885558}

_SHORTEST_S, _SHORTEST_S_BEFORE_V1 = 600, 60
_FEWEST_QUERIES = {"SingleStream": 1024, "Server": 90_112, "MultiStream": 90_112, "MultiStreamFree": 90_112}
_FEWEST_SAMPLES = 24_576

_EXACT: dict[str, tuple[str, Better]] = {
    "samples_per_second": ("1/s", Better.HIGHER),
    "tokens_per_second": ("1/s", Better.HIGHER),
    "inferred_tokens_per_second": ("1/s", Better.HIGHER),
    "scheduled_samples_per_second": ("1/s", Better.NONE),
    "qps_with_overhead": ("1/s", Better.HIGHER),
    "qps_without_overhead": ("1/s", Better.HIGHER),
    "tps_with_overhead": ("1/s", Better.HIGHER),
    "tps_without_overhead": ("1/s", Better.HIGHER),
    "samples_per_query": ("1", Better.HIGHER),
    "queries": ("1", Better.NONE),
    "samples": ("1", Better.NONE),
    "samples_issued": ("1", Better.NONE),
    "samples_failed": ("1", Better.LOWER),
    "duration": ("s", Better.NONE),
    "input_tokens_mean": ("1", Better.NONE),
    "output_tokens_mean": ("1", Better.NONE),
}

_ESTIMATE = re.compile(r"Early stopping ([0-9.]{1,8})th percentile estimate: ([0-9]{1,25})(?![0-9.])")
_PROCESSED = re.compile(
    r"Processed at least [0-9]{1,20} queries \(([0-9]{1,20})\)|\b(?:Only processed|Processed) ([0-9]{1,20}) queries"
)
_LACKING = re.compile(
    r"Would need to run at least ([0-9]{1,20}) more queries|Need to process at least ([0-9]{1,20}) queries"
)
# Words in a command or a path that mark a compliance test or a search for the best load.
_HINT = re.compile(
    r"(?<![A-Za-z0-9])(?:TEST0[1-9](?:-[AB])?|ranging|compliance|FindPeakPerformance"
    r"|find[-_]peak[-_]performance(?!\W{1,2}(?:[Ff]alse|0)))(?![A-Za-z0-9])"
)
_INTERACTIVE_HINT = re.compile(r"(?<![A-Za-z])interactive(?![A-Za-z])", re.IGNORECASE)


def percentile(text: str) -> str | None:
    """Return a percentile as in metric names and labels: ``90``, ``99.9``; None for an impossible one."""
    value = number(text)
    return f"{value:g}" if value is not None and 0 < value <= 100 else None


def better(metric: str, scenario: str) -> tuple[str, Better]:
    """Return unit and direction of ``metric``.

    Offline issues all samples at once, so their waiting time is not a score.
    """
    if metric in _EXACT:
        return _EXACT[metric]
    return "s", Better.NONE if scenario == "Offline" else Better.LOWER


def hint(command: Sequence[str]) -> str | None:
    """Return the word in ``command`` that shows that this run is not a score, if any."""
    match = _HINT.search(" ".join(command))
    return match[0] if match else None


def says_interactive(command: Sequence[str]) -> bool:
    return bool(_INTERACTIVE_HINT.search(" ".join(command)))


@dataclass(kw_only=True, slots=True)
class Run:
    """The output of one run; ``line`` is its first line."""

    line: int
    titled: bool = False  # whether a heading or a key shows that this is LoadGen's
    scenario: str | None = None
    mode: str | None = None
    version: str | None = None
    values: dict[tuple[str, str], float] = field(default_factory=dict)  # by metric and percentile (a label) or ""
    settings: dict[str, float] = field(default_factory=dict)
    verdict: str | None = None
    failed: list[str] = field(default_factory=list)  # constraints that were not met
    advice: list[str] = field(default_factory=list)  # LoadGen's own reasons why it is invalid
    early: list[str] = field(default_factory=list)  # the requirements that early stopping did not meet
    target: str | None = None  # the percentile that is the score of SingleStream and MultiStream
    completed: bool = False  # whether a completed or scheduled rate was printed, as in Server only
    scheduled_first: bool = False  # whether the headline is the scheduled rate
    early_stopping: bool = False  # whether the log supports early stopping (from v2.0)
    tokens: bool = False  # whether early stopping refers to TTFT and TPOT
    old_streams: bool = False  # whether MultiStream is as up to v1.1, at a fixed rate
    generated: set[float] = field(default_factory=set)  # samples per query, as actually generated
    concatenated: bool = False  # whether the samples per query differ from the setting
    audited: bool = False
    errors: int = 0
    ended: bool = False
    notes: list[str] = field(default_factory=list)

    def put(self, metric: str, value: float, factor: float = 1.0, rank: str = "") -> None:
        """Store a figure in base units; only the first figure of a name counts."""
        if value < 0:
            self.say(f"{metric} is {value:g}, left out")
        elif (first := self.values.get((metric, rank))) is None:
            if len(self.values) < _MOST:
                self.values[metric, rank] = value * factor
        elif first != value * factor:
            self.say(f"{metric} is printed as {first / factor:.10g} and as {value:.10g}: the first is kept")

    def say(self, note: str) -> None:
        if len(self.notes) < 100:
            self.notes.append(note)

    def read_early_stopping(self, metric: str, text: str) -> None:
        """Read the lines below "Early Stopping Result" of ``metric``: latency, ttft or tpot."""
        for match in _ESTIMATE.finditer(text):
            if (rank := percentile(match[1])) and (value := number(match[2])) is not None:
                self.put(f"{metric}_early_stopping", value, NANO, rank)
        if (done := _PROCESSED.search(text)) and (value := number(done[1] or done[2])) is not None:
            self.put("queries", value)
        if lacking := _LACKING.search(text):
            prefix = "" if metric == "latency" else f"{metric.upper()}: "
            wants = f"{lacking[1]} more queries" if lacking[1] else f"at least {lacking[2]} queries"
            self.early.append(f"{prefix}early stopping needs {wants}")

    def finish(self) -> None:
        """Derive what requires the full run: a missing scenario, the meaning of the latencies, and the score."""
        self.scenario = self.scenario or self._guess()
        if any(m.startswith("query_latency") for m, _ in self.values):  # MultiStream: per query, then per sample
            names = {m: "sample_" + m for m, _ in self.values if m.startswith("latency_") and "early" not in m}
            names |= {m: m.removeprefix("query_") for m, _ in self.values if m.startswith("query_latency")}
            self.values = {(names.get(m, m), rank): value for (m, rank), value in self.values.items()}
        if self.scenario == "Offline":
            issued = self.settings.get("samples_per_query")
            if len(self.generated) == 1:
                self.put("samples", max(self.generated))
            elif issued is not None and not self.generated and not self.concatenated:
                self.put("samples", issued)
        elif self.scenario in ("SingleStream", "MultiStream"):
            self._score()

    def _score(self) -> None:
        rank = self.target or {"SingleStream": "90", "MultiStream": "99"}[self.scenario or ""]
        if ("samples_per_query", "") in self.values:
            self.say("up to v1.1 the result of MultiStream is the samples per query that keep the latency limit")
            return
        printed = self.values.get((f"latency_p{rank}", ""))
        if (estimate := self.values.get(("latency_early_stopping", rank))) is not None:
            self.values["latency", ""] = estimate
            self.say(
                f"latency is the early-stopping estimate at percentile {rank}, which the rules define as the result"
            )
        elif printed is not None:
            self.values["latency", ""] = printed
            self.say(f"latency is percentile {rank} as measured: no early-stopping estimate of it is printed")

    def _guess(self) -> str | None:
        if any(m.startswith("query_latency") for m, _ in self.values):
            scenario = "MultiStream"
        elif ("qps_with_overhead", "") in self.values:
            scenario = "SingleStream"
        elif self.completed:
            scenario = "Server"
        elif ("samples_per_second", "") in self.values:
            scenario = "Offline"
        else:
            return None
        self.say(f"no line names the scenario: {scenario} judging by the printed figures")
        return scenario

    def case(self, command: Sequence[str]) -> str:
        """Return the scenario; Interactive is distinguished from Server by its latency limits."""
        if self.scenario != "Server" or "ttft" not in self.settings or "tpot" not in self.settings:
            return "Interactive" if self.scenario == "Server" and says_interactive(command) else self.scenario or ""
        limits = (self.settings["ttft"] / 1e6, self.settings["tpot"] / 1e6)
        if limits in _INTERACTIVE or (limits not in _SERVER and says_interactive(command)):
            return "Interactive"
        if limits not in _SERVER:
            self.say(
                f"Server and Interactive cannot be distinguished: no benchmark has the limits TTFT {limits[0]:g} ms, "
                f"TPOT {limits[1]:g} ms"
            )
        return "Server"

    def wrong(self, command: Sequence[str]) -> list[str]:
        """Return the reason why this run does not count as a score, or None if it does."""
        reasons = []
        if self.verdict is None:
            reasons.append("no line states whether the result is valid: the log is truncated or damaged")
        elif self.verdict == "INVALID":
            because = [f"{requirement} not satisfied" for requirement in self.failed] + self.advice + self.early
            reasons.append("INVALID: " + ("; ".join(dict.fromkeys(because)) or "LoadGen gives no reason"))
        reasons += self._compliance()
        if self.mode is not None and self.mode.replace(" ", "") == "FindPeakPerformance":
            reasons.append("LoadGen searched for the peak: mode FindPeakPerformance")
        elif word := hint(command):
            reasons.append(f"not a score by its command: {word}")
        if self.verdict is not None and not self.ended:
            reasons.append(CUT.format("the log ends before its last line"))
        return reasons

    def _compliance(self) -> list[str]:
        """Return why this run is one of MLPerf's compliance tests (TEST01 to TEST09), or None."""
        setting = self.settings.get
        signs = []
        if sampled := setting("accuracy_log_sampling_target") or setting("accuracy_log_probability"):
            signs.append(f"TEST01 or TEST06 to TEST09: it logs responses, {sampled:g}")
        if setting("performance_issue_same"):
            signs.append("TEST04: performance_issue_same")
        if setting("performance_issue_unique"):
            signs.append("TEST04-A, TEST07 or TEST09: performance_issue_unique")
        if setting("qsl_rng_seed") in {float(seed) for seed in _TEST05}:
            signs.append("TEST05: that test's seeds")
        if self.audited and not signs:
            signs.append("an audit.config overrode the settings")
        return [f"a compliance run, not a score ({'; '.join(signs)})"] if signs else []

    def remarks(self) -> Iterator[str]:
        """Return remarks on settings and figures that qualify the score."""
        yield from self.notes
        yield from self._short()
        if self.scheduled_first:
            yield "the headline is the scheduled rate, the result up to v3.0; samples_per_second is the completed one"
        if ("inferred_tokens_per_second", "") in self.values:
            yield "inferred tokens are samples times a fixed factor, not counted"
        if self.errors:
            yield f"LoadGen met {self.errors} error{'s' if self.errors > 1 else ''}: not valid for a submission"
        if not self.ended:
            yield "the log ends before its last line"

    def _short(self) -> Iterator[str]:
        old = self.mode in ("Performance", "Submission")  # names up to v0.7
        needed = _SHORTEST_S_BEFORE_V1 if old else _SHORTEST_S
        ran = self.settings.get("min_duration_ms")
        if ran is not None and ran < needed * 1000:
            yield f"short: the minimum duration is set to {ran / 1000:g} s, the rules want {needed} s"
        minimum, fewest = self.settings.get("min_query_count"), _FEWEST_QUERIES.get(self.scenario or "")
        if minimum is not None and fewest and minimum < fewest and not self.early_stopping:
            yield f"short: the minimum of queries is set to {minimum:g}, below the fewest of any rule ({fewest})"
        issued = self.settings.get("samples_per_query")
        samples = self.settings.get("total_samples", self.settings.get("performance_sample_count"))
        if self.scenario == "Offline" and issued is not None and samples is not None:
            least = min(_FEWEST_SAMPLES, samples)
            if issued < least:
                yield f"short: {issued:g} samples, the rules want the data set or {_FEWEST_SAMPLES}: here {least:g}"

    def measure(self, case: str) -> Iterator[Measurement]:
        for (metric, rank), value in self.values.items():
            unit, direction = better(metric, self.scenario or "")
            labels = {"percentile": rank} if rank else {}
            yield Measurement(TOOL, case, metric, value, unit, better=direction, labels=labels)
