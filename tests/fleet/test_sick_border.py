"""A throttled rack, and a slow border between two racks of real hosts: each is named, and no host is blamed.

The border is confirmed by isolation. Pairs across it have a tenth of the rate of the others, and every port is limited to what the machine gives at any load.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet
RACKS = {"r1": ("h1", "h2", "h3", "h4"), "r2": ("h5", "h6", "h7", "h8")}
PORT, BORDER = "40mbit", "4mbit"
SUITE = """
description: all pairs
repeats: 1
workloads:
  iperf3: {cases: [tcp-1], set: {udp_rate: "", duration: 1, omit: 0, pairs: all}}
"""


def limit(fleet: Fleet, host: str, others: tuple[str, ...]) -> None:
    """Limit what ``host`` sends: to PORT, and to ``others`` together to BORDER."""

    rules = ["qdisc replace dev eth0 root handle 1: htb default 1"]
    for number, rate in ((1, PORT), (2, BORDER)):
        rules.append(f"class add dev eth0 parent 1: classid 1:{number} htb rate {rate} burst 32k cburst 32k")
    for other in others:
        address = fleet.address(other)
        rules.append(f"filter add dev eth0 parent 1: protocol ip u32 match ip dst {address}/32 flowid 1:2")
    for rule in rules:
        fleet.exec(host, ["tc", *rule.split()])


@pytest.fixture(scope="module")
def eight() -> Iterator[Fleet]:
    """Eight hosts in two racks with a slow connection between them."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(8) as hosts:
        try:
            for rack, members in RACKS.items():
                (others,) = (names for name, names in RACKS.items() if name != rack)
                for host in members:
                    limit(hosts, host, others)
        except RuntimeError as error:
            if "No such file" in str(error) or "qdisc kind is unknown" in str(error):
                pytest.skip(f"this kernel has no HTB with filters: {error}")
            raise
        yield hosts


def diagnosed(root: Path, *words: str) -> tuple[int, Any]:
    command = [FLEETMARK, "diagnose", "last", *words, "--results", str(root), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert "Traceback" not in done.stderr and done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def measured(fleet: Fleet, root: Path) -> None:
    """Measure all pairs of hosts, whose inventory names their racks."""
    labels = {h: {"fleetmark_labels": {"rack": rack}} for rack, members in RACKS.items() for h in members}
    (root / "racks.yml").write_text(json.dumps({"all": {"hosts": labels}}))
    (root / "pairs.yml").write_text(SUITE)
    command = Command(fleet, root)
    command.passes("-i", str(root / "racks.yml"), "--suite", str(root / "pairs.yml"), "--seed", "1")


def test_a_throttled_rack_is_named_and_none_of_its_hosts(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    with Fleet(8) as fleet:
        for host in fleet.names:
            fleet.rate(host, BORDER if host in RACKS["r2"] else PORT, burst=32 << 10)
        measured(fleet, tmp_path)
    status, diagnosis = diagnosed(tmp_path)
    (group,) = (f for f in diagnosis["findings"] if f["kind"] != "link")  # a busy machine slows links
    assert status == 1 and group["kind"] == "groups" and group["deficit"] > 0.5
    assert sorted(group["members"]) == sorted(RACKS["r2"])
    assert [(fact["fact"], fact["slower"]) for fact in group["because"]] == [("rack", "r2")]


def test_a_slow_border_between_racks_is_named_and_confirmed(eight: Fleet, tmp_path: Path) -> None:
    measured(eight, tmp_path)
    status, diagnosis = diagnosed(tmp_path)
    (border,) = (f for f in diagnosis["findings"] if f["kind"] == "border")
    others = [f for f in diagnosis["findings"] if f["kind"] not in ("border", "link")]  # a busy machine slows links
    assert status == 1 and border["deficit"] > 0.5 and not others
    assert [(fact["fact"], fact["slower"]) for fact in border["because"]] == [("rack", "r1 to r2")]
    status, answer = diagnosed(tmp_path, "--isolate", "iperf3/tcp-1", "--border", "rack")
    faults = [(f["kind"], f["of"], f["label"], f["reason"]) for f in answer["faults"] if f["kind"] != "link"]
    assert status == 1 and faults == [("border", ["r1", "r2"], "rack", "every-pair-across-the-border-is-slow")]
    assert answer["faults"][0]["deficit"] > 0.5 and answer["runs"]["more"] < answer["runs"]["all_pairs"] == 28
    assert diagnosed(tmp_path, "--isolate", "iperf3/tcp-1", "--border", "rack") == (1, answer)  # nothing runs again
