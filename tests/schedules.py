"""Schedules without hosts: made-up facts, suites as text, and the schedule that follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleetmark.base.facts import Cache, Cpu, Disk, Facts
from fleetmark.campaign.schedule import make_schedule
from fleetmark.hosts.inventory import Host
from fleetmark.record.steps import Schedule
from fleetmark.workloads import load_suite

GiB = 1 << 30


def facts(**more: Any) -> Facts:
    usual = {
        "time": 0.0,
        "hostname": "h",
        "user": "root",
        "root": True,
        "python": "/usr/bin/python3",
        "python_version": "3.11.2",
        "os_family": "debian",
        "work_dir": "/var/tmp/fleetmark-0",
        "work_free": 100 * GiB,
        "work_fs": "ext4",
        "memory": 64 * GiB,
        "memory_available": 60 * GiB,
        "cpu": Cpu(cores=16, threads=32, caches=(Cache(level=3, type="unified", size=32 << 20, instances=4),)),
        "tools": {
            "fio": "/usr/bin/fio",
            "gcc": "/usr/bin/gcc",
            "iperf3": "/usr/bin/iperf3",
            "numactl": "/usr/bin/numactl",
        },
        "disks": (Disk(name="nvme0n1", in_use=("mounted at /",)), Disk(name="nvme1n1")),
    }
    return Facts(**{**usual, **more})


def schedule(
    suite: str, settings: Any = None, hosts: int = 1, seed: int = 1, repeats: int | None = None, **more: Any
) -> Schedule:
    named = [(Host(f"h{n}", f"10.0.0.{n}", f"10.0.0.{n}"), facts(**more)) for n in range(1, hosts + 1)]
    return make_schedule(named, load_suite(suite), settings or {}, campaign="c", seed=seed, repeats=repeats)


def suite(tmp_path: Path, text: str) -> str:
    file = tmp_path / "mine.yml"
    file.write_text(f"description: x\nrepeats: 2\nworkloads:\n{text}")
    return str(file)
