"""Test HPL and HPCG: the input files, the launcher, and the hosts that can run them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark import parsers
from fleetmark.base.errors import FleetmarkError
from fleetmark.hosts.agent import PLAYBOOKS
from tests.parsers.reading import FIXTURES, value
from tests.workloads.scheduling import reason, scheduled

RUN = PLAYBOOKS / "roles" / "hpl" / "files" / "run.py"
spec = importlib.util.spec_from_file_location("hpl_run", RUN)
assert spec and spec.loader
run: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)

GiB = 1 << 30
MPI: dict[str, Any] = {"software": {"mpi": "Open MPI 4.1.4"}}
GPUS = [{"index": n, "name": "H100", "vendor": "nvidia", "memory": 80 * GiB} for n in range(4)]


@pytest.mark.parametrize(("ranks", "grid"), [(1, (1, 1)), (8, (2, 4)), (12, (3, 4)), (97, (1, 97))])
def test_the_grid_is_as_square_as_can_be(ranks: int, grid: tuple[int, int]) -> None:
    assert run.grid(ranks) == grid


def test_sizes_follow_from_the_memory() -> None:
    n = run.order(320 * GiB, 1024)
    assert n % 1024 == 0 and 0.97 * 320 * GiB < 8 * n * n <= 320 * GiB
    assert run.edge(4 * 800 * 104**3, 4, 8) == 104
    assert run.edge(1000, 4, 8) == 16


def launched(tmp_path: Path, benchmark: str, script: str, *more: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    words = ["--ranks=4", f"--memory={8 * 1920**2}", "--block=192", *more, benchmark, str(program)]
    return subprocess.run([sys.executable, str(RUN), *words], capture_output=True, text=True, cwd=tmp_path)


def test_hpl_finds_its_31_lines(tmp_path: Path) -> None:
    ran = launched(tmp_path, "hpl", "cat HPL.dat")
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0 and len(lines) == 31
    assert [lines[n] for n in (3, 5, 7, 10, 11)] == ["6", "1920", "192", "2", "2"]


def test_hpcg_finds_its_grid_and_its_summary_is_printed(tmp_path: Path) -> None:
    summary = FIXTURES / "hpcg" / "3.1_form.txt"
    ran = launched(tmp_path, "hpcg", f"cat hpcg.dat; cp {summary} HPCG-Benchmark_3.1_2026-01-12.txt", "--seconds=7")
    assert ran.stdout.splitlines()[2:4] == ["16 16 16", "7"]
    assert value(parsers.parse("hpcg", ran.stdout.encode()), "hpcg") == 361.125e9


def test_the_users_own_input_is_taken_and_the_exit_status_kept(tmp_path: Path) -> None:
    (tmp_path / "own.dat").write_text("tuned\n")
    ran = launched(tmp_path, "hpl", "cat HPL.dat; exit 3", f"--dat={tmp_path}/own.dat")
    assert (ran.stdout, ran.returncode) == ("tuned\n", 3)


def test_processes_and_matrix_are_those_of_the_gpus() -> None:
    (step,) = scheduled("hpl", 1, [MPI | {"gpus": GPUS}], program="/opt/hpl.sh", on="gpu", args="--dat HPL.dat")["h1"]
    words = " ".join(step.argv)
    assert (step.case, step.class_) == ("all-gpus", "gpu-compute")
    assert f"--ranks=4 --memory={int(0.8 * 320 * GiB)} --block=1024 hpl mpirun --host localhost:4 -np 4" in words
    assert words.endswith("MKL_NUM_THREADS=1 /opt/hpl.sh --dat HPL.dat")


def test_a_program_that_starts_its_processes_itself_has_no_launcher() -> None:
    (step,) = scheduled("hpl", 1, [{"software": {}}], program="/opt/runme", launcher="none", ranks=1)["h1"]
    assert "mpirun" not in step.argv and "--ranks=1" in step.argv


@pytest.mark.parametrize("workload", ["hpl", "hpcg"])
def test_two_hosts_run_one_problem_together(workload: str) -> None:
    steps = scheduled(workload, 2, [MPI, MPI], program="/opt/x", nodes=["1", "2"])
    (two,) = [s for s in steps["h1"] if s.case == "2n"]
    words = " ".join(two.argv)
    assert "mpirun --host 10.0.0.1:16,10.0.0.2:16 -np 32" in words and f" {workload} mpirun " in words
    assert ("--seconds=60" in words) is (workload == "hpcg")


@pytest.mark.parametrize(
    ("settings", "host", "words"),
    [
        ({"program": "/opt/x", "on": "gpu"}, MPI, "needs GPUs, but none were found"),
        (
            {"program": "/opt/x", "on": "gpu"},
            MPI | {"gpus": [GPUS[0] | {"memory": None}]},
            "needs the GPU memory size",
        ),
        ({"program": "/opt/x"}, {"software": {}}, "needs Open MPI's mpirun"),
        ({"program": "/opt/x", "memory_share": 0.97}, MPI, "needs memory_share below 0.96"),
    ],
)
def test_a_host_that_cannot_run_it_says_why(settings: dict[str, Any], host: dict[str, Any], words: str) -> None:
    assert words in reason("hpl", settings, **host)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "program, the absolute path of the benchmark on the hosts"),
        ({"program": "/opt/x", "launcher": "none", "nodes": ["2"]}, "nodes to be 1 with launcher none"),
    ],
)
def test_what_cannot_run_anywhere_is_refused_at_once(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(FleetmarkError, match=words):
        scheduled("hpl", 1, [MPI], **settings)


def test_it_runs_on_old_pythons() -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips", str(RUN)]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
