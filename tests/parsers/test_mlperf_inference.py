"""MLPerf Inference: summaries, detail logs, accuracy and reports, real ones and those that are damaged on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed, Standing
from fleetmark.parsers.mlperf_inference import parse
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, find, identities, read, value

HERE = FIXTURES / "mlperf_inference"
ROW_KEYS = {
    "samples_per_s": ("samples_per_second", 1.0),
    "completed_samples_per_s": ("samples_per_second", 1.0),
    "scheduled_samples_per_s": ("scheduled_samples_per_second", 1.0),
    "tokens_per_s": ("tokens_per_second", 1.0),
    "completed_tokens_per_s": ("tokens_per_second", 1.0),
    "p90_latency_ns": ("latency_p90", 1e-9),
    "p99_latency_ns": ("latency_p99", 1e-9),
    "p99_ttft_ns": ("ttft_p99", 1e-9),
    "p99_ttft_ms": ("ttft_p99", 1e-3),
    "p99_tpot_ns": ("tpot_p99", 1e-9),
    "qps_with_overhead": ("qps_with_overhead", 1.0),
    "qps": ("samples_per_second", 1.0),
    "tps": ("tokens_per_second", 1.0),
    "queries_processed": ("queries", 1.0),
    "samples_failed": ("samples_failed", 1.0),
    "exact_match": ("exact_match", 1.0),
    "rougeL": ("rougel", 1.0),
    "tokens_per_sample": ("tokens_per_sample", 1.0),
    "accuracy_pct": ("accuracy", 0.01),
    "good": ("good", 1.0),
    "total": ("total", 1.0),
}
CONSTRAINTS = {"performance_constraints": "performance constraints", "early_stopping": "early stopping"}


def ours(name: str, *command: str) -> Parsed:
    return read("mlperf_inference", name, *command)


def raw(name: str) -> bytes:
    return (HERE / name).read_bytes()


def first(parsed: Parsed, metric: str, **labels: str) -> float:
    figure = value(parsed, metric, **labels)
    assert figure is not None, metric
    return figure


@pytest.mark.parametrize(("path", "row"), corpus.rows("mlperf_inference"))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    expected = dict(row["expected"])
    if expected == {"has_result": False}:
        with pytest.raises(ParseError, match="line 2: expected a performance result; this is the summary of an accur"):
            parse(path.read_bytes())
        return
    parsed = parse(path.read_bytes())
    assert parsed.standing is Standing.UNVERIFIED
    assert len(set(identities(parsed))) == len(parsed.measurements)
    verdict = expected.pop("validity", expected.pop("result_validity", "VALID"))
    trimmed = path.name == "v6.1_vr-nvl72_deepseek_server_report_NEWFORMAT.txt"  # after the head of TPOT
    assert (parsed.invalid is not None) == (verdict == "INVALID" or trimmed)
    for key, printed in CONSTRAINTS.items():
        if expected.pop(key, "Yes") == "NO":
            assert f"{printed} not satisfied" in (parsed.invalid or "")
    assert expected.pop("min_duration", "Yes") == "Yes"
    assert "min duration" not in (parsed.invalid or "")
    if expected.pop("loadgen_version_key_present", False):
        assert parsed.version == "5.1.0"
    if (scenario := expected.pop("scenario_in_log", None)) is not None:
        assert (scenario, cases(parsed)) == ("Server", {"Interactive"})
    for percentile in ("90", "99"):
        if (printed := expected.pop(f"early_stopping_p{percentile}_ns", None)) is not None:
            assert first(parsed, "latency_early_stopping", percentile=percentile) == pytest.approx(printed * 1e-9)
    if (printed := expected.pop("accuracy", None)) is not None:
        assert first(parsed, "accuracy", dataset="deepseek_r1_accuracy") == pytest.approx(printed / 100)
    for key, printed in expected.items():
        metric, factor = ROW_KEYS[key]
        if printed is None:
            assert find(parsed, metric) is None
        else:
            assert first(parsed, metric) == pytest.approx(printed * factor, rel=1e-12), key


@pytest.mark.parametrize(
    ("name", "case", "invalid"),
    [
        ("singlestream", "SingleStream", False),
        ("multistream", "MultiStream", True),
        ("offline", "Offline", True),
        ("server_invalid", "Server", True),
        ("interactive", "Interactive", False),
        ("singlestream_tokens", "SingleStream", False),
    ],
)
def test_summary_and_detail_of_a_run_agree(name: str, case: str, invalid: bool) -> None:
    """Real logs of LoadGen 6.0.17; the summary rounds to two decimals."""
    summary, detail = ours(f"v6.0_{name}_summary.txt"), ours(f"v6.0_{name}_detail.txt")
    assert cases(summary) == cases(detail) == {case}
    assert (summary.version, detail.version) == (None, "6.0.17")
    assert summary.invalid == detail.invalid
    assert (summary.invalid is not None) == invalid
    details = {(m.metric, *m.labels.values()): m for m in detail.measurements}
    for m in summary.measurements:
        if m.metric not in ("tps_without_overhead",):
            other = details[m.metric, *m.labels.values()]
            assert m.value == pytest.approx(other.value, rel=1e-4, abs=0.006 if m.unit == "1/s" else 1e-12)
            assert (m.unit, m.better) == (other.unit, other.better)


def test_single_stream_scores_the_early_stopping_estimate() -> None:
    parsed = ours("v6.0_singlestream_summary.txt")
    assert (
        first(parsed, "latency") == first(parsed, "latency_early_stopping", percentile="90") == pytest.approx(70.775e-6)
    )
    assert first(parsed, "latency_early_stopping", percentile="99") == pytest.approx(113.875e-6)
    assert first(parsed, "latency_p90") == pytest.approx(70.379e-6)
    assert (first(parsed, "queries"), first(parsed, "qps_without_overhead")) == (57249, 18169.59)
    assert parsed.notes == (
        "latency is the early-stopping estimate at percentile 90, which the rules define as the result",
        "short: the minimum duration is set to 5 s, the rules want 600 s",
    )
    score = find(parsed, "latency")
    assert score is not None and (score.unit, score.better) == ("s", Better.LOWER)


def test_score_without_an_estimate_is_the_percentile() -> None:
    text = raw("v6.0_singlestream_summary.txt").decode()
    parsed = parse(re.sub(r".*Early stopping .*estimate.*\n", "", text).encode())
    assert first(parsed, "latency") == first(parsed, "latency_p90")
    assert "latency is percentile 90 as measured: no early-stopping estimate of it is printed" in parsed.notes
    at_999 = text.replace("90.0th percentile", "99.9th percentile")  # PointPainting's target
    assert first(parse(at_999.encode()), "latency") == pytest.approx(70.775e-6)


def test_single_stream_of_a_language_model_has_estimates_of_its_tokens() -> None:
    for name in ("v6.0_singlestream_tokens_summary.txt", "v6.0_singlestream_tokens_detail.txt"):
        parsed = ours(name)
        assert first(parsed, "ttft_early_stopping", percentile="90") == pytest.approx(96.814e-6)
        assert first(parsed, "tpot_early_stopping", percentile="99") == pytest.approx(591.723e-6)
        assert find(parsed, "latency_early_stopping", percentile="90") is None
        assert first(parsed, "latency") == first(parsed, "latency_p90") == pytest.approx(2239.353e-6)
        assert first(parsed, "tps_with_overhead") == 2279.24
        assert first(parsed, "tpot_min") == pytest.approx(516.634e-6)


def test_multi_stream_is_of_queries() -> None:
    parsed = ours("v6.0_multistream_detail.txt")
    assert first(parsed, "latency") == pytest.approx(200.62e-6)
    assert first(parsed, "latency_p99") == first(parsed, "sample_latency_p99") == pytest.approx(195.532e-6)
    assert parsed.invalid == (
        "INVALID: min duration not satisfied; Decrease the expected latency so the loadgen pre-generates more queries"
    )
    assert "LoadGen met 1 error: not valid for a submission" in parsed.notes


@pytest.mark.parametrize(
    ("name", "streams"), [("v0.5_multistream_summary.txt", 212), ("v1.0_multistream_detail.txt", 64)]
)
def test_multi_stream_up_to_1_1_scores_its_streams(name: str, streams: float) -> None:
    parsed = ours(name)
    assert (first(parsed, "samples_per_query"), cases(parsed), parsed.invalid) == (streams, {"MultiStream"}, None)
    assert find(parsed, "latency") is None
    assert first(parsed, "latency_p99") > first(parsed, "sample_latency_p99")
    assert [n for n in parsed.notes if not n.startswith("up to v1.1 the result of MultiStream")] == []


def test_server_up_to_0_7_with_windows_line_ends() -> None:
    parsed = ours("v0.7_server_invalid_crlf_summary.txt")
    assert (first(parsed, "samples_per_second"), first(parsed, "scheduled_samples_per_second")) == (498.71, 512.44)
    assert parsed.invalid == (
        "INVALID: performance constraints not satisfied; min queries not satisfied; "
        "Reduce target QPS to improve latency; The test exited early, before enough queries were issued. "
        "See the detailed log for why this may have occurred"
    )
    assert parsed.notes == (
        "short: the minimum of queries is set to 3001, below the fewest of any rule (90112)",
        "the headline is the scheduled rate, the result up to v3.0; samples_per_second is the completed one",
        "LoadGen met 3 errors: not valid for a submission",
    )


def test_why_early_stopping_failed() -> None:
    parsed = ours("v5.1_server_tokens_invalid_summary.txt")
    assert (parsed.invalid or "").split("; ") == [
        "INVALID: performance constraints not satisfied",
        "early stopping not satisfied",
        "TTFT constrain not met: Reduce target QPS to improve latency",
        "TPOT constrain not met: Reduce target QPS to improve latency",
        "TTFT: early stopping needs 8044 more queries",
        "TPOT: early stopping needs 152 more queries",
    ]
    assert first(parsed, "queries") == 24576
    assert first(parsed, "tokens_per_second") == 9120.44
    few = raw("v6.0_singlestream_summary.txt").replace(
        b" * Processed at least 64 queries (57249).",
        b" * Only processed 42 queries.\n * Need to process at least 64 queries for",
    )
    few = few.replace(b"Early stopping satisfied: Yes", b"Early stopping satisfied: NO").replace(
        b": VALID", b": INVALID"
    )
    assert parse(few).invalid == "INVALID: early stopping not satisfied; early stopping needs at least 64 queries"


@pytest.mark.parametrize(
    ("ttft", "tpot", "command", "case", "noted"),
    [
        (450, 40, (), "Interactive", False),
        (4500, 80, (), "Interactive", False),
        (500, 30, (), "Interactive", False),
        (1500, 15, (), "Interactive", False),
        (2000, 15, (), "Interactive", False),
        (2000, 20, (), "Interactive", False),
        (2000, 200, (), "Server", False),
        (2000, 80, (), "Server", False),
        (6000, 175, (), "Server", False),
        (2000, 200, ("run", "--scenario=Interactive"), "Server", False),
        (1800, 180, (), "Server", True),
        (1800, 180, ("run", "--scenario=Interactive"), "Interactive", False),
    ],
)
def test_interactive_by_its_limits(ttft: int, tpot: int, command: tuple[str, ...], case: str, noted: bool) -> None:
    text = raw("v5.1_server_tokens_invalid_summary.txt")
    text = text.replace(b"1800000000", b"%d000000" % ttft).replace(b": 180000000\n", b": %d000000\n" % tpot)
    parsed = parse(text, command)
    assert cases(parsed) == {case}
    assert any("Server and Interactive cannot be distinguished" in note for note in parsed.notes) == noted


def test_offline_latencies_only_describe() -> None:
    parsed = ours("v6.0_offline_tokens_summary.txt")
    assert {m.better for m in parsed.measurements if m.metric.startswith("latency")} == {Better.NONE}
    rate = find(parsed, "tokens_per_second")
    assert rate is not None and (rate.value, rate.unit, rate.better) == (111801, "1/s", Better.HIGHER)
    assert first(parsed, "samples") == 16500


def test_inferred_tokens_are_a_metric_of_their_own() -> None:
    parsed = ours("v4.1_gptj_offline_summary.txt")
    assert (first(parsed, "samples_per_second"), first(parsed, "inferred_tokens_per_second")) == (41.2075, 2843.32)
    assert find(parsed, "tokens_per_second") is None
    assert parsed.notes == ("inferred tokens are samples times a fixed factor, not counted",)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("v6.0_test01_summary.txt", "TEST01 or TEST06 to TEST09: it logs responses, 64"),
        ("v6.0_test04_detail.txt", "a compliance run, not a score (TEST04: performance_issue_same)"),
        ("v6.0_peak_summary.txt", "LoadGen searched for the peak: mode FindPeakPerformance"),
    ],
)
def test_compliance_runs_and_searches_are_no_scores(name: str, reason: str) -> None:
    parsed = ours(name)
    assert reason in (parsed.invalid or "")
    assert parsed.measurements


def test_more_signs_of_compliance_runs() -> None:
    text = raw("v6.0_server_summary.txt")
    assert parse(text).invalid is None
    unique = parse(text.replace(b"issue_unique : 0", b"issue_unique : 1"))
    assert unique.invalid == "a compliance run, not a score (TEST04-A, TEST07 or TEST09: performance_issue_unique)"
    seeds = parse(text.replace(b"\nqsl_rng_seed : 0", b"\nqsl_rng_seed : 7975553102935885558"))
    assert seeds.invalid == "a compliance run, not a score (TEST05: that test's seeds)"
    warned = b':::MLLOG {"key": "warning_generic_message", "value": "Found Audit Config file (audit.config)."}\n'
    detail = raw("v6.0_interactive_detail.txt")
    settings = re.sub(rb'"pid": \d+', b'"pid": 0', warned + detail)
    assert parse(detail).invalid is None
    assert parse(settings.replace(b"config)", b'config)", "metadata": {"pid": 0}, "x": "')).invalid == (
        "a compliance run, not a score (an audit.config overrode the settings)"
    )


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (("harness", "--audit_test=TEST06"), "TEST06"),
        (("cat", "results/llama2-70b-99/Server/performance/ranging/mlperf_log_summary.txt"), "ranging"),
        (("cat", "compliance/x/Server/TEST04-A/run_1/mlperf_log_summary.txt"), "compliance"),
        (("run", "--find_peak_performance"), "find_peak_performance"),
        (("run", "--find_peak_performance=False"), None),
        (("run", "--arranging", "contest01"), None),
    ],
)
def test_commands_that_tell(command: tuple[str, ...], word: str | None) -> None:
    invalid = ours("v6.0_server_summary.txt", *command).invalid
    assert invalid == (f"not a score by its command: {word}" if word else None)


def test_short_runs_are_marked() -> None:
    text = raw("v6.0_offline_summary.txt").replace(b"min_duration (ms): 5000", b"min_duration (ms): 600000")
    assert parse(text).notes == ()
    few = parse(text.replace(b"samples_per_query : 110000", b"samples_per_query : 511"))
    assert few.notes == ("short: 511 samples, the rules want the data set or 24576: here 512",)
    old = raw("v0.5_multistream_summary.txt")
    assert not [n for n in parse(old).notes if n.startswith("short")]
    assert (
        "short: the minimum duration is set to 59 s, the rules want 60 s"
        in parse(old.replace(b"60000", b"59000")).notes
    )


def test_detail_log_that_ends_before_the_verdict() -> None:
    lines = raw("v6.0_singlestream_detail.txt").splitlines(keepends=True)
    line_number = next(n for n, line in enumerate(lines) if b"result_validity" in line)
    with pytest.raises(
        ParseError, match=r"line [0-9]+: expected LoadGen's result_\* records after its settings, got '"
    ):
        parse(b"".join(lines[:line_number]))
    parsed = parse(b"".join(lines[:line_number] + lines[line_number + 1 :]))
    assert parsed.invalid == "no line states whether the result is valid: the log is truncated or damaged"
    cut = parse(b"".join(lines)[:-30])
    assert cut.notes[-1] == "the log ends before its last line"
    assert cut.invalid == "the output is cut: the log ends before its last line"


def test_summary_that_is_cut() -> None:
    text = raw("v6.0_server_summary.txt")
    cut = text[: text.index(b"99.00 percentile") + 40]
    parsed = parse(cut)
    assert find(parsed, "latency_p99") is None
    assert first(parsed, "latency_p97") == pytest.approx(630.933e-6)
    assert parsed.notes == (
        "the log ends before its last line",
        "line 27: the text ends within a line, which is left out",
    )
    assert parsed.invalid == "the output is cut: the log ends before its last line"
    two = parse(text + cut)
    assert two.invalid == "the output is cut: one of its results ends before its last line"
    begun = parse(text + text[: text.index(b"Completed")])
    assert begun.invalid == "the output is cut: the run that begins on line 58 has no figure"
    beheaded = parse(text[text.index(b"Completed") :])
    assert (cases(beheaded), beheaded.invalid) == ({"Server"}, None)
    assert "no line names the scenario: Server judging by the printed figures" in beheaded.notes
    no_verdict = parse(text.replace(b"Result is : VALID\n", b""))
    assert no_verdict.invalid == "no line states whether the result is valid: the log is truncated or damaged"
    with pytest.raises(
        ParseError, match="line 6: expected samples per second or latencies in LoadGen's summary, got 'Mode"
    ):
        parse(text[: text.index(b"Completed")])


def test_figures_that_are_none_or_disagree() -> None:
    text = raw("v6.0_server_summary.txt").replace(
        b"Min latency (ns)                : 118678", b"Min latency (ns) : -9223372036854775808"
    )
    text = text.replace(b"Mean latency (ns)               : 365835", b"Mean latency (ns)               : nan")
    text = text.replace(b"Result is", b"Completed samples per second : 201.5\nResult is")
    parsed = parse(text)
    assert find(parsed, "latency_min") is find(parsed, "latency_mean") is None
    assert first(parsed, "samples_per_second") == 196.71
    assert parsed.notes[:3] == (
        "samples_per_second is printed as 196.71 and as 201.5: the first is kept",
        "latency_min is -9.22337e+18, left out",
        "latency_mean is printed as 'nan', which is not a number",
    )


def test_several_runs_in_one_text() -> None:
    good, bad = raw("v6.0_server_summary.txt"), raw("v6.0_multistream_summary.txt")
    parsed = parse(b"started\n" + bad + b"again\n" + good)
    assert (cases(parsed), parsed.invalid) == ({"Server"}, None)
    assert parsed.notes[0].startswith("MultiStream: a run left out: INVALID: min duration not satisfied")
    twice = parse(good + good)
    assert [m.value for m in twice.measurements if m.metric == "samples_per_second"] == [196.71, 196.71]
    assert "2 runs: repeats of a case have the same names" in twice.notes
    details = parse(raw("v6.0_interactive_detail.txt") + raw("v6.0_singlestream_detail.txt"))
    assert cases(details) == {"Interactive", "SingleStream"}


def test_detail_of_two_processes_mixed() -> None:
    one, two = (raw(f"v6.0_{name}_detail.txt").splitlines() for name in ("interactive", "singlestream"))
    mixed = [line for pair in zip(one, two, strict=False) for line in pair] + one[len(two) :] + two[len(one) :]
    parsed = parse(b"\n".join(b"7: " + line for line in mixed) + b"\n")
    apart = [*ours("v6.0_interactive_detail.txt").measurements, *ours("v6.0_singlestream_detail.txt").measurements]
    assert set(map(str, parsed.measurements)) == set(map(str, apart))


def test_summary_and_records_in_one_output_are_one_run() -> None:
    parsed = ours("v6.0_server_stdout.txt")
    assert (parsed.version, cases(parsed)) == ("6.0.17", {"Server"})
    assert len(set(identities(parsed))) == len(parsed.measurements)
    assert first(parsed, "samples_per_second") == 197.89


def test_report_of_the_endpoints_client() -> None:
    parsed = ours("v6.1_interactive_report.txt")
    assert (parsed.version, cases(parsed)) == ("endpoints-0.1.0", {"Server", "accuracy"})
    assert (first(parsed, "samples_per_second"), first(parsed, "tokens_per_second")) == (41.22, 15420.71)
    assert first(parsed, "ttft_p99") == pytest.approx(0.41103)
    assert first(parsed, "ttft_early_stopping", percentile="99") == pytest.approx(0.42055)
    assert find(parsed, "ttft_early_stopping", percentile="99.9") is None
    assert first(parsed, "latency_mean") == pytest.approx(4.98017)
    assert first(parsed, "duration") == 611.27
    assert (first(parsed, "samples_failed"), first(parsed, "output_tokens_mean")) == (2, 374.09)
    assert first(parsed, "accuracy", dataset="quartz_qa::easy") == 0.7712
    assert first(parsed, "accuracy", dataset="quartz_maths", subset="algebra") == pytest.approx(0.6625)
    assert first(parsed, "accuracy") == pytest.approx(0.6431)
    assert set(parsed.notes) == {
        "accuracy of quartz_maths is incomplete",
        "Server and Interactive cannot be distinguished: the report does not print the latency limits",
        "the report does not state whether the result is valid",
        "2 samples failed",
    }
    assert "Interactive" in cases(ours("v6.1_interactive_report.txt", "cat", "deepseek-r1/Interactive/report.txt"))


def test_report_of_the_endpoints_client_that_is_cut() -> None:
    text = raw("v6.1_interactive_report.txt")
    for until in (b"TPOT:", b"----------------- End of Report", b"  Average: 64.31"):
        cut = parse(text[: text.index(until)])
        assert cut.invalid == "the output is cut: the report ends before its last line"


@pytest.mark.parametrize(
    "line", [b"81.43 (unit=4388, repeats=1)", b"81.43", b"81.43%", b"81.43 (4388/4388 scored)", b"0.8143"]
)
def test_accuracy_of_a_data_set_however_it_is_printed(line: bytes) -> None:
    text = raw("v6.1_interactive_report.txt").replace(
        b"quartz_qa::easy: 0.7712 (unit=800,", b"quartz_qa::easy: " + line + b"\n    ("
    )
    assert first(parse(text), "accuracy", dataset="quartz_qa::easy") == pytest.approx(0.8143)


def test_interrupted_report() -> None:
    parsed = ours("v6.1_offline_interrupted_report.txt")
    assert (parsed.invalid or "").startswith("run was interrupted (SIGTERM/SIGINT)")
    assert cases(parsed) == {"Offline"}
    assert "short: 44.02 s, the rules want 600 s" in parsed.notes


def test_json_of_the_endpoints_client() -> None:
    parsed = ours("v6.1_result_summary.json")
    assert (cases(parsed), parsed.version, parsed.invalid) == ({"SingleStream"}, "endpoints-0.1.0", None)
    assert first(parsed, "latency") == first(parsed, "latency_mean") == pytest.approx(0.17138680175805664)
    assert first(parsed, "latency_early_stopping", percentile="99") == pytest.approx(0.2440199)
    assert first(parsed, "duration") == pytest.approx(702.118340021)
    partial = raw("v6.1_result_summary.json").replace(b'"complete": true', b'"complete": false')
    assert parse(partial).invalid == "the run is not complete: state complete"
    scores = ours("v6.1_accuracy_results.json")
    assert first(scores, "accuracy", dataset="quartz_maths", subset="geometry") == pytest.approx(0.621)


def test_a_line_of_the_harness() -> None:
    parsed = ours("harness_stdout.txt")
    assert (first(parsed, "samples_per_second"), cases(parsed), parsed.invalid) == (1213.08, {"Offline"}, None)
    line = b"Result: early_stopping_latency_ss: 70775, Result is INVALID, 10-min runtime requirement met: False\n"
    short = parse(line)
    assert first(short, "latency") == pytest.approx(70.775e-6)
    assert short.invalid == "INVALID: LoadGen gives no reason"
    assert "short: the harness reports that the run took less than 10 minutes" in short.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "mlperf_inference: expected LoadGen's summary or detail log, accuracy.txt, or a report"),
        (b"Segmentation fault\n", "accuracy.txt, or a report of MLPerf's endpoints client, got 'Segmentation fault'"),
        (
            "v6.0_accuracy_mode_summary.txt",
            "line 2: expected a performance result; this is the summary of an accuracy-mode run",
        ),
        (
            "v6.0_accuracy_mode_detail.txt",
            "expected a performance result; this is a log of an accuracy-mode run, which has none",
        ),
        (
            "v6.0_accuracy_log.json",
            "line 2: expected a result; this is mlperf_log_accuracy.json, the responses of a run",
        ),
        (b"[\n]\n", "expected a result; this is mlperf_log_accuracy.json"),
        (b'{"traceEvents":[\n{"name":"x"}\n]}\n', "line 1: expected a result; this is a trace"),
        ("v0.7_detail.txt", "line 1: expected result_* records; detail logs before LoadGen 1.0 have none"),
        (
            "compliance_verify_performance.txt",
            "line 1: expected a result; this is the verification of a compliance test",
        ),
        ("accuracy_only_hash.txt", "line 1: expected a score beside the hash of a run's responses"),
        (b"Samples per second: 12.5\n", "line 1: expected LoadGen's summary"),
        (b"----- Summary -----\nQPS: N/A\n", "line 2: expected LoadGen's summary"),
    ],
)
def test_what_is_no_result_is_an_error_that_says_so(text: bytes | str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(raw(text) if isinstance(text, str) else text)
    assert message in str(error.value)
