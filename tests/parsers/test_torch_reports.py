"""The reports of Fleetmark's own programs over torch.distributed: figures worked out from them, and what is not believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fleetmark.base.errors import ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.parsers import parse

HEAD: dict[str, Any] = {
    "tool": "torch_collectives", "torch": "2.13.0+cpu", "backend": "gloo", "device": "cpu", "op": "all_reduce",
    "dtype": "float32", "ranks": 4, "nodes": 2,
}  # fmt: skip
SIZE = {"size": 1 << 20, "count": 1 << 18, "calls": 50, "time": 1e-3, "p50": 8e-4, "p99": 5e-3, "wrong": 0}
TRAIN = {
    "tool": "torch_train", "torch": "2.13.0", "backend": "nccl", "device": "cuda", "model": "gpt-125m", "mode": "ddp",
    "precision": "bf16", "parameters": 124_000_000, "ranks": 8, "nodes": 1,
}  # fmt: skip
CHECK = {"check": 5.50, "must": 5.51, "tolerance": 0.02}
STEP = {
    "steps": 40, "step": 0.25, "p50": 0.24, "p90": 0.3, "units": 65536, "unit": "tokens", "flops": 5.6e13,
    "matrix_peak": 7e14, "peak": 9.89e14, "memory": 3e10, "alone": 0.23, "first_loss": 10.9, "last_loss": 9.0,
    "window": [1000.0, 1010.0],
}  # fmt: skip


def report(*documents: dict[str, Any], end: bool = True) -> bytes:
    lines = [json.dumps(d) for d in (*documents, *([{"end": True}] if end else []))]
    return ("warning: something of torch\n" + "\n".join(lines) + "\n").encode()


def figures(parsed: Parsed) -> dict[str, float]:
    return {m.metric: m.value for m in parsed.measurements}


@pytest.mark.parametrize(
    ("op", "factor"),
    [("all_reduce", 1.5), ("all_gather", 0.75), ("reduce_scatter", 0.75), ("all_to_all", 0.75), ("broadcast", 1.0),
     ("reduce", 1.0), ("sendrecv", 1.0)],
)  # fmt: skip
def test_bandwidths_are_counted_as_nccl_tests_does(op: str, factor: float) -> None:
    parsed = parse("torch_collectives", report({**HEAD, "op": op}, SIZE, {**SIZE, "size": 8}))
    seen = {(m.metric, m.labels.get("size")): m.value for m in parsed.measurements}
    assert seen["algbw", "1048576"] == pytest.approx((1 << 20) / 1e-3)
    assert seen["busbw", "1048576"] == seen["torch_peak_busbw", None] == pytest.approx(factor * (1 << 20) / 1e-3)
    assert (seen["time_p99", "8"], seen["ranks", None], seen["nodes", None]) == (5e-3, 4, 2)
    assert (parsed.version, parsed.invalid, parsed.notes) == ("2.13.0+cpu gloo", None, ())


def test_wrong_data_and_a_cut_report_are_invalid() -> None:
    wrong = parse("torch_collectives", report(HEAD, {**SIZE, "wrong": 7}))
    assert wrong.invalid == "wrong data: 7 elements at 1048576 bytes"
    assert "cut" in str(parse("torch_collectives", report(HEAD, SIZE, end=False)).invalid)
    unchecked = parse("torch_collectives", report(HEAD, {**SIZE, "wrong": None}))
    assert unchecked.notes == ("the results were not checked",)


@pytest.mark.parametrize(
    "documents",
    [
        (), ({**HEAD, "op": "x"}, SIZE), ({**HEAD, "ranks": 1}, SIZE), ({**HEAD, "ranks": True}, SIZE), (HEAD,),
        (HEAD, {**SIZE, "time": 0}), (HEAD, {**SIZE, "time": "nan"}), (HEAD, {**SIZE, "size": -8}),
        (HEAD, {**SIZE, "size": 1 << 60}), (TRAIN, CHECK, STEP),
    ],
)  # fmt: skip
def test_what_is_no_report_of_collectives(documents: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ParseError):
        parse("torch_collectives", report(*documents))


def test_a_training_step_s_figures() -> None:
    parsed = parse("torch_train", report(TRAIN, CHECK, STEP))
    seen = figures(parsed)
    assert parsed.invalid is None and parsed.window == (1000.0, 1010.0)
    assert (seen["step_time"], seen["steps_per_second"], seen["tokens_per_second"]) == (0.25, 4.0, 262144.0)
    assert seen["tokens_per_second_device"] == 32768.0
    assert seen["mfu"] == pytest.approx(5.6e13 / 0.25 / 8 / 9.89e14)
    assert seen["mfu_measured"] == pytest.approx(5.6e13 / 0.25 / 8 / 7e14)
    assert seen["scaling_efficiency"] == pytest.approx(0.92)
    assert "images_per_second" not in seen


def test_without_a_peak_there_is_no_mfu_and_without_one_device_no_efficiency() -> None:
    parsed = parse("torch_train", report(TRAIN, CHECK, {**STEP, "peak": 0.0, "alone": None}))
    assert not {"mfu", "scaling_efficiency"} & figures(parsed).keys()
    assert parsed.notes == ("the model does not fit one device: no scaling efficiency",)


@pytest.mark.parametrize(
    ("check", "step", "words"),
    [
        ({**CHECK, "check": 5.7}, STEP, "wrong loss: 5.7 after the steps of the small model, but fp64 gives 5.51"),
        ({**CHECK, "check": None}, STEP, "was not checked"),
        ({**CHECK, "check": float("nan")}, STEP, "was not checked"),
        ({}, STEP, "was not checked"),
        (CHECK, {**STEP, "last_loss": 11.0}, "it did not fall"),
        (CHECK, {**STEP, "last_loss": float("nan")}, "it did not fall"),
    ],
)
def test_a_wrong_loss_is_invalid(check: dict[str, Any], step: dict[str, Any], words: str) -> None:
    assert words in str(parse("torch_train", report(TRAIN, check, step)).invalid)


@pytest.mark.parametrize("step", [{}, {**STEP, "step": 0}, {**STEP, "unit": "apples"}, {**STEP, "step": "1"}])
def test_what_is_no_report_of_training(step: dict[str, Any]) -> None:
    if step.get("step") == "1":  # a figure as text is one
        assert figures(parse("torch_train", report(TRAIN, CHECK, step)))["step_time"] == 1.0
        return
    with pytest.raises(ParseError):
        parse("torch_train", report(TRAIN, CHECK, step))


def test_a_time_too_short_to_be_one_has_no_bandwidth() -> None:
    parsed = parse("torch_collectives", report(HEAD, SIZE, {**SIZE, "size": 1 << 40, "time": 1e-300}))
    assert [m.labels["size"] for m in parsed.measurements if m.metric == "busbw"] == [str(1 << 20)]
