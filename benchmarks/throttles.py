"""Whether comparisons find a ratio that is known: SSH hosts throttled to a known share, measured and compared by the real pipeline.

``python -m benchmarks.throttles [--runs 20] [cpu] [net] [disk]`` (root, a quiet machine; about 1 to 2 minutes a run and kind).
Two namespace hosts at a time, one of them measuring: CPU by a cgroup quota (truth 0.5, STREAM's average time), network by tc
(truth 0.25, iperf3), disk by the io limit (truth 0.5, fio with direct I/O). A run: three blocks each way, then
``fleetmark compare`` of both; the point's error and whether its interval covers the truth.
"""

from __future__ import annotations

import argparse
import csv
import io
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fleet.hosts import Fleet

PROGRAM = [sys.executable, "-c", "from fleetmark.cli import main; main()"]


@dataclass(frozen=True)
class Kind:
    """What is throttled: the suite that measures it, the metric that tells, and its true ratio."""

    suite: str
    only: str
    truth: float
    full: Callable[[Fleet, str], None]
    less: Callable[[Fleet, str], None]


def _cpu(percent: int) -> Callable[[Fleet, str], None]:
    return lambda fleet, host: fleet.cpu(host, percent, 20_000)


def _net(rate: str) -> Callable[[Fleet, str], None]:
    return lambda fleet, host: fleet.rate(host, rate)


def _disk(mb: int) -> Callable[[Fleet, str], None]:
    return lambda fleet, host: fleet.io(host, mb * 1_000_000)


KINDS = {
    "cpu": Kind(
        "stream:\n    set: {array_elements: 20000000, ntimes: 20, threads: [1]}\n",
        "stream/*/triad_time_avg",
        0.5,
        _cpu(80),
        _cpu(40),
    ),
    "net": Kind(
        'iperf3:\n    set: {duration: 4, omit: 1, streams: [1], udp_rate: ""}\n',
        "iperf3/tcp-1/bitrate",
        0.25,
        _net("800mbit"),
        _net("200mbit"),
    ),
    "disk": Kind(
        "fio:\n    set: {runtime: 4, ramp: 1, size: 256MiB, seq: [read], rand: [randread], rand_iodepth: [8]}\n    cases: [read-*]\n",
        "fio/read-*/read_bw",
        0.5,
        _disk(80),
        _disk(40),
    ),
}


def one(kind: Kind, folder: Path, repeats: int) -> tuple[float, bool]:
    """One comparison of throttled hosts: the point's error, and whether the interval holds the truth."""
    suite = folder / "throttle.yml"
    suite.write_text(f"about: throttled\nrepeats: {repeats}\nworkloads:\n  {kind.suite}")
    results = folder / "results"
    with Fleet(6, upper="disk") as fleet:
        hosts = fleet.names
        pair = "iperf3" in kind.suite
        for host in hosts[:3]:
            kind.full(fleet, host)
        for host in hosts[3:]:
            kind.less(fleet, host)
        # One host at a time (a pair, for the network): all share this machine's cores and disk.
        groups = [hosts[:3], hosts[3:]] if pair else [[h] for h in hosts]
        for group in groups:
            asked = [
                "run",
                "-i",
                str(fleet.inventory),
                "--limit",
                ",".join(group),
                "-s",
                str(suite),
                "--results",
                str(results),
            ]
            done = subprocess.run([*PROGRAM, *asked, "--work-dir", "/srv"], capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(done.stderr[-2000:])
        sides = ["host=" + "[" + "".join(h[1] for h in side) + "]" for side in (hosts[:3], hosts[3:])]
        sides = [s.replace("host=[", "host=h[") for s in sides]
        asked = [
            "compare",
            "-b",
            sides[0],
            "-c",
            sides[1],
            "--only",
            kind.only,
            "--format",
            "csv",
            "--results",
            str(results),
        ]
        done = subprocess.run([*PROGRAM, *asked], capture_output=True, text=True, check=True)
    (row,) = [r for r in csv.DictReader(io.StringIO(done.stdout)) if not r["benchmark"]]
    ratio, lo, hi = (float(row[k]) for k in ("ratio", "lo", "hi"))
    print(f"  {ratio:.4f} [{lo:.4f}, {hi:.4f}]", flush=True)
    return ratio / kind.truth - 1, lo <= kind.truth <= hi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=list(KINDS))
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    for name in given.kinds or list(KINDS):
        print(f"{name}: truth {KINDS[name].truth}", flush=True)
        errors, covered = [], 0
        for _ in range(given.runs):
            with tempfile.TemporaryDirectory() as folder:
                error, holds = one(KINDS[name], Path(folder), given.repeats)
            errors.append(error)
            covered += holds
        worst = max(errors, key=abs)
        print(
            f"{name}: median error {statistics.median(errors):+.2%}, worst {worst:+.2%}, truth covered in {covered}/{given.runs}",
            flush=True,
        )


if __name__ == "__main__":
    main()
