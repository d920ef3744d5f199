"""Test that the list of campaigns is the same with and without its index, whatever the index contains."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleetmark.record import listing
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import Summary, campaigns, summarise
from fleetmark.reports.formats import terminal
from fleetmark.reports.kit.console import MANY
from fleetmark.reports.kit.language import Language
from fleetmark.reports.lists import campaigns as shown
from tests.commands import run

INDEX = ".campaigns.jsonl"


def make(root: Path, name: str, *, owed: int = 0) -> Archive:
    document = {"hosts": [{"name": "h1"}], "jobs": {"h1": "x"}, "created": "2026-11-22T00:00:00Z", "suite": "quick"}
    archive = Archive.create(root, name, document)
    for kind in ("facts", "jobs"):
        (archive.path / kind).mkdir()
        (archive.path / kind / "h1.json").write_text("{}")
    archive.writable()
    outcome = {"host": "h1", "workload": "w", "case": "c", "repeat": 0, "subject": "host", "status": "passed"}
    archive.note("outcome", **outcome)
    archive.note("ended", owed=owed)
    return archive


def read_all(root: Path) -> list[Summary]:
    return [summarise(archive) for archive in campaigns(root)]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the campaigns that are read instead of taken from the index."""
    names: list[str] = []

    def counted(archive: Archive) -> Summary:
        names.append(archive.id)
        return summarise(archive)

    monkeypatch.setattr(listing, "summarise", counted)
    return names


def test_a_campaign_is_read_once_and_again_when_its_files_change(tmp_path: Path, read: list[str]) -> None:
    make(tmp_path, "20261122T000001-quick-0001")
    second = make(tmp_path, "20261122T000002-quick-0002", owed=3)
    assert listing.summaries(tmp_path) == read_all(tmp_path)
    assert len(read) == 2
    assert listing.summaries(tmp_path) == read_all(tmp_path)
    assert len(read) == 2
    second.note("ended", owed=0)
    listed = listing.summaries(tmp_path)
    assert listed == read_all(tmp_path)
    assert listed[1].finished
    assert read[2:] == [second.id]


def test_what_a_controller_noted_at_the_end_is_not_read_again(tmp_path: Path, read: list[str]) -> None:
    listing.note(make(tmp_path, "c1"))
    read.clear()
    assert listing.summaries(tmp_path) == read_all(tmp_path)
    assert read == []


def test_damage_is_seen_although_the_campaign_is_on_the_index(tmp_path: Path, read: list[str]) -> None:
    archive = make(tmp_path, "c1")
    listing.summaries(tmp_path)
    (archive.path / "jobs" / "h1.json").write_text("{")
    (damaged,) = listing.summaries(tmp_path)
    assert damaged.damaged
    assert "jobs/h1.json" in damaged.damaged
    assert listing.summaries(tmp_path)[0].damaged, "a damaged campaign is read every time"
    assert len(read) == 3


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "7", '{"campaign": 1}', '{"campaign": "c1"}', '{"campaign": "c1", "files": 3}']
)
def test_an_index_of_anything_is_passed_over(tmp_path: Path, line: str, read: list[str]) -> None:
    make(tmp_path, "c1")
    (tmp_path / INDEX).write_bytes(line.encode() + b"\n\xff\n")
    assert listing.summaries(tmp_path) == read_all(tmp_path)
    assert read == ["c1"]
    assert listing.summaries(tmp_path) == read_all(tmp_path)
    assert read == ["c1"]


def test_an_index_does_not_grow_for_ever(tmp_path: Path) -> None:
    archive = make(tmp_path, "c1")
    for _ in range(210):
        listing.note(archive)
    listing.summaries(tmp_path)
    lines = (tmp_path / INDEX).read_text().splitlines()
    assert [json.loads(line)["campaign"] for line in lines] == ["c1"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_root_that_cannot_be_written_is_listed(tmp_path: Path) -> None:
    make(tmp_path, "c1")
    tmp_path.chmod(0o500)
    assert len(listing.summaries(tmp_path)) == 1


def test_many_campaigns_are_plain_lines(tmp_path: Path) -> None:
    day = "2026-11-22T10:00:00Z"
    many = [
        Summary(
            campaign=f"c{n}", path=tmp_path, created=day, suite="quick", hosts=1, statuses={"passed": n}, finished=True
        )
        for n in range(MANY + 1)
    ]
    (text,) = [part for part in terminal.render(shown.document(many, "root"), Language()) if str(part)]
    lines = str(text).splitlines()
    assert lines[0].split() == ["campaign", "created", "suite", "hosts", "outcomes", "state"]
    assert lines[21] == "c20       2026-11-22T10:00  quick      1  20 passed" and len(lines) == MANY + 2


@pytest.mark.parametrize("verb", ["campaigns", "reference list"])
def test_an_empty_list_is_a_header_row_in_csv(tmp_path: Path, verb: str) -> None:
    (header,) = csv.reader(run(tmp_path, *verb.split(), "--format", "csv").splitlines())
    assert header[0] in ("campaign", "reference", "name")


@pytest.mark.parametrize("form", ["json", "md", "csv"])
def test_the_program_prints_a_list_for_other_programs(tmp_path: Path, form: str) -> None:
    """In a process of its own, whose stdout is guarded."""
    make(tmp_path, "a")
    code = "from fleetmark.cli import main; main()"
    words = ["campaigns", "--results", str(tmp_path), "--format", form]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "campaign" in done.stdout
