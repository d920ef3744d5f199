"""The programs of collectives and of training, run here by a real torch on CPUs: right results, and one sentence else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.torches import needs_torch
from tests.workloads.torch_programs import complaint, copied, figures, run

pytestmark = needs_torch


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("programs"))


ALL = """
import torch_collectives, torch_ranks

def work(options, group):
    for options.op in sorted(torch_collectives.FACTOR):
        for size in (8, 1000, 65536):
            row = torch_collectives.measure(group, options, size, group.torch.bfloat16)
            torch_collectives.say(group, dict(row, op=options.op))

torch_ranks.run("every operation", torch_collectives.add_words, work)
"""


def test_every_operation_of_three_ranks_is_right_at_sizes_that_do_not_divide(programs: Path) -> None:
    (programs / "all.py").write_text(ALL)
    done = run(programs, "all", "--op", "reduce", "--sizes", "8", "--ranks", "3", "--budget", "0.01")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 7 * 3
    assert [row for row in rows if row["wrong"] or row["size"] % 2 or not row["time"] > 0] == []
    shared = {row["size"] for row in rows if row["op"] in ("all_gather", "reduce_scatter", "all_to_all")}
    assert all(size // 2 % 3 == 0 for size in shared), "each rank has a whole share"


def test_what_keeps_ranks_from_meeting_is_one_sentence(programs: Path) -> None:
    words = ["--op", "sendrecv", "--sizes", "64", "--budget", "0.02"]
    assert "one rank has nobody" in complaint(run(programs, "torch_collectives", *words))
    lacking = complaint(run(programs, "torch_collectives", *words, "--ranks", "2", "--device", "cuda"))
    assert "sees no device cuda here: it has cpu" in lacking
    alone = complaint(run(programs, "torch_collectives", *words, "--nodes", "2", "--patience", "2"))
    assert alone.startswith("rank 1 of 2 did not come to 127.0.0.1:"), alone


def test_the_loss_is_the_same_on_one_and_two_threads_and_over_two_ranks(programs: Path) -> None:
    words = ["--model", "gpt-tiny", "--batch", "1", "--budget", "0.1"]
    checks: list[float] = []
    for more in (["--threads", "1"], ["--threads", "2"]):
        seen = figures("torch_train", run(programs, "torch_train", *words, *more))
        checks.append(seen["check_loss"])
        assert (seen["parameters"], seen["ranks"]) == (4_273_664, 1)
        # 6 N + 12 L T d a token, N without the position embedding
        flops = 256 * (6 * (4_273_664 - 256 * 256) + 12 * 4 * 256 * 256)
        assert seen["model_flops"] * seen["step_time"] == pytest.approx(flops)
    assert checks[0] == pytest.approx(checks[1], rel=1e-4)


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_shared_training_has_the_loss_of_one_and_an_efficiency(programs: Path, mode: str) -> None:
    words = ["--model", "gpt-tiny", "--batch", "1", "--budget", "0.1", "--ranks", "2", "--mode", mode]
    seen = figures("torch_train", run(programs, "torch_train", *words))
    assert seen["ranks"] == 2
    assert 0 < seen["scaling_efficiency"] < 2
    assert seen["tokens_per_second"] == pytest.approx(2 * 256 / seen["step_time"])
    assert seen["communication_time"] > 0 and 0 <= seen.get("communication_exposed", 0) <= seen["communication_time"]
    share = 1 - seen.get("communication_exposed", 0) / seen["communication_time"]
    assert seen["communication_overlap"] == pytest.approx(share)


def test_a_resnet_in_bf16(programs: Path) -> None:
    words = ["--model", "resnet-tiny", "--batch", "4", "--budget", "0.1", "--precision", "bf16"]
    seen = figures("torch_train", run(programs, "torch_train", *words, "--power-cap=350"))
    assert seen["device_power_cap"] == 350
    assert seen["images_per_second"] == pytest.approx(4 / seen["step_time"])


def test_a_model_that_does_not_fit_says_what_it_asks_for_and_what_is_free(programs: Path) -> None:
    words: Any = ["--model", "gpt-7b", "--layers", "400"]
    sentence = complaint(run(programs, "torch_train", *words))
    assert sentence.startswith("out of memory: gpt-7b has ")
    assert " GiB on each device, and " in sentence and "GiB are free" in sentence
    assert "needs the package torchao" in complaint(
        run(programs, "torch_train", "--model", "gpt-tiny", "--precision", "fp8")
    )
