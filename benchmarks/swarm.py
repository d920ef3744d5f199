"""Measure one controller with hundreds and thousands of simulated agents behind a stand-in for SSH (tests/swarm).

``python -m benchmarks.swarm [--agents 1 100 1000] [--commands 6]``. Of every 100 agents one never answers, two lose
their link once and one dies for good. Each campaign runs under the shell's usual limit of 1,024 open files; for the
largest number the controller is also killed with SIGKILL in mid-run and the campaign resumed. CPU and memory are those
of the controller's process; agents are paid by another one.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.swarm import inventory

FILES = 1024
ABSENT_S = 10.0  # fleetmark's own patience with a host that does not answer
SILENT_S = 17.4  # until a controller is told that a host's power was cut: benchmarks/links


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command: seconds, CPU seconds, most resident bytes, most threads and open files."""

    wall_s: float
    cpu_s: float
    memory: int
    threads: int
    files: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, nargs="+", default=[1, 100, 300, 1000])
    parser.add_argument("--commands", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="that a command takes")
    parser.add_argument("--ways", nargs="+", choices=["run", "killed"], default=["run", "killed"])
    options = parser.parse_args()
    print(f"{'agents':>6} {'way':<8} {'wall s':>7} {'CPU s':>7} {'MB':>6} {'threads':>7} {'files':>6}  outcomes")
    for size in options.agents if "run" in options.ways else ():
        with tempfile.TemporaryDirectory(prefix="swarm") as folder:
            _campaign(Path(folder), size, options, killed=False)
    if "killed" in options.ways:
        with tempfile.TemporaryDirectory(prefix="swarm") as folder:
            _campaign(Path(folder), max(options.agents), options, killed=True)


def _campaign(root: Path, size: int, options: argparse.Namespace, *, killed: bool) -> None:
    (root / "suite.yml").write_text(
        f"description: x\nrepeats: 1\nworkloads:\n  selftest: {{set: {{commands: {options.commands}}}}}\n"
    )
    socket, python = str(root / "agents.sock"), [sys.executable, "-m", "tests.swarm"]
    fates = [f"--absent={size // 100}", f"--cut={size // 50}", f"--dead={size // 100}", f"--seconds={options.seconds}"]
    fates += [f"--absent-s={ABSENT_S}", f"--silent-s={SILENT_S}"]
    with subprocess.Popen([*python, "serve", socket, *fates]) as agents:
        try:
            while not Path(socket).exists():
                time.sleep(0.05)
            run = [*python, "run", socket, "run", "--include-busy", "--results", str(root), "--patience", "5"]
            new = [*run, "-i", str(inventory(root, size)), "--suite", str(root / "suite.yml")]
            if killed:
                half = size * options.commands // 2
                _show(root, size, "killed", _measure(new, root, until=half))
                _show(root, size, "resumed", _measure([*run, "--resume", "last"], root))
            else:
                _show(root, size, "run", _measure(new, root))
        finally:
            agents.terminate()


def _measure(words: Sequence[str], root: Path, until: int | None = None) -> Cost:
    """Return the cost of a command. ``until``: kill it after this many steps."""
    began = time.perf_counter()
    with (root / "out.txt").open("w") as out:
        limited = ["sh", "-c", f'ulimit -Sn {FILES}; exec "$@"', "sh", *words]
        process = subprocess.Popen(limited, stdout=out, stderr=subprocess.STDOUT)
    status, threads, files, proc, killed = None, 0, 0, Path(f"/proc/{process.pid}"), False
    while status is None:
        pid, code, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            status = code
            continue
        try:
            threads = max(threads, sum(1 for _ in proc.joinpath("task").iterdir()))
            files = max(files, sum(1 for _ in proc.joinpath("fd").iterdir()))
        except OSError:
            continue  # it has just ended
        if until is not None and not killed and _outcomes(root)["passed"] >= until:
            os.kill(process.pid, signal.SIGKILL)  # send_signal would take its exit status from wait4
            killed = True
        time.sleep(0.3)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1) and until is None:
        sys.exit((root / "out.txt").read_text()[-3000:])
    return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, threads, files)


def _outcomes(root: Path) -> Counter[str]:
    """Return the number of steps of the only campaign by their status."""
    last: dict[tuple[str, str], str] = {}
    for journal in root.glob("*/journal.jsonl"):
        for line in journal.read_text().splitlines():
            event = json.loads(line) if line.endswith("}") else {}
            if event.get("e") == "outcome":
                last[event["host"], event["case"]] = event["status"]
    return Counter(last.values())


def _show(root: Path, size: int, way: str, cost: Cost) -> None:
    ended = ", ".join(f"{n} {status}" for status, n in _outcomes(root).most_common())
    figures = f"{cost.wall_s:7.1f} {cost.cpu_s:7.1f} {cost.memory / 1e6:6.0f} {cost.threads:7} {cost.files:6}"
    print(f"{size:>6} {way:<8} {figures}  {ended}", flush=True)


if __name__ == "__main__":
    main()
