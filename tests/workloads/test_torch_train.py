"""What is scheduled of training steps: the peak of MFU, the power limit, how long ranks wait, and on what device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Gpu, Torch
from tests.schedules import schedule, suite

H200 = Gpu(index=0, name="NVIDIA H200", vendor="nvidia")
CUDA = Torch(version="2.11.0", device="cuda", devices=1, backends=("gloo", "nccl"), names=("NVIDIA H200",))
CPU = Torch(version="2.13.0", device="cpu", backends=("gloo",))


def words_of(tmp_path: Path, settings: dict[str, Any], gpus: tuple[Gpu, ...], torch: Torch) -> tuple[str, ...]:
    chosen = {"torch_train": {"models": "gpt-tiny", "modes": "single", **settings}}
    scheduled = schedule(suite(tmp_path, "  torch_train:\n"), chosen, repeats=1, torch={"python3": torch}, gpus=gpus)
    (step,) = scheduled.hosts["h1"].steps
    return step.argv


@pytest.mark.parametrize(
    ("settings", "gpu", "torch", "peak"),
    [
        ({}, H200, CUDA, "--peak=989500000000000.0"),
        ({"precisions": "fp16"}, H200, CUDA, "--peak=989500000000000.0"),
        ({"precisions": "fp32"}, H200, CUDA, None),
        ({"peak_flops": "5e14"}, H200, CUDA, "--peak=500000000000000.0"),
        ({}, H200.model_copy(update={"name": "Some card"}), CUDA, None),
        ({"device": "cpu", "precisions": "bf16"}, H200, CUDA, None),
        ({"precisions": "bf16", "device": "cpu"}, H200, CPU, None),
    ],
)
def test_the_peak_is_what_the_specification_says(
    tmp_path: Path, settings: dict[str, Any], gpu: Gpu, torch: Torch, peak: str | None
) -> None:
    assert [word for word in words_of(tmp_path, settings, (gpu,), torch) if word.startswith("--peak")] == (
        [peak] if peak else []
    )


@pytest.mark.parametrize(("device", "expected"), [("cuda", ["--power-cap=350.0"]), ("cpu", [])])
def test_the_lowest_power_limit_of_the_devices_is_told(tmp_path: Path, device: str, expected: list[str]) -> None:
    limits = (700.0, 350.0, None)
    gpus = tuple(H200.model_copy(update={"index": n, "power_limit": limit}) for n, limit in enumerate(limits))
    words = words_of(tmp_path, {"device": device, "precisions": "bf16"}, gpus, CUDA)
    assert [word for word in words if word.startswith("--power")] == expected


def test_ranks_wait_for_five_minutes_unless_told_otherwise(tmp_path: Path) -> None:
    assert "--patience=300.0" in words_of(tmp_path, {}, (H200,), CUDA)
    assert "--patience=20.0" in words_of(tmp_path, {"patience": 20}, (H200,), CUDA)


@pytest.mark.parametrize("workload", ["torch_train", "torch_collectives", "infer_engines"])
def test_no_cpu_is_measured_in_place_of_the_accelerators_that_torch_does_not_see(tmp_path: Path, workload: str) -> None:
    name = suite(tmp_path, f"  {workload}:\n")
    host = schedule(name, torch={"python3": CPU}, gpus=(H200,)).hosts["h1"]
    assert not host.steps
    assert host.skipped[workload] == (
        "needs a torch that sees an accelerator: python3 has torch 2.13.0, which sees none, though the host has 1 x NVIDIA "
        f"H200; set {workload}.python to one built for it, or {workload}.device to cpu"
    )
    assert schedule(name, {workload: {"device": "cpu"}}, torch={"python3": CPU}, gpus=(H200,)).hosts["h1"].steps
    assert schedule(name, torch={"python3": CPU}, gpus=()).hosts["h1"].steps
