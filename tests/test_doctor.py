"""Test that ``fleetmark doctor`` finds what this machine lacks, in a process whose PATH and folders really lack it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from fleetmark.verbs import doctor

FLEETMARK = Path(sys.executable).with_name("fleetmark")


def checked(tmp_path: Path, results: Path | None = None, **env: str) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the checks by name."""
    words = [FLEETMARK, "doctor", "--format", "json", "--results", results or tmp_path / "new" / "folder"]
    done = subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)}


def test_nothing_is_missing_where_the_tests_run(tmp_path: Path) -> None:
    status, checks = checked(tmp_path)
    assert status == 0 and [c for c in checks.values() if c["needed"] and not c["good"]] == []
    assert "core" in checks["ansible"]["finding"]
    assert checks["results"]["finding"] == str(tmp_path / "new" / "folder")
    assert not (tmp_path / "new").exists()


def test_a_missing_program_has_the_command_that_installs_it(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "apt-get").symlink_to("/bin/true")
    for name in ("ssh-keygen", "git", "fc-list"):
        (tools / name).symlink_to(shutil.which(name) or "/bin/true")
    status, checks = checked(tmp_path, PATH=str(tools))
    assert status == 1
    missing = {name for name, check in checks.items() if check["needed"] and not check["good"]}
    assert missing == {"ssh"}
    sudo = "" if os.geteuid() == 0 else "sudo "
    assert checks["ssh"]["command"] == f"{sudo}apt-get install -y openssh-client"
    assert checks["git"]["good"] and not checks["make"]["good"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    status, checks = checked(tmp_path, Path("/proc/none"))
    assert status == 1 and checks["results"]["finding"].startswith("/proc/none cannot be written: ")


def test_packages_are_held_against_what_is_declared() -> None:
    assert doctor._lack(Requirement("rich>=1")) == ""
    assert re.fullmatch(r"rich [\d.]+ is not >=1000", doctor._lack(Requirement("rich>=1000")))
    assert doctor._lack(Requirement("no-such-package-of-ours")) == "no-such-package-of-ours is not installed"


def test_each_check_is_one_line_to_copy_from(tmp_path: Path) -> None:
    env = {**os.environ, "COLUMNS": "80", "PATH": "/nowhere"}
    done = subprocess.run([FLEETMARK, "doctor"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "MISSING  ssh: not found; it reaches hosts" in done.stdout
    assert all(line.startswith(("  ok  ", "  MISSING  ", "  optional  ")) for line in done.stdout.splitlines()[1:])
