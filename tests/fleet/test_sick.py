"""Three sick hosts among eight real ones: each is named in what it is slow in, a repeat confirms it, nobody else is named.

The faults are two- to tenfold, and every host is limited to what the machine usually gives at any load.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet

SUITE = """
description: one case of each part of a host
repeats: 1
workloads:
  openssl_speed: {set: {algorithms: [sha256], processes: [1], seconds: 1}}
  fio: {cases: ["read-*"], set: {directories: [/srv], seq: [read], size: 1MiB, runtime: 1, ramp: 0, seq_iodepth: [4], seq_bs: [64k]}}
  iperf3: {set: {streams: [1], udp_rate: "", duration: 1, omit: 0, pairs: "3"}}
"""
LOOPBACK = ("rate", "400mbit", "burst", "256kb", "latency", "50ms")  # of which a busy machine gives anything else


@pytest.fixture(scope="module")
def eight() -> Iterator[Fleet]:
    """Eight equal hosts: a fifth of a core, 8 MB/s of disk, 200 Mbit/s; one host has far less of each."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(8) as hosts:
        for host in hosts.names:
            hosts.cpu(host, 8 if host == "h2" else 20)  # what is not measured takes as much longer
            hosts.io(host, 800_000 if host == "h5" else 8_000_000)
            hosts.rate(host, "20mbit" if host == "h7" else "200mbit")
            hosts.exec(host, ["tc", "qdisc", "replace", "dev", "lo", "root", "tbf", *LOOPBACK])
        yield hosts


def fleetmark(root: Path, *words: str) -> tuple[int, Any]:
    done = subprocess.run(
        [FLEETMARK, *words, "--results", str(root), "--format", "json"], capture_output=True, text=True, timeout=600
    )
    assert "Traceback" not in done.stderr and done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_each_sick_host_is_named_and_confirmed(eight: Fleet, tmp_path: Path) -> None:
    (tmp_path / "parts.yml").write_text(SUITE)
    command = Command(eight, tmp_path)
    sick = {("h2", "openssl_speed"), ("h5", "fio"), ("h7", "iperf3")}
    for seed in ("1", "2", "3"):  # a host of a busy machine may be slow for other reasons
        command.passes("--suite", str(tmp_path / "parts.yml"), "--seed", seed)
        status, diagnosis = fleetmark(tmp_path, "diagnose", "last", "--confirm")
        named = {(f["host"], f["benchmark"]["workload"]): f for f in diagnosis["findings"]}
        if set(named) == sick and {f["settled"]["verdict"] for f in named.values()} == {"confirmed"}:
            break
    assert status == 1 and set(named) == sick
    assert {f["settled"]["verdict"] for f in named.values()} == {"confirmed"}
    assert all(f["deficit"] > 0.4 and f["evidence"] for f in named.values())


def test_isolation_names_the_host_with_the_slow_port(eight: Fleet, tmp_path: Path) -> None:
    for host in eight.names:
        eight.cpu(host, 0)
    (tmp_path / "pairs.yml").write_text(
        "description: two rounds of pairs\nrepeats: 1\nworkloads:\n"
        '  iperf3: {cases: [tcp-1], set: {udp_rate: "", duration: 1, omit: 0, pairs: "2"}}\n'
    )
    command = Command(eight, tmp_path)
    for seed in ("1", "2", "3"):  # links between processes of one busy machine may be slow for other reasons
        command.passes("--suite", str(tmp_path / "pairs.yml"), "--seed", seed)
        status, answer = fleetmark(tmp_path, "diagnose", "last", "--isolate", "iperf3/tcp-1")
        faults = [(f["kind"], f["of"], f["reason"]) for f in answer["faults"]]
        if faults == [("node", ["h7"], "slow-with-every-known-good-partner")]:
            break
    assert status == 1 and faults == [("node", ["h7"], "slow-with-every-known-good-partner")]
    assert answer["faults"][0]["deficit"] > 0
    assert answer["runs"]["more"] < answer["runs"]["all_pairs"] == 28 and len(answer["campaigns"]) == 2
    assert fleetmark(tmp_path, "diagnose", "last", "--isolate", "iperf3/tcp-1") == (1, answer)  # nothing runs again
