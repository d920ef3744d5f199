"""What is scheduled of training steps: the peak that MFU is held against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Gpu, Torch
from tests.schedules import schedule, suite

H200 = Gpu(index=0, name="NVIDIA H200", vendor="nvidia")
CUDA = Torch(version="2.11.0", device="cuda", devices=1, backends=("gloo", "nccl"), names=("NVIDIA H200",))
CPU = Torch(version="2.13.0", device="cpu", backends=("gloo",))


@pytest.mark.parametrize(
    ("settings", "gpu", "torch", "peak"),
    [
        ({}, H200, CUDA, "--peak=989500000000000.0"),
        ({"precisions": "fp16"}, H200, CUDA, "--peak=989500000000000.0"),
        ({"precisions": "fp32"}, H200, CUDA, None),
        ({"peak_flops": "5e14"}, H200, CUDA, "--peak=500000000000000.0"),
        ({}, H200.model_copy(update={"name": "Some card"}), CUDA, None),
        ({"device": "cpu", "precisions": "bf16"}, H200, CUDA, None),
        ({"precisions": "bf16"}, H200, CPU, None),
    ],
)
def test_the_peak_is_what_the_specification_says(
    tmp_path: Path, settings: dict[str, Any], gpu: Gpu, torch: Torch, peak: str | None
) -> None:
    chosen = {"torch_train": {"models": "gpt-tiny", "modes": "single", **settings}}
    (step,) = (
        schedule(suite(tmp_path, "  torch_train:\n"), chosen, repeats=1, torch={"python3": torch}, gpus=(gpu,))
        .hosts["h1"]
        .steps
    )
    assert [word for word in step.argv if word.startswith("--peak")] == ([peak] if peak else [])
