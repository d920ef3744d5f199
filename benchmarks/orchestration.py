"""Measure the cost of orchestration: instant commands on 1, 4 and 16 SSH hosts, beside raw SSH and a naive playbook.

Run as root: ``python -m benchmarks.orchestration [--runs 3] [--hosts 1 4 16] [--before FOLDER] [--output FILE]``. The hosts are network namespaces of this machine
(tests/fleet), so the work they do is paid here too. Every figure is the median wall time of the whole command, start to exit,
beside it the CPU seconds that the controller's own processes took, and the median of its ratios to raw in each round.

raw        one ssh process a host, all at once, the six commands in one trip
raw-trips  one ssh process a host and command, all hosts at once, over one multiplexed connection each
fleetmark  fleetmark run --suite selftest: facts, schedule, six steps detached with telemetry, archive, parse, table, page
before     the same by the code of another checkout, FOLDER
naive      ansible-playbook with one task per command, facts gathered, forks at the number of hosts
naive-5    the same with nothing configured (5 forks)
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import RESULTS, circumstances
from tests.fleet.hosts import Fleet

COMMANDS = ["cat /proc/uptime"] * 6
BIN = Path(sys.executable).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--only", nargs="+", default=["raw", "raw-trips", "fleetmark", "naive", "naive-5"])
    parser.add_argument("--before", type=Path, help="another checkout to measure in turns with this one")
    parser.add_argument("--output", type=Path, default=RESULTS / "orchestration.json")
    options = parser.parse_args()
    names = [*options.only, *(["before"] if options.before else [])]
    rows = []
    print(f"{'hosts':>5} {'way':<10} {'wall s':>8} {'CPU s':>8} {'x raw':>7}   ({options.runs} runs, medians)")
    for count in options.hosts:
        # Use one folder for all rounds: a file system is slow for half a minute after thousands of files were removed.
        with Fleet(count) as fleet, tempfile.TemporaryDirectory() as results:
            methods = _methods(fleet, results, options.before)
            # Alternate between methods, so that other load on the machine affects all of them alike.
            rounds = [{name: _measure(methods[name]) for name in names} for _ in range(options.runs)]
            for name in names:
                wall, cpu = (statistics.median(times_by_way[name][i] for times_by_way in rounds) for i in (0, 1))
                times = (
                    statistics.median(times_by_way[name][0] / times_by_way["raw"][0] for times_by_way in rounds)
                    if "raw" in rounds[0]
                    else None
                )
                row = {"hosts": count, "way": name, "runs": options.runs, "load": os.getloadavg()[0]}
                rows.append(row | {"wall_s": wall, "cpu_s": cpu, "times_raw": times})
                print(
                    f"{count:>5} {name:<10} {wall:8.2f} {cpu:8.2f} {'-' if times is None else f'{times:.2f}':>7}",
                    flush=True,
                )
    options.output.write_text(json.dumps(circumstances() | {"rows": rows}, indent=1) + "\n")


def _measure(method: Callable[[], None]) -> tuple[float, float]:
    """Return the elapsed seconds, and the CPU seconds of this machine's own processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    method()
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _methods(fleet: Fleet, results: str, checkout: Path | None) -> dict[str, Callable[[], None]]:
    ssh = ["ssh", "-F", str(fleet.ssh_config), "-o", "BatchMode=yes"]

    def raw() -> None:
        _all([[*ssh, host, "; ".join(COMMANDS)] for host in fleet.names])

    def raw_trips() -> None:
        with tempfile.TemporaryDirectory() as sockets:
            shared = ["-o", "ControlMaster=auto", "-o", f"ControlPath={sockets}/%h", "-o", "ControlPersist=10"]
            for command in COMMANDS:
                _all([[*ssh, *shared, host, command] for host in fleet.names])
            _all([[*ssh, *shared, "-O", "exit", host] for host in fleet.names])

    def fleetmark(path: Path | None = None) -> None:
        words = ["run", "-i", str(fleet.inventory), "--suite", "selftest", "--results", results]
        _all([[str(BIN / "fleetmark"), *words]], **({"PYTHONPATH": str(path)} if path else {}))

    def naive(forks: int) -> Callable[[], None]:
        def run() -> None:
            with tempfile.NamedTemporaryFile("w", suffix=".yml") as play:
                tasks = "\n".join(f"    - ansible.builtin.command: {c}" for c in COMMANDS)
                play.write(f"- hosts: all\n  tasks:\n{tasks}\n")
                play.flush()
                words = ["-i", str(fleet.inventory), "-f", str(forks), play.name]
                _all([[str(BIN / "ansible-playbook"), *words]])

        return run

    return {
        "raw": raw,
        "raw-trips": raw_trips,
        "fleetmark": fleetmark,
        "before": lambda: fleetmark(checkout),
        "naive": naive(fleet.size),
        "naive-5": naive(5),
    }


def _all(commands: list[list[str]], **env: str) -> None:
    """Run all commands at once; a failing command ends the benchmark with its output."""
    started = [
        subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | env) for c in commands
    ]
    for process in started:
        output = process.communicate()[0].decode(errors="replace")
        if process.returncode:
            sys.exit(f"{process.args}: exit {process.returncode}\n{output}")


if __name__ == "__main__":
    main()
