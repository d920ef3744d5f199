"""``fleetmark predict serve``: its document in all formats, recorded rates of a machine, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Gpu
from fleetmark.planner.predict.serving.chips import USUAL
from tests.commands import refused, run
from tests.records import Bench, record
from tests.schedules import facts

GPT = ("predict", "serve", "--model", "gpt-oss-120b", "--precision", "fp4")
MEMORY = Bench("torch_ops", "basic-4096t-b32/roof/memory", "memory_rate", "B/s", "higher", "mem-bw")
PRODUCTS = Bench("torch_ops", "basic-4096t-b32/roof/bf16", "peak", "FLOP/s", "higher", "gpu-compute")
BUS = Bench("nccl_tests", "all_reduce-float-1h", "peak_busbw", "B/s", "higher", "collective")
GATHER = Bench("nccl_tests", "all_gather-float-1h", "peak_busbw", "B/s", "higher", "collective")


def section(document: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the rows of a section's tables."""
    exhibits = next(s for s in document["sections"] if s["key"] == key)["exhibits"]
    return [row for exhibit in exhibits for row in exhibit.get("rows", ())]


def test_two_chips_are_ranked_and_say_how_sure_they_are(tmp_path: Path) -> None:
    shown = run(tmp_path, *GPT, "--chip", "H200", "--chip", "B200", "--engine", "vllm", "--speed", "50")
    text = " ".join(shown.split())
    assert text.startswith("At 50 tokens/s for each user, B200 serves most: ")
    assert "(90% interval " in text and "This misses the target of 15%." in text
    document = json.loads(run(tmp_path, *GPT, "--chip", "H200", "--tp", "1", "--engine", "vllm", "--format", "json"))
    loads = section(document, "loads")
    assert [row["streams"] for row in loads] == sorted((row["streams"] for row in loads), reverse=True)
    assert all(row["tpot_lo"] < row["tpot"] < row["tpot_hi"] for row in loads)


def test_recorded_rates_replace_the_sheet(tmp_path: Path) -> None:
    measured = {MEMORY: 2.5e12, PRODUCTS: 6e14, BUS: 4e11, GATHER: 5e11}
    archive = record(tmp_path, "c", {"g1": {}}, {("g1", bench): [rate] for bench, rate in measured.items()})
    archive.save_facts("g1", facts(gpus=(Gpu(index=0, vendor="NVIDIA", name="NVIDIA H200"),)), {})
    document = json.loads(run(tmp_path, *GPT, "-m", "host=g1", "--engine", "vllm", "--format", "json"))
    (chip,) = section(document, "chips")
    assert chip["memory"] == pytest.approx(2.5e12 / USUAL["memory"])
    assert chip["bf16"] == pytest.approx(6e14 / USUAL["products"])
    assert chip["link"] == pytest.approx(4e11 / USUAL["bus"])  # of the all-reduce
    assert "measured, divided by the usual share of the data sheet value: memory, products, link" in chip["source"]


def test_a_model_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(
        "{layers: 32, hidden: 4096, heads: 32, kv_heads: 8, head_size: 128, vocabulary: 128256, feedforward: 14336}"
    )
    words = ("predict", "serve", "--chip", "H100", "--precision", "bf16", "--tp", "1", "--format", "json")
    assert (
        json.loads(run(tmp_path, *words, "--model", str(path)))["sections"]
        == (json.loads(run(tmp_path, *words, "--model", "llama-3.1-8b"))["sections"])
    )


def test_what_limits_a_prediction_is_said(tmp_path: Path) -> None:
    words = ("--chip", "L40S", "--streams", "256", "--precision", "bf16", "--model", "llama-3.1-8b", "--prompt", "64")
    text = " ".join(run(tmp_path, "predict", "serve", *words, "--answer", "64").split())
    assert "L40S: the link between GPUs is not known, so only one GPU is predicted." in text
    assert "Efficiencies were fitted to 4 to 128 streams; other loads are extrapolated." in text
    assert "No engine is selected, so intervals are wide" in text and "Power is only" not in text
    text = " ".join(run(tmp_path, *GPT, "--chip", "H200", "--speed", "9000", "--watts", "1500").split())
    assert text.startswith("No load gives each user 9000 tokens/s.") and "Power is only" not in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (GPT, "no chip; give --chip"),
        ((*GPT, "--chip", "Z80"), "no data sheet of it"),
        ((*GPT, "--chip", "H200", "--chip", "H200"), "given twice"),
        ((*GPT, "--chip", "H200", "--engine", "vlm"), "no calibration points; use one of atom, sglang, trt, vllm"),
        ((*GPT, "--chip", "H200", "--tp", "3"), "--tp must divide the 64 heads"),
        ((*GPT, "--chip", "L40S", "--tp", "2"), "the link between its GPUs is not known"),
        ((*GPT[:-1], "int4", "--chip", "H200"), "allowed are bf16, fp8, fp4"),
        (("predict", "serve", "--model", "gpt-oss-12b", "--chip", "H200"), "did you mean gpt-oss-120b?"),
        (("predict", "serve", "--model", "deepseek-r1", "--chip", "H100", "--tp", "8"), "needs 84 GB of weights"),
    ],
)
def test_what_cannot_be_predicted_is_refused(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refused(tmp_path, *words)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("config.json", "{", "not JSON"),
        ("config.json", "[1]", "not a mapping"),
        ("m.yml", "{layers: 2}", "hidden is missing"),
    ],
)
def test_a_damaged_file_of_a_model_is_refused(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    (tmp_path / name).write_text(content)
    assert sentence in refused(tmp_path, "predict", "serve", "--model", str(tmp_path / name), "--chip", "H200")


def test_machines_without_an_accelerator_are_refused(tmp_path: Path) -> None:
    record(tmp_path, "c", {"g1": {}}, {("g1", MEMORY): [1e10]})
    assert "must name one kind of accelerator" in refused(tmp_path, *GPT, "-m", "host=g1")
