"""Shares of hosts over real SSH: groups of the kernel, scopes of a stand-in for systemd, and logind's end of a session."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.fleet.command import FLEETMARK, Command
from tests.fleet.hosts import Fleet, missing

pytestmark = pytest.mark.fleet
SUITE = "description: a share\nrepeats: 1\n{shares}workloads:\n  selftest: {{set: {{commands: {n}, seconds: 1}}}}\n"
SHARES = "shares: {cpu: 50%, memory: 200MiB}\n"
# The tree of groups of a host without systemd; all trees are the kernel's, below the groups of this fleet.
MOUNT = """
mount -t tmpfs tmpfs /sys/fs/cgroup
for kind in cpu memory blkio name=systemd; do
    mkdir /sys/fs/cgroup/$kind
    case $kind in name=*) options=none,$kind;; *) options=$kind;; esac
    mount -t cgroup -o $options cgroup /sys/fs/cgroup/$kind
done
mkdir /sys/fs/cgroup/unified
mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
"""
# A session of logind with everything that SSH starts from now on, and a stand-in for the commands of systemd.
SESSION = """
mkdir -p /run/systemd/system "$1/user.slice/user-0.slice/session-9.scope" "$1/system.slice"
echo $(pgrep -o -x sshd) > "$1/user.slice/user-0.slice/session-9.scope/cgroup.procs"
printf '#!/bin/sh\\n[ "$3" = KillUserProcesses ] && echo KillUserProcesses=yes\\n' > /usr/local/bin/loginctl
cat > /usr/local/bin/systemd-run <<'S'
#!/bin/sh
echo "$*" >> /srv/systemd-run.log
group() { # CONTROLLER: a new group for this scope
    g=/sys/fs/cgroup/$1$(sed -n "s/^[0-9]*:$1://p" /proc/self/cgroup)/run-$$.scope
    mkdir "$g" && echo "$g" >> /srv/groups
}
mkdir "TOP/system.slice/run-$$.scope" && echo $$ > "TOP/system.slice/run-$$.scope/cgroup.procs"
while [ "$1" != -- ]; do
    case $1 in
    CPUQuota=*) group cpu; q=${1#*=}; echo ${q%.*}000 > "$g/cpu.cfs_quota_us"; echo $$ > "$g/cgroup.procs" ;;
    MemoryMax=*) group memory; echo ${1#*=} > "$g/memory.limit_in_bytes"; echo $$ > "$g/cgroup.procs" ;;
    esac
    shift
done
shift
exec "$@"
S
sed -i "s|TOP|$1|g" /usr/local/bin/systemd-run
chmod 755 /usr/local/bin/systemd-run /usr/local/bin/loginctl
"""
END_SESSION = """
for p in $(cat "$1/user.slice/user-0.slice/session-9.scope/cgroup.procs"); do
    [ "$p" = "$(pgrep -o -x sshd)" ] || kill -9 "$p"
done
"""
TAKE_DOWN = """
for p in $(find "$1" -name cgroup.procs -exec cat {} +); do echo "$p" > /sys/fs/cgroup/name=systemd/cgroup.procs; done
find "$1" -depth -type d -exec rmdir {} +
[ ! -e /srv/groups ] || xargs rmdir < /srv/groups
"""


@pytest.fixture(scope="module")
def site() -> Iterator[Fleet]:
    """h1 has no groups; h2 to h4 have those of this kernel, and h3 also stand-ins for systemd and logind."""
    if reason := missing():
        pytest.skip(reason)
    with Fleet(4) as fleet:
        try:
            for host in ("h2", "h3", "h4"):
                fleet.exec(host, ["sh", "-ec", MOUNT])
        except RuntimeError as error:
            pytest.skip(f"cgroup v1 cannot be mounted: {error}")
        fleet.exec("h3", ["sh", "-ec", SESSION, "sh", top(fleet)])
        try:
            yield fleet
        finally:
            fleet.exec("h3", ["sh", "-c", TAKE_DOWN, "sh", top(fleet)], check=False)


def top(fleet: Fleet) -> str:
    return f"/sys/fs/cgroup/name=systemd/fleetmark-test-{fleet.tag}"


@pytest.fixture
def command(site: Fleet, tmp_path: Path) -> Command:
    return Command(site, tmp_path)


def suite(folder: Path, shares: str = SHARES, n: int = 2) -> str:
    file = folder / "shared.yml"
    file.write_text(SUITE.format(shares=shares, n=n))
    return str(file)


def test_a_host_that_cannot_hold_shares_measures_nothing(command: Command) -> None:
    done = command.run("--suite", suite(command.root), "--limit", "h1")
    assert done.returncode == 1
    (reason,) = {o["reason"] for o in command.outcomes()}
    assert "its suite has shares, but the kernel does not limit its CPU time; run as root" in reason
    assert set(command.count()) == {"lost"}


def test_a_campaign_under_shares_says_so(command: Command) -> None:
    command.passes("--suite", suite(command.root), "--limit", "h2", "--include-busy")
    assert not command.fleet.exec("h2", ["find", "/sys/fs/cgroup", "-name", "fleetmark-0-*"]).stdout
    job = json.loads((command.campaign / "jobs" / "h2.json").read_text())
    assert job["shares"] == {"cpu": 0.5, "memory": 200 << 20}
    words = [FLEETMARK, "report", "last", "--format", "json"]
    shown = subprocess.run(words, capture_output=True, text=True, env=command.env, check=True).stdout
    note = (
        "Limited to shares of each host: 50% of the CPU time, 200MiB of memory. Without shares, results may be higher."
    )
    assert note in json.loads(shown)["notes"]


@pytest.mark.parametrize(
    ("shares", "host", "problem"),
    [
        ("{network: 1 Gbit/s}", "h1", "it has no cgroup v2, which a network limit requires; run as root"),
        ("{network: 1 Gbit/s}", "h3", "systemd did not create a control group for the job; run as root"),
        ("{disk: 10 MB/s}", "h2", "the kernel limits buffered writes only with cgroup v2; boot it"),
    ],
)
def test_a_share_that_nothing_holds_is_refused(command: Command, shares: str, host: str, problem: str) -> None:
    done = command.run("--suite", suite(command.root, f"shares: {shares}\n"), "--limit", host)
    (reason,) = {o["reason"] for o in command.outcomes()}
    assert done.returncode == 1 and f"its suite has shares, but {problem}" in reason
    assert set(command.count()) == {"lost"}


def test_a_pair_measures_no_more_than_its_share_of_the_network(command: Command) -> None:
    """Without shares, the same pair is at least ten times as fast."""
    file = command.root / "network.yml"
    file.write_text(
        "description: x\nrepeats: 1\nshares: {network: 20 Mbit/s}\n"
        "workloads: {iperf3: {set: {duration: 5, streams: [1]}, cases: [tcp-1]}}\n"
    )
    command.passes("--suite", str(file), "--limit", "h2,h4")
    values = pd.read_parquet(command.campaign / "measurements.parquet").query("metric == 'bitrate'")["value"]
    assert len(values) > 0 and values.max() < 1.2 * 20e6 / 8  # a group that was idle may send more for 0.1 s
    for host in ("h2", "h4"):
        assert not command.fleet.exec(host, ["find", "/sys/fs/cgroup", "-name", "fleetmark-0-*"]).stdout


def test_a_scope_holds_a_job_to_its_shares(command: Command) -> None:
    command.passes("--suite", suite(command.root), "--limit", "h3")
    scope_options = command.fleet.exec("h3", ["cat", "/srv/systemd-run.log"]).stdout
    assert "-p CPUQuota=" in scope_options and f"-p MemoryMax={200 << 20} -p MemorySwapMax=0 --" in scope_options


def test_the_end_of_a_session_ends_no_job(command: Command) -> None:
    """With KillUserProcesses=yes, logind ends what a session started: here a stand-in for it does, by the same group."""
    controller = command.begin("--suite", suite(command.root, "", 30), "--limit", "h3")
    command.until(lambda: command.count()["passed"] >= 1)
    controller.kill()
    controller.wait()
    command.fleet.exec("h3", ["sh", "-c", END_SESSION, "sh", top(command.fleet)])
    held = command.fleet.exec("h3", ["pgrep", "-x", "fleetmark-job"]).stdout.split()
    assert len(held) == 1
    command.passes("--resume", "last")
    assert command.fleet.exec("h3", ["grep", "-c", "^--scope --quiet -- ", "/srv/systemd-run.log"]).stdout == "1\n"
