"""``fleetmark run`` as users type it, against the tests' fleet, and its record afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fleet.hosts import Fleet

FLEETMARK = str(Path(sys.executable).parent / "fleetmark")
LONG_S = 600.0  # patience with what must come: it is never reached but by a fault, however busy the machine is


class Command:
    """``fleetmark`` as a user types it, its results under ``root``."""

    def __init__(self, fleet: Fleet, root: Path) -> None:
        self.fleet, self.root = fleet, root
        self.env = {**os.environ, "COLUMNS": "120", "FLEETMARK_RESULTS": str(root)}

    def words(self, *more: str) -> list[str]:
        return [FLEETMARK, "run", "-i", str(self.fleet.inventory), *more]

    def run(self, *more: str, timeout: float = LONG_S) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                self.words(*more), capture_output=True, text=True, timeout=timeout, env=self.env, cwd=self.root
            )
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}\n{late.stdout!r}\n{late.stderr!r}\n{self._processes()}") from late
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done

    def passes(self, *more: str, timeout: float = LONG_S) -> subprocess.CompletedProcess[str]:
        """A run of which every case passes; where one does not, the test fails with what the command said of it."""
        done = self.run(*more, timeout=timeout)
        short = [o for o in self.outcomes() if o["status"] != "passed"]
        assert done.returncode == 0 and not short, "\n".join([done.stdout, done.stderr, *map(str, short)])
        return done

    def _processes(self) -> str:
        """The processes of each host, and where in the kernel each waits."""
        ps = ["ps", "-eLo", "pid,ppid,etimes,stat,wchan:24,args"]
        return "\n".join(f"{name}:\n{self.fleet.exec(name, ps, check=False).stdout}" for name in self.fleet.names)

    def begin(self, *more: str) -> subprocess.Popen[str]:
        out = (self.root / "out.txt").open("w")
        return subprocess.Popen(
            self.words(*more),
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.env,
            cwd=self.root,
            start_new_session=True,
        )

    def output(self) -> str:
        return (self.root / "out.txt").read_text()

    @property
    def campaign(self) -> Path:
        return max((p.parent for p in self.root.glob("*/campaign.json")), default=self.root / "none yet")

    def events(self) -> list[dict[str, Any]]:
        """The journal's events, without one that is just being written."""
        journal = self.campaign / "journal.jsonl"
        text = journal.read_text() if journal.exists() else ""
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def outcomes(self) -> list[dict[str, Any]]:
        outcomes = [e for e in self.events() if e["e"] == "outcome"]
        last = {(e["host"], e["workload"], e["case"], e["repeat"], e["subject"]): e for e in outcomes}
        return list(last.values())

    def count(self, **fields: Any) -> Counter[str]:
        return Counter(o["status"] for o in self.outcomes() if all(o[k] == v for k, v in fields.items()))

    def until(self, condition: Callable[[], bool], patience: float = LONG_S) -> None:
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, f"not within {patience} s; the command said:\n{self.output()}"
            time.sleep(0.1)


def as_ops(inventory: Path, command: Command, *more: str) -> subprocess.CompletedProcess[str]:
    words = [FLEETMARK, "run", "-i", str(inventory), *more]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LONG_S, env=command.env, cwd=command.root)
    assert "Traceback" not in done.stdout + done.stderr
    return done
