"""Hosts in use are refused before anything is deployed: in production, under load, with other users or services."""

from __future__ import annotations

import importlib.util
import io
import os
import pwd
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cpu, Facts
from fleetmark.campaign.options import Options
from fleetmark.campaign.prepare import leave_out_busy, refuse_busy
from fleetmark.campaign.resumed.scheduled import Request
from fleetmark.hosts.guard import OWN_PORTS, why_in_use
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked
from fleetmark.workloads.suite import Choice, Suite

AGENT = Path(__file__).parents[1] / "playbooks" / "agent" / "usage.py"
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "production.md"
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def facts(**more: Any) -> Facts:
    known: dict[str, Any] = {"time": 1.0, "hostname": "db1", "user": "root", "root": True, "work_dir": "/srv/x"}
    return Facts(**known, python="/usr/bin/python3", python_version="3.11.2", cpu=Cpu(threads=64), **more)


def host(name: str = "db1", **more: Any) -> Host:
    return Host(name, "10.0.0.1", "10.0.0.1", **more)


@pytest.mark.parametrize(
    ("labels", "mark"),
    [
        ({"production": "true"}, "production=true"),
        ({"Production": "eu"}, "Production=eu"),
        ({"rack": "r1", "stage": "production"}, "stage=production"),
        ({"production": "false"}, ""),
        ({"production": "no"}, ""),
        ({"stage": "staging"}, ""),
    ],
)
def test_a_label_marks_production(labels: dict[str, str], mark: str) -> None:
    expected = mark and f"in production by the label {mark}"
    assert why_in_use(host(labels=labels), facts()) == expected


def test_a_group_marks_production() -> None:
    assert (
        why_in_use(host(groups=("web", "production")), facts()) == "in production by the inventory's group production"
    )


@pytest.mark.parametrize(
    ("load", "running", "is_busy"),
    [
        (40.0, 38, True),
        (40.0, 2, False),  # a benchmark has just ended
        (3.0, 38, False),  # something has just started
        (32.0, 17, False),  # half of the CPUs is the limit
        (32.5, 17, True),
        (32.5, 16, False),
        (40.0, None, False),  # a container
        (None, 38, False),
    ],
)
def test_load_counts_if_it_lasts(load: float | None, running: int | None, is_busy: bool) -> None:
    reason = why_in_use(host(), facts(load1=load, running=running))
    assert bool(reason) == is_busy
    assert not reason or reason == f"busy (load {load:g}, runnable threads {running}, CPUs 64)"


def test_services_are_named() -> None:
    ports = (22, 3306, *range(8000, 8010))
    expected = "services on TCP ports 3306, 8000, 8001, 8002, 8003, 8004, 8005, 8006 and 3 more"
    assert why_in_use(host(), facts(ports=ports)) == expected
    administration = tuple(port for ports in OWN_PORTS.values() for port in ports)
    assert why_in_use(host(), facts(ports=administration)) == ""
    assert why_in_use(host(port=2222), facts(ports=(2222,))) == "" and why_in_use(host(), facts(ports=(2222,))) != ""
    assert why_in_use(host(), facts(ports=(40_000,))) == "", "the kernel chose this port"
    assert why_in_use(host(ignored_ports=frozenset({3306})), facts(ports=(3306,))) == ""


def test_the_docs_list_the_ports_of_administration() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([\d, ]+)[^|]* \|$", PAGE.read_text(), re.MULTILINE)
    listed = {name: [int(port) for port in ports.split(",") if port.strip()] for name, ports in rows}
    assert listed == {name: list(ports) for name, ports in OWN_PORTS.items()}


@pytest.mark.parametrize(
    ("url", "is_measured"),
    [
        ("http://db1:8000/v1", True),
        ("http://10.0.0.1:8000", True),
        ("http://[::1]:8000", True),
        ("http://db2:8000", False),  # another host
        ("http://db1:8001", False),
        ("https://db1", False),
    ],
)
def test_an_endpoint_to_measure_is_no_foreign_service(url: str, is_measured: bool) -> None:
    assert bool(why_in_use(host(), facts(ports=(8000,)), urls=[url])) != is_measured
    assert why_in_use(host(), facts(ports=(80, 443)), urls=["http://db1", "https://db1"]) == ""


def test_users_are_named_once() -> None:
    assert why_in_use(host(), facts(), ["ann", "bob", "ann"]) == "other users at terminals: ann, bob"


def test_all_causes_are_named() -> None:
    marked = host(labels={"production": "yes"})
    assert why_in_use(marked, facts(load1=60.0, running=61, ports=(80,)), ["ann"]) == (
        "in production by the label production=yes; busy (load 60, runnable threads 61, CPUs 64); "
        "other users at terminals: ann; services on TCP ports 80"
    )


def guarded(*checked: Checked) -> str:
    """Return what a run prints of hosts, with its error."""
    console = Console(width=200, file=io.StringIO())
    with console.capture() as shown:
        try:
            refuse_busy(checked, [], console)
        except FleetmarkError as error:
            console.print(error, soft_wrap=True)
    return shown.get()


BUSY = facts(load1=60.0, running=61)
REFUSED = "nothing was deployed on any host; add --include-busy to measure anyway, or exclude hosts with --limit"


def test_a_run_refuses_hosts_with_a_line_for_each_cause() -> None:
    marked = [Checked(host=host(f"db{n}", labels={"production": "yes"}), facts=facts()) for n in (1, 2, 3)]
    used = [Checked(host=host(f"db{n}"), facts=facts(ports=(80,)), users=("ann",)) for n in (7, 8)]
    others = [Checked(host=host("db5"), facts=facts(ports=(22,))), Checked(host=host("db6"), reason="gone")]
    text = guarded(*marked, Checked(host=host("db4"), facts=BUSY), *used, *others)
    assert text.splitlines() == [
        "db[1-3]: in production by the label production=yes",
        "db4: busy (load 60, runnable threads 61, CPUs 64)",
        "db7, db8: other users at terminals: ann; services on TCP ports 80",
        f"hosts in use: 6; {REFUSED}; if services may stay, list their ports as fleetmark_ignored_ports in the inventory",
    ]
    assert guarded(Checked(host=host("db4"), facts=BUSY)).endswith(f"hosts in use: 1; {REFUSED}\n")


def test_this_machine_is_never_refused() -> None:
    here = facts(load1=60.0, running=61, ports=(3000, 3306))
    text = guarded(Checked(host=host("here", connection="local"), facts=here, users=("ann",)))
    assert text == "here: busy (load 60, runnable threads 61, CPUs 64)\n"


def test_hosts_in_use_do_not_join_a_campaign() -> None:
    suite = Suite(name="x", description="x", workloads={"llm_serve": Choice(set={"url": "http://db3:8000"})})
    request = Request.model_construct(suite_as_read=suite, settings={})
    names = ("db1", "db2", "db3", "db4")
    used = [BUSY, BUSY, facts(ports=(8000,)), facts(ports=(8000,))]
    checked = [Checked(host=host(n), facts=f) for n, f in zip(names, used, strict=True)]
    busy, kept, measured, other = leave_out_busy(
        checked, {"db1", "db3", "db4"}, request, Options(suite="x", guard=True)
    )
    assert busy.facts is None and busy.reason is not None and "add --include-busy" in busy.reason
    assert kept.facts == BUSY, "it may run this campaign's job"
    assert measured.facts and other.reason == "services on TCP ports 8000; add --include-busy to measure it anyway"
    assert leave_out_busy(checked, {"db1"}, request, Options(suite="x")) == checked


@pytest.fixture
def usage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("usage", AGENT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_listeners_that_others_can_reach(usage: ModuleType, tmp_path: Path) -> None:
    rows = ["00000000:0016", "0100007F:0CEA", "7F000001:0CEB", "0A4D0001:1F90"]
    written(tmp_path, "proc/net/tcp", HEAD + "".join(f"   0: {row} 00000000:0000 0A 0\n" for row in rows))
    six = ["0" * 24 + "01000000:0019", "0" * 32 + ":1F91", "0000000000000000FFFF00000100007F:1F92"]
    text = HEAD + "".join(f"   0: {row} {'0' * 32}:0000 0A 0\n" for row in six)
    written(tmp_path, "proc/net/tcp6", text + f"   9: {'0' * 32}:1F93 {'0' * 32}:0000 01 0\n")
    assert usage.ports(str(tmp_path)) == [22, 8080, 8081]
    assert usage.ports(str(tmp_path / "none")) == []


def test_runnable_threads_are_those_of_the_whole_machine(usage: ModuleType, tmp_path: Path) -> None:
    written(tmp_path, "proc/loadavg", "40.10 38.00 20.00 39/1200 4711\n")
    space = tmp_path / "proc/self/ns/pid"
    space.parent.mkdir(parents=True)
    space.symlink_to("pid:[4026531836]")
    assert usage.running(str(tmp_path)) == 38
    space.unlink()
    space.symlink_to("pid:[4026532201]")
    assert usage.running(str(tmp_path)) is None, "a container"


US = ("ops", "10.0.0.9", "10.0.0.1")  # who asks: user, SSH client, SSH server


def record(kind: int, pid: int, user: str, address: str) -> bytes:
    """Return a record of utmp(5)."""
    return struct.pack("=hxxi36x32s256s52x", kind, pid, user.encode(), address.encode())


def test_users_at_terminals_by_utmp(usage: ModuleType, tmp_path: Path) -> None:
    root = str(tmp_path)
    assert usage.users(root, US) == []
    written(tmp_path, "proc/7/status", "")
    records = [
        record(2, 7, "reboot", "6.1"),
        record(7, 7, "ops", "10.0.0.9"),  # our own
        record(7, 7, "ops", "10.0.0.8"),  # someone else with the same account
        record(7, 7, "ops", ""),  # at the console
        record(7, 7, "ann", "10.0.0.9"),
        record(7, 8, "bob", "10.0.0.9"),  # its process has ended
        record(8, 7, "dan", ""),
    ]
    (tmp_path / "run").mkdir()
    (tmp_path / "run/utmp").write_bytes(b"".join(records))
    assert usage.users(root, US) == ["ann", "ops", "ops"]
    assert usage.users(root, ("ops", "10.0.0.1", "10.0.0.1")) == [], "the controller runs on this host"
    assert usage.users(root, ("ops", "", "")) == ["ann", "ops", "ops"]
    (tmp_path / "run/utmp").write_bytes(b"".join(r + bytes(16) for r in records))  # of a 64-bit Arm
    assert usage.users(root, US) == ["ann", "ops", "ops"]


def test_users_at_terminals_by_logind(usage: ModuleType, tmp_path: Path) -> None:
    sessions = {
        "1": "USER=ops\nCLASS=user\nTTY=pts/0\nREMOTE_HOST=10.0.0.9\nSTATE=active\n",
        "2": "USER=ops\nCLASS=user\nREMOTE_HOST=10.0.0.8\n",  # a command over SSH
        "3": "USER=ann\nCLASS=user-early\nTTY=pts/1\nREMOTE_HOST=10.0.0.7\nSTATE=active\n",
        "4": "USER=bob\nCLASS=user\nTTY=pts/2\nSTATE=closing\n",
        "c1": "USER=gdm\nCLASS=greeter\nTTY=tty1\n",
        "5": "UID=1000\nCLASS=user\nTTY=tty2\n",
        "3.ref": "",
    }
    for name, text in sessions.items():
        written(tmp_path, f"run/systemd/sessions/{name}", text)
    assert usage.users(str(tmp_path), US) == ["1000", "ann"]


def test_the_own_login(usage: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "ops")
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.9 41000 10.0.0.1 22")
    assert usage.own_login() == US
    monkeypatch.delenv("SUDO_USER")
    monkeypatch.setenv("SSH_CONNECTION", "")
    assert usage.own_login()[0] == pwd.getpwuid(os.getuid()).pw_name


def test_a_parent_tells_the_own_login_that_sudo_hides() -> None:
    """As below sudo: a parent has the variable, this process does not."""
    print_login = f"import runpy; print(*runpy.run_path({str(AGENT)!r})['own_login']())"
    hide = ["env", "-u", "SSH_CONNECTION", "SUDO_USER=ops", sys.executable, "-c", print_login]
    words = ["sh", "-c", '"$@"; exit $?', "sh", *hide]
    env = {**os.environ, "SSH_CONNECTION": "10.0.0.9 41000 10.0.0.1 22"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(US)
