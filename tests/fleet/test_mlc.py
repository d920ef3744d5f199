"""MLC over real SSH, played by a stand-in: as root and not, with and without the msr module, on AMD, and broken."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fleetmark.workloads import load
from tests.fleet.command import Command, as_ops
from tests.fleet.hosts import Fleet
from tests.standins.mlc import tarball

pytestmark = pytest.mark.fleet

EVERY = list(load("mlc").parameters["modes"].choices)
# A host's CPU is what its lscpu says. Its kernel has the msr module, or lets modprobe load it, or (no /etc/msr) neither.
LSCPU = "#!/bin/sh\n/usr/bin/lscpu \"$@\" | sed -E 's/AuthenticAMD|GenuineIntel/{vendor}/'\n"
MODPROBE = """#!/bin/sh
case $* in
    msr)
        [ -e /etc/msr ] || { echo 'modprobe: FATAL: Module msr not found' >&2; exit 1; }
        mkdir -p /sys/module/msr /dev/cpu/0 /dev/cpu/1
        for n in 0 1; do { head -c 420 /dev/zero; printf '\\040\\0\\0\\0\\0\\0\\0\\0'; } >/dev/cpu/$n/msr; chmod 600 /dev/cpu/$n/msr; done
        ;;
    '-r msr') rm -r /sys/module/msr /dev/cpu ;;
    *) exit 1 ;;
esac
echo "$* $(stat -c %s /dev/cpu/0/msr 2>/dev/null)" >>/var/log/modprobe
"""
REGISTER = ["od", "-An", "-tx1", "-j420", "-N8", "/dev/cpu/0/msr"]
AS_IT_WAS = "20 00 00 00 00 00 00 00"


def put(fleet: Fleet, host: str, path: str, text: str) -> None:
    fleet.exec(host, ["sh", "-c", f"cat >{path}; chmod 755 {path}"], input=text)


def become(fleet: Fleet, host: str, vendor: str) -> None:
    put(fleet, host, "/usr/local/bin/lscpu", LSCPU.format(vendor=vendor))


@pytest.fixture(scope="module")
def hosts(fleet: Fleet) -> Iterator[Fleet]:
    """All Intel but h3. h1 loads msr when asked, h2 and h3 have it, h4 cannot have it."""
    for host in fleet.names:
        become(fleet, host, "AuthenticAMD" if host == "h3" else "GenuineIntel")
        put(fleet, host, "/usr/local/sbin/modprobe", MODPROBE)
        fleet.exec(host, ["mount", "-t", "tmpfs", "modules", "/sys/module"])
    for host in ("h1", "h2", "h3"):
        put(fleet, host, "/etc/msr", "")
    for host in ("h2", "h3"):
        fleet.exec(host, ["modprobe", "msr"])
    yield fleet
    tidy = (
        "umount /sys/module; rm -rf /dev/cpu /etc/msr /var/log/modprobe /usr/local/bin/lscpu /usr/local/sbin/modprobe"
    )
    for host in fleet.names:
        fleet.exec(host, ["sh", "-c", f"{tidy} /opt/mlc /var/tmp/fleetmark-0/tools/mlc-*"])


@pytest.fixture
def command(hosts: Fleet, tmp_path: Path) -> Iterator[Command]:
    yield Command(hosts, tmp_path)
    for host in hosts.names:
        hosts.exec(host, ["sh", "-c", "rm -f /etc/mlc_standin; : >/var/log/modprobe"])


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tarball.make(tmp_path_factory.mktemp("intel") / "mlc_v3.11b.tgz")


def suite(command: Command, *, also: str = "", **settings: Any) -> list[str]:
    file = command.root / "suite.yml"
    workloads: dict[str, Any] = {"mlc": {"set": settings}}
    if also:
        workloads[also] = {"set": {"commands": 1, "seconds": 0.1}}
    file.write_text(json.dumps({"description": "x", "repeats": 1, "workloads": workloads}))
    return ["--suite", str(file)]


def tarball_settings(archive: Path) -> dict[str, str]:
    return {"tarball": str(archive), "sha256": hashlib.sha256(archive.read_bytes()).hexdigest()}


def rows(command: Command, **fields: str) -> pd.DataFrame:
    frame = pd.read_parquet(command.campaign / "measurements.parquet")
    for key, value in fields.items():
        frame = frame[frame[key] == value]
    return frame


def figure(command: Command, host: str, metric: str) -> float:
    (value,) = rows(command, host=host, metric=metric)["value"]
    return float(value)


def outcomes(command: Command, host: str) -> dict[str, tuple[str, str]]:
    return {o["case"]: (o["status"], o["reason"]) for o in command.outcomes() if o["host"] == host}


def loads(fleet: Fleet, host: str) -> list[str]:
    """What modprobe was asked for there."""
    return [line.strip() for line in fleet.exec(host, ["cat", "/var/log/modprobe"]).stdout.splitlines()]


def test_every_mode_as_root_with_msr_loaded_for_the_run_or_there_already(command: Command, archive: Path) -> None:
    fleet = command.fleet
    fleet.exec("h2", ["sh", "-c", ": >/var/log/modprobe"])
    done = command.run(*suite(command, **tarball_settings(archive), modes=EVERY))
    assert done.returncode == 0, done.stdout + done.stderr
    for host in ("h1", "h2", "h4"):
        assert outcomes(command, host) == dict.fromkeys(EVERY, ("passed", ""))
    (reason,) = outcomes(command, "h3").values()
    assert reason == (
        "skipped",
        "needs an Intel CPU, as MLC cannot switch off the prefetchers of AuthenticAMD: measure latency with lmbench and bandwidth with stream",
    )

    for host in ("h1", "h2"):  # with control of the prefetchers
        assert figure(command, host, "local_latency") == pytest.approx(93.6e-9)
        assert figure(command, host, "peak_read_bandwidth") == pytest.approx(41877.5e6)
        assert not {m for m in rows(command, host=host)["metric"] if m.endswith(("_random", "_prefetched"))}
    assert figure(command, "h4", "local_latency_random") == pytest.approx(103.7e-9)
    assert "local_latency" not in set(rows(command, host="h4")["metric"])
    assert set(rows(command)["tool_version"]) == {"3.11b"}
    headlines = rows(command)[rows(command)["headline"]]
    assert set(headlines["metric"]) == {"local_latency", "local_latency_random", "peak_read_bandwidth"}
    classes = {(u, c) for u, c in zip(rows(command)["unit"], rows(command)["class"], strict=True)}
    assert classes == {("s", "mem-latency"), ("B/s", "mem-bw"), ("B/s", "core-bw")}

    assert loads(fleet, "h1") == ["msr 428", "-r msr"] * len(EVERY)
    assert fleet.exec("h1", ["ls", "/sys/module"]).stdout == ""
    assert loads(fleet, "h2") == [], "a module that was there is left alone"
    assert fleet.exec("h2", REGISTER).stdout.strip() == AS_IT_WAS
    files = fleet.exec("h2", ["sh", "-c", "ls /var/tmp/fleetmark-0/tools/mlc-*"]).stdout.split()
    assert files == ["mlc", "run.py"], "the tarball does not stay"


def test_an_ordinary_user_gets_random_latencies_from_a_tarball_by_url(
    command: Command, ordinary: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = command.fleet
    command.env["XDG_CACHE_HOME"] = str(command.root / "cache")
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(archive.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{archive.name}"
        words = suite(command, tarball=url, sha256=tarball_settings(archive)["sha256"].upper(), modes=EVERY)
        done = as_ops(ordinary, command, *words, "--limit", "h1")
        server.shutdown()
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(command, "h1") == dict.fromkeys(EVERY, ("passed", ""))
    assert figure(command, "h1", "local_latency_random") == pytest.approx(103.7e-9)
    latencies = set(rows(command, unit="s")["metric"])
    assert latencies == {f"{m}_random" for m in ("local_latency", "idle_latency", "loaded_latency", "c2c_latency")}
    assert loads(fleet, "h1") == [], "only root loads modules"


def test_mlc_that_breaks_fails_by_name_and_the_prefetchers_are_put_back(command: Command, archive: Path) -> None:
    """h1 and h2 hang, h2 even when interrupted; h3 crashes; h4 prints half a table. None puts the prefetchers back."""
    fleet = command.fleet
    become(fleet, "h3", "GenuineIntel")
    for host, ill in zip(fleet.names, ("hang", "stubborn", "crash", "cut"), strict=True):
        put(fleet, host, "/etc/mlc_standin", ill)
    try:
        done = command.run(
            *suite(command, **tarball_settings(archive), modes=["latency_matrix"], timeout=10, also="selftest")
        )
    finally:
        become(fleet, "h3", "AuthenticAMD")
    assert done.returncode == 1
    outcome_by_host = {host: outcomes(command, host)["latency_matrix"] for host in fleet.names}
    assert {status for status, _ in outcome_by_host.values()} == {"failed"}
    assert outcome_by_host["h1"][1].startswith(
        "no end after 10 s; mlc line 5: expected figures under the heading of idle latencies"
    )
    assert outcome_by_host["h2"][1].startswith("no end after 10 s")
    assert outcome_by_host["h3"][1].startswith("exit status 139: MLC was killed by signal 11")
    assert outcome_by_host["h4"][1].startswith("mlc line 7: expected figures under the heading of idle latencies")
    assert all(len(reason.splitlines()) == 1 for _, reason in outcome_by_host.values())

    note = "MLC left the prefetchers of 1 CPUs changed; they are as they were before\n"
    for host in ("h1", "h2", "h3"):
        assert note in (command.campaign / "raw" / host / "mlc/latency_matrix/0/stderr").read_text()
    for host in ("h2", "h3"):
        assert fleet.exec(host, REGISTER).stdout.strip() == AS_IT_WAS
    assert loads(fleet, "h1") == ["msr 428", "-r msr"]
    for host in fleet.names:
        assert command.count(host=host, workload="selftest") == {"passed": 1}
        assert fleet.exec(host, ["pgrep", "-f", "tools/mlc[-]"], check=False).stdout == ""


def test_a_host_without_mlc_says_what_it_lacks(command: Command, tmp_path: Path) -> None:
    """h1 has MLC where mlc.path says, h2 has none; large pages that were asked for are not there."""
    fleet = command.fleet
    fleet.exec("h1", ["mkdir", "-p", "/opt/mlc"])
    put(fleet, "h1", "/opt/mlc/mlc", tarball.standin().decode())
    both = ["--limit", "h1,h2"]
    done = command.run(*suite(command, path="/opt/mlc/mlc", modes=["idle_latency"], also="selftest"), *both)
    assert done.returncode == 1
    assert outcomes(command, "h1")["idle_latency"] == ("passed", "")
    assert figure(command, "h1", "idle_latency") == pytest.approx(80.1e-9)
    assert command.count(host="h2", workload="selftest") == {"passed": 1}
    status, reason = outcomes(command, "h2")["idle_latency"]
    assert status == "failed"
    assert "could not be deployed: " in reason
    assert (
        "mlc.path: /opt/mlc/mlc is not a program that root may run on this host: put MLC there, or set mlc.tarball"
        in reason
    )

    large = Command(fleet, tmp_path / "large")
    large.root.mkdir()
    large.run(*suite(large, path="/opt/mlc/mlc", modes=["latency_matrix"], extra="-L"), "--limit", "h1")
    status, reason = outcomes(large, "h1")["latency_matrix"]
    assert status == "failed"
    assert "exit status 13: Likely insufficient large pages in the system" in reason


def test_a_tarball_without_mlc_fails_by_name(command: Command, tmp_path: Path) -> None:
    other = tarball.make(tmp_path / "mlc_v3.11b.tgz", ["Windows/mlc.exe", "Linux/redist.txt"])
    done = command.run(*suite(command, **tarball_settings(other), modes=["idle_latency"]), "--limit", "h1")
    assert done.returncode == 1
    status, reason = outcomes(command, "h1")["idle_latency"]
    assert status == "failed"
    assert reason.endswith("mlc_v3.11b.tgz holds no program mlc for Linux: give Intel's mlc_v3.x.tgz as mlc.tarball")


def test_a_wrong_checksum_is_refused_before_any_host_is_touched(command: Command, archive: Path) -> None:
    right = tarball_settings(archive)["sha256"]
    for sha256, words in (("1" * 64, f"has sha256 {right}, not {'1' * 64}"), ("", f"has sha256 {right}")):
        done = command.run(*suite(command, tarball=str(archive), sha256=sha256))
        assert done.returncode == 2
        assert words in " ".join(done.stderr.split())
        assert not list(command.root.glob("*/campaign.json"))
