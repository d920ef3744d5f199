"""A sample of ``benchmarks.faults``: campaigns under faults at random moments are resumed, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.faults import earlier, play
from benchmarks.faults.places import Place
from benchmarks.faults.strikes import STRIKES
from tests.fleet.command import Command
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet
SAMPLE = [("controller killed", "cable cut and healed"), ("journal cut",), ("controller's disk full", "job killed")]


@pytest.mark.parametrize("names", SAMPLE, ids=" and ".join)
def test_a_struck_campaign_is_resumed_without_loss(fleet: Fleet, names: tuple[str, ...]) -> None:
    assert set(names) <= set(STRIKES)
    assert play(Place(over="ssh", fleet=fleet), 0, seed=1, names=names).problems == ()


def test_a_resume_removes_files_that_a_killed_controller_left(fleet: Fleet, tmp_path: Path) -> None:
    """As after a kill between the last step of a host and the end of its job."""
    command = Command(fleet, tmp_path)
    command.passes("--suite", "selftest", "--limit", "h1")
    journal = command.campaign / "journal.jsonl"
    content = journal.read_bytes()
    begin = content.rindex(b"\n", 0, content.index(b'"e": "over"')) + 1
    journal.write_bytes(content[:begin])
    folder = f"/var/tmp/fleetmark-0/jobs/{command.campaign.name}"
    fleet.exec("h1", ["sh", "-ec", f"mkdir -p {folder}/h1/steps/00000; touch {folder}/h1/steps/00000/stdout"])
    command.passes("--resume", command.campaign.name)
    assert fleet.exec("h1", ["test", "-e", folder], check=False).returncode
    assert [e["host"] for e in command.events() if e["e"] == "over"] == ["h1"]


def test_a_new_table_keeps_the_totals_of_those_before_it() -> None:
    before = [{"rounds": 2, "lost": 1, "commit": "a", "remark": "why"}]
    stored = {"rounds": 5, "lost": 0, "commit": "b", "seeds": [1, 2], "earlier": before}
    assert earlier({}, {"seeds": [3]}) == []
    assert earlier(stored, {"seeds": [2, 3]}) == before
    assert earlier(stored, {"seeds": [3]}) == [*before, {"rounds": 5, "lost": 0, "commit": "b", "remark": ""}]
