"""nvbandwidth over real SSH: built by cmake on a host that passes for a GPU server, run, and broken in the ways hosts break it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.fleet.command import Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet
STANDINS = Path(__file__).parents[1] / "standins"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A host with two GPUs by what its nvidia-smi says."""
    if reason := missing():
        pytest.skip(reason)
    for tool in ("cmake", "g++", "make"):
        if shutil.which(tool) is None:
            pytest.skip(f"a host that builds nvbandwidth needs {tool} (cmake, g++, make)")
    with Fleet(1) as hosts:
        hosts.exec("h1", ["sh", "-s", "nccl", "2.21.5"], input=(STANDINS / "nccl_tests" / "host.sh").read_text())
        yield hosts


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., str]:
    """A suite file with what plays the sources; JSON, which is YAML too."""
    archive = tmp_path / "nvbandwidth.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in ("CMakeLists.txt", "replay.sh"):
            tar.add(STANDINS / "nvbandwidth" / name, f"nvbandwidth-0.8/{name}")
    source = {"source": str(archive), "source_sha256": hashlib.sha256(archive.read_bytes()).hexdigest()}

    def write(**settings: Any) -> str:
        file = tmp_path / "suite.yml"
        chosen = {"nvbandwidth": {"set": {**source, **settings}}}
        file.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": chosen}))
        return str(file)

    return write


def test_it_is_built_and_its_matrices_are_read(fleet: Fleet, tmp_path: Path, suite: Callable[..., str]) -> None:
    command = Command(fleet, tmp_path)
    done = command.run("--suite", suite())
    assert done.returncode == 1, done.stdout + done.stderr
    assert command.count() == {"passed": 7, "failed": 1}, done.stdout
    (waived,) = [o for o in command.outcomes() if o["status"] == "failed"]
    assert waived["case"] == "device_to_device_latency_sm" and "Waived" in waived["reason"]

    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    links = frame.query("metric == 'link_bandwidth'").set_index("case")["value"]
    assert links["host_to_device_memcpy_ce"] == pytest.approx(55.6e9)
    assert links["device_to_device_bidirectional_memcpy_read_ce"] == pytest.approx(1526e9)
    assert set(frame["tool_version"]) == {"v0.8"}
    page = (command.campaign / "summary.html").read_text()
    assert "Between devices" in page and "gpu1" in page


def test_sources_that_cmake_cannot_build_are_one_sentence(
    fleet: Fleet, tmp_path: Path, suite: Callable[..., str]
) -> None:
    command = Command(fleet, tmp_path)
    done = command.run(
        "--suite", suite(cmake_args="-DCMAKE_MODULE_PATH=/none -Gnone", host_tests=["host_device_latency_sm"])
    )
    assert done.returncode == 1
    assert "cmake could not build nvbandwidth: " in done.stdout, done.stdout + done.stderr
