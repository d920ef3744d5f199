"""A throttled rack of real hosts: the diagnosis names what the hosts share, and neither the hosts nor the border."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fleet.command import Command
from tests.fleet.hosts import Fleet, missing
from tests.fleet.test_sick_border import RACKS, SUITE, diagnosed

pytestmark = pytest.mark.fleet
RATES = {"r1": "40mbit", "r2": "4mbit"}  # what the machine gives at any load


def test_a_throttled_rack_is_named_and_none_of_its_hosts(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    labels = {h: {"fleetmark_labels": {"rack": rack}} for rack, members in RACKS.items() for h in members}
    (tmp_path / "racks.yml").write_text(json.dumps({"all": {"hosts": labels}}))
    (tmp_path / "pairs.yml").write_text(SUITE)
    with Fleet(8) as fleet:
        for rack, members in RACKS.items():
            for host in members:
                fleet.rate(host, RATES[rack], burst=32 << 10)
        command = Command(fleet, tmp_path)
        command.passes("-i", str(tmp_path / "racks.yml"), "--suite", str(tmp_path / "pairs.yml"), "--seed", "1")
    status, diagnosis = diagnosed(tmp_path)
    (group,) = (f for f in diagnosis["findings"] if f["kind"] != "link")  # a busy machine slows links
    assert status == 1 and group["kind"] == "groups" and group["deficit"] > 0.5
    assert sorted(group["members"]) == sorted(RACKS["r2"])
    assert [(fact["fact"], fact["slower"]) for fact in group["because"]] == [("rack", "r2")]
