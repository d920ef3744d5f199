"""Check whether running a tool through Fleetmark changes its result: alternately by hand and through Fleetmark.

Run on an idle machine: ``python -m benchmarks.fidelity [--pairs 15] [--only NAME ...] [--set WORKLOAD.KEY=VALUE ...]``. ``pgbench``
runs under an account other than root; ``osu`` needs ``--set osu.path=FOLDER``; ``kernel_build`` needs ``kernel_build.source`` and
``source_sha256`` of a C project with a Makefile; these are left out unless they are named. Each pair runs the command line that
Fleetmark made once by hand (no telemetry, no agent, a plain subprocess in a plain folder) and once through ``fleetmark run``, in an
order that alternates. Printed: each pair's figures as they come (standard error), with the cores that other processes kept busy
meanwhile; the median of the ratios (Fleetmark / hand) with its order-statistic 95% interval, and the spread of the hand runs alone,
which is what this machine can tell at best. Pairs that others disturbed count only with ``--disturbed``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from fleetmark import parsers
from fleetmark.planner.centre import order_interval

FLEETMARK = str(Path(sys.executable).with_name("fleetmark"))
# Case, metric and settings. Servers and clients of one host have each a half of its cores.
CLIENTS = {"clients": "16", "latency_target": "0", "duration": "4"}
CASES: dict[str, tuple[str, str, dict[str, str]]] = {
    "stream": ("all-cores", "triad", {"ntimes": "10", "array_elements": "40000000"}),
    "fio": ("randread-4k-qd32", "read_iops", {"runtime": "4", "ramp": "1", "size": "1GiB", "rand": "randread"}),
    "iperf3": ("tcp-1", "bitrate", {"duration": "4", "omit": "1", "streams": "1", "udp_rate": ""}),
    "openssl_speed": ("sha256-1p", "throughput", {"algorithms": "sha256", "processes": "1", "seconds": "3"}),
    "redis_benchmark": ("get-c16", "requests_per_second", {"tests": "get", **CLIENTS}),
    "memcached": ("get9-set1-c16", "requests_per_second", CLIENTS),
    "nginx_wrk": ("http-1k-c16", "requests_per_second", CLIENTS),
    "pgbench": (
        "select-only-s10-c16",
        "transactions_per_second",
        {"scripts": "select-only", "scale": "10", "shared_buffers": "256MiB", **CLIENTS},
    ),
    "hpcc": ("all-cores", "hpl", {"memory_share": "0.005"}),
    "osu": ("latency", "least_latency", {"point_to_point": "latency", "collectives": "allreduce", "nodes": "1"}),
    "qperf": ("tcp_lat", "latency", {"tests": "tcp_lat", "duration": "4"}),
    "kernel_build": ("all", "build_rate", {"configure": "test -e Makefile", "disk": "1GiB"}),
    "ucx_perftest": ("tcp-lat-8", "latency_p50", {"transports": "tcp", "latency_iterations": "50000"}),
}
QUIET = 0.1  # cores of other processes above which a run counts as disturbed
BY_NAME = ("pgbench", "osu", "kernel_build")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", nargs="+", default=[name for name in CASES if name not in BY_NAME])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--disturbed", action="store_true")
    options = parser.parse_args()
    print(f"{'workload':<15} {'metric':<23} {'pairs':>5} {'ratio':>7}  {'95% interval':<16} {'CV by hand':>10}")
    for workload in options.only:
        case, metric, settings = CASES[workload]
        more = [word.removeprefix(f"{workload}.") for word in options.set if word.startswith(f"{workload}.")]
        settings = {**settings, **dict(word.split("=", 1) for word in more)}
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            argv, serve, env = _through(workload, case, metric, settings, Path(place))[1:]
            pairs = []
            for number in range(options.pairs):
                values: dict[str, tuple[float, float]] = {}
                for method in ("hand", "through") if number % 2 else ("through", "hand"):
                    if method == "hand":
                        values[method] = _by_hand(workload, metric, argv, serve, env, Path(place))
                    else:
                        values[method] = _through(workload, case, metric, settings, Path(place))[0]
                (hand, load_by_hand), (through, meanwhile) = values["hand"], values["through"]
                print(
                    f"{number} {hand:.5g} ({load_by_hand:.2f}) {through:.5g} ({meanwhile:.2f})",
                    file=sys.stderr,
                    flush=True,
                )
                if options.disturbed or max(load_by_hand, meanwhile) < QUIET:
                    pairs.append((hand, through))
        if not pairs:
            print(f"{workload:<15} {metric:<23} every pair was disturbed", flush=True)
            continue
        ratios = sorted(through / hand for hand, through in pairs)
        by_hand = [h for h, _ in pairs]
        ranks = order_interval(len(ratios))
        interval = f"{ratios[ranks[0] - 1]:.4f}-{ratios[ranks[1] - 1]:.4f}" if ranks else "(too few pairs)"
        cv = statistics.stdev(by_hand) / statistics.mean(by_hand) if len(by_hand) > 1 else math.nan
        print(
            f"{workload:<15} {metric:<23} {len(pairs):>5} {statistics.median(ratios):7.4f}  {interval:<16} {cv:10.1%}",
            flush=True,
        )


def _through(
    workload: str, case: str, metric: str, settings: dict[str, str], place: Path
) -> tuple[tuple[float, float], Any, Any, Any]:
    """Measure one repeat through Fleetmark: the metric with the cores used by others, and the command, server and
    environment.
    """
    suite = place / "suite.yml"
    suite.write_text(json.dumps({"description": "one case", "repeats": 1, "workloads": {workload: {"cases": [case]}}}))
    words = [w for k, v in settings.items() for w in ("--set", f"{workload}.{k}={v}")]
    done = subprocess.run(
        [FLEETMARK, "run", "--suite", str(suite), "--results", str(place / "results"), *words],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    campaign = max((place / "results").iterdir())
    frame = pd.read_parquet(campaign / "measurements.parquet")
    (raw,) = set(frame["raw"])
    folder = (campaign / raw).parent
    step, result = (json.loads((folder / f"{name}.json").read_text()) for name in ("step", "result"))
    value = float(frame.loc[frame["metric"] == metric, "value"].iloc[0])
    journal = [json.loads(line) for line in (campaign / "journal.jsonl").read_text().splitlines()]
    (others,) = [entry["foreign_cores"] for entry in journal if entry["e"] == "outcome"]
    return (value, math.nan if others is None else others), step["argv"], step["serve"], result["env"]


def _by_hand(
    workload: str, metric: str, argv: list[str], serve: Any, env: dict[str, str], place: Path
) -> tuple[float, float]:
    """Return the metric of the command run by hand, and the cores used by others meanwhile."""
    (place / "fleetmark.fio").unlink(missing_ok=True)  # laid out again each time, as Fleetmark does
    env, quiet = {**env, "PWD": str(place)}, subprocess.DEVNULL
    began, busy, children = time.monotonic(), _busy(), _children()
    server = subprocess.Popen(serve["argv"], stdout=quiet, stderr=quiet, cwd=place, env=env) if serve else None
    while server and not _listening(serve["port"]):
        time.sleep(0.01)
    done = subprocess.run(argv, capture_output=True, cwd=place, env=env, check=True)
    if server:
        if not serve.get("ends", True):
            server.terminate()
        server.wait(10)
    others = (_busy() - busy - (_children() - children)) / (time.monotonic() - began)
    raw = (place / "fio.json").read_bytes() if workload == "fio" else done.stdout
    return next(m.value for m in parsers.parse(workload, raw, argv).measurements if m.metric == metric), others


def _busy() -> float:
    """Return the seconds of CPU time that all processes of this machine have used."""
    user, nice, system, _idle, _wait, irq, soft = (int(n) for n in Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _children() -> float:
    """Return the seconds of CPU time of the processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _listening(port: int) -> bool:
    """Return whether something listens on the port. A probe would use up a server that accepts one client."""
    return bool(subprocess.run(["ss", "-Hltu", f"sport = :{port}"], capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
