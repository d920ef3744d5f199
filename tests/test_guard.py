"""Hosts in production and busy hosts are refused before anything is deployed; other users of a host are named."""

from __future__ import annotations

import importlib.util
import io
import struct
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from fleetmark.base.errors import FleetmarkError
from fleetmark.base.facts import Cpu, Facts
from fleetmark.campaign.options import Options
from fleetmark.campaign.prepare import leave_out_busy, refuse_busy
from fleetmark.hosts.guard import other_users, why_busy
from fleetmark.hosts.inventory import Host
from fleetmark.hosts.preflight import Checked

AGENT = Path(__file__).parents[1] / "playbooks" / "agent" / "usage.py"
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
    assert why_busy(host(labels=labels), facts()) == expected


def test_a_group_marks_production() -> None:
    assert why_busy(host(groups=("web", "production")), facts()) == "in production by the inventory's group production"


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
    reason = why_busy(host(), facts(load1=load, running=running))
    assert bool(reason) == is_busy
    assert not reason or reason == f"busy (load {load:g}, runnable threads {running}, CPUs 64)"


def test_other_users_are_named() -> None:
    assert other_users(host(), facts(sessions=0, ports=(22, 9100))) == ""
    assert other_users(host(port=2222), facts(ports=(2222,))) == "" and other_users(host(), facts(ports=(2222,))) != ""
    assert other_users(host(), facts(ports=(40_000,))) == "", "the kernel chose this port"
    text = other_users(host(), facts(sessions=2, ports=(22, 3306, *range(8000, 8010))))
    assert text == (
        "others use it (users at a terminal: 2; TCP ports of services: 3306, 8000, 8001, 8002, 8003, 8004, 8005, 8006 "
        "and 3 more), and a benchmark may slow them down"
    )


def guarded(*checked: Checked) -> str:
    """Return what a run prints of hosts, with its error."""
    console = Console(width=200, file=io.StringIO())
    with console.capture() as shown:
        try:
            refuse_busy(checked, console)
        except FleetmarkError as error:
            console.print(error, soft_wrap=True)
    return shown.get()


BUSY = facts(load1=60.0, running=61)


def test_a_run_refuses_hosts_with_a_line_for_each_cause() -> None:
    marked = [Checked(host=host(f"db{n}", labels={"production": "yes"}), facts=facts()) for n in (1, 2, 3)]
    calm = Checked(host=host("db5"), facts=facts(ports=(3306,)))
    text = guarded(*marked, Checked(host=host("db4"), facts=BUSY), calm, Checked(host=host("db6"), reason="gone"))
    assert text.splitlines() == [
        "db5: others use it (TCP ports of services: 3306), and a benchmark may slow them down",
        "db[1-3]: in production by the label production=yes",
        "db4: busy (load 60, runnable threads 61, CPUs 64)",
        "hosts in use: 4; nothing was deployed on any host; add --include-busy to measure anyway, or exclude hosts "
        "with --limit",
    ]


def test_this_machine_is_never_refused() -> None:
    text = guarded(Checked(host=host("here", connection="local"), facts=BUSY))
    assert text == "here: busy (load 60, runnable threads 61, CPUs 64)\n"


def test_busy_hosts_do_not_join_a_campaign() -> None:
    checked = [Checked(host=host("db1"), facts=BUSY), Checked(host=host("db2"), facts=BUSY)]
    left, kept = leave_out_busy(checked, {"db1"}, Options(suite="x", guard=True))
    assert left.facts is None and left.reason is not None and "add --include-busy" in left.reason
    assert kept.facts == BUSY, "it may run this campaign's job"
    assert leave_out_busy(checked, {"db1"}, Options(suite="x")) == checked


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


def test_users_at_a_terminal(usage: ModuleType, tmp_path: Path) -> None:
    assert usage.sessions(str(tmp_path)) == 0
    (tmp_path / "run").mkdir()
    (tmp_path / "run/utmp").write_bytes(b"".join(struct.pack("=h382x", kind) for kind in (2, 7, 6, 7)))
    assert usage.sessions(str(tmp_path)) == 2
