"""scripts/device_day on a machine without an accelerator: it ends, keeps what it ran, and says what it left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetmark import parsers
from tests.torches import PYTHON, needs_torch

SCRIPT = Path(__file__).parents[1] / "scripts" / "device_day"


def day(out: Path, *words: str) -> tuple[str, dict[str, str]]:
    """Return what the script printed, and why each thing was left out."""
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), str(out), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env={name: value for name, value in os.environ.items() if name != "FLEETMARK_TORCH"},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = (out / "skipped.txt").read_text().splitlines()
    return ran.stdout, dict(line.split(": ", 1) for line in lines)


@pytest.mark.job
def test_the_suite_runs_as_far_as_it_fits_and_leaves_fixtures_and_a_page(tmp_path: Path) -> None:
    small = ("--set", "stream.array_elements=1000000", "--set", "iperf3.duration=1")
    _, left_out = day(tmp_path / "day", "--minutes", "1.2", *small)
    kept = {path.parent.name for path in (tmp_path / "day" / "fixtures").rglob("*.out")}
    assert kept == {"stream", "iperf3"}  # fio does not fit 61 s
    output = min((tmp_path / "day" / "fixtures" / "stream").glob("*.out"))
    assert parsers.parse("stream", output.read_bytes()).measurements
    assert '"telemetry"' in output.with_suffix(".json").read_text()
    assert "<html" in (tmp_path / "day" / "page.html").read_text()[:1000]
    assert (tmp_path / "day" / "campaign" / "measurements.parquet").exists()
    assert left_out["fio"].startswith("its forecast of ") and left_out["nvbandwidth"] == "it is for other hardware"
    assert left_out["llm_serve"].startswith("needs llm_serve.url")


@needs_torch
def test_the_programs_run_by_themselves_where_fleetmark_cannot(tmp_path: Path) -> None:
    _, left_out = day(tmp_path / "day", "--bare", "--minutes", "4", "--python", PYTHON)
    output = tmp_path / "day" / "fixtures" / "torch_ops" / "basic-64t-b1.out"
    parsed = parsers.parse("torch_ops", output.read_bytes())
    assert parsed.measurements and parsed.invalid is None
    assert left_out["telemetry"] == "there is no nvidia-smi here"
    assert left_out["page.html"].startswith("Fleetmark's dependencies are not here")
