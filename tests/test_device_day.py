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


SMI = r"""#!/bin/sh
case "$*" in
  *compute-apps*) echo "4711, /usr/bin/python3, 40960" ;;
  *power.limit\ *) echo 350.00; echo 700.00 ;;
  *-lms*) echo "timestamp, index, name"; exec sleep 60 ;;
  -L) echo "GPU 0: NVIDIA H100 80GB HBM3" ;;
  *) echo "<nvidia_smi_log/>" ;;
esac
"""
TORCH = """#!/bin/sh
case "$1" in -c) echo "2.11.0 %s" ;; *) echo "$@" ;; esac
"""


def start(out: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "FLEETMARK_TORCH"}
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(out), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env=env | {"PATH": path + env["PATH"]},
    )


def day(out: Path, *words: str, path: str = "") -> tuple[str, dict[str, str]]:
    """Return what the script printed, and why each thing was left out."""
    ran = start(out, *words, path=path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = (out / "skipped.txt").read_text().splitlines()
    return ran.stdout, dict(line.split(": ", 1) for line in lines)


@pytest.mark.job
def test_the_suite_runs_as_far_as_it_fits_and_leaves_fixtures_and_a_page(tmp_path: Path) -> None:
    small = ("--set", "stream.array_elements=1000000", "--set", "iperf3.duration=1")
    long = ("--set", "torch_train.budget=600")  # where there is a Python with torch, it does not fit either
    _, left_out = day(tmp_path / "day", "--minutes", "1.2", *small, *long)
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


def stand_in(folder: Path, name: str, text: str) -> str:
    """Write a program. Return its folder in the form of PATH."""
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    return f"{program.parent}:"


def test_a_device_that_others_use_is_measured_with_its_power_limit_and_said_to_be_in_use(tmp_path: Path) -> None:
    path = stand_in(tmp_path, "nvidia-smi", SMI)
    stand_in(tmp_path, "torch-python", TORCH % "True")
    _, left_out = day(tmp_path / "day", "--bare", "--python", "torch-python", path=path)
    outputs = {file.stem: file.read_text() for file in (tmp_path / "day" / "fixtures").rglob("*.out")}
    assert {"basic-4096t-b32", "fused-4096t-b32", "gpt-125m-bf16", "gpt-125m-tf32", "resnet-50-bf16"} <= set(outputs)
    assert all("--power-cap 350.00" in text for text in outputs.values())
    assert (tmp_path / "day" / "telemetry.csv").read_text().startswith("timestamp")
    assert (tmp_path / "day" / "nvidia-smi.xml").read_text() == "<nvidia_smi_log/>\n"
    assert left_out["an idle device"].endswith("4711, /usr/bin/python3, 40960")


def test_a_torch_that_does_not_see_the_device_ends_the_day_with_a_sentence(tmp_path: Path) -> None:
    path = stand_in(
        tmp_path, "nvidia-smi", "#!/bin/sh\necho Failed to initialize NVML: Driver/library version mismatch\nexit 18\n"
    )
    stand_in(tmp_path, "torch-python", TORCH % "False")
    ran = start(tmp_path / "day", "--bare", "--python", str(tmp_path / "bin" / "torch-python"), path=path)
    assert ran.returncode == 1 and "Traceback" not in ran.stderr
    assert "sees no accelerator, though nvidia-smi is here and says 'Failed to initialize NVML" in ran.stderr
    assert not (tmp_path / "day" / "fixtures").exists()


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    ran = start(tmp_path / "day", "--python", "/nowhere/python3")
    assert (ran.returncode, ran.stderr) == (1, "--python /nowhere/python3: there is no such program\n")
