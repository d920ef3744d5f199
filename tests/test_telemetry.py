"""The host's sampler: exact on a made-up /proc and /sys, plausible and cheap on the real one."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[1] / "playbooks" / "agent" / "telemetry.py"
TICK = 1 / os.sysconf("SC_CLK_TCK")

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(sys.platform != "linux", reason="telemetry is sampled on Linux hosts"),
]


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A fresh copy of the module: it keeps files open from step to step."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("telemetry_under_test", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Host:
    """A made-up /proc and /sys."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cpu()

    def put(self, path: str, text: str | int) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # One write in place, never shorter: the sampler has the file open, and must not meet it empty.
        with file.open("r+b" if file.exists() else "w+b", buffering=0) as out:
            length = len(out.read())
            out.seek(0)
            out.write(str(text).encode().ljust(length - 1) + b"\n")

    def cpu(self, user: int = 0, nice: int = 0, system: int = 0, idle: int = 0, irq: int = 0, steal: int = 0) -> None:
        self.put("proc/stat", f"cpu  {user} {nice} {system} {idle} 0 {irq} 0 {steal} 0 0\ncpu0 1 1 1 1")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def watch(
    telemetry: ModuleType,
    host: Host,
    change: Any,
    own_cpu_s: float | None = 0.0,
    wall: float = 0.6,
    samples: int = 0,
) -> dict[str, Any]:
    """The result of a step of ``wall`` seconds, in the middle of which ``change`` happens: not before there are so many
    ``samples``, which come less often where they take long.
    """
    sampler = telemetry.Sampler(interval=0.2, root=str(host.root))
    sampler.start()
    time.sleep(wall / 2)
    until = time.monotonic() + 60
    while sampler.count < samples:
        assert time.monotonic() < until
        time.sleep(0.01)
    change()
    time.sleep(wall / 2)
    result = sampler.stop(step_cpu_s=own_cpu_s)
    json.dumps(result, allow_nan=False)
    lengths = {len(column) for column in result["samples"].values()}
    assert lengths == {len(result["samples"]["t"])}
    return dict(result)


def test_shares_and_foreign_cores(telemetry: ModuleType, host: Host) -> None:
    host.cpu(user=1000, nice=10, system=500, idle=8000, irq=7, steal=3)

    def change() -> None:
        host.cpu(user=1060, nice=20, system=530, idle=8080, irq=17, steal=13)  # 60 10 30 80 10 10, 200 in all

    result = watch(telemetry, host, change, own_cpu_s=0.25)
    mean = {name: column["mean"] for name, column in result["summary"].items()}
    assert mean["cpu_busy"] == pytest.approx(100 / 200)
    assert mean["cpu_user"] == pytest.approx(70 / 200)
    assert (mean["cpu_irq"], mean["cpu_steal"]) == (pytest.approx(10 / 200), pytest.approx(10 / 200))
    # 100 ticks were busy, of which a quarter of a second was the step's; this process took little.
    assert result["foreign_cores"] == pytest.approx((100 * TICK - 0.25) / result["wall_s"], abs=0.1)
    assert result["foreign_cores"] <= (100 * TICK - 0.25) / result["wall_s"] + 1e-4
    assert result["foreign_error_cores"] >= 3 * TICK / result["wall_s"] * 0.999
    assert result["stolen_cores"] == pytest.approx(10 * TICK / result["wall_s"], rel=1e-3)


def test_foreign_is_unknown_rather_than_zero(telemetry: ModuleType, host: Host) -> None:
    busier = {"user": 100}
    assert watch(telemetry, host, lambda: host.cpu(**busier), own_cpu_s=None)["foreign_cores"] is None
    assert watch(telemetry, host, lambda: host.cpu(user=200), own_cpu_s=0.0, wall=0.1)["foreign_cores"] is None
    assert watch(telemetry, host, lambda: host.cpu(user=300), own_cpu_s=0.0)["foreign_cores"] is not None


def test_own_work_is_not_foreign(telemetry: ModuleType, host: Host) -> None:
    """The CPU time of this process during the step counts as its own, not as foreign."""
    burnt = 0.0

    def change() -> None:
        nonlocal burnt
        before = time.process_time()
        while time.process_time() - before < 0.3:
            pass
        burnt = time.process_time() - before
        host.cpu(user=round(burnt / TICK))

    assert watch(telemetry, host, change)["foreign_cores"] <= TICK / 0.5
    assert burnt >= 0.3


def test_pressure_and_load(telemetry: ModuleType, host: Host) -> None:
    line = "{} avg10=0.00 avg60=0.00 avg300=0.00 total={}"
    host.put("proc/pressure/cpu", line.format("some", 1_000_000))
    host.put("proc/pressure/io", line.format("some", 5) + "\n" + line.format("full", 7))
    host.put("proc/loadavg", "1.50 1.00 0.50 9/321 4242")

    def change() -> None:
        host.put("proc/pressure/cpu", line.format("some", 1_300_000))

    result = watch(telemetry, host, change)
    assert result["summary"]["psi_cpu_some"]["mean"] == pytest.approx(0.3 / result["wall_s"], rel=1e-3)
    assert result["summary"]["psi_io_full"]["max"] == 0
    assert "psi_memory_some" not in result["samples"]  # this kernel does not count it
    assert "psi_cpu_full" not in result["samples"]
    assert (result["summary"]["load1"]["mean"], result["summary"]["running"]["mean"]) == (1.5, 9)


def test_energy_counter_that_wraps(telemetry: ModuleType, host: Host) -> None:
    zone = "sys/class/powercap/intel-rapl:0"
    for path, name, energy in ((zone, "package-0", 9_000_000), (f"{zone}:0", "dram", 100), (f"{zone}:1", "core", 1)):
        host.put(f"{path}/name", name)
        host.put(f"{path}/energy_uj", energy)
        host.put(f"{path}/max_energy_range_uj", 10_000_000)

    def change() -> None:
        host.put(f"{zone}/energy_uj", 2_000_000)  # 1 J to the end of the range, 2 J from its start
        host.put(f"{zone}:0/energy_uj", 600_100)

    result = watch(telemetry, host, change)
    spans = [b - a for a, b in zip([0, *result["samples"]["t"]], result["samples"]["t"], strict=False)]
    powers = {name: column for name, column in result["samples"].items() if name.startswith("power_w:")}
    assert set(powers) == {"power_w:package-0", "power_w:package-0_dram"}  # the core lies within the package
    energy = {name: sum(w * s for w, s in zip(column, spans, strict=True)) for name, column in powers.items()}
    assert energy["power_w:package-0"] == pytest.approx(3.0, rel=1e-3)
    assert energy["power_w:package-0_dram"] == pytest.approx(0.6, rel=1e-3)


def test_clocks_and_temperatures(telemetry: ModuleType, host: Host) -> None:
    for cpu in range(64):
        host.put(f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", 2_000_000 + cpu * 1000)
    for n, (label, value) in enumerate((("Package id 0", 51_000), ("Core 0", 99_000), ("Package id 1", 64_500)), 1):
        host.put("sys/class/hwmon/hwmon0/name", "coretemp")
        host.put(f"sys/class/hwmon/hwmon0/temp{n}_label", label)
        host.put(f"sys/class/hwmon/hwmon0/temp{n}_input", value)
    result = watch(telemetry, host, lambda: None)
    summary = result["summary"]
    # Eight of the 64 CPUs, the first and the last among them.
    assert summary["clock_hz_min"]["mean"] == 2.0e9
    assert 2.0e9 < summary["clock_hz_mean"]["mean"] < 2.063e9
    assert not [name for name in result["samples"] if name.startswith("clock_hz:")]
    assert summary["temp_c_max"]["max"] == 64.5
    assert summary["temp_c:Package_id_0"]["max"] == 51.0


def test_sensor_that_stops_answering_leaves_holes(telemetry: ModuleType, host: Host) -> None:
    host.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", 2_000_000)
    result = watch(
        telemetry,
        host,
        lambda: host.put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "<unknown>"),
        samples=3,  # columns begin after the first, and the last before a short interval is merged into it
    )
    assert None in result["samples"]["clock_hz_mean"]
    assert result["summary"]["clock_hz_mean"]["min"] == 2.0e9


def test_lost_packets_and_drives(telemetry: ModuleType, host: Host) -> None:
    head = "Inter-|   Receive\n face |bytes"
    line = "{}: 1 2 {} {} 0 0 0 0 5 6 {} {} 0 0 0 0"
    quiet = line.format("eth1", 3, 3, 3, 3)

    def counters(*counts: int) -> None:
        rows = (line.format("lo", *counts), line.format("eth0", *counts), quiet)
        host.put("proc/net/dev", "\n".join([head, *rows]))

    counters(0, 5, 0, 0)
    host.put("sys/class/hwmon/hwmon3/name", "nvme")
    host.put("sys/class/hwmon/hwmon3/temp1_input", 40_000)
    host.put("sys/class/hwmon/hwmon3/device/x", "")

    def change() -> None:
        counters(0, 12, 1, 0)
        host.put("sys/class/hwmon/hwmon3/temp1_input", 71_000)

    result = watch(telemetry, host, change)
    assert result["nics"] == ["eth0", "eth1"]
    assert result["lost"] == {"eth0": {"rx_dropped": 7, "tx_errors": 1}}
    assert result["nvme_temp_c"] == {"device": [40.0, 71.0]}
    assert not [name for name in result["samples"] if name.startswith("temp")]  # a drive is not asked meanwhile


def test_nothing_to_read(telemetry: ModuleType, host: Host) -> None:
    (host.root / "proc/stat").unlink()
    result = watch(telemetry, host, lambda: None)
    assert set(result["samples"]) == {"t"}
    assert result["summary"] == {}
    assert result["foreign_cores"] is None


def test_hung_sensor_does_not_hold_the_step(telemetry: ModuleType, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "PATIENCE_S", 0.2)
    host.put("sys/class/hwmon/hwmon0/name", "coretemp")
    os.mkfifo(host.root / "sys/class/hwmon/hwmon0/temp1_input")  # an open for reading waits for a writer
    result = watch(telemetry, host, lambda: host.cpu(user=50), own_cpu_s=0.0)
    assert result["foreign_cores"] > 0


def test_a_card_that_cannot_be_asked_costs_no_count_of_packets(
    telemetry: ModuleType, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "PATIENCE_S", 0.2)
    monkeypatch.setattr(telemetry.nic_counters, "counters", lambda _: threading.Event().wait())
    head = "Inter-|   Receive | Transmit\n face |bytes packets errs drop\n"
    (host.root / "proc/net").mkdir(parents=True)
    (host.root / "proc/net/dev").write_bytes(head.encode() + b"  x\xff: " + b"1 " * 16 + b"\n  eth0: " + b"2 " * 16)
    result = watch(telemetry, host, lambda: None)
    assert result["nics"] == ["eth0", "x\ufffd"] and "counters" not in result


def test_long_steps_keep_few_samples(telemetry: ModuleType, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MOST", 8)
    monkeypatch.setattr(telemetry, "BUDGET", 1.0)
    sampler = telemetry.Sampler(interval=0.01, root=str(host.root))
    host.cpu(user=0, idle=100)
    sampler.start()
    time.sleep(0.5)
    host.cpu(user=300, idle=200)
    time.sleep(0.5)
    result = sampler.stop(step_cpu_s=0.0)
    assert 2 <= len(result["samples"]["t"]) <= 9
    assert result["interval_s"] > 0.01
    assert result["samples"]["t"][-1] == pytest.approx(result["wall_s"])
    assert result["summary"]["cpu_busy"]["mean"] == pytest.approx(300 / 400)


def test_interval_stretches_when_sampling_is_dear(
    telemetry: ModuleType, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap = telemetry.Sampler.sample

    def dear(self: Any) -> None:
        before = time.thread_time()
        while time.thread_time() - before < 0.002:
            pass
        cheap(self)

    monkeypatch.setattr(telemetry.Sampler, "sample", dear)
    sampler = telemetry.Sampler(interval=0.01, root=str(host.root))
    sampler.start()
    time.sleep(1.2)
    result = sampler.stop(step_cpu_s=0.0)
    assert result["stretched"]
    assert result["interval_s"] >= 0.002 / telemetry.BUDGET
    assert sampler.count <= 4  # and not 120


def test_real_host(telemetry: ModuleType) -> None:
    """A step that uses CPU time, and another process that uses more, on this machine."""
    burn = "import time\nwhile time.process_time() < {}: pass"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    sampler = telemetry.Sampler(interval=0.25)
    sampler.start()
    stranger = subprocess.Popen([sys.executable, "-c", burn.format(0.6)])
    time.sleep(0.1)
    _, status, usage = os.wait4(subprocess.Popen([sys.executable, "-c", burn.format(0.4)]).pid, 0)
    stranger.wait()
    result = sampler.stop(step_cpu_s=usage.ru_utime + usage.ru_stime)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert status == 0
    own_cpu_s = usage.ru_utime + usage.ru_stime
    strange = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - own_cpu_s
    assert strange > 0.5
    # At least the stranger is foreign, and there cannot be more foreign CPUs than CPUs.
    least = strange / result["wall_s"] - result["foreign_error_cores"]
    assert least <= result["foreign_cores"] <= (os.cpu_count() or 1)
    assert (
        result["summary"]["cpu_busy"]["mean"] * result["wall_s"] * (os.cpu_count() or 1) >= (own_cpu_s + strange) * 0.8
    )
    assert result["samples"]["t"] == sorted(result["samples"]["t"])
    assert abs(result["started"] + result["wall_s"] - time.time()) < 30


def test_its_own_cost_is_measured(telemetry: ModuleType) -> None:
    """Its share of a core depends on the machine: benchmarks/telemetry.py measures it."""
    sampler = telemetry.Sampler(interval=0.5)
    sampler.start()
    time.sleep(2)
    result = sampler.stop(step_cpu_s=0.0)
    assert 0 < result["cost_s"] < result["wall_s"]


def test_no_thread_and_no_file_is_left(telemetry: ModuleType) -> None:
    def step() -> None:
        sampler = telemetry.Sampler()
        sampler.start()
        sampler.stop()

    step()
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        step()
    assert threading.active_count() <= threads and len(os.listdir("/proc/self/fd")) <= files  # noqa: PTH208
