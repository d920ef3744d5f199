"""HPC Challenge's input and its launcher: the grid, the matrix, and which BLAS the program is linked with."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark.hosts.agent import PLAYBOOKS

RUN = PLAYBOOKS / "roles" / "hpcc" / "files" / "run.py"
spec = importlib.util.spec_from_file_location("hpcc_run", RUN)
assert spec and spec.loader
run: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


@pytest.mark.parametrize(("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (12, (3, 4)), (64, (8, 8)), (97, (1, 97))])
def test_the_grid_is_as_square_as_can_be(ranks: int, grid: tuple[int, int]) -> None:
    assert run.grid(ranks) == grid


def test_the_matrix_fits_into_the_memory() -> None:
    n = run.order(2**30, 192)
    assert n % 192 == 0 and 0.95 * 2**30 < 8 * n * n <= 2**30
    assert run.order(100, 192) == 192


def test_the_input_has_hpls_31_lines() -> None:
    lines = run.INPUT.format(n=960, block=64, p=1, q=2).splitlines()
    assert lines[31].startswith("#####") and lines[5] == "960" and lines[10:12] == ["1", "2"]


def test_another_blas_is_refused(tmp_path: Path) -> None:
    words = ["--memory", "1000", "--block", "64", "--ranks", "1", sys.executable, "false"]
    ran = subprocess.run([sys.executable, str(RUN), *words], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 1 and ran.stdout == ""
    assert ran.stderr == "hpcc is linked with no known BLAS, not with OpenBLAS: set hpcc.path to one that is\n"


def test_it_runs_on_old_pythons() -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips", str(RUN)]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
