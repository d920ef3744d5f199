"""Test MLCommons' tables: every form and round, units of rounds that printed other ones, and refused tables."""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from typing import Any

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.measurement import Better, Kind, Standing
from fleetmark.parsers.published import Table, mlperf
from tests.corpus import ROOT

PUBLISHED = ROOT / "mlperf_published"
absent = pytest.mark.skipif(not PUBLISHED.is_dir(), reason=f"corpus absent: no {PUBLISHED} (set FLEETMARK_CORPUS)")
CM = {
    "Organization": "Acme",
    "Availability": "available",
    "Division": "closed",
    "SystemType": "edge,datacenter",
    "SystemName": "Acme One (8x G1)",
    "Platform": "one-8x",
    "Model": "resnet50",
    "MlperfModel": "resnet",
    "Scenario": "Offline",
    "Result": 100.0,
    "Units": "Samples/s",
    "accelerator_model_name": "G1",
    "accelerators_per_node": 8,
    "number_of_nodes": 2,
    "version": "v4.1",
    "has_power": False,
    "errors": 0,
    "git_url": "https://github.com/mlcommons/inference_results_v4.1",
}
TRAINING = {
    "submitter": "Acme",
    "system": "one",
    "division": "closed",
    "availability": "onprem",
    "Model_ID": "bert",
    "Result": 2.5,
    "Result_Units": "min.",
    "version": "3.0",
    "accelerators_count": 8,
    "accelerator_model_name": "G1",
    "git_url": "https://github.com/mlcommons/training_results_v3.0",
}


def read(*rows: dict[str, Any], name: str = "x.json") -> Table:
    return mlperf.read(json.dumps(rows).encode(), name)


def points(table: Table) -> list[tuple[str, str, float, str]]:
    return [(r.measurement.case, r.measurement.metric, r.measurement.value, r.measurement.unit) for r in table.rows]


def test_a_row_of_inference() -> None:
    table = read({**CM, "weight_data_types": "{'unet': 'FP8', 'vae': 'fp32'}"})
    ((name, labels),) = table.machines.items()
    assert name == "Acme/one-8x v4.1"
    assert {k: labels[k] for k in ("round", "submitter", "division", "availability", "suite", "precision")} == {
        "round": "v4.1",
        "submitter": "Acme",
        "division": "closed",
        "availability": "available",
        "suite": "datacenter+edge",
        "precision": "fp32+fp8",
    }
    assert (labels["accelerators"], labels["gpus"], labels["nodes"], labels["has_power"]) == ("16", "16", "2", "false")
    (row,) = table.rows
    assert points(table) == [("resnet50 Offline", "samples_per_second", 100.0, "1/s")]
    assert (row.class_, row.version, row.standing, row.headline) == ("gpu-offline", "v4.1", None, True)


@pytest.mark.parametrize(
    ("scenario", "unit", "metric", "value", "base", "better", "class_"),
    [
        ("Server", "Queries/s", "samples_per_second", 100.0, "1/s", Better.HIGHER, "gpu-server"),
        ("interactive", "Tokens/s", "tokens_per_second", 100.0, "1/s", Better.HIGHER, "gpu-interactive"),
        ("SingleStream", "Latency (ms)", "latency", 0.1, "s", Better.LOWER, "gpu-latency"),
        ("MultiStream", "Latency (ms)", "latency", 0.1, "s", Better.LOWER, "gpu-latency"),
    ],
)
def test_scenarios(scenario: str, unit: str, metric: str, value: float, base: str, better: Better, class_: str) -> None:
    (row,) = read({**CM, "Scenario": scenario, "Units": unit}).rows
    m = row.measurement
    assert (m.metric, m.unit, m.better, row.class_) == (metric, base, better, class_)
    assert row.kind == (Kind.RESPONSIVENESS if class_ == "gpu-latency" else Kind.CAPACITY)
    assert m.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("model", "scenario", "round_", "metric"),
    [
        ("gptj-99", "Offline", "v4.0", "samples_per_second"),
        ("gptj-99", "Offline", "v4.1", "tokens_per_second"),
        ("gptj-99.9", "Server", "v4.1", "tokens_per_second"),
        ("llama2-70b-99.9", "Offline", "v4.0", "tokens_per_second"),
        ("llama2-70b-99.9", "Server", "v4.0", "samples_per_second"),
        ("llama2-70b-99", "Server", "v4.1", "tokens_per_second"),
        ("mixtral-8x7b", "Offline", "v4.1", "tokens_per_second"),
        ("llama3.1-8b", "Interactive", "v5.1", "tokens_per_second"),
        ("whisper", "Offline", "v5.1", "tokens_per_second"),
        ("bert-99", "Offline", "v4.1", "samples_per_second"),
    ],
)
def test_rounds_that_scored_tokens_and_printed_samples(model: str, scenario: str, round_: str, metric: str) -> None:
    unit = "Samples/s" if scenario == "Offline" else "Queries/s"
    table = read({**CM, "Model": model, "MlperfModel": model, "Scenario": scenario, "version": round_, "Units": unit})
    assert table.rows[0].measurement.metric == metric
    assert any("taken as tokens/s" in n for n in table.notes) == (metric == "tokens_per_second")


def test_power_describes_and_a_row_of_its_own_needs_no_result() -> None:
    with_power = read({**CM, "has_power": True, "Result_Power": 2000.0, "Result_Power_Units": "Watts"})
    assert list(with_power.machines) == ["Acme/one-8x v4.1 power"]
    assert points(with_power)[1] == ("resnet50 Offline", "power", 2000.0, "W")
    assert [r.headline for r in with_power.rows] == [True, False]
    alone = read(CM, {**CM, "Result": None, "Units": "millijoules", "Result_Power": 250.0, "Scenario": "SingleStream"})
    assert points(alone)[1] == ("resnet50 SingleStream", "energy", 0.25, "J")
    absent_figure = read(CM, {**CM, "Result": None, "Units": "Watts"})
    assert absent_figure.left_out == {"power: no value": 1}


def test_rows_that_repeat_are_taken_once_and_others_are_left_out_with_their_reason() -> None:
    table = read(
        CM,
        {**CM, "SystemType": "datacenter"},
        {**CM, "Result": 0, "Scenario": "Server"},
        {**CM, "Result": None, "Scenario": "SingleStream", "Units": "Latency (ms)"},
        {**CM, "Result": -5, "Model": "bert-99", "MlperfModel": "bert-99"},
        {**CM, "errors": 2, "Model": "bert-99", "MlperfModel": "bert-99"},
    )
    assert points(table) == [("resnet50 Offline", "samples_per_second", 100.0, "1/s")]
    assert table.left_out == {
        "the same row again": 1,
        "samples_per_second: zero": 1,
        "latency: no value": 1,
        "samples_per_second: negative": 1,
        "the submission checker found errors": 1,
    }


def test_divisions_and_powered_runs_are_machines_of_their_own() -> None:
    table = read(CM, {**CM, "Division": "open", "Model": "mobilenet"}, {**CM, "has_power": "True"})
    assert list(table.machines) == ["Acme/one-8x v4.1", "Acme/one-8x v4.1 open", "Acme/one-8x v4.1 power"]
    assert [p[0] for p in points(table)] == ["resnet50 Offline", "mobilenet Offline", "resnet50 Offline"]


@pytest.mark.parametrize(
    ("printed", "meant"),
    [
        ("Available on-premise", "available"),
        ("cloud", "available"),
        ("Preview", "preview"),
        ("RDI", "rdi"),
        ("Research, Development, or Internal (RDI)", "rdi"),
    ],
)
def test_availability_in_one_word(printed: str, meant: str) -> None:
    assert next(iter(read({**CM, "Availability": printed}).machines.values()))["availability"] == meant


def test_one_name_for_a_benchmark_in_every_form() -> None:
    summary = {
        "Submitter": "Acme",
        "Category": "closed",
        "Platform": "one-8x",
        "UsedModel": "llama3_1-405b",
        "Model": "llama3.1-405b",
        "Scenario": "Offline",
        "Performance_Result": 5.0,
        "Performance_Units": "Tokens/s",
        "version": "v5.1",
        "a#": "",
        "Nodes": 1,
    }
    table = read(summary, {**summary, "UsedModel": "resnet50", "Model": "resnet"})
    assert [p[0] for p in points(table)] == ["llama3.1-405b Offline", "resnet50 Offline"]
    header = "round,submitter,division,platform,model,scenario,result,units\n"
    rows = mlperf.read((header + "v5.1,Acme,closed,one-8x,resnet,Offline,5.0,Samples/s\n").encode())
    assert [p[0] for p in points(rows)] == ["resnet50 Offline"]
    assert list(rows.machines) == ["Acme/one-8x v5.1"]


@pytest.mark.parametrize(
    ("more", "name", "standing"),
    [
        ({}, "x.json", None),
        ({}, "unofficial_v5.0.json", Standing.UNVERIFIED),
        ({"git_url": ""}, "summary.json", Standing.UNVERIFIED),
        ({"git_url": "https://github.com/acme/runs"}, "x.json", Standing.UNVERIFIED),
        ({"git_url": "", "_cm_experiment": "mlperf-inference--v4.1--edge"}, "x.json", None),
    ],
)
def test_what_does_not_come_from_mlcommons_is_unverified(
    more: dict[str, str], name: str, standing: Standing | None
) -> None:
    assert read({**CM, **more}, name=name).rows[0].standing is standing


def test_training() -> None:
    table = read(TRAINING, TRAINING, {**TRAINING, "accelerators_count": 16, "Result": 1.5})
    assert list(table.machines) == ["Acme/one v3.0 accelerators=8", "Acme/one v3.0 accelerators=16"]
    (first, _) = table.rows
    m = first.measurement
    assert (m.workload, m.case, m.metric, m.value, m.unit) == ("mlperf_training", "bert", "time_to_train", 150.0, "s")
    assert (m.better, first.class_, first.standing) == (Better.LOWER, "gpu-train-speed", None)
    labels = table.machines["Acme/one v3.0 accelerators=8"]
    assert (labels["availability"], labels["suite"], labels["gpus"]) == ("available", "training", "8")
    assert table.left_out == {"the same row again": 1}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [CM, {**CM, "Units": "Bananas/s"}],
            "row 2 (Acme one-8x, resnet50 Offline): the unit 'Bananas/s' is not known",
        ),
        ([{**CM, "Units": ""}], "row 1 (Acme one-8x, resnet50 Offline): it has no unit"),
        ([{**CM, "Scenario": "Online"}], "not an MLPerf scenario"),
        ([{**CM, "Organization": " "}], "row 1: no submitter"),
        ([{**TRAINING, "Result_Units": "days"}], "row 1 (Acme one, bert): the unit 'days' is not known"),
        (
            [{k: v for k, v in CM.items() if k != "Units"}],
            "MLPerf Inference results without units (Performance_Units or",
        ),
        ([{"a": 1, "b": 2}], "there are MLPerf Inference results"),
        ([{"a": 1, "b": 2}], "this JSON has a, b"),
        ([{**CM, "Result": 0}], "none of its 1 rows has a figure to import: samples_per_second: zero (1)"),
    ],
)
def test_what_is_refused(rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(FleetmarkError) as error:
        read(*rows)
    assert words in str(error.value) and "\n" not in str(error.value)


@lru_cache(maxsize=2)
def of_corpus(name: str) -> Table:
    return mlperf.read((PUBLISHED / name).read_bytes(), name)


@absent
@pytest.mark.parametrize(
    ("name", "rows", "again"),
    [
        ("inference_v2.0_cm4mlperf-results.json.gz", 5072, 2110),
        ("inference_v2.1_cm4mlperf-results.json.gz", 7728, 2463),
        ("inference_v3.0_cm4mlperf-results.json.gz", 9732, 2449),
        ("inference_v3.1_cm4mlperf-results.json.gz", 5420, 2095),
        ("inference_v4.0_cm4mlperf-results.json.gz", 10458, 0),
        ("inference_v4.1_cm4mlperf-results.json.gz", 968, 0),
        ("inference_v5.1_summary_results.json", 1448, 0),
    ],
)
def test_rounds_of_the_corpus_and_their_rows_in_the_table_of_all_rounds(name: str, rows: int, again: int) -> None:
    table, every = of_corpus(name), of_corpus("mlperf_inference_all_rounds.csv")
    assert (table.read, table.left_out.get("the same row again", 0)) == (rows, again)
    assert {r.standing for r in table.rows} == {None}
    round_ = name.split("_")[1]

    def closed(t: Table) -> set[tuple[str, str, str, float]]:
        return {
            (r.machine, r.measurement.case, r.measurement.metric, r.measurement.value)
            for r in t.rows
            if r.headline and t.machines[r.machine]["division"] == "closed" and r.version == round_
        }

    assert closed(table) == closed(every) and closed(table)


@absent
@pytest.mark.parametrize(
    ("name", "rows"), [("1.0", 131), ("1.1", 108), ("2.0", 234), ("2.1", 144), ("3.0", 214), ("all", 831)]
)
def test_training_of_the_corpus(name: str, rows: int) -> None:
    table = of_corpus(f"mlperf-training_{name}_cm4mlperf-results.json")
    assert table.read == len(table.rows) == rows
    assert {(r.measurement.metric, r.measurement.unit, r.standing) for r in table.rows} == {
        ("time_to_train", "s", None)
    }
    raw = json.loads((PUBLISHED / f"mlperf-training_{name}_cm4mlperf-results.json").read_text())
    assert table.rows[0].measurement.value == pytest.approx(raw[0]["Result"] * 60)


@absent
@pytest.mark.parametrize("name", ["unofficial_v5.0_summary.csv", "unofficial_v5.0_summary_results.json"])
def test_unofficial_results_are_unverified(name: str) -> None:
    table = of_corpus(name)
    assert len(table.rows) == 45
    assert {r.standing for r in table.rows} == {Standing.UNVERIFIED}


@absent
def test_both_unofficial_tables_say_the_same() -> None:
    one, other = (of_corpus(f"unofficial_v5.0_{n}") for n in ("summary.csv", "summary_results.json"))
    assert Counter((r.machine, *p) for r, p in zip(one.rows, points(one), strict=True)) == Counter(
        (r.machine, *p) for r, p in zip(other.rows, points(other), strict=True)
    )


@absent
def test_power_rows_of_v40_have_their_power() -> None:
    table = of_corpus("inference_v4.0_cm4mlperf-results.json.gz")
    assert Counter(r.measurement.metric for r in table.rows if not r.headline) == {"energy": 616, "power": 368}
    (max_q,) = [
        r.measurement.value
        for r in table.rows
        if r.machine == "Dell/XE9680_H100_SXM_80GBx8_TRT_MaxQ v4.0 power"
        and (r.measurement.case, r.measurement.metric) == ("resnet50 Offline", "power")
    ]
    assert max_q == pytest.approx(4037.98674)
