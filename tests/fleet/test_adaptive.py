"""Adaptive repeats over real SSH: steps that are not needed are dropped on the hosts, and not owed afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.command import Command
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet
SUITE = """description: x
repeats: 1
workloads:
  stream: {set: {array_elements: 1000000, ntimes: 3, threads: 1}}
  iperf3: {set: {duration: 1, omit: 0, streams: 1, udp_rate: ""}, cases: [tcp-1]}
"""


def test_cases_end_when_their_interval_is_narrow(fleet: Fleet, tmp_path: Path) -> None:
    command = Command(fleet, tmp_path)
    suite = tmp_path / "suite.yml"
    suite.write_text(SUITE)
    wide = ("--until-ci", "90%", "--repeats", "6", "--max-repeats", "14")
    done = command.run("-s", str(suite), "--limit", "h1,h2", *wide)
    journal = [json.loads(line) for line in (command.campaign / "journal.jsonl").read_text().splitlines()]
    enough: list[dict[str, Any]] = [e for e in journal if e["e"] == "enough"]
    assert {(e["host"], e["workload"]) for e in enough} >= {("h1", "stream"), ("h2", "stream")}, done.stdout
    for e in enough:
        assert e["half_width"] <= 0.9 and e["repeats"] >= 6
        ran = [o for o in command.outcomes() if all(o[k] == e[k] for k in ("host", "workload", "case", "subject"))]
        assert len(ran) < 14
    settled = [e for e in enough if e["workload"] == "stream"]
    assert all(len(e["steps"]) == 14 - e["repeats"] for e in settled)
    assert journal[-1]["e"] == "ended" and journal[-1]["owed"] == 0
    assert "Repeated until the interval of each median was within ±0.9" in " ".join(done.stdout.split())
