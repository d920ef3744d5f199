"""Benchmarks of LLM servers: each tool's figures under our definitions, from the corpus and from its published schema.

sglang_bench, aiperf, inferencex and trtllm_bench's report have no output in the corpus: their fixtures are written by
hand after the public source, and show names and units, not real figures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from tests import corpus
from tests.parsers.reading import FIXTURES, cases, read

SCHEMAS = ("sglang_bench", "aiperf", "inferencex")


def figure(parsed: Parsed, metric: str, case: str | None = None) -> float:
    (only,) = {m.value for m in parsed.measurements if m.metric == metric and case in (None, m.case)}
    return only


@pytest.mark.parametrize(("path", "row"), corpus.rows("vllm_bench"))
def test_vllm_against_the_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse("vllm_bench", path.read_bytes())
    ours = {
        "output_throughput_tokps": ("output_tokens_per_second", 1.0),
        "output_throughput": ("output_tokens_per_second", 1.0),
        "request_throughput_rps": ("requests_per_second", 1.0),
        "request_throughput": ("requests_per_second", 1.0),
        "p99_ttft_s": ("ttft_p99", 1.0),
        "p99_ttft_ms": ("ttft_p99", 1e3),
        "median_tpot_ms": ("tpot_p50", 1e3),
        "first.score_ms": ("ttft_p50", 1e3),
    }
    for name, expected in row["expected"].items():
        if name in ours:
            metric, factor = ours[name]
            first = next(m for m in parsed.measurements if m.metric == metric)
            assert first.value * factor == pytest.approx(expected), name
        elif name in ("completed", "failed"):
            requests, share = figure(parsed, "requests"), figure(parsed, "failures")
            assert requests * (share if name == "failed" else 1 - share) == expected
    assert parsed.invalid == ("20 of 20 requests failed" if "all_failed" in path.name else None)


@pytest.mark.parametrize(("path", "row"), corpus.rows("guidellm"))
def test_guidellms_names_are_not_vllms(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse("guidellm", path.read_bytes())
    assert figure(parsed, "tpot_p50") == pytest.approx(6.970036414361769e-3)  # its inter_token_latency_ms
    assert figure(parsed, "token_mean_p50") == pytest.approx(8.052095770835876e-3)  # its time_per_output_token_ms
    assert figure(parsed, "e2e_mean") == pytest.approx(0.2907812595367431)
    # A request's time by its tokens is the first token's wait and the gaps together: that the definitions are these.
    together = (figure(parsed, "ttft_mean") + 31 * figure(parsed, "tpot_mean")) / 32
    assert figure(parsed, "token_mean_mean") == pytest.approx(together, rel=1e-3)
    assert cases(parsed) == {"concurrent c4"} and parsed.version == "0.8.1" and parsed.invalid is None


@pytest.mark.parametrize(("path", "row"), corpus.rows("trtllm_bench"))
def test_trtllm_bench_against_the_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse("trtllm_bench", path.read_bytes())
    expected = row["expected"]
    assert figure(parsed, "output_tokens_per_second") == expected["total_output_tokps"]
    assert figure(parsed, "ttft_mean") * 1e3 == pytest.approx(expected["ttft_ms"])
    assert figure(parsed, "requests_per_second") == expected["request_rps"]
    assert figure(parsed, "tpot_p99") == pytest.approx(0.2065821) and figure(parsed, "accelerators") == 1


@pytest.mark.parametrize(("path", "row"), corpus.rows("llama_bench"))
def test_llama_bench_against_the_corpus(path: Path, row: dict[str, Any]) -> None:
    parsed = parsers.parse("llama_bench", path.read_bytes())
    last, expected = parsed.measurements[-1], row["expected"]
    assert last.value == expected["last.avg_ts"]
    assert last.labels["model"] == expected.get("last.model", last.labels["model"])
    assert last.case == f"tg{expected['last.n_gen']}" if "last.n_gen" in expected else f"pp{expected['last.n_prompt']}"


def test_sglang_has_vllms_definitions() -> None:
    parsed = read("sglang_bench", "schema.jsonl")
    assert cases(parsed) == {"c64r4", "c64r8"}
    assert figure(parsed, "output_tokens_per_second", "c64r8") == 1800.5
    assert figure(parsed, "ttft_p50", "c64r4") == pytest.approx(0.09825)
    assert figure(parsed, "e2e_p99", "c64r4") == pytest.approx(6.00075)


def test_aiperfs_inter_token_latency_is_our_tpot() -> None:
    parsed = read("aiperf", "schema.json")
    assert cases(parsed) == {"c16"}
    assert figure(parsed, "tpot_p50") == pytest.approx(0.0159) and figure(parsed, "itl_p99") == pytest.approx(0.0403)
    assert figure(parsed, "interactivity") == pytest.approx(1 / 0.0159)
    assert figure(parsed, "failures") == pytest.approx(1 / 301)


def test_sglangs_failures_stand_among_its_details() -> None:
    parsed = read("sglang_bench", "details_schema.jsonl")
    assert cases(parsed) == {"r4"} and figure(parsed, "failures") == 0.25
    assert parsed.invalid == "1 of 4 requests failed" and parsed.notes == ()
    assert {m.labels["model"] for m in parsed.measurements} == {"meta-llama/Llama-3.1-8B"}
    assert "the number of failed requests is missing" in read("sglang_bench", "schema.jsonl").notes[0]


def test_aiperfs_newer_settings_are_of_phases() -> None:
    parsed = read("aiperf", "schema_1_4.json")
    assert cases(parsed) == {"c64r8"} and parsed.version == "0.13.0"
    assert {m.labels["model"] for m in parsed.measurements} == {"llama-3.1-8b"}


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ({"was_cancelled": True}, "the run was cancelled"),
        ({"is_complete": False, "incomplete_reason": "no\nrecords"}, "the run degraded before its end: no records"),
        ({"is_complete": False, "incomplete_reason": 3}, "the run degraded before its end"),
        ({"is_complete": None}, None),
    ],
)
def test_an_aiperf_run_that_did_not_end_does_not_count(ending: dict[str, Any], reason: str | None) -> None:
    doc = json.loads((FIXTURES / "aiperf" / "schema_1_4.json").read_text())
    assert (
        parsers.parse("aiperf", json.dumps({**doc, **ending, "error_request_count": None}).encode()).invalid == reason
    )


def test_inferencex_counts_answers_per_decode_gpu_where_prefill_is_apart() -> None:
    """4 GPUs of prefill and 8 of decode answer 12,000 tokens a second, whichever GPUs a point shares them out over."""
    parsed = read("inferencex", "agg_disagg_schema.json")
    for case in ("p1024-o1024-c512", "p1024-o1024-c1024"):
        assert figure(parsed, "output_tokens_per_second", case) == 12_000
        assert figure(parsed, "accelerators", case) == 12
    assert figure(parsed, "accelerator_power", "p1024-o1024-c1024") == 10_800
    points = json.loads((FIXTURES / "inferencex" / "agg_disagg_schema.json").read_text())
    roles, newer = points[0], points[1]
    del roles["input_tput_per_gpu"], newer["output_tput_per_decode_gpu"]
    newer["power_valid"] = 0
    parsed = parsers.parse("inferencex", json.dumps(points).encode())
    assert {m.value for m in parsed.measurements if m.metric == "output_tokens_per_second"} == {12_000}
    assert not [m for m in parsed.measurements if m.metric == "accelerator_power"]
    roles |= {"disagg": False, "is_multinode": "false", "tp": 8}
    parsed = parsers.parse("inferencex", json.dumps([roles]).encode())
    assert figure(parsed, "output_tokens_per_second") == 12_000 and figure(parsed, "accelerators") == 8


def test_inferencex_is_per_gpu_and_in_seconds() -> None:
    parsed = read("inferencex", "agg_schema.json")
    assert cases(parsed) == {"p1024-o1024-c64", "p1024-o1024-c128"}
    assert figure(parsed, "output_tokens_per_second", "p1024-o1024-c64") == pytest.approx(4 * 2600.25)
    assert figure(parsed, "interactivity", "p1024-o1024-c128") == 125.0
    assert figure(parsed, "ttft_p50", "p1024-o1024-c64") == 0.18


def test_inferencex_counts_the_gpus_of_a_pipeline() -> None:
    """Tensor, pipeline and prefill-context parallelism take GPUs of their own; expert and decode-context share them."""
    point = json.loads((FIXTURES / "inferencex" / "agg_schema.json").read_text())[0]
    parallel = {"tp": 4, "pp": 2, "pcp_size": 3, "dcp_size": 2, "ep": 8}
    parsed = parsers.parse("inferencex", json.dumps({**point, **parallel}).encode())
    assert figure(parsed, "accelerators") == 24
    assert figure(parsed, "output_tokens_per_second") == pytest.approx(24 * 2600.25)


def test_inferencex_has_points_of_replayed_traces() -> None:
    spread = {"mean": 0.02, "p50": 0.01, "p90": 0.04}
    latency = {"ttft": {"p50": 0.4}, "e2el": {"p90": 9.0}, "itl": spread, "tpot": spread, "intvty": {"p50": 100.0}}
    throughput = {"per_gpu": {"total_tput_tps": 900.0, "output_tput_tps": 50.0, "input_tput_tps": 850.0}}
    point = {
        "hw": "b200", "framework": "vllm", "conc": 16, "num_gpus": 8, "tp": 8, "scenario_type": "agentic-coding",
        "is_multinode": False, "disagg": False, "request_metrics": {"latency": latency, "throughput": throughput},
    }  # fmt: skip
    parsed = parsers.parse("inferencex", json.dumps(point).encode())
    assert cases(parsed) == {"agentic-coding-c16"}
    assert {m.metric: m.value for m in parsed.measurements} == {
        "accelerators": 8, "interactivity": 100.0, "output_tokens_per_second": 400.0, "ttft_p50": 0.4, "e2e_p90": 9.0,
        "tpot_mean": 0.02, "tpot_p50": 0.01, "tpot_p90": 0.04,
    }  # fmt: skip
    with pytest.raises(ParseError):
        parsers.parse("inferencex", json.dumps({**point, "request_metrics": {"throughput": {"per_gpu": 7}}}).encode())


def test_inferencex_says_which_points_failed() -> None:
    points = json.loads((FIXTURES / "inferencex" / "agg_schema.json").read_text())
    points[1]["benchmark_outcome"] = {"status": "failed", "requested": 1280, "completed": 1100}
    parsed = parsers.parse("inferencex", json.dumps(points).encode())
    assert parsed.invalid == "p1024-o1024-c128: its run failed: 1100 of 1280 requests were answered"
    assert parsed.invalid_cases == ("p1024-o1024-c128",)


def test_trtllm_benchs_report_in_json() -> None:
    parsed = read("trtllm_bench", "report_schema.json")
    assert figure(parsed, "tpot_p99") == pytest.approx(0.0175) and figure(parsed, "ttft_p90") == pytest.approx(0.0605)


@pytest.mark.parametrize(
    "tool",
    ["vllm_bench", "sglang_bench", "guidellm", "aiperf", "llama_bench", "trtllm_bench", "inferencex", "llm_serve"],
)
@pytest.mark.parametrize("raw", [b"", b"{}\n", b"[]", b'{"a": 1', b"nothing of the kind\n", b'{"benchmarks": [{}]}'])
def test_what_holds_no_result_is_refused(tool: str, raw: bytes) -> None:
    with pytest.raises(ParseError):
        parsers.parse(tool, raw)


# --- our own client --------------------------------------------------------------------------------------------------


def test_our_runs_against_the_server_of_llama_cpp() -> None:
    """A random model of 27 M parameters, 8 slots; for TPOT its log had what the client had, within 0.2% (median)."""
    parsed = read("llm_serve", "llama_cpp.jsonl")
    assert cases(parsed) == {"c1", "c4"} and parsed.invalid is None
    assert figure(parsed, "output_tokens", "c1") == 64 and figure(parsed, "failures", "c4") == 0
    assert figure(parsed, "tpot_p50", "c1") == pytest.approx(0.0153, rel=0.01)
    assert figure(parsed, "itl_mean", "c1") == figure(parsed, "tpot_mean", "c1")  # a piece is a token


def test_our_check_of_answers_against_the_server_of_llama_cpp() -> None:
    """Two random models of 0.4 M parameters, one with noise on its weights; the server repeats no prompt (no echo)."""
    equal_weights, noisy_weights = (read("llm_serve", f"llama_cpp_{name}_weights.jsonl") for name in ("same", "other"))
    assert (
        equal_weights.invalid is None
        and figure(equal_weights, "logprob_difference") == 0
        and figure(equal_weights, "top1_agreement") == 1
    )
    assert figure(noisy_weights, "logprob_difference") == pytest.approx(0.648, abs=5e-4)
    assert (noisy_weights.invalid or "").startswith("before the runs the answers are not those of the reference: ")
    for parsed, requests in ((equal_weights, 202), (noisy_weights, 267)):
        counted = [figure(parsed, metric) for metric in ("requests", "failures", "output_tokens")]
        assert counted == [requests, 0, 32]
        assert figure(parsed, "cached_prompt") < 0.003  # this server had run the same load before


def test_our_runs_against_transformers_serve() -> None:
    """It refuses ignore_eos and sends words, not tokens. Expected: from the times of its two requests."""
    parsed = read("llm_serve", "transformers_serve.jsonl")
    assert parsed.invalid is None and figure(parsed, "requests") == 2
    assert figure(parsed, "ttft_p50") == pytest.approx(3514.284412454 - 3508.881306124)
    assert figure(parsed, "tpot_p50") == pytest.approx((3517.08812993 - 3514.284412454) / 31)
    assert not [m for m in parsed.measurements if m.metric == "itl_p50"]  # a piece is no token
    assert "c2: the server sends 1.44 tokens per piece: gaps are between pieces (piece_gap), not tokens" in parsed.notes


def test_our_own_runs() -> None:
    parsed = read("llm_serve", "closed_and_open.jsonl")
    assert cases(parsed) == {"c1", "c8", "r4"} and parsed.invalid is None
    assert figure(parsed, "interactivity", "c8") == pytest.approx(1 / figure(parsed, "tpot_p50", "c8"))
    assert figure(parsed, "accelerators", "c1") == 2
    assert {m.labels["model"] for m in parsed.measurements} == {"tiny"}


def test_the_last_run_of_a_search_counts() -> None:
    parsed = read("llm_serve", "goodput.jsonl")
    assert cases(parsed) == {"goodput"} and parsed.invalid is None
    assert figure(parsed, "ttft_p99") <= 0.2 and figure(parsed, "tpot_p99") <= 0.05
    metrics = {m.metric for m in parsed.measurements}
    assert "piece_gap_p50" in metrics and "itl_p50" not in metrics


def test_targets_that_are_not_kept_and_runs_that_fail() -> None:
    assert "are not kept at" in (read("llm_serve", "not_kept.jsonl").invalid or "")
    failed = read("llm_serve", "half_failed.jsonl")
    assert "HTTP 500, broken indeed" in (failed.invalid or "")
    assert not [m for m in failed.measurements if m.metric == "ttft_p99"]


def test_a_window_in_which_nothing_came_has_no_rate() -> None:
    run = {"run": "closed", "concurrency": 1, "requests": 1, "answered": 1, "output_tokens_per_second": 0.0}
    raw = "".join(json.dumps(doc) + "\n" for doc in ({"llm_serve": 1}, run, {"end": True}))
    assert "output_tokens_per_second" not in {m.metric for m in parsers.parse("llm_serve", raw.encode()).measurements}


@pytest.mark.parametrize(
    ("tool", "doc"),
    [
        ("aiperf", {"request_latency": {"unit": "ms"}}),
        ("vllm_bench", {"output_throughput": None, "request_throughput": None}),
        ("sglang_bench", {"output_throughput": None, "request_throughput": None}),
        ("trtllm_bench", {"performance": {"system_output_throughput_tok_s": "x"}}),
        ("trtllm_bench", {"performance": {"system_output_throughput_tok_s": -1}}),
    ],
)
def test_a_result_without_figures_is_none(tool: str, doc: dict[str, Any]) -> None:
    with pytest.raises(ParseError, match=tool):
        parsers.parse(tool, json.dumps(doc).encode())


def test_counts_that_cannot_be_are_left_out() -> None:
    doc = {"output_throughput": 1, "request_throughput": 1, "completed": -1, "failed": 3}
    metrics = {m.metric for m in parsers.parse("vllm_bench", json.dumps(doc).encode()).measurements}
    assert metrics == {"output_tokens_per_second", "requests_per_second"}
    point = {
        "hw": "x",
        "tput_per_gpu": 1,
        "output_tput_per_gpu": 5,
        "num_prefill_gpu": -1,
        "num_decode_gpu": 4,
        "tp": 8,
    }
    assert read_counts(point) == 8


def read_counts(point: dict[str, Any]) -> float:
    (count,) = (
        m.value
        for m in parsers.parse("inferencex", json.dumps(point).encode()).measurements
        if m.metric == "accelerators"
    )
    return count
