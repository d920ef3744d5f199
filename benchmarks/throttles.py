"""Check that comparisons recover a known ratio: SSH hosts are throttled to a known share, measured and compared.

``python -m benchmarks.throttles [--runs 20] [cpu] [net] [disk]`` needs root and takes one to two minutes per run and
kind. Half of the namespace hosts form each side.

- CPU is throttled by a cgroup quota (truth 0.5). fio's null engine moves no data and counts operations in 10 s
- the network is throttled by tc (truth 0.25, iperf3)
- the disk is throttled by the io limit (truth 0.5, fio with direct I/O)

For CPU, one host of each side runs at the same time on the same CPU, and another pair on the next CPU. Other load on
the machine therefore affects both sides; together they need less than one CPU. The quota's period is 300 ms: with the
usual 100 ms, a pause of the machine costs the side with the larger quota more. With lower quotas, fio's own overhead
would be too large a part.

Network hosts may send later what they could not send while the machine paused, up to 50 ms. Network and disk are
measured one host or pair at a time. Runs during which CPU time was stolen are repeated. Each run measures all repeats
on each host, then ``fleetmark compare`` compares the sides. The results are the error of the ratio and whether its
interval contains the truth.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import FLEETMARK
from tests.fleet.hosts import Fleet

_PATIENCE = 20  # maximum campaigns of a group until one has no stolen CPU time


@dataclass(kw_only=True, frozen=True)
class Kind:
    """Describe what is throttled: the suite that measures it, its metric, and the true ratio."""

    suite: str
    only: str
    truth: float
    full: Callable[[Fleet, str], None]
    slowed: Callable[[Fleet, str], None]
    groups: Sequence[str]  # hosts measured at once; the first half of all hosts is the baseline
    repeats: int = 1
    bearable: float = 0.05  # share of the machine's CPU time that may be stolen during a step


def _cpu(percent: int) -> Callable[[Fleet, str], None]:
    """Limit hosts to that share of one CPU; every second host uses the same CPU."""

    def throttle(fleet: Fleet, host: str) -> None:
        fleet.cpu(host, percent, period_us=300_000)
        fleet.exec(host, ["sh", "-c", f"taskset -acp {int(host[1:]) % 2} $(pgrep -xo sshd)"])

    return throttle


def _net(mbit: int) -> Callable[[Fleet, str], None]:
    return lambda fleet, host: fleet.rate(host, f"{mbit}mbit", burst=mbit * 125_000 // 20)


def _disk(mb: int) -> Callable[[Fleet, str], None]:
    return lambda fleet, host: fleet.io(host, mb * 1_000_000)


KINDS = {
    "cpu": Kind(
        suite="fio:\n    set: {ioengine: 'null', direct: no, size: 64MiB, ramp: 1, runtime: 10, rand: [randread], rand_iodepth: [1]}\n    cases: [randread-*]\n",
        only="fio/randread-*/read_iops",
        truth=0.5,
        full=_cpu(50),
        slowed=_cpu(25),
        groups=("h1,h2,h5,h6", "h3,h4,h7,h8"),
        repeats=3,
        bearable=1.0,  # both sides miss it
    ),
    "net": Kind(
        suite='iperf3:\n    set: {duration: 3, omit: 1, streams: [1], udp_rate: ""}\n',
        only="iperf3/tcp-1/bitrate",
        truth=0.25,
        full=_net(100),
        slowed=_net(25),
        groups=("h1,h2,h3", "h4,h5,h6"),
        bearable=0.15,  # it needs little
    ),
    "disk": Kind(
        suite="fio:\n    set: {runtime: 6, ramp: 2, size: 256MiB, seq: [read], rand: [randread], rand_iodepth: [8]}\n    cases: [read-*]\n",
        only="fio/read-*/read_bw",
        truth=0.5,
        full=_disk(80),
        slowed=_disk(40),
        groups=("h1", "h4", "h2", "h5", "h3", "h6"),
    ),
}


def one(kind: Kind, fleet: Fleet, folder: Path) -> tuple[float, bool]:
    """Run one comparison of throttled hosts; return the error and whether the interval contains the truth."""
    suite = folder / "throttle.yml"
    suite.write_text(f"description: throttled\nrepeats: {kind.repeats}\nworkloads:\n  {kind.suite}")
    results = ["--results", str(folder / "results")]
    for group in kind.groups:
        for _ in range(_PATIENCE):
            words = ("run", "-i", str(fleet.inventory), "--limit", group, "-s", str(suite), "--work-dir", "/srv")
            fleetmark(*words, *results)
            campaign = max((folder / "results").glob("*"))
            if (share := stolen(campaign)) <= kind.bearable:
                break
            print(f"  {group} once more: {share:.0%} of the machine was stolen during a step", flush=True)
            shutil.rmtree(campaign)
        else:
            raise SystemExit(
                f"{_PATIENCE} times over, the machine was stolen from during {group}: try when it is calmer"
            )
    full, throttled = (f"host=h[{''.join(host[1:] for host in hosts)}]" for hosts in halves(fleet))
    table = fleetmark("compare", "-b", full, "-c", throttled, "--only", kind.only, "--format", "csv", *results)
    (row,) = [r for r in csv.DictReader(io.StringIO(table)) if not r["benchmark"]]
    ratio, lo, hi = (float(row[k]) for k in ("ratio", "lo", "hi"))
    print(f"  {ratio:.4f} [{lo:.4f}, {hi:.4f}]", flush=True)
    return ratio / kind.truth - 1, lo <= kind.truth <= hi


def stolen(campaign: Path) -> float:
    """Return the maximum share of the machine's CPU time that the hypervisor took during a step."""
    telemetry = [json.loads(file.read_text()).get("telemetry") for file in campaign.glob("raw/*/*/*/*/result.json")]
    return max(float(t["summary"]["cpu_steal"]["mean"]) for t in telemetry if t)


def halves(fleet: Fleet) -> tuple[Sequence[str], Sequence[str]]:
    half = len(fleet.names) // 2
    return fleet.names[:half], fleet.names[half:]


def fleetmark(*words: str) -> str:
    done = subprocess.run([*FLEETMARK, *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit((done.stdout + done.stderr)[-2000:])
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], default=list(KINDS))
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    for name in options.kinds or list(KINDS):
        kind, errors, covered = KINDS[name], [], 0
        print(f"{name}: truth {kind.truth}", flush=True)
        with Fleet(len(",".join(kind.groups).split(",")), upper="disk") as fleet:
            for throttle, hosts in zip((kind.full, kind.slowed), halves(fleet), strict=True):
                for host in hosts:
                    throttle(fleet, host)
            for _ in range(options.runs):
                with tempfile.TemporaryDirectory() as folder:
                    error, holds = one(kind, fleet, Path(folder))
                errors.append(error)
                covered += holds
        worst = max(errors, key=abs)
        print(
            f"{name}: median error {statistics.median(errors):+.2%}, worst {worst:+.2%}, truth covered in {covered}/{options.runs}",
            flush=True,
        )


if __name__ == "__main__":
    main()
