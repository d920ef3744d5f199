"""Test the roofline of LLM serving by hand-worked cases, the queue by its limits, and the fit by points of known origin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from benchmarks.predict.serving import points_of, table, typical
from fleetmark.base.errors import FleetmarkError
from fleetmark.planner.predict.serving import fit as fitting
from fleetmark.planner.predict.serving.architecture import Architecture, known, read
from fleetmark.planner.predict.serving.calibration import LEVEL, METRICS, Calibration, shipped
from fleetmark.planner.predict.serving.chips import USUAL, from_sheet, generation, measured
from fleetmark.planner.predict.serving.frontier import Question, best, loads, most_streams, operators
from fleetmark.planner.predict.serving.queue import service
from fleetmark.planner.predict.serving.roofline import (
    OPERATORS,
    Chip,
    Efficiency,
    Layout,
    by_operator,
    memory_needed,
    seconds,
    step,
)

CHIP = Chip(name="c", generation="g", memory=1e12, dense={"bf16": 1e15}, link=1e11, size=1e11)
SMALL = Architecture(
    name="m", layers=2, hidden=8, heads=4, kv_heads=2, head_size=2, vocabulary=10, feedforward=16, source="here"
)
PERFECT = Efficiency(
    compute=dict.fromkeys(OPERATORS, 1.0),
    traffic=dict.fromkeys(OPERATORS, 1.0),
    wire=1.0,
    launch=0.0,
    collective=0.0,
    step=0.0,
    overlap=1.0,
    waiting=1.0,
    prefill=0.0,
)


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [
        ("llama-3.1-8b", 8.03, 8.03),
        ("llama-3.3-70b", 70.6, 70.6),
        ("llama-3.1-405b", 405.9, 405.9),
        ("qwen3-235b-a22b", 235.1, 22.2),
        ("mixtral-8x7b", 46.7, 12.9),
        ("gpt-oss-120b", 116.8, 5.7),
        ("deepseek-r1", 671.0, 37.6),
    ],
)
def test_public_architectures_have_the_parameters_that_their_makers_state(
    name: str, billions: float, active: float
) -> None:
    model = known()[name]
    assert model.weights() == pytest.approx(billions * 1e9, rel=0.01)
    used = model.dense_weights() + 2.0 * model.vocabulary * model.hidden
    used += model.expert_layers() * model.active_experts * model.expert_weights()
    assert used == pytest.approx(active * 1e9, rel=0.03)
    assert model.source.startswith("https://")


def test_a_decode_step_reads_weights_and_cache_once() -> None:
    # Attention: 8 x 2 x (2 x 4 + 2 x 2) = 192; dense: 3 x 8 x 16 = 384; two layers: 1,152 weights of 2 bytes.
    work = step(SMALL, CHIP, "bf16", Layout(), streams=3, tokens=1, context=100)
    assert work.traffic["projections"] == pytest.approx(1152 * 2 / 1e12)
    assert work.compute["projections"] == pytest.approx(2 * 1152 * 3 / 1e15)
    # Cache: 3 streams x 100 tokens x 2 layers x 2 x 2 x 2 values of 2 bytes; each new token meets 100 cached ones.
    assert work.traffic["attention"] == pytest.approx(3 * 100 * 2 * 8 * 2 / 1e12)
    assert work.compute["attention"] == pytest.approx(4 * 2 * 4 * 2 * 100 * 3 / 1e15)
    assert work.traffic["experts"] == work.wire == work.collectives == 0
    assert seconds(work, PERFECT) == pytest.approx(sum(work.traffic.values()))


def test_tensor_parallelism_splits_the_work_and_adds_collectives() -> None:
    alone = step(SMALL, CHIP, "bf16", Layout(), streams=4, tokens=1, context=10)
    split = step(SMALL, CHIP, "bf16", Layout(4), streams=4, tokens=1, context=10)
    assert split.traffic["projections"] == pytest.approx(alone.traffic["projections"] / 4)
    assert split.traffic["attention"] == pytest.approx(alone.traffic["attention"] / 2)  # two KV heads
    # Two all-reduces a layer; a ring moves 2 x 3/4 of 4 tokens x 8 values x 2 bytes.
    assert split.collectives == 4 and split.wire == pytest.approx(4 * 1.5 * 4 * 8 * 2 / 1e11)
    pairs = replace(CHIP, is_switched=False)
    assert step(SMALL, pairs, "bf16", Layout(4), streams=4, tokens=1, context=10).wire == pytest.approx(split.wire / 3)
    replicas = step(SMALL, CHIP, "bf16", Layout(1, 4), streams=4, tokens=1, context=10)
    assert replicas.traffic["projections"] == pytest.approx(alone.traffic["projections"])
    assert replicas.traffic["attention"] == pytest.approx(alone.traffic["attention"] / 4)


def test_experts_are_read_if_a_token_needs_them() -> None:
    model = replace(SMALL, experts=8, active_experts=2, expert_feedforward=4)
    one = step(model, CHIP, "fp4", Layout(), streams=1, tokens=1, context=10)
    many = step(model, CHIP, "fp4", Layout(), streams=1000, tokens=1, context=10)
    expert = 2 * 3 * 8 * 4 * 0.53125 / 1e12
    assert one.traffic["experts"] == pytest.approx(2 * expert)
    assert many.traffic["experts"] == pytest.approx(8 * expert)
    assert many.compute["experts"] == pytest.approx(2 * 2 * 2 * 3 * 8 * 4 * 1000 / 1e15)


def test_windows_and_latent_attention_shrink_the_cache() -> None:
    near = replace(SMALL, window=10, windowed=0.5)
    assert near.seen(100) == 55 and near.seen(4) == 4
    deep = known()["deepseek-r1"]
    assert deep.cache_values() == 576 and known()["llama-3.1-8b"].cache_values() == 2048


def test_a_chip_without_few_bits_widens_weights() -> None:
    assert CHIP.rate("fp4") == CHIP.rate("bf16") == 1e15
    fast = replace(CHIP, dense={"bf16": 1e15, "fp8": 2e15})
    assert fast.rate("fp4") == 2e15
    kept = replace(SMALL, quantised="experts")
    assert memory_needed(kept, "fp4", Layout()) == memory_needed(kept, "bf16", Layout())
    assert memory_needed(SMALL, "fp8", Layout()) < memory_needed(SMALL, "bf16", Layout())


def test_times_by_operator_are_the_longer_of_both_over_their_efficiency() -> None:
    work = step(SMALL, CHIP, "bf16", Layout(2), streams=2, tokens=1, context=10)
    e = replace(PERFECT, traffic={**PERFECT.traffic, "head": 0.5}, launch=1e-6, collective=2e-6, step=3e-6)
    times = by_operator(work, e)
    assert times["head"] == pytest.approx(work.traffic["head"] / 0.5)
    assert times["collectives"] == pytest.approx(4 * 2e-6 + work.wire)
    assert times["launches"] == pytest.approx(2 * 1e-6 + 3e-6)


def test_the_queue_alone_and_crowded() -> None:
    one = service(0.1, 0.01, 1, 100, PERFECT)
    assert one.tpot == pytest.approx(0.01)  # nobody else's prompt delays it
    assert 0.1 < one.ttft < 0.1 + 0.01 + 0.1
    many = service(0.1, 0.01, 51, 100, PERFECT)
    assert many.tpot == pytest.approx(0.01 + 50 * 0.1 / 100)
    assert many.ttft > one.ttft and many.rate < one.rate
    assert many.rate == pytest.approx(100 / (many.ttft + 99 * many.tpot))


def test_memory_limits_the_streams() -> None:
    question = Question(model=known()["deepseek-r1"], precision="fp8", prompt=1000, answer=1000, software="sglang")
    assert most_streams(question, from_sheet("H100"), Layout(8)) == 0  # 84 GB of weights on 80 GB
    h200 = from_sheet("H200")
    limit = most_streams(question, h200, Layout(8))
    each = 61 * 576 * 2000 * 2.0
    assert limit == pytest.approx((0.9 * 141e9 - memory_needed(question.model, "fp8", Layout(8))) / each)
    assert most_streams(question, replace(h200, size=0.0), Layout(8)) == math.inf
    assert list(loads(question, from_sheet("H100"), [Layout(8)], shipped())) == []


def test_a_frontier_trades_rate_for_speed_and_has_intervals() -> None:
    question = Question(model=known()["gpt-oss-120b"], precision="fp4", prompt=1024, answer=1024, software="vllm")
    every = list(loads(question, from_sheet("H200"), [Layout(1), Layout(8)], shipped()))
    front = best(every)
    assert 1 < len(front) <= len(every)
    assert all(a.speed.value < b.speed.value and a.rate.value > b.rate.value for a, b in pairwise(front))
    one = front[0]
    assert one.ttft.lo < one.ttft.value < one.ttft.hi and one.speed.lo < one.speed.value < one.speed.hi
    assert one.per_megawatt and one.per_megawatt.value == pytest.approx(one.rate.value * 1e6 / 700)
    other = next(loads(replace(question, software=""), from_sheet("H200"), [Layout(1)], shipped()))
    assert other.rate.hi / other.rate.lo > one.rate.hi / one.rate.lo  # no engine: wider
    for listed in operators(question, from_sheet("H200"), one, shipped()).values():
        shares = [t for t in listed if t.share]
        assert [t.operator for t in shares] == ["projections", "experts", "attention", "head"]
        assert all(t.predicted == pytest.approx(t.least / t.share) for t in shares if t.share)


def test_chips_of_sheets_and_of_measurements() -> None:
    h100, mi300x = from_sheet("h100"), from_sheet("AMD Instinct MI300X")
    assert (h100.memory, h100.link, h100.size, h100.watts) == (3.35e12, 450e9, 80e9, 700)
    assert mi300x.wire(8) == pytest.approx(7 * 64e9) and h100.wire(2) == h100.wire(8)
    assert [generation(n) for n in ("B200", "NVIDIA H20", "MI325X", "MI355X", "x")] == [
        "Blackwell",
        "Hopper",
        "CDNA 3",
        "CDNA 4",
        "x",
    ]
    rates = {"bf16": USUAL["products"] * 989.5e12, "memory": 0.5 * USUAL["memory"] * 3.35e12, "pair": 200e9}
    slow = measured(h100, rates)
    assert slow.dense == pytest.approx(h100.dense) and slow.memory == pytest.approx(h100.memory / 2)
    assert slow.link == pytest.approx(200e9 / USUAL["pair"]) and slow.source["memory"] == "measured"
    assert measured(mi300x, {"bus": 300e9}).wire(4) == pytest.approx(300e9 / USUAL["bus"])
    with pytest.raises(FleetmarkError, match=r"--chip 'Z80': no data sheet"):
        from_sheet("Z80")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"heads": None}, "heads is missing"),
        ({"layers": 1e12}, "layers must be a number from 0"),
        ({"layers": 1.5}, "whole number, got 1.5"),
        ({"layers": True}, "got True"),
        ({"wings": 2}, "unknown key 'wings'"),
        ({"experts": 4}, "active_experts is missing"),
        ({"experts": 4, "active_experts": 5, "expert_feedforward": 8}, "active_experts is larger"),
        ({"quantised": "some"}, "quantised must be all or experts"),
        ({"windowed": 2}, "share of the layers"),
    ],
)
def test_a_faulty_architecture_is_refused_with_its_key(change: dict[str, Any], sentence: str) -> None:
    good = {"layers": 2, "hidden": 8, "heads": 4, "kv_heads": 2, "head_size": 2, "vocabulary": 10, "feedforward": 16}
    assert read(good, "m.yml").weights() == SMALL.weights()
    with pytest.raises(FleetmarkError, match=sentence):
        read({k: v for k, v in {**good, **change}.items() if v is not None}, "m.yml")


def test_a_configuration_of_hugging_face_is_read() -> None:
    config = {
        "num_hidden_layers": 36,
        "hidden_size": 2880,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 201088,
        "intermediate_size": 2880,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"] * 18,
    }
    model = read(config, "gpt/config.json")
    assert model.name == "gpt" and model.weights() == known()["gpt-oss-120b"].weights() and model.windowed == 0.5
    plain = read(
        {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, "vocab_size": 10, "intermediate_size": 16},
        "m/config.json",
    )
    assert (plain.kv_heads, plain.head_size) == (4, 2)


# --- the fit, on points that a known calibration made ---------------------------------------------------------------


def documents(factors: Sequence[float] = (1, 1, 1, 1)) -> list[dict[str, Any]]:
    """Return InferenceX documents of four chips as the shipped calibration predicts them; ``factors``: on their times."""
    rows = []
    for hw, factor in zip(("h100", "h200", "mi300x", "mi325x"), factors, strict=True):
        software = "vllm" if hw[0] == "h" else "sglang"
        question = Question(model=known()["gpt-oss-120b"], precision="fp4", prompt=922, answer=922, software=software)
        for load in loads(question, from_sheet(hw), [Layout(2), Layout(8)], shipped(), (4, 16, 64)):
            rows.append(
                {
                    "hw": f"{hw}-x",
                    "infmax_model_prefix": "gptoss",
                    "precision": "fp4",
                    "framework": software,
                    "isl": 1024,
                    "osl": 1024,
                    "conc": load.streams,
                    "tp": load.layout.tensor,
                    "ep": 1,
                    "dp_attention": "false",
                    "tput_per_gpu": 2 * load.rate.value / factor,
                    "output_tput_per_gpu": load.rate.value / factor,
                    "median_ttft": load.ttft.value * factor,
                    "median_tpot": load.tpot.value * factor,
                }
            )
    return rows


def test_a_fit_finds_the_calibration_that_made_its_points() -> None:
    points = points_of(documents())
    assert len(points) == 24 and {p.chip.generation for p in points} == {"Hopper", "CDNA 3"}
    errors = fitting.errors_of(fitting.fit(points), points)
    assert {m for m in METRICS if typical(errors[m]) > 0.05} == set()


def test_chips_left_out_are_predicted_by_the_others_and_covered() -> None:
    points = points_of(documents((1.1, 0.95, 1.0, 1.05)))
    errors, inside = fitting.left_out(points), fitting.covered(points, LEVEL)
    rows = table(points, errors, inside)
    assert [row[:3] for row in rows[:2]] == [["H100", "6", "100%"], ["H200", "6", "100%"]]
    assert [row[0] for row in rows[-2:]] == ["all", "none"]
    assert 0.03 < typical(errors.logs["tpot"]) < 0.15  # chips differ by 5 to 16%, which no fit can know
    assert inside["tpot"].mean() >= 0.75
    wide = fitting.widths(errors, LEVEL)
    assert all(wide["new"][m] >= wide["known"][m] > 0 for m in METRICS)


def test_widths_are_student_t_over_chips_by_hand() -> None:
    logs = np.array([0.3, -0.3, 0.1, 0.1])
    errors = fitting.Errors(("a", "a", "b", "b"), np.array([True] * 4), dict.fromkeys(METRICS, logs))
    # Mean squared errors 0.09 and 0.01; Student's t of 95% with 2 degrees of freedom is 2.920.
    assert fitting.widths(errors, 0.9)["known"]["ttft"] == pytest.approx(2.920 * math.sqrt(0.05), rel=1e-3)


def test_points_that_are_not_predicted_are_left_out() -> None:
    row = documents()[0]
    changes: list[dict[str, Any]] = [
        {"disagg": True},
        {"spec_decoding": "mtp"},
        {"infmax_model_prefix": "x"},
        {"median_ttft": 0},
        {"precision": "int4"},
        {"benchmark_outcome": {"status": "failed"}},
    ]
    assert [points_of([{**row, **change}]) for change in changes] == [[]] * len(changes)
    twice = points_of([row, {**row, "median_ttft": row["median_ttft"] * 3}])
    assert len(twice) == 1 and twice[0].ttft == pytest.approx(2 * row["median_ttft"])
    replicated = points_of([{**row, "dp_attention": "true"}])[0]
    assert (replicated.layout.tensor, replicated.layout.replicas) == (1, 2)


def test_what_is_shipped_says_how_far_it_may_be_off() -> None:
    calibration: Calibration = shipped()
    assert set(calibration.errors) == set(calibration.coverage) == set(METRICS)
    assert all(0.85 <= held <= 0.93 for held in calibration.coverage.values())
    assert all(0 < e <= 1 for k, e in calibration.efficiencies.items() if k.startswith(("compute", "traffic", "wire")))
    assert calibration.engines() == ["atom", "sglang", "trt", "vllm"]
