"""Hosts whose package mirror is blocked: the survey names them, and a run has one failure for each workload."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet
SILENT = "no package mirror answers ("


class Mirror(http.server.SimpleHTTPRequestHandler):
    """Answer as a mirror that has no such list, and record who asks."""

    asking: set[str]

    def do_GET(self) -> None:
        self.asking.add(self.client_address[0])
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Two hosts that lack fio and iperf3."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(2) as hosts:
        for host in hosts.names:
            hosts.lacks(host, "fio")
            hosts.exec(host, ["dpkg", "--remove", "--force-depends", "fio", "iperf3"])
        yield hosts


@pytest.fixture(scope="module")
def asking(fleet: Fleet) -> Iterator[set[str]]:
    """The addresses that ask a mirror on this machine, the only one that hosts know; h2 does not reach it."""
    asking: set[str] = set()
    handler = functools.partial(type("Handler", (Mirror,), {"asking": asking}))
    with http.server.ThreadingHTTPServer((fleet.address("h0"), 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source = f"deb http://{fleet.address('h0')}:{server.server_port}/debian bookworm main"
        for host in fleet.names:
            only = f"rm -rf /etc/apt/sources.list.d/*; echo '{source}' > /etc/apt/sources.list"
            fleet.exec(host, ["sh", "-ec", only])
        chain = "add table inet wall; add chain inet wall out { type filter hook output priority 0; }"
        fleet.exec("h2", ["nft", f"{chain}; add rule inet wall out tcp dport {server.server_port} drop"])
        yield asking
        server.shutdown()


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """Return a suite with 12 runs of tools that both hosts lack, and a workload that needs nothing."""
    fio = {"runtime": 1, "ramp": 0, "size": "16MiB", "seq": ["read", "write"], "rand": ["randread"], "rand_iodepth": 1}
    file = tmp_path / "suite.yml"
    chosen = {"fio": {"set": fio}, "iperf3": {}, "selftest": {"set": {"commands": 1, "seconds": 0.1}}}
    file.write_text(json.dumps({"description": "x", "repeats": 2, "workloads": chosen}))
    return str(file)


def test_the_survey_says_which_hosts_reach_no_mirror(
    fleet: Fleet, asking: set[str], suite: str, tmp_path: Path
) -> None:
    command = Command(fleet, tmp_path)
    words = [FLEETMARK, "hosts", "-i", str(fleet.inventory), "--suite", suite]
    done = subprocess.run([*words, "--format", "json"], capture_output=True, text=True, env=command.env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    hosts = {entry["host"]: entry for entry in json.loads(done.stdout)}
    assert hosts["h1"]["deploy"] == hosts["h2"]["deploy"] == ["fio", "iperf3"]
    assert hosts["h1"]["mirror"] is None and asking == {fleet.address("h1")}
    assert hosts["h2"]["mirror"].startswith(f"{SILENT}{fleet.address('h0')}:")
    shown = subprocess.run(words, capture_output=True, text=True, env=command.env, cwd=tmp_path).stdout
    lines = shown.splitlines()
    assert lines[lines.index("Packages that cannot be installed") + 1].strip() == f"{hosts['h2']['mirror']}  [h2]"


def test_each_workload_has_one_failure_and_the_others_run(
    fleet: Fleet, asking: set[str], suite: str, tmp_path: Path
) -> None:
    command = Command(fleet, tmp_path)
    done = command.run("--suite", suite)
    assert done.returncode == 1
    reasons = defaultdict(set)
    for outcome in command.outcomes():
        if outcome["workload"] != "selftest":
            assert outcome["status"] == "failed"
            reasons[outcome["host"], outcome["workload"]].add(outcome["reason"])
    assert {len(texts) for texts in reasons.values()} == {1}
    for workload in ("fio", "iperf3"):
        (reason,) = reasons["h2", workload]
        assert reason.startswith(
            f"could not be deployed: Packages for {workload}: could not install {workload}: {SILENT}"
        )
        assert SILENT not in "".join(reasons["h1", workload]), "its mirror answers, and has no such package"
        lines = [line for line in done.stdout.splitlines() if f"h2: {workload}: " in line and "runs failed" in line]
        assert len(lines) == 1, done.stdout
    assert command.count(workload="selftest") == {"passed": 4}
