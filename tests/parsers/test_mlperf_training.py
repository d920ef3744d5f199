"""MLPerf Training's parser against real logs and invented ones, and against what happens to them on the way."""

from __future__ import annotations

import gzip
import io
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Better, Parsed, Standing
from fleetmark.parsers.mlperf_training import parse, parse_stream, rules
from fleetmark.workloads import load
from tests import corpus
from tests.parsers.reading import cases, find, find_all, identities, read, value

TOOL = "mlperf_training"
DERIVED = "time_to_train is derived: run_stop less run_start"
T = 1_750_000_000_000  # when the logs made here begin, ms
OWN = ("time_to_train", "eval_accuracy", "eval_loss")


def record(ms: object, key: str, value: object = None, **metadata: object) -> str:
    """A line as mllog prints it."""
    body = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return ":::MLLOG " + json.dumps({**body, "metadata": {"file": "main.py", "lineno": 1, **metadata}}) + "\n"


def log(
    *lines: str,
    benchmark: str | None = "retinanet",
    status: str | None = "success",
    length: object = 100_000,
    start: int = T,
) -> str:
    """A whole run of ``length`` ms with ``lines`` in it."""
    head = record(start - 50, "submission_benchmark", benchmark) if benchmark else ""
    tail = (
        record(start + length, "run_stop", **({"status": status} if status else {})) if isinstance(length, int) else ""
    )
    return head + record(start, "run_start") + "".join(lines) + tail


def evaluation(ms: int, figure: object, **metadata: object) -> str:
    return record(T + ms, "eval_accuracy", figure, **metadata)


def parsed(text: str) -> Parsed:
    return parse(text.encode())


def error(text: str | bytes) -> str:
    with pytest.raises(ParseError) as raised:
        parse(text if isinstance(text, bytes) else text.encode())
    return str(raised.value)


def curve(result: Parsed, metric: str) -> list[tuple[dict[str, str], float]]:
    return [(dict(m.labels), m.value) for m in result.measurements if m.metric == f"{metric}_at"]


# The corpus


# What each file says beside the manifest: case, what its eval_accuracy is, how many evaluations, seed, batch.
FILES = {
    "v5.0_tinybox_green_retinanet.txt": ("retinanet", "eval_accuracy", 4, 23282, 96),
    "v5.0_gb200x8_llama2_lora.txt": ("llama2_70b_lora", "eval_loss", 6, 11842, 8),
    "v5.0_mi325x8_llama2_lora.txt": ("llama2_70b_lora", "eval_loss", 5, 28578, 8),
    "v5.0_gb200x64_bert_ABORTED.txt": ("bert", "eval_accuracy", 17, 18948, 4608),
    "v5.0_cisco_bert_ABORTED_nccl_prefixes.txt": ("bert", "eval_accuracy", 16, 29611, 4608),
    "v4.0_tpu_v5p-1024_gpt3.txt": ("gpt3", "eval_loss", 24, 8941, 2048),
    "v5.1_dlrm_ABORTED_placeholder_platform.txt": ("dlrm_dcnv2", "eval_accuracy", 20, 1757518805, 160000),
}


@pytest.mark.parametrize(("path", "row"), corpus.rows(TOOL))
def test_corpus(path: Path, row: Mapping[str, Any]) -> None:
    expected, result = row["expected"], parse(path.read_bytes())
    case, metric, evaluations, seed, batch = FILES[path.name]
    assert expected.get("benchmark", case) == case
    assert cases(result) == {case}
    assert result.standing is Standing.UNVERIFIED
    assert len(set(identities(result))) == len(result.measurements)
    if expected["status"] == "success":
        seconds = (expected["run_stop_ms"] - expected["run_start_ms"]) / 1000
        assert value(result, "time_to_train") == seconds
        assert seconds / 60 == pytest.approx(expected["minutes"], abs=0.0005)
        assert result.invalid is None
        assert DERIVED in result.notes
    else:
        assert value(result, "time_to_train") is None
        assert result.invalid is not None
        assert result.invalid.startswith("run_stop says aborted: no time to train (best eval_accuracy 0.")
    if "eval_accuracy" in expected:
        assert value(result, metric) == expected["eval_accuracy"]
    assert len(curve(result, metric)) == evaluations
    assert curve(result, metric)[-1][1] == value(result, metric)
    assert (value(result, "seed"), value(result, "global_batch_size")) == (seed, batch)
    platform = expected.get("submission_platform")
    assert any("submission_platform was not filled in" in n for n in result.notes) is (platform is not None)
    if platform:
        assert f"submission_platform was not filled in: {platform!r}" in result.notes


@pytest.mark.parametrize(
    ("path", "row"), [p for p in corpus.rows(TOOL) if p.id == "mlperf_training/v4.0_tpu_v5p-1024_gpt3.txt"]
)
def test_corpus_counts_tokens(path: Path, row: Mapping[str, Any]) -> None:
    result = parse(path.read_bytes())
    assert value(result, "tokens_to_train") == 24 * 50_331_648
    assert curve(result, "eval_loss")[0] == ({"tokens": "50331648"}, 2.7481878214839246)


# Our own


def test_a_loss_with_what_srun_and_nccl_print_around_it() -> None:
    result = read(TOOL, "llama2_70b_lora_srun.txt")
    assert (result.tool, result.version, result.invalid, result.standing) == (TOOL, None, None, Standing.UNVERIFIED)
    assert result.notes == (DERIVED, "eval_accuracy of llama2_70b_lora is a loss: lower is better")
    assert {m.metric: (m.value, m.unit, m.better) for m in result.measurements if not m.metric.endswith("_at")} == {
        "time_to_train": (1054.503, "s", Better.LOWER),
        "samples_to_train": (2688, "1", Better.NONE),
        "eval_loss": (0.92375, "1", Better.LOWER),
        "throughput": (2.8121875, "1/s", Better.HIGHER),
        "seed": (4711, "1", Better.NONE),
        "global_batch_size": (8, "1", Better.NONE),
        "target": (0.925, "1", Better.NONE),
    }
    assert curve(result, "eval_loss") == [
        ({"samples": "1536"}, 0.9432),
        ({"samples": "1920"}, 0.9361),
        ({"samples": "2304"}, 0.9289),
        ({"samples": "2688"}, 0.92375),
    ]
    assert {m.better for m in result.measurements if m.metric == "eval_loss_at"} == {Better.LOWER}
    assert cases(result) == {"llama2_70b_lora"}


def test_an_aborted_run_has_its_evaluations_and_no_time() -> None:
    result = read(TOOL, "bert_aborted.txt")
    assert result.invalid == (
        "run_stop says aborted: no time to train (best eval_accuracy 0.7161 against the rules' target of 0.72)"
    )
    assert result.notes == (
        "submission_platform was not filled in: '2xSUBMISSION_PLATFORM_PLACEHOLDER'",
        "submission_org says 'NVIDIA', the system's description 'Example Labs'",
    )
    assert {m.metric for m in result.measurements} == {
        "eval_accuracy",
        "eval_accuracy_at",
        "throughput",
        "seed",
        "global_batch_size",
    }
    assert value(result, "eval_accuracy") == 0.7158  # the last, not the best
    assert value(result, "throughput") == 25002.5
    assert curve(result, "eval_accuracy")[0] == ({"samples": "152064"}, 0.3125)


def test_a_run_that_was_cut_off_says_how_far_it_came() -> None:
    assert error((Path(__file__).parent / "fixtures" / TOOL / "retinanet_cut.txt").read_bytes()) == (
        "mlperf_training line 27: expected a run_stop: the run that began on line 11 did not end; it came to epoch 3, "
        "eval_accuracy 0.30375, got 'Connection to shoebox closed by remote host.'"
    )


def test_v06_lines_in_seconds() -> None:
    result = read(TOOL, "maskrcnn_v0.6.txt")
    assert (result.invalid, result.notes) == (None, (DERIVED,))
    assert value(result, "time_to_train") == 7843.625
    assert value(result, "eval_accuracy", of="BBOX") == 0.37875
    assert value(result, "eval_accuracy", of="SEGM") == 0.3425
    assert value(result, "epochs_to_train") == 13
    assert curve(result, "eval_accuracy")[0] == ({"of": "BBOX", "epoch": "11"}, 0.3725)
    assert len(curve(result, "eval_accuracy")) == 6


def test_v05_lines_each_printed_twice() -> None:
    result = read(TOOL, "ncf_v0.5.txt")
    assert (result.version, result.invalid, result.notes) == ("0.5.0", None, (DERIVED,))
    assert cases(result) == {"ncf"}
    assert value(result, "time_to_train") == 61.5
    assert (value(result, "target"), value(result, "seed")) == (0.635, 0)
    assert curve(result, "eval_accuracy") == [
        ({"epoch": "0"}, 0.5875),
        ({"epoch": "1"}, 0.62375),
        ({"epoch": "2"}, 0.636875),
    ]


def test_checkpoints_evaluated_later_in_any_order() -> None:
    result = read(TOOL, "stable_diffusion_checkpoints.txt")
    assert result.invalid is None
    assert result.notes == (DERIVED, "3 values of seed are printed: the first is kept")
    # 1,536,000 samples are not good enough by either; 2,048,000 are the first that are.
    assert value(result, "samples_to_train") == 2_048_000
    assert (value(result, "eval_fid"), value(result, "eval_clip")) == (86.75, 0.1575)
    fid, clip = find(result, "eval_fid"), find(result, "eval_clip")
    assert fid and clip and (fid.better, clip.better) == (Better.LOWER, Better.HIGHER)
    assert value(result, "time_to_train") == 1004.25
    assert len(curve(result, "eval_fid")) == len(curve(result, "eval_clip")) == 3
    assert value(result, "seed") == 1000


def test_several_runs_in_one_file() -> None:
    result = read(TOOL, "resnet_three_runs.txt")
    assert result.invalid is None
    assert result.notes == (
        f"runs 0, 2: {DERIVED}",
        "run 1: run_stop says aborted: no time to train (best eval_accuracy 0.75875 against the rules' target of 0.759)",
    )
    assert [value(result, "time_to_train", run=r) for r in "012"] == [1800.25, None, 1760.75]
    assert [value(result, "eval_accuracy", run=r) for r in "012"] == [0.75925, 0.75875, 0.7595]
    assert [value(result, "seed", run=r) for r in "012"] == [11, 12, 13]
    assert [value(result, "throughput", run=r) for r in "012"] == [28500.25, 28501.25, 28502.25]
    assert value(result, "eval_accuracy_at", run="1", epoch="4") == 0.1725
    assert len(set(identities(result))) == len(result.measurements)


def test_ranks_that_all_log() -> None:
    result = read(TOOL, "gpt3_ranks.txt")
    assert result.notes[-1] == "3 ranks print run_start, up to 0.002 s apart: the first counts"
    assert value(result, "time_to_train") == 900.5
    assert curve(result, "eval_loss") == [
        ({"tokens": "50331648"}, 2.74875),
        ({"tokens": "100663296"}, 2.7125),
        ({"tokens": "150994944"}, 2.68875),
    ]
    assert value(result, "tokens_to_train") == 150_994_944


# Quirks, one by one


@pytest.mark.parametrize("name", sorted({*load("mlperf_training").scores["olympic_mean"].runs} - {"stable_diffusion"}))
def test_the_direction_of_every_benchmark_is_known(name: str) -> None:
    result = parsed(log(evaluation(1, 0.5, epoch_num=1), benchmark=name))
    (last,) = [m for m in result.measurements if m.metric in ("eval_accuracy", "eval_loss", "eval_error")]
    losses = {"gpt3", "llama2_70b_lora", "llama31_405b", "llama31_8b", "flux1", "gpt_oss_20b", "deepseekv3_671b"}
    metric = (
        "eval_loss" if name in losses else "eval_error" if name in ("rnnt", "cosmoflow", "oc20") else "eval_accuracy"
    )
    assert (last.metric, last.better) == (metric, Better.HIGHER if metric == "eval_accuracy" else Better.LOWER)
    assert any("lower is better" in n for n in result.notes) is (metric != "eval_accuracy")


def test_an_unknown_benchmark_has_no_direction() -> None:
    result = parsed(log(evaluation(1, 4.5, samples_count=64), benchmark="telepathy_9t"))
    last = find(result, "eval_accuracy")
    assert last is not None and (last.case, last.better) == ("telepathy_9t", Better.NONE)
    assert "whether a higher or a lower eval_accuracy of telepathy_9t is better is not known" in result.notes


@pytest.mark.parametrize("name", [None, "", "two words", "x" * 65, "\ud800"])
def test_no_name_of_a_benchmark(name: str | None) -> None:
    result = parsed(log(evaluation(1, 0.5, epoch_num=1), benchmark=name))
    assert cases(result) == {"training"}
    assert any("submission_benchmark" in n for n in result.notes)
    assert all(n.isprintable() for n in result.notes)


def test_eval_error_is_lower() -> None:
    text = log(record(T + 1, "eval_error", 0.1235, epoch_num=3), benchmark="cosmoflow")
    last = find(parsed(text), "eval_error")
    assert last is not None and (last.value, last.better) == (0.1235, Better.LOWER)


def test_what_epoch_num_counts() -> None:
    assert curve(parsed(log(evaluation(1, 0.5, epoch_num=0.05), benchmark="rgat")), "eval_accuracy") == [
        ({"epoch": "0.05"}, 0.5)
    ]
    small = parsed(log(evaluation(1, 0.71, epoch_num=6), benchmark="bert"))
    assert (curve(small, "eval_accuracy"), value(small, "epochs_to_train")) == ([({"epoch": "6"}, 0.71)], 6)
    both = parsed(log(evaluation(1, 3.2, epoch_num=12256, samples_count=12256), benchmark="llama31_8b"))
    assert curve(both, "eval_loss") == [({"samples": "12256"}, 3.2)]
    assert (value(both, "samples_to_train"), value(both, "epochs_to_train")) == (12256, None)


def test_a_count_that_stands_still() -> None:
    text = log(
        *[evaluation(i, a, epoch_num=1) for i, a in enumerate((0.5, 0.6, 0.7))], evaluation(9, 0.72), benchmark="bert"
    )
    result = parsed(text)
    assert curve(result, "eval_accuracy") == [
        ({"epoch": "1"}, 0.5),
        ({"epoch": "1", "eval": "2"}, 0.6),
        ({"epoch": "1", "eval": "3"}, 0.7),
        ({"eval": "1"}, 0.72),
    ]
    assert value(result, "eval_accuracy") == 0.72
    assert "eval_accuracy: several evaluations at one count, or without any, have the label eval" in result.notes
    assert len(set(identities(result))) == len(result.measurements)


def test_the_last_evaluation_is_the_one_at_run_stop() -> None:
    # The line of the second comes late; the fourth is of training that went on.
    text = log(evaluation(10, 0.3, epoch_num=1), evaluation(99_000, 0.35, epoch_num=3)) + (
        evaluation(50_000, 0.32, epoch_num=2) + evaluation(150_000, 0.36, epoch_num=4)
    )
    result = parsed(text)
    assert (value(result, "eval_accuracy"), value(result, "epochs_to_train")) == (0.35, 3)
    assert len(curve(result, "eval_accuracy")) == 4


def test_a_pair_of_figures() -> None:
    result = parsed(log(evaluation(1, [0.375, 0.345], epoch_num=1), benchmark="mask"))
    assert value(result, "eval_accuracy", of="BBOX") == 0.375
    assert value(result, "eval_accuracy", of="SEGM") == 0.345


@pytest.mark.parametrize("figure", ["NaN", "-Infinity", "nan", '"n/a"', "null", "true", "1e999", "[]", "[1, 2, 3]"])
def test_evaluations_that_are_no_numbers_are_absent(figure: str) -> None:
    text = log(evaluation(1, 0.125, epoch_num=1), evaluation(2, -9.75, epoch_num=2)).replace("-9.75", figure)
    result = parsed(text)
    assert curve(result, "eval_accuracy") == [({"epoch": "1"}, 0.125)]
    assert "line 4: an evaluation is not a number" in result.notes


def test_a_success_without_any_evaluation() -> None:
    result = parsed(log())
    assert value(result, "time_to_train") == 100
    assert "no evaluation, so it is unknown whether the target was reached" in result.notes


def test_a_success_that_misses_its_target() -> None:
    missed = "run_stop says success, but the best eval_accuracy 0.339 against {} target of 0.34 is not enough"
    result = parsed(log(evaluation(1, 0.339, epoch_num=1)))
    assert missed.format("the rules'") in result.notes
    assert result.invalid is None
    printed = parsed(log(record(T, "target_accuracy", 0.34), evaluation(1, 0.339, epoch_num=1)))
    assert missed.format("a") in printed.notes
    assert parsed(log(record(T, "target_accuracy", 0.3), evaluation(1, 0.339, epoch_num=1))).notes == (DERIVED,)
    assert parsed(log(evaluation(1, 0.34, epoch_num=1))).notes == (DERIVED,)


def test_targets_that_changed_hold_from_their_round_on() -> None:
    in_2020, in_2021, in_2022 = 1_593_000_000_000.0, 1_623_000_000_000.0, 1_655_000_000_000.0
    assert [rules.target("bert", "", t) for t in (in_2020, in_2021)] == [None, 0.72]
    assert [rules.target("ssd", "", t) for t in (in_2021, in_2022)] == [None, 0.34]
    assert [rules.target("resnet", "", t) for t in (1_542_000_000_000.0, in_2020)] == [None, 0.759]


@pytest.mark.parametrize("status", ["aborted", "abort", "fail", "ABORTED "])
def test_words_for_a_run_that_did_not_converge(status: str) -> None:
    result = parsed(log(evaluation(1, 0.25, epoch_num=1), status=status))
    assert value(result, "time_to_train") is None
    assert result.invalid == (
        f"run_stop says {status.strip().lower()}: no time to train (best eval_accuracy 0.25 against the rules' target of 0.34)"
    )


def test_the_reason_is_told() -> None:
    text = log(evaluation(1, 0.9, samples_count=8), length=None, benchmark="llama2_70b_lora") + record(
        T + 9, "run_stop", status="aborted", reason="loss is\nnan at step 12"
    )
    invalid = parsed(text).invalid
    assert invalid is not None
    assert invalid.startswith("run_stop says aborted (loss is nan at step 12): no time to train (best eval_loss 0.9")


def test_no_status_is_no_success() -> None:
    result = parsed(log(evaluation(1, 0.25, epoch_num=1), status=None))
    assert value(result, "time_to_train") is None
    assert result.invalid is not None and result.invalid.startswith("run_stop does not say success: no time to train")


def test_no_status_where_the_printed_target_was_reached() -> None:
    lines = (record(T, "target_accuracy", 0.25), evaluation(1, 0.25, epoch_num=1))
    result = parsed(log(*lines, status=None))
    assert value(result, "time_to_train") == 100
    assert result.notes[:2] == (DERIVED, "run_stop does not report success, but the target in the log was reached")


def test_ranks_that_contradict_one_another() -> None:
    text = log(evaluation(1, 0.35, epoch_num=1)) + record(T + 100_001, "run_stop", status="aborted")
    result = parsed(text)
    assert value(result, "time_to_train") is None
    assert result.invalid is not None and result.invalid.startswith(
        "run_stop says success and aborted: no time to train"
    )


def test_an_aborted_run_without_any_evaluation() -> None:
    assert error(log(record(T, "seed", 7), status="aborted")) == (
        "mlperf_training line 4: expected a run that trains: run_stop says aborted: no time to train, and nothing was evaluated"
    )


@pytest.mark.parametrize("length", [0, -1, -5_000])
def test_clocks_that_stand_or_go_backwards(length: int) -> None:
    assert error(log(evaluation(1, 0.35, epoch_num=1), length=length)) == (
        f"mlperf_training line 4: expected run_stop later than run_start (line 2: {T} ms), got '{T + length} ms'"
    )


def test_a_clock_that_was_set_during_the_run() -> None:
    assert error(log(start=60_000, length=T)).startswith(
        "mlperf_training line 3: expected run_stop within a year of run_start (line 2: 60000 ms), got "
    )


@pytest.mark.parametrize("wrong", [None, "soon", 0, -5, True, 1e300, []])
def test_times_that_are_none(wrong: object) -> None:
    text = record(wrong, "run_start") + record(T, "run_stop", status="success")
    assert error(text).startswith("mlperf_training line 1: expected a time in ms since the epoch at run_start")
    text = record(T, "run_start") + record(wrong, "run_stop", status="success")
    assert error(text).startswith("mlperf_training line 2: expected a time in ms since the epoch at run_stop")


def test_times_with_fractions() -> None:
    text = log().replace(f"{T}", "1592878316890.947021").replace(f"{T + 100_000}", "1592878328890.197021")
    assert value(parsed(text), "time_to_train") == 11.99925


def test_time_s_and_trailing_commas() -> None:
    text = (
        ':::MLLOG {"metadata": {}, "value": null, "key": "run_start", "time_s": 1593354424.5}\n'
        ':::MLLOG {"metadata": {"epoch_num": 4, }, "value": 0.5, "key": "eval_accuracy", "time_s": 1593354440.0}\n'
        ':::MLLOG {"metadata": {"status": "success", }, "value": null, "key": "run_stop", "time_s": 1593354446.75}\n'
    )
    result = parsed(text)
    assert value(result, "time_to_train") == 22.25
    assert curve(result, "eval_accuracy") == [({"epoch": "4"}, 0.5)]


def test_throughput_is_the_middle_of_those_printed() -> None:
    rates = [record(T + i, "tracked_stats", {"throughput": r}, step=i) for i, r in enumerate((5.0, 90.0, 6.0, 7.0))]
    assert value(parsed(log(*rates)), "throughput") == 6.0
    other = parsed(log(record(T, "tracked_stats", {"train_loss": 4.5}), record(T, "tracked_stats", 3.5)))
    assert value(other, "throughput") is None
    last = log(length=None) + record(T + 9000, "run_stop", status="success", throughput="976.25")
    assert value(parsed(last), "throughput") == 976.25
    assert value(parsed(log(record(T + 1, "throughput", 12.5))), "throughput") == 12.5


def test_submission_facts_behind_the_run() -> None:
    text = log(evaluation(1, 0.5, epoch_num=1), benchmark=None) + record(0, "submission_benchmark", "unet3d")
    assert cases(parsed(text)) == {"unet3d"}


def test_facts_that_contradict_one_another() -> None:
    orgs = (
        record(T, "submission_org", "Alpha")
        + record(T, "submission_org", "Beta")
        + record(T, "submission_org", "Alpha")
    )
    batches = record(T, "global_batch_size", 8) + record(T, "global_batch_size", 16)
    result = parsed(orgs + batches + record(T, "submission_benchmark", "ssd") + log())
    assert "submission_org says 'Alpha' and 'Beta'" in result.notes
    assert "2 values of global_batch_size are printed: the first is kept" in result.notes
    assert "submission_benchmark says 'ssd' and 'retinanet': the first counts" in result.notes
    assert value(result, "global_batch_size") == 8


@pytest.mark.parametrize(
    "unfilled", ["SUBMISSION_ORG_PLACEHOLDER", "reference_implementation", "N/A", "", "your_platform"]
)
def test_what_was_not_filled_in(unfilled: str) -> None:
    result = parsed(record(T, "submission_platform", unfilled) + log())
    assert f"submission_platform was not filled in: {unfilled!r}" in result.notes
    assert not any("not filled in" in n for n in parsed(record(T, "submission_platform", "8xDGXH100") + log()).notes)


@pytest.mark.parametrize(
    ("submitter", "noted"), [("Beta", True), ("alpha", False), ("Alpha_77", False), ("UNKNOWN_MLPERF_SUBMITTER", False)]
)
def test_who_submitted(submitter: str, noted: bool) -> None:
    system = ":::SYSJSON " + json.dumps({"submitter": submitter, "division": "closed"}) + "\n"
    result = parsed(system + record(T, "submission_org", "Alpha") + log())
    assert any("system's description" in n for n in result.notes) is noted


# Several runs


def later(text: str, ms: int) -> str:
    """``text``, ``ms`` later."""
    out = []
    for line in text.splitlines(keepends=True):
        body = json.loads(line.removeprefix(":::MLLOG "))
        out.append(":::MLLOG " + json.dumps({**body, "time_ms": body["time_ms"] + ms}) + "\n")
    return "".join(out)


def test_a_log_that_is_there_twice_is_one_run() -> None:
    text = log(evaluation(1, 0.35, epoch_num=1), record(T + 2, "tracked_stats", {"throughput": 5.5}))
    assert parsed(text * 2) == parsed(text)


def test_a_run_that_was_cut_among_others_is_left_out() -> None:
    cut = log(evaluation(1, 0.2, epoch_num=1), length=None)
    result = parsed(cut + later(log(evaluation(1, 0.35, epoch_num=1)), 10_000))
    assert [dict(m.labels) for m in find_all(result, "time_to_train", run="1")] == [{"run": "1"}]
    assert {m.labels["run"] for m in result.measurements} == {"1"}
    assert result.notes[0] == (
        "run 0: left out: expected a run_stop: the run that began on line 2 did not end; it came to epoch 1, eval_accuracy 0.2"
    )


def test_a_log_that_is_cut_after_a_run_that_ended() -> None:
    complete = log(evaluation(1, 0.35, epoch_num=1), record(T + 2, "tracked_stats", {"throughput": 5.5}))
    assert parsed(complete + later(complete, 10_000)).invalid is None
    within = parsed(complete + later(log(evaluation(1, 0.2, epoch_num=1), length=None), 10_000))
    assert (within.invalid or "").startswith("the output is cut: expected a run_stop: the run that began on line ")
    assert value(within, "time_to_train", run="0") is not None
    n = complete.count("\n") + 1
    before = parsed(complete + record(T + 50_000, "init_start"))
    assert before.invalid == f"the output is cut: the run that sets itself up on line {n} has no run_start"
    stopped = parsed(complete + later(log(evaluation(1, 0.35, epoch_num=1)), 10_000))
    assert stopped.invalid == "the output is cut: the last run has no throughput, and others have"


def test_runs_none_of_which_converged() -> None:
    text = log(evaluation(1, 0.2, epoch_num=1), status="aborted")
    result = parsed(text + later(text.replace("0.2", "0.3"), 200_000))
    assert result.invalid is not None and "best eval_accuracy 0.2 against" in result.invalid
    assert [value(result, "eval_accuracy", run=r) for r in "01"] == [0.2, 0.3]


def test_runs_none_of_which_ended_make_the_first_ones_error() -> None:
    text = log(evaluation(1, 0.2, epoch_num=1), length=None)
    assert "the run that began on line 2 did not end" in error(text + later(text, 100_000))


def test_runs_that_overlap() -> None:
    text = log(evaluation(1, 0.35, epoch_num=1))
    assert "runs overlap in time: made side by side, or one run's ranks" in parsed(text + later(text, 70_000)).notes
    assert not any("overlap" in n for n in parsed(text + later(text, 170_000)).notes)


def test_a_later_run_without_a_name_is_of_the_same_benchmark() -> None:
    text = log(evaluation(1, 0.8, epoch_num=1), benchmark=None)
    result = parsed(log(benchmark="unet3d") + later(text, 300_000))
    assert cases(result) == {"unet3d"}
    assert cases(parsed(log(benchmark="unet3d") + later(log(benchmark="ssd"), 300_000))) == {"unet3d", "ssd"}


def test_minigo_v06_prints_its_own_result() -> None:
    lines = [
        ':::MLL 1560822800.706 submission_benchmark: {"metadata": {}, "value": "minigo"}',
        ':::MLL 1560822993.653 run_start: {"value": null, "metadata": {}}',
        ':::MLL 1560828282.121 eval_accuracy: {"metadata": {"epoch_num": 18}, "value": 0.47}',
        ':::MLL 1560828319.233 eval_accuracy: {"metadata": {"epoch_num": 19}, "value": 0.51}',
        ':::MLL 1560828319.234 eval_result: {"metadata": {"iteration": 19, "timestamp": 1725.875}, "value": null}',
    ]
    result = parsed("\n".join(lines) + "\n")
    assert value(result, "time_to_train") == 1725.875
    assert result.notes == ("time_to_train is the value of eval_result",)
    assert "did not end" in error("\n".join(lines[:4]) + "\n")


# Damage


WHOLE = log(
    record(T, "seed", 77),
    record(T, "global_batch_size", 64),
    *[evaluation(20_000 * n, 0.09 * n, epoch_num=n) for n in (1, 2, 3, 4)],
)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: b"".join(b"12: " + line for line in raw.splitlines(keepends=True)),
        lambda raw: b"".join(b"\x1b[0m[1,0]<stdout>:" + line for line in raw.splitlines(keepends=True)),
        lambda raw: b"\n".join(line + b"\nNCCL INFO \xff\xfe between" for line in raw.splitlines()),
        lambda raw: b"&&&& METRIC=1422.4 samples / s" + raw,
        lambda raw: raw.decode().encode("utf-16"),
        lambda raw: b"\xef\xbb\xbf" + raw,
        lambda raw: raw.replace(b": ", b":").replace(b", ", b","),
        gzip.compress,
        lambda raw: gzip.compress(raw[:300]) + gzip.compress(raw[300:]),
        lambda raw: raw[:-1],
    ],
    ids=[
        "crlf",
        "srun",
        "mpi",
        "between",
        "before",
        "utf-16",
        "bom",
        "dense",
        "gzip",
        "gzip members",
        "no last newline",
    ],
)
def test_transport_damage_that_loses_nothing(change: Any) -> None:
    assert parse(change(WHOLE.encode())) == parse(WHOLE.encode())


def test_from_a_file() -> None:
    assert parse_stream(io.BytesIO(gzip.compress(WHOLE.encode()))) == parse(WHOLE.encode())


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-20], lambda raw: raw[:60] + b"\0\0\0\0" + raw[64:], lambda raw: raw[:12]]
)
def test_damaged_gzip(damage: Any) -> None:
    packed = damage(gzip.compress(WHOLE.encode(), mtime=0))
    assert re.search(r"expected a log that can be unpacked, got .(truncated|damaged) gzip data", error(packed))


def test_every_truncation_is_an_error_or_the_whole_result() -> None:
    raw = WHOLE.encode()
    for size in range(len(raw) - 1):
        assert "mlperf_training" in error(raw[:size])


def test_dropped_lines() -> None:
    lines = WHOLE.splitlines(keepends=True)
    assert "run_start of an MLPerf Training log before run_stop" in error(
        "".join(x for x in lines if "run_start" not in x)
    )
    assert "did not end; it came to epoch 4, eval_accuracy 0.36" in error("".join(lines[:-1]))
    without = parsed("".join(x for x in lines if '"epoch_num": 2' not in x))
    assert [v for _, v in curve(without, "eval_accuracy")] == [0.09, 0.27, 0.36]


def test_records_that_cannot_be_read_are_noted() -> None:
    lines = WHOLE.splitlines(keepends=True)
    place = next(i for i, x in enumerate(lines) if '"epoch_num": 2' in x)
    lines[place] = lines[place][:150] + "\n"
    result = parsed("".join(lines))
    assert len(curve(result, "eval_accuracy")) == 3
    assert f"line {place + 1}: eval_accuracy cannot be read and is left out" in result.notes
    lines[-1] = lines[-1][:150] + "NCCL WARN\n"
    assert f"; the one on line {len(lines)} cannot be read, got " in error("".join(lines))


def test_v05_figures_that_may_be_cut_are_not_read() -> None:
    text = (
        ":::MLPv0.5.0 ncf 1542010500.5 (ncf.py:1) run_start\n"
        ':::MLPv0.5.0 ncf 1542010530.5 (ncf.py:1) eval_accuracy: {"epoch": 0, "value": 0.6375}\n'
        ':::MLPv0.5.0 ncf 1542010561.5 (ncf.py:1) run_stop: {"success": true}\n'
        ":::MLPv0.5.0 ncf 1542010562.5 (ncf.py:1) eval_target: 0.635"
    )
    assert value(parsed(text), "target") is None
    assert value(parsed(text + "\n"), "target") == 0.635
    assert "did not end" in error(text.replace("true}", "tr"))


def test_v05_without_a_word_of_success() -> None:
    text = (
        ":::MLPv0.5.0 transformer 1541632771.5 (train.py:40) run_start\n"
        ':::MLPv0.5.0 transformer 1541633385.25 (train.py:150) eval_accuracy: {"epoch": 3, "value": 25.125}\n'
        ":::MLPv0.5.0 transformer 1541633385.5 (train.py:153) eval_target: 25.0\n"
        ":::MLPv0.5.0 transformer 1541633386.75 (train.py:160) run_stop\n"
    )
    assert value(parsed(text), "time_to_train") == 615.25
    missed = parsed(text.replace("25.125", "24.875"))
    assert missed.invalid == (
        "run_stop does not say success: no time to train (best eval_accuracy 24.875 against a target of 25)"
    )
    false = parsed(text.replace("run_stop\n", 'run_stop: {"success": false}\n'))
    assert false.invalid is not None and false.invalid.startswith("run_stop says success: false: no time to train")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mlperf_training: expected run_start of an MLPerf Training log, got 'no output'"),
        (
            "srun: error: gx8-a: task 3: Out Of Memory\n\n",
            "mlperf_training line 1: expected run_start of an MLPerf Training log, got 'srun: error: gx8-a: task 3: Out Of Memory'",
        ),
        (
            ':::MLLOG {"key": "loadgen_version", "value": "5.1", "time_ms": 0.004}\n',
            'mlperf_training line 1: expected run_start of an MLPerf Training log, got "LoadGen\'s log of MLPerf Inference"',
        ),
        (
            record(T, "run_stop", status="success"),
            "mlperf_training line 1: expected run_start of an MLPerf Training log before run_stop",
        ),
        (
            record(T, "run_start"),
            "mlperf_training line 1: expected a run_stop: the run that began on line 1 did not end, nor evaluate anything",
        ),
    ],
)
def test_what_is_no_whole_log(text: str, message: str) -> None:
    assert error(text).startswith(message)


@pytest.mark.parametrize(
    "line",
    [
        record(T, "run_start"),
        record(T + 1, "run_stop", status="success"),
        record(T, "seed", 5),
        ":::MLL 1560822993.653 run_start: {\n",
        ":::MLPv0.5.0 " * 10 + "\n",
        ":::MLLOG " * 50 + '"run_stop"\n',
    ],
)
def test_a_line_many_times_ends_soon(line: str) -> None:
    began = time.process_time()
    raw = "".join(line.replace(str(T), str(T + i * 7)) for i in range(20_000)).encode()
    try:
        parse(raw)
    except ParseError as problem:
        assert len(str(problem)) < 2000
    assert time.process_time() - began < 60  # a second; where the time grew with the square it would be many minutes


def test_many_runs_make_few_notes() -> None:
    text = "".join(later(log(evaluation(1, 0.01 * n, epoch_num=1), status="aborted"), n * 1_000_000) for n in range(40))
    result = parsed(text)
    assert len(result.notes) == 21
    assert result.notes[-1] == "and 20 more notes"
    assert len(set(identities(result))) == len(result.measurements)
