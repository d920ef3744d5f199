"""``fleetmark tune --try`` over SSH: an MTU tried between two hosts, its controller killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet

SUITE = """
description: one case between hosts
repeats: 1
workloads:
  iperf3: {cases: [tcp-1], set: {udp_rate: "", duration: 2, omit: 0}}
"""


def until(condition: Callable[[], bool], patience_s: float = 300.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"not so within {patience_s:g} s"
        time.sleep(0.2)


def mtu(fleet: Fleet, host: str) -> str:
    return fleet.exec(host, ["cat", "/sys/class/net/eth0/mtu"]).stdout.strip()


def test_an_mtu_is_tried_and_put_back_after_kill_9_of_the_controller(fleet: Fleet, command: Command) -> None:
    suite = command.root / "pair.yml"
    suite.write_text(SUITE)
    command.passes("--limit", "h1,h2", "--suite", str(suite))
    before = mtu(fleet, "h1")
    words = [FLEETMARK, "tune", "h1", "mtu", "--to", "1300", "--try", "--become", "--blocks", "3", "--format", "json"]
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=command.env, start_new_session=True)
    until(lambda: mtu(fleet, "h1") == "1300")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    kept = ["sh", "-c", "ls /var/tmp/fleetmark-0/jobs/*/*/setting.json"]
    until(lambda: not fleet.exec("h1", kept, check=False).stdout)
    assert mtu(fleet, "h1") == before
    done = subprocess.run(words, capture_output=True, text=True, env=command.env, timeout=600)
    assert done.returncode == 0, done.stderr + done.stdout
    tried = json.loads(done.stdout)
    assert {c["benchmark"] for c in tried["changes"]} == {f"iperf3 tcp-1 bitrate {pair}" for pair in ("h1>h2", "h2>h1")}
    # A run that was under way at the kill may have ended without its setting read back: its block does not count.
    assert all(c["pairs"] in (2, 3) for c in tried["changes"])
    assert (tried["before"], tried["after"], tried["left"], tried["finished"]) == ([before], ["1300"], None, True)
    assert mtu(fleet, "h1") == before
    (campaign,) = (command.campaign / "trials").glob("2*")
    assert len(list(Path(campaign).glob("raw/*/iperf3/tcp-1/*"))) == 24  # both ends of 6 runs in both directions
