"""Run torch_ops in the Python with torch, with shapes of the test."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path
from typing import Any

from fleetmark.hosts.agent import PLAYBOOKS
from tests.torches import PYTHON

FILES = PLAYBOOKS / "roles" / "torch_ops" / "files"


def torch_python() -> str:
    return PYTHON if Path(PYTHON).is_file() else str(Path(PYTHON) / "bin" / "python3")


def bench(tmp_path: Path, shapes: Any, *words: str, program: tuple[str, ...] = (), limit: int = 0) -> str:
    """The output of torch_ops with these shapes; ``limit``: bytes of address space."""
    file = tmp_path / "shapes.json"
    file.write_text(json.dumps(shapes))
    run = program or (str(FILES / "torch_ops.py"),)
    usual = ["--shapes", str(file), "--budget", "0.001", "--memory-buffer", str(1 << 22), "--threads", "1"]
    bound = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
    ran = subprocess.run(
        [torch_python(), *run, *usual, *words], capture_output=True, text=True, cwd=tmp_path, preexec_fn=bound
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
