"""Campaigns of many like hosts on record, with faults of the tests' choice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fleetmark.base.facts import Nic
from fleetmark.record.archive import Archive
from fleetmark.record.campaigns import find
from fleetmark.record.diagnosis import baselines, read
from tests.records import IOPS, NULL, TRIAD, Bench, record
from tests.schedules import facts

HOSTS = tuple(f"n{i:02d}" for i in range(16))
Values = dict[tuple[str, Bench], list[float]]


def usual(hosts: tuple[str, ...] = HOSTS, repeats: int = 5, seed: int = 1) -> Values:
    rng = np.random.default_rng(seed)
    return {
        (host, bench): list(level * np.exp(rng.normal(0, 0.01, repeats)))
        for host in hosts
        for bench, level in ((TRIAD, 281e9), (IOPS, 1e6), (NULL, 92e-9))
    }


def scaled(values: Values, host: str, bench: Bench, factor: float) -> None:
    values[host, bench] = [factor * v for v in values[host, bench]]


def ring(slow: str, link: tuple[str, str]) -> Values:
    """iperf3 between neighbours: the host ``slow`` with all, and one slow ``link``."""
    rng = np.random.default_rng(6)
    values: Values = {}
    for number, host in enumerate(HOSTS):
        for step in (1, 2, 3, 5):
            other = HOSTS[(number + step) % len(HOSTS)]
            bench = Bench("iperf3", "tcp", "bitrate", "B/s", "higher", "net", subject=f"{host}>{other}")
            factor = 0.8 if slow in (host, other) else 0.5 if (host, other) == link else 1.0
            values[host, bench] = list(1e9 * factor * np.exp(rng.normal(0, 0.01, 3)))
    return values


def campaign(
    root: Path,
    values: Values,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    name: str = "20260101T000000-x",
) -> Archive:
    hosts = {host: (labels or {}).get(host, {}) for host in dict.fromkeys(h for h, _ in values)}
    return record(root, name, hosts, values)


HPL = Bench("hpcc", "all-cores", "hpl", "FLOP/s", "higher", "cpu-fp")
L3 = Bench("lmbench", "bw_cache-l3", "rd", "B/s", "higher", "core-bw")


def sick(root: Path) -> Archive:
    """A campaign in which n03's memory and n05's network are slow, with rates of computing and caches, and ports of
    2.5 GB/s."""
    values = usual()
    scaled(values, "n03", TRIAD, 0.8)
    values |= {(host, HPL): [1.6e12] for host in HOSTS} | {(host, L3): [2e12] for host in HOSTS}
    pairs: Values = {}
    for (host, bench), each in ring("n05", ("n02", "n04")).items():
        named = {name: getattr(bench, name) for name in bench.__dataclass_fields__}
        pairs[host, Bench(**{**named, "case": "tcp-1"})] = each
    archive = campaign(root, values | pairs)
    for host in HOSTS:
        archive.save_facts(host, facts(nics=(Nic(name="ens1", speed=2.5e9, state="up"),)), {})
    return archive


def older_baseline(root: Path, name: str, campaign: str = "last") -> Path:
    """Save a campaign as earlier versions saved a baseline, ``baselines/NAME.1.json``, and return the file."""
    archive = find(root, campaign)
    measured = baselines.as_text(*read(archive))
    head = {"schema": 1, "name": name, "version": 1, "created": "2026-01-01T00:00:00Z", "campaign": archive.id}
    file = root / "baselines" / f"{name}.1.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({**head, **(measured or {})}))
    return file
