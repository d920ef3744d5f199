"""The job runner on this machine: order, ends, cleaning up, locking, gates, and being cut off."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.record.replies import Result
from tests.agent.job import Job, step, unpack
from tests.ports import free_port

pytestmark = pytest.mark.job


def alive(marker: str) -> list[str]:
    """Processes whose command line holds ``marker``."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in words:
            commands.append(words)
    return commands


def wait_for(condition: Callable[[], object], patience_s: float = 120.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"not so within {patience_s:g} s"
        time.sleep(0.01)


def test_steps_run_in_order_and_say_how_they_ended(tmp_path: Path) -> None:
    job = Job(
        tmp_path,
        [
            step(0, ["sh", "-c", "echo out; echo err >&2"], env={"A_TOKEN": "hunter2", "PLAIN": "x"}),
            step(1, ["sh", "-c", "exit 7"]),
            step(2, ["no-such-program"]),
            step(3, ["sh", "-c", "pwd; echo made > made.txt"], files=["*.txt"], last=True),
        ],
    )
    assert job.start()["state"] == "started"
    results = job.results()
    assert list(results) == ["00000", "00001", "00002", "00003"]
    assert results["00000"]["files"]["stdout"] == "out\n"
    assert results["00000"]["files"]["stderr"] == "err\n"
    assert results["00000"]["env"]["A_TOKEN"] == "(redacted)"
    assert results["00000"]["env"]["PLAIN"] == "x"
    assert [r["rc"] for r in (results["00000"], results["00001"])] == [0, 7]
    assert results["00002"]["ended"] == "error"
    assert "no-such-program" in results["00002"]["reason"]
    assert results["00003"]["files"]["made.txt"] == "made\n"
    assert not (job.folder / "scratch").exists()


def test_a_hanging_step_is_ended_with_all_it_started(tmp_path: Path) -> None:
    marker = f"sleep 98{os.getpid()}"
    job = Job(tmp_path, [step(0, ["sh", "-c", f"{marker} & setsid {marker} & {marker}"], timeout_s=0.5)])
    job.start()
    result = job.results()["00000"]
    assert result["ended"] == "timeout"
    assert result["reason"] == "no end after 0.5 s"
    wait_for(lambda: not alive(marker))


def test_what_a_step_leaves_running_is_ended(tmp_path: Path) -> None:
    marker = f"sleep 97{os.getpid()}"
    job = Job(tmp_path, [step(0, ["sh", "-c", f"setsid {marker} & exit 0"]), step(1, ["true"])])
    job.start()
    assert [r["ended"] for r in job.results().values()] == ["exit", "exit"]
    assert not alive(marker)


def test_a_second_campaign_is_refused_and_told_whose_the_first_is(tmp_path: Path) -> None:
    first = Job(tmp_path, [step(0, ["sleep", "1.5"])], campaign="first")
    second = Job(tmp_path, [step(0, ["true"])], campaign="second")
    assert first.start()["state"] == "started"
    refused = second.start()
    assert refused["state"] == "busy"
    assert (refused["holder"]["campaign"], refused["holder"]["owner"]) == ("first", "me@here")
    assert first.start()["state"] == "running"
    first.results()
    assert second.start()["state"] == "started"
    assert second.results()["00000"]["rc"] == 0


def test_a_killed_runner_is_taken_up_where_it_was(tmp_path: Path) -> None:
    marker = f"sleep 95{os.getpid()}"
    again = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; {marker}; }}"
    job = Job(tmp_path, [step(0, ["true"]), step(1, ["sh", "-c", again]), step(2, ["true"])])
    job.start()
    for doc, _ in job.follow():
        if doc["e"] == "start":
            pid = doc["pid"]
        if doc["e"] == "begin" and doc["step"] == "00001":
            wait_for(lambda: alive(marker))  # reported before the child exists
            os.kill(pid, signal.SIGKILL)
        last = doc
    assert last == {"e": "over", "remaining": 2}
    assert alive(marker), "killed with -9, a runner leaves its child behind"
    before = (job.folder / "steps" / "00000" / "result.json").read_bytes()
    assert job.start()["state"] == "started"
    assert list(job.results(have=["00000"])) == ["00001", "00002"]
    assert (job.folder / "steps" / "00000" / "result.json").read_bytes() == before
    wait_for(lambda: not alive(marker))
    assert job.start()["state"] == "finished"


def test_stopping_keeps_what_is_finished_and_cleans_up(tmp_path: Path) -> None:
    marker = f"sleep 96{os.getpid()}"
    job = Job(tmp_path, [step(0, ["true"]), step(1, ["sh", "-c", f"touch big; {marker}"]), step(2, ["true"])])
    job.start()
    ended = []
    for doc, send in job.follow():
        if doc["e"] == "begin" and doc["step"] == "00001":
            send("stop")
        if doc["e"] == "end":
            ended.append(doc["step"])
        if doc["e"] == "finish":
            assert doc["state"].startswith("stopped")
        last = doc
    assert ended == ["00000"]
    assert last == {"e": "over", "remaining": 2}
    wait_for(lambda: not alive(marker))
    assert not (job.folder / "scratch").exists()


def test_a_server_asked_to_stop_lets_its_client_go_first(tmp_path: Path) -> None:
    """Its client learns of the stop a moment later and would take the server's end for a broken run."""
    serving = step(0, ["sh", "-c", "sleep 1; echo served"], gate=True, serves=True)
    job = Job(tmp_path, [serving, step(1, ["true"])])
    job.start()
    ended = {}
    for doc, send in job.follow():
        if doc["e"] == "wait":
            send("go", "00000")
        if doc["e"] == "begin":
            send("stop")
        if doc["e"] == "end":
            ended[doc["step"]] = unpack(doc)
        if doc["e"] == "finish":
            assert doc["state"].startswith("stopped")
        last = doc
    assert {i: r["files"]["stdout"] for i, r in ended.items()} == {"00000": "served\n"}
    assert last == {"e": "over", "remaining": 1}


@pytest.mark.parametrize("argv", [["sleep", "6000"], []], ids=["a server", "a held host"])
def test_a_server_asked_to_stop_does_not_wait_for_ever(tmp_path: Path, argv: list[str]) -> None:
    job = Job(tmp_path, [step(0, argv, gate=True, serves=True)])
    job.start()
    for doc, send in job.follow():
        if doc["e"] == "wait":
            send("go", "00000")
        if doc["e"] == "begin":
            send("stop")
        last = doc
    assert last == {"e": "over", "remaining": 1}


def test_a_held_host_runs_nothing_until_the_lead_is_over(tmp_path: Path) -> None:
    """What the lead's launcher started here, outside our own children, goes with the step."""
    marker = f"sleep 94{os.getpid()}"
    job = Job(tmp_path, [step(0, [], gate=True, serves=True, ends=False), step(1, ["true"])])
    job.start()
    events = []
    stray = None
    for doc, send in job.follow():
        events.append((doc["e"], doc.get("step")))
        if doc["e"] == "wait":
            send("go", "00000")
        if doc["e"] == "ready":
            env = {**os.environ, "FLEETMARK_CAMPAIGN": "test"}
            stray = subprocess.Popen(marker.split(), env=env, start_new_session=True)
            send("cancel", "00000")
        if doc["e"] == "end" and doc["step"] == "00000":
            assert unpack(doc)["ended"] == "exit"
    assert events.index(("ready", "00000")) < events.index(("end", "00000")) < events.index(("begin", "00001"))
    assert stray and stray.wait(60) == -signal.SIGKILL


def test_a_lead_whose_node_was_lost_ends_as_lost_with_the_reason(tmp_path: Path) -> None:
    job = Job(tmp_path, [step(0, ["sleep", "6000"], gate=True, members=["h1", "h2"])])
    job.start()
    for doc, send in job.follow():
        if doc["e"] == "wait":
            send("go", "00000")
        if doc["e"] == "begin":
            send("cancel", "00000")
        if doc["e"] == "end":
            result = unpack(doc)
    assert (result["ended"], result["reason"]) == ("lost", "a required host was lost")


def test_an_event_while_a_follower_is_greeted_wakes_it(tmp_path: Path) -> None:
    job = Job(tmp_path, [step(0, ["true"], gate=True)])
    assert job.start()["state"] == "started"
    events = job.folder / "events.jsonl"
    wait_for(lambda: events.exists() and "wait" in events.read_text())
    os.kill(json.loads(events.read_text().splitlines()[0])["pid"], signal.SIGKILL)
    runner = job.folder / "runner.py"
    for file, line, slower in (
        (
            job.folder / "followers.py",
            "            self.tell_one(peer, self.greeting())",
            "            self.tell_one(peer, self.greeting()); time.sleep(2)",
        ),
        (runner, 'self.tell("start", pid=os.getpid())', 'time.sleep(1); self.tell("start", pid=os.getpid())'),
    ):
        text = file.read_text()
        assert text.count(line) == 1
        file.write_text(text.replace(line, slower))
    events.unlink()
    again = subprocess.Popen([sys.executable, str(runner), str(job.folder)], stdout=subprocess.PIPE, text=True)
    assert again.stdout and again.stdout.readline() == "started\n"
    heard = []
    for doc, send in job.follow():
        heard.append(doc["e"])
        if doc["e"] == "wait":
            send("go", doc["step"])
    assert heard[:2] == ["start", "wait"]
    again.wait()
    again.stdout.close()


def test_a_gated_step_waits_for_its_word(tmp_path: Path) -> None:
    job = Job(tmp_path, [step(0, ["true"], gate=True), step(1, ["true"], gate=True), step(2, ["true"])])
    job.start()
    ended = {}
    for doc, send in job.follow():
        if doc["e"] == "wait":
            time.sleep(0.2)
            send("go" if doc["step"] == "00000" else "skip", doc["step"])
        if doc["e"] == "end":
            result = unpack(doc)
            ended[doc["step"]] = (result["ended"], result.get("reason"))
    skipped = ("lost", "a required host did not join")
    assert ended == {"00000": ("exit", None), "00001": skipped, "00002": ("exit", None)}


@pytest.mark.parametrize("text", ['{"ended": "exit", "sta', "", "[]", '{"ended": "exit"}', "[" * 100_000])
def test_a_damaged_result_costs_its_own_step_while_the_runner_waits(tmp_path: Path, text: str) -> None:
    job = Job(tmp_path, [step(0, ["true"]), step(1, ["true"]), step(2, ["true"], gate=True)])
    job.start()
    for doc, _ in job.follow():
        if doc["e"] == "wait":
            break  # drop the controller's connection
    (job.folder / "steps" / "00000" / "result.json").write_text(text)
    for again in range(2):  # reconnecting again makes no difference
        assert job.start()["state"] == "running"
        heard = {}
        for doc, send in job.follow(have=["00001"]):
            if doc["e"] == "end":
                heard[doc["step"]] = Result.model_validate_json(bytes(doc["contents"]["result.json"]))
            if doc["e"] == "wait" and again:
                send("go", "00002")
            elif doc["e"] == "wait":
                break
        assert (heard["00000"].ended, heard["00000"].reason) == (
            "lost",
            "its result.json is damaged on the host, so its result is lost",
        )
    assert heard["00002"].ended == "exit"
    assert job.start()["state"] == "started"
    assert {i: r["ended"] for i, r in job.results(have=["00001", "00002"]).items()} == {"00000": "exit"}


def test_an_order_for_anything_but_a_step_of_the_job_changes_nothing(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    job = Job(tmp_path / "work", [step(0, ["true"], gate=True)])
    job.start()
    for doc, send in job.follow():
        if doc["e"] == "wait":
            for word, number in (
                ("go", str(outside)),
                ("go", "../../../../../outside"),
                ("go", "00007"),
                ("run\ngo", "00000"),
                ("rm", "00000"),
                ("go", "00000\n"),
            ):
                send(word, number)
            time.sleep(0.5)
            assert not list((job.folder / "go").iterdir())
            send("go", "00000")
        if doc["e"] == "end":
            assert unpack(doc)["ended"] == "exit"
    assert not outside.exists()


def test_only_plain_files_of_the_runs_own_folder_are_kept(tmp_path: Path) -> None:
    """A tool's links are not followed, what it leaves in place of a file does not stop the job, and all is named."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "shadow.txt").write_text("root:x")
    odd = "mkdir dir.txt; mkfifo pipe.txt; touch \"$(printf 'a\\nb.txt')\"; truncate -s 257M huge.txt; echo fine > fine.txt"
    links = f"ln -s {secret}/shadow.txt link.txt; ln -s {secret} sub"
    job = Job(
        tmp_path / "work", [step(0, ["sh", "-c", f"{odd}; {links}"], files=["*.txt", "sub/*.txt"]), step(1, ["true"])]
    )
    job.start()
    results = job.results()
    assert results["00000"]["files"] == {"fine.txt": "fine\n", "stdout": "", "stderr": ""}
    left_out = "; ".join(results["00000"]["left_out"])
    for name in ("dir.txt", "pipe.txt", "a\\nb.txt", "huge.txt has 257 MiB: at most 256 MiB", "link.txt", "shadow.txt"):
        assert name in left_out
    assert results["00001"]["ended"] == "exit"


def test_a_tool_that_prints_without_end_is_ended_and_its_output_cut(tmp_path: Path) -> None:
    job = Job(tmp_path, [step(0, ["sh", "-c", "yes | head -c 300000000"]), step(1, ["yes"])])
    job.start()
    for result in job.results().values():
        assert (result["ended"], result["reason"]) == ("flood", "printed more than 256 MiB")
        assert len(result["files"]["stdout"]) <= 256 << 20


def test_a_link_put_into_the_folder_of_results_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "shadow").write_text("root:x")
    work = tmp_path / "work"
    out = work / "jobs" / "test" / "h1" / "steps" / "00000.part"
    job = Job(work, [step(0, ["sh", "-c", f"ln -s {tmp_path}/shadow {out}/a.txt; mkdir {out}/b.txt"], files=["*.txt"])])
    job.start()
    assert set(job.results()["00000"]["files"]) == {"stdout", "stderr"}


def test_a_work_folder_that_is_removed_ends_the_job(tmp_path: Path) -> None:
    events = tmp_path / "jobs" / "test" / "h1" / "events.jsonl"
    begun = f"until grep -q '\"begin\"' {events}; do sleep 0.1; done"
    remove = ["sh", "-c", f"{begun}; sleep 1; rm -rf {tmp_path}/jobs"]
    job = Job(tmp_path, [step(0, remove, gate=True), step(1, ["true"], gate=True)])
    job.start()
    for doc, send in job.follow():
        if doc["e"] == "wait":
            send("go", doc["step"])
    assert doc == {"e": "over", "remaining": None}
    assert not (tmp_path / "jobs").exists()


@pytest.fixture(name="free_port")
def free_port_() -> int:
    return free_port()


SERVE = "import socket,sys; s=socket.create_server(('127.0.0.1',int(sys.argv[1]))); c=s.accept()[0]; c.send(b'hi')"
ASK = "import socket,sys; print(socket.create_connection(('127.0.0.1',int(sys.argv[1]))).recv(9))"


def test_a_server_beside_a_step_listens_before_it_and_is_gone_after(tmp_path: Path, free_port: int) -> None:
    serve = {"argv": [sys.executable, "-c", SERVE, str(free_port)], "port": free_port}
    job = Job(tmp_path, [step(n, [sys.executable, "-c", ASK, str(free_port)], serve=serve) for n in range(3)])
    job.start()
    for result in job.results().values():
        assert (result["rc"], result["files"]["stdout"]) == (0, "b'hi'\n")
        assert "server.stdout" in result["files"]


def test_a_port_in_use_is_refused_by_name(tmp_path: Path, free_port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port))
        taken.listen()
        job = Job(tmp_path, [step(0, ["true"], serve={"argv": ["true"], "port": free_port})])
        job.start()
        result = job.results()["00000"]
    assert result["ended"] == "error"
    assert str(free_port) in result["reason"]


def test_a_job_stops_while_a_server_does_not_listen_yet(tmp_path: Path, free_port: int) -> None:
    begun = tmp_path / "begun"
    serve = {"argv": ["sh", "-c", f"touch {begun}; exec sleep 300"], "port": free_port}
    job = Job(tmp_path, [step(0, ["true"], serve=serve)])
    job.start()
    heard = {}
    for doc, send in job.follow():
        heard[doc["e"]] = doc
        if doc["e"] == "start":
            wait_for(begun.exists)
            send("stop")
    assert heard["finish"]["state"].startswith("stopped") and "end" not in heard


def test_a_serving_step_says_when_it_listens_and_ends_when_cancelled(tmp_path: Path, free_port: int) -> None:
    listen = "import socket,sys,time; s=socket.socket(); s.bind(('127.0.0.1',int(sys.argv[1]))); s.listen(); time.sleep(6000)"
    job = Job(
        tmp_path, [step(0, [sys.executable, "-c", listen, str(free_port)], gate=True, port=free_port, serves=True)]
    )
    job.start()
    heard = []
    for doc, send in job.follow():
        heard.append(doc["e"])
        if doc["e"] == "wait":
            send("go", "00000")
        if doc["e"] == "ready":
            send("cancel", "00000")
    assert heard.index("begin") < heard.index("ready") < heard.index("end")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small disk")
def test_a_full_disk_fails_the_step_and_is_told(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", str(disk)], check=True)
    try:
        fill = "head -c 10M /dev/zero > filler; head -c 10M /dev/zero"
        job = Job(disk, [step(0, ["true"]), step(1, ["sh", "-c", fill]), step(2, ["true"], last=True)])
        job.start()
        results = job.results()
        assert results["00000"]["ended"] == "exit"
        assert "disk" in (results["00001"].get("reason") or "") or results["00001"]["rc"] != 0
        assert set(results) == {"00000", "00001", "00002"}
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_the_agent_runs_on_python_3_6(tmp_path: Path) -> None:
    for file in (PLAYBOOKS / "agent").rglob("*.py"):
        ran = subprocess.run(
            [Path(sys.executable).with_name("vermin"), "-t=3.6-", "--no-tips", file], capture_output=True, text=True
        )
        assert ran.returncode == 0, f"{file.name}: {ran.stdout}"


def test_a_mounted_device_is_refused_by_the_kernel(tmp_path: Path) -> None:
    """The schedule never names a device in use; should one be mounted since, the step does not begin."""
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a loop device")
    image = tmp_path / "disk.img"
    image.write_bytes(b"")
    os.truncate(image, 8 << 20)
    losetup = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=False)
    if losetup.returncode:
        pytest.skip(f"no loop devices here: {losetup.stderr.strip()}")
    device, mount = losetup.stdout.strip(), tmp_path / "mount"
    mount.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        subprocess.run(["mount", device, mount], check=True)
        steps = [step(0, ["true"], exclusive=[device])]
        job = Job(tmp_path / "work", steps)
        job.start()
        result = job.results()["00000"]
        assert (result["ended"], "busy" in result["reason"]) == ("error", True)
        subprocess.run(["umount", mount], check=True)
        free = Job(tmp_path / "work", steps, campaign="free")
        free.start()
        assert free.results()["00000"]["ended"] == "exit"
    finally:
        subprocess.run(["umount", mount], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["losetup", "-d", device], check=True)


def test_another_users_work_folder_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: makes a folder that belongs to another user")
    tmp_path.chmod(0o755)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    answer = Job(theirs, [step(0, ["true"])]).start()
    assert answer["state"] == "error"
    assert answer["error"] == f"{theirs}: it belongs to uid 65534; remove it, or choose another folder"
