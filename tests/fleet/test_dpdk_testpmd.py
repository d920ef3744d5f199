"""DPDK's testpmd over real SSH: the poll loop of its null driver, without huge pages, devices or root's folders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from tests.fleet.command import Command
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet
UNPACK = Path(__file__).parents[2] / "playbooks/roles/unpacked/files/unpack.sh"
FOLDER = Path("/usr/local/share/fleetmark-tests/dpdk")


@pytest.fixture(scope="module")
def program() -> Path:
    """Where all hosts see it. Not below a folder that everyone may write to: DPDK refuses drivers from there."""
    words = ["sh", str(UNPACK), str(FOLDER), "dpdk-dev", "dpdk-testpmd", ""]
    unpacked = subprocess.run(words, capture_output=True, text=True, check=False)
    if unpacked.returncode:
        pytest.skip(f"dpdk-testpmd cannot be had here: {unpacked.stderr.strip().splitlines()[-1]}")
    return FOLDER / "bin" / "dpdk-testpmd"


def test_the_poll_loop_forwards_and_is_labelled(fleet: Fleet, tmp_path: Path, program: Path) -> None:
    (drivers,) = FOLDER.glob("root/usr/lib/*/dpdk/pmds-*")
    suite = tmp_path / "suite.yml"
    settings = {"path": str(program), "drivers": str(drivers), "duration": 10}
    suite.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": {"dpdk_testpmd": {"set": settings}}}))
    command = Command(fleet, tmp_path)
    done = command.run("--suite", str(suite), "--limit", "h1")
    assert done.returncode == 0, done.stdout + done.stderr
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    (rate,) = frame.query("metric == 'packet_rate'").to_dict("records")
    packets = float(frame.query("metric == 'tx_packets'")["value"].iloc[0])
    assert rate["case"] == "poll-loop" and rate["kind"] == "responsiveness" and rate["class"] == "poll-loop"
    assert 0 < rate["value"] < packets, "a second's packets are fewer than those of the run"
    assert not (command.campaign / "raw" / "h1" / "dpdk_testpmd" / "poll-loop" / "0" / "rte").exists()
