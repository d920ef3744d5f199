"""The answer of a host to the start of its job, before Ansible uses it; and what Ansible learns of hosts."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark.campaign.launch import _untemplated
from fleetmark.hosts.agent import PLAYBOOKS

spec = importlib.util.spec_from_file_location("fleetmark_job", PLAYBOOKS / "action_plugins" / "fleetmark_job.py")
assert spec and spec.loader
plugin: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)


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
    assert plugin.answer_in(f"motd\nFLEETMARK{json.dumps(reply)}\n") == answer


@pytest.mark.parametrize(
    "text", ["", "FLEETMARK[]", "FLEETMARK{", "FLEETMARK{" + '"a":{' * 100_000 + "}", "FLEETMARK{}"]
)
def test_what_is_no_answer_is_none(text: str) -> None:
    assert plugin.answer_in(text) == {}


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
