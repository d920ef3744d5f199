"""Run the programs of collectives and of training by the Python with torch, as a host would."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.parsers import parse
from tests.ports import free_port
from tests.torches import PYTHON

ROLES = PLAYBOOKS / "roles"


def copied(folder: Path) -> Path:
    """Copy the programs into one folder, as they lie on a host."""
    for role in ("torch_python", "torch_collectives", "torch_train"):
        for file in (ROLES / role / "files").glob("*.py"):
            shutil.copy(file, folder)
    shutil.copy(PLAYBOOKS / "agent" / "interpreter.py", folder)
    return folder


def run(programs: Path, tool: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    interpreter = [sys.executable, str(programs / "interpreter.py"), PYTHON]
    line = [*interpreter, str(programs / f"{tool}.py"), f"--master=127.0.0.1:{free_port()}", *words]
    return subprocess.run(line, capture_output=True, timeout=300, check=False)


def figures(tool: str, done: subprocess.CompletedProcess[bytes]) -> dict[str, float]:
    assert done.returncode == 0, done.stderr
    parsed = parse(tool, done.stdout)
    assert parsed.invalid is None
    return {m.metric: m.value for m in parsed.measurements}


def complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    return done.stderr.decode().strip().splitlines()[-1]
