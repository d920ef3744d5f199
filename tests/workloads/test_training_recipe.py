"""The user's own training: goodput worked out by hand, and a real training in torch that fails and goes on."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError, ParseError
from fleetmark.base.measurement import Parsed
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.workloads.manifest import HERE
from tests.parsers.reading import FIXTURES, read, value
from tests.schedules import schedule, suite
from tests.torches import PYTHON, needs_torch

PROGRAM = PLAYBOOKS / "roles" / "training_recipe" / "files" / "recipe.py"
LOST = ("lost_to_startup", "lost_to_restarts", "lost_to_checkpoints", "lost_to_slow_steps")
TRAINING = Path(__file__).parents[1] / "standins" / "training_recipe" / "train.py"


def record(*lines: str, framework: str = "json", end: float = 0.0, **head: Any) -> bytes:
    documents = [json.dumps({"tool": "training_recipe", "case": "a", "framework": framework, **head}), *lines]
    return ("\n".join([*documents, *([json.dumps({"end": True, "at": end})] if end else [])]) + "\n").encode()


def step(stamp: float, number: int, seconds: float = 1.0) -> str:
    return f"@{stamp:.4f} " + json.dumps({"step": number, "seconds": seconds, "tokens": 500, "loss": 2.0})


def save(stamp: float, seconds: float) -> str:
    return f"@{stamp:.4f} " + json.dumps({"checkpoint": "save", "seconds": seconds})


def shares(parsed: Parsed) -> dict[str, float]:
    return {m.metric: m.value for m in parsed.measurements if m.metric in ("goodput", *LOST)}


def test_each_second_of_a_run_has_one_cause() -> None:
    """Attempt 0: 3 s to start, steps 1-4, a save of 2 s after step 2, step 4 takes 3 s, then a failure. Attempt 1: 4 s
    later, 5 s to load, steps 3-6 of which 3 and 4 were done before; 1 s to end. 30 s in all."""
    raw = record(
        '{"attempt": 0, "at": 0.0}',
        *(step(4, 1), step(5, 2), save(7, 2.0), step(8, 3), step(11, 4, 3.0)),
        '{"exit": 9, "at": 12.0}',
        '{"attempt": 1, "at": 16.0}',
        *(step(22, 3), step(23, 4), step(24, 5), step(25, 6)),
        '{"exit": 0, "at": 30.0}',
        end=30.0,
    )
    parsed = parsers.parse("training_recipe", raw)
    assert parsed.invalid is None
    assert shares(parsed) == pytest.approx(
        {
            "goodput": 6 / 30,  # steps 1, 2, 3, 4, 5 and 6, a second each
            "lost_to_startup": (3 + 5) / 30,
            "lost_to_restarts": (1 + 4 + 5 + 2) / 30,  # after step 4; between; until step 3; steps 3 and 4 again
            "lost_to_checkpoints": 2 / 30,
            "lost_to_slow_steps": 2 / 30,
        }
    )
    assert value(parsed, "useful_tokens_per_second") == pytest.approx(6 * 500 / 30)
    assert (value(parsed, "restarts"), value(parsed, "steps_redone")) == (1, 2)


def test_the_heads_figures_give_mfu() -> None:
    lines = ['{"attempt": 0, "at": 0.0}', step(1, 1), step(2, 2), step(3, 3), '{"exit": 0, "at": 3.0}']
    parsed = parsers.parse("training_recipe", record(*lines, end=3.0, devices=2, flops=6e9, peak=5e12))
    assert value(parsed, "mfu") == pytest.approx(250 * 6e9 / 5e12)  # 500 tokens a second on two devices


@pytest.mark.parametrize("tool", ["megatron_lm", "deepspeed", "torchtitan", "maxtext"])
def test_the_logs_of_frameworks_are_read(tool: str) -> None:
    lines = (FIXTURES / tool / "schema.log").read_text().splitlines()
    stamped = [f"@{n:.4f} {line}" for n, line in enumerate(lines)]
    seconds = float(len(lines))
    raw = record('{"attempt": 0, "at": 0.0}', *stamped, f'{{"exit": 0, "at": {seconds}}}', framework=tool, end=seconds)
    parsed, alone = parsers.parse("training_recipe", raw), read(tool, "schema.log")
    assert value(parsed, "step_time") == value(alone, "step_time")
    assert sum(shares(parsed).values()) == pytest.approx(1) and value(parsed, "checkpoint_save") == value(
        alone, "checkpoint_save"
    )


def test_a_run_that_did_not_end_well_is_invalid() -> None:
    begin = ['{"attempt": 0, "at": 0.0}', step(1, 1), step(2, 2)]
    cut = parsers.parse("training_recipe", record(*begin))
    assert cut.invalid is not None and "the output is cut" in cut.invalid
    failed = parsers.parse("training_recipe", record(*begin, '{"exit": 1, "at": 3.0}', end=3.0))
    assert failed.invalid == "the last attempt ended with status 1"
    ended = parsers.parse("training_recipe", record(*begin, '{"exit": 143, "at": 3.0, "ended": true}', end=3.0))
    assert ended.invalid is None
    with pytest.raises(ParseError, match="CUDA error"):
        parsers.parse("training_recipe", record('{"attempt": 0, "at": 0.0}', "@1.0000 CUDA error: no device", end=2.0))


@needs_torch
def test_a_training_in_torch_fails_and_goes_on(tmp_path: Path) -> None:
    python = Path(PYTHON) / "bin/python" if Path(PYTHON).is_dir() else Path(PYTHON)
    command = f"exec {python} {TRAINING} {tmp_path / 'checkpoint.pt'}"
    words = ["--case=mlp", "--framework=json", f"--command={command}", "--restarts=2", "--env=OMP_NUM_THREADS=1"]
    done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, timeout=300, check=True)
    parsed = parsers.parse("training_recipe", done.stdout)
    assert parsed.invalid is None
    assert (value(parsed, "restarts"), value(parsed, "steps_redone"), value(parsed, "steps")) == (1, 3, 20)
    assert sum(shares(parsed).values()) == pytest.approx(1)
    assert 0 < shares(parsed)["goodput"] < 1 and shares(parsed)["lost_to_restarts"] > 0
    for metric in ("checkpoint_save", "checkpoint_load", "tokens_per_second"):
        assert value(parsed, metric)


def test_the_command_is_ended_after_its_time() -> None:
    command = 'exec {} -c "import time,json\nfor n in range(600): time.sleep(.02); print(json.dumps(dict(step=n+1, seconds=.02)))"'
    words = ["--case=a", "--framework=json", "--command=" + command.format(sys.executable), "--duration=1"]
    done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, timeout=300, check=True)
    assert parsers.parse("training_recipe", done.stdout).invalid is None
    assert b'"ended": true' in done.stdout


def ranks(step: int, **seconds: float) -> str:
    return json.dumps({"step": step, "working": {name.removeprefix("r"): value for name, value in seconds.items()}})


def test_waits_for_a_slow_rank_are_lost_to_it() -> None:
    """Steps of 1 s, of which ranks wait 0.3 s for rank 2 in steps 2 to 5; step 5 takes another 1 s for no rank's sake."""
    raw = record(
        '{"attempt": 0, "at": 0.0}',
        *(step(1, 1), step(2, 2), step(3, 3), step(4, 4), step(6, 5, 2.0)),
        '{"exit": 0, "at": 6.0}',
        *(ranks(n, r2=0.9, r0=0.6) for n in range(1, 6)),
        end=6.0,
    )
    parsed = parsers.parse("training_recipe", raw)
    lost = {m.metric: m.value for m in parsed.measurements if m.metric in ("goodput", "lost_to_stragglers", *LOST)}
    assert lost == pytest.approx(
        {
            "goodput": 5 * 0.7 / 6,
            "lost_to_startup": 0,
            "lost_to_restarts": 0,
            "lost_to_checkpoints": 0,
            "lost_to_stragglers": 5 * 0.3 / 6,
            "lost_to_slow_steps": 1 / 6,
        }
    )
    (named,) = [m for m in parsed.measurements if m.metric == "straggler_time"]
    assert (named.value, named.labels) == (pytest.approx(0.3), {"rank": "2"})
    assert parsed.notes == (
        "rank 2 was the slowest in 4 of 4 steps that were compared: a step lost 0.3 s to its slowest rank, 100% of it to "
        "rank 2",
    )


def test_a_log_without_the_times_of_ranks_has_no_stragglers() -> None:
    lines = ['{"attempt": 0, "at": 0.0}', step(1, 1), step(2, 2), step(3, 3), '{"exit": 0, "at": 3.0}']
    parsed = parsers.parse("training_recipe", record(*lines, end=3.0))
    assert not [m for m in parsed.measurements if "straggler" in m.metric] and not parsed.notes


def program(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"training_recipe_{name}", PROGRAM.with_name(f"{name}.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel(name: str, begin: float, end: float, category: str = "kernel") -> str:
    """Return an event of a trace as older versions of torch write it; times in ms."""
    times = f'"ts": {begin * 1e3:.3f}, "dur": {(end - begin) * 1e3:.3f}'
    return (
        f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 0, "tid": 7,\n{times},\n"args": {{"stream": 7}}}}'
    )


@pytest.mark.parametrize("packed", [False, True])
def test_in_a_trace_of_a_gpu_a_rank_waits_while_only_collectives_run(tmp_path: Path, packed: bool) -> None:
    """Rank 3 computes for 40 of 100 ms and rank 4 for 90, of which 10 beside a collective."""
    for rank, computing, collective in ((3, 40.0, 40.0), (4, 90.0, 80.0)):
        events = [
            kernel("ProfilerStep#7", 0, 100, "user_annotation"),
            kernel("sm90_xmma_gemm", 0, computing),
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", collective, 100),
            kernel("Memcpy HtoD", 0, 100, "gpu_memcpy"),
        ]
        head = f'{{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 8}},'
        text = head + '"traceEvents": [' + ",\n".join(events) + "]}"
        (tmp_path / f"rank{rank}.json{'.gz' if packed else ''}").write_bytes(
            gzip.compress(text.encode()) if packed else text.encode()
        )
    assert program("ranks").read(str(tmp_path / "*"), 0) == {7: {3: pytest.approx(0.04), 4: pytest.approx(0.09)}}


def test_files_that_are_none_of_ranks_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [' * 1000)[:30])
    (tmp_path / "log").write_bytes(b"\xff\n[1]\n" + b'{"step": -1, "rank": 0, "working": 1}\n' + b"[" * 9000)
    (tmp_path / "folder").mkdir()
    assert program("ranks").read(str(tmp_path / "*"), 0) == {}


def test_of_many_ranks_the_slowest_and_the_median_are_kept() -> None:
    assert program("ranks").kept({0: 9.0, 1: 1.0, 2: 4.0, 3: 5.0}) == {0: 9.0, 2: 4.0}
    assert program("ranks").kept({0: 5.0, 1: 5.0}) == {0: 5.0, 1: 5.0}


RANKS = Path(__file__).parents[1] / "standins" / "training_recipe" / "ranks.py"
SLEEP_S = 0.5  # more than a busy machine takes from another rank


@needs_torch
@pytest.mark.parametrize("source", ["printed", "lines", "traces"])
def test_the_slow_one_of_four_gloo_ranks_is_named(tmp_path: Path, source: str) -> None:
    """Rank 2 sleeps for SLEEP_S in each step, so every step is at least that much longer than the work of the others."""
    python = Path(PYTHON) / "bin/python" if Path(PYTHON).is_dir() else Path(PYTHON)
    command = f"exec {python} {RANKS} {source} {tmp_path} 2 {SLEEP_S}"
    words = ["--case=ddp", "--framework=json", f"--command={command}", "--env=OMP_NUM_THREADS=1"]
    words += [f"--ranks={tmp_path}/rank*"] if source != "printed" else []
    done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, timeout=300, check=True)
    parsed = parsers.parse("training_recipe", done.stdout)
    assert parsed.invalid is None
    (named,) = [m for m in parsed.measurements if m.metric == "straggler_time"]
    assert named.labels == {"rank": "2"}
    assert 0.5 * SLEEP_S < named.value < 2 * SLEEP_S + value(parsed, "step_time")
    assert "rank 2 was the slowest" in parsed.notes[-1]
    share, steps = value(parsed, "lost_to_stragglers"), value(parsed, "steps")
    assert share == pytest.approx(steps * named.value / value(parsed, "run_time"), rel=0.5)
    assert sum(shares(parsed).values()) + share == pytest.approx(1)


def test_the_manifest_names_the_program_that_it_deploys() -> None:
    files = sorted(PROGRAM.parent.glob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    named = re.search(r"digest\('([0-9a-f]{8})'", (HERE / "training_recipe.yml").read_text())
    assert named and named[1] == digest


def test_the_users_words_reach_the_program(tmp_path: Path) -> None:
    settings = {
        "command": "./train.sh",
        "framework": "torchtitan",
        "restarts": 3,
        "duration": "1h",
        "peak_flops": 989e12,
        "rank_files": "/srv/run/rank*.json",
    }
    host = schedule(suite(tmp_path, "  training_recipe:\n"), {"training_recipe": settings}, repeats=1).hosts["h1"]
    (planned,) = host.steps
    assert planned.argv[2:] == (
        *("--case=train", "--framework=torchtitan", "--command=./train.sh", "--restarts=3", "--duration=3600.0"),
        *("--peak=989000000000000.0", "--ranks=/srv/run/rank*.json"),
    )
    assert (planned.timeout_s, planned.headline) == (86400, ("tokens_per_second", "samples_per_second"))


def test_a_host_without_a_command_is_skipped(tmp_path: Path) -> None:
    host = schedule(suite(tmp_path, "  training_recipe:\n"), {}, repeats=1).hosts["h1"]
    assert host.skipped["training_recipe"].startswith("needs training_recipe.command")


def test_a_name_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FleetmarkError, match="letters, digits"):
        schedule(
            suite(tmp_path, "  training_recipe:\n"), {"training_recipe": {"command": "x", "name": "a b"}}, repeats=1
        )
