"""The fleet itself: hosts are isolated from the machine and from one another, and fail as real ones do."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path

import pytest

from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet


def answers(fleet: Fleet, host: str) -> bool:
    with socket.socket() as sock:
        sock.settimeout(2)
        return sock.connect_ex((fleet.address(host), 22)) == 0


def answers_again(fleet: Fleet, host: str) -> bool:
    """Whether it answers within two minutes: on a busy machine its neighbours look for it again only after seconds."""
    deadline = time.monotonic() + 120
    while not answers(fleet, host):
        if time.monotonic() > deadline:
            return False
    return True


def test_hosts_are_themselves(fleet: Fleet) -> None:
    assert [fleet.exec(h, ["hostname"]).stdout.strip() for h in fleet.names] == ["h1", "h2", "h3", "h4"]
    assert len({fleet.exec(h, ["cat", "/etc/machine-id"]).stdout for h in fleet.names}) == 4
    processes = fleet.exec("h1", ["sh", "-c", "ls -d /proc/[0-9]* | wc -l"]).stdout
    assert int(processes) < 12


def test_what_a_host_does_to_its_disk_stays_there(fleet: Fleet) -> None:
    fleet.exec("h1", ["sh", "-c", "echo x > /etc/fleet-test; rm -r /usr/share/doc"])
    assert not Path("/etc/fleet-test").exists()
    assert Path("/usr/share/doc").is_dir()
    assert fleet.exec("h2", ["ls", "/etc/fleet-test"], check=False).returncode != 0


def test_lacking_a_command(fleet: Fleet) -> None:
    tool = shutil.which("ssh-keyscan")
    fleet.lacks("h1", "ssh-keyscan")
    assert fleet.exec("h1", ["which", "ssh-keyscan"], check=False).returncode != 0
    assert fleet.exec("h2", ["which", "ssh-keyscan"]).stdout.strip() == tool


def test_cable_and_power(fleet: Fleet) -> None:
    fleet.exec("h2", ["sh", "-c", "for d in /etc /root /var/tmp /srv /tmp /run; do echo x > $d/kept; done"])
    fleet.cut("h2")
    try:
        assert not answers(fleet, "h2")
        assert answers(fleet, "h3")
    finally:
        fleet.heal("h2")
    assert answers_again(fleet, "h2")
    fleet.power_off("h2")
    try:
        with pytest.raises(RuntimeError, match="h2 is off"):
            fleet.exec("h2", ["true"])
    finally:
        fleet.power_on("h2")
    left = fleet.exec("h2", ["sh", "-c", "ls /*/kept /var/tmp/kept"]).stdout.split()
    assert left == ["/etc/kept", "/root/kept", "/srv/kept", "/var/tmp/kept"]


def test_loss_and_rate_can_be_set_and_lifted(fleet: Fleet) -> None:
    fleet.rate("h3", "100kbit")
    fleet.loss("h4", 100)
    try:
        assert "rate 100Kbit" in fleet.exec("h3", ["tc", "qdisc", "show", "dev", "eth0"]).stdout
        assert not answers(fleet, "h4")
    finally:
        fleet.rate("h3", "off")
        fleet.loss("h4", 0)
    assert "100Kbit" not in fleet.exec("h3", ["tc", "qdisc", "show", "dev", "eth0"]).stdout
    assert answers_again(fleet, "h4")


def test_fleets_live_side_by_side_and_end_alone(fleet: Fleet) -> None:
    with Fleet(1, hide=["/usr/share/doc"]) as other:
        assert other.tag != fleet.tag
        assert other.exec("h1", ["ls", "/usr/share/doc"]).stdout == ""
        state = other.state
        assert answers(other, "h1")
    assert not state.exists()
    assert answers(fleet, "h1")


def test_a_machine_that_cannot_hold_a_fleet_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert missing() == "a fleet needs root, to make namespaces"
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    assert (missing() or "").startswith("a fleet needs ip, nsenter, unshare, ssh, ssh-keygen (packages ")
