"""The driver of clients: the search for the most that keep a limit, halves of cores, and the marks that a parser reads."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetmark.hosts.agent import PLAYBOOKS

LOAD = PLAYBOOKS / "roles" / "load" / "files" / "load.py"
spec = importlib.util.spec_from_file_location("load", LOAD)
assert spec and spec.loader
load: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(load)


def server(cores: int, service: float) -> Callable[[int], tuple[float, float]]:
    """A closed loop in front of ``cores`` that take ``service`` seconds: rate, and a latency that grows by queueing."""
    return lambda n: (min(n, cores) / service, service * max(1.0, n / cores))


@pytest.mark.parametrize(
    ("limit", "limit_clients", "expected"),
    [
        (0.010, 1024, range(8, 11)),  # beyond 8 the rate is the same: the fewest of those probed
        (0.001, 1024, range(8, 9)),
        (0.0005, 1024, None),
        (100.0, 4, range(4, 5)),
        (100.0, 1, range(1, 2)),
    ],
)
def test_the_search_ends_at_the_most_that_keep_the_limit(
    limit: float, limit_clients: int, expected: range | None
) -> None:
    clients = load.search(server(8, 0.001), limit, limit_clients)
    assert clients in expected if expected else clients is None


def test_the_gap_is_halved_down_to_a_tenth() -> None:
    probed = []

    def probe(n: int) -> tuple[float, float]:
        probed.append(n)
        return float(n), 0.001 if n <= 700 else 1.0

    clients = load.search(probe, 0.01, 4096)
    assert 700 / load.COARSE <= clients <= 700
    assert len(probed) < 20


def test_one_stall_is_no_limit() -> None:
    stalls = iter([True])
    clients = load.search(lambda n: (float(n), 1.0 if n == 4 and next(stalls, False) else 0.001), 0.01, 8)
    assert clients == 8


def test_cores_are_halved_with_their_threads() -> None:
    assert load.cpus("0-2,8\n") == [0, 1, 2, 8]
    assert load.halves([[0, 4], [1, 5], [2, 6], [3, 7], [0, 4], [1, 5]]) == ({0, 1, 4, 5}, {2, 3, 6, 7})
    assert load.halves([[0, 1], [0, 1]]) is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("196.00us", 196e-6), ("2.97ms", 2.97e-3), ("1.20s", 1.2), ("1", None), ("x", None)]
)
def test_times_with_units(text: str, seconds: float | None) -> None:
    assert load.seconds_of(text) == (None if seconds is None else pytest.approx(seconds))


CLIENT = """
import load, sys
def command_of(clients, seconds, rate):
    return [sys.executable, "-c", %r, str(clients)]
chosen = load.options()
load.Client(chosen, command_of, lambda text: (float(text.split()[0]), float(text.split()[1]))).go()
"""


def driven(tmp_path: Path, inner: str, *words: str) -> subprocess.CompletedProcess[str]:
    client = tmp_path / "client.py"
    client.write_text(CLIENT % inner)
    return subprocess.run(
        [sys.executable, str(client), *words], capture_output=True, text=True, env={"PYTHONPATH": str(LOAD.parent)}
    )


def test_a_run_stands_between_marks(tmp_path: Path) -> None:
    ran = driven(tmp_path, "import sys; print(100 * int(sys.argv[1]), 0.001)", "--limit", "0.01", "--most", "2")
    assert ran.stdout.splitlines() == [
        *("fleetmark: probe of 1 clients, limit 0.01 s", "100 0.001", "fleetmark: end of probe, exit status 0"),
        *("fleetmark: probe of 2 clients, limit 0.01 s", "200 0.001", "fleetmark: end of probe, exit status 0"),
        *("fleetmark: run of 2 clients, limit 0.01 s", "200 0.001", "fleetmark: end of run, exit status 0"),
    ]


def test_a_run_that_breaks_the_limit_is_tried_with_fewer(tmp_path: Path) -> None:
    inner = "import sys; n = int(sys.argv[1]); print(n, 0.1)"
    ran = driven(tmp_path, inner, "--limit", "0.01", "--most", "2")
    assert ran.stdout.splitlines()[-1] == "fleetmark: the limit of 0.01 s is not kept"
    assert ran.stdout.count("probe of 1 clients") == 2 and "run of" not in ran.stdout


def test_a_client_that_fails_ends_the_case_with_its_last_line(tmp_path: Path) -> None:
    ran = driven(tmp_path, "import sys; sys.exit('no route\\nto the server')", "--clients", "3")
    assert ran.returncode == 1 and ran.stderr.strip() == "to the server"
    assert "fleetmark: end of run, exit status 1" in ran.stdout


@pytest.mark.parametrize(
    "file", ["load/files/load.py", *(f"{w}/files/client.py" for w in ("redis_benchmark", "nginx_wrk", "pgbench")),
             *(f"{w}/files/server.py" for w in ("nginx_wrk", "pgbench"))]
)  # fmt: skip
def test_it_runs_on_old_pythons(file: str) -> None:
    vermin = [str(Path(sys.executable).with_name("vermin")), "-t=3.6-", "--no-tips", str(PLAYBOOKS / "roles" / file)]
    ran = subprocess.run(vermin, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
