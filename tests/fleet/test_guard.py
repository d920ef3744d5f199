"""Hosts with other users or services are refused over real SSH, before anything is written; own terminals do not count."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.command import Command, as_ops
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet
LISTEN = "import socket, time; s = socket.create_server(('', 8080)); print(flush=True); time.sleep(3600)"
USERS = "touch /run/utmp; useradd -m -p '*' ann; cp -r /root/.ssh /home/ann; chown -R ann /home/ann"


@pytest.fixture(scope="module")
def site() -> Iterator[Fleet]:
    """Two hosts with utmp, where a user ann may log in with the fleet's key."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(2) as fleet:
        for host in fleet.names:
            fleet.exec(host, ["sh", "-ec", USERS])
        yield fleet


@contextlib.contextmanager
def terminal(fleet: Fleet, command: Command, user: str) -> Iterator[None]:
    """Hold a terminal of a user on h1 while the body runs."""
    words = ["ssh", "-tt", "-F", str(fleet.ssh_config), "-l", user, "h1", "sleep 3600"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as login:
        try:
            command.until(lambda: login.poll() is not None or user in fleet.exec("h1", ["who"]).stdout)
            assert login.poll() is None
            yield
        finally:
            login.terminate()
    command.until(lambda: user not in fleet.exec("h1", ["who"]).stdout)


def test_another_users_terminal_refuses_a_host(site: Fleet, tmp_path: Path) -> None:
    command = Command(site, tmp_path)
    with terminal(site, command, "ann"), terminal(site, command, "root"):
        done = command.run("--suite", "selftest")
    assert done.returncode == 2 and "h1: other users at terminals: ann\n" in done.stdout
    assert "hosts in use: 1;" in done.stderr and "add --include-busy to measure anyway" in done.stderr
    assert not command.events()
    for host in site.names:
        assert site.exec(host, ["ls", "/var/tmp"]).stdout == ""


def test_the_own_terminal_refuses_none(site: Fleet, tmp_path: Path) -> None:
    command = Command(site, tmp_path)
    with terminal(site, command, "root"):
        command.passes("--suite", "selftest")


def test_a_service_refuses_a_host_unless_its_port_is_ignored(site: Fleet, tmp_path: Path) -> None:
    command = Command(site, tmp_path)
    wait = "until [ -s /tmp/ready ]; do sleep 0.05; done"
    listen = ["sh", "-c", f'python3 -c "{LISTEN}" >/tmp/ready 2>&1 & {wait}; echo $!']
    process = site.exec("h2", listen).stdout.strip()
    try:
        done = command.run("--suite", "selftest")
        assert done.returncode == 2 and "h2: services on TCP ports 8080\n" in done.stdout
        assert "list their ports as fleetmark_ignored_ports in the inventory" in done.stderr
        inventory = tmp_path / "hosts.ini"
        inventory.write_text(site.inventory.read_text() + "\n[all:vars]\nfleetmark_ignored_ports=[8080]\n")
        assert as_ops(inventory, command, "--suite", "selftest").returncode == 0
    finally:
        site.exec("h2", ["kill", process])
