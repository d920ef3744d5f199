"""The live table of a campaign: what a terminal shows of six hosts and of a thousand."""

from __future__ import annotations

import contextlib
import io

import pytest
from rich.console import Console

from fleetmark.base.measurement import Status
from fleetmark.base.terminal import Terminal
from fleetmark.campaign import progress as progress_module
from fleetmark.campaign.progress import Cell, Progress
from fleetmark.record.steps import Step


def shown(hosts: int, width: int, height: int = 30) -> list[str]:
    """The lines of a table of ``hosts``: every tenth waits for its turn, every hundredth is unreachable."""
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    progress = Progress(Console(quiet=True), ["selftest", "stream"], "campaign 20261123T071149-standard-53d5")
    for number in range(hosts):
        host = f"rack{number % 40:02d}-node{number:04d}"
        progress.add(host, {"selftest": Cell(6), "stream": Cell(20)}, 10.0 * number)
        progress.rows[host].queued = number % 10 == 1
        if number % 100 == 2:
            progress.trouble(
                host, "unreachable: port 22 did not answer within 10 s; is it up, and is this its address?"
            )
    progress.ended("rack00-node0000", "selftest", "uptime-1", Status.FAILED, "exit status 3", 1.0)
    progress.console = console
    console.print(progress.render())
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_thousand_hosts_fit_a_terminal(width: int) -> None:
    lines = shown(1000, width)
    assert len(lines) <= 30 and max(map(len, lines)) <= width
    assert lines[1] == "1 of 26,000 runs ended: 1 failed"
    assert lines[2] == "1,000 hosts: 890 at work, 100 waiting for a turn, 10 in trouble"
    assert lines[4].startswith("rack39-node0999")  # the slowest
    assert not any("turn" in line for line in lines[3:])  # those at work come first
    assert lines[-2].startswith("rack02-node0002 and 9 more: unreachable: port 22 did not")
    assert lines[-1] == "rack00-node0000: selftest uptime-1 failed: exit status 3"
    assert len(shown(1000, width, height=12)) <= 12


def test_few_hosts_are_all_there() -> None:
    lines = shown(6, 80)
    assert [line.split()[0] for line in lines[3:9]] == [
        "rack02-node0002",  # in trouble
        *(f"rack{n:02d}-node{n:04d}" for n in (5, 4, 3, 1, 0)),
    ]
    assert lines[7].endswith("turn")


def test_a_reason_of_several_lines_takes_one() -> None:
    file = io.StringIO()
    with contextlib.redirect_stdout(file):
        console = Terminal()
    console.width, console.height = 80, 30
    progress = Progress(console, ["selftest"], "campaign")
    progress.add("h1", {"selftest": Cell(2)}, 1.0)
    progress.ended("h1", "selftest", "uptime-1", Status.FAILED, "no\r\n\x1b[2Jspace\u2028left", 1.0)
    progress.trouble("h1", "lost:\nthe link")
    file.truncate(0)
    console.print(progress.render())
    assert file.getvalue().strip("\x00").splitlines()[-2:] == [
        "h1: lost: the link",
        "h1: selftest uptime-1 failed: no ␛[2Jspace left",
    ]


def test_a_log_names_the_steps_that_run_far_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: clock[0])
    file = io.StringIO()
    progress = Progress(Console(file=file, width=200), ["stream"], "campaign")
    step = Step(id="1", workload="stream", case="triad", repeat=0, argv=(), env={}, expect_s=50.0, timeout_s=7200.0)
    for host in ("n01", "n02", "n03", "lost"):
        progress.add(host, {"stream": Cell(2)}, 100.0)
        progress.begin(host, step)
    progress.trouble("lost", "does not answer")
    progress.ended("n03", "stream", "triad", Status.PASSED, "", 50.0)

    def printed(after_s: float) -> list[str]:
        file.truncate(0)
        file.seek(0)
        clock[0] = 1000.0 + after_s
        progress.report_late()
        return [line[9:] for line in file.getvalue().splitlines()]

    assert printed(149.0) == []
    assert printed(200.0) == [
        "n01, n02: stream triad is still running after 3m20s; 50s were expected, and its time limit is 2h00m"
    ]
    assert printed(390.0) == []  # the next line comes at twice the time
    assert [line.split(";")[0] for line in printed(400.0)] == ["n01, n02: stream triad is still running after 6m40s"]
