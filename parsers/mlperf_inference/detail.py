"""Read mlperf_log_detail.txt: combine the records of LoadGen from v1.0 on into its runs."""

from __future__ import annotations

import re
from typing import Any

from fleetmark.parsers.kit.text import dig, number
from fleetmark.parsers.mlperf_inference.run import NANO, SCENARIOS, Run, percentile

_MOST_RUNS = 1000
# The keys that matter here; a log has few of them but may have millions of others.
_KEYS = (
    rb"(?:result|effective|early_stopping|error)_|requested_(?:scenario|test_mode|server_t[tp]|multi_stream_target_qps)"
    rb"|(?:loadgen_version|num_errors|generated_samples_per_query|qsl_reported_total_count|warning_generic_message)\b"
)
WANTED = re.compile(_KEYS)
# The beginning of irrelevant LoadGen lines, which make up most of a large log.
OTHERS = re.compile(rb':::MLLOG \{"key": "(?!' + _KEYS + rb')[^"\\]{0,200}"')
_RESULTS: dict[str, tuple[str, float]] = {
    "result_samples_per_second": ("samples_per_second", 1.0),
    "result_completed_samples_per_sec": ("samples_per_second", 1.0),
    "result_scheduled_samples_per_sec": ("scheduled_samples_per_second", 1.0),
    "result_tokens_per_second": ("tokens_per_second", 1.0),
    "result_completed_tokens_per_second": ("tokens_per_second", 1.0),
    "result_inferred_tokens_per_second": ("inferred_tokens_per_second", 1.0),
    "result_inferred_completed_tokens_per_second": ("inferred_tokens_per_second", 1.0),
    "result_qps_with_loadgen_overhead": ("qps_with_overhead", 1.0),
    "result_qps_without_loadgen_overhead": ("qps_without_overhead", 1.0),
    "result_query_count": ("queries", 1.0),
}
_COUNTS_ERRORS = re.compile(r"5\.[1-9]|[6-9]\.|[1-9][0-9]")  # versions that end their logs with num_errors
_LAST_BEFORE = "result_99.90_percentile_latency_ns"
# result_token_throughput is omitted, because it divides by nanoseconds and calls them seconds.
_OVERHEAD_TOKENS = "result_token_throughput_with_loadgen_overhead"
_EXTREME = re.compile(
    r"result_(?:(?P<of>first_token_)?(?P<which>min|max|mean)(?P<query>_query)?_latency_ns"
    r"|(?P<of2>time_(?:to|per)_output_token)_(?P<which2>min|max|mean))"
)
_PERCENTILE = re.compile(
    r"result_(?P<of>first_token_|time_(?:to|per)_output_token_)?(?P<at>[0-9.]{1,8})_percentile(?P<query>_per_query)?(?:_latency)?_ns"
)
_MET = re.compile(r"result_(perf_constraints|min_duration|min_queries)_met|(early_stopping)_met")
_MET_NAMES = {"perf_constraints": "performance constraints", "early_stopping": "early stopping"}
_EARLY = {
    "early_stopping_result": "latency",
    "early_stopping_ttft_result": "ttft",
    "early_stopping_tpot_result": "tpot",
}
_SETTINGS = {
    "effective_samples_per_query": "samples_per_query",
    "effective_min_duration_ms": "min_duration_ms",
    "effective_min_query_count": "min_query_count",
    "effective_qsl_rng_seed": "qsl_rng_seed",
    "effective_accuracy_log_probability": "accuracy_log_probability",
    "effective_accuracy_log_sampling_target": "accuracy_log_sampling_target",
    "effective_performance_issue_unique": "performance_issue_unique",
    "effective_performance_issue_same": "performance_issue_same",
    "effective_performance_sample_count": "performance_sample_count",
    "qsl_reported_total_count": "total_samples",
    "requested_server_ttft_latency": "ttft",
    "requested_server_tpot_latency": "tpot",
}


class DetailReader:
    """Take records in order; records of several processes may be mixed and are separated by pid."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.left_out = 0
        self.last_key: tuple[int, str] | None = None
        self._of: dict[object, Run] = {}  # the current run of each process

    def take(self, n: int, record: dict[str, Any]) -> None:
        """Read one record of line ``n``."""
        key, value = record.get("key"), record.get("value")
        if not isinstance(key, str) or not WANTED.match(key.encode("utf-8", "replace")):
            return
        self.last_key = (n, key)
        pid = dig(record, "metadata", "pid")
        run = self._of.get(pid if isinstance(pid, int) else None)
        if run is None or (key == "loadgen_version" and run.scenario) or (key == "requested_scenario" and run.mode):
            run = self._begin(n, pid if isinstance(pid, int) else None)
        if key.startswith(("result_", "early_stopping_")):
            take_result(run, key, value)
        else:
            _take_setting(run, key, value)

    def finish(self) -> list[Run]:
        """Return the completed runs that have figures."""
        some = [run for run in self.runs if run.values]
        for run in some:
            run.finish()
        return [run for run in some if run.scenario]

    def _begin(self, n: int, pid: int | None) -> Run:
        run = self._of[pid] = Run(line=n, titled=True)
        if len(self.runs) < _MOST_RUNS:
            self.runs.append(run)
        else:
            self.left_out += 1
        if len(self._of) > _MOST_RUNS:
            self._of = {pid: run}
        return run


def take_result(run: Run, key: str, value: object) -> None:
    """Read the value of one result_* or early_stopping_* key."""
    figure = number(value)
    if kind := _RESULTS.get(key):
        run.completed |= "completed" in key
        _put(run, kind[0], value, kind[1])
    elif key == _OVERHEAD_TOKENS:
        if run.scenario != "Server":
            _put(run, "tps_with_overhead", value)
    elif match := _PERCENTILE.fullmatch(key):
        if rank := percentile(match["at"]):
            _put(run, f"{_name(match)}_p{rank}", value, NANO)
        run.ended |= key == _LAST_BEFORE and not _COUNTS_ERRORS.match(run.version or "")
    elif match := _EXTREME.fullmatch(key):
        _put(run, f"tpot_{match['which2']}" if match["of2"] else f"{_name(match)}_{match['which']}", value, NANO)
    elif match := _MET.fullmatch(key):
        run.early_stopping |= key == "early_stopping_met"
        if value is False:
            name = match[1] or match[2]
            run.failed.append(_MET_NAMES.get(name, name.replace("_", " ")))
    elif key == "result_validity" and value in ("VALID", "INVALID"):
        run.verdict = str(value)
    elif key == "result_invalid_reason" and isinstance(value, str) and value.strip():
        run.advice.append(value.strip(" .")[:200])
    elif key in _EARLY and isinstance(value, str):
        run.tokens |= _EARLY[key] != "latency"
        run.read_early_stopping(_EARLY[key], value[:2000])
    elif key in ("early_stopping_latency_ss", "early_stopping_latency_ms") and figure and not run.tokens:
        rank = "99" if key.endswith("_ms") else run.target or "90"
        run.put("latency_early_stopping", figure, NANO, rank)


def _name(match: re.Match[str]) -> str:
    if match["of"]:
        return "ttft" if match["of"].startswith("first") else "tpot"
    return "query_latency" if match["query"] else "latency"


def _put(run: Run, metric: str, value: object, factor: float = 1.0) -> None:
    figure = number(value)
    if figure is None:
        run.say(f"{metric} has no number: {str(value)[:40]!r}")
    else:
        run.put(metric, figure, factor)


def _take_setting(run: Run, key: str, value: object) -> None:
    figure = float(value) if isinstance(value, bool) else number(value)
    if isinstance(value, str):
        _take_word(run, key, value)
    if key == "num_errors":
        run.ended = True
        run.errors = max(run.errors, int(figure or 0))
    elif key.startswith("error_"):
        run.errors += 1
    elif figure is None:
        return
    elif key == "effective_target_latency_percentile":
        run.target = percentile(f"{figure * 100:g}")
    elif key == "effective_sample_concatenate_permutation":
        run.concatenated = bool(figure)
    elif key == "requested_multi_stream_target_qps":
        run.old_streams = True
    elif key == "generated_samples_per_query":
        if len(run.generated) < 2:
            run.generated.add(figure)
    elif name := _SETTINGS.get(key):
        run.settings.setdefault(name, figure)
        if key == "effective_samples_per_query" and run.old_streams:
            run.put("samples_per_query", figure)


def _take_word(run: Run, key: str, value: str) -> None:
    if key in ("requested_scenario", "effective_scenario") and value in SCENARIOS:
        run.scenario = value
    elif key in ("requested_test_mode", "effective_test_mode"):
        run.mode = value[:40]
    elif key == "loadgen_version" and value.strip():
        run.version = value.split(maxsplit=1)[0][:40]
    elif key == "warning_generic_message":
        run.audited |= value.startswith("Found Audit Config file")
