"""Results of clients of LLM servers as machines: loads on the frontier of our own client, under what the user says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleetmark.parsers.published.clients import Client
from tests.commands import refused, run
from tests.parsers.reading import FIXTURES

RUN = {
    "max_concurrency": 48, "completed": 480, "num_prompts": 480, "model_id": "m", "request_throughput": 4.6,
    "output_throughput": 600.0, "median_ttft_ms": 750.0, "median_tpot_ms": 50.0, "total_input_tokens": 480 * 1019,
    "total_output_tokens": 480 * 128,
}  # fmt: skip


def test_a_load_stands_under_the_names_of_our_own_client() -> None:
    table = Client("vllm_bench").read(json.dumps(RUN).encode(), "h200.json")
    figures = {
        (r.measurement.workload, r.measurement.case, r.measurement.metric): r.measurement.value for r in table.rows
    }
    case = "p1024-o128-c48"  # a tokenizer's 1,019 tokens of 1,024
    assert figures["llm_serve", case, "output_tokens_per_second"] == 600
    assert figures["llm_serve", case, "interactivity"] == pytest.approx(20)
    assert figures["llm_serve", case, "ttft_p50"] == 0.75
    assert list(table.machines) == ["h200.json"] and not any(r.invalid for r in table.rows)


def test_a_run_that_failed_is_kept_and_not_compared() -> None:
    table = Client("vllm_bench").read(json.dumps({**RUN, "completed": 400}).encode(), "x")
    assert {r.invalid for r in table.rows} == {"80 of 480 requests failed"}


@pytest.mark.parametrize(("tool", "file"), [("aiperf", "schema_1_4.json"), ("sglang_bench", "schema.jsonl")])
def test_others_are_read_by_their_own_definitions(tool: str, file: str) -> None:
    assert Client(tool).read((FIXTURES / tool / file).read_bytes(), "x").rows


def test_files_of_one_machine_make_its_frontier_for_each_gpu(tmp_path: Path) -> None:
    for name, gpus in (("old", 8), ("new", 4)):
        for streams, more in ((48, 1.0), (96, 1.5)):
            file = tmp_path / f"{name}{streams}.json"
            load = {"max_concurrency": streams, "output_throughput": 600 * more, "median_tpot_ms": 50 * more**2}
            file.write_text(json.dumps({**RUN, **load, "date": name}))
            words = ("--name", f"{name}-a", "--label", f"gen={name}", "--label", f"gpus={gpus}")
            run(tmp_path, "import", "vllm_bench", str(file), *words)
    doc = json.loads(run(tmp_path, "compare", "-b", "gen=old", "-c", "gen=new", "--per", "gpu", "--format", "json"))
    (family,) = doc["frontiers"]
    assert {(p["side"], p["work"]) for p in family["loads"]} == {
        ("old", 75),
        ("old", 112.5),
        ("new", 150),
        ("new", 225),
    }
    assert [e["ratio"] for e in family["equal_service"]] == [pytest.approx(2.0), None, None]
    ratios = {r["benchmark"]: float(r["ratio"]) for r in doc["rows"] if "output_tokens" in r["benchmark"]}
    assert list(ratios.values()) == [pytest.approx(1.0)] * 2  # equally fast with 48 and with 96 concurrent requests
    assert doc["answer"]["sentence"].startswith("At 20 tokens/s per user, one new accelerator replaces 2.00 old ")


@pytest.mark.parametrize(
    ("label", "words"), [("gen", "write NAME=VALUE"), ("host=x", "write NAME=VALUE"), ("=3", "write NAME")]
)
def test_what_is_no_label_is_refused(tmp_path: Path, label: str, words: str) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps(RUN))
    assert words in refused(tmp_path, "import", "vllm_bench", str(file), "--label", label)
