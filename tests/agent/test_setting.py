"""A trial's setting on this machine: old values first, set and read back, put back whatever ends the runner or the host."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleetmark.hosts.agent import PLAYBOOKS
from tests.agent.job import Job, step
from tests.agent.squatter import squatter

pytestmark = pytest.mark.job


@pytest.fixture
def setting() -> Any:
    spec = importlib.util.spec_from_file_location("setting_of_agent", PLAYBOOKS / "agent" / "setting.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def knob(tmp_path: Path) -> Path:
    path = tmp_path / "knob"
    path.write_text("old\n")
    return path


def until(condition: Callable[[], object], patience_s: float = 120.0) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"not so within {patience_s:g} s"
        time.sleep(0.01)


def trial(tmp_path: Path, knob: Path, command: str, sides: list[bool], campaign: str = "test") -> Job:
    """A job whose steps run ``command`` with the knob as $0, with and without its new value."""
    steps = [step(n, ["sh", "-c", command, str(knob)], case="c", repeat=n, timeout_s=600) for n in range(len(sides))]
    job = Job(tmp_path / "work", steps, campaign)
    job.doc["setting"] = {"items": [{"path": str(knob), "value": "new"}], "sides": sides}
    return job


# --- a setting by itself


def test_the_old_value_is_stored_before_the_new_one_is_set(setting: Any, tmp_path: Path, knob: Path) -> None:
    state = setting.begin(str(tmp_path), [{"path": str(knob), "value": "new"}])
    stored = json.loads((tmp_path / "setting.json").read_text())
    assert (stored["items"], knob.read_text().strip()) == ([{"path": str(knob), "value": "new", "old": "old"}], "old")
    for is_on, value in ((True, "new"), (True, "new"), (False, "old"), (True, "new")):
        knob_before = knob.read_text()
        setting.turn(str(tmp_path), state, is_on)
        assert setting.values(state) == [value], knob_before
    assert setting.restore(str(tmp_path)) == []
    assert setting.restore(str(tmp_path)) == []  # twice does no harm
    assert knob.read_text().startswith("old") and not (tmp_path / "setting.json").exists()


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([{"path": "{}/none*", "value": "1"}], "this host has no"),
        ([{"path": "{}/folder", "value": "1"}], "folder cannot be read"),
        ([{"path": "{}/knob", "value": "old"}], "is already old, so there is nothing to try"),
        ([{"path": "{}/empty", "value": "1"}], "does not have a single value"),
        ([{"path": "{}/lines", "value": "1"}], "does not have a single value"),
        ([{"read": ["no-such-program"], "match": "x", "write": ["true"], "value": "1"}], "cannot be started"),
        ([{"read": ["echo", "y"], "match": "(x)", "write": ["true"], "value": "1"}], "does not show the current value"),
        ([{"read": ["echo", "x"], "match": "(x)", "write": ["false"], "value": "1"}], "false: exit status 1"),
    ],
)
def test_what_cannot_be_read_or_written_changes_nothing(
    setting: Any, tmp_path: Path, knob: Path, items: list[dict[str, Any]], reason: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "lines").write_text("a\nb\n")
    for item in items:
        if "path" in item:
            item["path"] = item["path"].format(tmp_path)
    with pytest.raises(setting.CannotSet, match=reason):
        setting.begin(str(tmp_path), items)
    assert not (tmp_path / "setting.json").exists() and knob.read_text().strip() == "old"


def test_a_value_that_does_not_read_as_it_was_set_is_put_back(setting: Any, tmp_path: Path, knob: Path) -> None:
    other = tmp_path / "other"
    other.write_text("on")
    deaf = {"read": ["cat", str(other)], "match": r"(\w+)", "write": ["true", "{}"], "value": "off"}
    state = setting.begin(str(tmp_path), [{"path": str(knob), "value": "new"}, deaf])
    with pytest.raises(setting.CannotSet, match="was set to off and reads on"):
        setting.turn(str(tmp_path), state, True)
    assert knob.read_text().startswith("old")


def test_choices_lists_of_cpus_and_words(setting: Any, tmp_path: Path) -> None:
    choice, cpus, store = tmp_path / "enabled", tmp_path / "smp_affinity_list", tmp_path / "store"
    choice.write_text("always [madvise] never\n")
    cpus.write_text("0-3\n")
    assert setting.current({"path": str(choice)}) == "madvise"
    assert setting.is_equal({"path": str(cpus)}, "0-3,8", "0,1,2,3,8") and not setting.is_equal(
        {"path": "x"}, "0-1", "0,1"
    )
    store.write_text("Disabled")
    item = {
        "read": ["cat", str(store)], "match": "^(Enabled|Disabled)$", "value": "Enabled",
        "write": ["sh", "-c", f"test $0 = 1 && echo Enabled > {store} || echo Disabled > {store}", "{}"],
        "words": {"Enabled": "1", "Disabled": "0"},
    }  # fmt: skip
    setting.turn(str(tmp_path), setting.begin(str(tmp_path), [item]), True)
    assert store.read_text() == "Enabled\n"
    assert setting.restore(str(tmp_path)) == [] and store.read_text() == "Disabled\n"


def test_after_another_boot_the_old_value_is_not_forced_on_the_kernel(setting: Any, tmp_path: Path, knob: Path) -> None:
    setting.begin(str(tmp_path), [{"path": str(knob), "value": "new"}])
    stored = json.loads((tmp_path / "setting.json").read_text())
    (tmp_path / "setting.json").write_text(json.dumps({**stored, "boot": "another"}))
    knob.write_text("booted")
    done, left = setting.clear(str(tmp_path))
    assert "which a reboot of this host restored" in done and not left
    assert knob.read_text() == "booted" and not (tmp_path / "setting.json").exists()
    assert setting.clear(str(tmp_path)) == ("", "")


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"boot": "here", "items": ["x"]}', '{"boot": "here", "items": [{}]}']
)
def test_a_damaged_file_is_a_sentence_and_stays(setting: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "setting.json").write_text(text.replace("here", setting.boot()))
    (sentence,) = setting.restore(str(tmp_path))
    assert "is damaged" in sentence and setting.clear(str(tmp_path)) == ("", sentence)
    assert (tmp_path / "setting.json").exists()


@pytest.mark.parametrize("cut", [True, False])
def test_what_can_be_read_of_a_damaged_file_is_put_back(setting: Any, tmp_path: Path, knob: Path, cut: bool) -> None:
    second = tmp_path / "second"
    second.write_text("was")
    items = [{"path": str(path), "value": "new"} for path in (knob, second)]
    state = setting.begin(str(tmp_path), items)
    setting.turn(str(tmp_path), state, True)
    stored = tmp_path / "setting.json"
    text = stored.read_text()
    stored.write_text(text[: text.rindex('"old"')] if cut else text.replace('"boot"', '"root"', 1))
    done, left = setting.clear(str(tmp_path))
    assert knob.read_text().startswith("old") and second.read_text().startswith("new" if cut else "was")
    assert not done and left.startswith(f"{stored} is damaged, restored the readable part: {knob} = old")
    assert stored.exists()  # there may have been more in it


def test_a_damaged_file_of_another_boot_and_one_changed_since_set_nothing(
    setting: Any, tmp_path: Path, knob: Path
) -> None:
    state = setting.begin(str(tmp_path), [{"path": str(knob), "value": "new"}])
    stored = tmp_path / "setting.json"
    setting.turn(str(tmp_path), state, True)
    stored.write_text(json.dumps({**state, "boot": "another"})[:-1])
    assert "cannot be restored" in setting.clear(str(tmp_path))[1] and knob.read_text().startswith("new")
    knob.write_text("else")
    stored.write_text(json.dumps(state)[:-1])
    assert setting.clear(str(tmp_path))[1] == f"{stored} is damaged" and knob.read_text() == "else"


def test_what_is_in_memory_needs_no_file(setting: Any, tmp_path: Path, knob: Path) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    state = setting.begin(str(folder), [{"path": str(knob), "value": "new"}])
    setting.turn(str(folder), state, True)
    shutil.rmtree(folder)
    assert setting.restore(str(folder), state) == [] and knob.read_text().startswith("old") and not folder.exists()
    knob.rename(tmp_path / "away")
    assert "could not be restored" in setting.restore(str(folder), state)[0]
    (tmp_path / "away").rename(knob)
    knob.write_text("new")
    assert setting.clear(str(folder))[0] and knob.read_text().startswith("old")  # it was stored again


def test_the_file_of_a_later_runner_is_not_removed(setting: Any, tmp_path: Path, knob: Path) -> None:
    items = [{"path": str(knob), "value": "new"}]
    first, second = setting.begin(str(tmp_path), items), setting.begin(str(tmp_path), items)
    assert setting.restore(str(tmp_path), first) == [] and setting.load(str(tmp_path)) == second


def test_a_value_that_something_else_follows_is_not_tried(setting: Any, tmp_path: Path, knob: Path) -> None:
    (tmp_path / "upper_vlan7").touch()
    item = {"path": str(knob), "value": "new", "unless": str(tmp_path / "upper_*")}
    with pytest.raises(setting.CannotSet, match="upper_vlan7 shows that another value depends on"):
        setting.begin(str(tmp_path), [item])


def test_a_command_that_refuses_to_change_nothing_can_be_tried(setting: Any, tmp_path: Path, knob: Path) -> None:
    script = f'test $0 = "$(cat {knob})" && echo no ring parameters changed, aborting >&2 && exit 1; echo $0 > {knob}'
    item = {"read": ["cat", str(knob)], "match": r"(\w+)", "write": ["sh", "-c", script, "{}"], "value": "new"}
    setting.turn(str(tmp_path), setting.begin(str(tmp_path), [item]), True)
    assert knob.read_text() == "new\n"
    assert setting.restore(str(tmp_path)) == [] and knob.read_text() == "old\n"


# --- in a job


def test_each_run_has_its_side_and_the_end_puts_it_back(tmp_path: Path, knob: Path) -> None:
    job = trial(tmp_path, knob, 'cat "$0"', [False, True, True, False])
    assert job.start()["state"] == "started"
    results = job.results()
    read = [results[f"{n:05d}"]["files"]["stdout"].strip()[:3] for n in range(4)]
    assert read == ["old", "new", "new", "old"]
    assert [r["setting"] for r in results.values()] == [
        {"on": is_on, "values": ["new" if is_on else "old"]} for is_on in (False, True, True, False)
    ]
    until(lambda: not (job.folder / "setting.json").exists())
    assert knob.read_text().startswith("old")


def test_a_setting_that_cannot_be_tried_is_a_reason_of_every_run(tmp_path: Path, knob: Path) -> None:
    job = trial(tmp_path, tmp_path / "none", "true", [False, True])
    job.start()
    results = job.results()
    assert {r["ended"] for r in results.values()} == {"error"}
    assert all(r["reason"].startswith("nothing was changed: this host has no") for r in results.values())


def test_a_run_during_which_somebody_else_changed_it_does_not_count(tmp_path: Path, knob: Path) -> None:
    job = trial(tmp_path, knob, 'echo else > "$0"', [True, False])
    job.start()
    results = job.results()
    assert all("was changed while it ran" in r["reason"] for r in results.values())
    assert knob.read_text().startswith("old")


@pytest.fixture
def running(tmp_path: Path, knob: Path) -> Iterator[Job]:
    """A trial that is in its run with the new value, and stays there."""
    job = trial(tmp_path, knob, "sleep 600", [True, False])
    until(lambda: job.start()["state"] == "started")  # the job of another test may be just ending
    until(lambda: knob.read_text().startswith("new"))
    yield job
    kill(processes(job))


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(pid, signal.SIGKILL)


def processes(job: Job, *names: str) -> list[int]:
    """The runner and the keeper of a job, of which ``names`` are asked for."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        wanted = [str(job.folder / f"{name}.py").encode() for name in names or ("runner", "keeper")]
        if len(words) > 1 and words[0] == sys.executable.encode() and set(words[1:6]) & set(wanted):
            pids.append(int(path.parent.name))
    return pids


def process(job: Job, name: str) -> int:
    """One of both, once no child of its own, not yet another program, looks like it."""
    pids: list[int] = []

    def is_alone() -> bool:
        pids[:] = processes(job, name)
        return len(pids) == 1

    until(is_alone)
    return pids[0]


@pytest.mark.parametrize(
    ("victim", "sig"), [("runner", signal.SIGKILL), ("runner", signal.SIGTERM), ("keeper", signal.SIGTERM)]
)
def test_it_is_put_back_when_one_of_both_is_killed(running: Job, knob: Path, victim: str, sig: signal.Signals) -> None:
    os.kill(process(running, victim), sig)
    if victim == "keeper":  # the runner goes on, and puts it back itself at its end
        time.sleep(0.2)
        assert knob.read_text().startswith("new")
        os.kill(process(running, "runner"), signal.SIGTERM)
    until(lambda: not (running.folder / "setting.json").exists())
    assert knob.read_text().startswith("old")


def test_the_keeper_of_a_runner_that_was_not_needed_changes_nothing(running: Job, knob: Path) -> None:
    words = [sys.executable, str(running.folder / "keeper.py"), str(running.folder)]
    subprocess.run(words, check=True, timeout=60, stdout=subprocess.DEVNULL)
    assert knob.read_text().startswith("new") and (running.folder / "setting.json").exists()


def test_when_both_are_killed_the_next_job_puts_it_back_and_says_so(running: Job, tmp_path: Path, knob: Path) -> None:
    kill_both(running)
    assert knob.read_text().startswith("new")
    other = Job(tmp_path / "work", [step(0, ["cat", str(knob)])], "other")
    answer = other.start()
    assert answer["cleared"] == f"restored the setting of an interrupted trial: {knob} = old"
    assert other.results()["00000"]["files"]["stdout"].startswith("old")
    assert "cleared" not in Job(tmp_path / "work", [step(0, ["true"])], "third").start()


def kill_both(job: Job) -> None:
    pids = processes(job, "keeper") + processes(job, "runner")
    kill(pids)
    until(lambda: all(has_ended(pid) for pid in pids) and not processes(job))


def has_ended(pid: int) -> bool:
    """Return whether a process is gone or a zombie: it holds no lock any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("way", ["silent", "greets", "endless", "full"])
def test_it_is_put_back_while_another_user_holds_the_name_of_the_lock(
    running: Job, tmp_path: Path, knob: Path, way: str
) -> None:
    kill_both(running)
    with squatter(way, running.folder):
        follower = [doc for doc, _ in running.follow()]  # the controller reconnects
        assert follower[-1] == {"e": "over", "remaining": 2}
        assert knob.read_text().startswith("old") and not (running.folder / "setting.json").exists()
        other = Job(tmp_path / "work", [step(0, ["cat", str(knob)])], "other")
        assert other.start()["state"] == "started"
        assert other.results()["00000"]["files"]["stdout"].startswith("old")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_next_job_puts_it_back_while_another_user_holds_the_name_of_the_lock(
    running: Job, tmp_path: Path, knob: Path
) -> None:
    kill_both(running)
    with squatter("greets", running.folder):
        other = Job(tmp_path / "work", [step(0, ["cat", str(knob)])], "other")
        assert other.start()["cleared"] == f"restored the setting of an interrupted trial: {knob} = old"
        assert other.results()["00000"]["files"]["stdout"].startswith("old")


@pytest.mark.parametrize("damage", [False, True])
def test_nothing_starts_where_a_setting_is_left(running: Job, tmp_path: Path, knob: Path, damage: bool) -> None:
    kill_both(running)
    stored = running.folder / "setting.json"
    if damage:
        stored.write_text("{")
    else:
        knob.unlink()
    answer = Job(tmp_path / "work", [step(0, ["true"])], "other").start()
    assert answer["state"] == "error" and "a setting changed by a trial was not restored" in answer["error"]
    assert "cleared" not in answer and ("is damaged" if damage else "could not be restored") in answer["left"]
    assert answer["error"].endswith(f"then run on the host: rm {stored}") and stored.exists()


@pytest.mark.parametrize("victim", ["runner", ""])
def test_it_is_put_back_without_the_folder(running: Job, tmp_path: Path, knob: Path, victim: str) -> None:
    shutil.rmtree(running.folder.rename(tmp_path / "gone"))
    kill(processes(running, victim) if victim else [])
    until(lambda: not processes(running))
    until(lambda: knob.read_text().startswith("old"))  # a read may come between its emptying and its writing


def test_what_the_keeper_cannot_put_back_reaches_the_controller(running: Job, knob: Path) -> None:
    knob.unlink()
    knob.mkdir()
    os.kill(process(running, "runner"), signal.SIGKILL)
    states = [doc["state"] for doc, _ in running.follow() if doc["e"] == "finish"]
    assert states and all(state.startswith(f"left: {knob} was old and could not be restored") for state in states)


def test_a_runner_does_not_take_the_tried_value_for_the_old_one(running: Job, knob: Path) -> None:
    kill_both(running)
    stored = running.folder / "setting.json"
    before = stored.read_text()
    text = before.replace(str(knob), str(knob) + "-away")
    stored.write_text(text)  # of a part that is not there now
    os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, str(running.folder / "keeper.py"), str(running.folder)])
    until(lambda: '"finish"' in (running.folder / "events.jsonl").read_text())
    assert stored.read_text() == text and "left: " in (running.folder / "events.jsonl").read_text()
    result = json.loads((running.folder / "steps" / "00000" / "result.json").read_text())
    assert "could not be restored" in result["reason"]


SILENT = """
import os, socket, sys, time
if sys.argv[2] != "0":
    os.setuid(int(sys.argv[2]))
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[3])
while True:
    try:
        sock.send(sys.argv[1].encode())
    except OSError:
        sys.exit(0 if sys.argv[1] else 1)
    time.sleep(0.1)
"""


@pytest.mark.parametrize("user", [0, 65534])
def test_a_connection_without_the_controllers_word_keeps_no_trial(
    running: Job, tmp_path: Path, knob: Path, user: int
) -> None:
    """Connect a silent follower, as behind a broken link, or another user's process, which may not follow.

    A shorter timeout is patched into the runner's copy.
    """
    if user and os.geteuid():
        pytest.skip("only root can connect as another user")
    os.kill(process(running, "runner"), signal.SIGKILL)
    until(lambda: not (running.folder / "setting.json").exists())
    runner = running.folder / "runner.py"
    text = runner.read_text()
    assert "UNWATCHED_S = 30.0" in text
    runner.write_text(text.replace("UNWATCHED_S = 30.0", "UNWATCHED_S = 2.0"))
    (running.folder / "events.jsonl").unlink()
    os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, str(running.folder / "keeper.py"), str(running.folder)])
    until(lambda: knob.read_text().startswith("new"))
    door = str(tmp_path / "work" / "socket")
    silent_listener = subprocess.Popen([sys.executable, "-c", SILENT, "!" if user else "", str(user), door])
    try:
        if user:
            assert silent_listener.wait(60) == 1  # refused
        until(lambda: "nobody followed" in (running.folder / "events.jsonl").read_text())
        until(lambda: not (running.folder / "setting.json").exists())
        assert knob.read_text().startswith("old")
    finally:
        silent_listener.kill()
        silent_listener.wait()


def test_a_trial_goes_on_while_its_controller_says_that_it_is_there(running: Job, knob: Path) -> None:
    os.kill(process(running, "runner"), signal.SIGKILL)
    until(lambda: not (running.folder / "setting.json").exists())
    runner = running.folder / "runner.py"
    runner.write_text(runner.read_text().replace("UNWATCHED_S = 30.0", "UNWATCHED_S = 10.0"))
    job = json.loads((running.folder / "job.json").read_text())
    for each in job["steps"]:  # two, so longer together than it waits unwatched
        each["argv"] = ["sleep", "6"]
    (running.folder / "job.json").write_text(json.dumps(job))
    os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, str(running.folder / "keeper.py"), str(running.folder)])
    until(lambda: knob.read_text().startswith("new"))
    ended = threading.Event()
    states = []
    for doc, send in running.follow():
        if doc["e"] == "start":
            threading.Thread(target=remind, args=(send, ended), daemon=True).start()
        states += [doc["state"]] if doc["e"] == "finish" else []
    ended.set()
    assert states[-1] == "finished"


def remind(send: Callable[[str], None], ended: threading.Event) -> None:
    while not ended.wait(0.3):
        with contextlib.suppress(OSError, ValueError):  # its follower has ended
            send("here")
