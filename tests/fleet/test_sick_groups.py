"""One of four real hosts has a slow port: collectives of all four are slow, and groups of fewer find it.

The port is fivefold slower than its peers', which are limited to what the machine gives at any load: a tenth of a second for
each operation.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import torches
from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing
from tests.torches import PYTHON, needs_torch

pytestmark = [pytest.mark.fleet, needs_torch]
SUITE = {
    "description": "a collective of all hosts",
    "repeats": 1,
    "workloads": {
        "torch_collectives": {
            "set": {
                "python": PYTHON,
                "nodes": ["all"],
                "collectives": ["all_reduce"],
                "min_bytes": "128KiB",
                "max_bytes": "128KiB",
                "budget": 0.02,
                "check": False,
            }
        }
    },
}

LEAST = ("--least", "50%")  # a busy machine delays a healthy pair by less; the slow port takes 80%
LOOPBACK = ("rate", "20mbit", "burst", "128kb", "latency", "400ms")  # of which a busy machine gives anything else


@pytest.fixture(scope="module")
def four() -> Iterator[Fleet]:
    """Four hosts with ports of 10 Mbit/s, but for h3, which has 2; all see the Python with torch."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(4, share=torches.folders()) as hosts:
        for host in hosts.names:
            hosts.rate(host, "2mbit" if host == "h3" else "10mbit", burst=16 << 10)
            hosts.exec(host, ["tc", "qdisc", "replace", "dev", "lo", "root", "tbf", *LOOPBACK])
        yield hosts


def isolated(command: Command) -> tuple[int, Any]:
    words = [FLEETMARK, "diagnose", "last", "--isolate", "torch_collectives/all_reduce-4n", "--format", "json", *LEAST]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, env={**os.environ, **command.env})
    assert "Traceback" not in done.stderr and done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_groups_name_the_host_with_the_slow_port(four: Fleet, tmp_path: Path) -> None:
    (tmp_path / "all.yml").write_text(json.dumps(SUITE))
    command = Command(four, tmp_path)
    command.passes("--suite", str(tmp_path / "all.yml"))
    status, answer = isolated(command)
    assert status == 1 and [(f["kind"], f["of"]) for f in answer["faults"]] == [("node", ["h3"])]
    assert answer["runs"]["more"] >= 4 and answer["runs"]["all_pairs"] == 6  # of ten hosts on it takes fewer than pairs
    assert isolated(command) == (1, answer), "nothing runs again"
