"""A campaign's record over real SSH: hosts that join later, damaged jobs and results, a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from itertools import permutations
from pathlib import Path

import pytest

from tests.fleet.command import FLEETMARK, LONG_S, Command

pytestmark = pytest.mark.fleet

ALONE = "  selftest: {set: {commands: 6, seconds: 0.4}}\n"
PAIRS = "  iperf3: {set: {duration: 1, omit: 0, streams: 1, udp_rate: ''}}\n  selftest: {set: {seconds: 0.1}}\n"


def suite(folder: Path, text: str) -> str:
    file = folder / "suite.yml"
    file.write_text(f"description: x\nrepeats: 1\nworkloads:\n{text}")
    return str(file)


def counted(command: Command) -> dict[str, int]:
    """Statuses as the list of campaigns has them."""
    done = subprocess.run([FLEETMARK, "campaigns", "--format", "json"], capture_output=True, text=True, env=command.env)
    (line,) = json.loads(done.stdout)
    statuses: dict[str, int] = line["statuses"]
    return statuses


def test_a_host_that_was_away_when_the_campaign_was_planned_joins(command: Command, tmp_path: Path) -> None:
    command.fleet.power_off("h3")
    try:
        done = command.run("--suite", suite(tmp_path, PAIRS), "--limit", "h1,h2,h3")
        assert done.returncode == 1
        done = command.run("--resume", "last")
        assert done.returncode == 1, "it is still away"
        assert counted(command) == {"passed": 2 * 6 + 2, "lost": 2}
    finally:
        command.fleet.power_on("h3")
    done = command.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert counted(command) == {"passed": 3 * 6 + 6}
    met = {o["subject"] for o in command.outcomes() if o["workload"] == "iperf3" and o["status"] == "passed"}
    assert met == {f"h{a}>h{b}" for a, b in permutations(range(1, 4), 2)}
    assert command.run("--resume", "last").returncode == 0


def test_jobs_and_results_that_are_damaged_are_had_again(command: Command, tmp_path: Path) -> None:
    running = command.begin("--suite", suite(tmp_path, ALONE))
    command.until(lambda: all(command.count(host=h)["passed"] >= 2 for h in command.fleet.names))
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    (command.campaign / "jobs" / "h2.json").unlink()
    (command.campaign / "jobs" / "h3.json").write_bytes(b"")
    (result, *_) = command.campaign.glob("raw/h1/*/*/*/result.json")
    result.write_bytes(b"")
    (step, *_) = command.campaign.glob("raw/h4/*/*/*/step.json")
    step.write_bytes(b"[]")
    done = command.run("--resume", "last")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 24}
    assert result.stat().st_size and step.stat().st_size > 2
    assert len(list(command.campaign.glob("superseded/*/h*/*/*/*"))) == 2


def test_a_full_results_disk_costs_nothing(command: Command, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    try:
        command.env["FLEETMARK_RESULTS"] = str(disk)
        filler = disk / "filler"
        running = command.begin("--suite", suite(tmp_path, ALONE))
        command.until(lambda: any(disk.glob("*/raw/*/*/*/*/step.json")))
        with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as out:
            while True:
                out.write(b"x" * 4096)
        assert running.wait(LONG_S) == 1, command.output()
        (campaign,) = disk.glob("*/campaign.json")
        output = command.output().replace("\n", "")
        assert "No space left on device; hosts continue and keep their results" in output
        assert f"fleetmark run --resume {campaign.parent}" in output
        assert "Traceback" not in output
        filler.unlink()
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        done = command.run("--resume", str(campaign.parent))
        assert done.returncode == 0, done.stdout + done.stderr
        assert counted(command) == {"passed": 24}
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
