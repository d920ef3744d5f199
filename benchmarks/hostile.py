"""Measure the controller's memory when a host sends far more than it should: ``python -m benchmarks.hostile [--runs
N]``. One of two hosts misbehaves, the other measures. Needs root, because the hosts are network namespaces.

Each attack runs as a whole command beside the same command with an honest host, in the same session: printed are the
largest resident size of any of its processes (getrusage), what that is above the honest run, and how the two hosts ended.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.fleet.hosts import Fleet, missing
from tests.fleet.liars import liars

FLEETMARK = Path(sys.executable).with_name("fleetmark")
SELFTEST = "description: tiny\nrepeats: 1\nworkloads:\n  selftest: {set: {commands: 2}}\n"
FIO = "description: tiny\nrepeats: 1\nworkloads:\n  fio: {set: {runtime: 1, ramp: 0, size: 1MiB}, cases: ['randread*qd1']}\n"

FLOOD = """
while True:
    sys.stdout.write("{" + "x" * (1 << 20))
"""
BOMB = """
if doc["e"] == "part":
    return part(doc["step"], doc["name"], bytes(1500 << 20))
really(doc)
"""
NEVER_ENDS = """
if doc["e"] == "part" and doc["name"] == "stdout":
    while True:
        part(doc["step"], "stdout", bytes(256 << 10))
really(doc)
"""
FACTS = "import sys\nwhile True: sys.stdout.write('x' * (1 << 20))"
LAUNCH = "import sys\nsys.stdin.read()\nwhile True: sys.stdout.write('x' * (1 << 20))"
# A tool of the host's that leaves a report of 1 GB, or prints 500 MB.
BIG_FILE = "#!/bin/sh\nhead -c 1000000000 /dev/zero > fio.json\n"
BIG_JSON = "#!/bin/sh\n{ printf '['; yes '{},' | head -c 200000000; printf '{}]'; } > fio.json\n"
BIG_OUTPUT = '#!/bin/sh\n[ "$1" = /proc/uptime ] || exec /bin/cat "$@"\nyes | head -c 500000000\n'

ATTACKS = {
    "honest": ("", "", SELFTEST),
    "a line without end": ("follow", FLOOD, SELFTEST),
    "a compressed chunk that expands to 1.5 GB": ("follow", BOMB, SELFTEST),
    "a file without end": ("follow", NEVER_ENDS, SELFTEST),
    "facts without end": ("facts", FACTS, SELFTEST),
    "an endless reply to the launch": ("launch", LAUNCH, SELFTEST),
    "a tool prints 500 MB": ("cat", BIG_OUTPUT, SELFTEST),
    "honest, fio": ("", "", FIO),
    "a tool leaves a file of 1 GB": ("fio", BIG_FILE, FIO),
    "a tool leaves JSON of 200 MB": ("fio", BIG_JSON, FIO),
}


@contextlib.contextmanager
def attacked(fleet: Fleet, target: str, code: str, inventory: Path) -> Iterator[None]:
    """h1 does it, by its agent or by a tool of its own; h2 is honest."""
    tool = Path("/usr/local/bin") / target
    is_tool = target not in ("", "follow", "facts", "launch")
    if is_tool:
        fleet.exec("h1", ["sh", "-c", f"cat > {tool} && chmod +x {tool}"], input=code)
    try:
        with liars(fleet, {} if is_tool or not target else {"h1": (target, code)}, inventory):
            yield
    finally:
        if is_tool:
            fleet.exec("h1", ["rm", "-f", str(tool)])


def measured(fleet: Fleet, target: str, code: str, suite: str) -> tuple[float, dict[str, str]]:
    """Return the memory of the largest process of one command, in MB, and how each host's runs ended."""
    with tempfile.TemporaryDirectory(prefix="fleetmark-hostile-") as place:
        root = Path(place)
        (root / "suite.yml").write_text(suite)
        with attacked(fleet, target, code, root / "hosts.ini"):
            words = [FLEETMARK, "run", "-i", "hosts.ini", "--suite", "suite.yml", "--results", "results"]
            with (root / "out.txt").open("w") as out:
                child = subprocess.Popen(words, cwd=root, stdout=out, stderr=out)
                _, _, usage = os.wait4(child.pid, 0)
                child.returncode = 0
        ended: dict[str, Counter[str]] = {}
        for journal in root.glob("results/*/journal.jsonl"):
            for line in journal.read_text().splitlines():
                event = json.loads(line)
                if event["e"] == "outcome":
                    ended.setdefault(event["host"], Counter())[event["status"]] += 1
        shown = {host: ", ".join(f"{n} {s}" for s, n in counts.items()) for host, counts in sorted(ended.items())}
        return usage.ru_maxrss / 1000, shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", help="attacks whose name holds this")
    options = parser.parse_args()
    if reason := missing():
        sys.exit(reason)
    base = 0.0
    print(f"{'attack of h1':36} {'MB':>6} {'above':>6}   how the hosts' runs ended")
    with Fleet(2, upper="disk") as fleet:
        for name, (target, code, suite) in ATTACKS.items():
            if options.only and options.only not in name and not name.startswith("honest"):
                continue
            runs = [measured(fleet, target, code, suite) for _ in range(options.runs)]
            size = statistics.median(size for size, _ in runs)
            base = size if name.startswith("honest") else base
            print(f"{name:36} {size:6.0f} {size - base:6.0f}   {runs[0][1]}", flush=True)


if __name__ == "__main__":
    main()
