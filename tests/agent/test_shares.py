"""Test the shares of a job: the kernel holds it to them, or it does not start; nothing of it is left."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fleetmark.hosts.agent import PLAYBOOKS
from tests.agent.job import Job, step

CPU, MEMORY = 0.05, 160 << 20
THROTTLED = "while any('nr_throttled 0' in lines for lines in map(groups.lines_of, stats())): pass"
LIKE = """
import sys; sys.path.insert(0, {folder!r}); import os, groups
def stats():
    places = [p for p in groups.hierarchies() if p.has("cpu")]
    return [os.path.join(p.group, "cpu.stat") for p in places]
"""


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PLAYBOOKS / "agent" / "shares")
    for name in ("disks", "network", "groups"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import groups  # type: ignore[import-not-found]

    module: ModuleType = groups
    return module


def is_able(groups: ModuleType) -> bool:
    """Return whether this process can make groups for CPU and memory."""
    places = groups.hierarchies()
    kinds = {kind for place in places for kind in ("cpu", "memory") if place.has(kind)}
    return kinds == {"cpu", "memory"} and all(os.access(place.group, os.W_OK) for place in places)


@pytest.mark.job
def test_the_kernel_holds_a_job_to_its_shares(tmp_path: Path, groups: ModuleType) -> None:
    if Path("/run/systemd/system").is_dir() or os.geteuid() != 0 or not is_able(groups):
        pytest.skip("needs root, control groups of CPU and memory, and no systemd")
    job = Job(tmp_path, [])
    code = LIKE.format(folder=str(job.folder))
    python = [sys.executable, "-c"]
    print_groups = "print([p.group for p in groups.hierarchies()])"
    job.doc["steps"] = [
        step(0, [*python, f"{code}\n{print_groups}\n{THROTTLED}"]),
        step(1, [*python, f"x = bytearray({2 * MEMORY})"]),
        step(2, ["echo", "still there"]),
    ]
    job.doc["shares"] = {"cpu": CPU, "memory": MEMORY}
    assert job.start()["state"] == "started"
    results = job.results()
    made_groups = (job.folder / "groups").read_text().split()
    assert len(made_groups) == len({g for g in made_groups if g in results["00000"]["files"]["stdout"]}) > 0
    assert results["00000"]["rc"] == 0  # it saw that the kernel throttled it
    assert results["00001"]["rc"] == -9  # the kernel ended the tool alone, for its memory
    assert results["00002"]["files"]["stdout"] == "still there\n"
    assert not [g for g in made_groups if Path(g).exists()]


def test_a_group_of_a_killed_runner_is_removed_with_its_job(tmp_path: Path, groups: ModuleType) -> None:
    names = ("fleetmark-0-7", "other", "fleetmark-0-8")
    for name in names[:2]:
        (tmp_path / name).mkdir()
    (tmp_path / "groups").write_text("".join(f"{tmp_path / name}\n" for name in names))
    groups.remove(str(tmp_path))
    assert not (tmp_path / "fleetmark-0-7").exists() and (tmp_path / "other").exists()


def host(root: Path, cgroup: str, mountinfo: str) -> str:
    proc = root / "proc" / "self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(cgroup)
    (proc / "mountinfo").write_text(mountinfo)
    return str(root)


def test_groups_of_version_2_hold_their_limits(tmp_path: Path, groups: ModuleType) -> None:
    """A folder stands in for the kernel's tree, since this machine may have version 1 only."""
    top = tmp_path / "tree"
    parent = top / "ssh.slice"
    parent.mkdir(parents=True)
    for folder in (top, parent):
        (folder / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    mounted = f"30 29 0:26 / {top} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
    (place,) = groups.hierarchies(host(tmp_path, "0::/ssh.slice\n", mounted))
    assert (place.version, place.group, place.ancestors()) == (2, str(parent), [str(parent), str(top)])
    group = Path(groups.make_group(place, ["cpu", "memory"]))
    assert group.parent == parent
    assert (parent / "cgroup.subtree_control").read_text() == "+cpu +memory"
    for name in ("memory.max", "memory.swap.max"):
        (group / name).write_text("max\n")
    groups.limit(str(group), "memory", 1 << 30, 2)
    groups.limit(str(group), "cpu", 1.5, 2)
    assert [(group / f"{name}.max").read_text() for name in ("cpu", "memory", "memory.swap")] == [
        "150000 100000",
        "1073741824",
        "0",
    ]
    place.group = str(group)
    assert groups.limits_of("cpu", [place]) == [1.5, None, None]
    groups.check("memory", 1 << 30, [place])
    with pytest.raises(groups.NotHeld, match="the kernel does not limit its memory; run as root"):
        groups.check("memory", 1 << 29, [place])


def test_a_process_whose_groups_are_not_mounted_is_not_held(tmp_path: Path, groups: ModuleType) -> None:
    root = host(tmp_path, "0::/a\n", "30 29 0:26 / / rw - ext4 /dev/vda rw\n")
    with pytest.raises(groups.NotHeld, match="the kernel does not limit its CPU time"):
        groups.check("cpu", 1, groups.hierarchies(root))


def test_version_1_holds_no_disk(tmp_path: Path, groups: ModuleType) -> None:
    """There, the kernel throttles direct I/O, but not what it writes from the page cache."""
    mounted = f"30 29 0:26 / {tmp_path} rw - cgroup cgroup rw,blkio\n"
    places = groups.hierarchies(host(tmp_path, "5:blkio:/\n", mounted))
    assert [place.has("disk") for place in places] == [False]
    with pytest.raises(groups.NotHeld, match="limits buffered writes only with cgroup v2; boot it"):
        groups.check("disk", 1e6, places)


def test_groups_of_version_2_hold_disks(tmp_path: Path, groups: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number, size in (
        ("sda", "8:0", 9),
        ("loop0", "7:0", 0),
        ("cciss!c0d0", "104:0", 9),
        ("nvme0c0n1", "", 9),
    ):
        (tmp_path / "sys" / "block" / name).mkdir(parents=True)
        (tmp_path / "sys" / "block" / name / "size").write_text(f"{size}\n")
        (tmp_path / "sys" / "block" / name / "dev").write_text(f"{number}\n" if number else "")
    present = groups.disks.devices(str(tmp_path))
    assert present == {"/dev/sda": "8:0", "/dev/cciss/c0d0": "104:0"}
    group = tmp_path / "tree"
    group.mkdir()
    monkeypatch.setattr(groups.disks, "devices", lambda: present)
    place = groups.Hierarchy(2, frozenset({"io", "memory"}), str(group), str(group))
    (group / "memory.max").write_text("max\n")
    assert place.has("disk") and not groups.Hierarchy(2, frozenset({"io"}), str(group), str(group)).has("disk")
    groups.limit(str(group), "disk", 5000000, 2)
    assert (group / "io.max").read_text() == "8:0 rbps=5000000 wbps=5000000"  # the kernel keeps a line per disk
    (group / "io.max").write_text("8:0 rbps=5000000 wbps=1 riops=max wiops=max\n104:0 rbps=9 wbps=5000000\n")
    groups.check("disk", 5e6, [place])
    for broken in ("8:0 rbps=5000000 wbps=5000000\n", "8:0 rbps=1 wbps=1\n104:0 rbps=1 wbps=max\n"):
        (group / "io.max").write_text(broken)
        with pytest.raises(groups.NotHeld, match="the kernel does not limit its disk transfers; run as root"):
            groups.check("disk", 5e6, [place])
    (group / "io.max").write_text("8:0 rbps=1 wbps=1\n104:0 rbps=1 wbps=1\n")
    with pytest.raises(groups.NotHeld, match="does not limit its disk transfers"):
        groups.check("disk", 0.5, [place])
    (group / "memory.max").unlink()  # writes would count for the group above
    with pytest.raises(groups.NotHeld, match="does not limit its disk transfers"):
        groups.check("disk", 5e6, [place])


MOUNTS = """1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw
2 1 0:30 / {root}/home rw - nfs4 server:/home rw
3 1 0:31 / {root}/fast\\040pool rw - zfs pool rw
4 1 0:32 / {root}/cd ro - iso9660 /dev/sr0 ro
"""


@pytest.mark.parametrize(
    ("shares", "name", "problem"),
    [
        ({"disk": 1e6}, "home", "does not limit buffered writes to nfs4, on which .*/home/data is; use --work-dir"),
        ({"disk": 1e6}, "fast pool", "does not limit buffered writes to zfs"),
        ({"network": 1e6}, "home", "does not limit transfers of nfs4, on which .*/home/data is; use a local folder"),
        ({"network": 1e6}, "fast pool", ""),
        ({"disk": 1e6, "network": 1e6}, "cd", ""),
        ({"disk": 1e6, "network": 1e6}, "other", ""),
        ({"cpu": 0.5, "memory": 0.5}, "home", ""),
    ],
)
def test_file_systems_that_no_group_holds_are_refused(
    tmp_path: Path, groups: ModuleType, shares: dict[str, float], name: str, problem: str
) -> None:
    root = host(tmp_path, "", MOUNTS.format(root=tmp_path))
    path = tmp_path / name / "data"
    path.mkdir(parents=True)
    if not problem:
        groups.refuse_paths(groups.resolved(shares), [str(path)], root)
        return
    with pytest.raises(groups.NotHeld, match=problem):
        groups.refuse_paths(groups.resolved(shares), [str(path)], root)


def test_a_host_with_rdma_holds_no_network(tmp_path: Path, groups: ModuleType) -> None:
    root = host(tmp_path, "", "")
    groups.refuse_paths({"network": 1e6}, [], root)
    (tmp_path / "sys" / "class" / "infiniband" / "mlx5_0").mkdir(parents=True)
    with pytest.raises(
        groups.NotHeld, match="can bypass the kernel with RDMA, which control groups cannot limit; remove"
    ):
        groups.refuse_paths({"network": 1e6}, [], root)
    groups.refuse_paths({"disk": 1e6}, [], root)


def test_the_paths_of_a_job_are_those_that_its_steps_name(tmp_path: Path, groups: ModuleType) -> None:
    steps = [
        step(0, ["/bin/sh", f"--filename={tmp_path}", "x/etc", "/no/such/file"]),
        step(1, ["true"], env={"TMP": "/usr"}, serve={"argv": ["server", "-d/etc"], "port": 1}),
    ]
    assert groups.disks.paths_of(steps) == sorted([str(tmp_path), "/usr", "/etc"][:2])


# In a network namespace of its own: one of two connected interfaces is in another namespace, with a peer outside the
# group. Prints how many bytes came over the loopback interface, and how many packets the peer and the process received.
POLICED = """
import json, socket, subprocess, sys
N = 50

def bound(address):
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.bind((address, 7))
    return own

def send(own, address):
    for _ in range(N):
        own.sendto(bytes(1000), (address, 7))

def received(own, expected):
    count = 0
    own.settimeout(60)
    try:
        while count <= N:
            count += len(own.recv(2000)) == 1000
            own.settimeout(60 if count < expected else 1)  # then only packets come that should have been dropped
    except socket.timeout:
        return count

def sh(text, *before):
    subprocess.run([*before, "sh", "-ec", text], check=True)

expected = int(sys.argv[1])
if sys.argv[2] == "peer":
    input()
    own = bound("10.9.8.2")
    print("ready", flush=True)
    print(received(own, expected), flush=True)
    send(own, "10.9.8.1")
    input()
    sys.exit()
words = ["unshare", "-n", sys.executable, "-c", sys.argv[6], sys.argv[1], "peer"]
peer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True, bufsize=1)
try:
    sh("until [ $(readlink /proc/%d/ns/net) != $(readlink /proc/self/ns/net) ]; do sleep 0.01; done" % peer.pid)
    sh("ip link set lo up; ip link add near type veth peer name far netns %d" % peer.pid)
    sh("ip addr add 10.9.8.1/24 dev near; ip link set near up")
    sh("ip addr add 10.9.8.2/24 dev far; ip link set far up", "nsenter", "-t", str(peer.pid), "-n")
    sys.path.insert(0, sys.argv[3])
    import groups
    left = groups.enter(json.loads(sys.argv[4]), sys.argv[5], False)
    try:
        local = bound("127.0.0.1")
        send(local, "127.0.0.1")
        over_loopback = sum(len(local.recv(2000)) for _ in range(N))
        own = bound("10.9.8.1")
        peer.stdin.write("bind\\n")
        assert peer.stdout.readline() == "ready\\n"
        send(own, "10.9.8.2")
        sent = int(peer.stdout.readline())
        print(json.dumps([over_loopback, sent, received(own, expected)]))
    finally:
        groups.leave(left, sys.argv[5])
finally:
    peer.kill()
"""


@pytest.mark.parametrize("shares", [{}, {"network": 1.0}], ids=["free", "held"])
def test_the_kernel_holds_a_network(tmp_path: Path, groups: ModuleType, shares: dict[str, float]) -> None:
    """At 1 byte/s, one packet of 1,000 bytes takes 17 minutes, so exactly one passes in each direction."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        pytest.skip("needs root and iproute2")
    if Path("/run/systemd/system").is_dir() or not any(place.version == 2 for place in groups.hierarchies()):
        pytest.skip("needs cgroup v2 and no systemd")
    folder = str(PLAYBOOKS / "agent" / "shares")
    expected = 1 if shares else 50
    words = [str(expected), "own", folder, json.dumps(shares), str(tmp_path), POLICED]
    done = subprocess.run(["unshare", "-n", sys.executable, "-c", POLICED, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [50000, expected, expected]
    made_groups = (tmp_path / "groups").read_text().split() if shares else []
    assert len(made_groups) == len(shares) and not [g for g in made_groups if Path(g).exists()]


def test_a_network_that_the_kernel_does_not_hold_is_refused(
    tmp_path: Path, groups: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(groups.NotHeld, match="it has no cgroup v2, which a network limit requires; run as"):
        groups.hold_network(1e6, [groups.Hierarchy(1, frozenset({"cpu"}), "/", "/")], False)
    place = groups.Hierarchy(2, frozenset(), str(tmp_path), str(tmp_path))
    (tmp_path / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    with pytest.raises(groups.NotHeld, match="systemd did not create a control group for the job; run as root"):
        groups.hold_network(1e6, [place], True)
    with pytest.raises(groups.NotHeld, match="the kernel does not limit its network .*; run as root"):
        groups.hold_network(1e6, [place], False)  # a folder that is no group


BUFFERED_BYTES, DISK_RATE = 8 << 20, 1000000
WRITE = f"""
import os, time
began = time.monotonic()
with open("data", "wb") as out:
    out.write(bytes({BUFFERED_BYTES}))
os.sync()
print(time.monotonic() - began)
"""


@pytest.mark.job
def test_the_kernel_holds_buffered_writes_of_a_job(tmp_path: Path, groups: ModuleType) -> None:
    places = groups.hierarchies()
    if Path("/run/systemd/system").is_dir() or os.geteuid() != 0 or not any(place.has("disk") for place in places):
        pytest.skip("needs root, cgroup v2 with limits of disks, and no systemd")
    if groups.disks.unheld(groups.disks.file_systems([str(tmp_path)])):
        pytest.skip("needs a file system with writes that control groups limit")
    job = Job(tmp_path, [step(0, [sys.executable, "-c", WRITE])])
    job.doc["shares"] = {"disk": DISK_RATE}
    assert job.start() == {"state": "started"}
    result: dict[str, Any] = job.results()["00000"]
    assert float(result["files"]["stdout"]) > 0.8 * BUFFERED_BYTES / DISK_RATE


SESSION = "1:name=systemd:/user.slice/user-{uid}.slice/session-3.scope\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of systemd with a stand-in for loginctl, whose properties are the lines of a file."""
    user = pwd.getpwall()[-1]
    (tmp_path / "run" / "systemd" / "system").mkdir(parents=True)
    host(tmp_path, SESSION.format(uid=user.pw_uid), "")
    (tmp_path / "loginctl").write_text(f'#!/bin/sh\nshift $(($# - 1))\ngrep "^$1=" {tmp_path}/answers\n')
    (tmp_path / "loginctl").chmod(0o755)
    (tmp_path / "answers").write_text("KillUserProcesses=yes\nLinger=yes\nKillExcludeUsers=root\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: user.pw_uid)
    return tmp_path


def test_a_job_gets_a_scope_only_where_logind_would_end_it(site: Path, groups: ModuleType) -> None:
    user = pwd.getpwall()[-1].pw_name
    words = ["systemd-run", "--scope", "--quiet", "--user", "--"]
    assert groups.command(None, str(site)) == (words, "")
    (site / "answers").write_text("KillUserProcesses=yes\nLinger=no\n")
    started, warning = groups.command(None, str(site))
    assert started == words
    assert warning.endswith(f"to keep it, run on the host: sudo loginctl enable-linger {user}")
    for answers in (
        "KillUserProcesses=no\n",
        "",
        f"KillUserProcesses=yes\nKillExcludeUsers=root {user}\n",
        "KillUserProcesses=yes\nKillOnlyUsers=jane\n",
    ):
        (site / "answers").write_text(answers)
        assert groups.command(None, str(site)) == ([], "")


def test_a_scope_carries_the_limits_of_the_shares(
    site: Path, groups: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (site / "answers").write_text("")
    words, warning = groups.command({"cpu": 0.25, "memory": 1 << 30}, str(site))
    quota = f"CPUQuota={25 * os.sysconf('SC_NPROCESSORS_ONLN'):.2f}%"
    assert words[:5] == ["systemd-run", "--scope", "--quiet", "-p", "Delegate=yes"]
    assert words[5:] == ["-p", quota, "-p", "MemoryMax=1073741824", "-p", "MemorySwapMax=0", "--"]
    assert warning == ""
    monkeypatch.setattr(groups.disks, "devices", lambda: {"/dev/sda": "8:0", "/dev/sdb": "8:16"})
    words, _ = groups.command({"disk": 2e8, "network": 1e6}, str(site))
    limits = [f"IO{way}BandwidthMax={disk} 200000000" for disk in ("/dev/sda", "/dev/sdb") for way in ("Read", "Write")]
    assert words[5:-1:2] == ["-p"] * 5 and words[6::2] == ["MemoryAccounting=yes", *limits]
    (site / "run" / "systemd" / "system").rmdir()
    assert groups.command({"cpu": 0.25}, str(site)) == ([], "")
