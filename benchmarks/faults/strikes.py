"""Faults that strike a running campaign: its controller, hosts, network, disks and archive. Used by ``benchmarks.faults``."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.fleet.command import Command
from tests.fleet.hosts import Fleet

WORK, SMALL = "/srv/work", "/srv/small"  # folders on hosts in which jobs work: a disk, and one that can be filled
DAMAGES = ("emptied", "cut", "replaced")


@dataclass(slots=True, kw_only=True)
class Scene:
    """A campaign under fault. ``damaged``: the folders of steps whose files a fault changed. ``outputs``: of commands."""

    fleet: Fleet
    command: Command
    work: str
    controller: subprocess.Popen[str]
    rng: random.Random
    damaged: set[Path] = field(default_factory=set)
    outputs: list[str] = field(default_factory=list)

    def host(self) -> str:
        return self.rng.choice(self.fleet.names)

    def end_controller(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the controller and its children, and wait until it ends."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.controller.pid, number)
        self.controller.wait(600)

    def beside(self, *words: str) -> subprocess.Popen[str]:
        """Start another command of the same user beside the campaign."""
        return subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.command.env,
            start_new_session=True,
        )


def _kill_controller(scene: Scene) -> None:
    scene.end_controller()


def _interrupt_controller(scene: Scene) -> None:
    scene.end_controller(signal.SIGINT)


def _pause_controller(scene: Scene) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(scene.controller.pid, signal.SIGSTOP)
        time.sleep(scene.rng.uniform(0.5, 4))
        os.killpg(scene.controller.pid, signal.SIGCONT)


def _kill_job(scene: Scene) -> None:
    scene.fleet.exec(scene.host(), ["pkill", "-KILL", "-x", "fleetmark-job"], check=False)


def _kill_tool(scene: Scene) -> None:
    scene.fleet.exec(scene.host(), ["pkill", "-KILL", "-f", "^sleep 0"], check=False)


def _pause_job(scene: Scene) -> None:
    host = scene.host()
    scene.fleet.exec(host, ["pkill", "-STOP", "-x", "fleetmark-job"], check=False)
    time.sleep(scene.rng.uniform(0.5, 4))
    scene.fleet.exec(host, ["pkill", "-CONT", "-x", "fleetmark-job"], check=False)


def _power_cycle(scene: Scene) -> None:
    host = scene.host()
    scene.fleet.power_off(host)
    time.sleep(scene.rng.uniform(0, 3))
    scene.fleet.power_on(host)
    prepare(scene.fleet, host)


def _cut_cable(scene: Scene) -> None:
    host = scene.host()
    scene.fleet.cut(host)
    time.sleep(scene.rng.uniform(0.5, 6))
    scene.fleet.heal(host)


def _lose_packets(percent: int) -> Callable[[Scene], None]:
    def strike(scene: Scene) -> None:
        host = scene.host()
        scene.fleet.loss(host, percent)
        time.sleep(scene.rng.uniform(1, 6))
        scene.fleet.loss(host, 0)

    return strike


def _fill_host(scene: Scene) -> None:
    host = scene.host()
    scene.fleet.exec(host, ["sh", "-c", f"cat /dev/zero >{SMALL}/full"], check=False)
    time.sleep(scene.rng.uniform(0.5, 3))
    scene.fleet.exec(host, ["rm", "-f", f"{SMALL}/full"])


def _fill_controller(scene: Scene) -> None:
    full = scene.command.root / "full"
    with contextlib.suppress(OSError), full.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass
    time.sleep(scene.rng.uniform(0.5, 3))
    full.unlink()


def _cut_journal(scene: Scene) -> None:
    """Kill the controller, and cut its journal within the last record, as a crash of the machine would."""
    scene.end_controller()
    journal = scene.command.campaign / "journal.jsonl"
    if not journal.exists() or not (content := journal.read_bytes()):
        return
    begin = content.rstrip(b"\n").rfind(b"\n") + 1
    os.truncate(journal, scene.rng.randrange(begin, len(content)))
    record = json.loads(content[begin:]) if content.endswith(b"\n") else {}
    if record.get("e") == "outcome":
        name = f"{record['repeat']}" if record["subject"] == "host" else f"{record['repeat']} {record['subject']}"
        folder = scene.command.campaign / "raw" / record["host"] / record["workload"] / record["case"] / name
        scene.damaged.add(folder)


def _damage_step(scene: Scene) -> None:
    """Kill the controller, and empty, cut or replace a file of a finished step."""
    scene.end_controller()
    files = sorted(f for f in (scene.command.campaign / "raw").rglob("*") if f.is_file())
    if not files:
        return
    file = scene.rng.choice(files)
    content = file.read_bytes()
    match scene.rng.choice(DAMAGES):
        case "emptied":
            file.write_bytes(b"")
        case "cut":
            file.write_bytes(content[: scene.rng.randrange(len(content) or 1)])
        case _:
            file.write_bytes(scene.rng.randbytes(len(content)))
    scene.damaged.add(file.parent)


def _second_controller(scene: Scene) -> None:
    """Resume the campaign while its controller runs: this has to be refused."""
    words = scene.command.words("--resume", scene.command.campaign.name)
    second = scene.beside(*words)
    scene.outputs.append(second.communicate(timeout=600)[0])


def _second_campaign(scene: Scene) -> None:
    """Start another campaign on the same hosts into another folder, and kill it a little later."""
    words = scene.command.words(
        "--suite", "selftest", "--work-dir", scene.work, "--results", str(scene.command.root / "other")
    )
    second = scene.beside(*words)
    with contextlib.suppress(subprocess.TimeoutExpired):
        second.wait(scene.rng.uniform(1, 6))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(second.pid, signal.SIGINT)
    scene.outputs.append(second.communicate(timeout=600)[0])


def _kill_reader(scene: Scene) -> None:
    """Report the campaign while it runs, and kill the report."""
    if not (scene.command.campaign / "campaign.json").exists():
        return
    fleetmark = scene.command.words()[0]
    reader = scene.beside(
        fleetmark, "report", str(scene.command.campaign), "--html", str(scene.command.root / "page.html")
    )
    time.sleep(scene.rng.uniform(0.1, 2))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(reader.pid, signal.SIGKILL)
    scene.outputs.append(reader.communicate(timeout=600)[0])


FULL_HOST = "host's disk full"
STRIKES: dict[str, Callable[[Scene], None]] = {
    "controller killed": _kill_controller,
    "controller interrupted": _interrupt_controller,
    "controller paused": _pause_controller,
    "job killed": _kill_job,
    "job paused": _pause_job,
    "tool killed": _kill_tool,
    "host off and on": _power_cycle,
    "cable cut and healed": _cut_cable,
    "5% packet loss": _lose_packets(5),
    "20% packet loss": _lose_packets(20),
    "all packets to the host lost": _lose_packets(100),
    FULL_HOST: _fill_host,
    "controller's disk full": _fill_controller,
    "journal cut": _cut_journal,
    "file of a step damaged": _damage_step,
    "second controller": _second_controller,
    "second campaign": _second_campaign,
    "report killed": _kill_reader,
}
ENDING = {"controller killed", "controller interrupted", "journal cut", "file of a step damaged"}


def prepare(fleet: Fleet, host: str) -> None:
    """Mount the disk that can be filled on a host."""
    fleet.exec(
        host, ["sh", "-c", f"mkdir -p {SMALL}; mountpoint -q {SMALL} || mount -t tmpfs -o size=16m tmpfs {SMALL}"]
    )
