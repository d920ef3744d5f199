"""Programs that are unpacked, over real SSH: UCX and qperf between two hosts and on one, HPC Challenge by MPI on one, and a
soak of a healthy host beside one that is throttled; and a build of a project that the user gives."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.fleet import tools
from tests.fleet.command import Command

pytestmark = pytest.mark.fleet


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    return {name: tools.unpack(name) for name in ("ucx_perftest", "qperf", "hpcc", "stress")}


@pytest.fixture
def suite(tmp_path: Path, programs: dict[str, str]) -> Callable[..., str]:
    def write(**workloads: dict[str, Any]) -> str:
        file = tmp_path / "suite.yml"
        chosen = {name: {"set": {"path": programs[name], **settings}} for name, settings in workloads.items()}
        file.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": chosen}))
        return str(file)

    return write


def test_two_hosts(command: Command, suite: Callable[..., str]) -> None:
    text = suite(
        ucx_perftest={"latency_iterations": 50, "bandwidth_iterations": 5},
        qperf={"tests": "tcp_lat,tcp_bw", "duration": 1},
    )
    done = command.run("--suite", text, "--limit", "h1,h2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 2 * 2 + 2 * 2}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame["subject"]) == {"h1>h2", "h2>h1"}
    assert set(frame["case"]) == {"tcp-lat-8", "tcp-bw-1m", "tcp_lat", "tcp_bw"}
    assert (frame.query("metric == 'bandwidth'")["value"] > 0).all()
    assert len(frame.query("metric == 'latency_p50'")) == len(frame.query("metric == 'latency'")) == 2


def test_one_host(command: Command, suite: Callable[..., str]) -> None:
    """Shared memory between two processes; and all of HPC Challenge between two, with OpenBLAS."""
    text = suite(
        ucx_perftest={"transports": "shm", "latency_iterations": 50, "bandwidth_iterations": 5},
        hpcc={"memory_share": 0.0001, "block": 32, "ranks": 2, "timeout": 200},
    )
    done = command.run("--suite", text, "--limit", "h1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 2 + 1}
    frame = pd.read_parquet(command.campaign / "measurements.parquet").query("workload == 'hpcc'")
    assert (frame.set_index("metric")["value"][["hpl", "dgemm", "triad", "random_access"]] > 0).all()
    assert frame.set_index("metric")["value"]["ranks"] == 2
    assert frame["tool_version"].str.contains("OpenBLAS").all()
    assert command.fleet.exec("h1", ["pgrep", "-x", "hpcc|mpirun|orted|ucx_perftest"], check=False).stdout == ""


def test_linpack_over_two_hosts(command: Command, suite: Callable[..., str]) -> None:
    yields = "--mca mpi_yield_when_idle 1"  # processes that wait leave the cores to those that work
    small = {"ranks": 1, "memory_share": 0.00001, "block": 16}
    text = suite(hpcc={"nodes": "2", "mpi_args": yields, "timeout": 200, **small})
    done = command.run("--suite", text, "--limit", "h1,h2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 1}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame["case"]) == {"2n"} and set(frame["subject"]) == {"2 nodes"}
    figures = frame.set_index("metric")["value"]
    assert figures["ranks"] == 2 and figures["hpl"] > 0 and figures["ring_latency"] > 0
    facts = json.loads((command.campaign / "facts" / "h1.json").read_text())["facts"]
    matrix = 8 * figures["order"] ** 2
    assert 0.8 < matrix / (2 * 0.00001 * facts["memory"]) <= 1
    for host in ("h1", "h2"):
        assert command.fleet.exec(host, ["pgrep", "-x", "hpcc|mpirun|orted"], check=False).stdout == ""


# Hosts of the fleet see no control groups, as other hosts do.
SHOW_QUOTA = """
grep -qE ':([a-z,]*,)?cpu[,:]' /proc/self/cgroup || exec mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs groups /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu && mount -t cgroup -o cpu none /sys/fs/cgroup/cpu
"""


def test_a_soak_tells_a_throttled_host_from_a_sound_one(command: Command, suite: Callable[..., str]) -> None:
    text = suite(stress={"duration": 3, "memory_share": 0.002, "disk": "4MiB"})
    for host in ("h1", "h2"):
        command.fleet.exec(host, ["sh", "-ec", SHOW_QUOTA])
    command.fleet.cpu("h2", 20)
    try:
        command.run("--suite", text, "--limit", "h1,h2")
    finally:
        command.fleet.cpu("h2", 0)
        for host in ("h1", "h2"):
            command.fleet.exec(host, ["umount", "-R", "/sys/fs/cgroup"])
    outcomes = {o["host"]: o for o in command.outcomes()}
    assert (outcomes["h1"]["status"], outcomes["h2"]["status"]) == ("passed", "invalid")
    assert "by a quota" in outcomes["h2"]["reason"]


def test_a_project_of_the_users_is_built(command: Command, tmp_path: Path) -> None:
    tree = tmp_path / "project-1.0"
    tree.mkdir()
    (tree / "Makefile").write_text("all: a.o b.o\n")
    for name in "ab":
        (tree / f"{name}.c").write_text(f"int {name}(void) {{ return 1; }}\n")
    archive = tmp_path / "project.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(tree, tree.name)
    settings = {"source": str(archive), "source_sha256": hashlib.sha256(archive.read_bytes()).hexdigest()}
    settings |= {"configure": "test -e Makefile", "disk": "1MiB"}
    (tmp_path / "suite.yml").write_text(
        json.dumps({"description": "x", "repeats": 2, "workloads": {"kernel_build": {"set": settings}}})
    )
    done = command.run("--suite", str(tmp_path / "suite.yml"), "--limit", "h1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 2}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert (frame.query("metric == 'build_rate'")["value"] > 0).all()
    assert frame["tool_version"].str.startswith("gcc").all()
