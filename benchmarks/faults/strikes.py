"""Faults that strike a running campaign: commands, hosts, networks, disks, clocks and archives.

Used by ``benchmarks.faults``.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.faults.clocks import CLOCK, STEPS
from benchmarks.faults.places import OVER, Place
from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet

PATIENCE_S = 20.0  # of the controller with a silent host
WORK, SMALL = "/srv/work", "/srv/small"  # folders on hosts in which jobs work: a disk, and one that can be filled
TABLE = "host,benchmark,value,unit,better\na,app/score,12.5,1/s,higher\n"
DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "emptied": lambda content, rng: b"",
    "cut": lambda content, rng: content[: rng.randrange(len(content) or 1)],
    "replaced": lambda content, rng: rng.randbytes(len(content)),
}


@dataclass(slots=True, kw_only=True)
class Scene:
    """A campaign under fault. ``damaged``: the folders of steps whose files a fault changed. ``ended``: exit status and
    output of the commands beside it.
    """

    place: Place
    command: Command
    work: str
    clock: Path
    controller: subprocess.Popen[str]
    rng: random.Random
    damaged: set[Path] = field(default_factory=set)
    ended: list[tuple[int, str]] = field(default_factory=list)

    @property
    def fleet(self) -> Fleet:
        return self.place.fleet

    def host(self) -> str:
        return self.rng.choice(self.fleet.names)

    def end_controller(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the controller and its children, and wait until it ends."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.controller.pid, number)
        self.controller.wait(600)

    def start_beside(self, words: Sequence[str], within_s: float | None = None, number: int = signal.SIGKILL) -> None:
        """Run another command of the same user. Send it a signal after a random time of at most ``within_s`` seconds."""
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.command.env,
            cwd=self.command.root,
            start_new_session=True,
        )
        if within_s is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.rng.uniform(0.1, within_s))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        output = process.communicate(timeout=600)[0]
        self.ended.append((process.returncode, output))


@contextlib.contextmanager
def _for_a_while(scene: Scene, most_s: float, least_s: float = 0.5) -> Iterator[None]:
    """Wait for a random time after the body."""
    yield
    time.sleep(scene.rng.uniform(least_s, most_s))


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
    scene.place.join(host)


def _freeze_host(scene: Scene) -> None:
    """Stop every process of a host, as a hypervisor that pauses it does."""
    host = scene.host()
    with _for_a_while(scene, 6):
        scene.fleet.exec(host, ["sh", "-c", "kill -STOP -1"], check=False)
    scene.fleet.exec(host, ["sh", "-c", "kill -CONT -1"], check=False)


def _kill_session(scene: Scene) -> None:
    scene.fleet.exec(scene.host(), ["pkill", "-KILL", "-f", "^sshd.*: root"], check=False)


def _cut_long(scene: Scene) -> None:
    """Pull a cable for longer than the controller waits for a host."""
    host = scene.host()
    scene.fleet.cut(host)
    time.sleep(PATIENCE_S + scene.rng.uniform(1, 6))
    scene.fleet.heal(host)


def _cut_cable(scene: Scene) -> None:
    host = scene.host()
    scene.fleet.cut(host)
    time.sleep(scene.rng.uniform(0.5, 6))
    scene.fleet.heal(host)


def _lose_packets(percent: int, hook: str = "input") -> Callable[[Scene], None]:
    def strike(scene: Scene) -> None:
        host = scene.host()
        scene.fleet.loss(host, percent, hook)
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
    file.write_bytes(DAMAGES[scene.rng.choice(sorted(DAMAGES))](file.read_bytes(), scene.rng))
    scene.damaged.add(file.parent)


def _second_controller(scene: Scene) -> None:
    """Resume the campaign while its controller runs: this has to be refused."""
    scene.start_beside(scene.command.words("--resume", scene.command.campaign.name))


def _second_campaign(scene: Scene) -> None:
    """Start another campaign on the same hosts into another folder, and interrupt it a little later."""
    words = ["--suite", "selftest", *scene.place.words(scene.work), "--results", str(scene.command.root / "other")]
    scene.start_beside(scene.command.words(*words), 6, signal.SIGINT)


def _kill_report(scene: Scene) -> None:
    """Report the campaign while it runs, and kill the report."""
    page = str(scene.command.root / "page.html")
    scene.start_beside([FLEETMARK, "report", scene.command.campaign.name, "--html", page], 2)


def _kill_reference(scene: Scene) -> None:
    """Save a reference from the campaign while it runs, and kill that; what was saved is still listed."""
    scene.beside([FLEETMARK, "reference", "save", "golden", "--from", scene.command.campaign.name], 2)
    scene.beside([FLEETMARK, "reference", "list"])


def _kill_import(scene: Scene) -> None:
    """Import a table beside the campaign, and kill that; a second import then completes."""
    table = scene.command.root / "table.csv"
    table.write_text(TABLE)
    for within_s in (2, None):
        scene.beside([FLEETMARK, "import", "table", str(table)], within_s)


def _kill_after(*words: str, within_s: float) -> Callable[[Scene], None]:
    """Return a strike that kills the controller, and then a second command on its campaign."""

    def strike(scene: Scene) -> None:
        scene.end_controller()
        scene.start_beside([FLEETMARK, *words, scene.command.campaign.name], within_s)

    return strike


def _kill_resume(scene: Scene) -> None:
    """Kill the controller, and then two controllers that resume its campaign."""
    scene.end_controller()
    for _ in range(2):
        scene.start_beside(scene.command.words("--resume", scene.command.campaign.name), 5)


def _lose_store(scene: Scene) -> None:
    """Refuse every request to the object store for a while."""
    with scene.place.store_away():
        time.sleep(scene.rng.uniform(0.5, 5))


def _step_host_clock(scene: Scene) -> None:
    host = scene.host()
    scene.fleet.exec(host, ["sh", "-c", f"echo {scene.rng.choice(STEPS)} >{CLOCK}"])


def _step_controller_clock(scene: Scene) -> None:
    scene.clock.write_text(str(scene.rng.choice(STEPS)))


def _cancel_job(scene: Scene) -> None:
    if job := _job(scene):
        scene.place.ask("scancel", job)


def _requeue_job(scene: Scene) -> None:
    """Let Slurm begin the job anew, unless it has just ended."""
    if job := _job(scene):
        scene.place.ask("scontrol", "requeue", job)
        scene.place.ask("scontrol", "update", f"job={job}", "StartTime=now")


def _job(scene: Scene) -> str | None:
    """Return the campaign's Slurm job, once it has one. None: the controller ended before."""
    job: list[str | None] = [None]

    def is_there() -> bool:
        job[0] = scene.place.job(scene.command.campaign)
        return bool(job[0]) or scene.controller.poll() is not None

    scene.command.until(is_there)
    return job[0]


def _kill_daemon(name: str, start: Callable[[str], Sequence[str]]) -> Callable[[Scene], None]:
    """Return a strike that kills a daemon of Slurm and starts it again."""

    def strike(scene: Scene) -> None:
        host = "h1" if name == "slurmctld" else scene.host()
        with _for_a_while(scene, 4):
            scene.fleet.exec(host, ["pkill", "-KILL", "-x", name], check=False)
        scene.fleet.exec(host, start(host))

    return strike


@dataclass(frozen=True, slots=True)
class Strike:
    """``ends``: it ends the controller, so it comes last. ``over``: the places of ``benchmarks.faults.places`` that have
    what it strikes.
    """

    act: Callable[[Scene], None]
    ends: bool = False
    over: Collection[str] = OVER


SSH = ("ssh", "store")
FULL_HOST, CLOCKS = "host's disk full", ("controller's clock stepped", "host's clock stepped")
STRIKES: dict[str, Strike] = {
    "controller killed": Strike(_kill_controller, ends=True),
    "controller interrupted": Strike(_interrupt_controller, ends=True),
    "controller paused": Strike(_pause_controller),
    "resume killed": Strike(_kill_resume, ends=True),
    "report killed": Strike(_kill_report),
    "rebuild killed": Strike(_kill_after("rebuild", within_s=2), ends=True),
    "reference killed": Strike(_kill_reference),
    "import killed": Strike(_kill_import),
    "verify killed": Strike(_kill_after("verify", within_s=2), ends=True),
    "job killed": Strike(_kill_job),
    "job paused": Strike(_pause_job),
    "tool killed": Strike(_kill_tool),
    "host off and on": Strike(_power_cycle),
    "host frozen": Strike(_freeze_host, over=SSH),
    "SSH session killed": Strike(_kill_session, over=SSH),
    "cable cut and healed": Strike(_cut_cable),
    "cable cut beyond the patience": Strike(_cut_long, over=SSH),
    "5% packet loss": Strike(_lose_packets(5)),
    "20% packet loss": Strike(_lose_packets(20)),
    "all packets to the host lost": Strike(_lose_packets(100)),
    "all packets from the host lost": Strike(_lose_packets(100, "output")),
    FULL_HOST: Strike(_fill_host),
    "controller's disk full": Strike(_fill_controller, over=("ssh", "slurm")),
    CLOCKS[0]: Strike(_step_controller_clock, over=SSH),
    CLOCKS[1]: Strike(_step_host_clock, over=SSH),
    "journal cut": Strike(_cut_journal, ends=True),
    "file of a step damaged": Strike(_damage_step, ends=True),
    "second controller": Strike(_second_controller),
    "second campaign": Strike(_second_campaign, over=SSH),
    "object store away": Strike(_lose_store, over=("store",)),
    "Slurm job cancelled": Strike(_cancel_job, over=("slurm",)),
    "Slurm job requeued": Strike(_requeue_job, over=("slurm",)),
    "slurmctld killed": Strike(_kill_daemon("slurmctld", lambda host: ["/usr/sbin/slurmctld"]), over=("slurm",)),
    "slurmd killed": Strike(_kill_daemon("slurmd", lambda host: ["/usr/sbin/slurmd", "-N", host]), over=("slurm",)),
}


def prepare(fleet: Fleet, host: str) -> None:
    """Mount the disk that can be filled on a host."""
    fleet.exec(
        host, ["sh", "-c", f"mkdir -p {SMALL}; mountpoint -q {SMALL} || mount -t tmpfs -o size=16m tmpfs {SMALL}"]
    )
