"""Test the lock of a host: other users cannot hold it or flood its holder, and their messages are not repeated."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from fleetmark.hosts.agent import PLAYBOOKS
from tests.agent.job import Job, step
from tests.agent.squatter import squatter

pytestmark = pytest.mark.job
NAME = "\0fleetmark-host-job"
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PLAYBOOKS / "agent")
    monkeypatch.delitem(sys.modules, "lock", raising=False)
    import lock  # type: ignore[import-not-found]

    module: ModuleType = lock
    return module


@needs_root
@pytest.mark.parametrize("way", ["silent", "greets", "endless", "full"])
def test_another_user_who_holds_the_name_blocks_no_job(tmp_path: Path, way: str) -> None:
    job = Job(tmp_path, [step(0, ["true"]), step(1, ["echo", "out"], gate=True)])
    other = Job(tmp_path, [step(0, ["true"])], campaign="second")
    with squatter(way, job.folder) as process:
        answer = job.start()
        assert answer["state"] == "started"
        owner = "an unresponsive process" if way == "full" else f"process {process.pid} of uid {NOBODY}"
        assert answer["warning"].startswith(f"{owner} holds the lock that all users of this host share; ")
        assert job.start()["state"] == "running"
        refused = other.start()
        assert (refused["state"], refused["holder"]["campaign"]) == ("busy", "test")
        assert "PWNED" not in json.dumps([answer, refused])
        ended = {}
        for doc, send in job.follow():
            if doc["e"] == "wait":
                send("go", doc["step"])
            if doc["e"] == "end":
                ended[doc["step"]] = bytes(doc["contents"]["stdout"])
        assert ended == {"00000": b"", "00001": b"out\n"}


def test_a_job_alone_says_nothing_of_other_users(tmp_path: Path) -> None:
    job = Job(tmp_path, [step(0, ["true"])])
    assert job.start() == {"state": "started"}
    job.results()


def as_nobody(code: str, *args: str) -> str:
    """Run Python code as the user nobody, with the agent's modules on the path; return its output."""
    setup = f"import os, sys; sys.path.insert(0, {str(PLAYBOOKS / 'agent')!r}); import lock, json, socket; os.setuid(65534)\n"
    words = [sys.executable, "-c", setup + code, *args]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout


@contextmanager
def waiting(job: Job) -> Iterator[None]:
    """Start a job that waits at its gate until the context ends."""
    assert job.start()["state"] == "started"
    yield
    for doc, send in job.follow():
        if doc["e"] == "wait":
            send("go", doc["step"])


def test_a_follower_of_a_runner_that_hangs_does_not_say_that_it_is_over(tmp_path: Path) -> None:
    """Check that the follower exits and the controller reconnects; its copy of lock.py has a shorter timeout."""
    job = Job(tmp_path, [step(0, ["true"], gate=True)])
    with waiting(job):
        file = job.folder / "lock.py"
        text = file.read_text()
        assert text.count("GREETING_S, FOREIGN_S = 30.0, 5.0") == 1
        file.write_text(text.replace("GREETING_S, FOREIGN_S = 30.0, 5.0", "GREETING_S, FOREIGN_S = 0.2, 0.2"))
        pid = next(doc["pid"] for doc, _ in job.follow() if doc["e"] == "start")
        os.kill(pid, signal.SIGSTOP)
        try:
            words = [sys.executable, job.folder / "follow.py", job.folder]
            ran = subprocess.run(words, input=b"", capture_output=True, timeout=120)
        finally:
            os.kill(pid, signal.SIGCONT)
        reason = (
            f"{tmp_path}: the runner of this work directory does not answer (process {pid} of uid {os.geteuid()})\n"
        )
        assert (ran.returncode, ran.stdout, ran.stderr.decode()) == (1, b"", reason)
        file.write_text(text)


@needs_root
def test_a_job_of_root_holds_the_host_for_other_users(tmp_path: Path) -> None:
    with waiting(Job(tmp_path, [step(0, ["true"], gate=True)])):
        holder = json.loads(as_nobody("print(json.dumps(lock.lock_holder('/nonexistent')))"))
        assert (holder["uid"], holder["campaign"], holder["owner"]) == (0, "test", "me@here")
        assert holder["process"] == f"process {holder['pid']} of uid 0"
        assert as_nobody("print(repr(lock.other_user()))") == "''\n"


@needs_root
def test_the_lock_and_the_socket_in_the_work_folder_are_out_of_reach_of_others(tmp_path: Path) -> None:
    for folder in (tmp_path.parent.parent, tmp_path.parent, tmp_path):
        folder.chmod(0o755)  # as an administrator might do by hand
    work = tmp_path / "work"
    try_all = """
for how in (lambda: lock.connect(sys.argv[1]), lambda: open(sys.argv[1] + "/lock").close()):
    try:
        how()
        print("reached")
    except PermissionError:
        print("refused")
"""
    with waiting(Job(work, [step(0, ["true"], gate=True)])):
        work.chmod(0o755)
        assert as_nobody(try_all, str(work)) == "refused\nrefused\n"


def test_a_flood_of_connections_is_not_served(tmp_path: Path) -> None:
    """Patch a pause between two public connections, longer than this test takes, into the runner's module."""
    job = Job(tmp_path, [step(0, ["true"], gate=True)])
    assert job.start()["state"] == "started"
    pid = next(doc["pid"] for doc, _ in job.follow() if doc["e"] == "start")
    os.kill(pid, signal.SIGKILL)
    module = job.folder / "followers.py"
    text = module.read_text()
    assert text.count("PUBLIC_S = 0.05") == 1
    module.write_text(text.replace("PUBLIC_S = 0.05", "PUBLIC_S = 3600"))
    (job.folder / "events.jsonl").unlink()
    with subprocess.Popen([sys.executable, job.folder / "runner.py", job.folder], stdout=subprocess.PIPE) as again:
        assert again.stdout and again.stdout.readline() == b"started\n"
        served = [greeted() for _ in range(3)]
        assert served == [True, False, False]
        for doc, send in job.follow():  # the job's own controller is still served
            if doc["e"] == "wait":
                send("go", doc["step"])
        assert doc == {"e": "over", "remaining": 0}


def greeted() -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(NAME)
        sock.settimeout(2)
        try:
            return sock.recv(4096).startswith(b'{"campaign": "test"')
        except TimeoutError:
            return False


@pytest.mark.parametrize("words", [b"x" * 20_000, b"not JSON\n", b"[" * 5000 + b"\n", b"[1]\n", b"\xff\n", b""])
def test_a_holder_that_says_nonsense_or_nothing_is_still_named(lock: ModuleType, words: bytes) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        theirs.sendall(words)
        me = os.getpid()
        assert lock.holder_of(ours, 0.2) == {
            "pid": me,
            "uid": os.geteuid(),
            "process": f"process {me} of uid {os.geteuid()}",
        }


def test_a_holder_cannot_change_who_it_is(lock: ModuleType) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        theirs.sendall(b'{"pid": 1, "uid": 0, "process": "init", "dir": "/x"}\n')
        holder = lock.holder_of(ours)
    assert (holder["pid"], holder["uid"], holder["dir"]) == (os.getpid(), os.geteuid(), "/x")


def test_a_folder_that_cannot_hold_a_lock_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it, nothing would be left to flush
    (tmp_path / "lock").mkdir()
    answer = Job(tmp_path, [step(0, ["true"])]).start()
    assert answer["state"] == "error"
    assert answer["error"] == f"{tmp_path}: cannot lock the work directory (Is a directory)"


def test_leftovers_of_killed_jobs_are_removed_by_the_next_start(tmp_path: Path) -> None:
    old = tmp_path / "jobs" / "killed" / "h1"
    keep = {"job.json", "steps/00000/result.json", "steps/00000/stdout"}
    leave = {"job.json.part", "reserve", "go/00001.part", "steps/00001.part/stdout", "scratch/w/big"}
    for name in keep | leave:
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).write_text("x")
    job = Job(tmp_path, [step(0, ["true"])])
    job.start()
    job.results()
    assert {str(path.relative_to(old)) for path in old.rglob("*") if path.is_file()} == keep
    assert not (old / "scratch").exists() and not (old / "steps" / "00001.part").exists()
