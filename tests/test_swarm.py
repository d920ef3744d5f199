"""Many agents behind a stand-in for SSH: launch, follow, collect, a controller that is killed, links and hosts lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.command import Command
from tests.swarm import inventory

AGENTS, STEPS = 30, 4
ABSENT, DEAD = "n0000", "n0002"  # n0001 loses its link once
SUITE = f"description: x\nrepeats: 1\nworkloads:\n  selftest: {{set: {{commands: {STEPS}}}}}\n"


class Swarmed(Command):
    """``fleetmark run`` over the agents of a socket."""

    def __init__(self, root: Path) -> None:
        self.root, self.socket = root, root / "agents.sock"
        (root / "suite.yml").write_text(SUITE)
        self.env = {**os.environ, "COLUMNS": "120", "FLEETMARK_RESULTS": str(root)}
        self.env["PYTHONPATH"] = str(Path(__file__).parents[1])
        self.hold = root / "hold"
        self.hold.touch()
        lost = ("--absent=1", "--cut=1", "--dead=1", "--seconds=0.1", "--pace=0.1", f"--hold={self.hold}")
        words = [sys.executable, "-m", "tests.swarm", "serve", str(self.socket), *lost]
        self.agents = subprocess.Popen(words, env=self.env)

    def words(self, *more: str) -> list[str]:
        words = [
            sys.executable,
            "-m",
            "tests.swarm",
            "run",
            str(self.socket),
            "run",
            "--include-busy",
            "--patience",
            "2",
        ]
        return [*words, "-i", str(inventory(self.root, AGENTS)), *more]


@pytest.fixture
def swarmed(tmp_path: Path) -> Iterator[Swarmed]:
    command = Swarmed(tmp_path)
    (tmp_path / "out.txt").touch()
    try:
        command.until(command.socket.exists)
        yield command
    finally:
        command.agents.terminate()
        command.agents.wait()


def test_many_agents_survive_their_controller_and_lost_ones_are_named(swarmed: Swarmed) -> None:
    running = swarmed.begin("--suite", str(swarmed.root / "suite.yml"))
    swarmed.until(lambda: swarmed.count()["passed"] >= AGENTS // 2)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert AGENTS // 2 <= swarmed.count()["passed"] <= (AGENTS - 2) * (STEPS - 1)  # no agent began its last one
    swarmed.hold.unlink()
    done = swarmed.run("--resume", "last")
    assert done.returncode == 1, done.stdout + done.stderr
    well = {f"n{number:04d}" for number in range(AGENTS)} - {ABSENT, DEAD}
    assert {host for host in well if swarmed.count(host=host) != {"passed": STEPS}} == set()
    assert swarmed.count(host=DEAD)["lost"] >= STEPS - 1
    (unreached,) = (o["reason"] for o in swarmed.outcomes() if o["host"] == ABSENT)
    assert unreached == "unreachable: port 22 did not answer within 10 s"
    assert f"{ABSENT}, {DEAD}: unreachable" in done.stdout
