"""A Python with torch: the one that a user names is looked for on the host, asked, and else the host is skipped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fleetmark.base.facts import Torch
from fleetmark.hosts.agent import PLAYBOOKS, agent_source
from fleetmark.hosts.inventory import this_machine
from fleetmark.hosts.preflight import check_hosts
from fleetmark.parsers.facts._raw import Raw
from fleetmark.parsers.facts._torch import torch
from tests.torches import PYTHON, needs_torch

PROGRAM = PLAYBOOKS / "agent" / "interpreter.py"
ENGINE = """#!/bin/sh
# Stands in for a container engine: says how it was called, and runs the command of the "image" here.
printf '%s\\n' "$@" >"$(dirname "$0")/called"
case "$*" in *absent*) echo "Error: absent: image not known" >&2; exit 125;; esac
while [ "$1" != --entrypoint ]; do shift; done
program=$2; shift 3
exec "$program" "$@"
"""


def check(python: str, **environment: str) -> dict[str, Any]:
    words = [sys.executable, "-c", agent_source("interpreter.py").decode(), "--check", python]
    ran = subprocess.run(words, capture_output=True, text=True, env=environment or None, check=True)
    return dict(json.loads(ran.stdout))


def engine(folder: Path, name: str, text: str = ENGINE) -> dict[str, str]:
    """The environment in which ``name`` stands in for a container engine."""
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("python", "error"),
    [
        ("/usr/bin/nothing-here", "is not a program on this host"),
        ("/tmp", "is a folder without bin/python3"),
        ("docker:--privileged", "names no image"),
        ("true", "does not start (exit status 0: it printed nothing)"),
    ],
)
def test_what_cannot_be_run_says_why(python: str, error: str) -> None:
    assert check(python) == {"error": error}


def test_an_engine_that_is_not_there_is_named() -> None:
    assert check("podman:x", PATH="/nowhere") == {"error": "needs podman, which is not on this host"}


def test_a_python_without_torch_says_so() -> None:
    assert check(sys.executable)["error"] == "has no torch"


def test_a_torch_that_cannot_be_imported_says_why(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import libcudnn_of_nowhere")
    error = check(sys.executable, PYTHONPATH=str(tmp_path))["error"]
    assert error == "cannot import torch (No module named 'libcudnn_of_nowhere')"


def test_an_image_that_is_not_on_the_host_is_not_fetched(tmp_path: Path) -> None:
    assert check("podman:absent:1", **engine(tmp_path, "podman")) == {
        "error": "does not start (exit status 125: Error: absent: image not known)"
    }
    assert "--pull=never" in (tmp_path / "called").read_text().split()


def test_a_container_sees_its_folders_and_the_settings_of_libraries(tmp_path: Path) -> None:
    environment = engine(tmp_path, "podman") | {"OMP_NUM_THREADS": "2", "SECRET": "x", "FLEETMARK_CAMPAIGN": "c"}
    script = tmp_path / "say.py"
    script.write_text("import os, sys; print(os.getcwd(), sys.argv[1:])")
    words = [sys.executable, str(PROGRAM), f"podman:image:2 {sys.executable}", str(script), "a b"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=scratch, check=True)
    assert ran.stdout == f"{scratch} ['a b']\n"
    called = (tmp_path / "called").read_text().splitlines()
    assert f"{scratch}:{scratch}" in called and "OMP_NUM_THREADS" in called and "FLEETMARK_CAMPAIGN" in called
    assert "SECRET" not in called
    assert called[-4:] == [sys.executable, "image:2", str(script), "a b"]


@needs_torch
def test_a_python_with_torch_says_what_it_has() -> None:
    answer = check(PYTHON)
    assert "error" not in answer
    read = torch(Raw({"torch": {"p": {"rc": 0, "out": json.dumps(answer), "err": ""}}}))["p"]
    assert read.version and read.python_version and read.threads and read.isa and "gloo" in read.backends


@needs_torch
def test_the_preflight_asks_the_pythons_that_are_named() -> None:
    (checked,) = check_hosts([this_machine()], [], pythons=[PYTHON, sys.executable])
    assert checked.facts
    assert checked.facts.torch[PYTHON].version
    assert checked.facts.torch[sys.executable].error == "has no torch"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"rc": None, "out": "", "err": "no answer in time"}, "did not answer (no answer in time)"),
        ({"rc": 0, "out": "[]", "err": ""}, "gave an unreadable answer"),
        ({"rc": 0, "out": "{}", "err": ""}, "does not report the version of its torch"),
        ({"rc": 0, "out": '{"error": "has no torch"}', "err": ""}, "has no torch"),
    ],
)
def test_an_answer_that_is_none_is_an_error(answer: dict[str, Any], error: str) -> None:
    assert torch(Raw({"torch": {"p": answer}})) == {"p": Torch(error=error)}


def test_what_cannot_be_is_left_out() -> None:
    out = json.dumps({"version": "2.13.0", "devices": 10**9, "device": "cuda", "names": ["a\u001b[31m"]})
    raw = Raw({"torch": {"p": {"rc": 0, "out": out, "err": ""}}})
    assert torch(raw)["p"] == Torch(version="2.13.0", device="cuda", names=("a[31m",))
    assert raw.notes == ["torch of p: the host's values of devices are impossible and left out."]


def test_it_runs_on_old_pythons() -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips", str(PROGRAM)]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
