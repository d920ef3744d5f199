"""Test the shares of a job: the kernel holds it to them, or it does not start; nothing of it is left."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path
from types import ModuleType

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
    monkeypatch.syspath_prepend(PLAYBOOKS / "agent")
    monkeypatch.delitem(sys.modules, "groups", raising=False)
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
    assert warning.endswith(f"to keep it, type on the host: sudo loginctl enable-linger {user}")
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
    (site / "run" / "systemd" / "system").rmdir()
    assert groups.command({"cpu": 0.25}, str(site)) == ([], "")
