"""Measure what a diagnosis finds, its false positives, and its time.

``python -m benchmarks.diagnosis [HOSTS] [METRICS]`` (10000 200) first injects faults into synthetic fleets and prints
recall and false positives with the seed. Then it runs ``fleetmark diagnose --everything`` on a large record, and reads
the same file once for comparison. It prints how many of the PLANTED hosts are named. Finally it measures ``fleetmark
reference save`` of 1,000 hosts x 200 metrics x 5 repeats. With sizes as arguments, only the last two parts run.
``python -m benchmarks.diagnosis groups`` runs ``benchmarks/groups.py`` instead.

docs/reference/performance.md has the times of SuperBench's ``result diagnosis``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import groups
from benchmarks.comparison import READ
from benchmarks.measuring import FLEETMARK, compile_modules, measured, separately
from benchmarks.reports import campaign
from fleetmark.planner.diagnosis import outliers, tails
from fleetmark.planner.diagnosis.confirm import Verdict, settle

SEED, METRICS, TRIALS = 18, 20, 4000
AFFECTED = 5  # number of metrics in which a faulty host is slow: those of one component
PEERS, REPEATS = 4, 5  # of a confirmation, as in fleetmark.record.diagnosis.reruns
RUN, HOST = 0.01, 0.003  # standard deviations of runs and of healthy hosts


def inject(hosts: int, slow: float, share: float, repeats: int) -> tuple[float, float, float]:
    """Return the recall of faulty hosts, the recall of slow (host, metric), and false positives per healthy host.

    They apply after one confirmation, which runs each suspect case again together with PEERS healthy hosts.
    """
    rng = np.random.default_rng([SEED, hosts, int(1000 * slow), int(1000 * share), repeats])
    sick = named = cells = hits = sound = blamed = 0
    error = np.full((METRICS, hosts), RUN / repeats**0.5)
    limits = np.full(METRICS, outliers.SMALL)
    for _ in range(-(-TRIALS // hosts)):
        bad = np.zeros(hosts, dtype=bool)
        bad[rng.choice(hosts, round(share * hosts), replace=False)] = True
        fault = np.zeros((METRICS, hosts), dtype=bool)
        for host in np.flatnonzero(bad):
            fault[rng.choice(METRICS, AFFECTED, replace=False), host] = True
        steady = rng.normal(0, HOST, fault.shape) + np.where(fault, np.log1p(-slow), 0.0)
        first = outliers.judge(steady + rng.normal(0, 1, fault.shape) * error, error, limits).slow
        again = steady + rng.normal(0, RUN / REPEATS**0.5, fault.shape)
        suspects = {*zip(first["row"].to_numpy(), first["column"].to_numpy(), strict=True)}
        spreads = {(r, c): s for r, c, s in zip(first["row"], first["column"], first["spread"], strict=True)}
        accused = {h for _, h in suspects}
        peers = [h for h in range(hosts) if h not in accused][:PEERS]
        confirmed = {
            (m, h)
            for m, h in suspects
            if settle(again[m, h], again[m, peers], spreads[m, h], outliers.SMALL, REPEATS).verdict is Verdict.CONFIRMED
        }
        sick, named = sick + int(bad.sum()), named + len({h for _, h in suspects if bad[h]})
        cells, hits = cells + int(fault.sum()), hits + len([1 for m, h in suspects if fault[m, h]])
        sound, blamed = sound + int((~bad).sum()), blamed + len({h for _, h in confirmed if not bad[h]})
    return named / sick if sick else float("nan"), hits / cells if cells else float("nan"), blamed / sound


def injection() -> None:
    print(f"seed {SEED}; {METRICS} metrics, {AFFECTED} of them slow on a sick host; run noise {RUN:.0%}")
    print("hosts repeats slower sick | faulty hosts found  slow metrics found  healthy hosts blamed after confirmation")
    for hosts in (8, 64, 1000):
        for repeats in (1, 3):
            print(f"{hosts:5} {repeats:7}   none   0% | {'':8} {'':8} {inject(hosts, 0.0, 0.0, repeats)[2]:8.3%}")
            for slow in (0.03, 0.05, 0.1, 0.2):
                for share in (0.125, 0.2):
                    named, hits, blamed = inject(hosts, slow, share, repeats)
                    print(f"{hosts:5} {repeats:7} {slow:6.0%} {share:4.0%} | {named:8.2%} {hits:8.2%} {blamed:8.3%}")


TAILED, RUNS = 0.20, 10  # loss of a faulty host's slow runs; number of repeats
GROUPED = 0.20  # loss of the slower group of a split cohort


def tail_only(hosts: int, often: float) -> tuple[float, float]:
    """Return the recall of hosts with a share ``often`` of slow runs, and false positives per healthy host.

    Such hosts are 5% of all, at least one; their median run is normal. There is no confirmation.
    """
    rng = np.random.default_rng([SEED, hosts, int(100 * often)])
    sick = named = sound = blamed = 0
    for _ in range(max(8, TRIALS // hosts // 10)):
        bad = np.zeros(hosts, dtype=bool)
        bad[rng.choice(hosts, max(1, hosts // 20), replace=False)] = True
        runs = rng.normal(0, RUN, (hosts, RUNS))
        slow = np.arange(RUNS) < round(often * RUNS)
        runs += np.where(bad[:, None] & slow, np.log1p(-TAILED), 0.0)
        column = np.repeat(np.arange(hosts), RUNS)
        named_here = {
            *tails.judge(pd.DataFrame({"row": 0, "column": column, "value": runs.ravel()}))["column"].astype(int)
        }
        sick, named = sick + int(bad.sum()), named + sum(bool(bad[h]) for h in named_here)
        sound, blamed = sound + int((~bad).sum()), blamed + sum(not bad[h] for h in named_here)
    return named / sick, blamed / sound


def bimodal(hosts: int, share: float) -> tuple[float, float, float]:
    """Return results for cohorts in which a ``share`` is slower as a group.

    They are the share of cohorts that are split, the share of blamed hosts, and the recall of one host of either group
    that is a tenth slower than its group.
    """
    rng = np.random.default_rng([SEED, hosts, int(100 * share)])
    split = blamed = named = trials = 0
    error, limit = np.full((1, hosts), RUN / 3**0.5), np.array([outliers.SMALL])
    for _ in range(max(40, TRIALS // hosts)):
        level = np.where(np.arange(hosts) < round(share * hosts), np.log1p(-GROUPED), 0.0)
        values = level + rng.normal(0, np.hypot(HOST, RUN / 3**0.5), hosts)
        odd = int(rng.integers(hosts))
        values[odd] += np.log1p(-0.1)
        verdicts = outliers.judge(values[None, :], error, limit)
        accused = {*verdicts.slow["column"].astype(int)}
        trials, split = trials + 1, split + (len(verdicts.modes.rows) > 0)
        named, blamed = named + (odd in accused), blamed + len(accused - {odd})
    return split / trials, blamed / trials / (hosts - 1), named / trials


def shapes() -> None:
    print(f"tail-only: some runs of {RUNS} are {TAILED:.0%} slow; before any confirmation")
    print("hosts slow runs | faulty hosts found  healthy hosts blamed")
    for hosts in (8, 64, 1000):
        for often in (0.1, 0.2, 0.3):
            named, blamed = tail_only(hosts, often)
            print(f"{hosts:5} {often:9.0%} | {named:8.2%} {blamed:8.3%}")
    print(
        f"bimodal: a share of the cohort is {GROUPED:.0%} slower, and one host a tenth slower than its group; 3 repeats"
    )
    print("hosts share | cohorts split  other hosts blamed  the one host named")
    for hosts in (16, 64, 1000):
        for share in (0.3, 0.5):
            split, blamed, named = bimodal(hosts, share)
            print(f"{hosts:5} {share:5.0%} | {split:8.1%} {blamed:8.3%} {named:8.1%}")


PLANTED, SLOWER = 247, 0.20  # number of hosts of a large record that are slow in one of its cases, and their loss


def plant(file: Path, hosts: int) -> set[str]:
    """Make some hosts of a record slow in all metrics of one case; return their names."""
    rng = np.random.default_rng([SEED, hosts])
    numbers = rng.choice(hosts, min(PLANTED, hosts // 40), replace=False)
    case = {f"h{n}": f"w{rng.integers(2)} case-{rng.integers(4)}" for n in numbers}
    part = file.with_name("planted.parquet")
    with pq.ParquetFile(file) as source, pq.ParquetWriter(part, source.schema_arrow, compression="zstd") as out:
        for group in range(source.num_row_groups):
            table = source.read_row_group(group)
            keys = zip(*(table.column(name).to_pylist() for name in ("host", "workload", "case")), strict=True)
            slow = np.array([case.get(host) == f"{w} {c}" for host, w, c in keys])
            values = table.column("value").to_numpy() * np.where(slow, 1 - SLOWER, 1.0)
            out.write_table(table.set_column(table.schema.get_field_index("value"), "value", pa.array(values)))
    part.replace(file)
    return {*case}


def reference() -> None:
    with tempfile.TemporaryDirectory() as folder:
        separately(campaign, Path(folder), 1000, 200, 5)
        command = [*FLEETMARK, "reference", "save", "of-1000", "--from", "last", "--results", folder]
        wall, cpu, memory = measured(command)
        print(
            f"fleetmark reference save, 1000 hosts x 200 metrics x 5: {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB"
        )


def speed(hosts: int, metrics: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        separately(campaign, root, hosts, metrics, 1)
        (file,) = root.glob("*/measurements.parquet")
        planted = plant(file, hosts)
        print(f"{hosts} hosts x {metrics} metrics, facts of all: {file.stat().st_size / 1e6:.0f} MB of Parquet")
        command = [*FLEETMARK, "diagnose", "last", "--everything", "--results", folder]
        for _ in range(3):
            wall, cpu, memory = measured(command, (0, 1))
            print(f"fleetmark diagnose: {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB")
        shown = subprocess.run([*command, "--format", "json"], stdout=subprocess.PIPE, check=False).stdout
        named = {f["host"] for f in json.loads(shown)["findings"]}
        print(
            f"named: {len(named & planted)} of {len(planted)} planted hosts, {len(named - planted)} others, unconfirmed"
        )
        wall, cpu, memory = measured([sys.executable, "-c", READ, str(file)])
        print(f"reading five columns with pyarrow: {wall:.1f} s ({cpu:.1f} s of CPU), {memory:.0f} MB")


def main() -> None:
    if sys.argv[1:] == ["groups"]:
        groups.main()
        return
    sizes = [int(a) for a in sys.argv[1:]]
    compile_modules()
    if not sizes:
        injection()
        shapes()
    speed(*(sizes or (10_000, 200)))
    reference()


if __name__ == "__main__":
    main()
