"""Measure whether a controller's memory, open files and threads stay flat over a long campaign.

``python -m benchmarks.endurance day [--agents 1000] [--minutes 12] [--store FILE]`` runs 24 hours of a simulated clock in
that time: simulated agents behind a stand-in for SSH (tests/swarm), an hour-long command after the other. Each hour, 2% of
the agents lose their link, a tenth of those dies until the next hour, and those that did not answer before join.
``python -m benchmarks.endurance load [--minutes 60] [--store FILE]`` (root) runs a campaign of real hashes on four
namespace hosts for that long. Both resume the campaign until it is complete, and read the controller once an hour, or 24
times.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.checks import counts
from benchmarks.measuring import circumstances
from tests.fleet.command import FLEETMARK
from tests.fleet.hosts import Fleet, missing
from tests.swarm import inventory

READINGS = 24  # further ones, of a campaign that takes longer, are left out
FILES = 4096
HOSTS, SHARE, RESUMES = 4, 10, 5  # SHARE: percent of a core for each host
DAY = "description: day\nrepeats: 1\nworkloads:\n  selftest: {{set: {{commands: {}}}}}\n"
LOAD = """
description: hashes on one core of each host
repeats: {}
workloads:
  openssl_speed: {{set: {{algorithms: [sha256], processes: [1], seconds: 5}}}}
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A running controller: resident MB, open files and threads, and the steps that had ended."""

    memory_mb: float
    files: int
    threads: int
    steps: int


def read(pid: int, root: Path) -> Reading:
    """Read a process. Raise OSError if it has ended."""
    proc = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    if "VmRSS" not in status:
        raise ProcessLookupError(f"process {pid} has ended")
    files = sum(1 for _ in (proc / "fd").iterdir())
    steps = sum(sum(counts(head.parent).values()) for head in root.glob("*/campaign.json"))
    return Reading(int(status["VmRSS"].split()[0]) / 1000, files, int(status["Threads"]), steps)


def followed(words: Sequence[str], root: Path, every_s: float, env: Mapping[str, str]) -> list[Reading]:
    """Run a command and read it at regular times until it ends. Raise SystemExit if its status is not 0 or 1."""
    readings: list[Reading] = []
    with (root / "out.txt").open("w") as out:
        limited = ["sh", "-c", f'ulimit -Sn {FILES}; exec "$@"', "sh", *words]
        process = subprocess.Popen(limited, stdout=out, stderr=subprocess.STDOUT, env=env)
        while True:
            try:
                process.wait(every_s)
                break
            except subprocess.TimeoutExpired:
                readings.append(read(process.pid, root))
                print(readings[-1], flush=True)
    if process.returncode not in (0, 1):
        raise SystemExit((root / "out.txt").read_text()[-3000:])
    return readings


def outcomes(root: Path) -> Counter[str]:
    """Return the steps of the only campaign by their status, as its report counts them."""
    words = [FLEETMARK, "report", "last", "--results", str(root), "--format", "json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=True)
    return Counter(o["status"] for o in json.loads(done.stdout)["outcomes"])


def day(agents: int, minutes: float) -> dict[str, Any]:
    """Run 24 hours of simulated time in some minutes of real time."""
    speed = 24 * 60 / minutes
    with tempfile.TemporaryDirectory(prefix="day") as folder:
        root, socket = Path(folder), str(Path(folder) / "agents.sock")
        (root / "suite.yml").write_text(DAY.format(20))  # a command takes 1.2 hours on average
        python = [sys.executable, "-m", "tests.swarm"]
        trouble = [f"--absent={agents // 100}", f"--hourly={agents // 50}", f"--speed={speed}", "--seconds=3600"]
        with subprocess.Popen([*python, "serve", socket, *trouble, "--absent-s=3", "--silent-s=3"]) as simulation:
            try:
                while not Path(socket).exists():
                    time.sleep(0.05)
                run = [*python, "run", socket, "run", "--include-busy", "--results", str(root), "--patience", "5"]
                new = [*run, "-i", str(inventory(root, agents)), "--suite", str(root / "suite.yml")]
                readings = followed(new, root, 3600 / speed, os.environ)
                first = outcomes(root)
                resumes = _resumed([*run, "--resume", "last"], root, os.environ)
            finally:
                simulation.terminate()
        return _result(readings, outcomes(root), first, resumes, agents)


def load(minutes: float) -> dict[str, Any]:
    """Run real hashes on four hosts for some minutes."""
    with tempfile.TemporaryDirectory(prefix="load") as folder, Fleet(HOSTS) as fleet:
        root = Path(folder)
        for host in fleet.names:
            fleet.cpu(host, SHARE)
        env = {**os.environ, "FLEETMARK_RESULTS": str(root)}
        (root / "suite.yml").write_text(
            LOAD.format(round(minutes * 60 / 5.2))
        )  # a run takes 5 s, and a pause of at least 0.2 s follows
        run = [FLEETMARK, "run", "--include-busy", "--results", str(root)]
        new = [*run, "-i", str(fleet.inventory), "--suite", str(root / "suite.yml")]
        readings = followed(new, root, minutes * 60 / READINGS, env)
        first = outcomes(root)
        resumes = _resumed([*run, "--resume", "last"], root, env)
        return _result(readings, outcomes(root), first, resumes, HOSTS)


def _resumed(words: Sequence[str], root: Path, env: Mapping[str, str]) -> int:
    """Resume a campaign until all its steps passed. Return how often that was."""
    for number in range(RESUMES):
        if set(outcomes(root)) == {"passed"}:
            return number
        followed(words, root, 600, env)
    return RESUMES


def _result(
    readings: Sequence[Reading], ended: Counter[str], first: Counter[str], resumes: int, hosts: int
) -> dict[str, Any]:
    return {
        "hosts": hosts,
        "outcomes": dict(ended),
        "outcomes_before_resume": dict(first),
        "resumes": resumes,
        "readings": [[round(r.memory_mb, 1), r.files, r.threads, r.steps] for r in readings[:READINGS]],
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def rows(results: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return the controller's memory, files and threads after a quarter, a half and three quarters of the readings."""
    lines = []
    for name, result in results.items():
        readings = result["readings"]
        quarters = [readings[len(readings) * n // 4] for n in (1, 2, 3)]
        columns = [" / ".join(f"{reading[column]:,.0f}" for reading in quarters) for column in range(4)]
        ended = ", ".join(f"{n:,} {status}" for status, n in result["outcomes"].items())
        lines.append([name, f"{result['hosts']:,}", *columns, ended])
    return lines


def document(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the result that docs/reference/performance.md shows."""
    return {
        "section": "How reliable it is",
        "title": "A long campaign",
        "description": "The controller after a quarter, a half and three quarters of a campaign. In each simulated hour, "
        "2% of the agents lose their connection, and a tenth of these agents is down for an hour. Outcomes are counted after `--resume`.",
        "command": "python -m benchmarks.endurance day",
        **circumstances(),
        "load": ", ".join(str(result["load"]) for result in results.values()),
        "columns": ["campaign", "hosts", "memory, MB", "open files", "threads", "steps ended", "outcomes"],
        "rows": rows(results),
        "results": results,
    }


def slope(readings: Sequence[Sequence[float]], column: int) -> float:
    """Return the least-squares slope per reading, without the first quarter, in which hosts still join."""
    later = [reading[column] for reading in readings[len(readings) // 4 :]]
    return statistics.linear_regression(range(len(later)), later).slope


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["day", "load"])
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--store", type=Path, help="a JSON file; the result of the other measurement in it stays")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # take the hosts down
    if options.what == "load" and (reason := missing()):
        raise SystemExit(f"benchmarks.endurance: {reason}")
    minutes = options.minutes or {"day": 12.0, "load": 60.0}[options.what]
    began = time.monotonic()
    result = day(options.agents, minutes) if options.what == "day" else load(minutes)
    took_s = time.monotonic() - began
    print(json.dumps(result))
    for column, name in enumerate(("memory, MB", "open files", "threads")):
        print(f"{name}: {slope(result['readings'], column):+.2f} a reading")
    if options.store:
        old = json.loads(options.store.read_text())["results"] if options.store.exists() else {}
        name = "24 simulated hours" if options.what == "day" else f"{took_s / 60:.0f} minutes of hashes over SSH"
        options.store.write_text(json.dumps(document(old | {name: result}), indent=1) + "\n")
    sys.exit(0 if set(result["outcomes"]) == {"passed"} else 1)


if __name__ == "__main__":
    main()
