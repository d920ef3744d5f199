"""Test how jobs are started with and without Ansible, the replies of hosts, and the inventory for Ansible."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from fleetmark.campaign.hostrun import Run
from fleetmark.campaign.launch import _hear, _untemplated
from fleetmark.campaign.options import Options
from fleetmark.campaign.run import _start_all
from fleetmark.campaign.start import start
from fleetmark.hosts.agent import PLAYBOOKS, answer_in, payload
from fleetmark.hosts.reach import LinkLost, Ran, Reach, ReachError
from tests.drives import make_drive, step


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ({"state": "started", "dir": "/x"}, {"state": "started"}),
        (
            {"state": "busy", "holder": {"campaign": "c", "owner": 7, "pid": 1}},
            {"state": "busy", "holder": {"campaign": "c"}},
        ),
        ({"state": "busy", "holder": "me"}, {"state": "busy"}),
        ({"state": "error", "error": "x" * 5000}, {"state": "error", "error": "x" * 1000}),
        ({"state": "started", "ansible_facts": {"a": 1}, "add_host": {}, "failed_workloads": []}, {"state": "started"}),
        ({"state": "nothing"}, {}),
        ({"state": ["started"]}, {}),
    ],
)
def test_only_what_is_known_by_name_and_form_reaches_ansible(reply: Any, answer: Any) -> None:
    assert answer_in(f"motd\nFLEETMARK{json.dumps(reply)}\n") == answer


@pytest.mark.parametrize(
    "text", ["", "FLEETMARK[]", "FLEETMARK{", "FLEETMARK{" + '"a":{' * 100_000 + "}", "FLEETMARK{}"]
)
def test_what_is_no_answer_is_none(text: str) -> None:
    assert answer_in(text) == {}


def test_ansible_does_not_evaluate_what_hosts_say(tmp_path: Path) -> None:
    evil = "{{ lookup('pipe', 'touch " + str(tmp_path) + "/PWNED') }}"
    hosts = {
        "h1": {"ansible_connection": "local", "fm_deploy": [{"params": {"evil": evil, "version": "3.10", "none": ""}}]}
    }
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": _untemplated(hosts)}}))
    show = "{{ fm_deploy[0].params.evil }}|{{ fm_deploy[0].params.version }}|{{ fm_deploy[0].params.none }}|"
    (tmp_path / "play.yml").write_text(
        json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": show}}]}])
    )
    ran = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", tmp_path / "hosts.yml", tmp_path / "play.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{evil}|3.10||" in ran.stdout, ran.stdout + ran.stderr
    assert not (tmp_path / "PWNED").exists()


class Answers:
    """A reach whose commands have given results: a Ran to return or an error to raise."""

    def __init__(self, *endings: Ran | ReachError) -> None:
        self.endings, self.closed = list(endings), 0
        self.ran: list[tuple[Any, ...]] = []

    def run(self, argv: Any, stdin: bytes, timeout: float, sudo: bool, again: bool) -> Ran:
        self.ran.append((argv[0], json.loads(stdin)["job"], sudo))
        ending = self.endings.pop(0)
        if isinstance(ending, ReachError):
            raise ending
        return ending

    def close(self) -> None:
        self.closed += 1


def run_over(reach: Answers) -> Run:
    return Run(
        host="h1", reach=cast(Reach, reach), python="/usr/bin/python3", sudo=True, folder="/w/jobs/c/h1", steps={}
    )


def test_a_job_is_started_over_the_open_connection() -> None:
    reach = Answers(Ran(0, b'motd\nFLEETMARK{"state": "started", "dir": "/w"}\n', b""))
    assert start(run_over(reach), {"steps": []}) == {"state": "started"}
    assert reach.ran == [("/usr/bin/python3", {"steps": []}, True)]
    assert set(json.loads(payload({}))["source"]) == {
        "files.py",
        "private.py",
        "lock.py",
        "steps.py",
        "job.py",
        "runner.py",
        "followers.py",
        "outputs.py",
        "trial.py",
        "keeper.py",
        "setting.py",
        "follow.py",
        "processes.py",
        "telemetry.py",
        "accelerators.py",
        "accelerator_sources.py",
        "disks.py",
        "groups.py",
        "network.py",
        "nic_counters.py",
        "container.py",
        "interpreter.py",
    }


def test_a_link_lost_while_a_job_starts_is_opened_once_more() -> None:
    reach = Answers(LinkLost("h1: the connection was lost"), Ran(0, b'FLEETMARK{"state": "running"}\n', b""))
    assert start(run_over(reach), {}) == {"state": "running"}
    assert reach.closed == 1
    reach = Answers(LinkLost("h1: the connection was lost"), ReachError("h1: port 22 refuses connections"))
    assert start(run_over(reach), {}) == {"state": "error", "error": "port 22 refuses connections"}


def test_a_start_without_an_answer_has_the_last_words_of_the_host() -> None:
    reach = Answers(Ran(1, b"", b"Traceback\nMemoryError\n"))
    assert start(run_over(reach), {}) == {"state": "error", "error": "MemoryError"}
    assert start(run_over(Answers(Ran(-9, b"", b""))), {})["error"] == "exit status -9"


def test_ansible_gets_only_the_hosts_that_lack_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = make_drive(tmp_path, {"h1": [step(0)], "h2": [step(0)]}, [])
    deployed: list[list[str]] = []
    monkeypatch.setattr("fleetmark.campaign.run.launch", lambda *args: deployed.append(list(args[2])))
    runs = list(drive.runs.values())
    for run in runs:
        run.phase = "launching"
    runs[0].reach = cast(Reach, Answers(Ran(0, b'FLEETMARK{"state": "busy"}\n', b"")))
    jobs: dict[str, dict[str, Any]] = {"h1": {"steps": []}, "h2": {"steps": []}}
    _start_all(drive, Options(suite="x"), {}, {"h1": {"fm_deploy": []}, "h2": {"fm_deploy": [{}]}}, jobs, {})
    drive.run()
    assert deployed == [["h2"]]
    assert runs[0].reason.startswith("busy")
    assert runs[1].reason == "its job was not started: Ansible gave no reason"


def test_a_file_that_cannot_be_copied_says_why_and_not_that_one_of_several_failed(tmp_path: Path) -> None:
    """Show the reason instead of Ansible's "One or more items failed" or "All items completed" for a loop."""
    role = tmp_path / "roles" / "broken" / "tasks"
    role.mkdir(parents=True)
    copy = {"content": "x", "dest": "/proc/version/{{ item }}"}
    (role / "deploy.yml").write_text(
        json.dumps([{"name": "Programs", "ansible.builtin.copy": copy, "loop": ["a", "b"]}])
    )
    item = {"workload": "broken", "dest": "x", "params": {}, "packages": {}}
    tasks = [
        {"ansible.builtin.include_tasks": str(PLAYBOOKS / "deploy.yml")},
        {"ansible.builtin.copy": {"content": "{{ fm_failed.broken }}", "dest": f"{tmp_path}/said"}},
    ]
    known = {"fm_work": f"{tmp_path}/work", "fm_item": item, "fm_failed": {}, "ansible_connection": "local"}
    known["ansible_python_interpreter"] = sys.executable
    play = {"hosts": "all", "gather_facts": False, "vars": known, "tasks": tasks}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    words = [Path(sys.executable).with_name("ansible-playbook"), "-i", "h1,", tmp_path / "play.yml"]
    ran = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    sentence = (tmp_path / "said").read_text() if ran.returncode == 0 else ran.stdout + ran.stderr
    assert sentence.startswith("Programs: ") and "/proc/version" in sentence and "items" not in sentence

    events: list[tuple[str, str, dict[str, Any]]] = []
    full = {"msg": "Failed to create temporary directory", "unreachable": True}
    result = {"msg": "All items completed", "results": [{"msg": "ok"}, full], "unreachable": True}
    _hear(
        {"event": "runner_on_unreachable", "event_data": {"host": "h1", "res": result}},
        lambda *event: events.append(event),
    )
    assert events == [("h1", "unreachable", {"error": "Failed to create temporary directory"})]
