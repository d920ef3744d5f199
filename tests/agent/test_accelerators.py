"""The agent's sampler of accelerators: NVML by its real Python package over a library that plays the driver's,
nvidia-smi and npu-smi by stand-ins that print what real ones printed, AMD's driver by files as it writes them."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fleetmark.parsers.facts import parse
from fleetmark.record import replies

AGENT = Path(__file__).parents[2] / "playbooks" / "agent"
STANDINS = Path(__file__).parents[1] / "standins" / "accelerators"
H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(AGENT))
    yield importlib.import_module("accelerators")
    for name in ("accelerators", "accelerator_sources"):
        sys.modules.pop(name, None)


def watch(agent: ModuleType, least: int = 3, root: str = "", between: Callable[[], None] = lambda: None) -> Any:
    """What the sampler saw once it had ``least`` samples of a step, and as many after ``between``, checked by the model
    of the archive."""
    sampler = agent.Watch(interval=0.1, root=root)
    sampler.start()

    def wait(rows: int) -> None:
        deadline = time.monotonic() + 120
        while len(sampler.rows) < rows and sampler.thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)

    wait(least)
    between()
    wait(len(sampler.rows) + least)
    seen = sampler.stop()
    if seen is None:
        return None
    return replies.read(replies.StepTelemetry, json.dumps({"gpus": seen}, allow_nan=False)).gpus


def on_path(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, standin: str) -> None:
    (folder / name).symlink_to(STANDINS / standin)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_nvml_gives_power_energy_slowdowns_and_ecc(
    agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for the library that plays NVML")
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(STANDINS / "nvml.c")], check=True)
    real = pynvml.CDLL
    monkeypatch.setattr(pynvml, "CDLL", lambda name: real(str(library) if "nvidia-ml" in name else name))
    seen = watch(agent)
    assert seen.source == "nvml"
    idle, hot = seen.devices
    assert (idle.name, idle.gauges["power_w"].mean, hot.gauges["power_w"].mean) == (H100, 71.234, pytest.approx(698.76))
    assert (hot.gauges["clock_hz"].min, hot.gauges["memory_clock_hz"].max) == (1.41e9, 2.619e9)
    assert (hot.gauges["temp_c"].max, hot.gauges["memory_used"].max, hot.gauges["busy"].mean) == (83.0, 7e10, 1.0)
    assert hot.slowed == {"power_cap": 1.0, "hw_thermal": 1.0} and idle.slowed == {}
    assert idle.errors == {"corrected": (5, 5), "uncorrected": (0, 0)} and hot.errors == {}
    span = seen.samples["t"][-1] - seen.samples["t"][0]
    assert idle.energy_j == pytest.approx(300 * span, rel=0.5), "the device's own counter, not its power of 71 W"
    assert seen.samples["gpu_power_w"][0] == pytest.approx(770.0, abs=0.1)
    assert seen.samples["gpu_slowed"][0] == 0.5


def test_nvidia_smi_streams_and_is_ended(agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    on_path(monkeypatch, tmp_path, "nvidia-smi", "nvidia_smi.sh")
    seen = watch(agent)
    assert seen.source == "nvidia-smi"
    first, second = seen.devices
    assert (first.gauges["power_w"].mean, second.gauges["clock_hz"].mean) == (30.39, 2.31e9)
    assert "memory_temp_c" not in first.gauges, "[N/A] is not a reading"
    assert (first.slowed, first.errors) == ({"power_cap": 1.0}, {"corrected": (0, 0), "uncorrected": (0, 0)})
    assert second.errors == {}
    assert second.gauges["memory_used"].max == pytest.approx(40960 << 20, rel=1e-4)
    span = seen.samples["t"][-1] - seen.samples["t"][0]
    assert second.energy_j == pytest.approx(428.54 * span, rel=1e-3)
    left = subprocess.run(["pgrep", "-f", str(tmp_path / "nvidia-smi")], capture_output=True, check=False)
    assert left.stdout == b""


def printing(output: str, program: Path, status: int = 0) -> Path:
    """Make a ``program`` that prints ``output`` and ends with ``status``. The folder it is in."""
    program.with_suffix(".txt").write_text(output)
    program.write_text(f"#!/bin/sh\ncat {program}.txt\nexit {status}\n")
    program.chmod(0o755)
    return program.parent


@pytest.mark.parametrize("output", ["", "No devices were found\n", "0, x, 1, 30.0\n", "NVIDIA-SMI has failed\n" * 9])
def test_an_nvidia_smi_without_readings_gives_none(
    agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", f"{printing(output, tmp_path / 'nvidia-smi', status=9)}:/usr/bin:/bin")
    assert watch(agent) is None


def test_amd_by_the_files_of_its_driver(agent: ModuleType, tmp_path: Path) -> None:
    def put(path: str, text: str) -> None:
        file = tmp_path / "sys/class/drm" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    for card, watts in (("card1", "750000000"), ("card10", "140000000")):
        sensors = f"{card}/device/hwmon/hwmon{card[4:]}"
        for name, value in {
            "name": "amdgpu", "power1_input": watts, "freq1_input": "2100000000", "freq2_input": "1300000000",
            "temp1_input": "44000", "temp1_label": "edge", "temp2_input": "91000", "temp2_label": "junction",
            "temp3_input": "999000000", "temp3_label": "mem",
        }.items():  # fmt: skip
            put(f"{sensors}/{name}", value)
        put(f"{card}/device/mem_info_vram_total", "205822885888")
        put(f"{card}/device/mem_info_vram_used", "299687936")
        put(f"{card}/device/gpu_busy_percent", "98")
        put(f"{card}/device/ras/umc_err_count", "ue: 0\nce: 2")
    put("card0/device/vendor", "0x1a03")  # a server's own graphics

    def later() -> None:
        put("card1/device/ras/umc_err_count", "ue: 1\nce: 2")

    seen = watch(agent, root=str(tmp_path), between=later)
    assert (seen.source, len(seen.devices)) == ("amdgpu", 2)
    first = seen.devices[0]
    assert (first.gauges["power_w"].mean, first.gauges["clock_hz"].mean, first.gauges["temp_c"].max) == (750, 2.1e9, 91)
    assert "memory_temp_c" not in first.gauges, "999,000 degrees are no reading"
    assert first.gauges["busy"].mean == pytest.approx(0.98)
    assert first.errors == {"corrected": (2, 2), "uncorrected": (0, 1)}
    assert seen.samples["gpu_power_w"][0] == 890.0


def test_npu_smi_while_a_step_runs_and_among_the_facts(
    agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    on_path(monkeypatch, tmp_path, "npu-smi", "npu_smi.sh")
    seen = watch(agent, least=1)
    assert seen.source == "npu-smi"
    assert [d.gauges["power_w"].mean for d in seen.devices] == [118.6, 143.2]
    assert [(d.gauges["temp_c"].max, d.gauges["memory_used"].max) for d in seen.devices] == [
        (47.0, pytest.approx(35738 << 20, rel=1e-4)),
        (49.0, pytest.approx(35761 << 20, rel=1e-4)),
    ]
    out = subprocess.run([str(STANDINS / "npu_smi.sh"), "info"], capture_output=True, check=True).stdout
    facts = parse("npu_smi", out)
    assert facts["driver"] == "25.0.rc1.2"
    assert facts["gpus"][0] == {
        "index": 0, "name": "Ascend 910B2C", "memory": 65536 << 20, "bus": "0000:6b:02.0", "slowdown": (),
    }  # fmt: skip
    assert [gpu["slowdown"] for gpu in facts["gpus"]] == [(), ("health_warning",)]


# Rows as public reports of an Atlas A3 have them (npu-smi 24.1.rc3.7): the first of a card's two chips shows its power.
TWO_CHIPS = """\
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  Phy-ID              | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     Ascend910           | OK            | 178.9       36                0    / 0             |
| 0     0                   | 0000:9D:00.0  | 0           0    / 0          3412 / 65536         |
+------------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -           35                0    / 0             |
| 1     1                   | 0000:9F:00.0  | 7           0    / 0          61609/ 65536         |
+===========================+===============+====================================================+
"""


def test_the_power_of_a_card_is_that_of_its_chips(
    agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", f"{printing(TWO_CHIPS, tmp_path / 'npu-smi')}:/usr/bin:/bin")
    seen = watch(agent, least=1)
    assert [d.gauges["power_w"].mean for d in seen.devices] == [89.45, 89.45]
    assert seen.samples["gpu_power_w"][0] == 178.9
    chips = parse("npu_smi", TWO_CHIPS.encode())["gpus"]
    assert [(c["name"], c["bus"]) for c in chips] == [("Ascend910", "0000:9d:00.0"), ("Ascend910", "0000:9f:00.0")]


def test_without_accelerators_there_is_nothing(agent: ModuleType, tmp_path: Path) -> None:
    assert watch(agent, root=str(tmp_path)) is None
