"""Campaigns of many like hosts on record, with faults of the tests' choice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fleetmark.record.archive import Archive
from tests.records import IOPS, NULL, TRIAD, Bench, record

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
