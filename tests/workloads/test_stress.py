"""The watch of a soak: which counters a host has, and what they grew by."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

from fleetmark.hosts.agent import PLAYBOOKS

WATCH = PLAYBOOKS / "roles" / "stress" / "files" / "watch.py"
spec = importlib.util.spec_from_file_location("stress_watch", WATCH)
assert spec and spec.loader
watch: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(watch)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_counters_of_a_server(tmp_path: Path) -> None:
    throttle = "sys/devices/system/cpu/cpu{}/thermal_throttle/{}_throttle_count"
    files = {
        throttle.format(0, "core"): "2\n",
        throttle.format(1, "package"): "5\n",
        "sys/devices/system/edac/mc/mc0/ce_count": "1\n",
        "sys/devices/system/edac/mc/mc0/ue_count": "0\n",
        "proc/interrupts": "      CPU0 CPU1\n MCE:   1   2   Machine check exceptions\n MCP: 9 9 polls\n",
    }
    write(tmp_path, **files)
    assert watch.counters(str(tmp_path)) == {
        "throttles": 7,
        "corrected_errors": 1,
        "uncorrected_errors": 0,
        "machine_checks": 3,
    }


def test_a_host_without_counters_has_none(tmp_path: Path) -> None:
    assert watch.counters(str(tmp_path)) == {}


def test_quotas_of_both_kinds_of_control_groups_and_of_those_above(tmp_path: Path) -> None:
    stat = "nr_periods 9\nnr_throttled {}\nthrottled_time 5\n"
    write(
        tmp_path / "v1",
        **{
            "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/a/b\n",
            "sys/fs/cgroup/cpu,cpuacct/a/b/cpu.stat": stat.format(4),
        },
    )
    write(
        tmp_path / "v2",
        **{
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/cpu.stat": stat.format(3),
            "sys/fs/cgroup/a/b/cpu.stat": stat.format(1),
        },
    )
    assert watch.quota(str(tmp_path / "v1")) == 4
    assert watch.quota(str(tmp_path / "v2")) == 4


def test_a_stressor_that_fails_keeps_its_status_and_one_beside_it_is_ended(tmp_path: Path) -> None:
    words = [
        sys.executable,
        str(WATCH),
        "--also",
        "echo beside; exec sleep 1000",
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2; exit 2",
    ]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert ran.returncode == 2
    assert {"out", "err"} <= set(ran.stdout.splitlines()) and ran.stdout.splitlines()[-1].startswith(
        "fleetmark: faults"
    )


def test_it_runs_on_old_pythons() -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips", str(WATCH)]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
