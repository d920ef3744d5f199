"""Four real SSH hosts for a test session, always taken down again; ``fleetmark`` over them; an ordinary user on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.command import Command
from tests.fleet.hosts import Fleet, missing
from tests.fleet.remains import programs, remains

SHARED = pytest.StashKey[Fleet]()


@pytest.fixture(scope="session")
def fleet(pytestconfig: pytest.Config) -> Iterator[Fleet]:
    """Four hosts, shared by the session: a test leaves them as it found them. Skips if no fleet can be made."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(4) as hosts:
        pytestconfig.stash[SHARED] = hosts
        yield hosts


@pytest.fixture(autouse=True)
def _leaves_nothing(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Iterator[None]:
    """Fails the test that leaves something on the shared hosts, not a later one that meets it."""
    fleet = request.getfixturevalue("fleet") if "fleet" in request.fixturenames else None
    if fleet is None or fleet is not pytestconfig.stash.get(SHARED, None):
        yield  # hosts of its own file, which end with it
        return
    before = programs(fleet)
    yield
    if left := remains(fleet, before):
        pytest.fail("left on the hosts:\n" + "\n".join(left))


@pytest.fixture
def command(fleet: Fleet, tmp_path: Path) -> Command:
    return Command(fleet, tmp_path)


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
        f"ansible_control_path_dir={fleet.state}\n"  # Ansible's name of a socket has host and user, not the fleet
        f"ansible_ssh_common_args=-F {fleet.ssh_config} -i {fleet.key} -o User=ops\n"
    )
    yield inventory
    for host in ("h1", "h4"):
        fleet.exec(host, ["sh", "-c", "rm -rf /etc/sudoers.d/ops /var/tmp/fleetmark-*; userdel -rf ops"], check=False)
