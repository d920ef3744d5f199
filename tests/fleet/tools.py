"""Real tools in a folder that all hosts of a fleet see, because these hosts reach no package mirror."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SHARED = Path("/usr/local/share/fleetmark-tests")
ROLES = Path(__file__).parents[2] / "playbooks/roles"
PACKAGES = {  # by tool: its packages, and the programs taken from them
    "redis": ("redis-server", "redis-server redis-benchmark"),
    "nginx": ("nginx wrk", "nginx wrk"),
    "memcached": ("memcached libmemcached-tools", "memcached memcaslap"),
    "postgresql": ("postgresql", "initdb postgres psql pgbench"),
    "ucx_perftest": ("ucx-utils", "ucx_perftest"),
    "qperf": ("qperf", "qperf"),
    "hpcc": ("hpcc libopenblas0-pthread", "hpcc"),
    "stress": ("stress-ng", "stress-ng"),
}


def unpack(tool: str) -> str:
    """Unpack a tool of ``PACKAGES`` by the script of the role ``unpacked``, and return the folder of its programs."""
    folder = SHARED / tool
    _call(tool, ROLES / "unpacked/files/unpack.sh", str(folder), *PACKAGES[tool], "")
    return f"{folder}/bin"


def fetch_lmbench() -> str:
    """Fetch lmbench by the script of its role, and return the folder of its programs."""
    folder = SHARED / "lmbench"
    _call("lmbench", ROLES / "lmbench/files/fetch.sh", str(folder))
    return str(folder)


def _call(tool: str, script: Path, *words: str) -> None:
    """Run the script; skip the test if it fails."""
    done = subprocess.run(["sh", str(script), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{tool} cannot be fetched here: {done.stderr.strip().splitlines()[-1]}")
