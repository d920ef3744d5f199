"""Test the state of a drive with simulated hosts: events that are rare on real hosts."""

from __future__ import annotations

import base64
import io
import subprocess
import time
import zlib
from pathlib import Path
from typing import Any, cast

import pytest

from fleetmark.campaign.drive import Drive
from fleetmark.campaign.hostrun import SLOWEST, STUCK_S
from fleetmark.campaign.listen import REMOVE, listen
from fleetmark.hosts.reach import Channel, LinkLost, Reach, Stalled
from fleetmark.record import replies
from fleetmark.record.steps import Exchange
from tests.drives import Wire, drain, make_drive, orders, outcomes, parts, result, say, step, tell


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """Return a drive with one pair: h1 measures against h2, and both are running."""
    return make_drive(
        tmp_path, {"h1": [step(0)], "h2": [step(0, serves=True)]}, [Exchange("h2", "00000", "h1", "00000")]
    )


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
    tell(drive, "h1", e="wait", step="00000")  # the follower reconnects and repeats its state
    assert orders(drive, "h1") == ["go 00000"] * 2


def test_a_client_whose_server_could_not_be_deployed_fails_with_the_reason(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    drive.runs["h2"].phase = "launching"
    drive.follow = cast(Any, lambda host: None)
    tell(drive, "h2", "launched", state="started", failed_workloads={"iperf3": "no such package"})
    assert orders(drive, "h1") == ["fail 00000"]
    say(drive, "h1", *parts("00000", {"result.json": result(ended="error", reason="a host that it needs ...")}))
    reason = "its peer h2 cannot take part: could not be deployed: no such package"
    assert outcomes(drive, "h1") == [("failed", reason)]


def test_a_step_that_is_not_needed_and_did_not_hear_so_is_told_again(drive: Drive) -> None:
    run = drive.runs["h1"]
    drive._drop(run, [run.steps["00000"]])
    assert orders(drive, "h1") == ["drop 00000"] and orders(drive, "h2") == ["drop 00000"]
    tell(drive, "h1", e="wait", step="00000")  # the link was down during the first order
    assert orders(drive, "h1") == ["drop 00000"] * 2
    drive.heard.put(("h1", "back", None))
    drain(drive)
    assert orders(drive, "h1") == ["drop 00000"] * 3


def test_a_step_that_nobody_owes_does_not_wait_for_ever(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00077")
    assert orders(drive, "h1") == ["drop 00077"]


def test_the_peers_of_a_lost_host_do_not_wait(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    drive.heard.put(("h2", "gone", "power cut"))
    drain(drive)
    assert orders(drive, "h1") == ["skip 00000"]
    say(drive, "h1", *parts("00000", {"result.json": result(ended="lost", reason="a host that it needs ...")}))
    assert outcomes(drive, "h1") == [("lost", "its peer h2 is not there: stopped answering: power cut")]


def test_a_server_whose_client_is_lost_is_ended(drive: Drive) -> None:
    tell(drive, "h2", e="begin", step="00000")
    drive.heard.put(("h1", "gone", "power cut"))
    drain(drive)
    assert orders(drive, "h2") == ["cancel 00000"]
    assert [e["status"] for e in drive.archive.journal() if e["e"] == "outcome"] == ["lost"]


def test_a_host_that_hangs_in_its_kernel_is_given_up(drive: Drive) -> None:
    tell(drive, "h1", e="begin", step="00000")
    assert drive.runs["h1"].deadline
    drive.runs["h1"].deadline = time.monotonic() - 1
    drive._notice_stuck()
    assert drive.runs["h1"].phase == "over"
    assert "stuck" in drive.runs["h1"].reason


def test_what_a_server_says_of_its_end_reaches_no_other_host(drive: Drive) -> None:
    """Regression: an order contained the reason of the server's result, which could hold further orders."""
    tell(drive, "h1", e="wait", step="00000")
    evil = "boo\ngo /etc/profile.d/evil.sh ;touch /PWNED"
    say(drive, "h2", *parts("00000", {"result.json": result(ended="error", reason=evil)}))
    assert set(orders(drive, "h1")) == {"skip 00000"}
    assert drive.runs["h1"].excuses["00000"] == f"its server on h2: {evil}"


def test_the_client_of_a_server_that_ended_has_the_servers_last_line(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    files = {"stderr": b"a detail\nno space left\n", "result.json": result(rc=1)}
    say(drive, "h2", *parts("00000", files))
    assert drive.runs["h1"].excuses["00000"] == "its server on h2: exit status 1: no space left"


PART = {"e": "part", "step": "00000", "name": "stdout"}
BOMB = base64.b64encode(zlib.compress(b"\0" * (replies.MAX_PART + 1))).decode()


@pytest.mark.parametrize(
    "lines",
    [
        [{"e": "end", "step": "00000", "files": []}],
        [{"e": "end", "step": "00000", "files": {}}],
        [{"e": "end", "step": "00000", "files": {"stdout": 3}}],
        [{**PART, "data": "%%%not base64"}],
        [{**PART, "data": base64.b64encode(b"no zlib").decode()}],
        [{**PART, "data": BOMB}],
        [{**PART, "data": "", "name": ""}],
        [{**PART, "data": "eJwDAAAAAAE=", "name": "../../x"}],
        [{**PART, "data": "eJwDAAAAAAE=", "name": "step.json"}],
        [{**PART, "data": "eJwDAAAAAAE=", "name": "unasked.txt"}],
        [{**PART, "data": "eJwDAAAAAAE=", "step": "00009"}],
        [{**PART, "data": 7}],
        parts("00000", {"stdout": b"x"}),
        parts("00000", {"result.json": b"[]"}),
        parts("00000", {"result.json": b"\xff"}),
        parts("00000", {"result.json": b"[" * 100_000}),
        parts("00000", {"result.json": result(telemetry="x")}),
        parts("00000", {"result.json": result(started=1e300)}),
        parts("00000", {"result.json": result(wall_s="x")}),
        parts("00000", {"result.json": result(ended="won")}),
        parts("00000", {"result.json": result().replace(b"1.0", b"NaN")}),
        [*parts("00000", {"stdout": b"x"})[:1], *parts("00001", {"stdout": b"x"})],
        [*parts("00000", {"stdout": b"x", "result.json": b"{}"})[:2], *parts("00000", {"stdout": b"y"})[:1]],
        [{"e": "wait"}],
        [{"e": "wait", "step": "../x"}],
        [{"e": "begin", "step": 0}],
        [{"e": "over", "remaining": -1}],
        [{"e": "sing"}],
        [{}],
        [b"{" + b'"a":{' * 100_000],
        [b"{" + b"x" * (replies.MAX_LINE + 10)],
        [b"{\xff\xfe"],
    ],
)
def test_one_host_that_talks_nonsense_costs_only_itself(drive: Drive, lines: list[Any]) -> None:
    say(drive, "h1", *lines)
    assert drive.runs["h1"].phase == "over"
    assert drive.runs["h2"].phase == "running"
    ((status, reason),) = outcomes(drive, "h1")
    assert status == "lost" and reason.startswith("h1 sent an invalid reply (") and len(reason) < 400
    assert not list(drive.archive.path.glob("raw/**/.part*"))


@pytest.mark.parametrize(
    "answer",
    [
        {"state": "started", "failed_workloads": []},
        {"state": "busy", "holder": "me"},
        {"state": "busy", "holder": {"campaign": ["x"]}},
        {"state": "flying"},
        {"state": "error", "error": 7},
        {},
    ],
)
def test_a_launch_that_answers_nonsense_costs_only_its_host(drive: Drive, answer: dict[str, Any]) -> None:
    drive.runs["h1"].phase = "launching"
    tell(drive, "h1", "launched", **answer)
    assert outcomes(drive, "h1")[0][1].startswith("h1 sent an invalid reply (")
    assert drive.runs["h2"].phase == "running"


def test_a_setting_that_is_left_is_in_the_journal(drive: Drive) -> None:
    drive.runs["h1"].phase = "launching"
    tell(drive, "h1", "launched", state="error", error="it is still there", left="x was 1", cleared="y = 2")
    assert [(e["e"], e["what"]) for e in drive.archive.journal() if "what" in e] == [
        ("cleared", "y = 2"),
        ("left", "x was 1"),
    ]
    assert outcomes(drive, "h1")[0][1] == "it is still there"


def test_over_before_the_end_has_a_reason(drive: Drive) -> None:
    say(drive, "h1", {"e": "over", "remaining": 0})
    assert outcomes(drive, "h1") == [("lost", "its agent reported the end of its job, but did not send all steps")]
    assert "clean" not in orders(drive, "h1"), "what it has may still be had by hand"


def test_a_work_folder_that_was_removed_is_named(drive: Drive) -> None:
    say(drive, "h1", {"e": "over", "remaining": None})
    assert outcomes(drive, "h1") == [("lost", "its work directory was removed while it ran")]


def later(drive: Drive, seconds: float) -> None:
    """Move all deadlines of the drive ``seconds`` into the past, and let it look for stuck hosts."""
    for run in drive.runs.values():
        run.waiting_since -= seconds
        if run.deadline is not None:
            run.deadline -= seconds
    drive._notice_stuck()


def test_a_host_that_says_nothing_after_it_was_let_go_is_given_up(drive: Drive) -> None:
    """Every wait has a deadline, because a host's message may be lost or its agent may lie."""
    tell(drive, "h2", e="wait", step="00000")
    tell(drive, "h1", e="wait", step="00000")
    assert orders(drive, "h2") == ["go 00000"]
    later(drive, STUCK_S / 2)
    tell(drive, "h2", e="wait", step="00000")  # repeating a message does not extend the deadline
    later(drive, STUCK_S / 2 + 1)
    assert drive.runs["h2"].reason == "stuck: the beginning of iperf3 tcp-1 repeat 0 is overdue"
    assert orders(drive, "h1") == ["skip 00000"]


def test_a_controller_that_is_behind_blames_no_host(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    """With very many hosts, the controller may process a timely message only after the host's deadline."""
    tell(drive, "h2", e="wait", step="00000")
    tell(drive, "h1", e="wait", step="00000")
    drive.heard.put(("h2", "event", replies.Begins(e="begin", step="00000")))
    run, much_later = drive.runs["h2"], time.monotonic() + 2 * STUCK_S
    assert run.deadline is not None and run.deadline < much_later
    monkeypatch.setattr(time, "monotonic", lambda: much_later)
    drive._hear()
    assert run.phase == "running"
    assert run.expected == "the end of iperf3 tcp-1 repeat 0"


def test_hosts_that_wait_for_one_another_are_given_up(tmp_path: Path) -> None:
    drive = make_drive(
        tmp_path,
        {"h1": [step(0), step(1, serves=True)], "h2": [step(0), step(1, serves=True)]},
        [Exchange("h2", "00001", "h1", "00000"), Exchange("h1", "00001", "h2", "00000")],
    )
    for host in ("h1", "h2"):
        tell(drive, host, e="wait", step="00000")
    later(drive, STUCK_S - 1)
    assert {run.phase for run in drive.runs.values()} == {"running"}
    later(drive, 2)
    assert {run.phase for run in drive.runs.values()} == {"over"}
    assert (
        "all hosts are waiting for each other, and this host waits at iperf3 tcp-1 repeat 0" in drive.runs["h1"].reason
    )


def test_a_cut_link_does_not_use_up_the_time_of_a_run(drive: Drive) -> None:
    run = drive.runs["h1"]
    tell(drive, "h1", e="begin", step="00000")
    before = run.deadline
    drive.heard.put(("h1", "silent", "no route"))
    drain(drive)
    assert before is not None and not run.overdue(before + 1000)
    run.silent_since = time.monotonic() - 1000
    drive.heard.put(("h1", "back", None))
    drain(drive)
    assert run.deadline == pytest.approx(before + 1000, abs=30)


def test_the_table_says_what_a_host_waits_for(drive: Drive) -> None:
    tell(drive, "h1", e="wait", step="00000")
    assert drive.progress.rows["h1"].cells["iperf3"].text().plain == "waits for h2 0/1"


def test_words_said_again_buy_no_time_and_print_nothing(drive: Drive, capsys: pytest.CaptureFixture[str]) -> None:
    """Treat a host that repeats itself endlessly as lost, too."""
    tell(drive, "h1", e="begin", step="00000")
    tell(drive, "h2", e="wait", step="00000")
    tell(drive, "h2", e="begin", step="00000")
    tell(drive, "h2", e="ready", step="00000")
    tell(drive, "h1", e="finish", state="finished")
    due = {host: run.deadline for host, run in drive.runs.items()}
    printed, ordered = drive.progress.console.file.getvalue(), orders(drive, "h1")[:]  # type: ignore[attr-defined]
    for _ in range(3):
        tell(drive, "h1", e="begin", step="00000")
        tell(drive, "h2", e="ready", step="00000")
        tell(drive, "h1", e="finish", state="finished")
    assert {host: run.deadline for host, run in drive.runs.items()} == due
    assert drive.progress.console.file.getvalue() == printed  # type: ignore[attr-defined]
    assert orders(drive, "h1") == ordered


def test_files_put_a_deadline_off_by_no_more_than_a_step_may_have(drive: Drive) -> None:
    run = drive.runs["h1"]
    tell(drive, "h1", e="begin", step="00000")
    run.arrived = 1 << 60
    assert run.deadline is not None
    assert run.overdue(run.deadline + replies.MAX_STEP / SLOWEST + 1)


def test_a_host_that_takes_no_orders_holds_up_nobody(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    def stalls(data: bytes, timeout: float | None = None) -> None:
        assert timeout, "the main thread would wait for ever"
        raise Stalled("h2: took nothing")

    monkeypatch.setattr(drive.runs["h2"].channel, "write", stalls)
    tell(drive, "h1", e="wait", step="00000")
    tell(drive, "h2", e="wait", step="00000")
    assert (drive.runs["h2"].phase, drive.runs["h2"].reason) == ("over", "it does not read orders")
    assert orders(drive, "h1") == ["skip 00000"]


class Ends(Wire):
    """A connection to a process that ends with a status, or whose link is lost (None)."""

    def __init__(self, status: int | None) -> None:
        super().__init__("h1")
        self.status = status

    def wait(self, timeout: float | None = None) -> int:
        if self.status is None:
            raise LinkLost("h1: the link is lost")
        return self.status


class Begins(Reach):
    """A host on which each of these processes begins in turn, and then no other. ``begun``: their commands."""

    def __init__(self, *processes: Ends) -> None:
        self.processes, self.begun = list(processes), list[Any]()

    @property
    def is_root(self) -> bool:
        return True

    def close(self) -> None:
        pass

    def _start(self, argv: Any) -> Channel:
        if not self.processes:
            raise LinkLost("h1: the link is lost")
        self.begun.append(list(argv))
        return self.processes.pop(0)


def cleaned(drive: Drive, monkeypatch: pytest.MonkeyPatch, *statuses: int | None) -> tuple[str, list[Any]]:
    """Order h1 to remove its files, and let its follower and further processes end with ``statuses`` (None: lost).

    Return why h1 is over, and the commands of the processes.
    """
    monkeypatch.setattr("fleetmark.campaign.listen.RETRY_S", 0)
    run = drive.runs["h1"]
    run.pending.clear()
    tell(drive, "h1", e="over", remaining=0)
    assert run.phase == "running" and orders(drive, "h1") == ["clean"], "it is over when its files are gone"
    run.reach = Begins(*map(Ends, statuses))
    listen(run, drive.archive, drive.heard, 60.0 if 0 in statuses else -1.0, lambda: False)
    drain(drive)
    assert run.phase == "over" and not outcomes(drive, "h1")
    return run.reason, run.reach.begun


FOLLOW = ["python3", "/x/follow.py", "/x"]
BY_HAND = ["sh", "-c", REMOVE, "sh", "/x"]


def test_a_host_is_over_when_its_follower_has_removed_its_files(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cleaned(drive, monkeypatch, 0) == ("", [FOLLOW])


def test_files_are_removed_if_the_host_restarts_while_it_removes_them(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cleaned(drive, monkeypatch, None, 1, 0) == ("", [FOLLOW, FOLLOW, BY_HAND]), "its agent is half removed"
    assert all(order == "clean" for order in orders(drive, "h1"))


def test_files_that_may_remain_are_named(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    reason, _ = cleaned(drive, monkeypatch, None)
    assert reason == "stopped answering: the link is lost"
    shown = cast(io.StringIO, drive.progress.console.file).getvalue()
    problem = "h1: files of the job may remain in /x (stopped answering: the link is lost)"
    assert f"{problem}; fleetmark run --resume c removes them" in " ".join(shown.split())


def test_a_host_that_reconnects_is_ordered_again_to_remove_its_files(drive: Drive) -> None:
    drive.runs["h1"].pending.clear()
    tell(drive, "h1", e="over", remaining=0)
    tell(drive, "h1", e="over", remaining=1)  # some are removed already
    assert orders(drive, "h1") == ["clean", "clean"] and drive.runs["h1"].phase == "running"


@pytest.mark.parametrize("is_left", [False, True])
def test_a_setting_that_was_not_restored_keeps_its_files(tmp_path: Path, is_left: bool) -> None:
    folder = tmp_path / "campaign" / "h1"
    (folder / "steps" / "00000").mkdir(parents=True)
    if is_left:
        (folder / "setting.json").touch()
    subprocess.run(["sh", "-c", REMOVE, "sh", str(folder)], check=True)
    assert folder.exists() == folder.parent.exists() == is_left
    subprocess.run(["sh", "-c", REMOVE, "sh", str(folder)], check=True)
