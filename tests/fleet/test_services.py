"""Servers of internet services over real SSH: Redis, nginx and PostgreSQL on one host, their clients on another, and nothing
of them left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.fleet import tools
from tests.fleet.command import Command, as_ops
from tests.fleet.hosts import Fleet

pytestmark = pytest.mark.fleet


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    return {name: tools.unpack(name) for name in ("redis", "nginx", "memcached", "postgresql")}


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., str]:
    def write(**workloads: dict[str, Any]) -> str:
        file = tmp_path / "suite.yml"
        chosen = {name: {"cases": settings.pop("cases", []), "set": settings} for name, settings in workloads.items()}
        file.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": chosen}))
        return str(file)

    return write


def left(fleet: Fleet, *hosts: str) -> str:
    """Processes and listeners of ours on the hosts."""
    script = "pgrep -x 'redis-server|memcached|memcaslap|nginx|postgres|wrk|pgbench|redis-benchmark'; ss -Hltn | grep -E ':(173|174)'"
    return "".join(fleet.exec(host, ["sh", "-c", script], check=False).stdout for host in hosts)


SEARCH = {"latency_target": 3600, "most": 2, "probe": 1, "duration": 1, "clients": 2}
# On a busy machine a database may finish no transaction within a second.
SMALL_DATABASE = {"scale": 1, "shared_buffers": "16MiB", "scripts": "tpcb-like", **SEARCH, "probe": 3, "duration": 5}


def test_caches_and_web_servers_between_two_hosts(
    command: Command, suite: Callable[..., str], programs: dict[str, str]
) -> None:
    text = suite(
        openssl_speed={"algorithms": ["aes-256-gcm", "ecdsap256"], "seconds": 1, "processes": 2},
        redis_benchmark={"path": programs["redis"], "tests": "set", **SEARCH},
        memcached={"path": programs["memcached"], "cases": ["*-p99-*"], **SEARCH},
        nginx_wrk={"path": programs["nginx"], "cases": ["*-p99-*"], **SEARCH},
    )
    done = command.run("--suite", text, "--limit", "h1,h2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert command.count() == {"passed": 2 * 2 + 4 * 2}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    assert set(frame.query("workload == 'openssl_speed'")["metric"]) == {"throughput", "sign", "verify"}
    rates = frame.query("metric == 'requests_per_second'")
    assert set(rates["subject"]) == {"h1>h2", "h2>h1"}
    assert set(rates["case"]) == {"set-c2", *(f"{name}-p99-3600000000us" for name in ("set", "get9-set1", "http-1k"))}
    assert (rates["value"] > 100).all()
    kept = frame.query("metric == 'clients' and case.str.contains('p99')", engine="python")["value"]
    assert len(kept) == 6 and set(kept) <= {1, 2}
    assert left(command.fleet, "h1", "h2") == ""
    touched = "ls -d /var/lib/nginx /etc/nginx /var/log/nginx /var/lib/redis /etc/redis 2>/dev/null"
    assert command.fleet.exec("h2", ["sh", "-c", touched], check=False).stdout == ""


def test_a_database_under_an_ordinary_account(
    ordinary: Path, command: Command, suite: Callable[..., str], programs: dict[str, str]
) -> None:
    small = SMALL_DATABASE | {"path": programs["postgresql"]}
    done = as_ops(ordinary, command, "--suite", suite(pgbench=small))
    assert done.returncode == 0, done.stdout + done.stderr
    check_database(command, "h1", "h4")


def test_a_database_as_root_runs_as_nobody(
    command: Command, suite: Callable[..., str], programs: dict[str, str]
) -> None:
    text = suite(pgbench=SMALL_DATABASE | {"path": programs["postgresql"]})
    running = command.begin("--suite", text, "--limit", "h1,h2")
    users: set[str] = set()

    def is_over() -> bool:
        for host in ("h1", "h2"):
            users.update(command.fleet.exec(host, ["ps", "-C", "postgres", "-o", "user="], check=False).stdout.split())
        return running.poll() is not None

    command.until(is_over)
    assert running.returncode == 0, command.output()
    assert users == {"nobody"}
    check_database(command, "h1", "h2")


def check_database(command: Command, *hosts: str) -> None:
    assert command.count() == {"passed": 2 * 2}
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    rates = frame.query("metric == 'transactions_per_second'")
    assert set(rates["case"]) == {"tpcb-like-s1-c2", "tpcb-like-s1-p99-3600000000us"}
    assert (rates["value"] > 1).all()
    assert (frame.query("metric == 'latency_p99'")["value"] > 0).all()
    assert left(command.fleet, *hosts) == ""


def test_what_cannot_be_is_said_in_one_sentence(
    command: Command, suite: Callable[..., str], programs: dict[str, str]
) -> None:
    """A taken port, a folder without the programs."""
    listen = "import socket,time;s=socket.socket();s.bind(('',17379));s.listen();time.sleep(3600)"
    listens = "until ss -Hltn | grep -q :17379; do sleep 0.05; done"
    taken = ["sh", "-c", f'python3 -c "{listen}" >/dev/null 2>&1 & {listens}; echo $!']
    process = command.fleet.exec("h2", taken).stdout.strip()
    text = suite(
        redis_benchmark={"path": programs["redis"], "tests": "set", **SEARCH, "latency_target": 0},
        nginx_wrk={"path": "/opt/none", **SEARCH},
    )
    try:
        refused = command.run("--suite", text, "--limit", "h1,h2")
        done = command.run("--suite", text, "--limit", "h1,h2", "--include-busy")
    finally:
        command.fleet.exec("h2", ["kill", process])
    assert refused.returncode == 2 and "h2: services on TCP ports 17379" in refused.stdout
    assert done.returncode == 1
    reasons = {(o["workload"], o["subject"]): o["reason"] for o in command.outcomes()}
    assert "port 17379 is in use on this host" in reasons["redis_benchmark", "h1>h2"]
    assert command.count(workload="redis_benchmark", subject="h2>h1") == {"passed": 1}
    assert "/opt/none on this host does not hold all of nginx wrk" in reasons["nginx_wrk", "h1>h2"]
    assert left(command.fleet, "h1", "h2") == ""
