"""The test server in a process of its own, the client against it, and what the server's log says of the same runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetmark.base.measurement import Parsed
from fleetmark.hosts.agent import PLAYBOOKS
from fleetmark.parsers import parse

FILES = PLAYBOOKS / "roles" / "llm_serve" / "files"
SERVER = Path(__file__).parent / "server.py"
HOSTILE = Path(__file__).parent / "hostile.py"


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its URL, and its log."""

    url: str
    log: Path

    def requests(self) -> list[dict[str, Any]]:
        """What the server did, an entry a request."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def ahead() -> Iterator[None]:
    """Let what is started here run before other processes, where that is allowed: tests of times then see no neighbours."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def server(folder: Path, *options: str) -> Iterator[Served]:
    """The server until the end of the block."""
    log = folder / "server.jsonl"
    words = [sys.executable, str(SERVER), "--log", str(log), *options]
    with ahead():
        started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with started as process:
        assert process.stdout
        try:
            yield Served(f"http://127.0.0.1:{process.stdout.readline().strip()}", log)
        finally:
            process.kill()


def client(served: Served | str, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """The client by its command line, with short prompts and runs unless ``options`` say otherwise."""
    url = served if isinstance(served, str) else served.url
    short = ["--prompt=40", "--answer=16", "--seconds=1.5", "--warmup=0.3", "--patience=20", "--ready=30"]
    short += ["--late=10"]  # this machine may be busy; the tests of lateness set their own
    words = [sys.executable, str(FILES / "client.py"), f"--url={url}", *short, *options]
    with ahead():
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=200, **more)


def measured(served: Served, *options: str) -> Parsed:
    """What the parser says of the client's runs."""
    ran = client(served, *options)
    assert ran.returncode == 0, ran.stderr
    return parse("llm_serve", ran.stdout.encode())
