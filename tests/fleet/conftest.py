"""Four real SSH hosts for a test session, always taken down again; ``fleetmark`` over them; an ordinary user on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.command import Command
from tests.fleet.hosts import Fleet, missing


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """Four hosts, shared by the session: a test leaves them as it found them. Skips where no fleet can be made."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(4) as hosts:
        yield hosts


@pytest.fixture
def command(fleet: Fleet, tmp_path: Path) -> Iterator[Command]:
    yield Command(fleet, tmp_path)
    for host in fleet.names:  # no test leaves anything behind that the next would meet
        left = fleet.exec(
            host, ["sh", "-c", "ls /var/tmp/fleetmark-0/jobs 2>/dev/null; pgrep -f runner.p[y]"], check=False
        )
        if "runner" in left.stdout:
            pytest.fail(f"{host} still runs a job: {left.stdout}")


@pytest.fixture
def ordinary(fleet: Fleet, tmp_path: Path) -> Iterator[Path]:
    """An inventory of h1 and h4 by an ordinary user; on h4 that user may sudo without a password."""
    make = """
    id ops >/dev/null 2>&1 || useradd -m -p '*' ops
    mkdir -p /home/ops/.ssh && cp /root/.ssh/authorized_keys /home/ops/.ssh/ && chown -R ops /home/ops && chmod 700 /home/ops/.ssh
    mkdir -p /etc/sudoers.d; rm -f /etc/sudoers.d/ops
    """
    fleet.exec("h1", ["sh", "-ec", make])
    fleet.exec("h4", ["sh", "-ec", make + "echo 'ops ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/ops"])
    inventory = tmp_path / "ops.ini"
    inventory.write_text(
        "h1\nh4\n[all:vars]\nansible_user=ops\n"
        f"ansible_ssh_common_args=-F {fleet.ssh_config} -i {fleet.key} -o User=ops\n"
    )
    yield inventory
    for host in ("h1", "h4"):
        fleet.exec(host, ["sh", "-c", "rm -rf /etc/sudoers.d/ops /var/tmp/fleetmark-*; userdel -rf ops"], check=False)
