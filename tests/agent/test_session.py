"""Sessions on this machine: one process from the facts to the end of a job, and what is left where it is cut off."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import runpy
import socket
import stat
import struct
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fleetmark.campaign.hostrun import Run
from fleetmark.campaign.listen import _opened, order
from fleetmark.campaign.start import start
from fleetmark.hosts import session as sent
from fleetmark.hosts.connect import connect
from fleetmark.hosts.inventory import this_machine
from fleetmark.hosts.reach import ReachError, Stalled
from fleetmark.hosts.session import Session
from tests.agent.job import Job, step

pytestmark = pytest.mark.job
AGENT = Path(__file__).parents[2] / "playbooks" / "agent"
OPTIONS = {"probe": ["sh"], "work": "/var/tmp"}


def session(python: str | None = None) -> Session:
    return Session(connect(this_machine()), python, sudo=False)


def facts_of(session: Session) -> dict[str, Any]:
    doc: dict[str, Any] = json.loads(session.facts(OPTIONS, 60.0, stay=True).out)
    return doc


def events(session: Session) -> list[dict[str, Any]]:
    """What the follower says until the job is over; then the job is removed."""
    session.channel.write(order(order="have", steps=[]))
    docs: list[dict[str, Any]] = []
    while not docs or docs[-1]["e"] != "over":
        docs.append(json.loads(session.channel.readline(60.0)))
    session.channel.write(order(order="clean"))
    assert session.channel.readline(60.0) == b""
    return docs


def lock_holder() -> int:
    """The process that runs the job of this machine."""
    with socket.socket(socket.AF_UNIX) as lock:
        lock.connect("\0fleetmark-host-job")
        pid: int = struct.unpack("3i", lock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        return pid


def test_one_process_tells_starts_and_follows(tmp_path: Path) -> None:
    job = Job(tmp_path, [step(0, ["echo", "out"]), step(1, ["sh", "-c", "exit 7"])])
    one = session(sys.executable)
    facts = facts_of(one)
    assert facts["which"]["sh"] and facts["commands"]["lscpu"]
    assert one.start(job.doc, 60.0) == {"state": "started"}
    docs = events(one)
    assert [d["step"] for d in docs if d["e"] == "end"] == ["00000", "00001"]
    assert docs[-1] == {"e": "over", "remaining": 0}
    assert not job.folder.exists()
    one.close()


def test_a_job_goes_on_where_its_session_is_cut_off(tmp_path: Path) -> None:
    job = Job(tmp_path, [step(0, ["sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done"])])
    one = session()
    facts_of(one)
    assert one.start(job.doc, 60.0)["state"] == "started"
    runner = lock_holder()
    assert Path(f"/proc/{runner}/comm").read_text() == "fleetmark-job\n"
    assert os.getsid(runner) == runner, "the end of the session's terminal or group is not its own"
    assert Path(f"/proc/{runner}/cwd").readlink() == Path("/")
    assert Path(f"/proc/{runner}/fd/0").readlink() == Path("/dev/null")
    assert Path(f"/proc/{runner}/fd/2").readlink() == job.folder / "runner.log"
    one.close()
    again = session()
    facts_of(again)
    assert again.start(job.doc, 60.0)["state"] == "running"
    (tmp_path / "go").touch()
    assert [d["step"] for d in events(again) if d["e"] == "end"] == ["00000"]
    again.close()


def test_when_all_hosts_wait_each_is_sent_no_more_than_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(tmp_path, [step(0, ["true"])])
    one = session()
    facts_of(one)
    one.send_agent().join(60.0)
    write, sizes = one.channel.write, list[int]()

    def counted(data: bytes, timeout: float | None = None) -> None:
        sizes.append(len(data))
        write(data, timeout)

    monkeypatch.setattr(one.channel, "write", counted)
    assert one.start(job.doc, 60.0)["state"] == "started"
    assert sum(sizes) < len(json.dumps(job.doc)) < len(sent._files()) / 10
    assert events(one)[-1] == {"e": "over", "remaining": 0}
    one.close()


def test_a_host_loads_what_runs_its_job_before_the_job_comes(tmp_path: Path) -> None:
    python, pid = _python_with_pid(tmp_path)
    one = session(str(python))
    facts_of(one)
    one.send_agent()
    maps, until = Path("/proc", pid.read_text().strip(), "maps"), time.monotonic() + 60
    while "_ctypes" not in maps.read_text():  # which the runner loads, and nothing else
        assert time.monotonic() < until
        time.sleep(0.01)
    one.close()


def test_a_host_that_does_not_read_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\nprintf 'FLEETMARK{}\\n'\nexec sleep 600\n")
    deaf.chmod(0o755)
    monkeypatch.setattr(sent, "WRITE_S", 0.1)
    monkeypatch.setattr(sent, "_files", lambda: bytes(1 << 20))  # more than a pipe holds
    one = session(str(deaf))
    assert one.facts(OPTIONS, 60.0, stay=True).out == b"{}\n"
    one.send_agent()
    with pytest.raises(Stalled, match="read no input for 0.1 s"):
        one.start({}, 60.0)
    one.close()


def test_a_session_that_cannot_be_sent_the_agent_leaves_the_job_to_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(tmp_path, [step(0, ["true"])])
    reach = connect(this_machine())
    one = Session(reach, sys.executable, sudo=False)

    write, sizes = one.channel.write, list[int]()

    def stalls_at_the_agent(data: bytes, timeout: float | None = None) -> None:
        sizes.append(len(data))
        if len(sizes) == 2:
            raise Stalled("read no input")
        write(data, timeout)

    monkeypatch.setattr(one.channel, "write", stalls_at_the_agent)
    assert facts_of(one)["schema"] == 1
    run = Run(host="h", reach=reach, python=sys.executable, sudo=False, folder=str(job.folder), steps={}, session=one)
    assert start(run, job.doc)["state"] == "started"
    with contextlib.closing(_opened(run)) as run.channel:
        run.channel.write(order(order="have", steps=[]))
        docs = [json.loads(run.channel.readline(60.0))]
        while docs[-1]["e"] != "over":
            docs.append(json.loads(run.channel.readline(60.0)))
        run.channel.write(order(order="clean"))
        assert run.channel.readline(60.0) == b""
    assert docs[-1] == {"e": "over", "remaining": 0}


def test_facts_alone_end_it(tmp_path: Path) -> None:
    one = session()
    assert one.facts(OPTIONS, 60.0, stay=False).rc == 0
    assert one.channel.wait(60.0) == 0
    one.close()


def test_a_work_folder_that_cannot_be_made_is_answered(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    one = session()
    facts_of(one)
    answer = one.start(Job(tmp_path / "file", [step(0, ["true"])]).doc, 60.0)
    assert answer["state"] == "error" and f"{tmp_path / 'file'}: not a folder" in answer["error"]
    assert not one.started
    one.close()


def test_a_full_disk_is_answered_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(AGENT / "shares")
    monkeypatch.syspath_prepend(AGENT)
    agent = runpy.run_path(str(AGENT / "job.py"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # of a write, which names no file

    monkeypatch.setitem(agent["launch"].__globals__, "open_private", full)
    with pytest.raises(RuntimeError, match=f"^the disk of {tmp_path} is full: free some space$"):
        agent["start"]({"job": {"work": str(tmp_path), "folder": str(tmp_path / "job")}, "source": {}})


def test_an_old_python_is_passed_over_and_a_broken_one_named(tmp_path: Path) -> None:
    old, broken = tmp_path / "old", tmp_path / "broken"
    old.write_text("#!/bin/sh\nexit 126\n")
    broken.write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    for file in (old, broken):
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    one = session(str(old))
    assert facts_of(one)["python_version"].startswith("3.")
    one.close()
    one = session(str(broken))
    ran = one.facts(OPTIONS, 60.0, stay=True)
    assert (ran.rc, ran.err) == (3, b"no such library")
    with pytest.raises(ReachError):
        one.start({}, 60.0)
    one.close()


def test_lines_of_a_login_script_are_skipped(tmp_path: Path) -> None:
    chatty = tmp_path / "chatty"
    chatty.write_text(f'#!/bin/sh\necho "welcome {{}}"\nexec {sys.executable} "$@"\n')
    chatty.chmod(0o755)
    one = session(str(chatty))
    assert facts_of(one)["schema"] == 1
    one.close()


def test_one_that_started_no_job_ends_where_another_process_follows(tmp_path: Path) -> None:
    reach = connect(this_machine())
    python, pid = _python_with_pid(tmp_path)
    one = Session(reach, str(python), sudo=False)
    facts_of(one)
    process = Path("/proc", pid.read_text().strip())
    assert process.exists()
    run = Run(host="h", reach=reach, python=sys.executable, sudo=False, folder=str(tmp_path), steps={}, session=one)
    _opened(run).close()
    until = time.monotonic() + 60
    while process.exists() and (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.01)


def _python_with_pid(folder: Path) -> tuple[Path, Path]:
    """A Python, and where the number of its process is written."""
    python, pid = folder / "python", folder / "pid"
    python.write_text(f'#!/bin/sh\necho $$ >{pid}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python, pid


@pytest.mark.parametrize(
    ("out", "enough"),
    [
        ('"data": "98304 (2 instances)"},{"data": "33554432 (1 instance)"', True),
        ('"data": "98304 (2 instances)"},{"data": "917504 (24 instances)"', False),  # of cores that differ
        ('"data": "96 KiB (2 instances)"', False),
        ('"data": "98304"', False),
        ("", False),
    ],
)
def test_sysfs_is_asked_where_lscpu_does_not_tell_each_cache(
    monkeypatch: pytest.MonkeyPatch, out: str, enough: bool
) -> None:
    monkeypatch.syspath_prepend(str(AGENT / "facts"))
    import needed  # type: ignore[import-not-found]

    assert needed.has_caches({"out": out}) is enough


@pytest.mark.parametrize(
    ("machine", "second", "mark", "is_undecided"),
    [
        ("x86_64", "kthreadd\n", None, False),
        ("x86_64", "bash\n", None, True),  # a container: its second process is its own
        ("x86_64", None, None, True),
        ("x86_64", "bash\n", ".dockerenv", False),
        ("aarch64", "kthreadd\n", None, True),
        ("aarch64", "bash\n", ".dockerenv", False),
    ],
)
def test_systemd_is_asked_what_a_host_is_where_files_do_not_tell(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    machine: str,
    second: str | None,
    mark: str | None,
    is_undecided: bool,
) -> None:
    monkeypatch.syspath_prepend(str(AGENT / "facts"))
    import needed

    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "6", "1", machine)))
    monkeypatch.setattr(needed, "read", lambda _: second)
    monkeypatch.setattr(needed, "MARKS", (str(tmp_path / ".dockerenv"),))
    if mark:
        (tmp_path / mark).touch()
    assert needed.is_undecided() is is_undecided
