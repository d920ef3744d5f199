"""The drive's bookkeeping, with hosts that are only a queue: what real ones do too rarely to wait for."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from fleetmark.campaign.drive import Drive, Run
from fleetmark.campaign.progress import Cell, Progress
from fleetmark.campaign.steps import Exchange, Step
from fleetmark.hosts.reach import Channel, Reach
from fleetmark.record.archive import Archive


class Wire:
    """A channel that only remembers what was written."""

    def __init__(self) -> None:
        self.orders: list[str] = []

    def write(self, data: bytes) -> None:
        self.orders += data.decode().splitlines()


def step(number: int, *, serves: bool = False, workload: str = "iperf3", members: tuple[str, ...] = ()) -> Step:
    return Step(
        id=f"{number:05d}",
        workload=workload,
        case="tcp-1",
        repeat=0,
        argv=("true",),
        env={},
        expect_s=1,
        timeout_s=5,
        gate=True,
        subject="h1>h2",
        serves=serves,
        members=members,
    )


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """h1 measures against h2: one pair, both running."""
    archive = Archive.create(tmp_path, "c", {"hosts": []}).writable()
    progress = Progress(Console(file=io.StringIO()), ["iperf3"], "c")
    runs = []
    for host, mine in (("h1", step(0)), ("h2", step(0, serves=True))):
        progress.add(host, {"iperf3": Cell(1)}, 1)
        run = Run(host, cast(Reach, None), "python3", False, "/x", {mine.id: mine}, {mine.id}, phase="running")
        run.channel = cast(Channel, Wire())
        runs.append(run)
    return Drive(archive, runs, [Exchange("h2", "00000", "h1", "00000")], progress, 5)


def orders(drive: Drive, host: str) -> list[str]:
    return cast(Wire, drive.runs[host].channel).orders


def tell(drive: Drive, host: str, what: str = "told", **doc: Any) -> None:
    drive.heard.put((host, what, doc))
    drive._hear(1)


def test_the_server_begins_when_both_stand_there_and_the_client_when_it_listens(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    assert orders(drive, "h2") == []
    tell(drive, "h2", e="wait", step="00000")
    assert (orders(drive, "h1"), orders(drive, "h2")) == ([], ["go 00000"])
    tell(drive, "h2", e="ready", step="00000")
    assert orders(drive, "h1") == ["go 00000"]


def test_a_release_that_a_cut_link_swallowed_is_given_again(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    tell(drive, "h2", e="wait", step="00000")
    tell(drive, "h2", e="ready", step="00000")
    tell(drive, "h1", e="wait", step="00000")  # the follower is back and says again where it stands
    assert orders(drive, "h1") == ["go 00000"] * 2


def test_a_client_whose_server_could_not_be_deployed_fails_with_the_reason(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    drive.runs["h2"].phase = "launching"
    drive.follow = cast(Any, lambda host: None)
    tell(drive, "h2", "launched", state="started", failed_workloads={"iperf3": "no such package"})
    (order,) = orders(drive, "h1")
    assert order.startswith("fail 00000 its peer h2 cannot take part: could not be deployed: no such package")


def test_a_step_that_is_not_needed_and_did_not_hear_so_is_told_again(drive: Drive) -> None:
    run = drive.runs["h1"]
    drive._drop(run, [run.steps["00000"]])
    assert orders(drive, "h1") == ["drop 00000"] and orders(drive, "h2") == ["drop 00000"]
    tell(drive, "h1", e="wait", step="00000")  # the link was down when it was said
    assert orders(drive, "h1") == ["drop 00000"] * 2
    tell(drive, "h1", "back")
    assert orders(drive, "h1") == ["drop 00000"] * 3


def test_a_step_that_nobody_owes_does_not_wait_for_ever(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00077")
    assert orders(drive, "h1") == ["drop 00077"]


def test_the_peers_of_a_lost_host_do_not_wait(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    drive.heard.put(("h2", "gone", "power cut"))
    drive._hear(1)
    (order,) = orders(drive, "h1")
    assert order == "skip 00000 its peer h2 is not there: stopped answering: power cut"


def test_a_server_whose_client_is_lost_is_ended(drive: Drive) -> None:
    tell(drive, "h2", e="begin", step="00000")
    drive.heard.put(("h1", "gone", "power cut"))
    drive._hear(1)
    assert orders(drive, "h2") == ["cancel 00000"]
    assert [e["status"] for e in drive.archive.journal() if e["e"] == "outcome"] == ["lost"]


def test_a_host_that_hangs_in_its_kernel_is_given_up(drive: Drive) -> None:
    tell(drive, "h1", e="begin", step="00000")
    assert drive.runs["h1"].deadline
    drive.runs["h1"].deadline = time.monotonic() - 1
    drive._notice_stuck()
    assert drive.runs["h1"].phase == "over"
    assert "stuck" in drive.runs["h1"].why


def test_one_host_that_talks_nonsense_costs_only_itself(drive: Drive) -> None:
    tell(drive, "h1", e="end", step="00000", files={"result.json": "%%%not base64"})
    assert drive.runs["h1"].phase == "over"
    assert "cannot be read" in drive.runs["h1"].why
    assert drive.runs["h2"].phase == "running"
