"""Plausible sample campaigns from a fixed seed: one host, six hosts with failures, or hundreds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fleetmark.base import schema
from fleetmark.base.facts import Cache, Cpu, Dimm, Disk, Facts, Nic, NumaNode
from fleetmark.base.measurement import Better, Status
from fleetmark.record.results import OUTCOME_COLUMNS, CampaignInfo, HostInfo, Results
from fleetmark.record.values import Values
from tests.records import row

KIB, MIB, GIB = 2**10, 2**20, 2**30
NEEDS_LMBENCH = "needs lmbench: no compiler on the host; install gcc and make there, or put a build into tools/lmbench"


@dataclass(frozen=True)
class Generation:
    """The true figures of one server model."""

    name: str
    cpu: str
    vendor: str
    cores: int
    l1: int
    l2: int
    l3: int
    dimms: int
    mts: int
    triad: float  # B/s
    dram: float  # s
    iops: float  # 1/s
    link: float  # B/s


OLD = Generation(
    *("icelake", "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", "GenuineIntel", 32),
    *(48 * KIB, 1280 * KIB, 48 * MIB, 16, 3200, 281e9, 92e-9, 780e3, 25e9 / 8),
)
NEW = Generation(
    *("genoa", "AMD EPYC 9554 64-Core Processor", "AuthenticAMD", 64),
    *(32 * KIB, 1 * MIB, 32 * MIB, 24, 4800, 602e9, 108e-9, 1.45e6, 100e9 / 8),
)


def one() -> Results:
    """Return a campaign of one host without a generation, in which every run passed."""
    return _campaign({"epyc-07": None}, {"epyc-07": NEW}, repeats=6, seed=1, command=["fleetmark", "run"])


def six() -> Results:
    """Return a campaign of two generations with three hosts each and several failures.

    ``gen-c`` never answered, fio failed once per case, STREAM was disturbed by other processes, and lmbench is missing.
    """
    kinds = {"ice-a": OLD, "ice-b": OLD, "ice-c": OLD, "gen-a": NEW, "gen-b": NEW, "gen-c": NEW}
    troubles: dict[tuple[str, str], tuple[Status, str, int]] = {
        ("ice-b", "fio"): (
            Status.FAILED,
            "fio exited with status 1: randread-4k: io_uring_setup failed: Operation not permitted",
            1,
        ),
        ("ice-c", "stream"): (Status.INVALID, "1.42 foreign cores were busy, 0.05 allowed", 2),
        ("gen-b", "lmbench"): (Status.SKIPPED, NEEDS_LMBENCH, 5),
    }
    command = ["fleetmark", "run", "-i", "hosts.yml", "--suite", "standard", "--seed", "2"]
    return _campaign(
        {h: k.name for h, k in kinds.items()},
        kinds,
        repeats=5,
        seed=2,
        command=command,
        troubles=troubles,
        dead="gen-c",
    )


def many(hosts: int = 300) -> Results:
    """Return a campaign of two equal generations with a dead host, scattered failures, and a slow host (``n0017``)."""
    kinds = {f"n{i:04d}": (OLD if i % 2 else NEW) for i in range(hosts)}
    troubles = {
        (f"n{i:04d}", workload): (status, reason, 1 + i % 3)
        for i, workload, status, reason in [
            *(
                (i, "fio", Status.FAILED, "fio exited with status 1: no space left on device")
                for i in range(11, hosts, 40)
            ),
            *(
                (i, "iperf3", Status.LOST, "the link went away and no result came back within 600 s")
                for i in range(5, hosts, 90)
            ),
            *((i, "lmbench", Status.SKIPPED, NEEDS_LMBENCH) for i in range(3, hosts, 25)),
            *(
                (i, "stream", Status.INVALID, f"{1 + i / 100:.2f} foreign cores were busy, 0.05 allowed")
                for i in range(2, hosts, 20)
            ),
        ]
    }
    command = ["fleetmark", "run", "-i", "hosts.yml", "--suite", "standard", "--seed", "3"]
    names = {h: k.name for h, k in kinds.items()}
    dead = f"n{hosts - 1:04d}"
    return _campaign(names, kinds, repeats=5, seed=3, command=command, troubles=troubles, dead=dead, slow="n0017")


HOSTILE = {
    "ice-a": "<script>document.title='ran'</script>",
    "ice-b": "שרת\u202eevil",
    "ice-c": "h" * 300,
    "gen-a": "nul\x00\x1b[31mhost",
    "gen-b": "\"'><img src=x onerror=\"document.title='ran'\">",
    "gen-c": "{{ 7*7 }} {% x %} & a>b",
}


def renamed(results: Results, names: Mapping[str, str]) -> Results:
    """Return the same campaign with other host names."""
    hosts = tuple(replace(h, name=names.get(h.name, h.name)) for h in results.hosts)

    def frame(old: pd.DataFrame) -> pd.DataFrame:
        new = old.assign(host=[names.get(h, h) for h in old["host"]])
        if "subject" in new:
            new["subject"] = [">".join(names.get(part, part) for part in s.split(">")) for s in new["subject"]]
        return new

    return Results(results.campaign, hosts, frame(results.outcomes), Values(frame(results.values.frame)))


def _campaign(
    generations: Mapping[str, str | None],
    kinds: Mapping[str, Generation],
    *,
    repeats: int,
    seed: int,
    command: list[str],
    troubles: Mapping[tuple[str, str], tuple[Status, str, int]] | None = None,
    dead: str | None = None,
    slow: str | None = None,
) -> Results:
    rng = np.random.default_rng(seed)
    hosts = list(kinds)
    reason = "ssh: connect to host 10.77.0.6 port 22: No route to host"
    outcomes: list[tuple[object, ...]] = []
    rows: list[dict[str, Any]] = []
    campaign = f"2026-03-04T0912-{seed:04x}"
    for number, host in enumerate(hosts):
        kind = kinds[host]
        quality = 1 + 0.008 * rng.standard_normal() - (0.14 if host == slow else 0)
        bad = {w: t for (h, w), t in (troubles or {}).items() if h == host}
        # A result known before anything runs is a single outcome for the whole workload.
        for workload in _VERSIONS if len(hosts) > 1 else ("stream", "fio", "lmbench"):
            status, message, _ = bad.get(workload, (Status.PASSED, "", 0))
            if host == dead:
                status, message = Status.LOST, f"unreachable: {reason}"
            if host == dead or status is Status.SKIPPED:
                outcomes.append((host, workload, "*", 0, status, message, "", math.nan, math.nan))
        for workload, case, metrics in _cases(host, number, kind, [h for h in hosts if h != dead]):
            if host == dead or bad.get(workload, (Status.PASSED,))[0] is Status.SKIPPED:
                continue
            for repeat in range(repeats):
                status, message, count = bad.get(workload, (Status.PASSED, "", 0))
                if repeat >= count:
                    status, message = Status.PASSED, ""
                if host == dead:
                    status, message = Status.LOST, f"unreachable: {reason}"
                started = (
                    ""
                    if status is Status.SKIPPED or host == dead
                    else f"2026-03-04T09:{12 + repeat * 7:02d}:{number % 60:02d}Z"
                )
                wall = rng.uniform(2, 9) if started else math.nan
                foreign = (1.42 if status is Status.INVALID else abs(rng.normal(0, 0.004))) if started else math.nan
                outcomes.append((host, workload, case, repeat, status, message, started, wall, foreign))
                if status not in (Status.PASSED, Status.INVALID):
                    continue
                raw = f"raw/{host}/{workload}/{case}/{repeat}/stdout"
                for subject, metric, labels, value, unit, better, klass, headline, noise in metrics:
                    good = quality if better is Better.HIGHER else 2 - quality if better is Better.LOWER else 1
                    shown = value * good * math.exp(noise * rng.standard_normal())
                    shown = float(round(shown)) if unit == "1" and value >= 1 else shown
                    rows.append(
                        row(
                            campaign=campaign,
                            host=host,
                            subject=subject,
                            workload=workload,
                            case=case,
                            metric=metric,
                            labels=schema.packed(labels),
                            repeat=repeat,
                            **{"value": shown, "unit": unit, "better": better, "class": klass, "headline": headline},
                            bits=unit == "B/s" and klass == "net",
                            percent=metric == "loss",
                            time=started,
                            raw=raw,
                            tool_version=_VERSIONS[workload],
                            status=status,
                        )
                    )
    info = CampaignInfo(
        id=campaign,
        created="2026-03-04T09:12:00Z",
        suite="quick" if len(hosts) == 1 else "standard",
        seed=seed,
        command=command,
        fleetmark_version="0.1.0",
        tool_versions={**_VERSIONS, "ansible-core": "2.19.3", "python": "3.11.2"},
        path=Path("results") / campaign,
        root="results",
        finished=True,
        wall_s=4215.0 if len(hosts) > 1 else 412.0,
        notes=("The clock of ice-b is 41 s ahead of the controller's.",) if "ice-b" in hosts else (),
    )
    infos = tuple(
        HostInfo(
            name=h,
            generation=generations[h],
            labels={"rack": f"r{i // 20 + 1}"},
            facts=None,
            reachable=False,
            reason=reason,
        )
        if h == dead
        else HostInfo(
            name=h, generation=generations[h], labels={"rack": f"r{i // 20 + 1}"}, facts=facts(h, kinds[h], i)
        )
        for i, h in enumerate(hosts)
    )
    return Results(
        info,
        infos,
        pd.DataFrame(outcomes, columns=list(OUTCOME_COLUMNS)),
        Values(schema.frame(rows)),
    )


_VERSIONS = {"stream": "5.10", "fio": "fio-3.33", "iperf3": "3.12", "lmbench": "3.0-a9"}
_H, _L, _N = Better.HIGHER, Better.LOWER, Better.NONE
_Metric = tuple[str, str, dict[str, str], float, str, Better, str, bool, float]


def _cases(host: str, number: int, kind: Generation, hosts: list[str]) -> Iterator[tuple[str, str, list[_Metric]]]:
    """Yield the metrics of each case: subject, metric, labels, true value, unit, better, class, headline, noise."""
    m = "mem-bw"
    triad = kind.triad
    yield (
        "stream",
        "all-cores",
        [
            ("host", "copy", {}, triad * 0.93, "B/s", _H, m, False, 0.006),
            ("host", "scale", {}, triad * 0.91, "B/s", _H, m, False, 0.006),
            ("host", "add", {}, triad * 0.99, "B/s", _H, m, False, 0.006),
            ("host", "triad", {}, triad, "B/s", _H, m, True, 0.006),
        ],
    )
    for depth in (1, 4, 16, 32):
        rate = kind.iops * depth / (depth + 14)
        yield (
            "fio",
            f"randread-4k-qd{depth}",
            [
                ("host", "read_iops", {}, rate, "1/s", _H, "disk", depth == 32, 0.02),
                ("host", "read_bw", {}, rate * 4096, "B/s", _H, "disk", False, 0.02),
                ("host", "read_clat_p99", {}, 1.9 * depth / rate, "s", _L, "disk", depth == 32, 0.05),
            ],
        )
    yield (
        "fio",
        "seqread-1m-qd8",
        [
            ("host", "read_bw", {}, kind.iops * 4400, "B/s", _H, "disk", True, 0.01),
            ("host", "read_iops", {}, kind.iops * 4400 / MIB, "1/s", _H, "disk", False, 0.01),
            ("host", "read_clat_p99", {}, 8 * MIB / (kind.iops * 4400) * 1.4, "s", _L, "disk", False, 0.05),
        ],
    )
    if len(hosts) > 1:
        peers = [p for p in hosts if p != host] if len(hosts) <= 16 else [hosts[number - 1], hosts[number - 2]]
        for case, share in (("tcp-1", 0.62), ("tcp-8", 0.94), ("udp", 0.41)):
            metrics: list[_Metric] = []
            for peer in peers:
                link = min(kind.link, (OLD if hosts.index(peer) % 2 and len(hosts) > 16 else kind).link) * share
                if len(hosts) <= 16 and peer.startswith("ice") != host.startswith("ice"):
                    link = OLD.link * share
                pair = f"{host}>{peer}"
                metrics.append((pair, "bitrate", {}, link, "B/s", _H, "net", case == "tcp-8", 0.01))
                if case == "udp":
                    metrics.append((pair, "loss", {}, 0.0021, "1", _L, "net", False, 0.3))
                else:
                    metrics.append(
                        (pair, "retransmits", {}, 40.0 if case == "tcp-8" else 3.0, "1", _L, "net", False, 0.4)
                    )
            yield "iperf3", case, metrics
    for stride in (128, 1024):
        curve: list[_Metric] = []
        for step in range(2 * 10, 2 * 30 + 1):
            size = 2 ** (step / 2)
            labels = {"size": str(round(size)), "stride": str(stride)}
            value = _latency(size, kind, stride)
            last = step == 60 and stride == 1024
            curve.append(("host", "latency", labels, value, "s", _L, "mem-latency", last, 0.01))
        yield "lmbench", f"lat_mem_rd-{stride}", curve
    yield (
        "lmbench",
        "bw_mem",
        [
            ("host", op, {"size": str(64 * MIB)}, triad / kind.cores * f, "B/s", _H, m, False, 0.01)
            for op, f in (("rd", 1.4), ("wr", 0.9), ("cp", 0.8))
        ],
    )
    for case, metric, value, headline in (
        ("lat_syscall", "null", 7.1e-8, True),
        ("lat_ctx", "ctx", 1.9e-6, False),
        ("lat_pagefault", "pagefault", 2.4e-7, False),
        ("lat_pipe", "pipe", 4.6e-6, False),
        ("lat_tcp", "tcp", 1.1e-5, False),
    ):
        yield "lmbench", case, [("host", metric, {}, value, "s", _L, "os", headline, 0.02)]


def _latency(size: float, kind: Generation, stride: int) -> float:
    """Return the load latency for a working set: a plateau for each cache level, with smooth transitions."""
    levels = [
        (kind.l1, 1.4e-9),
        (kind.l2, 4.1e-9),
        (kind.l3, 14e-9),
        (math.inf, kind.dram * (1 if stride > 512 else 0.3)),
    ]
    latency = levels[0][1]
    for (edge, _), (_, after) in pairwise(levels):
        latency += (after - latency) / (1 + (edge / size) ** 4)
    return latency


def facts(host: str, kind: Generation, number: int) -> Facts:
    """Return the facts of a host. The second of every ten hosts has an older kernel, and host 17 lacks a DIMM."""
    full = kind.dimms - (1 if number == 17 else 0)
    return Facts(
        time=1772615520.0,
        skew=41.2 if host == "ice-b" else 0.02,
        hostname=host,
        user="bench",
        root=True,
        sudo=True,
        python="/usr/bin/python3",
        python_version="3.11.2",
        os="Debian GNU/Linux 12 (bookworm)",
        os_family="debian",
        kernel="6.1.0-18-amd64" if number % 10 == 1 else "6.1.0-28-amd64",
        cmdline="BOOT_IMAGE=/vmlinuz root=/dev/md0 ro quiet",
        virtualisation="none",
        vendor="Dell Inc." if kind is OLD else "Supermicro",
        product="PowerEdge R650" if kind is OLD else "AS -2125HS-TNR",
        bios="1.9.2" if kind is OLD else "1.4a",
        cpu=Cpu(
            model=kind.cpu,
            vendor=kind.vendor,
            arch="x86_64",
            sockets=2,
            cores=kind.cores * 2,
            threads=kind.cores * 4,
            max_hz=3.2e9 if kind is OLD else 3.75e9,
            microcode="0xd0003d1" if kind is OLD else "0xa101144",
            caches=(
                Cache(level=1, type="data", size=kind.l1, instances=64),
                Cache(level=1, type="instruction", size=32 * KIB, instances=64),
                Cache(level=2, type="unified", size=kind.l2, instances=64),
                Cache(
                    level=3,
                    type="unified",
                    size=kind.l3,
                    instances=2 if kind is OLD else 16,
                ),
            ),
        ),
        numa=tuple(NumaNode(id=i, cpus=tuple(range(i * 64, i * 64 + 64)), memory=256 * GIB) for i in range(2)),
        memory=full * 32 * GIB - 3_400_000 - number * 4096,
        memory_available=full * 31 * GIB - number * 10**7,
        dimms=tuple(
            Dimm(slot=f"CH{i}", size=32 * GIB if i < full else 0, type="DDR4" if kind is OLD else "DDR5")
            if i >= full
            else Dimm(
                slot=f"CH{i}",
                size=32 * GIB,
                type="DDR4" if kind is OLD else "DDR5",
                rated_mts=kind.mts,
                configured_mts=kind.mts,
            )
            for i in range(kind.dimms)
        ),
        disks=(
            Disk(
                name="nvme0n1",
                model="SAMSUNG MZQL23T8HCLS-00A07",
                size=3_840_755_982_336,
                rotational=False,
                transport="nvme",
            ),
        ),
        nics=(
            Nic(name="ens1f0np0", driver="mlx5_core", speed=kind.link, mtu=1500 if number == 1 else 9000, state="up"),
        ),
        governor="powersave" if number == 2 else "performance",
        boost=True,
        smt=True,
        thp="madvise",
        clocksource="tsc",
        mitigations={"spectre_v2": "Mitigation: Enhanced IBRS", "meltdown": "Not affected"},
        load1=0.1 * (number % 5),
        work_dir="/var/tmp/fleetmark",
        work_free=800 * GIB - number * 10**7,
        work_total=900 * GIB,
        work_fs="xfs",
        tools={"gcc": None if number == 4 else "/usr/bin/gcc", "fio": "/usr/bin/fio", "numactl": "/usr/bin/numactl"},
    )


def tiny(
    values: Mapping[str, list[float]],
    *,
    unit: str = "B/s",
    better: Better = Better.HIGHER,
    generations: Mapping[str, str] | None = None,
    ended: list[tuple[str, Status, str]] | None = None,
    finished: bool = True,
) -> Results:
    """Return a campaign of one headline, ``stream 2t triad``.

    ``values``: the repeats of each host. ``ended``: runs that did not pass.
    """
    columns: dict[str, list[object]] = {c: [] for c in OUTCOME_COLUMNS}
    runs = [(h, r, Status.PASSED, "") for h, repeats in values.items() for r in range(len(repeats))]
    runs += [(h, 90 + i, status, message) for i, (h, status, message) in enumerate(ended or [])]
    for host, repeat, status, message in runs:
        outcome = (host, "stream", "2t", repeat, status, message, "2026-03-04T09:12:00.000Z", 3.0, math.nan)
        for column, value in zip(OUTCOME_COLUMNS, outcome, strict=True):
            columns[column].append(value)
    triad = {"workload": "stream", "case": "2t", "metric": "triad", "unit": unit, "better": better, "class": "mem-bw"}
    triad |= {"time": "2026-03-04T09:12:00.000Z", "tool_version": "5.10", "status": Status.PASSED}
    rows = [
        row(**triad, host=host, repeat=repeat, value=value, raw=f"raw/{host}/{repeat}")
        for host, repeats in values.items()
        for repeat, value in enumerate(repeats)
    ]
    names = list(dict.fromkeys([*values, *(host for host, _, _ in ended or [])]))
    info = CampaignInfo(
        id="c1",
        created="2026-03-04T09:12:00Z",
        suite="quick",
        seed=7,
        command=["fleetmark", "run"],
        fleetmark_version="0.1.0",
        path=Path("results/c1"),
        finished=finished,
        wall_s=9.0,
    )
    return Results(
        info,
        tuple(HostInfo(name=n, generation=(generations or {}).get(n)) for n in names),
        pd.DataFrame(columns),
        Values(schema.frame(rows)),
    )
