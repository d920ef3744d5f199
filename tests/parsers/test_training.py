"""Logs of training frameworks: figures worked out by hand from the fixtures, ends that are missing, and hostile text."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetmark import parsers
from fleetmark.base.errors import ParseError
from fleetmark.record import imports
from tests.parsers.reading import FIXTURES, cases, read, value

FRAMEWORKS = ("megatron_lm", "deepspeed", "torchtitan", "maxtext")


def test_megatron_lm() -> None:
    parsed = read("megatron_lm", "schema.log")
    assert parsed.invalid is None and cases(parsed) == {"b256-s4096"}
    # The first interval (9.1204 s) is left out; of the other eleven the sixth is the median, the tenth the 90th.
    assert value(parsed, "step_time") == pytest.approx(6.209)
    assert value(parsed, "step_time_p90") == pytest.approx(6.215)
    assert value(parsed, "tokens_per_second") == pytest.approx(256 * 4096 / 6.209)
    assert value(parsed, "tokens_per_second_device") == pytest.approx(256 * 4096 / 6.209 / 16)
    assert value(parsed, "peak_memory") == pytest.approx(58221.25 * 2**20)
    assert value(parsed, "checkpoint_save") == pytest.approx(24.89513)  # of the slowest rank
    assert value(parsed, "checkpoint_load") == pytest.approx(17.35307)


def test_a_fork_that_prints_tokens_itself() -> None:
    parsed = read("megatron_lm", "schema_fork.log")
    assert value(parsed, "tokens_per_second_device") == pytest.approx(1153.66)
    assert value(parsed, "model_flops_device") == pytest.approx(70.27e12)
    assert value(parsed, "tokens_per_second") is None  # nothing says how many devices there were


def megatron(*after: str) -> bytes:
    """Return a log of four steps, each followed by the lines ``after``, in which ``{slow}`` is 400 ms and 300 at first."""
    step = " iteration {n}/ 4 | elapsed time per iteration (ms): 500.0 | lm loss: 2.0E+00 |"
    lines = [line.format(n=n, slow=400.0 if n > 1 else 300.0) for n in range(1, 5) for line in (step, *after)]
    return "\n".join([*lines, "[after training is done] datetime: 2026-01-01", ""]).encode()


ALL_RANKS = (
    "times across ranks (ms):",
    "  forward-backward:",
    *(f"     rank {n:2d}: 450.00" for n in range(4)),  # with waits for other ranks: not compared
    "  forward-compute:",
    *("     rank  0: 100.00", "     rank  1: 101.00", "     rank  2: 100.50", "     rank 11: {slow:.2f}"),
    "  backward-compute:",
    *("     rank  0: 200.00", "     rank  1: 202.00", "     rank  2: 201.00", "     rank 11: 205.00"),
)
DETECTED = (
    "[2026-01-01 00:00:00] | MnRtt/Rnk: 120.00ms/4 | MxRtt/Rnk: {slow:.2f}ms/11 | MnPwr/Rnk: 600.00W/1 | "
    "MxPwr/Rnk: 700.00W/2 | MnEtpt/Rnk: 300.00TF/11 | MxEtpt/Rnk: 400.00TF/4",
)


@pytest.mark.parametrize(("after", "lost"), [(ALL_RANKS, 605.0 - 301.5), (DETECTED, 400.0 - 120.0)])
def test_megatron_lm_names_its_slow_rank(after: tuple[str, ...], lost: float) -> None:
    parsed = parsers.parse("megatron_lm", megatron(*after))
    (slow,) = [m for m in parsed.measurements if m.metric == "straggler_time"]
    assert (slow.value, slow.labels) == (pytest.approx(lost / 1e3), {"rank": "11"})
    assert parsed.notes[-1].startswith("rank 11 was the slowest in 3 of 3 steps that were compared")


def test_deepspeed() -> None:
    parsed = read("deepspeed", "schema.log")
    assert parsed.invalid is None
    assert value(parsed, "samples_per_second") == pytest.approx(25.6)
    assert value(parsed, "step_time") == pytest.approx(64 / 25.71)
    assert value(parsed, "checkpoint_save") == pytest.approx(8.35)
    assert value(parsed, "peak_memory") == pytest.approx(38.49 * 2**30) and value(parsed, "devices") == 8


def test_torchtitan() -> None:
    parsed = read("torchtitan", "schema.log")
    assert parsed.invalid is None and cases(parsed) == {"b8-s8192"}
    assert value(parsed, "tokens_per_second_device") == 5219  # its tps is of one device
    assert value(parsed, "tokens_per_second") == 5219 * 8
    assert value(parsed, "mfu") == pytest.approx(0.3066)
    assert (value(parsed, "checkpoint_save"), value(parsed, "checkpoint_load")) == (5.53, 12.25)


def test_maxtext() -> None:
    parsed = read("maxtext", "schema.log")
    assert parsed.invalid is None
    assert value(parsed, "step_time") == pytest.approx(5.785) and value(parsed, "devices") == 16
    assert value(parsed, "model_flops_device") == pytest.approx(216.076e12)


@pytest.mark.parametrize(
    ("tool", "name", "until", "reason"),
    [
        ("megatron_lm", "schema.log", b"[after training", 'the line with "[after training is done]" is missing'),
        ("megatron_lm", "schema.log", b"  successfully", "a checkpoint save begins"),
        ("deepspeed", "schema.log", b" [INFO] [launch.py:351", 'no process "exits successfully"'),
        ("torchtitan", "schema.log", b"Training completed", '"Training completed" is missing'),
        ("maxtext", "schema.log", b"completed step: 9", "the last step is 8, but 12 steps from 0 were configured"),
    ],
)
def test_a_missing_end_is_reported(tool: str, name: str, until: bytes, reason: str) -> None:
    raw = (FIXTURES / tool / name).read_bytes()
    cut = raw[: raw.rindex(until) if tool != "deepspeed" else raw.index(until)]
    parsed = parsers.parse(tool, cut[: cut.rindex(b"\n") + 1])
    assert parsed.invalid is not None and "the output is cut" in parsed.invalid and reason in parsed.invalid


def test_only_one_of_several_ranks_counts() -> None:
    raw = (FIXTURES / "torchtitan/schema.log").read_bytes()
    twice = b"".join(line + line.replace(b"[rank0]", b"[rank1]") for line in raw.splitlines(keepends=True))
    assert parsers.parse("torchtitan", twice).measurements == parsers.parse("torchtitan", raw).measurements


@pytest.mark.parametrize("tool", FRAMEWORKS)
def test_other_text_is_refused(tool: str) -> None:
    with pytest.raises(ParseError, match="expected the line of a training step"):
        parsers.parse(tool, b"Traceback (most recent call last):\nRuntimeError: NCCL error\n")


@pytest.mark.parametrize("tool", FRAMEWORKS)
def test_logs_are_imported_as_training(tool: str, tmp_path: Path) -> None:
    (done,), failed = imports.files(tmp_path, tool, [FIXTURES / tool / "schema.log"], "cluster-a", ["gpus=8"])
    assert not failed and list(done.metadata["machines"]) == ["cluster-a"]
    import pyarrow.parquet as pq

    rows = pq.read_table(done.path / "measurements.parquet").to_pylist()
    classes = {row["metric"]: row["class"] for row in rows}
    assert classes["step_time"] == "gpu-train-speed"
    assert classes.get("tokens_per_second", classes.get("samples_per_second")) == "gpu-train"
    assert {row["workload"] for row in rows} == {tool} and {row["status"] for row in rows} == {"passed"}


def test_maxtext_does_not_cut_a_figure() -> None:
    line = b"completed step: %d, seconds: 1.5, TFLOP/s/device: 2.5, Tokens/s/device: 3.5, total_weights: 8, loss: %s\n"
    for loss in (b"9" * 400, b"1.5e+20"):
        parsed = parsers.parse("maxtext", b"".join(line % (step, loss) for step in range(4)))
        assert "loss" not in {m.metric for m in parsed.measurements}
