"""Test the limit of concurrent hosts: which start, which wait, and which limits are invalid."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetmark.base.errors import FleetmarkError
from fleetmark.campaign.turns import Turns
from fleetmark.record.steps import Exchange
from tests.drives import make_drive, step

RACKS = {f"h{n}": {"rack": f"r{n % 2}"} for n in range(1, 7)}


def test_a_number_of_hosts_and_of_each_value_of_a_label() -> None:
    hosts = list(RACKS)
    assert Turns().next(hosts, []) == hosts
    assert Turns.parse(["2"]).next(hosts, []) == ["h1", "h2"]
    assert Turns.parse(["2"]).next(hosts[2:], ["h1"]) == ["h3"]
    racks = Turns.parse(["rack=1"]).with_labels(RACKS)
    assert racks.next(hosts, []) == ["h1", "h2"]
    assert racks.next(hosts[2:], ["h2"]) == ["h3"]
    both = Turns.parse(["rack=2", "3"]).with_labels(RACKS)
    assert both.next(hosts, []) == ["h1", "h2", "h3"]
    assert Turns.parse(["rack=1"]).next(hosts, []) == ["h1"], "hosts without the label share its bound"


@pytest.mark.parametrize("word", ["0", "-1", "two", "=2", "rack=", "rack=0", ""])
def test_what_is_no_bound_is_refused(word: str) -> None:
    with pytest.raises(FleetmarkError, match="write a number of hosts"):
        Turns.parse([word])


def test_a_label_that_no_host_has_is_refused() -> None:
    turns = Turns.parse(["rak=2", "gen=1"])
    Turns.parse(["8", "gen=1"]).refuse_unknown([{"rack": "r1"}, {"gen": "new"}])
    with pytest.raises(FleetmarkError, match="--at-once rak=2: no host has this label; there are gen, rack "):
        turns.refuse_unknown([{"rack": "r1"}, {"gen": "new"}])
    with pytest.raises(FleetmarkError, match="there is none"):
        turns.refuse_unknown([{}])


def test_hosts_that_measure_one_another_take_no_turns() -> None:
    exchanges = [Exchange("h1", "00000", "h2", "00000")]
    Turns().refuse_together(exchanges)
    Turns.parse(["1"]).refuse_together([])
    with pytest.raises(FleetmarkError, match="tests on several hosts"):
        Turns.parse(["1"]).refuse_together(exchanges)


def test_a_host_begins_as_another_ends(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, {h: [step(0)] for h in ("h1", "h2", "h3")}, [])
    begun: list[str] = []
    drive.admit({host: lambda host=host: begun.append(host) for host in drive.runs}, Turns.parse(["2"]))  # type: ignore[misc]
    assert begun == ["h1", "h2"]
    assert drive.runs["h3"].phase == "queued"
    drive._over(drive.runs["h2"], "it is off")
    assert begun == ["h1", "h2", "h3"]
    assert drive.runs["h3"].phase == "launching"


def test_hosts_that_wait_for_their_turn_end_at_once_when_all_is_stopped(tmp_path: Path) -> None:
    drive = make_drive(tmp_path, {h: [step(0)] for h in ("h1", "h2")}, [])
    drive.admit({"h1": lambda: None, "h2": lambda: None}, Turns.parse(["1"]))
    drive.runs["h1"].phase = "over"
    drive.stop()
    assert drive.runs["h2"].reason == "interrupted before its turn"
